"""``scontrol checkpoint``: operations on the checkpoints of jobs and steps."""

import re
from typing import Final

from simctl.api import checkpoint
from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.text import moment
from simctl.wire.errno import ESLURM_DISABLED, SLURM_SUCCESS, errno_name, slurm_strerror
from simctl.wire.ids import SLURM_BATCH_SCRIPT

CKPT_WAIT_S: Final = 10
"""How long a checkpoint may take if nothing is said."""

_OPERATIONS: Final = {
    "able": 1,
    "complete": 2,
    "disable": 1,
    "enable": 2,
    "create": 2,
    "requeue": 2,
    "vacate": 2,
    "restart": 2,
    "error": 2,
}
"""The operations, and how much of each name is enough; the first that fits counts."""

_STEP: Final = re.compile(r"\s*(\d+)(?:\.(\d+))?", re.ASCII)
_WAIT_BITS: Final = 0xFFFF


async def checkpoint_keyword(order: Order) -> int:
    """Perform an operation and print what it has found out."""
    order.count(2, 4)
    call = order.call
    word, who, *more = order.words
    match = _STEP.fullmatch(who)
    if match is None:
        call.err("Invalid job step name")
        return 0
    job_id = int(match[1])
    step_id = int(match[2]) if match[2] else SLURM_BATCH_SCRIPT
    op = _find(word.lower())
    if not op:
        call.err(f"Invalid checkpoint operation: {word}")
        return 0
    rc = await _perform(order, op, job_id, step_id, more)
    if rc == SLURM_SUCCESS:
        return 0
    call.errno = errno_name(call.process.errno)
    order.complain(f"scontrol_checkpoint error: {slurm_strerror(call.process.errno)}")
    return 1


def _find(word: str) -> str:
    found = (
        name for name, least in _OPERATIONS.items() if len(word) >= least and name.startswith(word)
    )
    return next(found, "")


async def _perform(order: Order, op: str, job_id: int, step_id: int, more: list[str]) -> int:
    """Perform one operation; return its result."""
    process = order.call.process
    if op == "able":
        return await _able(order, job_id, step_id)
    if op == "error":
        return await _error(order, job_id, step_id)
    if op == "disable":
        return await checkpoint.disable(process, job_id, step_id)
    if op == "enable":
        return await checkpoint.enable(process, job_id, step_id)
    if op == "complete":
        # Not documented, for tests of plugins.
        return await checkpoint.complete(process, job_id, step_id, 0, 1, "test error message 1")
    max_wait, stick, image_dir = _read(op, more)
    if op == "restart":
        return await checkpoint.restart(process, job_id, step_id, stick, image_dir)
    if op == "requeue":
        return await checkpoint.requeue(process, job_id, max_wait, image_dir)
    perform = checkpoint.create if op == "create" else checkpoint.vacate
    return await perform(process, job_id, step_id, max_wait, image_dir)


def _read(op: str, words: list[str]) -> tuple[int, int, str]:
    """Return how long to wait, whether to stick to the nodes, and where images are.

    Raises:
        UsageError: A word is none of these, or not for this operation.
    """
    max_wait, stick, image_dir = CKPT_WAIT_S, 0, ""
    for word in words:
        value = word.partition("=")[2]
        if word.lower().startswith("imagedir="):
            image_dir = value
        elif word.lower().startswith("maxwait=") and op != "restart":
            digits = re.match(r"\s*\d+", value, re.ASCII)
            max_wait = int(digits[0]) & _WAIT_BITS if digits else 0
        elif word.lower().startswith("stick") and op == "restart":
            stick = 1
        else:
            raise UsageError(
                1, f"scontrol: error: Invalid input: {word}", "scontrol: error: Request aborted"
            )
    return max_wait, stick, image_dir


async def _able(order: Order, job_id: int, step_id: int) -> int:
    process = order.call.process
    rc, start_time = await checkpoint.able(process, job_id, step_id)
    if rc == SLURM_SUCCESS:
        order.call.out(f"Began at {moment(start_time)}" if start_time else "Yes")
    elif process.errno == ESLURM_DISABLED:
        order.call.out("No")
        return SLURM_SUCCESS
    return rc


async def _error(order: Order, job_id: int, step_id: int) -> int:
    rc, code, text = await checkpoint.error(order.call.process, job_id, step_id)
    if rc == SLURM_SUCCESS:
        order.call.out(f"error({code}): {text}")
    return rc
