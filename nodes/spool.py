"""What slurmd leaves on its node when it dies: step daemons and their sockets, and credentials.

Another slurmd that starts there finds them in the spool directory.
"""

from collections.abc import Callable
from typing import Final

import attrs

from simctl.kernel.fabric import Mailbox
from simctl.nodes.leftovers import Leftovers
from simctl.nodes.prologs import JobRun
from simctl.stepd.manager import StepDaemon
from simctl.wire.ids import SECOND

_REVOKED_KEPT_US: Final = 420 * SECOND
"""How long a revoked credential is remembered: as long as one is valid, and a message under way."""

StepKey = tuple[int, int]
"""A step: the job id and the step id."""


def nobody(_job_id: int, _cause: int) -> None:
    """Stand in where no slurmd is there to hear of the end of a step daemon."""


@attrs.define(eq=False)
class Socket:
    """Where a step daemon receives; `daemon` is None until it was told what to do."""

    mailbox: Mailbox
    daemon: StepDaemon | None = None


@attrs.define(eq=False)
class Spool:
    """What slurmd has in its spool directory; the tables stand in the file of credentials."""

    sockets: dict[StepKey, Socket] = attrs.field(factory=dict)
    left: dict[StepKey, Leftovers] = attrs.field(factory=dict)
    """What step daemons that were killed have left behind."""

    prologs: dict[JobRun, int] = attrs.field(factory=dict)
    """The wait status of each prolog that has ended, by the run of its job."""

    revoked: dict[JobRun, int] = attrs.field(factory=dict)
    """The runs of jobs of which nothing may be launched any more, and since when."""

    scripts: dict[JobRun, None] = attrs.field(factory=dict)
    """The runs of jobs whose batch scripts were started here, as long as they are not long over."""

    over: dict[JobRun, None] = attrs.field(factory=dict)
    """Those of them whose epilog was begun: it is not run again."""

    begun: dict[StepKey, None] = attrs.field(factory=dict)
    """The steps that have had a step daemon here, as long as their jobs are not long over."""

    used: dict[tuple[int, int, int, int], int] = attrs.field(factory=dict)
    """The steps that were launched, by job, step, run and credential, and when."""

    known_from_us: int = 0
    """Since when all is known of credentials: the file that told of those before was damaged."""

    gone: Callable[[int, int], None] = nobody
    """Told of each step daemon that ends, with the job and the cause, by the slurmd there is."""

    def of_job(self, job_id: int) -> list[tuple[StepKey, Mailbox]]:
        """Return the steps of a job, and where their daemons receive."""
        return [(key, socket.mailbox) for key, socket in self.sockets.items() if key[0] == job_id]

    def is_revoked(self, run: JobRun, now_us: int) -> bool:
        """Return whether nothing of a run of a job may be launched now."""
        since_us = self.revoked.get(run)
        return since_us is not None and since_us + _REVOKED_KEPT_US > now_us

    def knows(self, run: JobRun, now_us: int) -> bool:
        """Return whether the script of a run was started here, and that is not long over."""
        return run in self.scripts and (run not in self.revoked or self.is_revoked(run, now_us))

    def revoke(self, run: JobRun, now_us: int) -> None:
        """Let nothing of a run of a job be launched any more; forget what is revoked long since."""
        for key, since_us in list(self.revoked.items()):
            if since_us + _REVOKED_KEPT_US > now_us:
                break
            del self.revoked[key]
            self.over.pop(key, None)
            self.scripts.pop(key, None)
            for step in [step for step in self.begun if step[0] == key[0]]:
                del self.begun[step]
        self.revoked[run] = now_us

    def use(self, step: tuple[int, int, int, int], now_us: int) -> bool:
        """Note that a step is launched; false if it was before, as far as that may matter."""
        while self.used:
            oldest = next(iter(self.used))
            if self.used[oldest] + _REVOKED_KEPT_US > now_us:
                break
            del self.used[oldest]
        if step in self.used:
            return False
        self.used[step] = now_us
        return True

    def kill_left(self, job_id: int) -> None:
        """Kill what is left of a job without a step daemon."""
        for key in [key for key in self.left if key[0] == job_id]:
            self.left.pop(key).kill()

    def lose(self) -> None:
        """Lose what ran, because the node went down; files are still there."""
        self.sockets.clear()
        for left in self.left.values():
            left.forget()
        self.left.clear()
        self.gone = nobody
