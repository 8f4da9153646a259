"""What the records of the bundled switch plugins have in common: a magic number and a version.

Both lead every packed record. A record that is not one, or not of this version, is told by errno;
one that is damaged leaves its reader, the buffer and the record to be filled as they were.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs

from simctl.plugin import Buf, SlurmError, disk, errno

NO_MAGIC: Final = 0
"""The magic number of a record that was released: a plugin that uses it after that is told."""

_T = TypeVar("_T")


@attrs.frozen(kw_only=True)
class Form:
    """What a packed record begins with, and the errors of one that does not."""

    magic: int
    bad_magic: int
    bad_version: int
    damaged: int
    name: str


def check(form: Form, record: object) -> None:
    """Refuse a record with another magic number, or none at all: C's NULL.

    Raises:
        SlurmError: `form.bad_magic`.
    """
    _check_magic(form, getattr(record, "magic", NO_MAGIC))


def spoil(record: Any) -> None:
    """Take a record its magic number, so that later uses are told; NULL has none."""
    if record is not None:
        record.magic = NO_MAGIC


def _check_magic(form: Form, magic: int) -> None:
    if magic != form.magic:
        raise SlurmError(form.bad_magic, f"{form.name}: magic {magic:#x}, not {form.magic:#x}")


def pack(form: Form, version: int, buffer: Buf, write: Callable[[Buf], None]) -> int:
    """Append a record, as *write* spells it, after its head; return how many bytes that were."""
    before = buffer.size
    buffer.pack32(form.magic)
    buffer.pack32(version)
    write(buffer)
    return buffer.size - before


def unpack(form: Form, version: int, buffer: Buf, read: Callable[[Buf], _T]) -> _T:
    """Take a record whose body *read* understands.

    Raises:
        SlurmError: It has another magic number or version, or is damaged; the buffer is where it
            was.
    """
    start = buffer.offset
    try:
        return _unpack(form, version, buffer, read)
    except SlurmError:
        buffer.offset = start
        raise


def _unpack(form: Form, version: int, buffer: Buf, read: Callable[[Buf], _T]) -> _T:
    _check_magic(form, _or_damaged(form, buffer, Buf.unpack32))
    found = _or_damaged(form, buffer, Buf.unpack32)
    if found != version:
        raise SlurmError(
            form.bad_version, f"{form.name}: version {found}, this plugin reads {version}"
        )
    return _or_damaged(form, buffer, read)


def _or_damaged(form: Form, buffer: Buf, read: Callable[[Buf], _T]) -> _T:
    try:
        return read(buffer)
    except SlurmError as error:
        if error.errno == form.damaged:
            raise
        raise SlurmError(form.damaged, f"{form.name}: {error}") from error


def save(path: str, data: bytes, failure: int) -> None:
    """Write a state file whole or not at all, for its owner's eyes alone.

    Raises:
        SlurmError: *failure*: it cannot be written.
    """
    files = disk()
    try:
        files.write(f"{path}.new", data, mode=0o600)
        files.rename(f"{path}.new", path)
    except OSError as error:
        raise SlurmError(failure, str(error)) from error


def load(path: str, failure: int) -> bytes | None:
    """Return what a state file holds; None when there is none.

    Raises:
        SlurmError: *failure*: it cannot be read.
    """
    try:
        return disk().read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SlurmError(failure, str(error)) from error


def cut(text: str, size: int) -> str:
    """Return as much of *text* as C writes into *size* bytes, of which the last ends it."""
    return text.encode()[: max(size - 1, 0)].decode(errors="ignore")


def parameter(text: object, name: str, most: int) -> int:
    """Return the number that slurm.conf's SwitchParameters gives, such as ``contexts=8``.

    Args:
        text: SwitchParameters as it stands; nothing else may be in it.
        name: The parameter's name.
        most: The largest number that can be given; what holds if none is.

    Raises:
        SlurmError: EINVAL: something else is there.
    """
    found = most
    for word in filter(None, (each.strip() for each in str(text).split(","))):
        key, _, value = word.partition("=")
        if key.casefold() != name or not value.isdecimal() or not 0 < int(value) <= most:
            raise SlurmError(
                errno.EINVAL, f"SwitchParameters: {word!r}; expected {name}=N, from 1 to {most}"
            )
        found = int(value)
    return found
