"""The files of a served cluster: the machine's own, beside those that only daemons have."""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from simctl.kernel.disk import Disk, DiskView, Stat
from simctl.kernel.procs import Host
from simctl.scenario.model import FileSeen
from simctl.serve.recording import Recorder
from simctl.site import User
from simctl.world.outside import place

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
        self.now_us: Callable[[], int] = lambda: 0
        self.recorder: Recorder | None = None
        """Told of what a simulated disk, which lies behind this one, would show otherwise."""

        self.hosts: Mapping[str, Host] = {}

    def open_to_machine(self, kept_below: tuple[str, ...], users: Mapping[str, User]) -> None:
        """Show the machine's files from now on, save below folders that daemons keep."""
        self._kept_below = tuple(f"{path.rstrip('/')}/" for path in kept_below)
        self._placed = frozenset(path for _, path in self._files)
        self._users = users
        self._open = True

    def is_real(self, path: str) -> bool:
        """Return whether an absolute path is one of the machine's."""
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

    def same(
        self, found: object, simulated: Callable[[], object], seen: Callable[[], list[FileSeen]]
    ) -> None:
        """Let the simulated disk behind this one answer a question as the machine has.

        *found* is the answer, or an errno; *simulated* asks the other disk. *seen* tells what has
        to be there for that, which is recorded.
        """
        if self.recorder is None or outcome(simulated) == found:
            return
        for each in seen():
            place(self, each, self.hosts)
            self.recorder.note(self.now_us(), each)
        outcome(simulated)

    def view(self, host: str, uid: int, work_dir: str = "") -> "MachineView":
        """Return the files as a process of user *uid* on *host* sees them."""
        return MachineView(self, host, uid, work_dir)

    def may_enter(self, path: str, host: str, uid: int) -> bool:
        """Return whether a process of *uid* on *host* can go to a directory (an absolute path)."""
        if not self.is_real(path):
            return super().may_enter(path, host, uid)
        with self.as_user(uid):
            may = os.path.isdir(path) and os.access(path, os.X_OK, effective_ids=True)
        simulated = DiskView(self, host, uid)
        self.same(
            may,
            lambda: simulated.is_dir(path),
            lambda: [FileSeen(path=path, mode=0o755, is_dir=may)],
        )
        return may

    def is_directory(self, path: str, host: str = "login") -> bool:
        """Return whether *path* (absolute) is a directory."""
        if not self.is_real(path):
            return super().is_directory(path, host)
        found = os.path.isdir(path)
        self.same(
            found,
            lambda: Disk.is_directory(self, path, host),
            lambda: [FileSeen(path=path, mode=0o755, is_dir=found)],
        )
        return found

    def read(self, path: str, work_dir: str = "/", *, host: str = "login") -> str | None:
        """Return a file's text; None when there is no such file."""
        where = self.resolve(path, work_dir)
        if not self.is_real(where):
            return super().read(path, work_dir, host=host)
        try:
            text = read_file(where).decode(errors="replace")
        except OSError:
            text = None
        self.same(
            text,
            lambda: Disk.read(self, where, host=host),
            lambda: [FileSeen(path=where, text=text)],
        )
        return text

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
        if self.is_real(where):
            self.store(where, text.encode(errors="surrogateescape"), uid, append=append)
            return
        super().write(path, text, work_dir, append=append, host=host, uid=uid, by_hand=by_hand)

    def store(self, path: str, data: bytes, uid: int, *, append: bool, mode: int = 0o666) -> None:
        """Write to a file of the machine with the rights of a user."""
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC)
        with self.as_user(uid):
            if not (append and data):
                _check_no_fifo(path)
            descriptor = os.open(path, flags | os.O_NONBLOCK, mode)
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)


