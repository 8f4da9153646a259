"""Rules of checkpoints that hold whatever people, nodes and slurmctld do: random runs."""

import random
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from simctl.wire.ids import SECOND
from tests.checkpointing import checkpointed
from tests.cluster import Ran

_OPERATIONS = ("able", "create", "vacate", "requeue", "disable", "enable", "error", "restart")
_JOBS = (
    "sbatch -N1 --wrap 'srun sleep {}'",
    "sbatch -N2 --checkpoint=1 --wrap 'srun sleep {}'",
    "srun -N1 --checkpoint=1 sleep {}",
    "srun -N2 sleep {}",
    "sbatch -N1 -a 0-1 --wrap 'srun --checkpoint=2 sleep {}'",
)
_RUNS = 20
_MINUTES = 8
_OVER = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL")


def lines_of(choose: random.Random) -> list[str]:
    """Return a timeline: jobs, checkpoint requests about them, and what befalls them."""
    lines: list[tuple[int, str]] = []
    for _ in range(6):
        command = choose.choice(_JOBS).format(choose.randrange(20, 300))
        lines.append((choose.randrange(_MINUTES * 60), f"alice {command}"))
    for _ in range(40):
        user = choose.choice(("alice", "alice", "alice", "bob", "root", "slurm"))
        step = choose.choice(("", "", ".0", ".1"))
        words = f"{choose.choice(_OPERATIONS)} {choose.randrange(1, 9)}{step}"
        lines.append((choose.randrange(_MINUTES * 60), f"{user} scontrol checkpoint {words}"))
    for _ in range(6):
        job = choose.randrange(1, 8)
        what = choose.choice(
            (
                f"root scontrol suspend {job}",
                f"root scontrol resume {job}",
                f"alice scontrol requeue {job}",
                f"alice scancel {job}",
                f"root scontrol update nodename=n{choose.randrange(1, 5)} state=down reason=x",
                f"root scontrol update nodename=n{choose.randrange(1, 5)} state=resume",
                "fault {restart: slurmctld, for: 5s}",
            )
        )
        lines.append((choose.randrange(_MINUTES * 60), what))
    # Nodes may be taken for a while that a suspended job needs.
    after = [f"{at}s root scontrol resume {job}" for at in (600, 1200, 1800) for job in range(1, 9)]
    woken = "600s root scontrol update nodename=n[1-4] state=resume"
    return [*(f"{at}s {what}" for at, what in sorted(lines, key=itemgetter(0))), woken, *after]


def misplaced(ran: Ran) -> list[str]:
    """Return the operations that were told another place for images, or came at odd times."""
    found = []
    request = False
    for event in ran.all(daemon="slurmctld"):
        if event.name == "REQUEST_CHECKPOINT":
            request = True
        elif event.name in ("RESPONSE_SLURM_RC", "RESPONSE_CHECKPOINT"):
            request = False
        elif event.name == "slurm_ckpt_op":
            given: dict[str, Any] = event.args  # type: ignore[assignment]
            folder = "/shared/ckpt"
            if str(event.step).endswith(".batch"):
                # What makes no image is told no directory either.
                folder = folder if given["op"] in (3, 4, 7) else ""
                wanted = f"{folder}/{given['job_id']}"
            else:
                wanted = f"{folder}/{event.step}"
            if given["image_dir"] != wanted or (not request and event.time_us % (30 * SECOND)):
                found.append(f"{event.seq} {event.args} at {event.time_us}")
    return found


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("seed", range(_RUNS))
def test_random_runs_keep_the_rules(tmp_path: Path, seed: int, model: str) -> None:
    """Nothing hangs, images go where they belong, and limits are looked at every half minute."""
    ran = checkpointed(
        tmp_path,
        *lines_of(random.Random(f"checkpoints {seed}")),
        model=model,
        conf=", ReturnToService: 2",
    )
    assert misplaced(ran) == []
    assert not ran.result.complaints
    assert not ran.result.fatalities
    assert all(row.state in _OVER for row in ran.result.rows)
