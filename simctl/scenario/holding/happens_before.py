"""Which events of a run come before which under every schedule, and why.

Each event needs some that came before it: its cause, or what it says in `needs`. Besides, what a
process does in a row follows in that row: a message is sent, and then a plugin is called, of the
same cause. And whatever a daemon takes in comes after what it did before it began to take anything
in. *A* is forced to come before *B* if a chain of such needs leads from the beginning of *B* back
to the end of *A*.
"""

import bisect
import operator
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event

_SEQ: Final = operator.attrgetter("seq")
_BLOCK: Final = 4096
"""Of how many events at a time it is found out what they lead to."""


class HalfATraceError(ValueError):
    """A trace lacks events that others name as their causes; nothing can be proved from it."""

    def __init__(self, event: Event, lacking: int) -> None:
        super().__init__(
            f"event {event.seq} follows from event {lacking}, which the trace lacks; nothing can "
            "be proved from a part of a trace (write it without --trace-kinds)"
        )


class Link(Enum):
    """How an event follows from one that it needs."""

    FIRST = ""
    PROCESS = "process order"
    MESSAGE = "message"
    FORK = "fork"
    EXIT = "exit"
    WAIT = "wait"
    JOIN = "join"
    CALL = "in the call"
    START = "after start"


@attrs.frozen
class Step:
    """An event of a chain, and how it follows from the one before it there."""

    event: Event
    link: Link


class HappensBefore:
    """What every event of a run needs.

    Raises:
        HalfATraceError: Events lack that others name.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.by_seq: dict[int, Event] = {event.seq: event for event in events}
        self._needs: dict[int, tuple[int, ...]] = {}
        self._read()

    def _read(self) -> None:
        starts = _Starts()
        in_a_row: dict[tuple[object, object], int] = {}
        for event in self.events:
            seq = event.seq
            needs: list[int] = []
            if event.needs is not UNSET:
                needs += event.needs
            elif event.cause is not UNSET:
                needs.append(event.cause)
            for each in needs:
                if each not in self.by_seq:
                    raise HalfATraceError(event, each)
            if event.enter is not UNSET:
                needs.append(event.enter)
            elif _goes_on(event):
                row = (event.pid, event.cause)
                before = in_a_row.get(row)
                if before is not None:
                    needs.append(before)
                in_a_row[row] = seq
            if start := starts.of(event):
                needs.append(start)
            self._needs[seq] = tuple(dict.fromkeys(each for each in needs if each < seq))

    def needs(self, event: Event) -> tuple[Event, ...]:
        """Return the events that one needs directly."""
        return tuple(self.by_seq[each] for each in self._needs[event.seq])

    def beginning(self, event: Event) -> Event:
        """Return the line with which a call began; of any other event itself."""
        return event if event.enter is UNSET else self.by_seq[event.enter]

    def forces(self, first: Event, second: Event) -> bool:
        """Return whether *first* ends before *second* begins, whatever the schedule."""
        return bool(self.chain(first, second))

    def chain(self, first: Event, second: Event) -> list[Step]:
        """Return the shortest chain that leads from the end of one to the beginning of another."""
        start = self.beginning(second).seq
        target = first.seq
        if start <= target:
            return []
        after: dict[int, int] = {start: 0}
        queue = deque([start])
        while queue:
            seq = queue.popleft()
            for each in self._needs[seq]:
                if each == target:
                    after[each] = seq
                    return self._walk(each, after)
                if each > target and each not in after:
                    after[each] = seq
                    queue.append(each)
        return []

    def _walk(self, seq: int, after: Mapping[int, int]) -> list[Step]:
        steps = [Step(self.by_seq[seq], Link.FIRST)]
        while seq := after[seq]:
            event = self.by_seq[seq]
            steps.append(Step(event, self.link(steps[-1].event, event)))
        return steps

    def link(self, before: Event, event: Event) -> Link:
        """Return how an event follows from one that it needs."""
        if event.enter is not UNSET and event.pid == before.pid:
            return Link.CALL if before.seq == event.enter else Link.PROCESS
        if event.phase == "receive":
            return Link.MESSAGE if before.seq == event.cause else Link.START
        waited = before.pid != event.pid or before.phase == "receive"
        if waited and event.needs is not UNSET and event.needs[1:] and before.seq in event.needs:
            return Link.JOIN
        if before.pid == event.pid:
            return Link.PROCESS
        return {"fork": Link.FORK, "exit": Link.EXIT}.get(before.name, Link.WAIT)

    def behind(self, event: Event) -> set[int]:
        """Return the seqs of all that the beginning of an event needs, its own among them."""
        found = {self.beginning(event).seq}
        todo = list(found)
        while todo:
            for each in self._needs[todo.pop()]:
                if each not in found:
                    found.add(each)
                    todo.append(each)
        return found

    def free_pair(
        self, earlier: Sequence[Event], later: Iterable[Event]
    ) -> tuple[Event, Event] | None:
        """Return the first of *later* that some of *earlier* need not precede, with such a one."""
        found: tuple[Event, Event] | None = None
        wanted = sorted(later, key=lambda event: self.beginning(event).seq)
        for place in range(0, len(earlier), _BLOCK):
            pair = self._free_pair(earlier[place : place + _BLOCK], wanted)
            if pair is not None and (found is None or pair[1].seq < found[1].seq):
                found = pair
        return found

    def _free_pair(
        self, earlier: Sequence[Event], later: Sequence[Event]
    ) -> tuple[Event, Event] | None:
        """Do so for as many of *earlier* as bits of a number may stand for."""
        bits = {event.seq: 1 << place for place, event in enumerate(earlier)}
        everybody = (1 << len(earlier)) - 1
        asked = {self.beginning(event).seq: event for event in reversed(later)}
        last = max(asked, default=0)
        reached: dict[int, int] = {}
        start = bisect.bisect_left(self.events, earlier[0].seq, key=_SEQ)
        if asked and min(asked) < earlier[0].seq:
            return earlier[0], asked[min(asked)]
        for event in islice(self.events, start, None):
            seq = event.seq
            if seq > last:
                break
            before = 0
            for each in self._needs[seq]:
                before |= reached.get(each, 0)
            if seq in asked and before != everybody:
                missing = everybody & ~before
                return earlier[(missing & -missing).bit_length() - 1], asked[seq]
            before |= bits.get(seq, 0)
            if before:
                reached[seq] = before
        return None


def _goes_on(event: Event) -> bool:
    """Return whether an event comes after what its process has done before of the same cause."""
    known = event.cause is not UNSET and event.pid is not UNSET
    return known and event.needs is UNSET and event.phase != "receive"


class _Starts:
    """What each process did before it took in its first message."""

    def __init__(self) -> None:
        self._tips: dict[object, int] = {}
        self._causes: dict[object, object] = {}
        self._begun: set[object] = set()

    def of(self, event: Event) -> int:
        """Return the last thing a process did before its first message, for each that it gets."""
        pid = event.pid
        if pid is UNSET:
            return 0
        if event.phase == "receive":
            self._begun.add(pid)
            return self._tips.get(pid, 0)
        if pid in self._begun:
            return 0
        tip = self._tips.get(pid)
        goes_on = event.cause == tip or event.cause == self._causes.get(pid)
        if tip is None or (goes_on and event.needs is UNSET):
            self._tips[pid] = event.seq
            self._causes[pid] = event.cause
        return 0
