"""Random runs with links that are cut and nodes that crash: nothing hangs, and nothing is lost."""

import random
from collections import Counter

import pytest
from msgspec import UNSET

from tests.cluster import Ran, run
from tests.invariants import SCRIPTS, check

FINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


def scenario(seed: int) -> str:
    """Return a random scenario in which every cut heals and every node that crashed is started."""
    chance = random.Random(f"cuts:{seed}")
    count = chance.randint(1, 5)
    nodes = [f"n{number}" for number in range(1, count + 1)]
    lines = [
        f'nodes: [{{name: "n[1-{count}]", cpus: 4}}]',
        f'partitions: [{{name: debug, nodes: "n[1-{count}]", default: true, max_time: "0:10:00"}}]',
        "users: {alice: 1001, bob: 1002}",
        f"slurm_conf: {{KillWait: {chance.choice([5, 30])}, TreeWidth: {chance.choice([1, 2, 50])},"
        f" ReturnToService: {chance.choice([1, 2])},"
        f" SlurmdTimeout: {chance.choice([15, 60, 300])}}}",
        f"latency: {chance.choice(['100us', '100us', '1ms', '400ms'])}",
        "programs:",
        "  ./quick: {runs: 2s}",
        "  ./slow: {runs: [20s, 200s]}",
        "  ./wild: {runs: forever, on_signal: {TERM: ignore}}",
        "timeline:",
    ]
    for number in range(1, chance.randint(2, 6)):
        lines += _job(chance, number, count)
    for _ in range(chance.randint(1, 6)):
        ends = chance.sample(["slurmctld", "slurmctld", "login", *nodes], 2)
        if ends[0] == ends[1]:
            continue
        start = chance.choice(["0", "100us", "150us", "300us", f"{chance.randint(0, 200)}s"])
        length = chance.choice(["50us", "200us", "1s", "30s", "100s", "400s", "1000s"])
        lines.append(f"  - {{at: {start}, fault: {{cut: [{', '.join(ends)}], for: {length}}}}}")
    if chance.random() < 0.5:
        node = chance.choice(nodes)
        at = chance.randint(1, 200)
        lines.append(f"  - {{at: {at}s, fault: {{crash: {node}}}}}")
        lines.append(f"  - {{at: {at + chance.randint(1, 600)}s, fault: {{start: {node}}}}}")
    if chance.random() < 0.3:
        node = chance.choice(nodes)
        at = chance.randint(0, 200)
        typed = f"scontrol update nodename={node} state="
        lines.append(f"  - {{at: {at}s, as: slurm, run: {typed}down reason=x}}")
        # The second time, if not the first, every link is whole.
        for later in (at + chance.randint(1, 900), 2000):
            lines.append(f"  - {{at: {later}s, as: slurm, run: {typed}resume}}")
    return "\n".join(lines) + "\n"


def _job(chance: random.Random, number: int, count: int) -> list[str]:
    width = chance.randint(1, count)
    at = chance.randint(0, 120)
    user = chance.choice(["alice", "bob"])
    typed = f"srun -N{width} {chance.choice(['./quick', './slow'])}"
    if chance.random() < 0.7:
        requeue = chance.choice(["", " --no-requeue"])
        typed = f'sbatch -N{width}{requeue} --wrap \\"{chance.choice(SCRIPTS)}\\"'
    lines = [f'  - {{at: {at}s, as: {user}, run: "{typed}"}}']
    if chance.random() < 0.3:
        what = chance.choice(["scancel", "scancel -b -s USR1", "scontrol requeue"])
        later = at + chance.randint(0, 300)
        lines.append(f'  - {{at: {later}s, as: root, run: "{what} {number}"}}')
    return lines


def check_runs(ran: Ran) -> None:
    """Check that no job runs twice: not for the controller, nor twice on one node."""
    running: dict[object, bool] = {}
    for event in ran.all("job_state"):
        assert event.args is not UNSET
        now = event.args["to"] == "RUNNING"
        assert not (now and running.get(event.job)), f"job {event.job} started twice"
        running[event.job] = now
    scripts: Counter[tuple[object, object]] = Counter()
    managers: dict[object, tuple[object, object]] = {}
    for event in ran.events:
        if event.daemon != "slurmstepd" or not str(event.step).endswith(".batch"):
            continue
        if event.name == "init" and event.pid not in managers:
            managers[event.pid] = (event.job, event.node)
            scripts[event.job, event.node] += 1
            assert scripts[event.job, event.node] == 1, f"two scripts of job {event.job}"
        if event.name == "exit" and event.pid in managers:
            scripts[managers[event.pid]] -= 1


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("block", range(6))
def test_no_run_hangs_and_no_job_is_lost(block: int, model: str) -> None:
    """However links are cut and nodes crash, every job ends, once, and every command as well."""
    for seed in range(block * 20, block * 20 + 20):
        schedule = "random" if seed % 2 else "fifo"
        ran = run(scenario(seed), cluster="", model=model, schedule=schedule, seed=seed)
        assert ran.result.stalled == (), f"seed {seed}"
        check(ran)
        check_runs(ran)
        for row in ran.result.rows:
            assert row.state in FINAL, f"seed {seed}: job {row.job_id} is {row.state}"
        assert all(each.exit >= 0 for each in ran.result.commands), f"seed {seed}"
