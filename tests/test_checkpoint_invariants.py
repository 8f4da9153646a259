"""Rules of checkpoints that hold whatever people, nodes and slurmctld do: random runs."""

import random
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from simctl.kernel.events import Event
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


def args(event: Event) -> Any:
    """Return an event's arguments."""
    return event.args


class Rules:
    """Follows a run from event to event, and notes what breaks a rule."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.states: dict[int, str] = {}
        self.steps: set[str] = set()
        self.request: Event | None = None
        """The checkpoint request that slurmctld is at."""
        self.asked = 0
        self.of_request: set[str] = set()
        """The steps that the plugin was asked about for the sake of the request."""

    def need(self, event: Event, rule: str, *, holds: bool) -> None:
        """Note where a rule does not hold."""
        if not holds:
            self.broken.append(f"{event.seq} {event.name} {event.args}: {rule}")

    def see(self, event: Event) -> None:
        """Take in one event of slurmctld's."""
        if event.name == "job_state":
            self.states[int(event.job)] = str(args(event)["to"])  # type: ignore[arg-type]
        elif event.name == "step_state":
            now = args(event)["to"] == "RUNNING"
            (self.steps.add if now else self.steps.discard)(str(event.step))
        elif event.name == "REQUEST_CHECKPOINT" and event.phase == "receive":
            self.request, self.asked, self.of_request = event, 0, set()
        elif event.name in ("RESPONSE_SLURM_RC", "RESPONSE_CHECKPOINT"):
            self._answered(event)
        elif event.name == "slurm_ckpt_op":
            self._operation(event)
        elif event.name in ("slurm_ckpt_comp", "slurm_ckpt_task_comp"):
            state = self.states[int(event.job)]  # type: ignore[arg-type]
            self.need(event, "reports of what runs alone", holds=state in ("RUNNING", "SUSPENDED"))
            self.need(event, "of a step there is", holds=str(event.step) in self.steps)

    def _operation(self, event: Event) -> None:
        self.asked += 1
        self.of_request.add(str(event.step))
        given = args(event)
        state = self.states[given["job_id"]]
        self.need(event, "only of a job that runs", holds=state == "RUNNING")
        self.need(event, "a restart is never asked for", holds=given["op"] != 5)
        if str(event.step).endswith(".batch"):
            self.need(event, "no step of a script", holds=given["step_ptr"] is None)
            folder = "/shared/ckpt" if given["op"] in (3, 4, 7) else ""
            wanted = f"{folder}/{given['job_id']}"
        else:
            self.need(event, "of a step there is", holds=str(event.step) in self.steps)
            wanted = f"/shared/ckpt/{event.step}"
        self.need(event, "where images go", holds=given["image_dir"] == wanted)
        if self.request is None:
            self.need(event, "by itself only to create", holds=given["op"] == 3)
            self.need(event, "when limits are looked at", holds=not event.time_us % (30 * SECOND))

    def _answered(self, event: Event) -> None:
        if self.request is None or (
            event.name == "RESPONSE_SLURM_RC" and args(event)["answers"] != "REQUEST_CHECKPOINT"
        ):
            return
        given, code = args(self.request), args(event).get("return_code", 0)
        if given["op"] == 5:
            self.need(event, "a restart asks no plugin", holds=not self.asked)
        elif not code and str(self.request.step).endswith(".batch"):
            mine = sum(each.startswith(f"{self.request.job}.") for each in self.steps)
            batch = f"{self.request.job}.batch" in self.of_request
            wanted = 1 if batch else mine
            self.need(event, "one operation, or one a step", holds=self.asked == wanted)
        elif not code:
            self.need(event, "one operation for one step", holds=self.asked == 1)
        self.request = None


def broken_rules(ran: Ran) -> list[str]:
    """Return where a run breaks a rule."""
    rules = Rules()
    for event in ran.all(daemon="slurmctld"):
        if event.phase != "enter":
            rules.see(event)
    return rules.broken


@pytest.mark.parametrize("model", ["guide", "modern"])
@pytest.mark.parametrize("seed", range(_RUNS))
def test_random_runs_keep_the_rules(tmp_path: Path, seed: int, model: str) -> None:
    """Operations of what runs alone, one a request and step, restarts without; nothing hangs."""
    ran = checkpointed(
        tmp_path,
        *lines_of(random.Random(f"checkpoints {seed}")),
        model=model,
        conf=", ReturnToService: 2",
    )
    assert broken_rules(ran) == []
    assert not ran.result.complaints
    assert not ran.result.fatalities
    assert all(row.state in _OVER for row in ran.result.rows)
