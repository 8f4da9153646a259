"""What a builtin is: a coroutine of the shell, its arguments and its streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeAlias

from simctl.stepd.scripts.assigning import Declared
from simctl.stepd.scripts.host import Redirects

if TYPE_CHECKING:
    from simctl.stepd.scripts.shell import Shell

Argument: TypeAlias = str | Declared
Builtin: TypeAlias = Callable[["Shell", list[Argument], Redirects], Awaitable[int]]


def texts_of(arguments: list[Argument]) -> list[str]:
    """Return arguments as texts."""
    return [str(argument) for argument in arguments]


def plain(act: Callable[[Shell, list[str], Redirects], Awaitable[int]]) -> Builtin:
    """Make a builtin of one that takes texts alone."""

    @wraps(act)
    async def builtin(shell: Shell, arguments: list[Argument], streams: Redirects) -> int:
        return await act(shell, texts_of(arguments), streams)

    return builtin
