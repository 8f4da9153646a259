"""A command's request to slurmctld, and its answer, or why there is none."""

from simctl.kernel.fabric import NEVER_US, Mailbox, Reachable, Unanswered
from simctl.plugins.site import CommandCall
from simctl.wire.errno import (
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR,
    SlurmError,
    errno_name,
    slurm_strerror,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import Message, ResponseSlurmRc


async def ask(call: CommandCall, request: Message, *, patient: bool = False) -> Message:
    """Send a request to slurmctld and return the answer; a *patient* command waits without end.

    Raises:
        SlurmError: slurmctld cannot be reached, or does not answer within MessageTimeout.
    """
    limit_us = post(call, request)
    while True:
        mailbox = call.mailbox
        envelope = await (mailbox.receive() if patient else mailbox.receive_until(limit_us))
        if envelope is None:
            raise SlurmError(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
        check_lost(envelope.message, request)
        if _is_answer(envelope.message, request):
            answer: Message = envelope.message
            return answer


async def wait_until(call: CommandCall, due_us: int) -> None:
    """Wait until a moment, or, where that is NEVER_US, until slurmctld is back."""
    if due_us < NEVER_US:
        await call.site.kernel.sleep_us(due_us - call.site.kernel.now_us)
        return
    while not isinstance((await call.mailbox.receive()).message, Reachable):
        pass


def post(call: CommandCall, request: Message) -> int:
    """Send a request to slurmctld and return until when to wait for its answer, virtual us.

    Raises:
        SlurmError: slurmctld cannot be reached.
    """
    site = call.site
    if not site.fabric.send(call.process, controller(call), request, call.mailbox):
        raise SlurmError(SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR)
    # The word that a request was struck comes at that moment, and is heard first.
    later_us = 1 if site.fabric.disturbance is not None else 0
    return site.kernel.now_us + site.conf.message_timeout_s * SECOND + later_us


class LostError(SlurmError):
    """A request was lost on its way, or came too late to be answered in time.

    With `for_ever` every other will be.
    """

    def __init__(self, *, for_ever: bool) -> None:
        super().__init__(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
        self.for_ever = for_ever


def check_lost(message: object, request: Message) -> None:
    """Raise LostError where a message tells that a request will not be answered any more."""
    if isinstance(message, Unanswered) and message.request is request:
        raise LostError(for_ever=message.for_ever)


def _is_answer(message: object, request: Message) -> bool:
    """Tell an answer from the process's own notices and from late answers to other requests."""
    if isinstance(message, ResponseSlurmRc):
        about = (message.answers, message.job_id)
        return about == (request.rpc, getattr(request, "job_id", 0))
    return isinstance(message, Message) and getattr(message, "answers", "") in ("", request.rpc)


def controller(call: CommandCall) -> Mailbox | None:
    """Return where slurmctld receives."""
    return call.site.fabric.find("slurmctld")


def no_answer(call: CommandCall, error: SlurmError, what: str) -> None:
    """Print why a request was not answered, after *what* was to be done; note the errno."""
    call.errno = errno_name(error.errno)
    call.err(f"{what}: {slurm_strerror(error.errno)}")
