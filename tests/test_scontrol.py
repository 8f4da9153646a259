"""scontrol beyond what was recorded: words shortened, switches, every key of an update."""

import re

import pytest

from simctl.world import CommandResult
from tests.cluster import Ran
from tests.entries import typed
from tests.scontrol_situations import Lines, type_in


def after(setup: Lines, *lines: str, user: str = "root") -> list[CommandResult]:
    """Return what lines print that somebody types, a second apart, after what was before."""
    typed = [(f"{place}s", user, line) for place, line in enumerate(lines, start=20)]
    ran = type_in([*setup, *typed])
    before = ran.result.commands[: len(setup)]
    assert [each.stderr for each in before] == [""] * len(setup)
    return list(ran.result.commands[len(setup) :])


def file(ran: Ran, name: str) -> str:
    """Return what is in a file of alice's."""
    return ran.world.site.disk.read(f"/home/alice/{name}") or ""


RUNS: Lines = [("1s", "alice", "sbatch -w n1 -n2 -t 10 --wrap 'srun sleep 60; sleep 1'")]
WAITS: Lines = [("1s", "alice", "sbatch -H -t 10 --wrap 'sleep 5'")]


@pytest.mark.parametrize(
    "line",
    [
        "scontrol show nodes n2 -o",
        "scontrol -o sho no n2",
        "scontrol show node=n2 --oneliner",
        "scontrol --oneliner -a SHOW NodeName=n2",
        "scontrol --one show nodename n[2-2]",
    ],
)
def test_words_may_be_shortened_and_options_stand_anywhere(line: str) -> None:
    """All of these are the same."""
    plain, other = after([], "scontrol -o show node n2", line)
    assert other.stdout == plain.stdout != ""


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("scontrol setdebug 5", "setdebug is known to Slurm but not simulated"),
        ("scontrol check able", "too few arguments for keyword:check"),
        ("scontrol show assoc", "show assoc is known to Slurm but not simulated"),
        ("scontrol -M other show node", "-M is an option of Slurm's that simctl does not"),
        ("scontrol -x show node", "scontrol: invalid option -- 'x'"),
        ("scontrol hold", "too few arguments for keyword:hold"),
        ("scontrol ping now", "too many arguments for keyword:ping"),
        ("scontrol top 1", "top is not simulated yet for operators"),
        ("scontrol hold name=x", "jobs by name, name=x, are not simulated yet"),
        ("scontrol update partitionname=debug nodes+=n1", "nodes+= is known to Slurm"),
        ("scontrol update res=odd users-=bob", "users-= is known to Slurm"),
        ("scontrol hold odd", "Invalid job id specified for job odd"),
        ("scontrol update jobid=1", "No changes specified"),
        ("scontrol update jobid=1 odd", "Invalid input: odd"),
        ("scontrol update jobid=1 odd=1", "Update of this parameter is not supported: odd=1"),
        ("scontrol update jobid=1 licenses=a", "licenses= is known to Slurm"),
        ("scontrol update jobid=1 timelimit=odd", "scontrol: error: Invalid TimeLimit value"),
        ("scontrol update jobid=1 priority=odd", "Invalid Priority value: odd"),
        ("scontrol update stepid=odd timelimit=1", "Invalid StepId format: stepid=odd"),
        ("scontrol update stepid=1.0", "No changes specified"),
        ("scontrol update nodename=n1", "No changes specified"),
        ("scontrol update nodename=n1 weight=3", "weight= is known to Slurm"),
        ("scontrol update nodename=n1 state=power_down", "state=POWER_DOWN is known to Slurm"),
        ("scontrol update partitionname=debug", "No changes specified"),
        ("scontrol update partitionname=debug state=odd", 'Acceptable State values are "UP"'),
        ("scontrol update partitionname=debug default=odd", "Acceptable values are YES and NO"),
        ("scontrol update partitionname=debug lln=yes", "lln= is known to Slurm"),
        ("scontrol update partitionname=odd state=up", "Invalid partition name specified"),
        ("scontrol update partitionname=debug nodes=n9", "Invalid node name specified"),
        ("scontrol update frontend=n1 state=up", "frontendname= is not simulated"),
        ("scontrol update odd=1", "No valid entity in update command"),
        ("scontrol create odd=1", "Invalid creation entity: odd=1"),
        ("scontrol create partition maxtime=1", "PartitionName must be given."),
        ("scontrol create partition=debug", "Error creating the partition"),
        ("scontrol create node=n9", "create node is known to Slurm"),
        ("scontrol delete odd", "Invalid deletion entity: odd"),
        ("scontrol delete partition=odd", "delete_partition partition=odd: Invalid partition"),
        ("scontrol delete res odd", "delete_reservation res: Requested reservation is invalid"),
        ("scontrol update res=odd duration=5", "Error updating the reservation: Requested res"),
        ("scontrol write odd", "invalid write argument:odd"),
        ("scontrol write batch_script", "too few arguments for keyword:write"),
        ("scontrol wait_job odd", "Invalid job_id odd"),
        ("scontrol notify 1", "too few arguments for keyword:notify"),
        ("scontrol show hostlist", "invalid encode argument"),
        ("scontrol show hostlist /none", "Can't open input file /none"),
        ("scontrol requeuehold state=odd 1", "only SpecialExit may be asked for"),
    ],
)
def test_what_cannot_be_done_is_told(line: str, text: str) -> None:
    """By its name where simctl lacks it, as Slurm says it where Slurm does; --quiet keeps still."""
    told, quiet = after(WAITS, line, line.replace("scontrol", "scontrol -Q", 1))
    assert text in told.stderr
    assert (told.stdout, told.exit) == ("", 1)
    assert (quiet.stdout, quiet.exit) == ("", 1)
    assert quiet.stderr in ("", told.stderr)


