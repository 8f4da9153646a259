"""Whatever a job lives through, its tasks do the work they have to do, and none of it twice.

A job under srun_cr is checkpointed, vacated, restarted and requeued at any moments, while nodes
crash and come back and slurmctld restarts. What its tasks did is counted from the trace alone.
"""

from collections import Counter

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simctl.kernel.events import Event
from tests.checkpoints import CLUSTER, JOB, SUBMIT, output
from tests.cluster import Ran, run

_WORK_US = 600_000_000
"""What each task has to do."""

_SLOW = JOB.replace("bandwidth: 1GiB", "bandwidth: 64MiB")
"""So that images are under way for sixteen seconds: things happen meanwhile."""

_RESTART = "/usr/sbin/cr_restart.sh"


@attrs.define
class _Worker:
    """A task as the trace tells of it: the work it began with, and what it has done since."""

    job: int
    rank: int
    began_with_us: int
    since_us: int
    stood_us: int = 0
    stopped_us: int = -1

    def done_us(self, now_us: int) -> int:
        """Return how much of its work is done."""
        until_us = self.stopped_us if self.stopped_us >= 0 else now_us
        return self.began_with_us + until_us - self.since_us - self.stood_us

    def go_on(self, now_us: int) -> None:
        """Go on after a halt."""
        if self.stopped_us >= 0:
            self.stood_us += now_us - self.stopped_us
            self.stopped_us = -1


@attrs.define
class _Books:
    """The work of all tasks of a run, as their processes and the helpers' events tell of it."""

    workers: dict[int, _Worker] = attrs.field(factory=dict)
    saved_us: dict[str, int] = attrs.field(factory=dict)
    restarting: dict[int, str] = attrs.field(factory=dict)
    finished: Counter[tuple[int, int]] = attrs.field(factory=Counter)
    under_way: dict[int, tuple[str, int]] = attrs.field(factory=dict)

    def read(self, events: list[Event]) -> None:
        """Go through a run."""
        for event in events:
            if event.name == "slurm_ckpt_restart_task":
                self._restart(event)
            elif event.name == "exec" and event.daemon == "task":
                self._execute(event)
            elif event.name == "cr_checkpoint.sh":
                self._save(event)
            elif event.name == "exit" and event.daemon == "task":
                self._end(event)

    def _restart(self, event: Event) -> None:
        folder = event.args["image_dir"]  # type: ignore[index]
        assert folder.split("/")[3].split(".")[0] == str(event.job), "an image of another job"
        self.restarting[event.pid] = f"{folder}/task.{event.task}.ckpt"  # type: ignore[index]

    def _execute(self, event: Event) -> None:
        if event.args["path"] != "./app":  # type: ignore[index]
            return
        image = self.restarting.pop(event.pid, "")  # type: ignore[arg-type]
        self.workers[event.pid] = _Worker(  # type: ignore[index]
            event.job,  # type: ignore[arg-type]
            event.task,  # type: ignore[arg-type]
            self.saved_us[image] if image else 0,
            event.time_us,
        )

    def _save(self, event: Event) -> None:
        pid, image = event.args["argv"]  # type: ignore[index]
        worker = self.workers.get(int(pid))
        if worker is None:
            return
        if event.phase == "enter":
            worker.stopped_us = event.time_us
            return
        if event.rc == 0:
            self.saved_us[image] = worker.done_us(event.time_us)
        worker.go_on(event.time_us)

    def _end(self, event: Event) -> None:
        worker = self.workers.pop(event.pid, None)  # type: ignore[arg-type]
        if worker is None or event.rc:
            return
        assert worker.done_us(event.time_us) == _WORK_US
        self.finished[worker.job, worker.rank] += 1


_MOMENTS = st.sampled_from([1, 3, 10, 16, 20, 45, 90, 131, 200])
_DEEDS = st.sampled_from(
    [
        *("checkpoint create 1 MaxWait=60", "checkpoint create 2 MaxWait=60"),
        # Ten seconds are not enough for its images.
        *("checkpoint vacate 1 MaxWait=60", "checkpoint vacate 1"),
        *("checkpoint requeue 1 MaxWait=60", "requeue 1"),
        *("checkpoint restart 1", "checkpoint restart 2"),
        *("crash: n1", "crash: n2", "start: n1", "start: n2", "restart: slurmctld, for: 3s"),
    ]
)


def _timeline(deeds: list[tuple[int, str]], last_ones: int = 4) -> str:
    """Return a timeline of *deeds*, each some seconds after the one before, and a good end."""
    now_s = 5
    entries = [SUBMIT, SUBMIT]
    up = {"n1": True, "n2": True}
    for pause_s, deed in deeds:
        now_s += pause_s
        word, _, node = deed.partition(": ")
        if node in up:
            # Who is down cannot crash, and who is up need not be started.
            if up[node] is not (word == "crash"):
                continue
            up[node] = not up[node]
        entries.append(_entry(now_s, deed))
    now_s += 60
    entries += [_entry(now_s, f"start: {node}") for node, is_up in up.items() if not is_up]
    for round_ in range(last_ones):
        at_s = now_s + 1500 * (round_ + 1)
        entries += [_entry(at_s, f"checkpoint restart {job}") for job in (1, 2)]
    return "timeline:\n" + "".join(f"  - {entry}\n" for entry in entries)


def _entry(at_s: int, deed: str) -> str:
    if ": " in deed:
        return f"{{at: {at_s}s, fault: {{{deed}}}}}"
    return f"{{at: {at_s}s, run: scontrol {deed}}}"


def _live(deeds: list[tuple[int, str]], model: str) -> Ran:
    return run(_SLOW + _timeline(deeds), cluster=CLUSTER, model=model)


@pytest.mark.parametrize("model", ["guide", "modern"])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(deeds=st.lists(st.tuples(_MOMENTS, _DEEDS), max_size=12))
def test_work_is_what_was_saved_and_what_was_run_since(
    model: str, deeds: list[tuple[int, str]]
) -> None:
    """A task that ends by itself has done all of its work: the image's and its own.

    Of each job that came to its end, each task did so exactly once a life of the job; images are
    used by the job alone that they are of.
    """
    ran = _live(deeds, model)
    assert ran.result.stalled == ()
    books = _Books()
    books.read(ran.events)
    for job in (1, 2):
        lives = output(ran, job).count("left with 0")
        assert books.finished[job, 0] == books.finished[job, 1] == lives
        assert output(ran, job).count("done") == 2 * lives
        assert ran.job(job)[0] in ("COMPLETED", "FAILED", "CANCELLED")
    assert not ran.all("plugin_error")