class MachineView(DiskView):
    """The files that one process sees: the machine's, by the operating system's word alone."""

    __slots__ = ("_machine", "_simulated")

    def __init__(self, disk: MachineDisk, host: str, uid: int, work_dir: str = "") -> None:
        super().__init__(disk, host, uid, work_dir)
        self._machine = disk
        self._simulated = DiskView(disk, host, uid, work_dir)

    def _real(self, path: str) -> str:
        """Return the absolute path of a file of the machine; "" for one that is simulated."""
        where = self._resolve(path)
        return where if self._machine.is_real(where) else ""

    def is_fifo(self, path: str) -> bool:
        """Return whether a path is a fifo, which its own writer opens."""
        try:
            with self._machine.as_user(self._uid):
                return stat.S_ISFIFO(os.stat(self._real(path) or os.devnull).st_mode)
        except OSError:
            return False

    def _ask(
        self,
        where: str,
        real: Callable[[], T],
        simulated: Callable[[], object],
        seen: Callable[[T], FileSeen],
        *,
        key: Callable[[T], object] = lambda found: found,
    ) -> T:
        """Ask the machine with the user's rights, and have a recording know of the answer."""
        try:
            with self._machine.as_user(self._uid):
                found = real()
        except OSError as error:
            number = error.errno or 0
            self._machine.same(number, simulated, lambda: [_refused(where, number)])
            raise
        self._machine.same(key(found), simulated, lambda: [seen(found)])
        return found

    def read(self, path: str, seen: int = 0, most: int | None = None) -> bytes:
        """Return what a file holds, or *most* bytes, without the first bytes, which were *seen*."""
        where = self._real(path)
        if not where:
            return super().read(path, seen, most)
        return self._ask(
            where,
            lambda: read_file(where),
            lambda: self._simulated.read(where),
            lambda data: FileSeen(
                path=where, uid=self._uid, text=data.decode(errors="surrogateescape")
            ),
        )[seen : None if most is None else seen + most]

    def stat(self, path: str) -> Stat:
        """Return what is known of a file or directory."""
        where = self._real(path)
        if not where:
            return super().stat(path)

        def real() -> Stat:
            found = os.stat(where)
            is_dir = stat.S_ISDIR(found.st_mode)
            size, mode = 0 if is_dir else found.st_size, found.st_mode & 0o7777
            return Stat(size=size, uid=found.st_uid, mode=mode, is_dir=is_dir)

        return self._ask(
            where,
            real,
            lambda: self._simulated.stat(where).is_dir,
            lambda found: FileSeen(
                path=where,
                uid=found.uid,
                mode=found.mode,
                is_dir=found.is_dir,
                text=None if found.is_dir else "",
            ),
            key=lambda found: found.is_dir,
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
        self._ask(
            where,
            lambda: os.mkdir(where, mode),
            lambda: self._simulated.mkdir(where, mode),
            lambda _: FileSeen(path=where, uid=self._uid, mode=mode, is_dir=True),
        )

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with nothing in it."""
        where = self._real(path)
        if not where:
            super().remove(path)
            return
        self._ask(
            where,
            lambda: (os.rmdir if os.path.isdir(where) else os.remove)(where),
            lambda: self._simulated.remove(where),
            lambda _: FileSeen(path=where),
        )

    def rename(self, path: str, to: str) -> None:
        """Give a file another name, in the place of whatever file has that."""
        where, there = self._real(path), self._real(to)
        if not where or not there:
            super().rename(path, to)
            return
        with self._machine.as_user(self._uid):
            os.replace(where, there)

    def _store(self, where: str, data: bytes | str, mode: int, *, keep: bool) -> None:
        machine = self._machine
        if not machine.is_real(where):
            super()._store(where, data, mode, keep=keep)
            return
        new = data.encode(errors="surrogateescape") if isinstance(data, str) else bytes(data)

        def simulated() -> None:
            (self._simulated.append if keep else self._simulated.write)(where, new, mode)

        try:
            machine.store(where, new, self._uid, append=keep, mode=mode)
        except OSError as error:
            number = error.errno or 0
            machine.same(number, simulated, lambda: [_refused(where, number)])
            raise
        parent = os.path.dirname(where)
        machine.same(
            None,
            simulated,
            lambda: [
                FileSeen(path=where),
                FileSeen(path=parent, uid=self._uid, mode=0o755, is_dir=True),
            ],
        )


def outcome(ask: Callable[[], object]) -> object:
    """Return the answer to a question, or the errno of a refusal."""
    try:
        return ask()
    except OSError as error:
        return error.errno


def _refused(path: str, number: int) -> FileSeen:
    """Return what has to be at a path, or where it would be, for an error."""
    if number == errno.EISDIR:
        return FileSeen(path=path, mode=0o755, is_dir=True)
    if number == errno.EACCES:
        return FileSeen(path=path, mode=0, text="")
    return FileSeen(path=path)


def _check_no_fifo(path: str) -> None:
    """Check that a path is no pipe, which would have to be waited for, and kept open.

    Raises:
        OSError: It is one.
    """
    with suppress(FileNotFoundError):
        if stat.S_ISFIFO(os.stat(path).st_mode):
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), path)


def read_file(path: str) -> bytes:
    """Return what a file holds; devices are not waited for.

    Raises:
        OSError: It cannot be read, or holds too much.
    """
    _check_no_fifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(_MOST_BYTES + 1) or b""
    if len(data) > _MOST_BYTES:
        raise OSError(errno.EFBIG, "File too large", path)
    return data