def shown(results: list[CommandResult]) -> str:
    """Return what the last of several commands shows; those before it had nothing to say."""
    assert [(each.stdout, each.stderr) for each in results[:-1]] == [("", "")] * (len(results) - 1)
    return results[-1].stdout


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("account=other", "Account=other"),
        ("acc=other", "Account=other"),
        ("comment='two words'", "Comment=two words \n"),
        ("cpuspertask=2", "CPUs/Task=2"),
        ("deadline=2026-11-21T09:00:00", "Deadline=2026-11-21T09:00:00"),
        ("excnodelist=n3", "ExcNodeList=n3"),
        ("gres=gpu:1", "TresPerNode=gres:gpu:1"),
        ("mincpusnode=3", "MinCPUsNode=3"),
        ("minmemorycpu=1G", "MinMemoryCPU=1G"),
        ("minmemorynode=300", "MinMemoryNode=300M"),
        ("name=other", "JobName=other"),
        ("nice=7", "Nice=7"),
        ("nodelist=n2", "ReqNodeList=n2"),
        ("numnodes=2-3", "NumNodes=2-3"),
        ("numnodes=2", "NumNodes=2-2"),
        ("numtasks=3", "NumTasks=3"),
        ("oversubscribe=no", "OverSubscribe=NO"),
        ("partition=long", "Partition=long"),
        ("nice=8", "Nice=8"),
        ("requeue=0", "Requeue=0"),
        ("starttime=2026-11-21T09:00:00", "StartTime=2026-11-21T09:00:00"),
        ("stdout=/tmp/o", "StdOut=/tmp/o"),
        ("timelimit=20", "TimeLimit=00:20:00"),
        ("timelimit=+5", "TimeLimit=00:15:00"),
        ("timel=-5", "TimeLimit=00:05:00"),
        ("timelimit=1-0", "TimeLimit=1-00:00:00"),
        ("trespernode=gpu:2", "TresPerNode=gres:gpu:2"),
        ("workdir=/tmp", "WorkDir=/tmp"),
    ],
)
def test_every_key_of_a_job_that_waits(change: str, text: str) -> None:
    """It is as it was asked for from then on."""
    released = ["scontrol release 1"] if change.startswith("starttime") else []
    lines = [f"scontrol update jobid=1 {change}", *released, "scontrol show job 1"]
    assert text in shown(after(WAITS, *lines))


