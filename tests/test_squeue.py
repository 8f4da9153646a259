"""squeue, held against recordings of Slurm's: tables, formats, filters, order, errors."""

from datetime import datetime
from typing import Any

import pytest

from simctl.commands.columns.job_states import VALID, is_in, parse_state, state_letters, state_text
from simctl.commands.columns.jobs import JobRow
from simctl.commands.squeue.options import read_query
from simctl.commands.squeue.order import sorted_jobs
from simctl.commands.squeue.rows import job_rows
from simctl.wire.arrays import parse_array
from simctl.wire.info import JobInfo
from simctl.wire.messages import ResponseJobInfo
from simctl.wire.past_times import show_moment
from simctl.wire.states import JobBase, JobFlag, JobState
from tests.cluster import run
from tests.entries import entries
from tests.printed import CLUSTER, assert_as_printed, read
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
    # Not simulated: nodes that are lost to a job behind its partition's head, comments.
    r"(?m)^.*(?<!\d)127(?!\d).*\n": "",
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


FINISHED = entries(
    "1s alice sbatch --wrap 'exit 1'",
    "20s alice squeue -j 77",
    "20s alice squeue -t all -j 77",
    "20s alice squeue -j 77,999999",
)


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
        "SQUEUE_FORMAT2=jobid:4 squeue -h -o %j; SQUEUE_FORMAT=%t squeue -h -O name:6; "
        "SQUEUE_PARTITION=short SQUEUE_ACCOUNT=proj1 SQUEUE_ALL=1 SQUEUE_QOS=x squeue -h"
    )
    cluster = CLUSTER + f'files: {{j.sh: "#!/bin/sh\\n{script}\\n"}}\n'
    text = entries(
        "1s alice sbatch -J own -o out j.sh", "1s alice sbatch -J other --wrap 'sleep 60'"
    )
    ran = run(text, cluster=cluster, model="modern")
    found = ran.world.site.disk.read("out", "/home/alice", host="n1")
    assert found == (
        "JOBID ST\n1 R\nR\nR\n2\n1\n1     RUNNING\n2     RUNNING\nown\nother\nown   \nother \n"
    )


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
    assert shown(full, both, "squeue -h -p short -o %i") == ["2"]
    assert shown(full, both, "squeue -h -p Debug -o %i -S i") == ["1", "2"]
    assert shown(full, both, "squeue -h -p long -o %i") == []
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


ONE_JOB = {
    "sq_reqhold": ("120", "gpujob -p long", ("scontrol requeuehold 120",)),
    "sq_susp": ("119", "runner -w n1", ("scontrol suspend 119",)),
    "sq_uhold": ("125", "begin -H", ()),
    "sq_lic": ("138", "lic -H", ("scontrol hold 138",)),
    "sq_partdown": (
        *("120", "gpujob -p long"),
        ("scontrol requeuehold 120", "scontrol update partitionname=long state=down"),
    ),
}


@pytest.mark.parametrize("name", ONE_JOB)
def test_shows_what_was_done_to_a_job(name: str) -> None:
    """Suspended, held by its owner or an operator, sent back into the queue and held."""
    job_id, words, deeds = ONE_JOB[name]
    recorded = read(f"scontrol_update/{name}")
    line = recorded.line.replace('"', "'")
    entries = [("1s", "alice", f"sbatch -J {words} --wrap 'sleep 600'")]
    entries += [("15s", "root", deed) for deed in deeds]
    text = "timeline:\n" + "".join(
        f'- {{at: {at}, as: {who}, run: "{deed}"}}\n'
        for at, who, deed in [*entries, ("18s", "alice", line)]
    )
    cluster = CLUSTER.replace("slurm_conf:\n", f"slurm_conf:\n  FirstJobId: {job_id}\n")
    result = run(text, cluster=cluster, model="modern").result.commands[-1]
    assert_as_printed(f"scontrol_update/{name}", result, BLUR)


