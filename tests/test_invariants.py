"""Ordering rules that hold in every run: random clusters, jobs, faults and schedules.

Each run is checked against the rules of a step's life that were read off recordings of real Slurm:
who follows whom in a step daemon, what balances, what comes before the report to the controller.
"""

import random
from collections import Counter
from itertools import pairwise

import pytest
from msgspec import UNSET

from simctl.kernel.events import Event
from tests.cluster import Ran, run

FUNCTIONS = [
    *("switch_p_job_preinit", "switch_p_job_init", "switch_p_job_attach", "switch_p_job_fini"),
    *("switch_p_job_postfini", "slurm_ckpt_stepd_prefork", "switch_p_build_jobinfo"),
    *("switch_p_unpack_jobinfo role=slurmd", "switch_p_unpack_jobinfo role=manager"),
    *("switch_p_unpack_jobinfo role=srun", "init role=manager", "switch_p_job_step_complete"),
    *("become_user", "setsid role=session", "fork role=session", "fork role=manager"),
    *("slurm_ckpt_free_job", "switch_p_pack_jobinfo role=srun", "create_container"),
]
SCRIPTS = [
    "srun ./quick",
    "srun ./slow & srun ./quick & wait",
    "srun ./quick && srun -N1 ./slow; exit 3",
    "trap 'srun ./quick' TERM; srun ./slow",
    "srun -n1 ./wild",
    "sleep 5; srun false || srun ./quick",
    "for i in 1 2 3; do srun ./quick; done",
]
COMMANDS = [
    ("root", "scontrol requeue {n}"),
    ("root", "scontrol requeuehold {n}"),
    ("root", "scontrol hold {n}"),
    ("root", "scontrol release {n}"),
    ("alice", "scontrol update jobid={n} nice=50 timelimit=1"),
    ("root", "scontrol update jobid={n} priority=7"),
    ("root", "scontrol update nodename=n1 state=drain reason=x"),
    ("root", "scontrol update nodename=n1 state=down reason=x"),
    ("root", "scontrol update nodename=n1 state=resume"),
    ("alice", "sbatch -a 0-3%2 --wrap 'srun ./quick'"),
    ("bob", "sbatch -a 0-2 --wrap 'srun ./slow'"),
    ("root", "scancel {n}_1"),
    ("root", "scancel {n}"),
    ("root", "scontrol requeue {n}_[0-1]"),
    ("bob", "sbatch -d afterany:{n} --wrap 'srun ./quick'"),
    ("alice", "sbatch -d afterok:{n}?singleton --begin=now+60 --wrap 'srun ./quick'"),
    ("root", "scontrol suspend {n}"),
    ("root", "scontrol suspend {n}"),
    ("root", "scontrol resume {n}"),
    ("root", "scontrol resume {n}"),
    ("root", "scancel -s STOP {n}"),
    ("root", "scancel -s CONT {n}"),
    ("root", "scancel -f -s TSTP {n}"),
    ("bob", "sbatch -t2 --signal=USR1@30 --deadline=now+4minutes --wrap 'srun ./slow'"),
    ("bob", "sbatch -a 0-2 -d aftercorr:{n} --kill-on-invalid-dep=yes --wrap 'srun ./quick'"),
    ("root", "scontrol requeuehold state=SpecialExit {n}"),
]


STOPPED = ("SUSPENDED", "RUNNING|STOPPED")


