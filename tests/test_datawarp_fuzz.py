"""burst_buffer/datawarp under random cancels, requeues, restarts, outages and failing functions."""

import random

import pytest
from msgspec import UNSET

from tests.cluster import Ran
from tests.test_datawarp import JOB, MODELS, RESTART, entry, run, scenario

_MOMENTS = (0.3, 1, 1.5, 3, 6, 6.5, 7, 8.5, 9, 11.2, 12, 14, 17.3, 30, 60, 100)
_COMMANDS = (
    *("scancel", "scancel --hurry", "scontrol requeue", "scontrol hold", "scontrol release"),
    *("scontrol requeuehold", "restart", "down", "up", "reconfigure"),
)
_STAGES = (
    *("setup", "data_in", "paths", "pre_run"),
    *("post_run", "data_out", "teardown", "real_size"),
)
_ENDS = ("{exit: 1, output: bad}", "{runs: 3s}", "{signal: 9}")


def timeline(dice: random.Random) -> str:
    """Return what happens: jobs that come in, and much that stands in their way."""
    jobs = dice.randint(1, 5)
    lines: list[tuple[float, str]] = []
    for _ in range(jobs):
        at = dice.choice((0, 0, 1, 5, 20))
        kind = dice.choice(("", "", "--no-requeue ", "-N2 ", "--array=0-2 "))
        lines.append((at, entry(f"{at}s", f"sbatch {kind}bb.sh")))
    for _ in range(dice.randint(0, 5)):
        when = dice.choice(_MOMENTS)
        lines.append((when, act(dice, f"{when}s", dice.randint(1, jobs))))
    lines.append((300, "  - {at: 300s, burst_buffer: {up: true}}\n"))
    lines.append((1500, entry("1500s", "squeue")))
    return "".join(line for _, line in sorted(lines, key=lambda each: each[0]))


def act(dice: random.Random, at: str, job: int) -> str:
    """Return one thing that happens to a job, to slurmctld or to the appliance."""
    command = dice.choice(_COMMANDS)
    if command == "restart":
        return RESTART % (at, dice.choice(("0s", "1s", "20s")))
    if command in ("up", "down"):
        return f"  - {{at: {at}, burst_buffer: {{up: {str(command == 'up').lower()}}}}}\n"
    if command == "reconfigure":
        return entry(at, "scontrol reconfigure", "root")
    return entry(at, f"{command} {job}", "root")


def appliance(dice: random.Random) -> str:
    """Return functions that fail now and then, and are well at last."""
    described = []
    for name in _STAGES:
        if dice.random() < 0.2:
            ends = ", ".join(dice.choice(_ENDS) for _ in range(dice.randint(1, 3)))
            described.append(f"{name}: [{ends}, {{runs: 1s}}]")
    return f"functions: {{{', '.join(described)}}}" if described else ""


def last_states(ran: Ran) -> dict[int, str]:
    """Return the state that each job's buffer was in at the end."""
    return {
        event.job: event.args["to"]
        for event in ran.all("bb_state")
        if event.args is not UNSET and isinstance(event.job, int)
    }


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(25))
def test_whatever_happens_the_books_balance(seed: int, model: str) -> None:
    """Nothing raises, no pool gives out more than it has, and what is kept is kept for a reason.

    In model guide a buffer is left only where a stage failed, or the job is held.
    """
    dice = random.Random(f"datawarp {seed}")
    text = scenario(
        timeline(dice),
        head=JOB.replace("10GiB", dice.choice(("10GiB", "40GiB", "60GiB"))),
        appliance=appliance(dice),
        bb_conf=dice.choice(("", "Flags: TeardownFailure")),
    )
    ran = run(text, model, schedule=dice.choice(("fifo", "random")), seed=seed)
    assert ran.result.complaints == ()
    assert ran.all("fatal") == []
    store = ran.world.site.appliance.store
    assert all(0 <= pool.used <= pool.capacity for pool in store.pools.values())
    if model == "modern":
        return
    states = last_states(ran)
    rows = {row.job_id: row for row in ran.result.rows}
    for token in store.buffers:
        kept = rows[int(token)]
        held = kept.state == "PENDING" and states[kept.job_id] != "COMPLETE"
        assert held or states[kept.job_id] == "STAGING_OUT", (kept, states[kept.job_id])
