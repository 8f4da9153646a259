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


async def end_waiting(ctld: Controller, job: JobRecord, state: JobState) -> None:
    """End a job that has no nodes, and its staging."""
    _mark(ctld, job, state)
    await staging.ended(ctld, job)
    _tell(ctld, job)


def end_pending(ctld: Controller, job: JobRecord, state: JobState) -> None:
    """End a job that has no nodes; its staging ends once slurmctld has done its present work."""
    _mark(ctld, job, state)
    if ctld.bb is not None:
        ctld.bb.owed.append(job)
    _tell(ctld, job)


def _mark(ctld: Controller, job: JobRecord, state: JobState) -> None:
    """Let a job be over for the reason it has."""
    if job.queued:
        queue.take_from_queue(job)
        ctld.request_pass()
    job.begin_us = -1
    job.start_us = job.end_us = ctld.now_us
    bookkeeping.waits(job, job.reason)
    bookkeeping.run_ended(ctld, job, state.base.name)
    ctld.set_job(job, state)


def _tell(ctld: Controller, job: JobRecord) -> None:
    """Tell everybody whom the end of a job concerns, its client too."""
    arrays.cancelled(job)
    for srun in clients(job):
        ctld.send(srun, SrunJobComplete(job_id=job.job_id))
    finish(ctld, job)


async def cancel_pending(ctld: Controller, job: JobRecord, signal: int) -> int:
    """End a job that never ran; its reason to wait stays."""
    if signal != SIGKILL:
        return ESLURM_JOB_PENDING
    job.reason = queue.reason_to_wait(job)
    await end_waiting(ctld, job, CANCELLED)
    return SLURM_SUCCESS


async def cancel_without_client(ctld: Controller, job: JobRecord) -> None:
    """End a job whose client could not be told of its allocation, and has gone away."""
    if job.state == PENDING:
        await cancel_pending(ctld, job, SIGKILL)
    elif job.state.base is JobBase.RUNNING:
        job.client = None
        await end_by_status(ctld, job, SIGTERM)
