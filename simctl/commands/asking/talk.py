"""How srun and salloc talk to slurmctld while they wait for other things as well."""

from collections.abc import Callable
from typing import Final, TypeVar

from simctl.commands.asking.ask import (
    LostError,
    check_lost,
    controller,
    ignore,
    no_answer,
    post,
    wait_until,
)
from simctl.kernel.fabric import NEVER_US, Envelope, Reachable
from simctl.kernel.outbox import Outbox
from simctl.site import CommandCall
from simctl.wire.errno import (
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    SlurmError,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    Message,
    RequestCompleteJobAllocation,
    ResponseSlurmRc,
    SrunJobComplete,
)

Reply = TypeVar("Reply", bound=Message)

_AGAIN_US: Final = 60 * SECOND
"""How far apart the tries to tell slurmctld something are, while it cannot be reached."""


class Talk:
    """A command's side of its talk with slurmctld; *handle* takes in what comes in between."""

    def __init__(self, call: CommandCall, handle: Callable[[Envelope], None]) -> None:
        self._call = call
        self._handle = handle
        self._outbox = Outbox(call.site.fabric, call.process, call.mailbox, interval_us=_AGAIN_US)

    def close(self) -> None:
        """Let go of what takes messages in, so that neither waits for the collector."""
        self._handle = ignore

    def send(self, message: Message) -> bool:
        """Send slurmctld what it has to know; what a cut link holds back is sent later."""
        return self._outbox.send(controller(self._call), message)

    async def next(self, until_us: int = NEVER_US) -> Envelope | None:
        """Return the next message, or None at *until_us*; meanwhile what was held back is sent."""
        mailbox = self._call.mailbox
        while True:
            if self._outbox.due_us == until_us == NEVER_US:
                told = await mailbox.receive()
                if type(told.message) is not Reachable:
                    return told
                self._outbox.flush()
                continue
            envelope = await mailbox.receive_until(min(self._outbox.due_us, until_us))
            if envelope is not None and not isinstance(envelope.message, Reachable):
                return envelope
            if until_us <= self._call.site.kernel.now_us:
                return None
            self._outbox.flush()

    async def ask(
        self,
        request: Message,
        kind: type[Reply],
        *,
        heeds_end: bool = True,
    ) -> Reply | SrunJobComplete:
        """Send a request and return its answer, or that the job has ended before it came.

        Raises:
            SlurmError: slurmctld cannot be reached, or does not answer within MessageTimeout.
        """
        call = self._call
        limit_us = await post(call, request, self._handle)
        while True:
            envelope = await call.mailbox.receive_until(limit_us)
            if envelope is None:
                raise SlurmError(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
            message = envelope.message
            check_lost(message, request)
            answers = getattr(message, "answers", request.rpc)
            if isinstance(message, kind) and answers == request.rpc:
                return message
            self._handle(envelope)
            if heeds_end and isinstance(message, SrunJobComplete):
                return message

    async def give_back(self, request: RequestCompleteJobAllocation, what: str) -> None:
        """Give an allocation back; one that is not given back would last for ever.

        *what* is printed if that can never be.
        """
        call = self._call
        fabric = call.site.fabric
        who = call.process
        while True:
            try:
                await self.ask(request, ResponseSlurmRc, heeds_end=False)
            except SlurmError as error:
                to = controller(call)
                lost = isinstance(error, LostError) and not error.for_ever
                if to is None or not (lost or fabric.holds_back(who, to)):
                    return
                due_us = fabric.next_try_us(call.mailbox, to, _AGAIN_US, rests=not lost)
                if due_us == NEVER_US and not fabric.waits_for(to):
                    no_answer(call, error, what)
                    return
                await wait_until(call, due_us)
                self._outbox.flush()
            else:
                return
