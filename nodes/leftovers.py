"""Tasks whose step daemon was killed: they go on, unreaped, and their output is not read."""

from simctl.kernel.turns import Timer
from simctl.site import Site
from simctl.stepd.outcome import NEVER_US
from simctl.stepd.tasks import TaskSet


class Leftovers:
    """The tasks of a step daemon that was killed, until their programs end or slurmd kills them.

    `restart_cnt` is which run of their job they belong to.
    """

    def __init__(self, site: Site, tasks: TaskSet, restart_cnt: int) -> None:
        self.tasks = tasks
        self.restart_cnt = restart_cnt
        self._site = site
        self._timer: Timer | None = None
        self._arm()

    def _arm(self) -> None:
        """Have the next program end in time: no step daemon sees to it any more."""
        self.forget()
        due_us = self.tasks.next_due_us()
        if due_us < NEVER_US:
            self._timer = self._site.kernel.call_at(due_us, Leftovers._due, self)

    def _due(self) -> None:
        self.signalled()

    def signalled(self) -> None:
        """Note that tasks may end now, or at another time than before."""
        self.tasks.end_due(self._site.kernel.now_us)
        for task in self.tasks.reap():
            self._site.images.forget(task)
        self._arm()

    def kill(self) -> None:
        """Kill all that is left."""
        self.tasks.kill_all()
        self.signalled()
        self.forget()

    def forget(self) -> None:
        """Let nothing more happen by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
