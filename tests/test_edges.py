"""Limits at their edges: below, at and above, in one table.

A new limit gets a row of `LIMITS`. What takes more than a number is tested by itself, below or
where the rest of its subject is.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from simctl.nodes.spool import Spool
from simctl.orderings.observed import arg
from simctl.wire.conf.slurm_conf import SlurmConf
from tests.cluster import TWO_NODES, Ran, run
from tests.entries import entries, exits


def cluster(nodes: str, *, memory_mb: int = 1000, **of_partition: object) -> str:
    """Return a cluster of nodes with 4 cpus and one partition, which has these keys."""
    keys = "".join(f", {key}: {value}" for key, value in of_partition.items())
    return (
        f'nodes: [{{name: "{nodes}", cpus: 4, memory_mb: {memory_mb}}}]\n'
        "users: {alice: 1001, bob: 1002}\n"
        f'partitions: [{{name: debug, nodes: "{nodes}", default: true{keys}}}]\n'
    )


def conf(**keys: object) -> str:
    """Return a slurm.conf."""
    return f"slurm_conf: {{{', '.join(f'{key}: {value}' for key, value in keys.items())}}}\n"


def seconds(ran: Ran, name: str, **fields: object) -> list[int]:
    """Return when events were."""
    return [each.time_us // 1_000_000 for each in ran.all(name, **fields)]


def waited_for(ran: Ran) -> str:
    """Return why the job of a run waited until it was cancelled; empty if it ran."""
    state, _, reason = ran.job()
    return "" if state == "COMPLETED" else reason


def ends(ran: Ran) -> list[int]:
    """Return when the jobs ended."""
    return [row.end_us // 1_000_000 for row in ran.result.rows]


@attrs.frozen
class Limit:
    """A limit: a scenario with a number, what is looked at, and what that is below, at and above.

    A number is that of the limit, or of what comes near it.
    """

    text: Callable[[int], str]
    told: Callable[[Ran], Any]
    edges: Mapping[int, Any]
    cluster: str = TWO_NODES
    model: str = "guide"


MEMORY = {"SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CPU_Memory"}
HALF = "0 bob sbatch -n1 --mem=500 --wrap 'sleep 50'"
RESERVED_2_TO_4_MINUTES = (
    "0 root scontrol create reservation reservationname=a starttime=now+2minutes duration=2 "
    "users=bob nodes=n1"
)


def _woken(waiting: int) -> str:
    more = " ".join(["srun -n4 --exclusive sleep 1 &"] * waiting)
    return entries(f"0 alice sbatch -N1 -n4 --wrap 'srun -n4 --exclusive sleep 20 & {more} wait'")


def _first_woken(ran: Ran) -> int:
    sent = [each.time_us for each in ran.all("SRUN_STEP_SIGNAL", phase="send")]
    return sent.count(sent[0])


def _script_gone(at_s: int, **keys: object) -> str:
    return (
        entries(
            f"{at_s} alice sbatch -w n1 --no-requeue --wrap 'sleep 1000'",
            head=conf(SlurmdTimeout=30, **keys),
        )
        + f"  - {{at: {at_s}.5s, fault: {{crash: stepd 1.batch@n1}}}}\n"
    )


def _launched_without_slurmd(for_ms: int, **keys: object) -> str:
    return (
        conf(**keys)
        + entries("2 alice srun -N2 true")
        + (
            "  - {at: 1s, fault: {crash: slurmd@n2}}\n"
            f"  - {{at: {2000 + for_ms}ms, fault: {{start: slurmd@n2}}}}\n"
        )
    )


LIMITS: dict[str, Limit] = {
    "MaxJobCount: jobs that slurmctld knows at a time": Limit(
        lambda n: entries(
            *[f"{at} alice sbatch --wrap 'sleep 5'" for at in range(3)], head=conf(MaxJobCount=n)
        ),
        lambda ran: [each.errno for each in ran.result.commands],
        {1: ["", "EAGAIN", "EAGAIN"], 2: ["", "", "EAGAIN"], 3: [""] * 3, 4: [""] * 3},
    ),
    "MaxJobCount: an array is one as long as its tasks wait": Limit(
        lambda n: entries(
            "0 alice sbatch -H --array=0-5 --wrap true",
            "0 alice sbatch -H --wrap true",
            "9 root scancel -u alice",
            head=conf(MaxJobCount=n),
        ),
        exits,
        {1: [0, 1, 0], 2: [0, 0, 0], 3: [0, 0, 0]},
    ),
    "minutes until there is room below MaxJobCount: sbatch asks 15 times, ever later": Limit(
        lambda n: (
            conf(MaxJobCount=1, MinJobAge=10)
            + entries(f"0 alice sbatch --wrap 'sleep {n * 60 - 15}'", "1 alice sbatch --wrap true")
        ),
        lambda ran: (exits(ran)[1], len(ran.all("REQUEST_SUBMIT_BATCH_JOB", phase="receive")) - 1),
        {1: (0, 12), 2: (0, 16), 3: (1, 16)},
    ),
    "MaxJobId: the last id, before FirstJobId comes again": Limit(
        lambda n: entries(
            *["0 alice sbatch --wrap true"] * 3,
            "1000 alice sbatch --wrap true",
            head=conf(FirstJobId=5, MaxJobId=n),
        ),
        lambda ran: [each.stdout.split()[-1:] for each in ran.result.commands],
        {
            6: [["5"], ["6"], [], ["5"]],
            7: [["5"], ["6"], ["7"], ["5"]],
            8: [["5"], ["6"], ["7"], ["8"]],
        },
    ),
    "MaxArraySize: indices stay below 1001": Limit(
        lambda n: entries(f"0 alice sbatch -H --array={n} --wrap true", "9 root scancel -u alice"),
        lambda ran: ran.result.commands[0].exit,
        {999: 0, 1000: 0, 1001: 1},
    ),
    "MaxTasksPerNode: tasks of a step on two nodes": Limit(
        lambda n: entries(f"0 alice srun -N2 -O -n{n} true", head=conf(MaxTasksPerNode=3)),
        exits,
        {5: [0], 6: [0], 7: [1]},
    ),
    "MaxTasksPerNode: where each of four tasks has its node": Limit(
        lambda n: entries(
            "0 alice srun -O -N2 -n4 -m arbitrary -w n1,n1,n2,n2 true", head=conf(MaxTasksPerNode=n)
        ),
        exits,
        {1: [1], 2: [0], 3: [0]},
    ),
    "MinNodes and MaxNodes of a partition: who asks for fewer or more waits": Limit(
        lambda n: entries(f"0 alice sbatch -N{n} --wrap 'sleep 3'", "9 root scancel 1"),
        waited_for,
        {1: "PartitionNodeLimit", 2: "", 3: "", 4: "PartitionNodeLimit"},
        cluster("n[1-4]", min_nodes=2, max_nodes=3),
    ),
    "MinNodes of a partition: who takes one to three gets as many at least": Limit(
        lambda n: entries(
            f"0 root scontrol update partitionname=debug minnodes={n}",
            "1 alice sbatch -N1-3 --wrap 'sleep 3'",
        ),
        lambda ran: [each.num_nodes for each in ran.result.rows],
        {1: [1], 2: [2], 3: [3]},
        cluster("n[1-4]"),
    ),
    "all nodes of a partition": Limit(
        lambda n: entries(f"0 alice sbatch -N{n} --wrap 'sleep 3'", "9 root scancel 1"),
        waited_for,
        {3: "", 4: "", 5: "PartitionNodeLimit"},
        cluster("n[1-4]"),
    ),
    "MaxTime of a partition": Limit(
        lambda n: entries(f"0 alice sbatch -t{n} --wrap 'sleep 3'", "9 root scancel 1"),
        waited_for,
        {9: "", 10: "", 11: "PartitionTimeLimit"},
        cluster("n1", max_time="10m"),
    ),
    "MaxTime, lowered: minutes that a job gets which asks for none, of DefaultTime's three": Limit(
        lambda n: entries(
            f"0 root scontrol update partitionname=debug maxtime={n}",
            "1 alice sbatch --wrap 'sleep 500'",
            "400 root scancel 1",
        ),
        ends,
        {2: [150], 3: [210], 4: [210]},
        cluster("n1", max_time="10m", default_time="3m"),
    ),
    "bf_min_age_reserve: a head that could start for fewer seconds keeps no place": Limit(
        lambda n: (
            conf(SchedulerParameters=f"bf_min_age_reserve={n}", SelectType="select/cons_tres")
            + entries(
                "0 alice sbatch -n3 -t20 --wrap 'sleep 600'",
                "1 bob sbatch -n4 -t10 --hold --wrap true",
                "31 root scontrol release 2",
                "32 alice sbatch -n1 -t60 --wrap true",
            )
        ),
        lambda ran: [row.start_us // 1_000_000 for row in ran.result.rows],
        {28: [0, 600, 600], 29: [0, 600, 60], 30: [0, 600, 60]},
        cluster("n1"),
    ),
    "OverTimeLimit: minutes beyond the limit, until the next check": Limit(
        lambda n: entries("0 alice sbatch -t1 --wrap 'sleep 500'", head=conf(OverTimeLimit=n)),
        ends,
        {0: [90], 1: [150], 2: [210]},
    ),
    "a minute's limit and OverTimeLimit's minute: who ends until then is COMPLETED": Limit(
        lambda n: entries(f"0 alice sbatch -t1 --wrap 'sleep {n}'", head=conf(OverTimeLimit=1)),
        lambda ran: ran.job()[0],
        {59: "COMPLETED", 61: "COMPLETED", 119: "COMPLETED", 120: "TIMEOUT", 121: "TIMEOUT"},
    ),
    "a limit of a minute, of a job that starts at 29 to 31 s, is looked at every 30 s": Limit(
        lambda n: entries(f"0 alice sbatch -t1 --begin=now+{n} --wrap 'sleep 500'"),
        ends,
        {29: [90], 30: [90], 31: [120]},
    ),
    "a deadline that comes with the check of the limit, at 150 s, ends its job first": Limit(
        lambda n: entries(f"0 alice sbatch -t2 --deadline=now+{n} --wrap 'sleep 600'"),
        lambda ran: [(row.state, at) for row, at in zip(ran.result.rows, ends(ran), strict=True)],
        {
            119: [],
            120: [("DEADLINE", 120)],
            121: [("DEADLINE", 150)],
            149: [("DEADLINE", 150)],
            150: [("DEADLINE", 150)],
            151: [("TIMEOUT", 150)],
        },
    ),
    "a reservation's length: a job in it lasts no longer": Limit(
        lambda n: entries(
            RESERVED_2_TO_4_MINUTES,
            f"1 bob sbatch --reservation=a -t{n} --wrap 'sleep 3'",
            "300 root scancel 1",
        ),
        lambda ran: bool(ran.all("job_state", args_to="RUNNING")),
        {1: True, 2: True, 3: False},
    ),
    "DefMemPerNode: what a job takes that asks for none": Limit(
        lambda n: entries(
            HALF, "1 alice sbatch -n1 --wrap true", head=conf(**MEMORY, DefMemPerNode=n)
        ),
        ends,
        {499: [50, 3], 500: [50, 3], 501: [50, 50]},
        cluster("n1"),
    ),
    "DefMemPerCPU: the same, for each of two cpus": Limit(
        lambda n: entries(
            HALF, "1 alice sbatch -n2 --wrap true", head=conf(**MEMORY, DefMemPerCPU=n)
        ),
        ends,
        {249: [50, 3], 250: [50, 3], 251: [50, 50]},
        cluster("n1"),
    ),
    "update MinMemoryCPU: what each of two cpus takes then, whatever --mem had said": Limit(
        lambda n: entries(
            HALF,
            "1 alice sbatch -H -n2 --mem=900 --wrap true",
            f"2 root scontrol update jobid=2 minmemorycpu={n}",
            "2 root scontrol release 2",
            head=conf(**MEMORY),
        ),
        ends,
        {249: [50, 3], 250: [50, 3], 251: [50, 50]},
        cluster("n1"),
    ),
    "memory of a node: a suspended job takes the last of it again, and no more": Limit(
        lambda n: entries(
            "0 alice sbatch -n1 --mem=500 --wrap 'sleep 20'",
            "5 root scontrol suspend 1",
            f"6 bob sbatch -n1 --mem={n} --wrap 'sleep 100'",
            "10 root scontrol resume 1",
            "150 root scontrol resume 1",
            head=conf(**MEMORY),
        ),
        lambda ran: exits(ran)[3:],
        {499: [0, 1], 500: [0, 1], 501: [1, 0]},
        cluster("n1"),
    ),
    "MessageTimeout: an answer that takes nine seconds": Limit(
        lambda n: (
            entries("5 alice sinfo", head=conf(MessageTimeout=n))
            + "  - {at: 1s, fault: {delay: RESPONSE_PARTITION_INFO, by: 8999ms}}\n"
        ),
        exits,
        {8: [1], 9: [0], 10: [0]},
    ),
    "MessageTimeout: tries to connect, a second apart, to one who comes after nine": Limit(
        lambda n: (
            entries("5 alice sinfo", head=conf(MessageTimeout=n))
            + "  - {at: 4s, fault: {crash: slurmctld}}\n"
            "  - {at: 13.5s, fault: {start: slurmctld}}\n"
        ),
        exits,
        {8: [1], 9: [1], 10: [0], 11: [0]},
    ),
    "milliseconds that a message is late, whose authentication is good for 300 s": Limit(
        lambda n: (
            entries("5 alice sbatch --wrap true")
            + f"  - {{at: 1s, fault: {{delay: REQUEST_SUBMIT_BATCH_JOB, by: {n}ms}}}}\n"
        ),
        lambda ran: len(ran.result.rows),
        {299999: 1, 300000: 0, 300001: 0},
    ),
    "seconds that a message waits to be overtaken, one if nothing is said": Limit(
        lambda n: (
            entries("5 alice sbatch --wrap 'sleep 5'")
            + "  - {at: 6s, fault: {reorder: REQUEST_COMPLETE_BATCH_SCRIPT"
            + (f", by: {n}s}}}}\n" if n else "}}\n")
        ),
        lambda ran: seconds(ran, "REQUEST_COMPLETE_BATCH_SCRIPT", phase="receive"),
        {0: [11], 1: [11], 2: [12]},
    ),
    "MinJobAge: when a job is forgotten that ended after six seconds, old jobs being looked for "
    "every minute": Limit(
        lambda n: entries("0 alice sbatch --wrap 'sleep 5.5'", head=conf(MinJobAge=n)),
        lambda ran: seconds(ran, "slurm_ckpt_free_job", daemon="slurmctld"),
        {113: [120], 114: [120], 115: [180]},
    ),
    "SlurmdTimeout: a node that is silent is DOWN, at the next ping": Limit(
        lambda n: (
            entries("900 alice sinfo", head=conf(SlurmdTimeout=n))
            + "  - {at: 10s, fault: {crash: n1}}\n"
        ),
        lambda ran: seconds(ran, "node_state", args_node="n1", args_to="DOWN|NO_RESPOND"),
        {11: [25], 12: [23], 13: [39], 240: [320], 300: [400], 360: [480]},
    ),
    "SlurmdTimeout, twenty thirds of which a node is asked to register": Limit(
        lambda n: entries("300 alice sinfo", head=conf(SlurmdTimeout=n)),
        lambda ran: seconds(
            ran, "REQUEST_NODE_REGISTRATION_STATUS", phase="send", peer="slurmd@n1"
        ),
        {29: [193], 30: [200], 31: [206]},
    ),
    "MessageTimeout, up to ten seconds of which a node without slurmd is looked for": Limit(
        lambda n: (
            entries("150 alice sinfo", head=conf(MessageTimeout=n))
            + "  - {at: 10s, fault: {crash: slurmd@n1}}\n"
        ),
        lambda ran: seconds(ran, "node_state", args_to="IDLE|NO_RESPOND"),
        {9: [109], 10: [110], 11: [110]},
    ),
    "WaitTime: a task that goes on for five seconds when the first has ended": Limit(
        lambda n: (
            "programs: {./uneven: [{runs: 5s, tasks: [1]}, {runs: 0s}]}\n"
            + entries("0 alice srun -n2 ./uneven", head=conf(WaitTime=n))
        ),
        exits,
        {0: [0], 4: [137], 6: [0]},
    ),
    "KillWait: from SIGTERM to SIGKILL, five seconds at least": Limit(
        lambda n: (
            conf(KillWait=n)
            + "programs: {./stubborn: {runs: 3m, on_signal: {TERM: ignore}}}\n"
            + entries("0 alice srun -w n1 ./stubborn", "10 alice scancel 1")
        ),
        lambda ran: seconds(ran, "MESSAGE_EPILOG_COMPLETE", phase="send"),
        {1: [15], 4: [15], 5: [15], 6: [16]},
    ),
    "KillWait of a step whose time limit is over, five seconds at least": Limit(
        lambda n: (
            conf(KillWait=n)
            + "programs: {./stubborn: {runs: 30m, on_signal: {TERM: ignore}}}\n"
            + entries("0 alice sbatch -N1 --wrap 'srun -t1 ./stubborn'")
        ),
        lambda ran: seconds(ran, "signal", role="task", step="1.0", args_signal=9),
        {4: [95], 5: [95], 6: [96]},
    ),
    "KillWait counts from the first end of a step: its limit, at 90 s, or a task's failure": Limit(
        lambda n: (
            conf(KillWait=30)
            + "programs: {./stubborn: [{runs: 30m, tasks: [0], on_signal: {TERM: ignore}}, "
            + f"{{runs: {n}s, exit: 1, on_signal: {{TERM: ignore}}}}]}}\n"
            + entries("0 alice sbatch -N1 -n2 --wrap 'srun -t1 -K ./stubborn'")
        ),
        lambda ran: seconds(ran, "signal", role="task", step="1.0", args_signal=9)[:1],
        {80: [110], 89: [119], 91: [120], 110: [120]},
    ),
    "seconds of KillWait, of which model modern's slurmd counts a third twice": Limit(
        lambda n: (
            conf(KillWait=n)
            + "programs: {./stubborn: {runs: 3m, on_signal: {TERM: ignore}}}\n"
            + entries("0 alice srun -w n1 ./stubborn", "10 alice scancel 1")
        ),
        lambda ran: [
            (ran.one("signal", role="task", args_signal=9).time_us - each.time_us) // 1000
            for each in ran.all("signal", role="task", args_signal=15)
        ],
        {4: [4670], 5: [4670], 6: [5670]},
        model="modern",
    ),
    "GraceTime of a partition: from SIGTERM to the end of a preempted job": Limit(
        lambda n: (
            conf(PreemptType="preempt/partition_prio", PreemptMode="CANCEL")
            + "programs: {./stubborn: {runs: 9m, on_signal: {TERM: ignore}}}\n"
            + entries(
                f"0 root scontrol update partitionname=debug gracetime={n}",
                "0 alice srun -N1 ./stubborn",
                "10 bob sbatch -p urgent -N1 --wrap true",
            )
        ),
        lambda ran: ends(ran)[0],
        {19: 29, 20: 30, 21: 31},
        cluster("n1").rstrip("]\n") + ", {name: urgent, nodes: n1, priority_tier: 10}]\n",
    ),
    "TreeWidth: to whom the four nodes of a step report": Limit(
        lambda n: entries("0 alice srun -N4 true", head=conf(TreeWidth=n)),
        lambda ran: {
            str(each.node): str(each.peer)
            for each in ran.all("REQUEST_STEP_COMPLETE", phase="send", daemon="slurmstepd")
        },
        {
            width: {"n1": "slurmctld"} | {f"n{at}": f"slurmd@n{up}" for at, up in parents}
            for width, parents in {
                1: ((2, 1), (3, 2), (4, 3)),
                2: ((2, 1), (3, 2), (4, 1)),
                3: ((2, 1), (3, 1), (4, 1)),
                4: ((2, 1), (3, 1), (4, 1)),
            }.items()
        },
        cluster("n[1-4]"),
    ),
    "how long a step daemon waits for those below it: a minute, and 3 s for each level": Limit(
        lambda n: (
            conf(TreeWidth=1)
            + "programs: {./uneven: [{runs: 2s, tasks: [0]}, {runs: 200s}]}\n"
            + entries(f"0 alice srun -N{n} ./uneven")
        ),
        lambda ran: seconds(ran, "REQUEST_STEP_COMPLETE", phase="send", role="manager", node="n1"),
        {2: [65], 3: [68], 4: [71]},
        cluster("n[1-4]"),
    ),
    "milliseconds for which ends of tasks are gathered before srun is told": Limit(
        lambda n: (
            "programs: {./three: [{runs: 5s, tasks: [0]}, {runs: 9s, tasks: [2]}, "
            f"{{runs: {5000 + n}ms}}]}}\n" + entries("0 alice srun -N1 -n3 ./three")
        ),
        lambda ran: [arg(each, "task_ids") for each in ran.all("MESSAGE_TASK_EXIT", phase="send")],
        {99: [(0, 1), (2,)], 100: [(0, 1), (2,)], 101: [(0,), (1,), (2,)]},
        model="modern",
    ),
    "tries of a slurmd to register, ten and then ten again, a second apart": Limit(
        lambda n: (
            f"timeline:\n  - {{at: 0s, fault: {{cut: [slurmctld, n1], for: {n}ms}}}}\n"
            "  - {at: 20s, as: alice, run: sinfo}\n"
        ),
        lambda ran: seconds(
            ran, "MESSAGE_NODE_REGISTRATION_STATUS", phase="receive", args_node_name="n1"
        ),
        {8500: [9], 9500: [10], 10500: [11]},
    ),
    "tries of an srun to reach a slurmd, for ten seconds however long MessageTimeout is": Limit(
        lambda n: _launched_without_slurmd(n, MessageTimeout=30),
        exits,
        {9999: [0], 10000: [0], 10001: [233]},
    ),
    "tries of an srun to reach a slurmd, for MessageTimeout if that is shorter": Limit(
        lambda n: _launched_without_slurmd(n, MessageTimeout=6),
        exits,
        {5999: [0], 6000: [0], 6001: [233]},
    ),
    "seconds of KillWait, and two, seven at least, an srun waits for a step that was ended": (
        Limit(
            lambda n: (
                conf(KillWait=n)
                + entries("0 alice srun -N1 sleep 100", "20 root scancel 1")
                + "  - {at: 10s, fault: {cut: [login, n1]}}\n"
            ),
            lambda ran: seconds(ran, "srun", kind="command", phase="exit"),
            {4: [27], 5: [27], 6: [28]},
        )
    ),
    "tries of sbatch --wait to ask for the end of its job: ten, and ten seconds later again": Limit(
        lambda n: (
            entries("0 alice sbatch --wait --wrap true")
            + "  - {when: RESPONSE_SUBMIT_BATCH_JOB phase=receive, "
            f"fault: {{cut: [login, slurmctld], for: {n}ms}}}}\n"
        ),
        lambda ran: seconds(ran, "REQUEST_JOB_INFO", phase="receive"),
        {8500: [9], 9500: [19], 18500: [19], 19500: [20]},
    ),
    "seconds of a PrologSlurmctld; scontrol wait_job looks every third second": Limit(
        lambda n: (
            f"programs: {{/etc/p: {{runs: {n}s}}}}\n"
            + conf(PrologSlurmctld="/etc/p")
            + entries("0 alice sbatch --wrap 'sleep 30'", "1 alice scontrol wait_job 1")
        ),
        lambda ran: seconds(ran, "scontrol", kind="command", phase="exit"),
        {3: [4], 4: [4], 5: [7]},
    ),
    "microseconds of latency, eight of which an srun takes to hang up, 3 ms at least": Limit(
        lambda n: f"latency: {n}us\n" + entries("0 alice sbatch --wrap 'srun true; srun true'"),
        lambda ran: (
            ran.all("exit", role="srun")[0].time_us
            - ran.all("MESSAGE_TASK_EXIT", phase="receive")[0].time_us
        ),
        {374: 3000, 375: 3000, 376: 3008},
        model="modern",
    ),
    "seconds that a job runs: all is saved every 300 s, and whatever changes 5 s later": Limit(
        lambda n: (
            "options: {state_saves: always}\n" + entries(f"0 alice sbatch --wrap 'sleep {n}'")
        ),
        lambda ran: seconds(ran, "slurm_ckpt_pack_job", daemon="slurmctld")[:4],
        {599: [5, 300, 599, 600], 604: [5, 300, 600, 605]},
        model="modern",
    ),
    "when a script starts that is gone as its node registers at 200 s: 20 s are too young": Limit(
        lambda n: _script_gone(n, MessageTimeout=30),
        lambda ran: seconds(ran, "batch_missing"),
        {179: [200], 180: [200], 181: [400]},
    ),
    "when a script starts that is gone then: 10 s and MessageTimeout, if that is shorter": Limit(
        lambda n: _script_gone(n, MessageTimeout=5),
        lambda ran: seconds(ran, "batch_missing"),
        {184: [200], 185: [200], 186: [400]},
    ),
    "sruns that are woken when a step ends": Limit(_woken, _first_woken, {7: 7, 8: 8, 9: 8}),
}


@pytest.mark.parametrize(
    ("limit", "number"),
    [
        pytest.param(limit, number, id=f"{name.partition(':')[0]} {number}")
        for name, limit in LIMITS.items()
        for number in limit.edges
    ],
)
def test_a_limit_holds_below_at_and_above_its_number(limit: Limit, number: int) -> None:
    """One run for each number."""
    ran = run(limit.text(number), cluster=limit.cluster, model=limit.model)
    assert limit.told(ran) == limit.edges[number]


def test_every_number_in_slurm_conf_has_a_row() -> None:
    """But for one that names a choice, and one that tests of the backup controller are about."""
    usual = SlurmConf()
    keys = SlurmConf.keys()
    numbers = {key for key in keys if type(usual.value(key)) is int}
    named = {word for name in LIMITS for word in name.replace(":", "").split()}
    assert numbers - named == {"ReturnToService", "SlurmctldTimeout"}


@pytest.mark.parametrize(("later_s", "kept"), [(419, True), (420, False), (421, False)])
def test_slurmd_remembers_credentials_for_seven_minutes(later_s: int, kept: bool) -> None:
    """Those that were revoked, and those that were used: as long as one is valid, and a while."""
    spool = Spool()
    spool.revoke((1, 0), 5_000_000)
    assert spool.use((1, 0, 0, 7), 5_000_000)
    now_us = (5 + later_s) * 1_000_000
    assert spool.is_revoked((1, 0), now_us) is kept
    assert spool.use((1, 0, 0, 7), now_us) is not kept


@pytest.mark.parametrize(
    ("from_s", "minutes", "free"),
    [(59, 1, True), (60, 1, True), (61, 1, False), (239, 1, False), (240, 1, True), (241, 1, True)],
)
def test_a_reservation_may_begin_when_another_ends(from_s: int, minutes: int, free: bool) -> None:
    """And end when another begins: only what lies over it for a second or more is refused."""
    ran = run(
        entries(
            RESERVED_2_TO_4_MINUTES,
            f"0 root scontrol create reservation reservationname=b starttime=now+{from_s} "
            f"duration={minutes} users=bob nodes=n1",
        )
    )
    assert exits(ran) == [0, 0 if free else 1]


@pytest.mark.parametrize("back_s", [239, 240, 241])
def test_a_reservation_that_ends_without_slurmctld_is_gone_with_its_start(back_s: int) -> None:
    """One that lasts longer goes on to its end."""
    ran = run(
        entries(
            RESERVED_2_TO_4_MINUTES,
            "{at: 150s, fault: {crash: slurmctld}}",
            f"{{at: {back_s}s, fault: {{start: slurmctld}}}}",
            f"{back_s}.5s root scontrol show reservation",
            "242 root scontrol show reservation",
        )
    )
    shown = ["ReservationName=a" in each.stdout for each in ran.result.commands[1:]]
    assert shown == [back_s < 240, False]


@pytest.mark.parametrize(
    ("at_s", "minutes", "starts_at_s"),
    [(59, 1, 59), (60, 1, 60), (61, 1, 240), (59, 2, 240), (239, 1, 240), (240, 1, 240)],
)
def test_a_job_may_end_when_a_reservation_begins(at_s: int, minutes: int, starts_at_s: int) -> None:
    """Its time limit must not reach into it; and it may start in the moment in which one ends."""
    ran = run(
        entries(
            RESERVED_2_TO_4_MINUTES,
            f"0 alice sbatch -w n1 --begin=now+{at_s} -t{minutes} --wrap 'sleep 3'",
        )
    )
    (started,) = ran.all("job_state", args_to="RUNNING")
    assert starts_at_s <= started.time_us / 1e6 < starts_at_s + 1


def test_a_job_is_said_to_start_in_the_moment_in_which_a_reservation_ends() -> None:
    """While that still lies ahead."""
    ran = run(
        entries(RESERVED_2_TO_4_MINUTES, "70 alice sbatch --test-only -w n1 -t5 --wrap 'sleep 3'")
    )
    assert "to start at 2026-01-01T00:04:00 " in ran.stderr(1)


def test_a_job_is_said_to_start_no_earlier_than_it_may_begin() -> None:
    """Though its node is free before."""
    ran = run(entries("1 alice sbatch --test-only --begin=now+100 -w n1 -t5 --wrap true"))
    assert "to start at 2026-01-01T00:01:41 " in ran.stderr(0)
