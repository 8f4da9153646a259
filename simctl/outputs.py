"""Write the files that people ask for: nothing is written over, and none is there by halves.

A regular file that is there already, and that simctl did not write as the same kind of output, is
left alone. A regular file is written beside, as `NAME.part`, and gets its name once it is whole.
Devices and pipes are written as they are.
"""

import errno
import gzip
import os
import stat
import zlib
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO, Final, NamedTuple, Self, cast

from simctl.files import open_to_write

_HEAD: Final = 1 << 16
_NAME: Final = 60
_NOT_FILES: Final = (Path("/dev"), Path("/proc"))
"""Where names are those of open files and devices, whatever they lead to."""


class Kind(NamedTuple):
    """A kind of output, and how a file tells that it is one."""

    what: str
    marks: tuple[bytes, ...]
    """What one of its lines begins with."""

    def has(self, path: Path) -> bool:
        """Return whether a file is such an output, or empty, so that nothing is lost with it."""
        with path.open("rb") as file:
            head = file.read(_HEAD)
        if head.startswith(b"\x1f\x8b"):
            try:
                head = zlib.decompressobj(31).decompress(head, _HEAD)
            except zlib.error:
                return False
        lines = [line.lstrip() for line in head.split(b"\n")]
        return not head or any(line.startswith(self.marks) for line in lines)


TRACE: Final = Kind("trace", (b'{"simctl_trace":',))
REPORT: Final = Kind("JUnit report", (b'<testsuite name="simctl"',))
FIND: Final = Kind("find", (b"# Found by `simctl explore", b"# Found by `simctl swarm"))
SESSION: Final = Kind("session", (b"# A session of simctl repl, saved",))
SCENARIO: Final = Kind("scenario", ())
"""None is known for ours: a site goes on writing what was imported."""


class TakenError(OSError):
    """A file is there that is not ours to replace."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(
            errno.EEXIST,
            f"it is there already, and is no {kind.what} that simctl wrote; it is left alone: name "
            "another file, remove it, or say --force",
        )


def place_of(path: str | Path, kind: Kind, *, force: bool = False) -> Path | None:
    """Return where the file lies that *path* names; None for devices, pipes and folders.

    Raises:
        OSError: Something else is there, or it cannot be looked at.
    """
    path = Path(path)
    if any(path.is_relative_to(each) for each in _NOT_FILES):
        return None
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return Path(os.path.realpath(path))
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, f"no file has such a name ({error})") from None
    if not stat.S_ISREG(mode):
        return None
    if not force and not kind.has(path):
        raise TakenError(kind)
    return Path(os.path.realpath(path))


_under_way: Final[dict[Path, None]] = {}
"""Files that have not got their names yet."""


def beside(place: Path) -> Path:
    """Make the file that becomes *place*, and return its name; `named` or `dropped` comes next.

    Raises:
        OSError: It cannot be made.
    """
    for number in count(1):
        name = f"{place.name[:_NAME]}{'' if number == 1 else f'.{number}'}.part"
        part = place.with_name(name)
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        except FileExistsError:
            continue
        if place.exists():
            part.chmod(stat.S_IMODE(place.stat().st_mode))
        _under_way[part] = None
        return part
    raise AssertionError  # pragma: no cover - counting does not end


def named(part: Path, place: Path) -> None:
    """Give a file its name: it is whole.

    Raises:
        OSError: It cannot have that name.
    """
    part.replace(place)
    _under_way.pop(part, None)


def dropped(part: Path) -> None:
    """Take away a file that does not become whole."""
    part.unlink(missing_ok=True)
    _under_way.pop(part, None)


def drop_all() -> None:
    """Take away what this process has under way, which ends here and now."""
    for part in _under_way:
        with suppress(OSError):
            part.unlink(missing_ok=True)


class Output:
    """A file under way; without `keep` nothing of it remains."""

    def __init__(self, path: str | Path, kind: Kind, *, force: bool = False) -> None:
        """Open it.

        Raises:
            OSError: It cannot be written, or something else is there.
        """
        self._place = place_of(path, kind, force=force)
        self._part = None if self._place is None else beside(self._place)
        self._raw = open_to_write(self._part or path)
        self.stream: IO[bytes] = self._raw
        if str(path).endswith(".gz"):
            # A fixed time stamp, so that equal traces are equal files.
            packed = gzip.GzipFile(filename="", fileobj=self._raw, mode="wb", mtime=0)
            self.stream = cast("IO[bytes]", packed)

    def keep(self) -> None:
        """Give the file its name: it is whole.

        Raises:
            OSError: It could not be written to its end.
        """
        self.stream.close()
        self._raw.close()
        if self._part is not None and self._place is not None:
            named(self._part, self._place)
            self._part = None

    def __enter__(self) -> Self:
        """Return itself; it is open already."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Take away what was not kept."""
        if self._part is not None:
            dropped(self._part)
        for each in (self.stream, self._raw):
            # What could not be written is told where it was, and goes with the file.
            with suppress(OSError):
                each.close()


def write_output(path: str | Path, kind: Kind, data: bytes, *, force: bool = False) -> None:
    """Write a whole file.

    Raises:
        OSError: It cannot be written, or something else is there.
    """
    with Output(path, kind, force=force) as output:
        output.stream.write(data)
        output.keep()
