"""Threads of simulated processes, and the turns in which they go on."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

import attrs
import trio

Action = Callable[[Any, Any], bool]
"""What a turn does with its two arguments; true when it made a task runnable."""


Body = Callable[[], Coroutine[Any, Any, None]]
"""Makes what a thread runs."""


Turn = tuple[int, int, Action, Any, Any]
"""A turn in the queue: when it is due, its number, what it does, with what."""


class Owner(Protocol):
    """What a thread belongs to, a simulated process: it carries the cause of its next event."""

    cause: int


class Receiver:
    """What turns deliver messages to: the mailbox of a process."""

    __slots__ = ("process",)

    process: Any
    """The simulated process that receives there."""


class Killed(BaseException):
    """Raised inside a simulated thread whose process was killed; never caught by daemons."""


TornDown: Final = trio.Cancelled
"""Raised in every thread when the whole run ends early."""


ENDED: Final = (Killed, TornDown)
"""What ends a thread from outside, and must pass through whatever code it runs."""


@attrs.define(eq=False)
class Thread:
    """One line of execution in a simulated process, which has a trio task of its own.

    A turn runs its next `steps` until it waits for a turn again. A step that asks trio for
    something, as a plugin may that is written so, is taken by the task, and all later ones are.

    `generation` counts its waits: a turn that was to end an earlier wait finds another number and
    is dead. A thread that `lingers` keeps no run alive by what it waits for; one that is
    `of_plugin` is a plugin's own, and lingers but while it waits for something that counts.
    """

    owner: Owner
    name: str
    body: Body
    steps: Coroutine[Any, Any, None] | None = None
    """The body under way."""

    task: trio.lowlevel.Task | None = None
    in_task: bool = False
    asked: Any = None
    """What its task is to ask trio for before the next step."""

    generation: int = 0
    cause: int = 0
    timed: bool = False
    parked: bool = False
    finished: bool = False
    killed: bool = False
    lingers: bool = False
    of_plugin: bool = False
    """It is a plugin's own, whether or not it lingers at present."""

    frozen: bool = False
    missed: "tuple[Any] | None" = None
    """What ended the wait of a frozen thread: it goes on with it once it is thawed."""

    value: Any = None
    """What its wait hands over that has ended."""

    error: BaseException | None = None
    """What its wait raises instead."""

    waits_for: str = "its first turn"
    never_ran: Callable[[], None] | None = None
    """Called in place of its body if it is killed before its first turn."""
