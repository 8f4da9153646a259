"""What scontrol prints, held against recordings of Slurm's."""

import attrs
import pytest

from tests.cluster import run
from tests.printed import FOLDER, assert_as_printed
from tests.scontrol_situations import BLUR, MIX, Lines, recorded, type_in

FEATURES = {r"Features=[a-z]\S*": "Features=(null)"}
"""The cluster's nodes have no features."""

PLANNED = {r"StartTime=\S+ EndTime=\S+": "StartTime=A EndTime=B"}
"""Backfill here does not look a year ahead, as bf_window has it."""

SITE = (
    "AccountingStor.*|JobAcctGather.*|MaxDBDMsgs|MULTIPLE_SLURMD|NEXT_JOB_ID|PluginDir|Priority.*"
    "|ProctrackType|SchedulerParameters|Slurm.*(Debug|Host.*|LogFile|Port|Timeout|PidFile)"
    "|SlurmdParameters|SlurmdSpoolDir|StateSaveLocation"
)
"""Keys of slurm.conf that say where and with whom a cluster lives."""


def names(section: str, *leave_out: str) -> list[str]:
    """Return the recordings of a section, but those that need more than one line typed."""
    found = sorted(path.stem for path in (FOLDER / section).glob("*.txt"))
    return [name for name in found if name not in leave_out]


IN_SCRIPTS = ("show_hostlist_file", "show_hostnames_env", "interactive", "show_daemons")


def test_an_idle_cluster() -> None:
    """Lists of hosts, nodes and partitions, and everything that is refused."""
    todo = names("scontrol", "show_config", *IN_SCRIPTS)
    ran = type_in(recorded("scontrol", todo, "8s"))
    for name, result in zip(todo, ran.result.commands, strict=True):
        assert_as_printed(f"scontrol/{name}", result, BLUR | FEATURES)


def test_the_configuration() -> None:
    """Every key stands in its place, with the value it has where it is not the site's own."""
    ran = type_in(recorded("scontrol", ["show_config"], "8s"))
    blur = BLUR | {rf"(?m)^({SITE})( *)= .*$": r"\1\2= SITE"}
    assert_as_printed("scontrol/show_config", ran.result.commands[0], blur)


def test_the_configuration_as_it_is_set() -> None:
    """Units as Slurm has them; memory by node where it is not by cpu."""
    conf = (
        "slurm_conf: {SlurmUser: alice, SelectType: select/cons_tres, DefMemPerNode: 50, "
        "OverTimeLimit: UNLIMITED, WaitTime: 3, SchedulerParameters: 'defer,bf_interval=9'}\n"
    )
    told = run(conf + "timeline: [{at: 1s, run: scontrol show config}]\n").result.commands[0].stdout
    for line in (
        "DefMemPerNode           = 50",
        "OverTimeLimit           = UNLIMITED",
        "SchedulerParameters     = defer,bf_interval=9",
        "SelectTypeParameters    = NONE",
        "SlurmUser               = alice(1001)",
        "WaitTime                = 3 sec",
    ):
        assert f"{line}\n" in told


def test_jobs_in_some_twenty_states() -> None:
    """Running, waiting for all there is to wait for, ended; tasks of arrays; steps; scripts."""
    todo = names("scontrol_jobs")
    ran = type_in([*MIX, *recorded("scontrol_jobs", todo, "22s")], first_id=118)
    results = ran.result.commands
    assert [each.stderr for each in results[: len(MIX)]] == [""] * len(MIX)
    for name, result in zip(todo, results[len(MIX) :], strict=True):
        blur = BLUR | (PLANNED if name == "job_needres" else {})
        assert_as_printed(f"scontrol_jobs/{name}", result, blur)


RUNNER: Lines = [
    ("10s", "bob", "sbatch -J bobrun -w n2 -n2 -t 20 --wrap 'srun sleep 300'"),
    ("10s", "alice", "sbatch -J runner -w n1 -n2 --mem=500 -t 30 --wrap 'srun sleep 300'"),
    ("10s", "alice", "sbatch -J gpujob -p long -w n4 --gres=gpu:1 --wrap 'sleep 300'"),
    ("11s", "alice", "sbatch -J held --jobid=124 -H --wrap 'sleep 300'"),
    ("11s", "alice", "sbatch -J begin --jobid=125 -b now+1hour --wrap 'sleep 300'"),
    ("11s", "alice", "sbatch -J first --jobid=130 -H --wrap true"),
    ("11s", "alice", "sbatch -J lic --jobid=138 --wrap 'sleep 300'"),
    ("11s", "root", "scontrol hold 138"),
    ("11s", "alice", "scontrol update jobid=119 comment='a comment'"),
]
CHANGES = (
    ("13s", "name nice other_user part_bad release uhold release_lic_denied run_nodes"),
    ("14s", "time_down time_up time_up_root hold_running suspend"),
    ("24s", "suspend_root job_susp"),
    ("26s", "resume_root requeue_other_denied"),
    ("27s", "requeue job_requeued requeuehold"),
    ("30s", "part_down sub_partdown part_drain sub_partdrain srun_partdrain"),
    ("31s", "part_inact sub_partinact part_up"),
    ("33s", "res_create res_show res_sub_denied res_del"),
)


def test_what_is_changed() -> None:
    """Jobs, partitions and reservations, by whom may and by whom may not."""
    todo = [(at, name) for at, line in CHANGES for name in line.split()]
    lines = [line for at, name in todo for line in recorded("scontrol_update", [name], at)]
    ran = type_in([*RUNNER, *lines], first_id=118)
    results = ran.result.commands
    assert [each.stderr for each in results[: len(RUNNER)]] == [""] * len(RUNNER)
    for (_, name), result in zip(todo, results[len(RUNNER) :], strict=True):
        blur = BLUR | {r"batch job \d+": "batch job N"}
        assert_as_printed(f"scontrol_update/{name}", result, blur)


def test_a_drained_node_is_resumed() -> None:
    """Without a word."""
    drain = ("5s", "root", "scontrol update nodename=n3 state=drain reason=x")
    ran = type_in([drain, *recorded("scontrol_update", ["resume_node"], "8s")])
    assert_as_printed("scontrol_update/resume_node", ran.result.commands[1])


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("interactive", "scontrol < said.txt"),
        ("show_hostlist_file", "scontrol show hostlist /home/alice/hosts.txt"),
        ("show_hostnames_env", "SLURM_JOB_NODELIST=n[3-4] scontrol show hostnames"),
    ],
)
def test_what_is_typed_in_a_script(name: str, line: str) -> None:
    """Lines from standard input, lists in files and in the environment."""
    more = (
        "files:\n"
        '  said.txt: "ping\\nshow hostnames n[1-2]\\nquit\\n"\n'
        '  hosts.txt: "n1\\nn2\\n"\n'
        f'  job.sh: "#!/bin/sh\\n{line}\\n"\n'
    )
    ran = type_in([("5s", "alice", "sbatch -o out.txt -e err.txt job.sh")], more=more)
    result = ran.result.commands[0]
    disk = ran.world.site.disk
    printed = attrs.evolve(
        result,
        stdout=disk.read("/home/alice/out.txt") or "",
        stderr=disk.read("/home/alice/err.txt") or "",
    )
    assert_as_printed(f"scontrol/{name}", printed, BLUR)
