"""A request that a process sends, and its answer."""

from collections.abc import Sequence

from simctl.api.reach import reach_of
from simctl.kernel.fabric import Mailbox, Unanswered
from simctl.kernel.procs import Process
from simctl.wire.errno import (
    SLURM_COMMUNICATIONS_CONNECTION_ERROR,
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR,
    SlurmError,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import Message


async def ask(
    process: Process, to: Mailbox | None, request: Message, unreachable: int, wait_s: int = 0
) -> Message:
    """Send a request from a process and return the answer.

    Raises:
        SlurmError: No daemon can be reached there, or none answers within *wait_s* seconds, 0 for
            MessageTimeout.
    """
    box = _box(process)
    try:
        _post(process, to, request, unreachable, box)
        return await _answer(box, _limit_us(process, wait_s))
    finally:
        box.close()


async def ask_slurmctld(process: Process, request: Message) -> Message:
    """Send slurmctld a request from a process and return the answer.

    If no daemon is there it is tried each second for MessageTimeout.

    Raises:
        SlurmError: slurmctld cannot be reached, or does not answer within MessageTimeout.
    """
    table = process.table
    reach, kernel = reach_of(process), table.kernel
    fabric = reach.fabric
    # As libslurm does, a command or not.
    last_us = kernel.now_us + (reach.conf.message_timeout_s - 1) * SECOND
    while not fabric.can_connect(process, fabric.find("slurmctld")) and kernel.now_us < last_us:
        await kernel.sleep_us(SECOND)
    controller = fabric.find("slurmctld")
    return await ask(process, controller, request, SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR)


async def ask_nodes(
    process: Process, nodes: Sequence[str], request: Message, wait_s: int = 0
) -> list[Message | int]:
    """Send the slurmds of nodes a request at once; return each answer, or why there is none."""
    limit_us = _limit_us(process, wait_s)
    found: list[Message | int] = []
    boxes: list[Mailbox | int] = []
    for node in nodes:
        box = _box(process)
        to = reach_of(process).fabric.find(f"slurmd@{node}")
        try:
            _post(process, to, request, SLURM_COMMUNICATIONS_CONNECTION_ERROR, box)
        except SlurmError as error:
            box.close()
            boxes.append(error.errno)
        else:
            boxes.append(box)
    heard = [process.cause]
    try:
        for each in boxes:
            try:
                found.append(each if isinstance(each, int) else await _answer(each, limit_us))
            except SlurmError as error:
                found.append(error.errno)
            heard.append(process.cause)
    finally:
        for each in boxes:
            if isinstance(each, Mailbox):
                each.close()
    process.table.trace.join(process, *heard)
    return found


def _box(process: Process) -> Mailbox:
    return reach_of(process).fabric.mailbox(process, f"{process.daemon}[{process.pid}]")


def _limit_us(process: Process, wait_s: int) -> int:
    table = process.table
    return table.kernel.now_us + (wait_s or reach_of(process).conf.message_timeout_s) * SECOND


def _post(
    process: Process, to: Mailbox | None, request: Message, unreachable: int, box: Mailbox
) -> None:
    if not reach_of(process).fabric.send(process, to, request, box):
        raise SlurmError(unreachable)


async def _answer(box: Mailbox, limit_us: int) -> Message:
    envelope = await box.receive_until(limit_us)
    if envelope is None or isinstance(envelope.message, Unanswered):
        raise SlurmError(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
    answer: Message = envelope.message
    return answer
