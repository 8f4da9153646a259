"""Messages that have not got through: kept in order by their sender, and tried again."""

from simctl.kernel.fabric import NEVER_US, Fabric, Mailbox
from simctl.kernel.procs import Process
from simctl.kernel.trace import Traceable


class Outbox:
    """What one process has yet to send: the receiver is out of reach or away, or it was lost.

    `due_us` is when the next try can succeed: NEVER_US where nothing is kept, where the link is cut
    for ever, and while it is unknown when the receiver is back: then a `Reachable` notice comes to
    the mailbox. The owner of the outbox calls `flush` then. Without *over_cuts* a link that is cut
    is tried just after each interval.
    """

    __slots__ = (
        *("_fabric", "_interval_us", "_kept", "_process", "_reply_to", "_waits_until_us"),
        *("_over_cuts", "due_us"),
    )

    def __init__(
        self,
        fabric: Fabric,
        process: Process,
        reply_to: Mailbox,
        *,
        interval_us: int,
        over_cuts: bool = True,
    ) -> None:
        self._fabric = fabric
        self._process = process
        self._reply_to = reply_to
        self._interval_us = interval_us
        self._over_cuts = over_cuts
        self._kept: list[tuple[Mailbox, Traceable]] = []
        self._waits_until_us = 0
        """Until when the first one's answer is waited for, which was lost."""

        self.due_us = NEVER_US

    def send(self, to: Mailbox | None, message: Traceable) -> bool:
        """Send a message, or keep it behind those that wait; false without a receiver."""
        if self._kept:
            self.flush()
        if not self._kept and self._fabric.send(self._process, to, message, self._reply_to):
            if self._fabric.swallowed and not self._fabric.for_ever and to is not None:
                self._kept.append((to, message))
                self._wait()
            return True
        if to is None or not (self._kept or self._fabric.holds_back(self._process, to)):
            return False
        self._kept.append((to, message))
        if self._waits_until_us <= self._fabric.kernel.now_us:
            self._plan(to)
        return True

    def flush(self) -> None:
        """Send what is kept, as far as it gets through; what is not waited for is dropped."""
        fabric = self._fabric
        if self._waits_until_us > fabric.kernel.now_us:
            return
        while self._kept:
            kept, message = self._kept[0]
            to = fabric.find(kept.name) or kept
            if fabric.holds_back(self._process, to):
                self._plan(to)
                return
            sent = fabric.send(self._process, to, message, self._reply_to)
            if sent and fabric.swallowed and not fabric.for_ever:
                self._wait()
                return
            self._kept.pop(0)
        self.due_us = NEVER_US

    def _wait(self) -> None:
        """Wait in vain for the answer to the first message that is kept, and then a while."""
        fabric = self._fabric
        self.due_us = fabric.kernel.now_us + fabric.timeout_us + self._interval_us
        self._waits_until_us = self.due_us

    def _plan(self, to: Mailbox) -> None:
        self.due_us = self._fabric.next_try_us(
            self._reply_to, to, self._interval_us, over_cuts=self._over_cuts
        )
