"""The turns that are due now, and what a schedule that chooses among them has to know.

First come, first served needs none of this: there the queue itself decides. Any other schedule is
asked, whenever several turns are due at one moment, which goes first; such a moment is a *choice
point*. Choice points, and messages between hosts, are numbered from 1, and the deviations from
first come, first served are written down: they are all that a token has to hold.
"""

from bisect import bisect_left
from heapq import heapify, heappop
from typing import Any, Final, Protocol
from zlib import crc32

from simctl.kernel.footprint import Steps
from simctl.kernel.threads import Receiver, Thread, Turn

Name = int
"""What a turn is called in every run in which it comes about in the same way."""

_NOBODY: Final = None

# Numbers above 0: -1 and -2 have one hash.
_SENT: Final = 1
_MADE: Final = 2


class EndlessError(Exception):
    """A run has taken far more turns than it should."""

    def __init__(self, turns: int) -> None:
        super().__init__(f"the run had not ended after {turns:,} turns")


class Chooser(Protocol):
    """What a schedule does that is asked which turn goes first."""

    def choose(self, line: "Line") -> int:
        """Return the place in `line.due` of the turn that goes first."""

    def extra_us(self, line: "Line") -> int:
        """Return how much longer than its link's latency the next message takes."""


class Queue(Protocol):
    """What gives turns their numbers: the kernel."""

    now_us: int

    @property
    def numbered(self) -> int:
        """Return the number of the last turn that was caused."""

    def is_dead(self, turn: Turn) -> bool:
        """Return whether a turn that is due would do nothing."""


