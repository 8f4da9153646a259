"""Files of the simulated disk that a compiled plugin has open: each lies in memory meanwhile."""

import os
from contextlib import suppress
from typing import Final

from simctl.api.reach import reach_of
from simctl.kernel.disk import DiskView
from simctl.kernel.procs import Process

_FULL: Final = "/dev/full"
_MODE_BITS: Final = 0o7777
_UMASK: Final = 0o022
_IS_DIR: Final = 0o040000
_IS_FILE: Final = 0o100000


class OpenFile:
    """A file that a plugin has open: what it holds lies in memory that host and simctl share."""

    __slots__ = ("_changed", "_fd", "_held", "_path", "_view")

    def __init__(self, view: DiskView, path: str, fd: int, held: bytes) -> None:
        self._view = view
        self._path = path
        self._fd = fd
        self._held = held
        self._changed = (-1, -1)
        """Its size and when it was written to last, as they were taken in."""

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._fd)

    @property
    def inode(self) -> int:
        """The number by which the host knows it."""
        return os.fstat(self._fd).st_ino

    @property
    def size(self) -> int:
        """How many bytes it had when it was last taken in."""
        return len(self._held)

    def take_in(self, *, written: bool = False) -> None:
        """Have the simulated disk hold what has changed since; one that is full loses it.

        Where only what was *written* counts, changes through a mapping wait for another time.
        """
        found = os.fstat(self._fd)
        changed = (found.st_size, found.st_mtime_ns)
        if written and changed == self._changed:
            return
        self._changed = changed
        data = os.pread(self._fd, found.st_size, 0)
        if data == self._held:
            return
        with suppress(OSError):
            if data[: len(self._held)] == self._held and self._view.exists(self._path):
                self._view.append(self._path, data[len(self._held) :])
            else:
                self._view.write(self._path, data)
        self._held = data


def view_of(process: Process) -> DiskView:
    """Return the files as a process sees them."""
    return reach_of(process).disk.view(process.host.name, process.euid, "/")


def open_file(process: Process, path: str, flags: int, mode: int) -> tuple[int, OpenFile | None]:
    """Open a file as open(2) does.

    Returns:
        A descriptor for the host, and what is to be watched for writes.

    Raises:
        OSError: As open(2) fails.
    """
    if path == os.devnull:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC), None
    view = view_of(process)
    writes = flags & os.O_ACCMODE != os.O_RDONLY
    held = b""
    if view.exists(path):
        if flags & os.O_CREAT and flags & os.O_EXCL:
            raise FileExistsError(17, "File exists", path)
        if writes:
            view.append(path, b"")
        if not writes or not flags & os.O_TRUNC:
            held = view.read(path)
        elif view.stat(path).size:
            view.write(path, b"")
    elif flags & os.O_CREAT:
        view.write(path, b"", mode & _MODE_BITS & ~_UMASK)
    else:
        view.stat(path)
    if writes and _is_full(process, path):
        return os.open(_FULL, os.O_RDWR | os.O_CLOEXEC), None
    fd = os.memfd_create("simulated", os.MFD_CLOEXEC)
    os.write(fd, held)
    if not writes:
        return fd, None
    return fd, OpenFile(view, path, os.dup(fd), held)


def _is_full(process: Process, path: str) -> bool:
    disk = reach_of(process).disk
    if not disk.troubles:
        return False
    try:
        disk.check_room(process.host.name, path)
    except OSError:
        return True
    return False


def stat_numbers(process: Process, path: str) -> tuple[int, int, int]:
    """Return mode, owner and size of what is at a path.

    Raises:
        OSError: There is nothing.
    """
    found = view_of(process).stat(path)
    kind = _IS_DIR if found.is_dir else _IS_FILE
    return kind | found.mode, found.uid, found.size