def scenario(seed: int) -> str:
    """Return a random scenario: a few jobs, cancellations, failing calls, perhaps a crash."""
    chance = random.Random(seed)
    nodes = chance.randint(1, 5)
    lines = [
        f'nodes: [{{name: "n[1-{nodes}]", cpus: 4}}]',
        f'partitions: [{{name: debug, nodes: "n[1-{nodes}]", default: true, max_time: "0:05:00"}}]',
        "users: {alice: 1001, bob: 1002}",
        f"slurm_conf: {{KillWait: {chance.choice([5, 30])}, TreeWidth: {chance.choice([2, 50])}}}",
        "programs:",
        "  ./quick: {runs: 2s}",
        "  ./slow: {runs: 40s}",
        "  ./wild: {runs: forever, on_signal: {TERM: ignore}}",
        "timeline:",
    ]
    for number in range(1, chance.randint(2, 7)):
        width, tasks = chance.randint(1, nodes), chance.choice(["", " -n4", " --ntasks-per-node=2"])
        if " -n" in tasks and width > 4:
            tasks = ""
        at = chance.randint(0, 60)
        user = chance.choice(["alice", "bob"])
        if chance.random() < 0.7:
            script = chance.choice(SCRIPTS)
            run_line = f'sbatch -N{width}{tasks} --wrap \\"{script}\\"'
        else:
            run_line = f"srun -N{width}{tasks} ./quick"
        lines.append(f'  - {{at: {at}s, as: {user}, run: "{run_line}"}}')
        if chance.random() < 0.4:
            target = chance.choice([f"{number}", f"{number}.0"])
            lines.append(
                f"  - {{at: {at + chance.randint(0, 30)}s, as: root, run: scancel {target}}}"
            )
    for _ in range(chance.randint(0, 8)):
        at, number = chance.randint(0, 200), chance.randint(1, 6)
        user, command = chance.choice(COMMANDS)
        lines.append(f'  - {{at: {at}s, as: {user}, run: "{command.format(n=number)}"}}')
    for _ in range(chance.randint(0, 3)):
        function = chance.choice(FUNCTIONS)
        kind = chance.choice(["fail", "fail", "raise"])
        lines.append(f'  - {{at: {chance.randint(0, 40)}s, fault: {{{kind}: "{function}"}}}}')
    if chance.random() < 0.3:
        lines.append(f"  - {{at: {chance.randint(1, 50)}s, fault: {{crash: n{nodes}}}}}")
        if chance.random() < 0.5:
            lines.append(f"  - {{at: {chance.randint(51, 900)}s, fault: {{start: n{nodes}}}}}")
    return "\n".join(lines) + "\n"


def check_step_daemon(ran: Ran, manager: int, events: list[Event], crashed: set[object]) -> None:
    """Check what one step daemon did, its processes all together."""
    calls = [event for event in events if event.kind == "plugin" and event.phase != "enter"]
    seqs = {
        short: [e.seq for e in calls if e.name == f"switch_p_job_{short}"]
        for short in ("preinit", "init", "attach", "fini", "postfini")
    }
    order = [seqs[short] for short in ("preinit", "init", "attach", "fini", "postfini")]
    for before, after in pairwise(order):
        assert not before or not after or before[-1] < after[0]
    assert all(len(seqs[short]) <= 1 for short in ("preinit", "init", "fini", "postfini"))
    if events[0].node in crashed:
        return
    good = {e.name for e in calls if not isinstance(e.rc, int) or e.rc >= 0}
    container = not any(e.name == "fault" and "create_container" in str(e.args) for e in ran.events)
    if container:
        assert bool(seqs["postfini"]) == ("switch_p_job_preinit" in good)
    if "switch_p_job_init" not in good:
        assert not seqs["attach"]
        assert not seqs["fini"]
    for event in calls:
        short = event.name.removeprefix("switch_p_job_")
        if short in ("preinit", "postfini"):
            assert (event.pid, event.uid) == (manager, 0)
        if short == "attach":
            assert event.uid in (0, 1001, 1002)
            assert event.role == "task"