def test_partitions_are_named_as_at_submission() -> None:
    """Each once, and at least one; the job can be held against them again later."""
    refused, taken, there, changed, _, job = after(
        WAITS,
        "scontrol update jobid=1 partition=,",
        "scontrol update jobid=1 partition=long,,long,",
        "scontrol update jobid=1 nodelist=n4",
        "scontrol update partitionname=long nodes=n3",
        "scontrol release 1",
        "scontrol show job 1",
    )
    assert "Invalid partition name" in refused.stderr
    assert taken.stderr == there.stderr == changed.stderr == ""
    assert "Partition=long " in job.stdout
    assert "Reason=PartitionConfig " in job.stdout


def test_a_reservation_is_asked_for_later() -> None:
    """One that there is."""
    make = "scontrol create reservation=r starttime=now+60 duration=10 users=alice nodes=n3"
    setup = [*WAITS, ("2s", "alice", "scontrol update jobid=1 comment=x")]
    made, no, yes, job = after(
        setup,
        make,
        "scontrol update jobid=1 reservationname=odd",
        "scontrol update jobid=1 reservationname=r",
        "scontrol show job 1",
    )
    assert made.stdout == "Reservation created: r\n"
    assert no.stderr == "Requested reservation is invalid for job 1\n"
    assert (yes.stderr, "Reservation=r\n" in job.stdout) == ("", True)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("numtasks=2", "Job is no longer pending"),
        ("partition=long", "disabled"),
        ("starttime=now+60", "disabled"),
        ("arraytaskthrottle=2", "not supported"),
    ],
)
def test_a_job_that_runs_keeps_what_it_has(change: str, text: str) -> None:
    """What only one that waits may be told."""
    (told,) = after(RUNS, f"scontrol update jobid=1 {change}", user="alice")
    assert text in told.stderr
    assert told.stderr.endswith(" for job 1\n")


def test_an_array_runs_more_tasks_at_a_time() -> None:
    """Once it is told that it may."""
    setup: Lines = [("1s", "alice", "sbatch -a 1-6%1 --wrap 'sleep 60'")]
    told, array = after(setup, "scontrol update jobid=1 arraytaskthrottle=3", "scontrol show job 1")
    assert told.stderr == ""
    assert "ArrayTaskThrottle=3 " in array.stdout


def test_a_step_gets_another_time_limit() -> None:
    """Its owner may shorten it; the step ends by it, and its job goes on."""
    ran = type_in(
        [
            ("1s", "alice", "sbatch -w n1 -n2 -t 10 --wrap 'srun sleep 300; sleep 60'"),
            ("5s", "alice", "scontrol update stepid=1.0 timelimit=1"),
            ("6s", "alice", "scontrol show step 1.0"),
            ("7s", "alice", "scontrol update stepid=1.0 timelimit=2"),
            ("8s", "bob", "scontrol update step 1.0 timelimit=1"),
            ("100s", "alice", "scontrol show step 1"),
        ]
    )
    _, less, step, more, other, later = ran.result.commands
    assert less.stderr == ""
    assert "TimeLimit=00:01:00" in step.stdout
    assert more.stderr == other.stderr == "slurm_update error: Access/permission denied\n"
    assert "StepId=1.batch" in later.stdout
    assert "StepId=1.0" not in later.stdout


