"""What happens at exact places of a run: entries of a session that was saved."""

from collections.abc import Callable, Iterable

from simctl.kernel.events import Event
from simctl.kernel.faults import CallFault
from simctl.kernel.pattern import EVERYTHING
from simctl.kernel.places import Place
from simctl.kernel.trace import OpenCall
from simctl.kernel.turns import Kernel
from simctl.scenario.holding.expect import Result
from simctl.scenario.model import Answer, AnswerEntry, Entry, Placed
from simctl.wire.errno import errno_number

PATIENCE_TURNS = 100_000
"""How many turns may pass without an event where only an event is waited for."""


class PlacedEntries:
    """Has entries happen at their places, and keeps the run alive until then."""

    def __init__(
        self, kernel: Kernel, entries: Iterable[Entry], happen: Callable[[Entry], None]
    ) -> None:
        self._kernel = kernel
        self._happen = happen
        self._entries: dict[Place, list[Entry]] = {}
        self._turn = 0
        self._last_turn = 0
        self._quiet_since = 0
        for entry in entries:
            if isinstance(entry.moment, Placed):
                self._entries.setdefault(entry.moment.place, []).append(entry)
        self._last_turn = max(
            (place.number for place in self._entries if place.kind == "turn"), default=0
        )
        self._kinds = {place.kind for place in self._entries}

    def after_event(self, event: Event) -> None:
        """Do what is due after an event."""
        self._quiet_since = self._turn
        if "event" in self._kinds:
            self._visit(Place("event", event.seq))

    def before_call(self, _: OpenCall, number: int) -> CallFault | None:
        """Do what is due as a plugin call begins; return the answer for the plugin."""
        answer: CallFault | None = None
        if "call" in self._kinds:
            for entry in self._entries.pop(Place("call", number), ()):
                if isinstance(entry, AnswerEntry):
                    answer = answer_fault(entry.answer)
                else:
                    self._happen(entry)
        return answer

    def before_turn(self, number: int) -> bool:
        """Do what is due before a turn."""
        self._turn = number
        if number <= self._last_turn:
            self._visit(Place("turn", number))
        return True

    def goes_on(self) -> bool:
        """Return whether an entry lies ahead that the run can still come to."""
        if not self._entries or self._kernel.next_due_us is None:
            return False
        return self._turn <= self._last_turn or self._turn - self._quiet_since < PATIENCE_TURNS

    def _visit(self, place: Place) -> None:
        for entry in self._entries.pop(place, ()):
            moment = entry.moment
            assert isinstance(moment, Placed)
            if moment.time_us is not None:
                put_clock(self._kernel, moment.time_us)
            self._happen(entry)

    def unreached(self) -> list[Result]:
        """Return a broken expectation for each entry whose place never came."""
        return [
            Result(
                text=f"{entry.label}: comes to {place}",
                line=entry.line,
                held=False,
                detail="the run was over before; has the scenario changed since it was saved?",
            )
            for place, entries in self._entries.items()
            for entry in entries
        ]


def put_clock(kernel: Kernel, time_us: int) -> None:
    """Let time pass up to a moment, as far as the next turn allows; never back."""
    due_us = kernel.next_due_us
    latest_us = time_us if due_us is None else min(time_us, due_us)
    kernel.now_us = max(kernel.now_us, latest_us)


def answer_fault(answer: Answer) -> CallFault:
    """Return the rule that gives an answer to the call at hand."""
    if answer.delay_us is not None:
        return CallFault(pattern=EVERYTHING, text="an answer", hangs=True, hangs_us=answer.delay_us)
    return CallFault(
        pattern=EVERYTHING,
        text="an answer",
        errno=errno_number(answer.errno) if answer.errno else 0,
        rc=answer.rc,
    )
