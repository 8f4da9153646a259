"""``scontrol show switch``: what the switch plugin says of a step's credential or of a node.

Slurm has no such command: there, these functions are called for programs that link with libslurm.
"""

import re
from typing import Final

from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.order import Order
from simctl.kernel.fabric import Mailbox
from simctl.wire.errno import (
    SLURM_COMMUNICATIONS_CONNECTION_ERROR,
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    errno_name,
    slurm_strerror,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import RequestSwitchInfo, ResponseSlurmRc, ResponseSwitchInfo

_STEP: Final = re.compile(r"(\d{1,10})\.(\d{1,10})")
_QUESTION: Final = re.compile(r"(size|type|key)=(\d{1,9})", re.IGNORECASE)
_SIZE: Final = 4096
_WHAT: Final = "slurm_load_switch"


async def show_switch(order: Order, value: str | None) -> int:
    """Print a step's credential, one of the data in it, or a node's switch state."""
    if value is None:
        raise UsageError(1, "scontrol: error: show switch needs a step such as 7.0, or a node")
    what, number = _question(order)
    step = _STEP.fullmatch(value)
    if step is not None:
        request = RequestSwitchInfo(
            job_id=int(step[1]), step_id=int(step[2]), what=what, number=number
        )
        return _print(order, await order.load(request, _WHAT))
    slurmd = order.call.site.fabric.find(f"slurmd@{value}")
    if slurmd is not None and what in ("type", "key"):
        raise UsageError(1, f"scontrol: error: show switch: {what}= is for steps; of a node size=N")
    if slurmd is None:
        raise UsageError(
            1, f"scontrol: error: show switch: {value!r} is no step such as 7.0, and no node"
        )
    return await _ask_node(order, slurmd, RequestSwitchInfo(what="size", number=number or _SIZE))


def _question(order: Order) -> tuple[str, int]:
    """Return what is asked for beyond the whole text, and its number."""
    if len(order.words) < 3:  # noqa: PLR2004 - the entity, whose, and what
        return "", 0
    match = _QUESTION.fullmatch(order.words[2])
    if match is None:
        raise UsageError(
            1, f"scontrol: error: show switch: {order.words[2]!r}; expected size=N, type=N or key=N"
        )
    return match[1].lower(), int(match[2])


async def _ask_node(order: Order, slurmd: Mailbox, request: RequestSwitchInfo) -> int:
    call = order.call
    error = SLURM_COMMUNICATIONS_CONNECTION_ERROR
    if call.site.fabric.send(call.process, slurmd, request, call.mailbox):
        due_us = call.site.kernel.now_us + call.site.conf.message_timeout_s * SECOND
        envelope = await call.mailbox.receive_until(due_us)
        if envelope is not None:
            return _print(order, envelope.message)
        error = SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT
    call.errno = errno_name(error)
    order.complain(f"{_WHAT} error: {slurm_strerror(error)}")
    return 1


def _print(order: Order, answer: object) -> int:
    if isinstance(answer, ResponseSlurmRc):
        order.complain(f"{_WHAT} error: {slurm_strerror(answer.return_code)}")
    if not isinstance(answer, ResponseSwitchInfo):
        return 1
    if answer.failed:
        order.complain(f"{_WHAT} error: {answer.text}")
        return 1
    if answer.text:
        order.call.out(answer.text.removesuffix("\n"))
    return 0
