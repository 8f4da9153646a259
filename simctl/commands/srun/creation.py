"""srun asks slurmctld for its step, again and again while there is no room for it."""

from typing import Final

from simctl.commands.asking.ask import LostError
from simctl.commands.srun.allocation import SrunJob
from simctl.commands.submission.describe import refuse
from simctl.site import CommandCall
from simctl.wire.errno import (
    ESLURM_ALREADY_DONE,
    ESLURM_DISABLED,
    ESLURM_INVALID_JOB_ID,
    ESLURM_NODES_BUSY,
    ESLURM_PROLOG_RUNNING,
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    SlurmError,
    errno_name,
    slurm_strerror,
)
from simctl.wire.ids import SECOND
from simctl.wire.messages import RequestJobStepCreate, ResponseJobStepCreate, SrunJobComplete

_FIRST_PAUSE_US: Final = 100_000
_LONGEST_PAUSE_US: Final = 29 * SECOND

_WORTH_WAITING: Final = (
    *(ESLURM_NODES_BUSY, ESLURM_DISABLED, ESLURM_PROLOG_RUNNING),
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
)
"""Why there may be no step now, and one later."""

_TIMED_OUT: Final = SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT
_UNANSWERED_AT_MOST: Final = 10
"""How often srun asks again for a step where slurmctld does not answer."""

_RETRY_S: Final = 120
_RETRY_SPREAD: Final = 10
"""A srun that is not woken asks again after SlurmctldTimeout and up to ten seconds by its pid."""


async def create_step(
    call: CommandCall, job: SrunJob, request: RequestJobStepCreate
) -> ResponseJobStepCreate | None:
    """Ask for the step until it is made or refused; None when the wait for it is over."""
    waited = False
    own = call.process.cause
    pause_us = _FIRST_PAUSE_US
    unanswered = 0
    while True:
        reply = await _ask(job, request)
        unanswered += reply is not None and reply.error_code == _TIMED_OUT
        if unanswered > _UNANSWERED_AT_MOST:
            raise SlurmError(_TIMED_OUT)
        in_time = call.site.kernel.now_us < job.patient_to_us and not request.immediate
        if reply is None or reply.error_code not in _WORTH_WAITING or not in_time:
            if waited and reply is not None and not reply.error_code:
                job.tell(f"Step created for StepId={job.job_id}.{reply.step_id}")
            return reply
        if reply.error_code == ESLURM_NODES_BUSY:
            # Who waits for cpus is woken when a step ends.
            call.site.kernel.look_at_number()
            pause_us = (_RETRY_S + call.process.pid % _RETRY_SPREAD) * SECOND
        if not waited and reply.error_code != ESLURM_PROLOG_RUNNING:
            waited = True
            reason = slurm_strerror(reply.error_code)
            job.tell(f"Job {job.job_id} step creation temporarily disabled, retrying ({reason})")
        if not await _wait_to_retry(call, job, pause_us):
            return None
        # What made it ask again only made it ask at this moment.
        call.site.trace.choose(call.process, own)
        pause_us = min(2 * pause_us, _LONGEST_PAUSE_US)


async def _ask(job: SrunJob, request: RequestJobStepCreate) -> ResponseJobStepCreate | None:
    """Ask once; that there was no answer in time is an answer like others.

    Raises:
        SlurmError: slurmctld cannot be reached, or what is asked of it never gets there.
    """
    try:
        return await job.ask(request, ResponseJobStepCreate)
    except SlurmError as error:
        if error.errno not in _WORTH_WAITING or (isinstance(error, LostError) and error.for_ever):
            raise
        return ResponseJobStepCreate(job_id=job.job_id, error_code=error.errno)


async def _wait_to_retry(call: CommandCall, job: SrunJob, pause_us: int) -> bool:
    """Wait until another step of the job ends, or long enough; false when told to end."""
    due_us = min(call.site.kernel.now_us + pause_us, job.patient_to_us)
    while not job.woken:
        envelope = await call.mailbox.receive_until(due_us)
        if envelope is None:
            return True
        job.handle(envelope)
        if isinstance(envelope.message, SrunJobComplete):
            job.tell_forced()
            return False
        if job.told_to_end:
            job.tell(f"Cancelled pending step for job {job.job_id}")
            return False
    job.woken = False
    return True


def say_why_not(call: CommandCall, job_id: int, error_code: int, *, confirms: bool = False) -> None:
    """Say why there is no step, or with *confirms* why there is no job for one."""
    if confirms and error_code == ESLURM_ALREADY_DONE:
        call.errno = errno_name(error_code)
        call.err(f"srun: error: Slurm job {job_id} has expired")
        call.err(f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {job_id}")
        return
    if confirms or error_code == ESLURM_INVALID_JOB_ID:
        refuse(call, f"Unable to confirm allocation for job {job_id}", error_code)
        call.err(f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {job_id}")
        return
    refuse(call, f"Unable to create step for job {job_id}", error_code)
