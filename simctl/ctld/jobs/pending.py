"""The end of jobs that wait."""

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import arrays, staging
from simctl.ctld.jobs.completion import clients, end_by_status, finish
from simctl.ctld.reporting import bookkeeping
from simctl.ctld.state import queue
from simctl.ctld.state.records import JobRecord
from simctl.kernel.procs import SIGKILL, SIGTERM
from simctl.wire.errno import ESLURM_JOB_PENDING, SLURM_SUCCESS
from simctl.wire.messages import SrunJobComplete
from simctl.wire.states import CANCELLED, PENDING, JobBase, JobState


async def end_waiting(
    ctld: Controller, job: JobRecord, state: JobState, reason: str, exit_code: int | None = None
) -> None:
    """End a job that has no nodes, and its staging; without an exit code it keeps what it has."""
    _mark(ctld, job, state, reason, exit_code)
    await staging.ended(ctld, job)
    _tell(ctld, job)


def end_pending(ctld: Controller, job: JobRecord, state: JobState) -> None:
    """End a job that has no nodes; its staging ends once slurmctld has done its present work."""
    _mark(ctld, job, state, job.reason)
    if ctld.bb is not None:
        ctld.bb.owed.append(job)
    _tell(ctld, job)


def _mark(
    ctld: Controller, job: JobRecord, state: JobState, reason: str, exit_code: int | None = None
) -> None:
    """Let a job be over for a reason."""
    if job.queued:
        queue.take_from_queue(job)
        ctld.request_pass()
    job.end_waiting(ctld.now_us, reason, exit_code)
    bookkeeping.run_ended(ctld, job, state.base.name)
    ctld.set_job(job, state)


def _tell(ctld: Controller, job: JobRecord) -> None:
    """Tell the clients of a job, and the jobs that wait for it, that it is over."""
    arrays.cancelled(job)
    for srun in clients(job):
        ctld.send(srun, SrunJobComplete(job_id=job.job_id))
    finish(ctld, job)


async def cancel_pending(ctld: Controller, job: JobRecord, signal: int) -> int:
    """End a job that never ran; its reason to wait stays."""
    if signal != SIGKILL:
        return ESLURM_JOB_PENDING
    await end_waiting(ctld, job, CANCELLED, queue.reason_to_wait(job))
    return SLURM_SUCCESS


async def cancel_without_client(ctld: Controller, job: JobRecord) -> None:
    """End a job whose client could not be told of its allocation, and has gone away."""
    if job.state == PENDING:
        await cancel_pending(ctld, job, SIGKILL)
    elif job.state.base is JobBase.RUNNING:
        job.lose_client()
        await end_by_status(ctld, job, SIGTERM)
