"""What slurmctld tells scontrol besides: scripts and its set-up; and what it tells jobs for it."""

from simctl.ctld import authority
from simctl.ctld.controller import Controller
from simctl.ctld.state.records import JobRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.errno import (
    ESLURM_ALREADY_DONE,
    ESLURM_INVALID_JOB_ID,
    ESLURM_JOB_PENDING,
    ESLURM_JOB_SCRIPT_MISSING,
    SLURM_SUCCESS,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    RequestBatchScript,
    RequestBuildInfo,
    RequestJobNotify,
    ResponseBatchScript,
    ResponseBuildInfo,
    SrunUserMsg,
)
from simctl.wire.states import JobBase


def _refusal(ctld: Controller, job: JobRecord | None, envelope: Envelope) -> int:
    """Return why a user may not have to do with a job, or 0."""
    if job is None:
        return ESLURM_INVALID_JOB_ID
    return authority.refusal(ctld, envelope, job.desc.uid)


def _find(ctld: Controller, job_id: int) -> JobRecord | None:
    """Return a job; of an array, the record it was submitted as."""
    array = ctld.arrays.get(job_id)
    return array.first if array is not None else ctld.jobs.get(job_id)


async def batch_script(ctld: Controller, envelope: Envelope, message: RequestBatchScript) -> None:
    """Send the script of a batch job to its owner, or to an operator.

    Answers ESLURM_INVALID_JOB_ID, or ESLURM_JOB_SCRIPT_MISSING for a job without script.
    """
    job = _find(ctld, message.job_id)
    rc = _refusal(ctld, job, envelope)
    if not rc and job is not None and job.batch:
        ctld.send(envelope.sender, ResponseBatchScript(script=job.desc.script))
        return
    ctld.answer(envelope, rc or ESLURM_JOB_SCRIPT_MISSING)


async def job_notify(ctld: Controller, envelope: Envelope, message: RequestJobNotify) -> None:
    """Have a job told something: by its srun or salloc, or on the error output of its script.

    Answers ESLURM_INVALID_JOB_ID, ESLURM_ALREADY_DONE for a job that is over, or
    ESLURM_JOB_PENDING for one that has not started.
    """
    job = _find(ctld, message.job_id)
    rc = _refusal(ctld, job, envelope)
    if job is not None and not rc:
        rc = _pass_on(ctld, job, message.text)
    ctld.answer(envelope, rc)


def _pass_on(ctld: Controller, job: JobRecord, text: str) -> int:
    pending = job.state.base is JobBase.PENDING
    if not pending and job.state.base is not JobBase.RUNNING:
        return ESLURM_ALREADY_DONE
    if not job.batch and job.client is not None and job.client.open:
        ctld.send(job.client, SrunUserMsg(job_id=job.job_id, text=text))
        return SLURM_SUCCESS
    if pending or not job.nodes:
        return ESLURM_JOB_PENDING
    ctld.send(ctld.address(job.nodes[0]), RequestJobNotify(job_id=job.job_id, text=text))
    return SLURM_SUCCESS


async def build_info(ctld: Controller, envelope: Envelope, _: RequestBuildInfo) -> None:
    """Tell when the controller started, how many nodes there are, and the id of the next job."""
    zero_s = ctld.site.start_time_s
    answer = ResponseBuildInfo(
        now_s=zero_s + ctld.now_us // SECOND,
        boot_s=zero_s,
        num_nodes=len(ctld.nodes),
        next_job_id=ctld.next_job_id,
    )
    ctld.send(envelope.sender, answer)
