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
        told = self.end.args.get("events") if self.end and isinstance(self.end.args, dict) else None
        there = len(self.happened)
        if told in (None, there):
            return ""
        return f"its end tells of {told} events, and it holds {there}: it was edited"


_FIRST_WITH_ENDS: Final = [0, 2]


def read_recording(path: Path) -> Recording:
    """Return the trace in a file, gzipped or not; ``-`` is standard input.

    Of one that breaks off it is what there is.

    Raises:
        RecordingError: It cannot be read, or a line of it is no event.
    """
    events: list[Event] = []
    try:
        lines = read_lines(path, TRACE_BYTES)
        header = _header(path, next(lines, b""))
        cut = _read_events(path, lines, events)
    except OSError as error:
        if not events or error.errno != errno.EIO:
            raise RecordingError(f"{path}: cannot read it: {error.strerror or error}") from error
        cut = str(error.strerror)
    return Recording(header, events, cut)


def _read_events(path: Path, lines: Iterator[bytes], events: list[Event]) -> str:
    """Add the events of the lines to *events*; return what is wrong with the last one."""
    decoder = msgspec.json.Decoder(Event)
    for number, line in enumerate(lines, start=2):
        try:
            events.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            breaks_off = line.startswith(b"{") and not line.endswith(b"}")
            if events and breaks_off and next(lines, None) is None:
                return f"line {number} breaks off"
            raise RecordingError(f"{path}:{number}: not an event of a trace: {error}") from error
        except RecursionError as error:
            why = "its values are nested too deeply"
            raise RecordingError(f"{path}:{number}: not an event of a trace: {why}") from error
    return ""


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
