"""A command's request to slurmctld, and its answer, or why there is none.

A command that cannot connect tries again each second for MessageTimeout. Each time it asks the
primary first and then the backup. One that stands by says so, and the command comes back later.
"""

from collections.abc import Callable
from typing import Final

from simctl.kernel.fabric import NEVER_US, Envelope, Mailbox, Reachable, Unanswered
from simctl.site import CommandCall
from simctl.wire.errno import (
    ESLURM_IN_STANDBY_MODE,
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR,
    SlurmError,
    errno_name,
    slurm_strerror,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import Message, ResponseSlurmRc

Take = Callable[[Envelope], None]
"""Takes in what comes while a command waits for something else."""


def ignore(_: Envelope) -> None:
    """Handle nothing."""


async def ask(
    call: CommandCall, request: Message, *, patient: bool = False, once: bool = False
) -> Message:
    """Send a request to slurmctld and return the answer.

    A *patient* command waits for the answer without end; one that is to be tried *once* fails at
    once if it cannot connect.

    Raises:
        SlurmError: slurmctld cannot be reached, or does not answer within MessageTimeout.
    """
    limit_us = await post(call, request, once=once)
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


async def post(
    call: CommandCall, request: Message, take: Take = ignore, *, once: bool = False
) -> int:
    """Send a request to slurmctld and return until when to wait for its answer, virtual us.

    Raises:
        SlurmError: slurmctld cannot be reached; where it is tried *once*, now.
    """
    if not _send(call, controller(call), request):
        if once:
            raise SlurmError(SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR)
        await _send_later(call, request, take)
    return _limit_us(call)


def _limit_us(call: CommandCall) -> int:
    """Return until when an answer is waited for.

    Where messages may be struck it is 1 us later: the word that one was comes at that moment, and
    is heard first.
    """
    site = call.site
    later_us = 1 if site.fabric.disturbance is not None else 0
    return site.kernel.now_us + site.conf.message_timeout_s * SECOND + later_us


def _send(call: CommandCall, to: Mailbox | None, request: Message) -> bool:
    return call.site.fabric.send(call.process, to, request, call.mailbox)


async def _send_later(call: CommandCall, request: Message, take: Take) -> None:
    """Try each second to send slurmctld a request, until that succeeds or MessageTimeout is over.

    The tries that are bound to fail change nothing, and are not made.

    Raises:
        SlurmError: slurmctld cannot be reached, or its backup stands by for too long.
    """
    kernel, conf = call.site.kernel, call.site.conf
    patient_to_us = (
        kernel.now_us + (conf.slurmctld_timeout_s + conf.slurmctld_timeout_s // 2) * SECOND
    )
    tries = 1
    while True:
        standby = _standby(call)
        if standby is not None and _send(call, standby, request):
            await _hear_standby(call, request, take)
            if kernel.now_us >= patient_to_us:
                raise SlurmError(ESLURM_IN_STANDBY_MODE)
            tries = 0
            due_us = kernel.now_us + conf.slurmctld_timeout_s // 2 * SECOND
        elif tries >= conf.message_timeout_s:
            raise SlurmError(SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR)
        else:
            due_us = kernel.now_us + _TRY_US
        while (envelope := await call.mailbox.receive_until(due_us)) is not None:
            take(envelope)
        tries += 1
        to = controller(call)
        if call.site.fabric.can_connect(call.process, to) and _send(call, to, request):
            return


_TRY_US: Final = SECOND
"""How far apart the tries to connect are."""


def _standby(call: CommandCall) -> Mailbox | None:
    """Return where a backup receives that stands by, if a command can connect to it."""
    fabric = call.site.fabric
    name = call.site.conf.backup_controller
    found = fabric.find(f"slurmctld@{name}") if name else None
    return found if fabric.can_connect(call.process, found) else None


async def _hear_standby(call: CommandCall, request: Message, take: Take) -> None:
    """Wait until a backup has said that it stands by.

    Raises:
        SlurmError: It does not answer within MessageTimeout.
    """
    limit_us = _limit_us(call)
    while (envelope := await call.mailbox.receive_until(limit_us)) is not None:
        message = envelope.message
        check_lost(message, request)
        if isinstance(message, ResponseSlurmRc) and message.return_code == ESLURM_IN_STANDBY_MODE:
            return
        take(envelope)
    raise SlurmError(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)


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


def is_slurmdbd_away(call: CommandCall) -> bool:
    """Return whether slurmdbd answers no client, and say so as its commands do."""
    if not call.site.books.away:
        return False
    name = call.argv[0]
    call.err(
        f"{name}: error: slurm_persist_conn_open_without_init: failed to open persistent "
        "connection to host:localhost:6819: Connection refused"
    )
    call.err(f"{name}: error: Problem talking to the database: Connection refused")
    return True


def no_answer(call: CommandCall, error: SlurmError, what: str) -> None:
    """Print why a request was not answered, after *what* was to be done; note the errno."""
    call.errno = errno_name(error.errno)
    call.err(f"{what}: {slurm_strerror(error.errno)}")
