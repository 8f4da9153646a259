"""The format of the daemons' state files: lines that are each checked, so that damage costs little.

A line is the CRC-32 of what follows, its length in bytes, and that: a JSON object without line
breaks. The first line is a header, the last one tells how many records there are between them.
"""

import re
from typing import Any, Final
from zlib import crc32

import attrs
import msgspec

VERSION: Final = 1

FILES: Final = ("job_state", "node_state", "part_state", "resv_state")
"""The files there are, by their names in StateSaveLocation."""

_LINE: Final = re.compile(rb"([0-9a-f]{8}) (\d{1,12}) (\{.*\})", re.DOTALL)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a state file is: written by which version, of which cluster, when."""

    simctl_state: int
    file: str
    cluster: str
    clock_s: int
    """What clocks on the cluster showed, in whole seconds."""

    saved_us: int
    """The same moment in virtual time, of the run that `zero_s` says the beginning of."""

    zero_s: int
    stopped: bool = False
    """Whether slurmctld had stopped in good order, with nothing under way."""

    run: str = ""
    """The run that has written it: addresses of clients mean something in it alone."""


class _Trailer(msgspec.Struct, frozen=True, kw_only=True):
    records: int


@attrs.frozen(kw_only=True)
class StateFile:
    """What could be read of a state file; *problem* says what could not be, in words."""

    header: Header | None = None
    records: tuple[bytes, ...] = ()
    """The records before the first that is damaged."""

    beyond: tuple[bytes, ...] = ()
    """Those behind it that can be read all the same."""

    problem: str = ""
    missing: bool = False


NO_HEADER: Final = "it does not begin with a header that can be read"
"""What is wrong with a file that is no state file at all."""


def write_file(header: Header, records: list[bytes]) -> bytes:
    """Return the bytes of a state file. Pure."""
    lines = [msgspec.json.encode(header), *records]
    lines.append(msgspec.json.encode(_Trailer(records=len(records))))
    return b"".join(framed(line) for line in lines)


def framed(payload: bytes) -> bytes:
    """Return a line of a state file. Pure."""
    return b"%08x %d %s\n" % (crc32(payload), len(payload), payload)


def read_file(data: bytes, name: str) -> StateFile:
    """Read a state file, as far as that goes. Pure."""
    lines = data.split(b"\n")
    cut_off = bool(lines.pop())
    payloads = [_payload(line) for line in lines]
    header = _header(payloads[0]) if payloads and payloads[0] is not None else None
    if header is None:
        return StateFile(problem=NO_HEADER)
    if header.file != name:
        return StateFile(problem=f"it is a {header.file[:40]!r} by its header")
    body = payloads[1:]
    end = _trailer(body[-1]) if body and body[-1] is not None else None
    if end is not None:
        body.pop()
    bad = next((place for place, payload in enumerate(body) if payload is None), -1)
    good = body if bad < 0 else body[:bad]
    beyond = [] if bad < 0 else body[bad + 1 :]
    problem = ""
    if bad >= 0:
        of = f" of {end.records}" if end is not None else ""
        problem = f"record {bad + 1}{of} is damaged"
    elif end is None or cut_off:
        problem = f"it ends after record {len(body)}, which is not its end"
    elif end.records != len(body):
        problem = f"it has {len(body)} of {end.records} records"
    return StateFile(
        header=header,
        records=tuple(each for each in good if each is not None),
        beyond=tuple(each for each in beyond if each is not None),
        problem=problem,
    )


def _payload(line: bytes) -> bytes | None:
    match = _LINE.fullmatch(line)
    if match is None or int(match[2]) != len(match[3]) or int(match[1], 16) != crc32(match[3]):
        return None
    return match[3]


def _header(payload: bytes) -> Header | None:
    try:
        return msgspec.json.decode(payload, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _trailer(payload: bytes) -> _Trailer | None:
    try:
        return msgspec.json.decode(payload, type=_Trailer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def with_header(data: bytes, **changes: Any) -> bytes:
    """Return a state file whose header says something else, or nothing if it has none. Pure."""
    first, _, rest = data.partition(b"\n")
    payload = _payload(first)
    header = _header(payload) if payload is not None else None
    if header is None:
        return b""
    return framed(msgspec.json.encode(msgspec.structs.replace(header, **changes))) + rest
