"""The places of a run at which something may be done from outside, each known by a number.

A run is determined, so that the same place comes again whenever it is repeated: after the event of
a number was recorded, as the plugin call of a number begins, before the turn of a number is taken.
"""

import re
from typing import Final, Literal, Protocol

import attrs

from simctl.kernel.events import Event
from simctl.kernel.faults import CallFault, CallFaults
from simctl.kernel.threads import Killed
from simctl.kernel.trace import OpenCall, Trace
from simctl.kernel.turns import Kernel

PlaceKind = Literal["event", "call", "turn"]
PLACE_KINDS: Final[tuple[PlaceKind, ...]] = ("event", "call", "turn")
_PLACE: Final = re.compile(r"(event|call|turn) +([0-9]{1,15})")


@attrs.frozen
class Place:
    """After event *number*, as plugin call *number* begins, or before turn *number* is taken.

    All count from 1; turns that are dead when they come up count as well.
    """

    kind: PlaceKind
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read a place as `str` writes it.

        Raises:
            ValueError: It is none; without a message.
        """
        match = _PLACE.fullmatch(text.strip())
        if match is None or not int(match[2]):
            raise ValueError
        kind = next(each for each in PLACE_KINDS if each == match[1])
        return cls(kind, int(match[2]))


class Visitor(Protocol):
    """A visitor that is led past every place of a run, and may do something there."""

    def after_event(self, event: Event) -> None:
        """Look at an event that was recorded; its process has not gone on yet."""

    def before_call(self, call: OpenCall, number: int) -> CallFault | None:
        """Look at a plugin call that begins; the answer stands in for the plugin's."""

    def before_turn(self, number: int) -> bool:
        """Look at the world between two turns; false ends the run here."""

    def goes_on(self) -> bool:
        """Tell, where nothing is due that keeps a run alive, whether it goes on all the same."""


class Walk:
    """Leads a visitor through a run; to be begun before anything happens."""

    def __init__(self, kernel: Kernel, trace: Trace, faults: CallFaults, visitor: Visitor) -> None:
        self._kernel = kernel
        self._visitor = visitor
        self._turns = 0
        self._calls = 0
        trace.add_sink(visitor.after_event)
        faults.asked = self._before_call
        kernel.before_turn = self._before_turn

    def _before_call(self, call: OpenCall) -> CallFault | None:
        self._calls = number = self._calls + 1
        answer = self._visitor.before_call(call, number)
        thread = self._kernel.current
        if thread is not None and thread.killed:
            # What was done here has killed the process that calls.
            raise Killed
        return answer

    def _before_turn(self) -> bool:
        self._turns = number = self._turns + 1
        return self._visitor.before_turn(number)
