"""The standard input of an srun, for all tasks that read it: each gets the whole."""

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

_MOST_WAITING: Final = 16
"""How many pieces may wait for the slowest reader before no more are asked for."""

_KEPT_BYTES: Final = 1 << 20
"""How much is read while not all its readers are there, who get it then."""


class StandardInput:
    """What a client reads on its standard input, piece by piece as it is asked for."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._readers: list[Reader] = []
        self._came = 0
        """How many readers there have been."""

        self._expected = 1
        self._past: list[bytes] = []
        """What came before all its readers were there."""

        self._ended = False
        self._asked = False

    def open(self, readers: int) -> "Reader":
        """Return what one of so many tasks reads from."""
        reader = Reader(self, self._past)
        self._readers.append(reader)
        self._came += 1
        self._expected = readers
        return reader

    def leave(self, reader: "Reader") -> None:
        """Let a reader go, for whom nothing is kept."""
        if reader in self._readers:
            self._readers.remove(reader)
            self.go_on()

    def take(self, piece: bytes) -> bool:
        """Take a piece in, an empty one at the end; false if none was asked for."""
        if not self._asked:
            return False
        self._asked = False
        self._give(piece)
        return True

    def end(self) -> None:
        """Note that no more will come."""
        if not self._ended:
            self._give(b"")

    def _give(self, piece: bytes) -> None:
        self._ended = self._ended or not piece
        if self._came < self._expected:
            self._past.append(piece)
        else:
            self._past = []
        for reader in self._readers:
            reader.take(piece)

    def go_on(self) -> None:
        """Ask for a piece if a task waits for one, and none is too far behind."""
        if self._asked or self._ended:
            return
        waiting = [each.waiting for each in self._readers]
        if not waiting or min(waiting) or max(waiting) >= _MOST_WAITING:
            return
        if self._came < self._expected and sum(map(len, self._past)) >= _KEPT_BYTES:
            return
        self._asked = True
        self._ask()


class Reader:
    """One task's end of it."""

    def __init__(self, source: StandardInput, past: list[bytes]) -> None:
        self._source = source
        self._pieces = deque(past)
        self._news = trio.Event()

    @property
    def waiting(self) -> int:
        """Return how many pieces it has yet to read."""
        return len(self._pieces)

    def take(self, piece: bytes) -> None:
        """Keep a piece until it is read."""
        self._pieces.append(piece)
        self._news.set()

    async def read(self) -> bytes:
        """Return the next piece, empty at the end."""
        while not self._pieces:
            self._news = trio.Event()
            self._source.go_on()
            await self._news.wait()
        piece = self._pieces.popleft()
        self._source.go_on()
        return piece

    def close(self) -> None:
        """Read no more."""
        self._source.leave(self)
