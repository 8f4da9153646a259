"""What a shell, or a tool that stands in for a program, asks of the process it runs in.

It knows no clock and no kernel; whatever takes time is awaited here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, NoReturn, Protocol, TypeAlias

import attrs

from simctl.stepd.scripts.tree import OpenMode

Disposition: TypeAlias = Literal["default", "ignore", "ignore alone", "trap"]
"""What a signal does: what is ignored alone is not by what the process starts."""


@attrs.frozen(kw_only=True)
class Inherited:
    """Stand for a file descriptor as the script itself was given it: 0, 1 or 2."""

    descriptor: int


@attrs.frozen(kw_only=True)
class OpenFile:
    """Stand for a file that `ShellHost.open` has opened; what is written goes to its end.

    Where it is read is remembered under its *number*, which all that share it have.
    """

    path: str
    mode: OpenMode
    number: int = 0


@attrs.frozen(kw_only=True)
class OpenText:
    """Stand for a text that is read as a file is: a here-document."""

    number: int


@attrs.frozen(kw_only=True)
class PipeEnd:
    """Stand for an end of a pipe: that which is read, or that which is written."""

    number: int
    reads: bool


@attrs.frozen
class Closed:
    """Stand for a descriptor that is closed."""


Stream: TypeAlias = Inherited | OpenFile | OpenText | PipeEnd | Closed

CLOSED = Closed()


@attrs.frozen(kw_only=True)
class Redirects:
    """Hold where a command reads from and writes to; its files are open already."""

    stdin: Stream = Inherited(descriptor=0)
    stdout: Stream = Inherited(descriptor=1)
    stderr: Stream = Inherited(descriptor=2)
    more: tuple[tuple[int, Stream], ...] = ()
    """Descriptors from 3 on, in order."""

    def get(self, descriptor: int) -> Stream:
        """Return what a descriptor is connected with."""
        if descriptor < _FIRST_OTHER:
            return (self.stdin, self.stdout, self.stderr)[descriptor]
        return dict(self.more).get(descriptor, CLOSED)

    def put(self, descriptor: int, stream: Stream) -> Redirects:
        """Return these with one descriptor connected otherwise."""
        match descriptor:
            case 0:
                return attrs.evolve(self, stdin=stream)
            case 1:
                return attrs.evolve(self, stdout=stream)
            case 2:
                return attrs.evolve(self, stderr=stream)
        more = {**dict(self.more), descriptor: stream}
        return attrs.evolve(
            self, more=tuple((each, more[each]) for each in sorted(more) if more[each] != CLOSED)
        )

    def lost(self, before: Redirects) -> tuple[tuple[int, Stream], ...]:
        """Return what the first three descriptors were connected with *before*, if otherwise."""
        return tuple(
            (each, before.get(each)) for each in range(3) if before.get(each) != self.get(each)
        )

    def all(self) -> tuple[Stream, ...]:
        """Return what all descriptors are connected with."""
        return (self.stdin, self.stdout, self.stderr, *(stream for _, stream in self.more))


_FIRST_OTHER = 3


@attrs.frozen(kw_only=True)
class Info:
    """What is known of a file or directory."""

    is_dir: bool
    size: int
    mode: int
    uid: int


class Interrupted(Exception):
    """Say that a trapped signal has ended a wait; `ShellHost.take_signals` returns it next."""

    def __init__(self, signal: int) -> None:
        """Remember which *signal* it was."""
        super().__init__(signal)
        self.signal = signal


class DeadlySignal(Exception):
    """Say that the process dies of a signal, once its shell has run its EXIT trap."""

    def __init__(self, signal: int) -> None:
        """Remember which *signal* it was."""
        super().__init__(signal)
        self.signal = signal


Body: TypeAlias = Callable[["ShellHost"], Awaitable[int]]
"""What a child that is forked does, given its own way to the world: it returns its exit status."""


class ShellHost(Protocol):
    """Give a shell its process: the way to run programs, to read and write, and to be signalled."""

    @property
    def pid(self) -> int:
        """The shell's own pid."""

    # Processes.

    async def run(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Run a program and wait for its end.

        A trapped signal that arrives meanwhile is kept for `take_signals`.

        Returns:
            Its exit status, 128 + signal if a signal ended it, 127 (said on its stderr) if there
            is no such program.
        """

    def start(
        self,
        argv: tuple[str, ...],
        env: dict[str, str],
        redirects: Redirects,
        *,
        background: bool = False,
    ) -> int:
        """Start a program beside the shell and return its pid.

        It is 0 if there are too many. One that does not exist is a child as well, whose status is
        127. In the *background* INT and QUIT are ignored by a program that does not catch them.
        """

    def fork(self, body: Body, redirects: Redirects, *, background: bool = False) -> int:
        """Start a child that goes on with *body*, and return its pid; 0 if there are too many.

        In the *background* it ignores INT and QUIT, until it says otherwise; what it starts does
        not.
        """

    def connect(self, redirects: Redirects) -> None:
        """Say what the descriptors of this process are from now on: others it lets go of."""

    async def wait(
        self, pids: tuple[int, ...], *, interruptible: bool = True, until_us: int = 0
    ) -> int:
        """Wait for the end of one of these children, and return the pid of one that has ended.

        With *until_us*, a moment of `now_us`, it returns 0 if none has ended by then.

        Raises:
            Interrupted: a trapped signal arrived, or had arrived and was not yet taken.
        """

    def status(self, pid: int) -> int:
        """Return the exit status of a child that has ended, as `run` does; else -1."""

    def kill(self, pid: int, signal: int) -> bool:
        """Send *signal* (0: only look) and say whether there was such a process."""

    def has_program(self, name: str) -> bool:
        """Say whether there is a program of this name or path."""

    # Files and pipes.

    def absolute(self, path: str) -> str:
        """Return *path* as it is called from the root on; it starts from the working directory."""

    def open(self, path: str, mode: OpenMode, permissions: int = 0o666) -> OpenFile | str:
        """Open a file, as each redirection does once: to write empties it, both ways create it.

        Returns:
            The open file, or what stood in the way, such as "No such file or directory".
        """

    def text(self, text: str) -> OpenText:
        """Return a file that holds *text* and has no name."""

    def pipe(self, *, keeps: Literal["", "r", "w"] = "") -> tuple[PipeEnd, PipeEnd]:
        """Return the two ends of a new pipe; the shell itself keeps one of them, or neither."""

    def close(self, end: PipeEnd) -> None:
        """Let go of the end of a pipe that the shell kept."""

    async def read(self, stream: Stream, until: str = "", most: int = 0) -> str | None:
        r"""Read what there is, or up to a character *until* and with it, but no more than *most*.

        Returns:
            What was read, "" at the end; None where nothing can be read.
        """

    async def write(self, stream: Stream, text: str) -> str:
        """Write *text* to *stream*, waiting for room in a pipe; return what stood in the way.

        A pipe that nobody reads any more ends the process by SIGPIPE.
        """

    def info(self, path: str) -> Info | None:
        """Return what is at a path; None if there is nothing that this process can see."""

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory, sorted; none if it cannot be read."""

    def change(self, what: str, path: str, argument: str = "") -> str:
        """Change files, and return what stood in the way, or "".

        *what* is "mkdir", "remove" (a file, or a directory with nothing in it), "rename" to
        *argument*, or "touch".
        """

    def chdir(self, path: str) -> str:
        """Make *path* the working directory of the shell and of what it starts from now on.

        Returns:
            What stood in the way, or "".
        """

    # The rest.

    def facts(self) -> dict[str, str]:
        """Return what a shell knows of its surroundings: HOSTNAME, UID, PPID, and a SEED."""

    def users(self) -> list[tuple[str, int, int, str]]:
        """Return name, number, group and home of every user of the cluster."""

    def count_turn(self) -> bool:
        """Count a turn of a loop or trap.

        Returns:
            Whether the script and all that it has started may go on with their loops.
        """

    def now_us(self) -> int:
        """Return the present moment, in microseconds since 1970."""

    def set_trap(self, signal: int, disposition: Disposition) -> None:
        """Say what *signal* does to the shell: end it by default, nothing, or be kept for it.

        An ignored signal is ignored by the children that are started from then on as well. Where 0
        is trapped, a signal that would end the process is raised as DeadlySignal instead, once, by
        whatever the shell waits for or asks.
        """

    def die(self, signal: int) -> NoReturn:
        """End the process by a signal."""

    def take_signals(self) -> tuple[int, ...]:
        """Return the trapped signals that arrived since the last call, oldest first."""
