"""What comes next in a job's life: a copy of the session goes there and tells.

The process of the session is forked. The copy lets time go on without a person, until the job's
record is gone or nothing more becomes of it, and sends back what happened on the way. Nothing
has to be known about what the lifecycle does next: it is what happens if no more command is typed.
"""

import contextlib
import os
import select
import signal
import sys
from typing import Any, Final

import attrs
import msgspec

from simctl.kernel.events import Event
from simctl.repl.fronts import Front
from simctl.repl.session import Goal, Session
from simctl.wire.ids import SECOND

MOST_EVENTS: Final = 3_000
"""How many events a copy goes ahead."""

_MOST_TURNS: Final = 10_000
_PATIENCE_S: Final = 3.0
"""How long the copy may take, in seconds of wall time."""

_LONGER_US: Final = 150 * SECOND
"""How much longer than MinJobAge the record of a job that is over may stay: two rounds."""


class Foreseen(msgspec.Struct):
    """What a copy has seen of a job."""

    events: list[Event]
    purged_us: int = -1
    """When the record of the job was gone; -1 if it was not."""

    why: str = ""
    """Why the copy went no further, if the job was still there."""


@attrs.define(kw_only=True)
class Foresee(Goal):
    """Go on until nothing more becomes of a job."""

    job: int
    last_seq: int
    last_turn: int
    idles: bool = True
    found: Foreseen = attrs.field(factory=lambda: Foreseen(events=[]))

    def event(self, session: Session, event: Event) -> str | None:
        """Keep what happens to the job."""
        if event.job == self.job:
            self.found.events.append(event)
        if event.seq < self.last_seq:
            return None
        return self._ends(f"further than {MOST_EVENTS} events ahead nobody looked")

    def turn(self, session: Session) -> str | None:
        """Stop where the job is gone, where nothing is due for it, or after long."""
        world = session.world
        job = world.ctld.jobs.get(self.job)
        if job is None:
            self.found.purged_us = world.kernel.now_us
            return ""
        over = job.state.finished and not job.state.completing and not job.state.staging_out
        if over:
            age_us = world.site.conf.min_job_age_s * SECOND + _LONGER_US
            if world.kernel.now_us > job.end_us + age_us:
                return self._ends("its record stays")
        elif not world.kernel.foreground and world.at_rest() is not None:
            return self._ends("nothing is due that would change that: `why job` says more")
        if session.number > self.last_turn:
            return self._ends("further ahead nobody looked")
        return None

    def _ends(self, why: str) -> str:
        self.found.why = why
        return ""


class _Sender(Front):
    """Stands in for the person in a copy: the first time it is asked, it sends and ends."""

    def __init__(self, goal: Foresee, descriptor: int) -> None:
        super().__init__(sys.stdout)
        self._goal = goal
        self._descriptor = descriptor
        self._session: Session | None = None

    def attend(self, session: Session) -> None:
        """Take the word of this session, should it be over."""
        self._session = session

    def write(self, text: str, colour: str = "") -> None:
        """Print nothing."""

    def flush(self) -> None:
        """Print nothing."""

    def read(self, prompt: str) -> str | None:
        """Send what was seen; the copy is over."""
        try:
            found = self._goal.found
            over = self._session.over if self._session is not None else ""
            if over and not found.why:
                found.why = over
            view = memoryview(msgspec.msgpack.encode(found, enc_hook=str))
            while view:
                view = view[os.write(self._descriptor, view) :]
        finally:
            os._exit(0)

    def unread(self) -> Any:
        """Return nothing: a copy does not go back."""
        return None


def foresee(session: Session, job_id: int) -> Foreseen | None:
    """Return what comes next for a job if no more command is typed; None in a copy.

    A copy that breaks, or takes too long, has seen nothing; `why` says so.
    """
    if session.over:
        return Foreseen(events=[], why=session.over)
    if not hasattr(os, "fork"):
        return Foreseen(events=[], why="what comes next is told only where processes can fork")
    session.front.flush()
    read_end, write_end = os.pipe()
    try:
        child = os.fork()
    except OSError as error:
        os.close(read_end)
        os.close(write_end)
        return Foreseen(events=[], why=f"no copy of the session could look ahead: {error.strerror}")
    if not child:
        os.close(read_end)
        _go_ahead(session, job_id, write_end)
        return None
    os.close(write_end)
    try:
        return _hear(read_end)
    finally:
        os.close(read_end)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _go_ahead(session: Session, job_id: int, write_end: int) -> None:
    """Become the copy that goes on by itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    goal = Foresee(
        job=job_id,
        last_seq=session.world.trace.seq + MOST_EVENTS,
        last_turn=session.world.kernel.turns + _MOST_TURNS,
    )
    session.go_on_alone(_Sender(goal, write_end), goal)


def _hear(read_end: int) -> Foreseen:
    """Return what a copy sends."""
    sent = bytearray()
    while select.select([read_end], [], [], _PATIENCE_S)[0]:
        part = os.read(read_end, 1 << 20)
        if part:
            sent += part
        elif sent:
            return msgspec.msgpack.decode(bytes(sent), type=Foreseen)
        else:
            return Foreseen(events=[], why="the copy that looked ahead broke")
    return Foreseen(events=[], why=f"looking ahead took longer than {_PATIENCE_S:g} s")