def test_nodes_are_changed_together() -> None:
    """Drained, given another reason, and taken into service again."""
    text = shown(
        after(
            [],
            "scontrol update nodename=n[1-2] state=drain reason='two words'",
            "scontrol update nodename=n2 reason=other",
            "scontrol update nodename=n1 state=undrain",
            "scontrol update nodename=n[3-4] features=fast,ib",
            "scontrol update nodename=n4 availablefeatures=",
            "scontrol -o show node",
        )
    )
    states = [line.split("State=")[1].split()[0] for line in text.splitlines()]
    assert states == ["IDLE", "IDLE+DRAIN", "IDLE", "IDLE"]
    features = [line.split(" ActiveFeatures=")[1].split()[0] for line in text.splitlines()]
    assert features == ["(null)", "(null)", "fast,ib", "(null)"]
    assert "Reason=other [root@2026-11-20T23:14:28]" in text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("state=dr", "State=DRAIN"),
        ("maxtime=2:00:00", "MaxTime=02:00:00"),
        ("maxt=unlimited", "MaxTime=UNLIMITED"),
        ("defaulttime=5", "DefaultTime=00:05:00"),
        ("maxnodes=2", "MaxNodes=2"),
        ("minnodes=2", "MinNodes=2"),
        ("default=no", "Default=NO"),
        ("rootonly=y", "RootOnly=YES"),
        ("oversubscribe=exclusive", "OverSubscribe=EXCLUSIVE"),
        ("prioritytier=5", "PriorityTier=5"),
        ("gracetime=30", "GraceTime=30"),
        ("allowaccounts=a,b", "AllowAccounts=a,b"),
        ("denyaccounts=a", "DenyAccounts=a"),
        ("defmempercpu=10", "DefMemPerCPU=10"),
        ("defmempernode=20", "DefMemPerNode=20"),
        ("nodes=n[2-3]", "State=UP TotalCPUs=8 TotalNodes=2"),
    ],
)
def test_every_key_of_a_partition(change: str, text: str) -> None:
    """Of one that is there, and of one that is made so."""
    update = (f"scontrol update partitionname=debug {change}", "scontrol show part debug")
    assert text in shown(after([], *update))
    make = (f"scontrol create partition=new {change}", "scontrol show part new")
    assert text in shown(after([], *make))


def test_a_new_partition_takes_jobs_and_goes_once_they_have() -> None:
    """While one waits for it, it stays."""
    lines: Lines = [
        ("1s", "root", "scontrol create partition=new nodes=n4 maxtime=10"),
        ("2s", "alice", "sbatch -p new --wrap 'sleep 5'"),
        ("3s", "root", "scontrol delete partition=new"),
        ("20s", "alice", "scontrol delete partition=new"),
        ("20s", "root", "scontrol delete partition=new"),
        ("21s", "alice", "scontrol show part new"),
    ]
    ran = type_in(lines)
    made, sent, busy, denied, gone, shown_last = ran.result.commands
    assert made.stderr == sent.stderr == gone.stderr == ""
    assert busy.stderr == "delete_partition partition=new: Partition is in use\n"
    assert denied.stderr == "delete_partition partition=new: Invalid user id\n"
    assert shown_last.stdout == "Partition new not found\n"
    assert ran.job(1)[0] == "COMPLETED"


def test_a_reservation_is_changed() -> None:
    """Longer, for more users, with another node; what stands in the way is told."""
    make = "scontrol create res starttime=now+60 duration=10 users=bob nodes=n3"
    change = "scontrol update res=bob_1 duration=20 users=alice,bob nodes=n[3-4] flags=ignore_jobs"
    made, changed, found, denied = after(
        [], make, change, "scontrol -o show res bob_1", "scontrol update res=bob_1 nodes=n9"
    )
    assert made.stdout == "Reservation created: bob_1\n"
    assert (changed.stdout, changed.stderr) == ("Reservation updated.\n", "")
    for text in ("Duration=00:20:00", "Nodes=n[3-4]", "Users=alice,bob", "IGNORE_JOBS,SPEC_NODES"):
        assert text in found.stdout
    assert denied.stderr == "Error updating the reservation: Invalid node name specified\n"


@pytest.mark.parametrize(
    ("times", "to_s"),
    [
        ("duration=10", 1200),
        ("endtime=now+700", 720),
        ("endtime=now+700 duration=10", 720),
        ("duration=2 endtime=now+1700", 1720),
    ],
)
def test_a_reservation_that_is_created_with_two_ends_has_the_one_it_names(
    times: str, to_s: int
) -> None:
    """An update's duration counts more than its end; a creation's counts where there is no end."""
    ran = typed(
        f"20 root scontrol create res res=a starttime=now+580 {times} users=bob nodes=n1",
        "21 root scontrol -o show res a",
    )
    assert f"Duration={(to_s - 600) // 3600:02}:{(to_s - 600) % 3600 // 60:02}:" in (
        ran.result.commands[-1].stdout
    )


