"""What an event could not have come without: not always just the event that led to it.

A process carries the seq of the event that its next one follows from. That is a plain number where
the next event needs that one and no other. It is a `Cause` where it needs more, because several had
to come first, or others, because a choice led to it that might have been made without its cause.
"""

from collections.abc import Container, Iterable
from typing import Any, Final

import attrs
from msgspec import UNSET, UnsetType

from simctl.kernel.events import Event


class Cause(int):
    """The seq of the event that led to what follows, and of those that must have come before it."""

    needs: tuple[int, ...]

    @classmethod
    def of(cls, seq: int, needs: Iterable[int]) -> "Cause":
        """Return a cause; where nothing led to what follows, the last that it needs stands for it.

        *needs* may be causes themselves: what these need is meant.
        """
        flat = tuple(dict.fromkeys(each for one in needs for each in needs_of(one)))
        cause = cls(int(seq) or max(flat, default=0))
        cause.needs = flat
        return cause


def needs_of(cause: int) -> tuple[int, ...]:
    """Return what an event of this cause could not have come without."""
    if type(cause) is Cause:
        return cause.needs
    return (int(cause),) if cause else ()


_Subject = int | None
"""A job, or none."""


@attrs.define
class _Line:
    """What one thread has done since it took in the message, or the notice, that it works on."""

    own: set[int] = attrs.field(factory=set)
    last: dict[_Subject, int] = attrs.field(factory=dict)
    current: _Subject = None


