"""The trace of a served cluster, which can be read at any time and does not grow for ever."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import msgspec
from msgspec import UNSET

from simctl.files import open_to_write
from simctl.kernel.events import Event
from simctl.kernel.trace import FileSink
from simctl.orderings.told_terms import TERMS, tell_terms
from simctl.outputs import TRACE, place_of
from simctl.world import World

_MOST_BYTES: Final = 256 << 20


class TraceLog:
    """Writes events into the trace of a cluster's folder, until that is as long as it may be.

    A trace that cannot be written ends there, and is told of; the cluster goes on.
    """

    def __init__(self, path: Path, world: World, tell: Callable[[str], None]) -> None:
        self._world = world
        self._tell = tell
        self._path = place_of(path, TRACE) or path
        self._stream: IO[bytes] = open_to_write(path)
        self._sink = FileSink(self._stream, world.header() | {TERMS: tell_terms(world.terms())})
        self._full = False
        world.trace.add_sink(self._add)

    def _add(self, event: Event) -> None:
        if self._full:
            return
        try:
            try:
                self._sink(event)
            except UnicodeEncodeError:
                # A client has sent what is no character of any.
                self._sink(msgspec.structs.replace(event, args=UNSET))
            self._full = self._stream.tell() > _MOST_BYTES
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._full = True
        self._tell(f"{self._path}: {error.strerror}: the trace ends here")

    def flush(self) -> None:
        """Let the file hold all there is."""
        if self._full:
            return
        try:
            self._sink.flush()
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def end(self) -> None:
        """Write the last event; a trace that became too long has none, and so is told apart."""
        world = self._world
        if not self._full:
            last = Event(
                seq=world.trace.seq + 1, time_us=world.kernel.now_us, kind="log", name="end"
            )
            last.args = {"events": 0, "reason": "interrupted"}
            try:
                self._sink.end(last)
            except OSError as error:
                self._give_up(error)
        self.flush()
        with suppress(OSError):
            self._stream.close()