@pytest.mark.parametrize(
    ("change", "from_s", "to_s"),
    [
        ("starttime=now+300", 322, 1200),
        ("endtime=now+1800", 600, 1822),
        ("duration=5", 600, 900),
        ("starttime=now+1200 duration=5", 1222, 1522),
        ("starttime=now+300 endtime=now+360", 322, 382),
        ("starttime=now+300 endtime=now+360 duration=2", 322, 442),
        ("starttime=now+1178", 600, 1200),
        ("endtime=now+578", 600, 1200),
    ],
)
def test_when_a_changed_reservation_begins_and_ends(change: str, from_s: int, to_s: int) -> None:
    """A duration counts from the new start; what would end as it begins is refused."""
    ran = typed(
        "20 root scontrol create res res=a starttime=now+580 duration=10 users=bob nodes=n1",
        f"22 root scontrol update res=a {change}",
        "23 root scontrol -o show res a",
    )
    found = ran.result.commands[-1]
    times = re.findall("(?:Start|End)Time=2026-01-01T00:(..):(..)", found.stdout)
    assert [int(minutes) * 60 + int(rest) for minutes, rest in times] == [from_s, to_s]


def test_lines_from_standard_input() -> None:
    """Switches hold for the lines after them; what fails is told by the exit status."""
    said = "oneliner\\nshow part short\\n!!\\n\\nshow odd\\nquiet\\nshow odd\\nexit\\nping\\n"
    more = (
        f'files:\n  said.txt: "{said}"\n  job.sh: "#!/bin/sh\\nscontrol < said.txt\\nexit $?\\n"\n'
    )
    ran = type_in([("1s", "alice", "sbatch -o out.txt -e err.txt job.sh")], more=more)
    lines = file(ran, "out.txt").splitlines()
    assert [line[:23] for line in lines] == [
        "scontrol: oneliner",
        "scontrol: show part sho",
        "PartitionName=short All",
        "scontrol: !!",
        "PartitionName=short All",
        "scontrol: ",
        "scontrol: show odd",
        "scontrol: quiet",
        "scontrol: show odd",
        "scontrol: exit",
    ]
    assert file(ran, "err.txt") == "invalid entity:odd for keyword:show \n"
    assert ran.job(1)[:2] == ("FAILED", "1:0")


def test_processes_of_the_steps_on_a_host() -> None:
    """A script and what it started, and tasks by their numbers there and in the step."""
    script = "#!/bin/sh\\nsrun sleep 60 &\\nsleep 5\\nscontrol listpids 1.0\\nscontrol listpids\\n"
    more = f'files:\n  job.sh: "{script}scontrol listpids 7\\nscontrol show daemons\\n"\n'
    ran = type_in([("1s", "alice", "sbatch -w n1 -n2 -o out.txt -e err.txt job.sh")], more=more)
    rows = [line.split()[1:] for line in file(ran, "out.txt").splitlines()]
    head = ["JOBID", "STEPID", "LOCALID", "GLOBALID"]
    tasks = [["1", "0", "0", "0"], ["1", "0", "1", "1"]]
    batch = [["1", "batch", "0", "0"], ["1", "batch", "-", "-"]]
    assert rows[:3] == [head, *tasks]
    assert [row for row in rows[4:-4] if row != batch[1]] == [batch[0]]
    assert rows[-4:] == [*tasks, head, []]
    assert "Job 7 does not exist on this node.\n" in file(ran, "err.txt")


def test_a_line_for_a_job() -> None:
    """Its script's error output has it, or the salloc or srun that waits for it."""
    ran = type_in(
        [
            ("1s", "alice", "sbatch -o out.txt -w n1 --wrap 'sleep 9'"),
            ("1s", "alice", "salloc -w n2 sleep 9"),
            ("1s", "alice", "srun -w n3 sleep 9"),
            ("2s", "alice", "sbatch -H --wrap true"),
            *(("3s", "root", f"scontrol notify {job} look here") for job in (1, 2, 3, 4)),
            ("3s", "bob", "scontrol notify 1 look here"),
        ]
    )
    results = ran.result.commands
    assert file(ran, "out.txt") == "slurmstepd-n1: error: look here\n"
    assert "look here" in results[1].stderr
    assert "look here" in results[2].stderr
    assert [each.stderr for each in results[4:7]] == [""] * 3
    assert results[7].stderr == "job notify failure: Job is pending execution\n"
    assert results[8].stderr == "job notify failure: Invalid user id\n"


