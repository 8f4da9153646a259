"""Suspended jobs: their processes stopped, their nodes given back, their clock standing still."""

from simctl.ctld import authority
from simctl.ctld.checkpoints import checkpoint_times
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import arrays, launch, limits, suspend_switch
from simctl.ctld.jobs.suspensions import forget, hand_back, take_again
from simctl.ctld.state.records import JobArray, JobRecord
from simctl.ctld.steps import step_limits
from simctl.kernel.fabric import Envelope
from simctl.plugins.hooks import Handle
from simctl.wire.errno import (
    ESLURM_ALREADY_DONE,
    ESLURM_DISABLED,
    ESLURM_INVALID_JOB_ID,
    ESLURM_JOB_PENDING,
    ESLURM_NODES_BUSY,
    ESLURM_TRANSITION_STATE_NO_UPDATE,
    SLURM_SUCCESS,
)
from simctl.wire.ids import INFINITE
from simctl.wire.messages import RESUME_JOB, SUSPEND_JOB, RequestSuspend, RequestSuspendInt
from simctl.wire.states import RUNNING, SUSPENDED, JobBase


async def suspend(ctld: Controller, envelope: Envelope, message: RequestSuspend) -> None:
    """Suspend or resume a job, the running tasks of an array or some.

    Answers ESLURM_INVALID_JOB_ID, ESLURM_JOB_PENDING, ESLURM_ALREADY_DONE,
    ESLURM_TRANSITION_STATE_NO_UPDATE of a job that is CONFIGURING, what the switch plugin
    refuses with, ESLURM_DISABLED where a job that is not suspended should go on, or
    ESLURM_NODES_BUSY where other jobs have its nodes. In Slurm: `job_suspend()` of job_mgr.c.
    """
    array = ctld.arrays.get(message.job_id)
    if array is None and message.job_id not in ctld.jobs:
        rc = ESLURM_INVALID_JOB_ID
    elif denied := authority.refusal(ctld, envelope):
        rc = denied
    else:
        rcs = [await _act(ctld, job, message.op) for job in await _targets(ctld, array, message)]
        # Of an array, what waits or is over does not matter as long as one task does neither.
        rc = min(rcs, default=ESLURM_INVALID_JOB_ID)
    ctld.answer(envelope, rc)


async def _targets(
    ctld: Controller, array: JobArray | None, message: RequestSuspend
) -> list[JobRecord]:
    """Return the records that are meant, without splitting off tasks that wait."""
    if array is not None and set(message.array_tasks) & set(array.waiting):
        records = [array.records.get(task, array.rest) for task in message.array_tasks]
        return [job for job in dict.fromkeys(records) if job is not None]
    return await arrays.targets(ctld, message.job_id, message.array_tasks)


async def _act(ctld: Controller, job: JobRecord, op: int) -> int:
    if job.state.base is JobBase.PENDING:
        return ESLURM_JOB_PENDING
    if job.state.finished:
        return ESLURM_ALREADY_DONE
    if job.state.configuring:
        return ESLURM_TRANSITION_STATE_NO_UPDATE
    if op == SUSPEND_JOB:
        return await _suspend(ctld, job)
    return await _resume(ctld, job)


async def _suspend(ctld: Controller, job: JobRecord) -> int:
    """Suspend a running job; a suspended one stays as it is, and is now for people to resume.

    The switch is asked in either case.
    """
    rc = await suspend_switch.test(ctld, job)
    if rc:
        return rc
    if job.state.base is JobBase.RUNNING:
        await put_aside(ctld, job)
        ctld.request_pass()
    ctld.preempted.pop(job.job_id, None)
    job.suspend_by_hand()
    return SLURM_SUCCESS


async def put_aside(ctld: Controller, job: JobRecord) -> None:
    """Give a running job's nodes back and have it stopped there."""
    hand_back(ctld, job)
    told = await suspend_switch.told(ctld, job)
    job.suspend(ctld.now_us)
    ctld.suspended[job.job_id] = job
    ctld.set_job(job, SUSPENDED)
    checkpoint_times.watch(ctld)
    job.count_suspension()
    await _tell_nodes(ctld, job, SUSPEND_JOB, told)


async def _resume(ctld: Controller, job: JobRecord) -> int:
    """Let a suspended job go on, if it is one and its nodes are free."""
    if job.state.base is not JobBase.SUSPENDED:
        return ESLURM_DISABLED
    return SLURM_SUCCESS if await go_on(ctld, job) else ESLURM_NODES_BUSY


async def go_on(ctld: Controller, job: JobRecord) -> bool:
    """Take a suspended job's nodes again and let it go on; false while others have them."""
    if not take_again(ctld, job):
        return False
    told = await suspend_switch.told(ctld, job)
    forget(ctld, job)
    ctld.start_limit(job)
    if job.limit_us != INFINITE:
        limits.watch_warning(ctld, job)
    ctld.set_job(job, RUNNING)
    limits.watch_deadline(ctld, job)
    step_limits.resume(ctld, job)
    checkpoint_times.watch(ctld)
    job.count_suspension()
    await _tell_nodes(ctld, job, RESUME_JOB, told)
    if job.batch and job.launched_us < 0:
        # It was suspended before its node could be told to run its script.
        launch.tell(ctld, job)
    return True


async def tell_again(ctld: Controller, job: JobRecord) -> None:
    """Tell a job's nodes of its last suspension or resumption; who knows of it does nothing."""
    op = SUSPEND_JOB if job.state.base is JobBase.SUSPENDED else RESUME_JOB
    await _tell_nodes(ctld, job, op, await suspend_switch.told(ctld, job))


async def _tell_nodes(ctld: Controller, job: JobRecord, op: int, told: Handle) -> None:
    for node in job.nodes:
        switch_info = await suspend_switch.packed(ctld, job, told)
        message = RequestSuspendInt(
            job_id=job.job_id,
            op=op,
            switch_info=switch_info,
            number=job.suspensions,
            restart_cnt=job.restart_cnt,
        )
        ctld.send(ctld.address(node), message)
    await suspend_switch.free(ctld, job, told)
