"""Requests that one thread serves one after another, beside the thread that took them in."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from simctl.kernel.procs import Process
from simctl.kernel.threads import Thread

Item = TypeVar("Item")


class OneByOne(Generic[Item]):
    """Serves what it is given in order, in a thread that lives as long as there is something."""

    def __init__(
        self, process: Process, name: str, serve: Callable[[Item], Awaitable[None]]
    ) -> None:
        self._process = process
        self._name = name
        self._serve = serve
        self._busy = False
        self._thread: Thread | None = None
        self.waiting: deque[Item] = deque()

    def add(self, item: Item) -> None:
        """Have an item served, behind those that came before."""
        self.waiting.append(item)
        if not self._busy:
            self._busy = True
            self._thread = self._process.start(self._run, self._name)

    def end(self) -> None:
        """End the thread wherever it is, as the end of its process does."""
        if self._thread is not None:
            self._process.table.kernel.kill(self._thread)

    async def _run(self) -> None:
        while self.waiting:
            await self._serve(self.waiting[0])
            if self.waiting:
                self.waiting.popleft()
        self._busy = False