def test_waiting_for_the_nodes_of_a_job() -> None:
    """Until it has them; one that is over has none."""
    ran = type_in(
        [
            ("1s", "alice", "sbatch -b now+20 -w n1 --wrap 'sleep 20'"),
            ("2s", "alice", "scontrol wait_job 1"),
            ("90s", "alice", "scontrol wait_job 1"),
        ]
    )
    _, ready, over = ran.result.commands
    assert (ready.stderr, ready.exit) == ("scontrol: Nodes n1 are ready for job 1\n", 0)
    assert (over.stderr, over.exit) == ("scontrol: Problem running job 1\n", 1)


def test_the_script_of_a_job_is_written() -> None:
    """To a file named after it, or to one that is named."""
    ran = type_in(
        [
            *WAITS,
            ("2s", "alice", "scontrol write batch_script 1"),
            ("2s", "alice", "scontrol write batch_script 1 own.sh"),
            ("2s", "alice", "srun -w n1 sleep 9"),
            ("5s", "alice", "scontrol write batch_script 2 -"),
        ]
    )
    written = [each.stdout for each in ran.result.commands[1:3]]
    assert written == [
        "batch script for job 1 written to slurm-1.sh\n",
        "batch script for job 1 written to own.sh\n",
    ]
    assert file(ran, "slurm-1.sh") == file(ran, "own.sh") != ""
    assert "job script retrieval failed: Batch job has no script" in ran.result.commands[4].stderr


def test_jobs_that_are_completing() -> None:
    """With the nodes that have yet to report."""
    ran = type_in(
        [
            ("1s", "alice", "sbatch -N2 -w n1,n2 --wrap 'sleep 100'"),
            ("5s", "alice", "scancel 1"),
            ("6s", "alice", "scontrol completing"),
        ]
    )
    assert ran.result.commands[2].stdout in ("", "JobId=1 Nodes(COMPLETING)=n[1-2] \n")


def test_cpus_of_a_job_on_its_nodes() -> None:
    """The lowest that are free, told with --details."""
    setup: Lines = [
        ("1s", "alice", "sbatch -w n1 -n1 --wrap 'sleep 5'"),
        ("2s", "alice", "sbatch -w n1 -n1 --wrap 'sleep 60'"),
        ("12s", "alice", "sbatch -w n1 -n2 --wrap 'sleep 60'"),
        ("13s", "alice", "sbatch -N2 -w n2,n4 --gres=gpu:0 --wrap 'sleep 60'"),
    ]
    one, several = after(setup, "scontrol -d show job 3", "scontrol show job 4 -d")
    assert "     Nodes=n1 CPU_IDs=0,2 Mem=200 GRES=\n" in one.stdout
    assert "     Nodes=n[2,4] CPU_IDs=0 Mem=100 GRES=\n" in several.stdout


def test_generic_resources_of_a_node() -> None:
    """With --details, how many jobs have; of a type it lacks, none."""
    setup: Lines = [("1s", "alice", "sbatch -w n4 --gres=gpu:1 --wrap 'sleep 60'")]
    four, one = after(setup, "scontrol -d show node n4", "scontrol -d show node n1")
    assert "   Gres=gpu:2\n   GresDrain=N/A\n   GresUsed=gpu:1(IDX:0)\n" in four.stdout
    assert "   Gres=(null)\n   GresDrain=N/A\n   GresUsed=gpu:0\n" in one.stdout