class Subjects:
    """What a process that serves many jobs has done for each, so that none is taken to need others.

    While it works on one message it may turn from job to job: a pass that one job's end has led to
    starts another job. It does so in some order, and what it does for the one does not need what it
    did for the other. So an event about a job needs the last one about the same job, in the work on
    the same message or else the last that changed the job's state.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        """The process; it has another after a restart."""

        self.live: Container[int] = ()
        """The jobs that the process has at present."""

        self._lines: dict[Any, _Line] = {}
        self._of: dict[int, _Subject] = {}
        """Whom each event of the process was about, and of those that it has forked."""
        self._forgotten = bytearray()
        """A bit for each event of which that is known no more."""
        self._forget_at = _WINDOW
        """How many events are remembered before some are forgotten."""
        self.forked: dict[int | UnsetType, _Subject] = {}
        """For whom it has forked each of these."""
        self._known: dict[_Subject, int] = {}
        """By job, what anything about it from now on cannot come without."""
        self._also: dict[_Subject, tuple[int, ...]] = {}
        """What the next event about a job needs besides."""
        self._buffers: dict[_Subject, int] = {}
        """The last change of a job's burst buffer."""

    def begin(self, pid: int, thread: Any) -> None:
        """Note that a thread of a process takes something new in."""
        if pid == self.pid:
            self._lines[thread] = _Line()

    def know(self, job: int, *needs: int) -> None:
        """Let everything about a job from now on need these as well."""
        known = self._known.get(job, 0)
        self._known[job] = Cause.of(known, (known, *needs))
        self._also[job] = tuple(each for one in needs for each in needs_of(one))

    def has_come_to(self, job: int, cause: int) -> None:
        """Let everything about a job from now on need what a process is about to do."""
        known = self._known.get(job, 0)
        self._known[job] = Cause.of(known, (known, cause))

    def know_buffer(self, job: int) -> None:
        """Let everything about a job from now on need what its burst buffer has come to."""
        if job in self._buffers:
            self.know(job, self._buffers[job])

    def known(self, job: int) -> int:
        """Return what everything about a job needs from now on."""
        return self._known.get(job, 0)

    def place(self, thread: Any, event: Event, cause: int) -> int:
        """Return the cause of an event, with what it needs; it is entered in the thread's line."""
        if event.pid != self.pid:
            if event.pid in self.forked:
                self._of[event.seq] = self.forked[event.pid]
            return cause
        if len(self._of) > self._forget_at:
            self._forget(event.seq)
        line = self._lines.get(thread)
        if line is None:
            line = self._lines[thread] = _Line()
        if event.phase == "receive":
            line = self._lines[thread] = _Line()
            line.current = None if event.job is UNSET else event.job
        else:
            job = self._subject(line, event)
            if cause:
                needs = self._needs(line, job, cause)
                if needs != needs_of(cause):
                    cause = Cause.of(cause, needs)
            line.current = job
        seq = event.seq
        line.own.add(seq)
        line.last[line.current] = seq
        self._of[seq] = line.current
        if event.name == "job_state":
            self._known[line.current] = seq
        elif event.name == "bb_state":
            self._buffers[line.current] = seq
        elif event.name == "fork" and event.args is not UNSET:
            self.forked[event.args["child"]] = line.current
        return cause

    def _subject(self, line: _Line, event: Event) -> _Subject:
        """Return whom an event is about: the one it names, or the one that is being worked on."""
        if event.job is not UNSET:
            return event.job
        return line.current if event.enter is UNSET else self._of.get(event.enter, line.current)

    def _needs(self, line: _Line, job: _Subject, cause: int) -> tuple[int, ...]:
        """Return what an event about *job* needs."""
        wanted = needs_of(cause)
        needs = tuple(each for each in wanted if each in line.own and self._about(each, job) == job)
        if not needs and job in line.last and type(cause) is not Cause:
            needs = (line.last[job],)
        elif not needs and job in self._known:
            needs = needs_of(self._known[job])
        elif not needs and line.current in line.last:
            # A job that is new comes of whatever is being worked on.
            needs = (line.last[line.current],)
        others = (each for each in wanted if each not in line.own and self._about(each, job) == job)
        also = self._also.pop(job, ()) if self._also else ()
        return tuple(dict.fromkeys((*needs, *others, *also)))

    # What a long run can do without.

    def _about(self, seq: int, otherwise: _Subject) -> _Subject:
        """Return whom an event was about; of one that is not the process's own, *otherwise*."""
        found = self._of.get(seq, otherwise)
        if found is otherwise and self._forgotten and seq not in self._of and self._was_own(seq):
            return _SOMEBODY
        return found

    def _was_own(self, seq: int) -> bool:
        place, bit = divmod(seq, 8)
        return place < len(self._forgotten) and bool(self._forgotten[place] >> bit & 1)

    def _forget(self, now: int) -> None:
        """Forget whom old events were about: jobs that are gone; and threads that have ended.

        An event that is forgotten counts as about another job, as nearly all do by then. What was
        about no job is remembered for longer: a timer may go back to it.
        """
        self._lines = {
            thread: line
            for thread, line in self._lines.items()
            if thread is None or not thread.finished
        }
        kept = {}
        oldest, of_nobody = now - _WINDOW, now - _WINDOW * _LONGER
        self._forgotten.extend(bytes(now // 8 + 1 - len(self._forgotten)))
        for seq, job in self._of.items():
            if seq > oldest or (seq > of_nobody if job is None else job in self.live):
                kept[seq] = job
            else:
                self._forgotten[seq // 8] |= 1 << seq % 8
        self._of = kept
        self._forget_at = len(kept) + max(_WINDOW, len(kept))
        for line in self._lines.values():
            line.own &= kept.keys()
        self._forget_gone(self.forked, _WINDOW)
        for table in (self._known, self._also, self._buffers):
            self._forget_gone(table, _GONE)

    def _forget_gone(self, table: dict[Any, Any], most: int) -> None:
        """Forget the first entries of a table by job or process, of which others may be told."""
        for key in list(table)[: max(0, len(table) - most)]:
            if key not in self.live:
                del table[key]


_SOMEBODY: Final = -1
"""Stands for a job that is not asked about any more."""

_WINDOW: Final = 20_000
"""How many events back it is remembered whom each was about, and how many forked processes."""

_GONE: Final = 2_000
"""How many jobs are remembered when those that were there before may be gone.

A node that comes back may still tell of a job that slurmctld has purged, but hardly of one that
came so many jobs ago.
"""

_LONGER: Final = 5
"""How many times as far events about no job are remembered."""
