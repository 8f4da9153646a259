"""Ordering rules that hold in every run: random clusters, jobs, faults and schedules.

Each run is held against the built-in orderings, as every scenario of a test is; beside them every
job has to come to its end.
"""

import random

import pytest

from tests.cluster import run
from tests.invariants import FUNCTIONS, SCRIPTS, check

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


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("block", range(6))
def test_random_runs_keep_the_rules(block: int, model: str) -> None:
    """Whatever is thrown at it, no rule is broken and no run breaks off."""
    for seed in range(block * 12, block * 12 + 12):
        schedule = "random" if seed % 2 else "fifo"
        ran = run(scenario(seed), cluster="", model=model, schedule=schedule, seed=seed)
        check(ran)


SCRIPTS_OF_ALL_KINDS = """\
Prolog: /etc/script, Epilog: /etc/script, PrologSlurmctld: /etc/script, \
EpilogSlurmctld: /etc/script, TaskProlog: /etc/script, TaskEpilog: /etc/script, \
SrunProlog: /etc/script, SrunEpilog: /etc/script"""


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
        check(ran)
        assert {epilog.uid for epilog in ran.all("epilog")} <= {0}
