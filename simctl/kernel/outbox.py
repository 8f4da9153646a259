"""Messages that a cut link holds back: kept in order by their sender, and tried again."""

from collections import deque

from simctl.kernel.fabric import NEVER_US, Fabric, Mailbox
from simctl.kernel.procs import Process
from simctl.kernel.trace import Traceable


class Outbox:
    """What one process has yet to send, because a cut link keeps it from the receiver.

    `due_us` is when the next try can succeed: NEVER_US where nothing is kept, and where the link
    is cut for ever. Whoever owns the outbox calls `flush` then.
    """

    __slots__ = ("_fabric", "_interval_us", "_kept", "_process", "_reply_to", "due_us")

    def __init__(
        self, fabric: Fabric, process: Process, reply_to: Mailbox, *, interval_us: int
    ) -> None:
        self._fabric = fabric
        self._process = process
        self._reply_to = reply_to
        self._interval_us = interval_us
        self._kept: deque[tuple[Mailbox, Traceable]] = deque()
        self.due_us = NEVER_US

    def send(self, to: Mailbox | None, message: Traceable) -> bool:
        """Send a message, or keep it behind those that wait; false when nobody is there."""
        if self._kept:
            self.flush()
        if not self._kept and self._fabric.send(self._process, to, message, self._reply_to):
            return True
        if to is None or not self._fabric.holds_back(self._process, to):
            return False
        self._kept.append((to, message))
        self._plan(to)
        return True

    def flush(self) -> None:
        """Send what is kept, as far as it gets through; what nobody waits for is dropped."""
        fabric = self._fabric
        while self._kept:
            kept, message = self._kept[0]
            to = fabric.find(kept.name) or kept
            if fabric.holds_back(self._process, to):
                self._plan(to)
                return
            self._kept.popleft()
            fabric.send(self._process, to, message, self._reply_to)
        self.due_us = NEVER_US

    def _plan(self, to: Mailbox) -> None:
        self.due_us = self._fabric.next_try_us(self._process.host, to.host, self._interval_us)
