"""What is left of a job when it has ended: a row of the report."""

from simctl.ctld.controller import Controller
from simctl.ctld.job_rows import row
from simctl.ctld.records import JobRecord
from simctl.wire.states import JobBase


def account(ctld: Controller, job: JobRecord, base: JobBase) -> None:
    """Record how a run of a job ended."""
    ended = row(job, base.name, job.reason)
    ctld.runs_ended += 1
    if ctld.take_row is None:
        ctld.ended_rows[job.job_id] = ended
    else:
        ctld.take_row(ended)
