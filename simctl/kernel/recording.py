"""Read a trace file back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from simctl import __version__
from simctl.files import read_lines
from simctl.kernel.events import Event
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


def read_recording(path: Path) -> Recording:
    """Return the trace in a file, gzipped or not; ``-`` is standard input.

    Raises:
        RecordingError: It cannot be read, or a line of it is no event.
    """
    try:
        lines = read_lines(path, TRACE_BYTES)
        return Recording(_header(path, next(lines, b"")), list(_events(path, lines)))
    except OSError as error:
        raise RecordingError(f"{path}: cannot read it: {error.strerror or error}") from error


def _events(path: Path, lines: Iterator[bytes]) -> Iterator[Event]:
    decoder = msgspec.json.Decoder(Event)
    for number, line in enumerate(lines, start=2):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RecordingError(f"{path}:{number}: not an event of a trace: {error}") from error
        except RecursionError as error:
            why = "its values are nested too deeply"
            raise RecordingError(f"{path}:{number}: not an event of a trace: {why}") from error


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
