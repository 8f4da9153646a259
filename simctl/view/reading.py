"""Traces for pictures: read line by line, as much of one as a picture can hold."""

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import END, Event
from simctl.kernel.recording import Reader, Recording, edited
from simctl.limits import PICTURE_BYTES, PICTURE_EVENTS
from simctl.scenario.durations import format_moment
from simctl.status import InputError

_NAMED: Final = 12
_MOST_NUMBER: Final = 1 << 62
"""Beyond every number of an event that simctl wrote; a file may hold anything."""


@attrs.frozen
class Selection:
    """Which events of a run are wanted: of one job, from one moment to another, or all."""

    job: int | None = None
    from_us: int = 0
    to_us: int | None = None

    @property
    def is_part(self) -> bool:
        """Return whether it may leave events out."""
        return self.job is not None or self.from_us > 0 or self.to_us is not None

    def has(self, event: Event) -> bool:
        """Return whether an event is wanted for itself."""
        if event.time_us < self.from_us or (self.to_us is not None and event.time_us > self.to_us):
            return False
        return self.job is None or self.job in (event.job, event.array_job)

    def told(self) -> str:
        """Return what it leaves in, for people; nothing if it is all."""
        parts = [] if self.job is None else [f"job {self.job}"]
        if self.from_us:
            parts.append(f"from {format_moment(self.from_us)}")
        if self.to_us is not None:
            parts.append(f"to {format_moment(self.to_us)}")
        return " ".join(parts)


EVERYTHING: Final = Selection()


@attrs.frozen(kw_only=True)
class Seen:
    """The part of a run that a picture shows."""

    header: Mapping[str, Any]
    events: tuple[Event, ...]
    selection: Selection = EVERYTHING
    total: int = 0
    """How many events the run has, shown or not."""
    reason: str = ""
    """Why the run was over, as the trace's end tells it; nothing if it breaks off."""
    broken: tuple[dict[str, Any], ...] = ()
    """What did not hold in the run, as the trace's end tells it."""
    notes: tuple[str, ...] = ()
    """What is wrong with the trace."""
    cut: bool = False
    """Whether it breaks off: what should come at the end of a run may lack."""

    @property
    def whole(self) -> bool:
        """Return whether nothing is known to be missing of it."""
        return not self.notes and self.reason in ("", "done")


def read_seen(path: Path, selection: Selection = EVERYTHING) -> Seen:
    """Return what is wanted of the trace in a file, with what led to it.

    A part of a run has the chains of causes behind its events as well, so that each tells after
    what it came; of what comes through a pipe it has not.

    Raises:
        RecordingError: It is no trace, or cannot be read.
        InputError: Nothing of it is wanted, or more than a picture can hold.
    """
    reader = Reader(path, PICTURE_BYTES)
    gathered = _Gathered(selection, str(path))
    for event in reader:
        gathered.add(event)
    gathered.check()
    lacking = gathered.lacking() if selection.is_part and path.is_file() else set()
    events = gathered.events
    if lacking:
        more = (event for event in Reader(path, PICTURE_BYTES) if event.seq in lacking)
        events = sorted((*events, *more), key=lambda event: event.seq)
        _check_size(len(events), gathered, str(path))
    ending = Recording(reader.header, gathered.last, reader.cut)
    notes = tuple(filter(None, (ending.missing(), edited(ending.end, gathered.total))))
    end = ending.end
    found = end.rc if end is not None and isinstance(end.rc, list) else []
    return Seen(
        header=reader.header,
        events=tuple(events),
        selection=selection,
        total=gathered.total,
        reason=str(end.args.get("reason", "")) if end and isinstance(end.args, dict) else "",
        broken=tuple(each for each in found if isinstance(each, dict)),
        notes=notes,
        cut=bool(ending.missing()),
    )


def seen_of(
    header: Mapping[str, Any], events: Sequence[Event], selection: Selection, what: str
) -> Seen:
    """Return what is wanted of a run that was just made.

    Raises:
        InputError: As of `read_seen`.
    """
    gathered = _Gathered(selection, what)
    for event in events:
        gathered.add(event)
    gathered.check()
    wanted = gathered.lacking() if selection.is_part else set()
    kept = gathered.events
    if wanted:
        more = (event for event in events if event.seq in wanted)
        kept = sorted((*kept, *more), key=lambda event: event.seq)
        _check_size(len(kept), gathered, what)
    return Seen(header=header, events=tuple(kept), selection=selection, total=gathered.total)


class _Gathered:
    """Events as they are read: those that are wanted, and of all others where they come from."""

    def __init__(self, selection: Selection, what: str) -> None:
        self._selection = selection
        self._what = what
        self.events: list[Event] = []
        self.last: list[Event] = []
        """The last event of the file, if there is one."""
        self.total = 0
        self.jobs: dict[int, None] = {}
        self.ends_us = 0
        self.wanted = 0
        # A trace of gigabytes has tens of millions of events: numbers in arrays take least.
        self._seqs, self._causes = array("q"), array("q")

    def add(self, event: Event) -> None:
        self.last = [event]
        if (event.kind, event.name) == ("log", END):
            return
        self.total += 1
        self.ends_us = event.time_us
        if event.job is not UNSET and len(self.jobs) <= _NAMED:
            self.jobs[event.job] = None
        cause = event.cause if event.cause is not UNSET else 0
        if self._selection.is_part and cause and max(event.seq, abs(cause)) < _MOST_NUMBER:
            self._seqs.append(event.seq)
            self._causes.append(cause)
        if self._selection.has(event):
            self.wanted += 1
            if self.wanted <= PICTURE_EVENTS:
                self.events.append(event)

    def check(self) -> None:
        _check_size(self.wanted, self, self._what)
        if self.wanted or not self.total:
            return
        known = ", ".join(str(job) for job in self.jobs)
        raise InputError(
            f"{self._what}: nothing of it is {self._selection.told()}; it goes from 0s to "
            f"{format_moment(self.ends_us)}, and has {f'job {known}' if known else 'no job'}"
        )

    def lacking(self) -> set[int]:
        """Return the events that led to those there are, and are not among them."""
        there = {event.seq for event in self.events}
        found: set[int] = set()
        for event in self.events:
            cause = event.cause if event.cause is not UNSET else 0
            while cause and cause not in there and cause not in found:
                found.add(cause)
                cause = self._cause_of(cause)
        return found

    def _cause_of(self, seq: int) -> int:
        place = bisect_left(self._seqs, seq)
        there = place < len(self._seqs) and self._seqs[place] == seq
        return self._causes[place] if there else 0


def _check_size(count: int, gathered: _Gathered, what: str) -> None:
    if count <= PICTURE_EVENTS:
        return
    jobs = ", ".join(str(job) for job in list(gathered.jobs)[:_NAMED])
    more = " and more" if len(gathered.jobs) > _NAMED else ""
    raise InputError(
        f"{what}: {count:,} events are more than a page holds ({PICTURE_EVENTS:,}); name a part of "
        f"them: --job N (there are {jobs}{more}), --from TIME and --to TIME (it goes from 0s to "
        f"{format_moment(gathered.ends_us)})"
    )