def test_a_node_that_backfill_keeps_for_a_job_is_told() -> None:
    """Until the job has it, or nobody waits any more."""
    lines: Lines = [
        ("1s", "alice", "sbatch -w n1 -n4 -t 10 --wrap 'sleep 60'"),
        ("2s", "alice", "sbatch -w n1,n2 -N2 --exclusive -t 5 --wrap 'sleep 9'"),
        ("30s", "alice", "scontrol -o show node n2"),
        ("31s", "alice", "scontrol -o show job 2"),
        ("80s", "alice", "scontrol -o show node n2"),
    ]
    _, _, kept, job, free = type_in(lines).result.commands
    assert "State=IDLE+PLANNED " in kept.stdout
    assert "NodeList= SchedNodeList=n[1-2] " in job.stdout
    assert "State=IDLE " in free.stdout
    busy = [re.findall(r"LastBusyTime=\S+T(\S+)", each.stdout) for each in (kept, free)]
    assert busy == [["23:14:07"], ["23:15:17"]], "since the start; since job 2 has left it"


def test_the_command_of_a_job() -> None:
    """A script's path with its arguments, the program of srun alone, nothing of --wrap."""
    ran = type_in(
        [
            ("1s", "alice", "sbatch job.sh a b"),
            ("1s", "alice", "srun sleep 9"),
            ("1s", "alice", "sbatch --wrap 'sleep 9'"),
            *(("4s", "bob", f"scontrol show job {job}") for job in (1, 2, 3)),
        ],
        more='files:\n  job.sh: "#!/bin/sh\\nsleep 9\\n"\n',
    )
    found = [each.stdout for each in ran.result.commands[3:]]
    lines = [line for text in found for line in text.splitlines() if "Command=" in line]
    assert lines == ["   Command=/home/alice/job.sh a b", "   Command=sleep", "   Command=(null)"]
    assert "BatchFlag=0" in found[1]
    assert "Std" not in found[1]
    assert "AccrueTime=Unknown" in found[1]


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ("-p short -t 60", ("Reason=PartitionTimeLimit", "EligibleTime=2026-11-20T23:14:08")),
        ("-H", ("Reason=JobHeldUser", "EligibleTime=Unknown", "AccrueTime=Unknown")),
        ("-n 100", ("Reason=PartitionConfig", "NumNodes=25 NumCPUs=100")),
    ],
)
def test_a_job_that_is_cancelled_before_it_runs(options: str, texts: tuple[str, ...]) -> None:
    """It has started and ended when it was cancelled; the rest stays as it was."""
    lines: Lines = [
        ("1s", "alice", f"sbatch {options} --wrap true"),
        ("9s", "alice", "scancel 1"),
        ("10s", "alice", "scontrol -o show job 1"),
    ]
    told = type_in(lines).result.commands[2].stdout
    when = "2026-11-20T23:14:16"
    for text in (*texts, "JobState=CANCELLED", f"StartTime={when} EndTime={when}", "NodeList= Num"):
        assert text in told
    assert "BatchHost" not in told


def test_squeue_and_scontrol_agree_on_sharing() -> None:
    """OK where nothing was said, YES and NO as it was said or changed."""
    asked = after(
        WAITS,
        "squeue -h -o %h",
        "scontrol update jobid=1 oversubscribe=yes",
        "squeue -h -o %h",
        "scontrol show job 1",
        "scontrol update jobid=1 oversubscribe=no",
        "squeue -h -o %h",
        "scontrol show job 1",
    )
    assert [asked[place].stdout for place in (0, 2, 5)] == ["OK\n", "YES\n", "NO\n"]
    assert "OverSubscribe=YES" in asked[3].stdout
    assert "OverSubscribe=NO" in asked[6].stdout


def test_a_node_that_is_down_is_set_idle() -> None:
    """As by state=resume, where nothing else would bring it back."""
    lines: Lines = [
        ("1s", "root", "scontrol update nodename=n1 state=down reason=test"),
        ("2s", "root", "sinfo -h -n n1 -p debug -o %t"),
        ("3s", "root", "scontrol update nodename=n1 state=idle"),
        ("4s", "root", "sinfo -h -n n1 -p debug -o %t"),
    ]
    assert [each.stdout for each in type_in(lines).result.commands] == ["", "down\n", "", "idle\n"]
