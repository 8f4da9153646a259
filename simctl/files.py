"""Read what people hand in: whole files up to a bound, packed with gzip or not, pipes too.

What is too large, or never comes, is an OSError like any other reason why a file cannot be read:
its `strerror` says what stood in the way, and what would do.
"""

import errno
import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from simctl.limits import LINE_BYTES, MIB, SILENCE_S, TEXT_BYTES

_CHUNK: Final = 1 << 18
_GZIP: Final = b"\x1f\x8b"
_WITH_GZIP_HEAD: Final = 31  # as zlib calls a stream with the head and tail of gzip


class TooLargeError(OSError):
    """A file is beyond a bound."""

    def __init__(self, problem: str) -> None:
        super().__init__(errno.EFBIG, f"{problem}, the most that is read")


_NOTED: Final[list[dict[Path, None]]] = []
"""What notes files that are read, innermost last."""


@contextmanager
def noting() -> Iterator[dict[Path, None]]:
    """Have the files noted that are read here meanwhile, as they were named, in their order."""
    found: dict[Path, None] = {}
    _NOTED.append(found)
    try:
        yield found
    finally:
        _NOTED.pop()


def size(count: int) -> str:
    """Write a bound for people."""
    return f"{count // MIB} MiB"


def read_bytes(path: str | Path, most: int = TEXT_BYTES, *, packed: bool = False) -> bytes:
    """Return what a file holds, of *most* bytes at most; with *packed*, gzip is undone.

    Raises:
        OSError: It cannot be read, is too large, its gzip is damaged, or nothing comes.
    """
    gathered = bytearray()
    for chunk in _chunks(path, most, packed=packed):
        gathered += chunk
    return bytes(gathered)


def unpack(data: bytes, most: int) -> bytes:
    """Return *data* without its gzip packing, if it has one.

    Raises:
        OSError: It is damaged, or becomes larger than *most*.
    """
    return b"".join(_bounded(_unpacked(iter((data,))), most, " unpacked"))


def read_text(path: str | Path, most: int = TEXT_BYTES) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark.

    Raises:
        OSError: As of `read_bytes`.
        UnicodeDecodeError: It is no such text.
    """
    text = read_bytes(path, most).decode("utf-8-sig")
    return io.IncrementalNewlineDecoder(None, translate=True).decode(text, final=True)


def read_script(path: str | Path) -> str:
    """Return the text of a script of a site: in UTF-8, or else in Latin-1, as old comments are.

    Raises:
        OSError: As of `read_bytes`.
    """
    try:
        return read_text(path)
    except UnicodeDecodeError:
        text = read_bytes(path).decode("latin-1")
        return io.IncrementalNewlineDecoder(None, translate=True).decode(text, final=True)


def read_lines(path: str | Path, most: int) -> Iterator[bytes]:
    r"""Yield the lines of a file, gzipped or not, without their ends; `-` is standard input.

    Raises:
        OSError: As of `read_bytes`, or a line is too long.
    """
    rest = bytearray()
    number = 1
    for chunk in _chunks(path, most, packed=True):
        rest += chunk
        if b"\n" in chunk:
            *lines, last = rest.split(b"\n")
            for line in lines:
                yield bytes(line)
            number += len(lines)
            rest = last
        if len(rest) > LINE_BYTES:
            raise TooLargeError(f"line {number} is longer than {size(LINE_BYTES)}")
    if rest:
        yield bytes(rest)


def _chunks(path: str | Path, most: int, *, packed: bool) -> Iterator[bytes]:
    source = _raw(path)
    return _bounded(_unpacked(source) if packed else source, most, " unpacked" * packed)


def open_to_write(path: str | Path) -> IO[bytes]:
    """Open a file to write it anew; a pipe without a reader is not waited for.

    Raises:
        OSError: It cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        number = os.open(path, flags | os.O_NONBLOCK, 0o666)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, f"no file has such a name ({error})") from None
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "nobody reads this pipe") from None
        raise
    os.set_blocking(number, True)
    return os.fdopen(number, "wb")


def _bounded(source: Iterator[bytes], most: int, how: str) -> Iterator[bytes]:
    total = 0
    for chunk in source:
        total += len(chunk)
        if total > most:
            raise TooLargeError(f"it is larger than {size(most)}{how}")
        yield chunk


def _unpacked(source: Iterator[bytes]) -> Iterator[bytes]:
    """Undo gzip piece by piece, so that a small file cannot fill the memory."""
    first = next(source, b"")
    if not first.startswith(_GZIP):
        yield first
        yield from source
        return
    undo = zlib.decompressobj(_WITH_GZIP_HEAD)
    data = first
    while data:
        try:
            yield undo.decompress(data, _CHUNK)
        except zlib.error as error:
            raise _damaged(str(error)) from None
        data = undo.unconsumed_tail
        if undo.eof:
            data = undo.unused_data.lstrip(b"\0") or next(source, b"").lstrip(b"\0")
            if data and not data.startswith(_GZIP[: len(data)]):
                raise _damaged("something else follows it")
            undo = zlib.decompressobj(_WITH_GZIP_HEAD) if data else undo
        else:
            data = data or next(source, b"")
    if not undo.eof:
        raise _damaged("it ends too early")


def _damaged(why: str) -> OSError:
    return OSError(errno.EIO, f"the gzip data is damaged ({why})")


def _raw(path: str | Path) -> Iterator[bytes]:
    """Yield what is in a file; a pipe without a writer ends, or is given up on."""
    if str(path) == "-":
        yield from iter(lambda: sys.stdin.buffer.read(_CHUNK), b"")
        return
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, f"no file has such a name ({error})") from None
    try:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        for noted in _NOTED:
            noted[Path(path)] = None
        yield from _read(number)
    finally:
        os.close(number)


def _read(number: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(number, _CHUNK)
        except BlockingIOError:
            if not select.select([number], [], [], SILENCE_S)[0]:
                raise OSError(
                    errno.ETIMEDOUT, f"nothing came through this pipe for {SILENCE_S:g} s"
                ) from None
            continue
        if not chunk:
            return
        yield chunk
