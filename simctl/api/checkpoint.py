"""The checkpoint functions of libslurm: what each asks for, and what it returns.

Each returns 0, or an error with the calling process's errno set. In model guide an error is -1, as
the manual page says. In model modern it is the number itself, as real Slurm returns it, but for
`complete` and `task_complete`, and where slurmctld cannot be asked at all: these give -1.
"""

from simctl.api.asking import ask_nodes, ask_slurmctld
from simctl.api.reach import reach_of
from simctl.kernel.procs import Process
from simctl.wire.errno import EINVAL, SLURM_ERROR, SLURM_SUCCESS, SlurmError
from simctl.wire.hostlist import expand
from simctl.wire.ids import SLURM_BATCH_SCRIPT
from simctl.wire.messages import (
    Message,
    RequestCheckpoint,
    RequestCheckpointComp,
    RequestCheckpointTaskComp,
    RequestCheckpointTasks,
    ResponseCheckpoint,
    ResponseSlurmRc,
)

_ABLE, _DISABLE, _ENABLE, _CREATE, _VACATE, _RESTART, _ERROR, _REQUEUE = range(8)


async def able(process: Process, job_id: int, step_id: int) -> tuple[int, int]:
    """Return whether checkpoints can be made now: a result, and when one began that is active."""
    rc, status = await _operate(process, _request(_ABLE, job_id, step_id))
    return rc, status.event_time


async def disable(process: Process, job_id: int, step_id: int) -> int:
    """Let no checkpoints be made until they are enabled as often as they were disabled."""
    return (await _operate(process, _request(_DISABLE, job_id, step_id)))[0]


async def enable(process: Process, job_id: int, step_id: int) -> int:
    """Let checkpoints be made again."""
    return (await _operate(process, _request(_ENABLE, job_id, step_id)))[0]


async def create(
    process: Process, job_id: int, step_id: int, max_wait: int = 0, image_dir: str = ""
) -> int:
    """Have a checkpoint made; it has only begun when this returns."""
    request = _request(_CREATE, job_id, step_id, max_wait, image_dir)
    return (await _operate(process, request))[0]


async def vacate(
    process: Process, job_id: int, step_id: int, max_wait: int = 0, image_dir: str = ""
) -> int:
    """Have a checkpoint made, and what it is of ended after it."""
    request = _request(_VACATE, job_id, step_id, max_wait, image_dir)
    return (await _operate(process, request))[0]


async def requeue(process: Process, job_id: int, max_wait: int = 0, image_dir: str = "") -> int:
    """Have a checkpoint of a batch job made, and the job go back into the queue after it."""
    request = _request(_REQUEUE, job_id, SLURM_BATCH_SCRIPT, max_wait, image_dir)
    return (await _operate(process, request))[0]


async def restart(
    process: Process, job_id: int, step_id: int, stick: int = 0, image_dir: str = ""
) -> int:
    """Have a batch job that is over submitted again; with *stick* it waits for the same nodes."""
    request = _request(_RESTART, job_id, step_id, stick, image_dir)
    return (await _operate(process, request))[0]


async def error(process: Process, job_id: int, step_id: int) -> tuple[int, int, str]:
    """Tell how the last checkpoint went: a result, the error's number, and what it says."""
    rc, status = await _operate(process, _request(_ERROR, job_id, step_id))
    return rc, status.error_code, status.error_msg


async def complete(
    process: Process,
    job_id: int,
    step_id: int,
    begin_time: int,
    error_code: int = 0,
    error_msg: str = "",
) -> int:
    """Report that a checkpoint is complete."""
    request = RequestCheckpointComp(
        job_id=job_id,
        step_id=step_id,
        begin_time=begin_time,
        error_code=error_code,
        error_msg=error_msg,
    )
    return await _report(process, request)


async def task_complete(
    process: Process,
    job_id: int,
    step_id: int,
    task_id: int,
    begin_time: int,
    error_code: int = 0,
    error_msg: str = "",
) -> int:
    """Report that the checkpoint of one task is complete."""
    request = RequestCheckpointTaskComp(
        job_id=job_id,
        step_id=step_id,
        task_id=task_id,
        begin_time=begin_time,
        error_code=error_code,
        error_msg=error_msg,
    )
    return await _report(process, request)


async def tasks(
    process: Process,
    job_id: int,
    step_id: int,
    begin_time: int,
    image_dir: str,
    max_wait: int = 0,
    nodelist: str = "",
) -> int:
    """Have the slurmds of *nodelist* save a step's tasks; return when all have, or have failed.

    slurmctld is not asked. Each node has *max_wait* seconds, 0 for MessageTimeout; the error of the
    last node that has one counts. Without a node nothing can be saved: EINVAL.
    """
    nodes = expand(nodelist)
    if not nodes:
        return _result(process, EINVAL)
    request = RequestCheckpointTasks(
        job_id=job_id, step_id=step_id, timestamp=begin_time, image_dir=image_dir
    )
    answers = await ask_nodes(process, nodes, request, max_wait)
    codes = [_code(each) for each in answers]
    return _result(process, next((code for code in reversed(codes) if code), SLURM_SUCCESS))


def _request(
    op: int, job_id: int, step_id: int, data: int = 0, image_dir: str = ""
) -> RequestCheckpoint:
    return RequestCheckpoint(op=op, data=data, job_id=job_id, step_id=step_id, image_dir=image_dir)


async def _operate(process: Process, request: RequestCheckpoint) -> tuple[int, ResponseCheckpoint]:
    """Ask slurmctld for an operation; return the result, and what it has told besides."""
    nothing = ResponseCheckpoint()
    try:
        answer = await ask_slurmctld(process, request)
    except SlurmError as failure:
        process.errno = failure.errno
        return SLURM_ERROR, nothing
    if isinstance(answer, ResponseCheckpoint):
        return SLURM_SUCCESS, answer
    return _result(process, _code(answer)), nothing


async def _report(process: Process, request: Message) -> int:
    try:
        code = _code(await ask_slurmctld(process, request))
    except SlurmError as failure:
        code = failure.errno
    if code:
        process.errno = code
    return SLURM_ERROR if code else SLURM_SUCCESS


def _code(answer: Message | int) -> int:
    if isinstance(answer, int):
        return answer
    return answer.return_code if isinstance(answer, ResponseSlurmRc) else SLURM_SUCCESS


def _result(process: Process, code: int) -> int:
    """Return what a function returns for an error number, which becomes errno."""
    if not code:
        return SLURM_SUCCESS
    process.errno = code
    return code if reach_of(process).model == "modern" else SLURM_ERROR
