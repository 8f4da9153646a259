"""Buf: the byte buffer Slurm's records travel in.

Numbers are big endian. Texts and byte strings carry a 32-bit length first; the length of a text
counts the NUL that ends it, so that a missing text (length 0) differs from an empty one (length 1).
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from simctl.wire.errno import ESLURM_PROTOCOL_INCOMPLETE_PACKET, SlurmError

_U8: Final = struct.Struct(">B")
_U16: Final = struct.Struct(">H")
_U32: Final = struct.Struct(">I")
_U64: Final = struct.Struct(">Q")
_TIME: Final = struct.Struct(">q")
_DOUBLE: Final = struct.Struct(">d")
_LENGTH_MAX: Final = 2**32 - 1


class Buf:
    """Bytes that are packed at the end and unpacked from ``offset`` on.

    Reading past the end, or reading what was never packed, raises `SlurmError` and leaves
    ``offset`` where it was: a caller may report how far it came. Packing a value that does not fit
    raises ValueError and packs nothing.

    A buffer starts empty, or with *data* to be read. Creating one allocates nothing further.
    """

    __slots__ = ("_data", "_offset", "_version")

    _data: bytes | bytearray
    _offset: int
    _version: int | None

    def __init__(
        self, data: bytes | bytearray | memoryview = b"", *, version: int | None = None
    ) -> None:
        """Start with *data*; it is copied unless it is ``bytes`` already."""
        self._data = data if type(data) is bytes else bytes(data)
        self._offset = 0
        self._version = version

    @property
    def version(self) -> int | None:
        """The `plugin_version` of the plugin that packed it; None for what no message brought."""
        return self._version

    def __delattr__(self, name: str) -> None:
        """Refuse: a buffer is whole."""
        raise AttributeError(f"a Buf keeps its {name}")

    @property
    def size(self) -> int:
        """Number of bytes in the buffer, read or not."""
        return len(self._data)

    @property
    def offset(self) -> int:
        """Where the next unpack reads."""
        return self._offset

    @offset.setter
    def offset(self, position: int) -> None:
        if not 0 <= position <= len(self._data):
            msg = f"offset {position} is outside the buffer: it holds {len(self._data)} bytes"
            raise ValueError(msg)
        self._offset = position

    @property
    def remaining(self) -> int:
        """Number of bytes still to be read."""
        return len(self._data) - self._offset

    def data(self) -> bytes:
        """Return everything in the buffer, whatever was read of it."""
        return bytes(self._data)

    def __repr__(self) -> str:
        """Say how much is in it and how much was read."""
        return f"Buf({self.size} bytes, offset {self._offset})"

    def pack8(self, value: int) -> None:
        """Append a number of 8 bits."""
        self._append(_packed(_U8, value, "pack8: a whole number from 0 to 255"))

    def pack16(self, value: int) -> None:
        """Append a number of 16 bits."""
        self._append(_packed(_U16, value, "pack16: a whole number from 0 to 65535"))

    def pack32(self, value: int) -> None:
        """Append a number of 32 bits; what C writes as -1 is INFINITE here."""
        self._append(_packed(_U32, value, "pack32: a whole number from 0 to 4294967295"))

    def pack64(self, value: int) -> None:
        """Append a number of 64 bits."""
        self._append(_packed(_U64, value, "pack64: a whole number from 0 to 2**64 - 1"))

    def packtime(self, value: int) -> None:
        """Append a time in whole seconds; unlike the other numbers it may be negative."""
        self._append(_packed(_TIME, value, "packtime: whole seconds of 64 bits"))

    def packdouble(self, value: float) -> None:
        """Append a number with a fraction; every one comes back exactly."""
        self._append(_packed(_DOUBLE, value, "packdouble: a number"))

    def packstr(self, value: str | None) -> None:
        """Append a text; None is C's NULL, which is not the empty text."""
        if value is None:
            self._append(b"\x00\x00\x00\x00")
            return
        if not isinstance(value, str):
            msg = f"packstr: expected a text or None, got {value!r}"
            raise TypeError(msg)
        if "\0" in value:
            msg = f"packstr: a text cannot hold a NUL, got {value!r}; packmem takes any bytes"
            raise ValueError(msg)
        try:
            body = value.encode() + b"\0"
        except UnicodeEncodeError:
            msg = f"packstr: expected text that UTF-8 can spell, got {value!r}"
            raise ValueError(msg) from None
        self._append(_U32.pack(_fitting_length(body)) + body)

    def packmem(self, value: bytes | bytearray | memoryview) -> None:
        """Append bytes with their length."""
        if not isinstance(value, bytes | bytearray | memoryview):
            msg = f"packmem: expected bytes, got {value!r}"
            raise TypeError(msg)
        body = bytes(value)
        self._append(_U32.pack(_fitting_length(body)) + body)

    def unpack8(self) -> int:
        """Take a number of 8 bits."""
        return self._number(_U8)

    def unpack16(self) -> int:
        """Take a number of 16 bits."""
        return self._number(_U16)

    def unpack32(self) -> int:
        """Take a number of 32 bits."""
        return self._number(_U32)

    def unpack64(self) -> int:
        """Take a number of 64 bits."""
        return self._number(_U64)

    def unpacktime(self) -> int:
        """Take a time in seconds."""
        return self._number(_TIME)

    def unpackdouble(self) -> float:
        """Take a number with a fraction."""
        (value,) = _DOUBLE.unpack(self._take(_DOUBLE.size))
        return float(value)

    def unpackstr(self) -> str | None:
        """Take a text, or None where none was packed."""
        start = self._offset
        body = self.unpackmem()
        if not body:
            return None
        if body[-1] != 0:
            self._offset = start
            raise _damaged(start, "a text of this length does not end with a NUL")
        try:
            return body[:-1].decode()
        except UnicodeDecodeError:
            self._offset = start
            raise _damaged(start, "the text is not UTF-8") from None

    def unpackmem(self) -> bytes:
        """Take bytes that were packed with their length."""
        start = self._offset
        (length,) = _U32.unpack(self._take(_U32.size))
        try:
            return self._take(length)
        except SlurmError:
            self._offset = start
            raise

    def _append(self, piece: bytes) -> None:
        """Add *piece*; the first one turns the shared empty bytes into a buffer of our own."""
        if type(self._data) is bytes:
            self._data = bytearray(self._data)
        self._data += piece

    def _number(self, form: struct.Struct) -> int:
        (value,) = form.unpack(self._take(form.size))
        return int(value)

    def _take(self, count: int) -> bytes:
        """Return the next *count* bytes and move past them, or raise and stay."""
        start = self._offset
        end = start + count
        if end > len(self._data):
            raise _damaged(start, f"{count} bytes wanted, {self.remaining} left")
        self._offset = end
        return bytes(self._data[start:end])


class Packed(msgspec.Struct, frozen=True):
    """What a plugin has packed, as messages carry it: with the version of that plugin."""

    data: bytes = b""
    version: int = 0

    def opened(self) -> Buf:
        """Return a buffer to unpack it from."""
        return Buf(self.data, version=self.version)


def _packed(form: struct.Struct, value: float, expected: str) -> bytes:
    """Return *value* in the bytes of *form*, or say what was expected."""
    try:
        return form.pack(value)
    except (struct.error, OverflowError):
        msg = f"{expected} was expected, got {value!r}"
        raise ValueError(msg) from None


def _fitting_length(body: bytes) -> int:
    """Return the length of *body*, or raise when 32 bits cannot hold it."""
    if len(body) > _LENGTH_MAX:
        msg = f"{len(body)} bytes are too many to pack: the length has 32 bits"
        raise ValueError(msg)
    return len(body)


def _damaged(position: int, why: str) -> SlurmError:
    return SlurmError(ESLURM_PROTOCOL_INCOMPLETE_PACKET, f"cannot unpack at byte {position}: {why}")
