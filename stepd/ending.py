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


ENDINGS: Final[Mapping[int, Ending]] = {
    SIG_TERM_KILL: Ending(),
    SIG_TIME_LIMIT: Ending(reason=" DUE TO TIME LIMIT"),
    SIG_NODE_FAIL: Ending(
        reason=" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", at_once=True
    ),
}


def cancelled_line(*, step: str, node: str, epoch_s: int, reason: str) -> str:
    """Return what the step daemon of a step's first node tells the user."""
    when = datetime.fromtimestamp(epoch_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"slurmstepd-{node}: error: *** STEP {step} ON {node} CANCELLED AT {when}{reason} ***\n"


def grace_s(kill_wait_s: int) -> int:
    """Return how long tasks that were sent SIGTERM have until SIGKILL, in seconds."""
    return max(kill_wait_s, _MIN_KILL_WAIT_S)
