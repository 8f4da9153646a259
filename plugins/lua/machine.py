"""What a Lua script reaches of the machine: the simulated one, in virtual time."""

import calendar
import errno
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Final

import attrs

from simctl.plugin import disk, log, now, process, sleep

_REGULAR: Final = 0o100000
_FOLDER: Final = 0o40000
_LONGEST_TEXT: Final = 500
_LAST_YEAR: Final = 9999
_TICK_S: Final = 0.01
_MOST_FILE: Final = 16 << 20
_LEVELS: Final[Mapping[str, Callable[..., None]]] = {
    "error": log.error,
    "info": log.info,
    "verbose": log.info,
}

Shell = Callable[[str, str], Awaitable[tuple[int, str]]]
"""Runs a line of shell with an input; returns its wait status and what it wrote."""


def daemon_env(people: Mapping[str, tuple[int, int, str]], uid: int) -> dict[str, str]:
    """Return the environment of slurmctld, as a service manager starts it as a user."""
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    for name, (known, _, home) in people.items():
        if known == uid:
            env |= {"HOME": home, "USER": name, "LOGNAME": name, "SHELL": "/bin/sh"}
    return env


class TimeUpError(Exception):
    """The time of a call is up, and its process is killed."""


@attrs.define(eq=False)
class Machine:
    """The surroundings of one call, or of a state that lives on: files, clock, commands, the log.

    `epoch_s` is what clocks showed at virtual time 0. `deadline` is the virtual time at which the
    process of a call is killed. Functions named in `OFFERS` are there for Lua.
    """

    OFFERS: ClassVar = (
        "open write append remove rename mkdir listdir stat tmpname getenv setenv now epoch mktime "
        "person pid uid gid hostname log print minutes user stdin breathe"
    ).split()

    epoch_s: int
    run_shell: Shell
    comm: str = "slurmctld"
    env: dict[str, str] = attrs.field(factory=dict)
    ids: tuple[int, int] = (0, 0)
    people: Mapping[str, tuple[int, int, str]] = attrs.field(factory=dict)
    """Users by name, with uid, gid and home."""

    scripts: str = "/etc/slurm"
    deadline: float | None = None
    printed: Callable[[str, str], None] | None = None
    told: Callable[[str], None] | None = None
    """Takes what is for the user."""

    logged: Callable[[str, str], None] | None = None
    _temporary: int = 0

    def lua_path(self, version: str) -> str:
        """Return where `require` looks: as Lua of a version does, and beside scripts."""
        places = (f"/usr/local/share/lua/{version}", f"/usr/share/lua/{version}")
        found = [f"{place}/?{end}.lua" for place in places for end in ("", "/init")]
        return ";".join([*found, "./?.lua", f"{self.scripts}/?.lua"])

    def script(self, path: str) -> str | None:
        """Return the text of a script; None where there is none that can be read."""
        try:
            return disk().read(path).decode(errors="surrogateescape")
        except OSError:
            return None

    # Files. Texts hold a byte a character.

    def open(self, path: str, kind: str) -> Any:
        """Return what a file holds that is opened for reading, writing (emptied) or appending."""
        special = self._special(path)
        if special is not None:
            return special
        try:
            if kind == "r":
                return self._read(path)
            if kind == "w":
                disk().write(self._path(path), b"")
                return ""
            disk().append(self._path(path), b"")
            return self._read(path)
        except OSError as error:
            return None, *_why(error)

    def _read(self, path: str) -> Any:
        try:
            data = disk().read(self._path(path))
        except IsADirectoryError:
            # It opens, and cannot be read.
            return "", "Is a directory", errno.EISDIR
        if len(data) > _MOST_FILE:
            return None, f"simctl reads {_MOST_FILE} bytes at most", errno.EFBIG
        return data.decode("latin-1")

    def _path(self, path: str) -> str:
        where = path.encode("latin-1").decode(errors="replace")
        return where if where.startswith("/") else f"/{where}"

    def _special(self, path: str) -> str | None:
        """Return what a file of /proc shows of the process."""
        pid = self.pid()
        if path in ("/proc/self/stat", f"/proc/{pid}/stat"):
            return f"{pid} ({self.comm}) R 1 {pid} {pid} 0 -1\n"
        if path in ("/proc/self/comm", f"/proc/{pid}/comm"):
            return f"{self.comm}\n"
        if path == "/proc/uptime":
            return f"{now():.2f} {now():.2f}\n"
        if path in ("/dev/null", "/dev/stdin", "/dev/stderr", "/dev/stdout"):
            return ""
        return None

    @staticmethod
    def _tried(act: Callable[..., None], *arguments: Any) -> Any:
        try:
            act(*arguments)
        except OSError as error:
            return None, *_why(error)
        return True

    def write(self, path: str, held: str) -> Any:
        """Make a file hold a text."""
        return self._tried(disk().write, self._path(path), held.encode("latin-1"))

    def append(self, path: str, held: str) -> Any:
        """Add a text to a file."""
        return self._tried(disk().append, self._path(path), held.encode("latin-1"))

    def remove(self, path: str) -> Any:
        """Remove a file or an empty directory."""
        return self._tried(disk().remove, self._path(path))

    def rename(self, path: str, to: str) -> Any:
        """Rename a file."""
        return self._tried(disk().rename, self._path(path), self._path(to))

    def mkdir(self, path: str) -> Any:
        """Make a directory."""
        return self._tried(disk().mkdir, self._path(path))

    def listdir(self, path: str) -> Any:
        """Return the names in a directory, a line each; or nothing."""
        try:
            names = disk().listdir(self._path(path))
        except OSError:
            return None
        return "\n".join(names)

    def stat(self, path: str) -> Any:
        """Return type, size, mode, time, owner and group of what is there, or nothing."""
        if self._special(path) is not None:
            return "regular", 0, _REGULAR | 0o444, int(self.epoch_s + now()), 0, 0
        try:
            found = disk().stat(self._path(path))
        except OSError:
            return None
        kind = "directory" if found.is_dir else "regular"
        mode = found.mode | (_FOLDER if found.is_dir else _REGULAR)
        return kind, found.size, mode, int(self.epoch_s + now()), found.uid, found.uid

    def tmpname(self) -> str:
        """Return a name for a file that no other process has."""
        self._temporary += 1
        return f"/tmp/lua_{self.pid()}_{self._temporary}"

    # The process.

    def getenv(self, name: str) -> Any:
        """Return a variable of the environment."""
        found = self.env.get(name)
        return None if found is None else found.encode(errors="replace").decode("latin-1")

    def setenv(self, name: str, value: Any) -> None:
        """Set a variable, or take it away."""
        if value is None:
            self.env.pop(name, None)
        else:
            self.env[name] = str(value)

    def pid(self) -> int:
        """Return the number of the process."""
        return process().pid

    def uid(self) -> int:
        """Return as whom the process acts."""
        return self.ids[0]

    def gid(self) -> int:
        """Return the group of the process."""
        return self.ids[1]

    def hostname(self) -> str:
        """Return the name of the host."""
        return process().hostname

    def person(self, kind: str, who: Any) -> Any:
        """Return name, uid, gid and home of a user or a group, by name or number; or nothing."""
        for name, (uid, gid, home) in self.people.items():
            if who in (name, gid if kind == "group" else uid):
                return name, uid, gid, home
        return None

    # Time.

    def now(self) -> float:
        """Return virtual time, in seconds."""
        return now()

    def epoch(self) -> int:
        """Return what clocks showed at virtual time 0."""
        return self.epoch_s

    @staticmethod
    def breathe() -> None:
        """Let Python look up from Lua now and then: signals are handled here."""

    def mktime(self, *parts: float) -> int:
        """Return the seconds since the epoch of a date in UTC; parts may be out of range."""
        year, month, day, hour, minute, second = (int(part) for part in parts)
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        if not 1 <= year <= _LAST_YEAR:
            return -1
        start = calendar.timegm((year, month, 1, 0, 0, 0))
        return start + (day - 1) * 86_400 + hour * 3600 + minute * 60 + second

    async def nap(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            TimeUpError: The process was killed meanwhile.
        """
        until = now() + min(max(seconds, 0.0), 3e9)
        if self.deadline is not None and until > self.deadline:
            await sleep(max(0.0, self.deadline - now()))
            raise TimeUpError
        await sleep(until - now())

    async def tick(self, resolution: float) -> None:
        """Let time pass for who waits for the clock: up to its next whole step."""
        await self.nap(max(_TICK_S, resolution - now() % resolution))

    async def shell(self, command: str, given: str) -> tuple[int, str]:
        """Run a line of shell."""
        return await self.run_shell(command, given)

    # What is told.

    def log(self, level: str, held: str) -> None:
        """Write a line of the log."""
        text = held.encode("latin-1").decode(errors="replace")
        if self.logged is not None:
            self.logged(level, text)
        else:
            _LEVELS.get(level, log.debug)(f"lua: {text[:_LONGEST_TEXT]}")

    def print(self, where: str, held: str) -> None:
        """Write to standard output or standard error, which no process reads of daemons."""
        if self.printed is not None:
            self.printed(where, held.encode("latin-1").decode(errors="replace"))

    def user(self, held: str | None) -> None:
        """Tell the user something, if it is a text."""
        if self.told is not None and held is not None:
            self.told(held.encode("latin-1").decode(errors="replace"))

    def stdin(self) -> str:
        """Return what can be read from standard input."""
        return ""

    @staticmethod
    def minutes(text: str) -> int:
        """Return the minutes that a time limit stands for; a signed number, as Slurm's is.

        So no time is -2, and no limit -1: neither is slurm.NO_VAL or slurm.INFINITE. Slurm counts
        seconds in an int, which 68 years do not fit into.
        """
        seconds = _seconds(text)
        if seconds < 0:
            return seconds
        held = (seconds + (1 << 31)) % (1 << 32) - (1 << 31)
        return int((held + 59) / 60)


_TIME: Final = re.compile(
    r"(?:(?P<days>\d+)-)?(?P<one>\d+)(?::(?P<two>\d+))?(?::(?P<three>\d+))?", re.ASCII
)


def minutes(text: str) -> int:
    """Return the minutes of ``30``, ``10:00``, ``1:00:00``, ``1-0``, ``1-12:30``, rounded up.

    What is no time is NO_VAL, and ``-1``, ``INFINITE`` and ``UNLIMITED`` are the largest number.
    """
    seconds = _seconds(text)
    return -(-seconds // 60) if seconds >= 0 else seconds + (1 << 32)


def _seconds(text: str) -> int:
    """Return the seconds of a time limit: -1 for no limit, -2 for what is no time."""
    word = text.strip()
    if word.casefold() in ("-1", "infinite", "unlimited"):
        return -1
    match = _TIME.fullmatch(word)
    if match is None or len(word) > _LONGEST_TIME:
        return -2
    days, one, two, three = (int(match[name] or 0) for name in ("days", "one", "two", "three"))
    if match["days"] is not None or match["three"] is not None:
        return days * 86_400 + one * 3600 + two * 60 + three
    return one * 60 + two


_LONGEST_TIME: Final = 30


def _why(error: OSError) -> tuple[str, int]:
    return error.strerror or os.strerror(error.errno or errno.EIO), error.errno or errno.EIO
