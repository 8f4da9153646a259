"""scancel's side in the controller: who may end what, and what a signal does."""

from simctl.ctld import authority
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import arrays, asking
from simctl.ctld.jobs.completion import end_job
from simctl.ctld.jobs.pending import cancel_pending
from simctl.ctld.jobs.signals import signal_job, signal_step
from simctl.ctld.state.records import JobRecord
from simctl.kernel.fabric import Envelope
from simctl.kernel.procs import SIGCONT, SIGKILL, SIGSTOP
from simctl.wire.errno import (
    ESLURM_ALREADY_DONE,
    ESLURM_INVALID_JOB_ID,
    ESLURM_TRANSITION_STATE_NO_UPDATE,
    SLURM_SUCCESS,
)
from simctl.wire.messages import (
    RequestCancelJobStep,
    RequestKillJob,
    SrunJobComplete,
)
from simctl.wire.signals import SIG_TERM_KILL
from simctl.wire.states import (
    COMPLETING,
    PENDING_COMPLETING,
    RUNNING,
    RUNNING_STOPPED,
    JobBase,
    Reason,
)


def _refusal(ctld: Controller, job: JobRecord | None, envelope: Envelope) -> int:
    """Return why the sender may not touch a job, or 0."""
    if job is None:
        return ESLURM_INVALID_JOB_ID
    return authority.refusal(ctld, envelope, job.desc.uid)


async def kill_job(ctld: Controller, envelope: Envelope, message: RequestKillJob) -> None:
    """Cancel a job, all of an array or some of its tasks, or hand another signal to their steps.

    Answers ESLURM_INVALID_JOB_ID, ESLURM_ALREADY_DONE if all that was meant is over, or
    ESLURM_TRANSITION_STATE_NO_UPDATE where a job has no processes that could get the signal. In
    Slurm: `job_signal()` of job_mgr.c.
    """
    head = ctld.arrays[message.job_id].first if message.job_id in ctld.arrays else None
    job = head or ctld.jobs.get(message.job_id)
    if message.array_tasks and head is None:
        job = None
    rc = _refusal(ctld, job, envelope)
    if not rc:
        uid = authority.uid_of(ctld, envelope)
        rcs = [await _kill(ctld, each, message, uid) for each in await _meant(ctld, message)]
        # Of an array, tasks that are over do not matter as long as one is not.
        rc = min(
            rcs,
            key=lambda each: (each == ESLURM_ALREADY_DONE, -each),
            default=ESLURM_INVALID_JOB_ID,
        )
    ctld.answer(envelope, rc)


async def _meant(ctld: Controller, message: RequestKillJob) -> list[JobRecord]:
    """Return the records of jobs that a request means."""
    array = ctld.arrays.get(message.job_id)
    if message.waiting_only and array is not None:
        return [array.rest] if array.rest is not None else []
    return await arrays.targets(ctld, message.job_id, message.array_tasks)


async def _kill(ctld: Controller, job: JobRecord, message: RequestKillJob, uid: int) -> int:
    if job.state.finished:
        if message.hurry and message.signal == SIGKILL and ctld.bb is not None:
            return await _hurry(ctld, job)
        return ESLURM_ALREADY_DONE
    if job.state == PENDING_COMPLETING:
        if message.signal != SIGKILL or message.batch_only:
            return ESLURM_TRANSITION_STATE_NO_UPDATE
        # Its nodes are letting go of it already: it only does not go back into the queue.
        job.cancelled_by(uid)
        ctld.set_job(job, COMPLETING[JobBase.CANCELLED])
        return SLURM_SUCCESS
    if message.signal == SIGKILL:
        job.cancelled_by(uid, hurry=message.hurry and not message.batch_only)
    if job.state.base is JobBase.PENDING:
        return await cancel_pending(ctld, job, message.signal)
    if message.signal == SIGKILL and not message.batch_only:
        await end_job(ctld, job, JobBase.CANCELLED, Reason.NONE)
    elif job.state.base is JobBase.SUSPENDED:
        return ESLURM_TRANSITION_STATE_NO_UPDATE
    else:
        _note_stop(ctld, job, message.signal)
        signal_job(ctld, job, message)
    return SLURM_SUCCESS


async def _hurry(ctld: Controller, job: JobRecord) -> int:
    """Give up the stage-out of a job that is over; what its plugin says of that is the answer."""
    assert ctld.bb is not None
    if not job.state.staging_out:
        return ESLURM_ALREADY_DONE
    asking.stirred(ctld, by_somebody=True)
    return await ctld.bb.cancel(job)


def _note_stop(ctld: Controller, job: JobRecord, signal: int) -> None:
    """Show that a user has stopped a job, which keeps its nodes, or lets it go on."""
    if signal == SIGSTOP and job.state == RUNNING:
        ctld.set_job(job, RUNNING_STOPPED)
    elif signal == SIGCONT and job.state == RUNNING_STOPPED:
        ctld.set_job(job, RUNNING)


async def cancel_job_step(
    ctld: Controller, envelope: Envelope, message: RequestCancelJobStep
) -> None:
    """Signal one step; what ends it is told to its srun as well.

    Answers ESLURM_INVALID_JOB_ID for a job or step that never was, ESLURM_ALREADY_DONE for one
    that is over, or ESLURM_TRANSITION_STATE_NO_UPDATE while the job waits or is suspended. In
    Slurm: `job_step_signal()` of step_mgr.c.
    """
    job = ctld.jobs.get(message.job_id)
    rc = _refusal(ctld, job, envelope)
    if job is not None and not rc:
        step = job.steps.get(message.step_id)
        if job.state.base in (JobBase.PENDING, JobBase.SUSPENDED):
            rc = ESLURM_TRANSITION_STATE_NO_UPDATE
        elif job.state.finished or step is None:
            was = job.state.finished or message.step_id < job.next_step_id
            rc = ESLURM_ALREADY_DONE if was else ESLURM_INVALID_JOB_ID
        else:
            if envelope.sender is not step.srun:
                # What an srun ends by itself counts as cancelled by no user.
                step.cancelled_by(authority.uid_of(ctld, envelope))
            ends = message.signal in (SIGKILL, SIG_TERM_KILL)
            if ends and step.srun is not None and step.srun.open:
                ctld.send(step.srun, SrunJobComplete(job_id=job.job_id, step_id=step.step_id))
            signal_step(ctld, step, message.signal)
    ctld.answer(envelope, rc)
