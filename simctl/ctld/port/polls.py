"""What slurmctld asks burst buffer plugins again and again, and how long that may keep a run alive.

A plugin may come to another answer by itself, so it is asked until it does. When nothing else goes
on in the cluster, and the answers stay the same, the asking ends.
"""

from typing import Final

from simctl.ctld.port.port import Port
from simctl.kernel.turns import Timer

_PATIENCE: Final = 60
"""How often the same answers are heard while nothing else happens."""

_PATIENCE_UNDER_WAY: Final = 3000
"""How often while plugins say that something is under way, or threads of theirs are due."""


class Polls:
    """The timers of one slurmctld; each is set once at a time."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._timers: dict[str, Timer] = {}
        self._fruitless = 0
        self._under_way = False
        self._changes = 0
        """How many states had changed when the counting last began anew."""

    def heard(self, answer: int) -> int:
        """Note what one of the three-valued functions has answered, and return it."""
        self._under_way = self._under_way or answer == 0
        return answer

    def begin_anew(self, *, by_somebody: bool) -> None:
        """Be patient once more, if a state has changed since the last time or a person acts."""
        if by_somebody or self._changes != self._port.changes:
            self._changes = self._port.changes
            self._fruitless = 0

    def set(self, name: str, due_us: int, notice: object) -> None:
        """Set a timer, unless it is set or asking has been given up."""
        timer = self._timers.get(name)
        if (timer is None or not timer.live) and self.hopeful():
            self._timers[name] = self._port.mailbox.post_at(due_us, notice)

    def count(self) -> None:
        """Note that questions are asked once more."""
        self._under_way = False
        if not self._others_at_work():
            self._fruitless += 1

    def hopeful(self) -> bool:
        """Return whether asking again may be of use."""
        at_work = self._under_way or self._port.site.kernel.lingering > 0
        return self._fruitless < (_PATIENCE_UNDER_WAY if at_work else _PATIENCE)

    def _others_at_work(self) -> bool:
        """Return whether anything is due but these timers, and passes for their sake."""
        own = sum(timer.live for timer in self._timers.values())
        own += self._port.backfill_is_due + self._port.pass_is_due
        return self._port.site.kernel.foreground > own
