"""Bandwidth that all transfers under way share evenly."""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from simctl.kernel.threads import Thread
from simctl.kernel.turns import Kernel, Timer
from simctl.wire.ids import SECOND


class Share:
    """The arithmetic: bytes that each of the transfers under way has got, as exact fractions.

    All of them get the same, so one number tells what each has been served since the store was last
    idle, and a transfer is over when that number reaches its own mark.
    """

    def __init__(self, bandwidth: int) -> None:
        self.bandwidth = bandwidth
        self.now_us = 0
        self._served = Fraction(0)
        self._marks: dict[int, Fraction] = {}

    def __len__(self) -> int:
        """Return how many transfers are under way."""
        return len(self._marks)

    def advance(self, now_us: int) -> None:
        """Move bytes until *now_us*."""
        if self._marks:
            passed_us = now_us - self.now_us
            self._served += Fraction(self.bandwidth * passed_us, SECOND * len(self._marks))
        self.now_us = now_us

    def begin(self, key: int, size: int) -> None:
        """Begin a transfer of *size* bytes."""
        if not self._marks:
            self._served = Fraction(0)
        self._marks[key] = self._served + size

    def drop(self, key: int) -> None:
        """End a transfer, whatever is left of it."""
        self._marks.pop(key, None)

    def finished(self) -> list[int]:
        """Return the transfers that have moved all their bytes, oldest first."""
        return [key for key, mark in self._marks.items() if mark <= self._served]

    def left(self, key: int) -> Fraction:
        """Return how many bytes a transfer has yet to move."""
        return max(Fraction(0), self._marks[key] - self._served)

    def due_us(self) -> int:
        """Return the first whole microsecond at which a transfer is over; -1 if none ever is."""
        if not self._marks or not self.bandwidth:
            return -1
        least = max(Fraction(0), min(self._marks.values()) - self._served)
        wait = least * len(self._marks) * SECOND / self.bandwidth
        return self.now_us - (-wait.numerator // wait.denominator)


_SHARED: Final = "bandwidth"


class Bandwidth:
    """A share in virtual time: threads wait in it until their bytes are moved."""

    def __init__(self, kernel: Kernel, bandwidth: int) -> None:
        self._kernel = kernel
        self._share = Share(bandwidth)
        self._waiting: dict[int, Thread] = {}
        self._timer: Timer | None = None
        self._key = 0

    @property
    def per_s(self) -> int:
        """Bytes a second; 0 where nothing is said of it."""
        return self._share.bandwidth

    def change(self, bandwidth: int) -> None:
        """Go on with another bandwidth."""
        self._kernel.touch(_SHARED)
        self._share.advance(self._kernel.now_us)
        self._share.bandwidth = bandwidth
        self._plan()

    async def move(self, size: int, stopped: Callable[[], bool]) -> None:
        """Move bytes in the current thread; the caller that makes *stopped* true wakes it."""
        if size <= 0:
            return
        thread = self._kernel.current
        assert thread is not None
        self._kernel.touch(_SHARED)
        self._key += 1
        key = self._key
        self._share.advance(self._kernel.now_us)
        self._share.begin(key, size)
        self._waiting[key] = thread
        try:
            self._plan()
            while key in self._waiting and not stopped():
                await self._kernel.park("bytes to be moved")
        finally:
            self._kernel.touch(_SHARED)
            if self._waiting.pop(key, None) is not None:
                self._share.advance(self._kernel.now_us)
                self._share.drop(key)
                self._plan()

    def _plan(self) -> None:
        """Have the next transfer that ends end in time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_us = self._share.due_us()
        if due_us >= 0:
            self._timer = self._kernel.call_at(due_us, self._tick, None)

    def _tick(self, _: None) -> None:
        self._kernel.touch(_SHARED)
        self._timer = None
        self._share.advance(self._kernel.now_us)
        for key in self._share.finished():
            self._share.drop(key)
            self._kernel.wake(self._waiting.pop(key))
        self._plan()