def test_shows_what_is_left_of_an_array() -> None:
    """Its waiting tasks as a list with holes."""
    array = "sbatch -J averyveryverylongjobname -w n4 -a 0-5%1 --wrap 'sleep 600'"
    text = entries(
        f"1s alice {array}",
        "5s alice scancel 121_[2-4]",
        "26s alice squeue -n averyveryverylongjobname",
    )
    cluster = CLUSTER.replace("slurm_conf:\n", "slurm_conf:\n  FirstJobId: 121\n")
    result = run(text, cluster=cluster, model="modern").result.commands[-1]
    assert_as_printed("scancel/sq_after", result, BLUR)


def test_orders_finished_jobs_as_slurm_does() -> None:
    """By partition, state and priority; then the latest to start comes first."""
    partitions = {"97": "short", "92": "short"}
    rows = []
    for line in read("squeue_empty/t_all_fmt").stdout.splitlines():
        job_id, state, _, _, start, *_ = line.split("|")
        if "_" not in job_id:
            info = job_info(
                job_id=int(job_id),
                partition=partitions.get(job_id, "debug"),
                state=JobState(JobBase[state]),
                priority=0 if job_id == "88" else 1000,
                start_s=int(datetime.fromisoformat(f"{start}Z").timestamp()),
            )
            rows.append(row_of(info))
    by_id = sorted(rows, key=lambda row: row.info.job_id)
    assert by_id != rows
    found = [row.info.job_id for row in sorted_jobs(by_id, "P,t,-p")]
    assert found == [row.info.job_id for row in rows]


def job_info(**fields: Any) -> JobInfo:
    """Return what is told of a job."""
    usual: dict[str, Any] = {
        "name": "j",
        "user_id": 1,
        "user": "u",
        "group_id": 1,
        "account": "",
        "reason": "",
    }
    sizes: dict[str, Any] = {
        "nice": 0,
        "submit_s": 0,
        "num_nodes": 1,
        "num_cpus": 1,
        "num_tasks": 1,
        "billing": 1,
    }
    return JobInfo(**usual, **sizes, **fields)


def row_of(info: JobInfo) -> JobRow:
    """Return the line about a job."""
    return JobRow(
        info=info, now_s=0, partition=info.partition, reason="", group="", cluster="", tier=0
    )


@pytest.mark.parametrize(
    ("base", "flags", "short", "long"),
    [
        (JobBase.PENDING, JobFlag.NONE, "PD", "PENDING"),
        (JobBase.RUNNING, JobFlag.CONFIGURING, "CF", "CONFIGURING"),
        (JobBase.RUNNING, JobFlag.STOPPED, "ST", "STOPPED"),
        (JobBase.PENDING, JobFlag.REQUEUE | JobFlag.COMPLETING, "CG", "COMPLETING"),
        (JobBase.PENDING, JobFlag.REQUEUE, "RQ", "REQUEUED"),
        (JobBase.PENDING, JobFlag.SPECIAL_EXIT, "SE", "SPECIAL_EXIT"),
        (JobBase.TIMEOUT, JobFlag.NONE, "TO", "TIMEOUT"),
        (JobBase.NODE_FAIL, JobFlag.COMPLETING, "CG", "COMPLETING"),
        (JobBase.OUT_OF_MEMORY, JobFlag.NONE, "OOM", "OUT_OF_MEMORY"),
    ],
)
def test_states_in_short_and_in_full(base: JobBase, flags: JobFlag, short: str, long: str) -> None:
    """A flag stands for the base state, the most important one first."""
    state = JobState(base, flags)
    assert (state_letters(state), state_text(state)) == (short, long)
    named = parse_state(short.lower())
    assert named is not None
    assert is_in(state, named)


