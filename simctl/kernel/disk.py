"""Simulated disks: what each host has of its own, and what all of them share.

/home, /root, /shared and /scratch are one for all hosts; everything else is a host's own. Files
have an owner and a mode, and what a process may not do is refused as an operating system refuses
it. Groups are not simulated: for a user who is not the owner the rights of others count.
"""

import posixpath
import random
from collections.abc import Callable
from errno import (
    EACCES,
    EEXIST,
    EINVAL,
    EISDIR,
    ENAMETOOLONG,
    ENOENT,
    ENOSPC,
    ENOTDIR,
    ENOTEMPTY,
    EPERM,
    EROFS,
)
from functools import lru_cache
from typing import Final

import attrs

from simctl.limits import FILES_BYTES, PATH_NESTING

_SHARED: Final = ("/home", "/root", "/shared", "/scratch")
_BELOW_SHARED: Final = tuple(f"{root}/" for root in _SHARED)
_LOST_IN_A_CRASH: Final = ("/dev/shm", "/run")
_READ: Final = 4
_WRITE: Final = 2
_SEARCH: Final = 1
_STICKY: Final = 0o1000
_ROOT: Final = 0
SHARED: Final = "shared"
"""What stands for the file system that all hosts share, where its troubles are told."""

FULL: Final = "full"
READ_ONLY: Final = "read_only"

_LISTING: Final = "names"
"""Stands for which files there are."""


@attrs.frozen(kw_only=True)
class Stat:
    """What is known of a file or directory; a directory's size is 0."""

    size: int
    uid: int
    mode: int
    is_dir: bool


@attrs.define
class _File:
    data: bytes | bytearray
    """A bytearray once something was added to it: scripts write their output line by line."""
    uid: int
    mode: int

    def add(self, more: bytes) -> None:
        """Add to the end."""
        if type(self.data) is bytes:
            self.data = bytearray(self.data)
        self.data += more


@attrs.define
class _Directory:
    uid: int
    mode: int


@attrs.define
class _Kept:
    """A file that a daemon keeps up to date: what it should hold, and what it was made to hold."""

    host: str
    path: str
    made: Callable[[], bytes]
    last: bytes


_OPEN: Final = _Directory(_ROOT, 0o1777)
_CLOSED: Final = _Directory(_ROOT, 0o755)
_NO_MORE: Final = b"\n... simctl keeps no more: all files together are as large as they may be\n"
_EVERYWHERE: Final = {
    "/": _CLOSED,
    "/bin": _CLOSED,
    "/dev": _CLOSED,
    "/dev/shm": _OPEN,
    "/etc": _CLOSED,
    "/home": _CLOSED,
    "/opt": _CLOSED,
    "/root": _Directory(_ROOT, 0o700),
    "/run": _CLOSED,
    "/scratch": _OPEN,
    "/shared": _OPEN,
    "/tmp": _OPEN,
    "/usr": _CLOSED,
    "/var": _CLOSED,
    "/var/lib": _CLOSED,
    "/var/log": _CLOSED,
    "/var/spool": _CLOSED,
    "/var/tmp": _OPEN,
}
"""The directories that every host has."""

_SHOWN = 100
_Entry = _File | _Directory
_Key = tuple[str, str]


