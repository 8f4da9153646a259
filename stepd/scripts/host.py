"""What a shell asks of the process it runs in: children, files, signals.

The shell itself knows no clock and no kernel; whatever takes time is awaited here.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import attrs

from simctl.stepd.scripts.tree import OpenMode

Disposition: TypeAlias = Literal["default", "ignore", "trap"]


@attrs.frozen(kw_only=True)
class Inherited:
    """Stand for a file descriptor as the script itself was given it: 0, 1 or 2."""

    descriptor: int


@attrs.frozen(kw_only=True)
class OpenFile:
    """Stand for a file that `ShellHost.open` has opened; what is written goes to its end."""

    path: str
    mode: OpenMode


Stream: TypeAlias = Inherited | OpenFile


@attrs.frozen(kw_only=True)
class Redirects:
    """Hold where a command reads from and writes to; its files are open already."""

    stdin: Stream = Inherited(descriptor=0)
    stdout: Stream = Inherited(descriptor=1)
    stderr: Stream = Inherited(descriptor=2)


class Interrupted(Exception):
    """Say that a trapped signal has ended a wait; `ShellHost.take_signals` returns it next."""

    def __init__(self, signal: int) -> None:
        """Remember which *signal* it was."""
        super().__init__(signal)
        self.signal = signal


class ShellHost(Protocol):
    """Give a shell its process: the way to run programs, and to be signalled."""

    @property
    def pid(self) -> int:
        """The shell's own pid, ``$$``."""

    async def run(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Run a program and wait for its end.

        A trapped signal that arrives meanwhile is kept for `take_signals`.

        Returns:
            Its exit status, 128 + signal if a signal ended it, 127 (said on its stderr) if there
            is no such program.
        """

    def start(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Start a program in the background and return its pid.

        One that does not exist is a child as well, whose status is 127.
        """

    async def wait(self, pid: int) -> int:
        """Wait for the end of a background child and return its status, as `run` does.

        Raises:
            Interrupted: a trapped signal arrived, or had arrived and was not yet taken.
        """

    def kill(self, pid: int, signal: int) -> bool:
        """Send *signal* (0: only look) and say whether there was such a process."""

    def absolute(self, path: str) -> str:
        """Return *path* as it is called from the root on; it starts from the working directory."""

    def open(self, file: OpenFile) -> str:
        """Open *file*, as each redirection does once: to write empties it, both ways create it.

        Returns:
            What stood in the way, such as "No such file or directory", or "".
        """

    def write(self, stream: Stream, text: str) -> None:
        """Write a builtin's *text* to *stream*."""

    def exists(self, path: str) -> bool:
        """Say whether a file or directory is there."""

    def is_directory(self, path: str) -> bool:
        """Say whether a directory is there."""

    def chdir(self, path: str) -> str:
        """Make *path* the working directory of the shell and of what it starts from now on.

        Returns:
            What stood in the way, or "".
        """

    def set_trap(self, signal: int, disposition: Disposition) -> None:
        """Say what *signal* does to the shell: end it by default, nothing, or be kept for it.

        An ignored signal is ignored by the children that are started from then on as well.
        """

    def take_signals(self) -> tuple[int, ...]:
        """Return the trapped signals that arrived since the last call, oldest first."""
