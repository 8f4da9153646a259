"""The end of jobs that wait."""

from typing import TYPE_CHECKING

from simctl.ctld import arrays, bookkeeping, schedule
from simctl.ctld.completion import clients, finish
from simctl.ctld.records import JobRecord
from simctl.wire.messages import SrunJobComplete
from simctl.wire.states import JobState

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld


def end_pending(ctld: "Slurmctld", job: JobRecord, state: JobState) -> None:
    """End a job that has no nodes, for the reason it has; its client is told."""
    if job.queued:
        schedule.take_from_queue(job)
        ctld.request_pass()
    job.begin_us = -1
    job.start_us = job.end_us = ctld.now_us
    bookkeeping.waits(job, job.reason)
    bookkeeping.run_ended(ctld, job, state.base.name)
    ctld.set_job(job, state)
    arrays.cancelled(job)
    for srun in clients(job):
        ctld.send(srun, SrunJobComplete(job_id=job.job_id))
    finish(ctld, job)