class Line:
    """The turns due now, first come first, and what was chosen so far.

    A turn's `name` is made of the name of the turn that caused it and of its number among what that
    caused. So a turn bears one name in all runs in which it comes about in the same way, whatever
    else went before it. Names hold within one process of the machine and one version of Python.
    """

    def __init__(self, kernel: Queue, chooser: Chooser) -> None:
        self.due: list[Turn] = []
        self.points = 0
        self.messages = 0
        self.turns = 0
        self.digest = 0
        self.widths: list[int] = []
        """How many turns were due at each choice point."""
        self.taken: list[tuple[int, int, int]] = []
        """When not the first was taken: the moment, the choice point, and who was."""
        self.passed: list[tuple[Name, Name]] = []
        """The same by names: who was first in line, and who went instead."""
        self.late: list[tuple[int, int]] = []
        """The messages that took longer, by number, and by how much."""
        self.late_names: list[tuple[Name, int]] = []
        self.goes_on = 0
        """The number of the turn that goes on after a plugin call was about to be made, or 0."""
        self.most_turns = 0
        """After how many turns a run is taken to be one without an end; 0: never."""
        self.steps: Steps | None = None
        """What each turn touched, for a search that asks."""
        self.sending = ("", "")
        """The message that is being sent: its name, and to whom."""
        self.moment = 0
        """When the turns are due of which the last was taken."""
        self._kernel = kernel
        self._chooser = chooser
        # What turn was under way when a number was given to a turn.
        self._begins: list[int] = [0]
        self._names: list[Name] = [0]
        self._lanes: list[Any] = [_NOBODY]
        self._sent = 0
        self._made = 0

    def take(self, queue: list[Turn]) -> Turn:
        """Take the turn that goes next out of the queue."""
        due = self.due
        if not due:
            due.append(heappop(queue))
        self.moment = moment = due[0][0]
        while queue and queue[0][0] <= moment:
            due.append(heappop(queue))
        dead = self._kernel.is_dead
        if len(due) == 1 and not dead(due[0]):
            self.goes_on = 0
            return self._begin(due.pop(), 0)
        for place, turn in enumerate(due):
            if dead(turn):
                # It does nothing; a search would see a choice where there is none.
                if self.steps is not None:
                    self._note(self.steps, turn, 0, dead=True)
                return due.pop(place)
        moved = self.goes_on and self._put_first()
        self.points += 1
        self.digest = crc32(b"%d:%d;" % (moment, len(due)), self.digest)
        self.widths.append(len(due))
        place = self._chooser.choose(self)
        if place:
            self.taken.append((moment, self.points, place))
            self.passed.append((self.name(due[0]), self.name(due[place])))
        turn = due.pop(place)
        if moved and place:
            # A thread that had to let another go first goes to the back of the line.
            due.sort(key=_number)
        return self._begin(turn, self.points)

    def take_picked(self, queue: list[Turn], number: int) -> Turn:
        """Take the turn of a number, which is due next; the schedule is not asked."""
        for turns in (self.due, queue):
            for place, turn in enumerate(turns):
                if turn[1] == number:
                    turns.pop(place)
                    heapify(queue)
                    self.goes_on = 0 if self.goes_on == number else self.goes_on
                    self.moment = turn[0]
                    return self._begin(turn, 0)
        raise LookupError(number)

    def _put_first(self) -> bool:
        """Let the process that is about to call a plugin go on, unless the schedule objects."""
        due = self.due
        wanted, self.goes_on = self.goes_on, 0
        for place, turn in enumerate(due):
            if turn[1] == wanted:
                due.insert(0, due.pop(place))
                return True
        return False

    def _begin(self, turn: Turn, point: int) -> Turn:
        if self.steps is not None:
            self._note(self.steps, turn, point, dead=False)
        self.turns += 1
        if self.turns == self.most_turns:
            raise EndlessError(self.turns)
        self._sent = 0
        self._made = 0
        self._begins.append(self._kernel.numbered)
        self._names.append(self.name(turn))
        self._lanes.append(self.lane(turn))
        return turn

    def _note(self, steps: Steps, turn: Turn, point: int, *, dead: bool) -> None:
        """Note whose turn it is: a thread's, a mailbox's, or that of the owner of a timer."""
        _, _, act, first, _ = turn
        box = getattr(act, "__self__", None)
        units = None
        if isinstance(first, Thread):
            unit = getattr(first.owner, "unit", "")
            units = frozenset((unit,)) if unit else frozenset()
        elif isinstance(box, Receiver):
            units = frozenset((box.process.unit,))
        name, creator = self.name(turn), self.creator(turn)
        steps.add(name, creator, self.moment, units, point=point, dead=dead)

    def creator(self, turn: Turn) -> int:
        """Return the number of the turn that caused *turn*, counted as they were taken; 0: none."""
        return bisect_left(self._begins, turn[1]) - 1

    def name(self, turn: Turn) -> Name:
        """Return what a turn is called."""
        creator = self.creator(turn)
        if not creator:
            label = getattr(turn[3], "label", "")
            if label:
                # An entry of the timeline, whichever others there are.
                return crc32(label.encode())
        return hash((self._names[creator], turn[1] - self._begins[creator]))

    def lane(self, turn: Turn) -> Any:
        """Return the process that takes a turn.

        A message travels as its sender, and a timer runs as who set it.
        """
        _, _, act, first, _ = turn
        if isinstance(first, Thread):
            return first.owner
        box = getattr(act, "__self__", _NOBODY)
        if isinstance(box, Receiver):
            sender = first[0].sender
            return box.process if sender is None else sender.process
        return self._lanes[self.creator(turn)]

    def extra_us(self, rpc: str, to: str) -> int:
        """Return how much longer than its link's latency the message being sent takes."""
        self.messages += 1
        self.sending = (rpc, to)
        self._sent += 1
        extra_us = self._chooser.extra_us(self)
        if extra_us:
            self.late.append((self.messages, extra_us))
            self.late_names.append((self.message_name(), extra_us))
        return extra_us

    @property
    def now_us(self) -> int:
        """Return virtual time."""
        return self._kernel.now_us

    def fresh_name(self) -> Name:
        """Return what something is called that the turn under way makes."""
        self._made += 1
        return hash((self._names[-1], _MADE, self._made))

    def message_name(self) -> Name:
        """Return what the message that is being sent is called."""
        return hash((self._names[-1], _SENT, self._sent))

    def fingerprint(self) -> int:
        """Return a number that another run hardly has."""
        return crc32(b"%d,%d,%d" % (self.points, self.messages, self.turns), self.digest)


def _number(turn: Turn) -> int:
    return turn[1]


__all__ = ["Chooser", "EndlessError", "Line", "Name"]
