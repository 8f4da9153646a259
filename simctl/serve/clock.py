"""Virtual time that the wall clock paces: no turn is taken before it is due in real time."""

import time
from collections.abc import Awaitable, Callable
from heapq import heappush
from typing import Any, Final

import trio

from simctl.kernel.turns import Kernel

_LONG_S: Final = 3600.0
_FIRST: Final = -(1 << 62)
"""Numbers of turns that come from outside begin here: at their moment they go before all others."""


class PacedKernel(Kernel):
    """A kernel for a cluster that real clients talk to; it ends when it is told to.

    trio asks how long it may sleep when no task is runnable: until the next turn is due. Sockets
    wake it earlier. Turns are taken in the order in which they are due, however late they are, so
    that a run depends on what came from outside, and on its microseconds, alone.
    """

    def __init__(self, *, scale: float = 1.0, begin_us: int = 0) -> None:
        super().__init__()
        self._scale = scale
        self._begin_us = begin_us
        self._began_s = time.monotonic()
        self._outside = 0
        self._poked = False

    def start_clock(self) -> None:
        """Let virtual time start."""
        self._began_s = time.monotonic()

    @property
    def elapsed_us(self) -> int:
        """Return what virtual time it is by the wall clock; `now_us` is that of the last turn."""
        return self._begin_us + int((time.monotonic() - self._began_s) * self._scale * 1_000_000)

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Take the next turn if it is due by the wall clock; else tell how far away it is."""
        if self._still:
            return 0.0 if self._ended else 0.05
        try:
            while (due_us := self.next_due_us) is not None:
                early_us = due_us - self.elapsed_us
                if early_us > 0:
                    return early_us / 1_000_000 / self._scale
                self.now_us, _, act, first, second = self._take(self._queue)
                self.current = None
                woke = act(first, second)
                self.turns += woke
                if woke or self._poked:
                    self._poked = False
                    return 0.0
        except BaseException as error:  # noqa: BLE001 - nothing may raise into trio's loop
            self.fail(error)
            return 0.0
        return _LONG_S

    def inject(self, function: Callable[[Any], None], argument: Any = None) -> int:
        """Call a plain function in a turn of its own, now by the wall clock; return when.

        It is for trio tasks outside of the simulation. No two get the same moment as a turn that
        was taken already, and one that is due at the same moment comes later.
        """
        due_us = max(self.now_us + 1, self.elapsed_us)
        self._outside += 1
        self.foreground += 1
        heappush(self._queue, (due_us, _FIRST + self._outside, _call, function, (self, argument)))
        return due_us

    def poke(self, event: trio.Event) -> None:
        """Set an event that a task outside of the simulation waits for, from inside a turn."""
        event.set()
        self._poked = True

    def cancel_after(self, scope: trio.CancelScope, wait_s: float) -> None:
        """Cancel what a task outside of the simulation does, after seconds of the wall clock."""

        def cancel() -> None:
            scope.cancel()
            self._poked = True

        self.call_later(wait_s, cancel)

    def call_later(self, wait_s: float, function: Callable[[], None]) -> None:
        """Call a plain function that changes nothing of the simulation, after seconds in real."""
        wait_us = int(wait_s * 1_000_000 * self._scale)
        self.call_in_background(self.elapsed_us + wait_us, function)

    def start_outside(self, body: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Start a trio task that lasts as long as the run at most."""
        assert self._nursery is not None
        self._nursery.start_soon(body, *args)
        self._poked = True

    def finish(self) -> None:
        """End the run after the present turn."""
        if not self._ended:
            self._end()


def _call(function: Callable[[Any], None], more: tuple[PacedKernel, Any]) -> bool:
    kernel, argument = more
    kernel.foreground -= 1
    kernel.turns += 1
    function(argument)
    return False
