"""How a step daemon ends its tasks when it is told why: the line it writes, and how gently."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import attrs

from simctl.wire.signals import SIG_NODE_FAIL, SIG_TERM_KILL, SIG_TIME_LIMIT

_MIN_KILL_WAIT_S: Final = 5


@attrs.frozen(kw_only=True)
class Ending:
    """What one of Slurm's own signal numbers asks of a step daemon.

    `reason` ends the line that the user reads; tasks that are not killed `at_once` get SIGTERM and
    as long as KillWait.
    """

    reason: str = ""
    at_once: bool = False


TIME_LIMIT: Final = " DUE TO TIME LIMIT"
PREEMPTION: Final = " DUE TO PREEMPTION"
REQUEUE: Final = " DUE TO JOB REQUEUE"
NODE_FAILURE: Final = " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"
JOB_FAILED: Final = "FAILED (non-zero exit code or other failure mode)"
"""What is told in place of when it was cancelled, where the job has failed."""

ENDINGS: Final[Mapping[int, Ending]] = {
    SIG_TERM_KILL: Ending(),
    SIG_TIME_LIMIT: Ending(reason=TIME_LIMIT),
    SIG_NODE_FAIL: Ending(reason=NODE_FAILURE, at_once=True),
}


def cancelled_line(*, step: str, node: str, epoch_s: int, reason: str) -> str:
    """Return what the step daemon of a step's first node tells the user.

    A batch script is told as its job.
    """
    job, _, number = step.partition(".")
    what = f"JOB {job}" if number == "batch" else f"STEP {step}"
    when = datetime.fromtimestamp(epoch_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    end = reason if reason == JOB_FAILED else f"CANCELLED AT {when}{reason}"
    return f"slurmstepd-{node}: error: *** {what} ON {node} {end} ***\n"


def out_of_memory_line(step: object, node: str) -> str:
    """Return what a batch script's output says when memory did not suffice."""
    return (
        f"slurmstepd-{node}: error: Detected 1 oom_kill event in StepId={step}. "
        "Some of the step tasks have been OOM Killed.\n"
    )


def grace_s(kill_wait_s: int) -> int:
    """Return how long tasks that were sent SIGTERM have until SIGKILL, in seconds."""
    return max(kill_wait_s, _MIN_KILL_WAIT_S)
