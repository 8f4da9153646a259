"""Where a session stops by itself: break points and watches."""

import attrs

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern
from simctl.scenario.patterns import FUNCTIONS

_KNOWN_AFTERWARDS = ("rc", "errno", "phase", "state")


@attrs.define(kw_only=True)
class Break:
    """A stop at every event that matches, or inside every plugin call that does, before it runs.

    It is kept as text, because that can be handed on; the pattern is made from it.
    """

    number: int
    text: str
    once: bool = False
    watched: str = ""
    """For a watch, what it was asked to watch."""
    times: int = 0

    @property
    def told(self) -> str:
        """Return it as people asked for it."""
        if self.watched:
            return f"watch {self.watched}"
        return f"{'tbreak' if self.once else 'break'} {self.text}"


class Armed:
    """A break that looks at a run."""

    def __init__(self, each: Break, pattern: Pattern) -> None:
        self.each = each
        self._pattern = pattern
        conditions = {condition.key: condition.value for condition in pattern.conditions}
        self._before = (
            bool(pattern.names(FUNCTIONS))
            and not any(key in conditions for key in _KNOWN_AFTERWARDS)
            and conditions.get("kind", "plugin") == "plugin"
        )

    def at_call(self, prospect: Event) -> bool:
        """Return whether it stops in a call that begins with this event."""
        return self._before and self._pattern.matches(prospect)

    def at_event(self, event: Event) -> bool:
        """Return whether it stops after an event; a call where it stopped before does not count."""
        if self._before and event.kind == "plugin":
            return False
        return self._pattern.matches(event)