def test_every_name_of_a_state_is_understood() -> None:
    """Those that no job here is in as well."""
    for word in VALID.split(","):
        parse_state(word)


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ("", ["1.0", "2.0", "3.0"]),
        ("-w n1", ["1.0", "3.0"]),
        ("-w n2", ["2.0", "3.0"]),
        ("-w n3", ["3.0"]),
        ("-w n[1-2]", ["1.0", "2.0", "3.0"]),
        ("-u bob", ["2.0"]),
        ("-u bob -w n1", []),
    ],
)
def test_steps_are_those_on_the_nodes_that_are_named(options: str, steps: list[str]) -> None:
    """A step of several nodes is on each of them."""
    text = entries(
        "1s alice srun -w n1 sleep 100",
        "2s bob srun -w n2 sleep 100",
        "3s alice srun -N3 -w n[1-3] sleep 100",
        f"9s alice squeue -h -s -o %i {options}",
    )
    ran = run(text, cluster=CLUSTER, model="modern")
    shown = max(ran.result.commands, key=lambda each: each.line)
    assert sorted(shown.stdout.split()) == steps


def test_says_that_slurmctld_cannot_be_reached() -> None:
    """Each command in its own words; all end with 1."""
    text = entries(
        "{at: 1s, fault: {cut: [slurmctld, login], for: 1m}}",
        "2s alice squeue",
        "2s alice squeue -s",
        "2s alice sinfo",
    )
    why = "Unable to contact slurm controller (connect failure)\n"
    commands = run(text, cluster=CLUSTER, model="modern").result.commands
    assert {each.exit for each in commands} == {1}
    assert [each.stderr for each in commands] == [
        f"slurm_load_jobs error: {why}",
        f"slurm_get_job_steps error: {why}",
        f"slurm_load_partitions: {why}",
    ]


def test_times_add_up_as_clocks_show_them() -> None:
    """From second to second, as in Slurm: the end less the start, whatever parts of one there are.

    A job's own moments are some microseconds apart from whole seconds.
    """
    commands = run(
        entries(
            "900ms alice sbatch -t1 --wrap 'sleep 600'",
            "11s alice squeue -h -o '%S %M'",
            "200s alice squeue -h -t all -o '%S %e %M'",
            "200s alice sacct -n -P -X -j 1 -o start,end,elapsed",
        )
    ).result.commands
    start, length = commands[1].stdout.split()
    assert int(length.partition(":")[2]) == 11 - int(start[-2:])
    start, end, length = commands[2].stdout.split()
    told_start, told_end, told_length = commands[3].stdout.strip().split("|")
    assert (start, end, f"00:0{length}") == (told_start, told_end, told_length)


@pytest.mark.parametrize(
    ("array", "told"),
    [
        ("1-30:3", "1-28:3"),
        ("1-9:2%2", "1,3,5,7,9%2"),
        ("0-12:2", "0-12:2"),
        ("0-10:2", "0,2,4,6,8,10"),
        ("1,20", "1-20:19"),
        ("1-3,20", "1-3,20"),
        ("0-20", "0-20"),
        ("5", "5"),
    ],
)
def test_tasks_at_even_distances_over_a_long_span(array: str, told: str) -> None:
    """They are written by first, last and step, wherever an array's waiting tasks are named."""
    submitted = f"sbatch -H -a {array} --wrap true"
    assert shown(submitted, "squeue -h -o '%K %i'")[0].split() == [told, f"1_[{told}]"]
    (line,) = [each for each in shown(submitted, "scontrol show job 1") if "ArrayTaskId" in each]
    assert f"ArrayTaskId={told} " in line
    assert len(shown(submitted, "squeue -h -r")) == len(parse_array(array)[0])


@pytest.mark.parametrize("option", ["--federation", "--local", "--sibling", "--sib", "--hide"])
def test_what_changes_nothing_here(option: str) -> None:
    """There is one cluster, and nothing in it is hidden."""
    jobs = ("sbatch -J one --wrap 'sleep 60'",)
    assert shown(*jobs, f"squeue -h -o %j {option}") == ["one"]
    if "sib" not in option:
        assert shown(f"sinfo -h -p short -o %P {option}") == ["short"]