def check(ran: Ran, model: str) -> None:
    """Check a run against the rules."""
    crashed: set[object] = {
        word.split("crash ")[-1].strip(" {}:") if "crash " in word else word.split()[-1].strip("{}")
        for e in ran.all("fault")
        for word in [str(e.args["fault"])]  # type: ignore[index]
        if "crash" in word
    }
    children: dict[int, int] = {}
    for event in ran.all("fork"):
        assert event.args is not UNSET
        children[event.args["child"]] = children.get(int(str(event.pid)), int(str(event.pid)))
        if event.role == "slurmd":
            children[event.args["child"]] = event.args["child"]
    daemons: dict[int, list[Event]] = {}
    for event in ran.events:
        if event.role in ("manager", "session", "task") and event.step is not UNSET:
            daemons.setdefault(children[int(str(event.pid))], []).append(event)
    # What nobody has resumed or continued has not ended.
    stopped = {row.job_id for row in ran.result.rows if row.state in STOPPED}
    for manager, events in daemons.items():
        if events[0].job not in stopped:
            check_step_daemon(ran, manager, events, crashed)
    # Every credential that the controller built is completed once, then freed; one that it reads
    # after a restart is one of these.
    built, complete, freed = Counter[object](), Counter[object](), Counter[object]()
    for event in ran.all(kind="plugin", role="slurmctld"):
        if event.job in stopped:
            continue
        built[event.step] += event.name == "switch_p_build_jobinfo"
        complete[event.step] += event.name == "switch_p_job_step_complete"
        freed[event.step] += event.name == "switch_p_free_jobinfo"
    assert built == complete
    copied = ran.all("switch_p_copy_jobinfo")
    copies = Counter(e.step for e in copied if e.job not in stopped)
    assert freed == built + copies
    restarted = {row.job_id for row in ran.result.rows if row.restarts}
    # No step daemon of a job acts on a node after the node reported the job gone.
    for epilog in ran.all("MESSAGE_EPILOG_COMPLETE", phase="send"):
        later = [
            e
            for e in ran.events
            if e.seq > epilog.seq
            and (e.node, e.job) == (epilog.node, epilog.job)
            and e.daemon == "slurmstepd"
            and e.kind == "plugin"
            and e.name not in ("init", "fini")
        ]
        assert not later or epilog.job in restarted
    # Every job ended, unless the run says what it waits for.
    for row in ran.result.rows:
        assert "COMPLETING" not in row.state or ran.result.stalled
        assert row.state != "RUNNING" or ran.result.stalled


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("block", range(6))
def test_random_runs_keep_the_rules(block: int, model: str) -> None:
    """Whatever is thrown at it, no rule is broken and no run breaks off."""
    for seed in range(block * 12, block * 12 + 12):
        schedule = "random" if seed % 2 else "fifo"
        ran = run(scenario(seed), cluster="", model=model, schedule=schedule, seed=seed)
        check(ran, model)


SCRIPTS_OF_ALL_KINDS = """\
Prolog: /etc/script, Epilog: /etc/script, PrologSlurmctld: /etc/script, \
EpilogSlurmctld: /etc/script, TaskProlog: /etc/script, TaskEpilog: /etc/script, \
SrunProlog: /etc/script, SrunEpilog: /etc/script"""


def check_scripts(ran: Ran) -> None:
    """Check where prologs and epilogs stand among the acts of their jobs."""
    restarted = {row.job_id for row in ran.result.rows if row.restarts}
    for epilog in ran.all("epilog"):
        assert epilog.uid == 0
        later = [
            event
            for event in ran.all("switch_p_job_postfini", node=epilog.node, job=epilog.job)
            if event.time_us > epilog.time_us
        ]
        assert not later or epilog.job in restarted
    first_launch: dict[tuple[object, object], int] = {}
    for event in ran.all("switch_p_job_preinit"):
        first_launch.setdefault((event.node, event.job), event.seq)
    for (node, job), seq in first_launch.items():
        assert [e for e in ran.all("prolog", node=node, job=job, rc=0) if e.seq < seq]


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("block", range(4))
def test_random_runs_with_prologs_and_epilogs_keep_the_rules(block: int, model: str) -> None:
    """Scripts of every kind, some of which fail, under cancels, requeues and crashes."""
    for seed in range(block * 12, block * 12 + 12):
        chance = random.Random(f"scripts:{seed}")
        keys = SCRIPTS_OF_ALL_KINDS + chance.choice(["", ", PrologFlags: Alloc"])
        text = scenario(seed).replace("slurm_conf: {", f"slurm_conf: {{{keys}, ", 1)
        text = text.replace("programs:\n", "programs:\n  /etc/script: {runs: [2s, 7s]}\n", 1)
        for _ in range(chance.randint(0, 2)):
            name = chance.choice(["prolog", "epilog", "prolog_slurmctld", "task_prolog"])
            at = chance.randint(0, 60)
            text += f'  - {{at: {at}s, fault: {{fail: "{name}"}}}}\n'
        schedule = "random" if seed % 2 else "fifo"
        ran = run(text, cluster="", model=model, schedule=schedule, seed=seed)
        check(ran, model)
        check_scripts(ran)
