"""Read a trace file back."""

import gzip
import sys
from pathlib import Path
from typing import Any

import attrs
import msgspec

from simctl.kernel.events import Event


class RecordingError(ValueError):
    """A file is not a trace, or is damaged; the text says where and how."""


@attrs.frozen
class Recording:
    """A trace: its header, and its events in the order of `seq`."""

    header: dict[str, Any]
    events: list[Event]


_GZIP = b"\x1f\x8b"


def read_recording(path: Path) -> Recording:
    """Return the trace in a file, gzipped or not; ``-`` is standard input.

    Raises:
        RecordingError: It cannot be read, or a line of it is no event.
    """
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except (OSError, EOFError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise RecordingError(f"{path}: cannot read it: {why}") from error
    lines = data.splitlines()
    header = _header(path, lines[0] if lines else b"")
    decoder = msgspec.json.Decoder(Event)
    events: list[Event] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            events.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            raise RecordingError(f"{path}:{number}: not an event of a trace: {error}") from error
    return Recording(header, events)


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        header = msgspec.json.decode(line)
    except msgspec.DecodeError:
        header = None
    if not isinstance(header, dict) or header.get("simctl_trace") != 1:
        raise RecordingError(
            f"{path}:1: not a trace: the first line of one is a header with simctl_trace 1, "
            "as `simctl run SCENARIO --trace FILE` writes it"
        )
    return header
