"""What a builtin is: a coroutine of the shell, its arguments and its streams."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Protocol, TypeAlias

from simctl.stepd.scripts.assigning import Declared
from simctl.stepd.scripts.host import Redirects, ShellHost
from simctl.stepd.scripts.state import ShellState
from simctl.stepd.scripts.tree import Command

Argument: TypeAlias = str | Declared

MISUSED = 2
"""The status of a builtin whose arguments are wrong."""


class Shell(Protocol):
    """What a builtin needs of the shell that runs it."""

    state: ShellState
    host: ShellHost

    async def leave(self, status: int) -> int:
        """Run the EXIT trap, and return the status to leave with."""

    async def perform_command(self, texts: list[str], streams: Redirects) -> int:
        """Run a builtin or a program, though a function may have its name."""

    async def source(
        self,
        commands: tuple[Command, ...],
        name: str,
        arguments: tuple[str, ...],
        streams: Redirects,
    ) -> int:
        """Run the commands of another file in this shell."""

    async def evaluate(self, commands: tuple[Command, ...], streams: Redirects) -> int:
        """Run commands in this shell, as eval does."""


Builtin: TypeAlias = Callable[[Shell, list[Argument], Redirects], Awaitable[int]]


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def is_name(text: str) -> bool:
    """Return whether *text* can name a variable."""
    return _NAME.fullmatch(text) is not None


def texts_of(arguments: list[Argument]) -> list[str]:
    """Return arguments as texts."""
    return [str(argument) for argument in arguments]


def plain(act: Callable[[Shell, list[str], Redirects], Awaitable[int]]) -> Builtin:
    """Make a builtin of one that takes texts alone."""

    @wraps(act)
    async def builtin(shell: Shell, arguments: list[Argument], streams: Redirects) -> int:
        return await act(shell, texts_of(arguments), streams)

    return builtin


async def write_text(shell: Shell, streams: Redirects, name: str, text: str) -> int:
    """Write a text; what stands in the way is told, and makes the status 1."""
    wrong = await shell.host.write(streams.stdout, text) if text else ""
    if wrong:
        await shell.state.complain(f"{name}: write error: {wrong}", streams.stderr)
    return 1 if wrong else 0