class Disk:
    """Every file of a run, by host and absolute path."""

    def __init__(self) -> None:
        self._files: dict[_Key, _File] = {}
        self._held = 0
        """How many bytes all files have together."""
        self._directories: dict[_Key, _Directory] = {}
        self._entered: dict[_Key, set[int]] = {}
        """Who was able to go to a directory, since any directory last changed."""
        self.watch: Callable[[str, bool], None] | None = None
        """Told of each path that is looked at, or changed (true)."""
        self._notes: list[list[_Key]] = []
        self.troubles: dict[str, str] = {}
        """What is wrong with disks, by host or `SHARED`: FULL or READ_ONLY."""
        self._kept: dict[_Key, _Kept] = {}
        """The files that daemons keep, each under its own path and its directory's."""
        self.mirrors: dict[_Key, Callable[[str, bytes | None], None]] = {}
        """Told of each file below a directory that is written, or removed (None)."""

    def view(self, host: str, uid: int, work_dir: str = "") -> "DiskView":
        """Return the files as a process of user *uid* on *host* sees them."""
        return DiskView(self, host, uid, work_dir)

    def own(self, path: str, uid: int, host: str = "", *, shared: bool = False) -> None:
        """Make a directory that belongs to *uid*, or give it to *uid*.

        In one that is *shared* all users may make files, as in /tmp.
        """
        self._make_parents(host, path, _ROOT)
        self._put_directory(host, path, _Directory(uid, 0o1777 if shared else 0o755))

    def set_up(
        self, host: str, path: str, *, uid: int, mode: int, data: bytes | None, is_dir: bool
    ) -> None:
        """Let there be a file or a directory at a path, or neither, as a person outside sees to."""
        if is_dir or data is not None:
            self._make_parents(host, path, _ROOT)
            entry = _Directory(uid, mode) if data is None else _File(data, uid, mode)
            self.put(host, path, entry)
        elif self.find(host, path) is not None:
            self._entered.clear()
            self.drop(host, path)

    def may_enter(self, path: str, host: str, uid: int) -> bool:
        """Return whether a process of *uid* on *host* can go to a directory (an absolute path).

        Every step asks on each of its nodes, so that the answer is remembered.
        """
        key = _key(host, path)
        if uid in self._entered.get(key, ()) and self.watch is None:
            return True
        entered = self.view(host, uid).is_dir(path)
        if entered:
            self._entered.setdefault(key, set()).add(uid)
        return entered

    def crash(self, host: str) -> None:
        """Lose what *host* keeps in memory alone."""
        self._entered.clear()
        for key in [key for key in self._files if key[0] == host and _is_below(key[1])]:
            self.count(-len(self._files.pop(key).data))
        for key in [key for key in self._directories if key[0] == host and _is_below(key[1])]:
            del self._directories[key]

    # What daemons do as root, on paths that users choose: directories that lack are made.

    def read(self, path: str, work_dir: str = "/", *, host: str = "login") -> str | None:
        """Return a file's text; None when there is no such file."""
        key = _key(host, self.resolve(path, work_dir))
        self._seen(key, changed=False)
        found = self._files.get(key)
        return None if found is None else found.data.decode(errors="replace")

    def write(
        self,
        path: str,
        text: str,
        work_dir: str = "/",
        *,
        append: bool = False,
        host: str = "login",
        uid: int = _ROOT,
        by_hand: bool = False,
    ) -> None:
        """Write or append to a file, making it and its directories for *uid*.

        Raises:
            OSError: The disk is full or read-only; not where a person outside does it *by_hand*.
        """
        where = self.resolve(path, work_dir)
        if where == "/dev/null":
            return
        key = _key(host, where)
        self._seen(key, changed=True)
        if self.troubles and not by_hand and text:
            self.check_room(host, where)
        found = self._files.get(key)
        if found is None:
            found = self._files[key] = _File(b"", uid, 0o644)
            self._make_parents(host, where, uid)
        new = text.encode()
        room = FILES_BYTES - self._held + (0 if append else len(found.data))
        if len(new) > room:
            # A daemon that writes for a user cannot fail; the end of the file says what is lost.
            new = b"" if room < 0 else _NO_MORE
        self.count(len(new) - (0 if append else len(found.data)))
        if append:
            found.add(new)
        else:
            found.data = new
        if self.mirrors:
            self.reflect(host, where, found)

    def count(self, more: int) -> None:
        """Note that files hold more bytes than before, or fewer."""
        self._held += more

    def has_room(self, more: int) -> bool:
        """Return whether files may hold so many bytes more."""
        return self._held + more <= FILES_BYTES

    def place_file(self, host: str, path: str, data: bytes, uid: int) -> None:
        """Put a file of *uid* at a path, as a person outside does before a run."""
        self._files[_key(host, path)] = _File(data, uid, 0o600)
        self.count(len(data))

    def contents(self, host: str) -> dict[str, bytes]:
        """Return what the files hold that a host has of its own, by path, sorted."""
        found = {path: file.data for (where, path), file in self._files.items() if where == host}
        return {path: bytes(found[path]) for path in sorted(found)}

    def mirror(self, host: str, path: str, tell: Callable[[str, bytes | None], None]) -> None:
        """Have every change of files below a directory told, with what they hold (None: gone)."""
        self.mirrors[_key(host, path)] = tell

    def overwrite(self, host: str, path: str, data: bytes) -> None:
        """Change what a file holds where it lies, whatever is wrong with its disk."""
        found = self._files[_key(host, path)]
        self._seen(_key(host, path), changed=True)
        self.count(len(data) - len(found.data))
        found.data = data
        self.reflect(host, path, found)

    def check_room(self, host: str, path: str) -> None:
        """Check that something may be added to the disk that holds a path.

        Raises:
            OSError: It is full, or read-only.
        """
        trouble = self.troubles.get(_key(host, path)[0] or SHARED)
        if trouble is not None:
            raise _error(EROFS if trouble == READ_ONLY else ENOSPC, path)

    def check_writable(self, host: str, path: str) -> None:
        """Check that something may be changed on the disk that holds a path.

        Raises:
            OSError: It is read-only.
        """
        if self.troubles.get(_key(host, path)[0] or SHARED) == READ_ONLY:
            raise _error(EROFS, path)

    def reflect(self, host: str, path: str, entry: _Entry | None) -> None:
        """Tell the mirror of a directory that a file in it has changed."""
        for (owner, prefix), tell in self.mirrors.items():
            if owner == _key(host, path)[0] and path.startswith(prefix + "/"):
                tell(
                    path[len(prefix) + 1 :], bytes(entry.data) if isinstance(entry, _File) else None
                )

    def _make_parents(self, host: str, path: str, uid: int) -> None:
        parent = _parent(path)
        while self.find(host, parent) is None:
            self._seen(_key(host, parent), changed=True)
            self._directories[_key(host, parent)] = _Directory(uid, 0o755)
            parent = _parent(parent)

    @staticmethod
    @lru_cache(maxsize=4096)
    def resolve(path: str, work_dir: str = "/") -> str:
        """Return *path* as an absolute one without ``.`` and ``..``."""
        resolved = posixpath.normpath(posixpath.join(work_dir, path))
        return resolved[1:] if resolved.startswith("//") else resolved

    def is_directory(self, path: str, host: str = "login") -> bool:
        """Return whether *path* (absolute) is a directory."""
        return isinstance(self.find(host, path), _Directory)

    @staticmethod
    def place(host: str, path: str) -> tuple[str, str]:
        """Return what names the file at *path*, the same for all hosts where they share it."""
        return _key(host, path)

    # What views are made of.

    def seen(self, host: str, path: str) -> None:
        """Note that what a file holds is changed where it lies."""
        self._seen(_key(host, path), changed=True)

    def _seen(self, key: _Key, *, changed: bool) -> None:
        if changed:
            for notes in self._notes:
                notes.append(key)
        if self.watch is not None:
            self.watch(":".join(key), changed)
            if changed:
                # Two that make or remove other files may change places; who lists them may not.
                self.watch(f"{key[0]}:{_LISTING}", False)

    def begin_notes(self) -> list[_Key]:
        """Return a list that grows by each path that is changed, with its host ("" if shared)."""
        self._notes.append([])
        return self._notes[-1]

    def end_notes(self, notes: list[_Key]) -> None:
        """Let a list that `begin_notes` has returned grow no more."""
        self._notes = [each for each in self._notes if each is not notes]

    def find(self, host: str, path: str) -> _Entry | None:
        """Return what is at a path, or None."""
        key = _key(host, path)
        if self.watch is not None:
            self._seen(key, changed=False)
        kept = self._kept.get(key)
        # The directory of a file that is kept is there from the first time on.
        if kept is not None and (kept.path == path or key not in self._directories):
            self._bring_up(kept)
        return self._files.get(key) or self._directories.get(key) or _EVERYWHERE.get(path)

    def data(self, host: str, path: str) -> bytes | None:
        """Return what the file at an absolute path holds; None if there is no file."""
        entry = self.find(host, path)
        return bytes(entry.data) if isinstance(entry, _File) else None

    def owner(self, host: str, path: str) -> int | None:
        """Return the uid of the owner of what is at an absolute path; None if nothing is."""
        entry = self.find(host, path)
        return None if entry is None else entry.uid

    def names(self, host: str, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        if self.watch is not None:
            self.watch(f":{_LISTING}", True)
            self.watch(f"{host}:{_LISTING}", True)
        if (kept := self._kept.get(_key(host, path))) is not None:
            self._bring_up(kept)
        prefix = path.rstrip("/") + "/"
        paths = [
            key[1]
            for store in (self._files, self._directories)
            for key in store
            if key[0] in ("", host)
        ]
        found = {
            each[len(prefix) :].partition("/")[0]
            for each in (*paths, *_EVERYWHERE)
            if each.startswith(prefix)
        }
        return sorted(found - {""})

    def put(self, host: str, path: str, entry: _Entry) -> None:
        """Put a file or directory at a path."""
        self._seen(_key(host, path), changed=True)
        if isinstance(entry, _File):
            before = self._files.get(_key(host, path))
            self.count(len(entry.data) - (0 if before is None else len(before.data)))
            self._files[_key(host, path)] = entry
            if self.mirrors:
                self.reflect(host, path, entry)
        else:
            self._put_directory(host, path, entry)

    def _put_directory(self, host: str, path: str, entry: _Directory) -> None:
        key = _key(host, path)
        if key in self._directories or path in _EVERYWHERE:
            # It may be another's now. Where there was none, no path has gone through it.
            self._entered.clear()
        self._directories[key] = entry

    def drop(self, host: str, path: str) -> None:
        """Take away what is at a path."""
        self._seen(_key(host, path), changed=True)
        gone = self._files.pop(_key(host, path), None)
        if gone is not None:
            self.count(-len(gone.data))
        if self.mirrors:
            self.reflect(host, path, None)
        # A process that could go elsewhere still can: there was nothing in it.
        self._directories.pop(_key(host, path), None)
        self._entered.pop(_key(host, path), None)

    # Files that daemons keep.

    def keep(self, host: str, path: str, made: Callable[[], bytes]) -> None:
        """Let a file hold what *made* returns whenever that has changed since now, as root's.

        It is as if it were written at each change, but it is made when it is looked at, and
        when it is settled. A disk that is full or read-only takes no changes.
        """
        kept = _Kept(host=host, path=path, made=made, last=made())
        self._kept[_key(host, path)] = kept
        self._kept[_key(host, _parent(path))] = kept

    def settle(self, host: str) -> None:
        """Let the files that daemons keep on a host, or on `SHARED`, hold what they should."""
        for kept in list(self._kept.values()):
            if (_key(kept.host, kept.path)[0] or SHARED) == host:
                self._bring_up(kept)

    def release(self, host: str, path: str) -> bool:
        """Leave a file as it is from now on; false if it does not hold what it should."""
        self._kept.pop(_key(host, _parent(path)), None)
        kept = self._kept.pop(_key(host, path), None)
        if kept is None:
            return True
        self._bring_up(kept)
        return kept.made() == kept.last

    def _bring_up(self, kept: _Kept) -> None:
        where = _key(kept.host, kept.path)[0] or SHARED
        if where in self.troubles:
            return
        data = kept.made()
        if data != kept.last:
            kept.last = data
            self._make_parents(kept.host, kept.path, _ROOT)
            self.put(kept.host, kept.path, _File(data, _ROOT, 0o600))


_parent: Final = lru_cache(maxsize=8192)(posixpath.dirname)


def is_shared(path: str) -> bool:
    """Return whether all hosts see the same file at a path."""
    return _key("host", path)[0] == ""


@lru_cache(maxsize=8192)
def _key(host: str, path: str) -> _Key:
    shared = path.startswith(_BELOW_SHARED) or path in _SHARED
    return ("" if shared else host, path)


def _is_below(path: str) -> bool:
    return any(path.startswith(root + "/") for root in _LOST_IN_A_CRASH)


class DiskView:
    """The files that one process sees; errors are those of the operating system.

    Paths are absolute, or relative to `work_dir` where the view has one.
    """

    __slots__ = ("_disk", "_host", "_uid", "_work_dir")

    def __init__(self, disk: Disk, host: str, uid: int, work_dir: str = "") -> None:
        self._disk = disk
        self._host = host
        self._uid = uid
        self._work_dir = work_dir

    def read(self, path: str, seen: int = 0, most: int | None = None) -> bytes:
        """Return what a file holds, or *most* bytes of it, without the first, which were *seen*.

        Raises:
            FileNotFoundError, PermissionError, IsADirectoryError: As `open` does.
        """
        where = self._resolve(path)
        found = self._file(where)
        self._need(found, _READ, where)
        return bytes(memoryview(found.data)[seen : None if most is None else seen + most])

    @property
    def host(self) -> str:
        """The host that the process is on."""
        return self._host

    def read_text(self, path: str) -> str:
        """Return a file's text, which is UTF-8."""
        return self.read(path).decode()

    def find_text(self, path: str) -> str | None:
        """Return a file's text; None where there is no file that the process may read."""
        try:
            return self.read(path).decode(errors="replace")
        except OSError:
            return None

    def write(self, path: str, data: bytes | str, mode: int = 0o644) -> None:
        """Make a file, or replace what it holds; *mode* is for a new one."""
        self._store(self._resolve(path), data, mode, keep=False)

    def append(self, path: str, data: bytes | str, mode: int = 0o644) -> None:
        """Add to the end of a file, making it."""
        self._store(self._resolve(path), data, mode, keep=True)

    def is_fifo(self, path: str) -> bool:
        """Return whether a path is a fifo, for its writer to open; here there are none."""
        return False

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory that this process can see."""
        try:
            self.stat(path)
        except OSError:
            return False
        return True

    def is_dir(self, path: str) -> bool:
        """Return whether there is a directory that this process can see."""
        try:
            return self.stat(path).is_dir
        except OSError:
            return False

    def stat(self, path: str) -> Stat:
        """Return what is known of a file or directory."""
        where = self._resolve(path)
        found = self._look_up(where)
        size = len(found.data) if isinstance(found, _File) else 0
        return Stat(size=size, uid=found.uid, mode=found.mode, is_dir=isinstance(found, _Directory))

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        where = self._resolve(path)
        self._need(self._directory(where), _READ, where)
        return self._disk.names(self._host, where)

    def mkdir(self, path: str, mode: int = 0o755) -> None:
        """Make a directory; the one it is in must be there."""
        where = self._resolve(path)
        if self._disk.find(self._host, where) is not None:
            raise _error(EEXIST, where)
        self._need_parent(where)
        if self._disk.troubles:
            self._disk.check_room(self._host, where)
        self._disk.put(self._host, where, _Directory(self._uid, mode))

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with nothing in it."""
        where = self._resolve(path)
        found = self._look_up(where)
        self._need_parent(where, found)
        if self._disk.troubles:
            self._disk.check_writable(self._host, where)
        if isinstance(found, _Directory) and self._disk.names(self._host, where):
            raise _error(ENOTEMPTY, where)
        self._disk.drop(self._host, where)

    def chmod(self, path: str, mode: int) -> None:
        """Change who may do what with a file or directory: its owner, or root, can."""
        where = self._resolve(path)
        found = self._look_up(where)
        if self._uid not in (_ROOT, found.uid):
            raise _error(EPERM, where)
        if self._disk.troubles:
            self._disk.check_writable(self._host, where)
        if isinstance(found, _Directory):
            self._disk.put(self._host, where, _Directory(found.uid, mode))
        else:
            self._disk.seen(self._host, where)
            found.mode = mode

    def rename(self, path: str, to: str) -> None:
        """Give a file another name, in the place of whatever file has that."""
        where, there = self._resolve(path), self._resolve(to)
        found = self._file(where)
        self._need_parent(where, found)
        target = self._disk.find(self._host, there)
        if isinstance(target, _Directory):
            raise _error(EISDIR, there)
        self._need_parent(there, target)
        if self._disk.troubles:
            self._disk.check_writable(self._host, where)
            self._disk.check_writable(self._host, there)
        self._disk.drop(self._host, where)
        self._disk.put(self._host, there, found)

    # Rights.

    def _store(self, where: str, data: bytes | str, mode: int, *, keep: bool) -> None:
        if where == "/dev/null":
            return
        if not isinstance(data, str | bytes | bytearray | memoryview):
            raise TypeError(f"expected bytes or a text, got {data!r}")
        new = data.encode() if isinstance(data, str) else bytes(data)
        self._walk(where)
        found = self._disk.find(self._host, where)
        if isinstance(found, _Directory):
            raise _error(EISDIR, where)
        if found is None:
            self._need_parent(where)
            if self._disk.troubles:
                self._disk.check_room(self._host, where)
            self._need_room(len(new), where)
            self._disk.put(self._host, where, _File(new, self._uid, mode))
            return
        self._need(found, _WRITE, where)
        if self._disk.troubles:
            self._disk.check_writable(self._host, where)
        self._disk.seen(self._host, where)
        if self._disk.troubles and new:
            # The file is emptied as it is opened.
            if not keep:
                self._disk.count(-len(found.data))
                found.data = b""
            self._disk.check_room(self._host, where)
        more = len(new) - (0 if keep else len(found.data))
        self._need_room(more, where)
        self._disk.count(more)
        if keep:
            found.add(new)
        else:
            found.data = new
        if self._disk.mirrors:
            self._disk.reflect(self._host, where, found)

    def _need_room(self, more: int, where: str) -> None:
        if not self._disk.has_room(more):
            raise no_space(where)

    def _resolve(self, path: str) -> str:
        if not isinstance(path, str):
            raise TypeError(f"expected a path, got {path!r}")
        if not path.startswith("/") and not self._work_dir:
            raise _error(EINVAL, path)
        where = Disk.resolve(path, self._work_dir or "/")
        if where.count("/") > PATH_NESTING:
            raise _error(ENAMETOOLONG, f"{path[:_SHOWN]}…")
        return where

    def _walk(self, where: str) -> None:
        """Check that every directory on the way is there and may be searched."""
        parent = _parent(where)
        if parent != where:
            self._walk(parent)
            self._need(self._directory(parent), _SEARCH, where)

    def _look_up(self, where: str) -> _Entry:
        self._walk(where)
        found = self._disk.find(self._host, where)
        if found is None:
            raise _error(ENOENT, where)
        return found

    def _file(self, where: str) -> _File:
        found = self._look_up(where)
        if isinstance(found, _Directory):
            raise _error(EISDIR, where)
        return found

    def _directory(self, where: str) -> _Directory:
        found = self._disk.find(self._host, where)
        if found is None:
            raise _error(ENOENT, where)
        if isinstance(found, _File):
            raise _error(ENOTDIR, where)
        return found

    def _need(self, entry: _Entry, right: int, where: str) -> None:
        bits = entry.mode >> 6 if entry.uid == self._uid else entry.mode
        if self._uid != _ROOT and not bits & right:
            raise _error(EACCES, where)

    def _need_parent(self, where: str, entry: _Entry | None = None) -> None:
        """Check that a name may be made, or *entry* taken away, in the directory of *where*."""
        self._walk(where)
        parent = self._directory(_parent(where))
        self._need(parent, _WRITE, where)
        sticky = parent.mode & _STICKY and self._uid not in (_ROOT, parent.uid)
        if entry is not None and sticky and entry.uid != self._uid:
            raise _error(EPERM, where)


_TEXTS: Final = {
    ENAMETOOLONG: "File name too long",
    EACCES: "Permission denied",
    EEXIST: "File exists",
    EINVAL: "Expected an absolute path",
    EISDIR: "Is a directory",
    ENOENT: "No such file or directory",
    ENOSPC: "No space left on device",
    ENOTDIR: "Not a directory",
    ENOTEMPTY: "Directory not empty",
    EPERM: "Operation not permitted",
    EROFS: "Read-only file system",
}
"""Written out, so that a trace is the same on every machine."""


def flipped(data: bytes, seed: str) -> bytes:
    """Return a file with one bit turned; of one with several lines, behind the first. Pure."""
    first = data.find(b"\n") + 1
    if first >= len(data):
        first = 0
    if not data:
        return data
    chance = random.Random(f"flip:{seed}")
    place = chance.randrange(first, len(data))
    bit = 1 << chance.randrange(8)
    return data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]


def no_space(path: str) -> OSError:
    """Return the error of a disk that is full."""
    return _error(ENOSPC, path)


def _error(number: int, path: str) -> OSError:
    """Return the error of a number, as the class that Python has for it."""
    return OSError(number, _TEXTS[number], path)
