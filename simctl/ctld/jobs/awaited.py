"""Who waits for a job to be over: the answer to such a request is held back until it is.

Slurm's sbatch asks again and again. An answer that changes nothing is neither asked for nor given
here, so the one that matters comes when there is something to say.
"""

from simctl.ctld.controller import Controller
from simctl.ctld.reporting.info import answer_about, records_of
from simctl.ctld.state.records import JobRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.messages import RequestJobInfo, ResponseJobOver


def hold(ctld: Controller, envelope: Envelope, message: RequestJobInfo) -> bool:
    """Hold an answer back until all the tasks of a job are over; false if they are already."""
    if all(job.state.finished for job in records_of(ctld, message.job_id)):
        return False
    ctld.awaited.setdefault(message.job_id, []).append(envelope)
    return True


def over(ctld: Controller, job: JobRecord) -> None:
    """Answer those who wait for a job, or for the array of which it was the last task."""
    over_id(ctld, job.array.job_id if job.array is not None else job.job_id)


def over_id(ctld: Controller, job_id: int) -> None:
    """Answer those who wait for a job or an array, if all of it is over."""
    if job_id not in ctld.awaited:
        return
    if all(each.state.finished for each in records_of(ctld, job_id)):
        told = answer_about(ctld, job_id)
        for envelope in ctld.awaited.pop(job_id):
            ctld.send(envelope.sender, ResponseJobOver(now_s=told.now_s, jobs=told.jobs))
