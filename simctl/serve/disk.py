"""The files of a served cluster: the machine's own, beside those that only daemons have."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from simctl.kernel.disk import Disk, DiskView, Stat
from simctl.site import User

T = TypeVar("T")

_MOST_BYTES: Final = 64 << 20
"""How much of a file is read at most: scripts, host files, what srun --input names."""


class MachineDisk(Disk):
    """Files of the machine, the same on every host, as soon as the cluster is `open_to_machine`.

    What was put there before, and all below the folders that daemons keep for themselves, is
    simulated as ever. The operating system decides what a user may do: as root each file is opened
    with the user's own rights, so that no link leads root astray.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open = False
        self._kept_below: tuple[str, ...] = ()
        self._placed: frozenset[str] = frozenset()
        self._users: Mapping[str, User] = {}
        self.tell_seen: Callable[[str, int, bytes | None], None] | None = None
        """Told of each look at the machine: the path, the user's id, what a file held (None: it
        was not read)."""

    def open_to_machine(self, kept_below: tuple[str, ...], users: Mapping[str, User]) -> None:
        """Show the machine's files from now on, save below folders that daemons keep."""
        self._kept_below = tuple(f"{path.rstrip('/')}/" for path in kept_below)
        self._placed = frozenset(path for _, path in self._files)
        self._users = users
        self._open = True

    def is_real(self, path: str) -> bool:
        """Tell whether an absolute path is one of the machine's."""
        return (
            self._open and path not in self._placed and not f"{path}/".startswith(self._kept_below)
        )

    @contextmanager
    def as_user(self, uid: int) -> Iterator[None]:
        """Act with the rights of a user, where this process is root's."""
        if uid == os.geteuid() or os.geteuid() != 0:
            yield
            return
        groups = os.getgroups()
        gid, its_groups = self.groups_of(uid)
        os.setgroups(its_groups)
        os.setegid(gid)
        os.seteuid(uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(os.getgid())
            os.setgroups(groups)

    def groups_of(self, uid: int) -> tuple[int, list[int]]:
        """Return the group of a user, and all groups that the machine knows the user to be in."""
        for user in self._users.values():
            if user.uid == uid:
                return user.gid, os.getgrouplist(user.name, user.gid)
        return uid, []

    def view(self, host: str, uid: int, work_dir: str = "") -> "MachineView":
        """Return the files as a process of user *uid* on *host* sees them."""
        return MachineView(self, host, uid, work_dir)

    def may_enter(self, path: str, host: str, uid: int) -> bool:
        """Tell whether a process of *uid* on *host* can go to a directory (an absolute path)."""
        if not self.is_real(path):
            return super().may_enter(path, host, uid)
        with self.as_user(uid):
            return os.path.isdir(path) and os.access(path, os.X_OK, effective_ids=True)

    def is_directory(self, path: str, host: str = "login") -> bool:
        """Tell whether *path* (absolute) is a directory."""
        return os.path.isdir(path) if self.is_real(path) else super().is_directory(path, host)

    def read(self, path: str, work_dir: str = "/", *, host: str = "login") -> str | None:
        """Return a file's text; None when there is no such file."""
        where = self.resolve(path, work_dir)
        if not self.is_real(where):
            return super().read(path, work_dir, host=host)
        try:
            return read_file(where).decode(errors="replace")
        except OSError:
            return None

    def write(
        self,
        path: str,
        text: str,
        work_dir: str = "/",
        *,
        append: bool = False,
        host: str = "login",
        uid: int = 0,
        by_hand: bool = False,
    ) -> None:
        """Write or append to a file, making it for *uid*.

        Raises:
            OSError: It cannot be written.
        """
        where = self.resolve(path, work_dir)
        if not self.is_real(where):
            super().write(path, text, work_dir, append=append, host=host, uid=uid, by_hand=by_hand)
            return
        self.store(where, text.encode(errors="surrogateescape"), uid, append=append)

    def store(self, path: str, data: bytes, uid: int, *, append: bool, mode: int = 0o666) -> None:
        """Write to a file of the machine with the rights of a user."""
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC)
        with self.as_user(uid):
            descriptor = os.open(path, flags | os.O_NONBLOCK, mode)
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)


class MachineView(DiskView):
    """The files that one process sees: the machine's, by the operating system's word alone."""

    __slots__ = ("_machine",)

    def __init__(self, disk: MachineDisk, host: str, uid: int, work_dir: str = "") -> None:
        super().__init__(disk, host, uid, work_dir)
        self._machine = disk

    def _real(self, path: str) -> str:
        """Return the absolute path of a file of the machine; "" for one that is simulated."""
        where = self._resolve(path)
        return where if self._machine.is_real(where) else ""

    def read(self, path: str) -> bytes:
        """Return what a file holds."""
        where = self._real(path)
        if not where:
            return super().read(path)
        with self._machine.as_user(self._uid):
            data = read_file(where)
        if self._machine.tell_seen is not None:
            self._machine.tell_seen(where, self._uid, data)
        return data

    def stat(self, path: str) -> Stat:
        """Return what is known of a file or directory."""
        where = self._real(path)
        if not where:
            return super().stat(path)
        with self._machine.as_user(self._uid):
            found = os.stat(where)
        is_dir = stat.S_ISDIR(found.st_mode)
        return Stat(
            size=0 if is_dir else found.st_size,
            uid=found.st_uid,
            mode=found.st_mode & 0o7777,
            is_dir=is_dir,
        )

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        where = self._real(path)
        if not where:
            return super().listdir(path)
        with self._machine.as_user(self._uid):
            return sorted(os.listdir(where))

    def mkdir(self, path: str, mode: int = 0o755) -> None:
        """Make a directory; the one it is in must be there."""
        where = self._real(path)
        if not where:
            super().mkdir(path, mode)
            return
        with self._machine.as_user(self._uid):
            os.mkdir(where, mode)

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with nothing in it."""
        where = self._real(path)
        if not where:
            super().remove(path)
            return
        with self._machine.as_user(self._uid):
            (os.rmdir if os.path.isdir(where) else os.remove)(where)

    def rename(self, path: str, to: str) -> None:
        """Give a file another name, in the place of whatever file has that."""
        where, there = self._real(path), self._real(to)
        if not where or not there:
            super().rename(path, to)
            return
        with self._machine.as_user(self._uid):
            os.replace(where, there)

    def _store(self, where: str, data: bytes | str, mode: int, *, keep: bool) -> None:
        if not self._machine.is_real(where):
            super()._store(where, data, mode, keep=keep)
            return
        new = data.encode(errors="surrogateescape") if isinstance(data, str) else bytes(data)
        self._machine.store(where, new, self._uid, append=keep, mode=mode)


def read_file(path: str) -> bytes:
    """Return what a file holds; pipes and devices are not waited for.

    Raises:
        OSError: It cannot be read, or holds too much.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(_MOST_BYTES + 1) or b""
    if len(data) > _MOST_BYTES:
        raise OSError(27, "File too large", path)
    return data
