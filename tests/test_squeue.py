"""squeue, held against recordings of Slurm's: tables, formats, filters, order, errors."""

import pytest

from tests.cluster import run
from tests.printed import CLUSTER, assert_as_printed
from tests.queue_of_recordings import typed

MIX = (
    *("A", "O_colon", "O_many", "P", "S_prio", "array_desc", "bob_me", "default", "h", "l", "me"),
    *("n", "o_A", "o_all", "o_jT", "o_wide", "p_short", "qtk", "r", "s", "s_l", "start", "t_R"),
    *("t_pd", "u", "v", "w_n1"),
)
EMPTY = (
    *("A_bad", "M", "M_bad", "O_bad", "badopt", "default", "h", "j_bad", "j_bad_abc", "l", "me"),
    *("n_bad", "o_bad", "p_bad", "s", "sort_bad", "start", "t_bad", "u_bad", "w_bad"),
)
BLUR = {
    # How long jobs have run, and what is left of their time limits.
    r"(?<![\dT:-])0:\d\d\b": "0:xx",
    r"(?<![\dT:-])(9|19|29|364-23:59):\d\d\b": r"\1:xx",
    r"last_update_time=\d+ records=\d+": "RECORDS",
    # Not simulated: a start that is expected behind the window of backfill, nodes that are lost
    # to a job behind its partition's head, comments.
    r"(?m)^.*(?<!\d)(?:122|127)(?!\d).*\n": "",
    r"\ba comment\b": "(null)",
    # Written for the simulation alone, which takes other nodes first.
    r"n\[1-2\]": "",
}


@pytest.mark.parametrize("name", MIX)
def test_shows_a_full_queue_as_slurm_does(name: str) -> None:
    """Jobs that run, wait for all sorts of reasons, are held, depend on others, or are arrays."""
    assert_as_printed(f"squeue_mix/{name}", typed("squeue_mix", *MIX)[name], BLUR)


@pytest.mark.parametrize("name", EMPTY)
def test_shows_an_empty_queue_as_slurm_does(name: str) -> None:
    """And refuses what is none with Slurm's words and exit status."""
    assert_as_printed(f"squeue_empty/{name}", typed("squeue_empty", *EMPTY)[name])


FINISHED = """\
timeline:
  - {at: 1s, as: alice, run: "sbatch --wrap 'exit 1'"}
  - {at: 20s, as: alice, run: "squeue -j 77"}
  - {at: 20s, as: alice, run: "squeue -t all -j 77"}
  - {at: 20s, as: alice, run: "squeue -j 77,999999"}
"""


def test_finished_jobs_are_shown_where_they_are_asked_for() -> None:
    """By their states; a job that is not known is an error where it alone is asked for."""
    cluster = CLUSTER.replace("slurm_conf:\n", "slurm_conf:\n  FirstJobId: 77\n")
    commands = run(FINISHED, cluster=cluster, model="modern").result.commands
    for name, result in zip(("j_done", "j_done_all", "j_mixed"), commands[1:], strict=True):
        assert_as_printed(f"squeue_empty/{name}", result)


def shown(*lines: str, cluster: str = CLUSTER, at: str = "9s") -> list[str]:
    """Return what the last of some commands prints; the others are typed a second apart."""
    entries = [(f"{place + 1}s", line) for place, line in enumerate(lines[:-1])]
    text = "timeline:\n" + "".join(
        f'- {{at: {when}, as: alice, run: "{line}"}}\n'
        for when, line in [*entries, (at, lines[-1])]
    )
    return run(text, cluster=cluster, model="modern").result.commands[-1].stdout.splitlines()