def test_times_are_written_as_a_variable_says() -> None:
    """SLURM_TIME_FORMAT is for squeue and sinfo what it is for sacct."""
    script = (
        "export SLURM_TIME_FORMAT=%H-%M; squeue -h -j 1 -O submittime:10,deadline; "
        "squeue -h -s 1 -o %S; sinfo -h -R -o %H; SLURM_TIME_FORMAT=relative squeue -h -o %V"
    )
    cluster = CLUSTER + f'files: {{j.sh: "#!/bin/sh\\n{script}\\n"}}\n'
    text = entries(
        "0s root scontrol update nodename=n4 state=drain reason=fan", "1s alice sbatch -o out j.sh"
    )
    ran = run(text, cluster=cluster, model="modern")
    found = ran.world.site.disk.read("out", "/home/alice", host="n1")
    assert found is not None
    assert found.split() == ["23-14", "N/A", "23-14", "23-14", "23:14:08"]


@pytest.mark.parametrize(
    ("today", "day", "told"),
    [
        ("2026-07-09", "2026-07-09", "12:00:00"),
        *(
            ("2026-07-09", f"2026-07-{day}", told)
            for day, told in (
                ("10", "Tomorr 12:00"),
                ("11", "Sat 12:00"),
                ("15", "Wed 12:00"),
                ("16", "16 Jul 12:00"),
                ("08", "Ystday 12:00"),
                ("07", "7 Jul 12:00"),
                ("01", "1 Jul 12:00"),
            )
        ),
        ("2026-12-31", "2026-01-01", "1 Jan 12:00"),
        ("2026-12-31", "2027-01-01", "1 Jan 2027"),
        ("2026-01-01", "2025-12-31", "31 Dec 2025"),
    ],
)
def test_a_relative_time_is_told_by_how_near_it_is(today: str, day: str, told: str) -> None:
    """A day's name until it comes again, what is past by its date, another year by that alone."""
    now, when = (int(datetime.fromisoformat(f"{each}T12:00Z").timestamp()) for each in (today, day))
    assert show_moment(when, "relative", now) == told


def test_a_suspended_jobs_steps_are_suspended() -> None:
    """Their time stands still as that of their job, and accounting knows them as suspended."""
    text = entries(
        "0s alice sbatch --wrap 'srun sleep 100'",
        "5s root scontrol suspend 1",
        "10s alice squeue -h -s -o '%i %M'",
        "10s alice sacct -n -P -o jobid,state,elapsed",
        "15s root scontrol resume 1",
        "20s alice squeue -h -s -o '%i %M'",
        "20s alice sacct -n -P -o jobid,state,elapsed",
    )
    said = [each.stdout for each in run(text, model="modern").result.commands]
    assert (said[2], said[5]) == ("1.0 0:05\n1.batch 0:05\n", "1.0 0:10\n1.batch 0:10\n")
    assert said[3].split() == [f"1{step}|SUSPENDED|00:00:05" for step in ("", ".batch", ".0")]
    assert said[6].split() == [f"1{step}|RUNNING|00:00:10" for step in ("", ".batch", ".0")]


@pytest.mark.parametrize(
    ("option", "shown_jobs"),
    [
        ("matlab", [1]),
        ("ABAQUS", [2, 3]),
        ("abaqus,matlab", [1, 2, 3]),
        ("matlab:2", []),
        ("comsol", []),
    ],
)
def test_jobs_are_chosen_by_the_names_of_licenses(option: str, shown_jobs: list[int]) -> None:
    """However many of them a job has, beside which others, and whatever their case."""
    site = run("timeline: []\n", cluster=CLUSTER, model="modern").world.site
    query = read_query(["-L", option], {}, site.users["alice"], {})
    jobs = tuple(
        job_info(
            job_id=number,
            partition="debug",
            priority=1,
            licenses=names,
            state=JobState(base=JobBase.RUNNING),
        )
        for number, names in enumerate(("matlab:2", "abaqus", "fluent:1,abaqus:3", ""), start=1)
    )
    found = job_rows(ResponseJobInfo(now_s=0, jobs=jobs), query, site, {})
    assert [row.info.job_id for row in found] == shown_jobs
