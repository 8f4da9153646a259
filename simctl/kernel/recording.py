"""Read a trace file back."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from simctl import __version__
from simctl.files import read_lines
from simctl.kernel.events import END, Event
from simctl.limits import TRACE_BYTES

FORMAT: Final = 1
"""The version of the format of traces: `simctl_trace` in their headers."""


class RecordingError(ValueError):
    """A file is not a trace, or is damaged; the text says where and how."""


@attrs.frozen
class Recording:
    """A trace: its header, and its events in the order of `seq`."""

    header: dict[str, Any]
    events: list[Event]
    cut: str = ""
    """What is wrong with the last line, or the packing, of one that breaks off."""

    @property
    def end(self) -> Event | None:
        """Return the last event of a whole trace, which is of its file and not of the run."""
        last = self.events[-1] if self.events else None
        return last if last is not None and (last.kind, last.name) == ("log", END) else None

    @property
    def happened(self) -> list[Event]:
        """Return the events of the run."""
        return self.events if self.end is None else self.events[:-1]

    @property
    def old(self) -> bool:
        """Return whether it may be whole without an end: older versions wrote none."""
        numbers = str(self.header.get("version", "")).split(".")
        known = [int(each) for each in numbers[:2] if each.isdecimal()]
        return self.end is None and not self.cut and known < _FIRST_WITH_ENDS

    def missing(self) -> str:
        """Return why the trace is not whole; nothing if it is."""
        if self.cut or self.old:
            return self.cut
        if self.end is None:
            return "its last line is not its end: it was cut, or the run was killed"
        return ""

    def edited(self) -> str:
        """Return what tells that lines were taken out of a trace, or put in; nothing if none."""
        return edited(self.end, len(self.happened))


_FIRST_WITH_ENDS: Final = [0, 2]


class Reader:
    """The events of a trace file one by one, as they are read; ``-`` is standard input.

    Once they are through, `cut` says what is wrong with the last line, or the packing, of one that
    breaks off: then they are what there is.

    Raises:
        RecordingError: It cannot be read, or a line of it is no event.
    """

    def __init__(self, path: Path, most: int | None = None) -> None:
        self.cut = ""
        self._path = path
        self._lines = read_lines(path, TRACE_BYTES if most is None else most)
        try:
            self.header = _header(path, next(self._lines, b""))
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> RecordingError:
        return RecordingError(f"{self._path}: cannot read it: {error.strerror or error}")

    def __iter__(self) -> Iterator[Event]:
        """Yield the events; once only."""
        any_yet = False
        try:
            for event in self._events():
                any_yet = True
                yield event
        except OSError as error:
            if not any_yet or error.errno != errno.EIO:
                raise self._unreadable(error) from error
            self.cut = str(error.strerror)

    def _events(self) -> Iterator[Event]:
        path, decoder = self._path, msgspec.json.Decoder(Event)
        for number, line in enumerate(self._lines, start=2):
            try:
                event = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                breaks_off = line.startswith(b"{") and not line.endswith(b"}")
                if number > _FIRST_EVENT and breaks_off and next(self._lines, None) is None:
                    self.cut = f"line {number} breaks off"
                    return
                raise RecordingError(
                    f"{path}:{number}: not an event of a trace: {error}"
                ) from error
            except RecursionError as error:
                why = "its values are nested too deeply"
                raise RecordingError(f"{path}:{number}: not an event of a trace: {why}") from error
            yield event


_FIRST_EVENT: Final = 2
"""The line of the first event."""


def read_recording(path: Path) -> Recording:
    """Return the trace in a file, gzipped or not; ``-`` is standard input.

    Of one that breaks off it is what there is.

    Raises:
        RecordingError: It cannot be read, or a line of it is no event.
    """
    reader = Reader(path)
    events = list(reader)
    return Recording(reader.header, events, reader.cut)


def edited(end: Event | None, there: int) -> str:
    """Return what tells that lines were taken out of a trace, or put in; nothing if none."""
    told = end.args.get("events") if end and isinstance(end.args, dict) else None
    if told in (None, there):
        return ""
    return f"its end tells of {told} events, and it holds {there}: it was edited"


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        header = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        header = None
    if not isinstance(header, dict) or not isinstance(header.get("simctl_trace"), int):
        raise RecordingError(
            f"{path}:1: not a trace: the first line of one is a header with simctl_trace {FORMAT}, "
            "as `simctl run SCENARIO --trace FILE` writes it"
        )
    if header["simctl_trace"] != FORMAT:
        raise RecordingError(
            f"{path}:1: a trace of format {header['simctl_trace']}; simctl {__version__} reads "
            f"{FORMAT}: read it with simctl {header.get('version') or 'of another version'}, which "
            "wrote it"
        )
    return header