def test_variables_stand_in_for_options() -> None:
    """And options count for more."""
    script = (
        "SQUEUE_FORMAT='%i %t' squeue -n own; SQUEUE_FORMAT='%i' squeue -h -o %t; "
        "SQUEUE_STATES=PD squeue -h; SQUEUE_SORT=-i SQUEUE_FORMAT=%i squeue -h; "
        "SQUEUE_FORMAT2=jobid:4,state:.9 squeue -h; SQUEUE_USERS=bob SQUEUE_NAMES=x squeue -h; "
        "SQUEUE_PARTITION=short SQUEUE_ACCOUNT=proj1 SQUEUE_ALL=1 SQUEUE_QOS=x squeue -h"
    )
    cluster = CLUSTER + f'files: {{j.sh: "#!/bin/sh\\n{script}\\n"}}\n'
    text = """\
timeline:
  - {at: 1s, as: alice, run: "sbatch -J own -o out j.sh"}
  - {at: 1s, as: alice, run: "sbatch -J other --wrap 'sleep 60'"}
"""
    ran = run(text, cluster=cluster, model="modern")
    found = ran.world.site.disk.read("out", "/home/alice", host="n1")
    assert found == "JOBID ST\n1 R\nR\nR\n2\n1\n1     RUNNING\n2     RUNNING\n"


def test_looks_again_as_long_as_anything_happens() -> None:
    """Every so many seconds, each time below the date."""
    found = shown("sbatch --wrap 'sleep 30'", "squeue -i 10 -o %M", at="12s")
    dates = [line for line in found if "2026" in line]
    assert found[:4] == [dates[0], "TIME", "0:11", ""]
    assert found[4:8] == [dates[1], "TIME", "0:21", ""]
    assert found[8:11] == [dates[2], "TIME", ""]
    assert found[-1] == "TIME"


def test_a_job_that_waits_for_several_partitions_has_a_line_for_each() -> None:
    """With -P; priorities then count after the tier of the partition."""
    full = "sbatch -N4 --exclusive --wrap 'sleep 60'"
    both = "sbatch -p debug,short --wrap 'sleep 60'"
    assert shown(full, both, "squeue -h -o '%i %P %t'") == ["1 debug R", "2 debug,short PD"]
    assert shown(full, both, "squeue -P -h --sort=-p,i -o '%i %P'") == [
        *("2 short", "1 debug", "2 debug")
    ]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("-j 2", ["2_[2-3%1]", "2_1"]),
        ("-j2_3", ["2_[2-3%1]"]),
        ("--jobs=2_1,1", ["2_1", "1"]),
        ("--job 1", ["1"]),
        ("-r -j 2_2", ["2_2"]),
        ("-t CG,pd", ["2_[2-3%1]"]),
        ("-u alice,2002", ["2_[2-3%1]", "2_1", "1"]),
        ("-u root", []),
        ("-p SHORT", []),
        ("-p long,debug -n ONE", ["1"]),
        ("-q normal", ["2_[2-3%1]", "2_1", "1"]),
        ("-L matlab", []),
        ("-R maintenance", []),
        ("-w n[1-4] -t all", ["2_1", "1"]),
        ("-S i", ["1", "2_1", "2_[2-3%1]"]),
        ("--sort=-i", ["2_[2-3%1]", "2_1", "1"]),
        ("--sort=j,i", ["2_1", "2_[2-3%1]", "1"]),
    ],
)
def test_chooses_and_sorts(options: str, wanted: list[str]) -> None:
    """Filters join; names, accounts and partitions are alike whatever their case."""
    jobs = ("sbatch -J one --wrap 'sleep 60'", "sbatch -J array -a 1-3%1 --wrap 'sleep 60'")
    assert sorted(shown(*jobs, f"squeue -h -o %i {options}")) == sorted(wanted)
    if "-S" in options or "--sort" in options:
        assert shown(*jobs, f"squeue -h -o %i {options}") == wanted


def test_what_is_not_built_is_refused_by_name() -> None:
    """Wherever it stands."""
    text = 'timeline: [{at: 1s, as: alice, run: "squeue -u bob --json"}]\n'
    result = run(text, cluster=CLUSTER, model="modern").result.commands[0]
    assert (result.exit, result.stdout) == (1, "")
    assert result.stderr == (
        "squeue: error: --json is an option of Slurm's that simctl does not simulate yet\n"
    )
