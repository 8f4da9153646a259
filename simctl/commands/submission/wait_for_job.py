"""How sbatch --wait waits for the end of a job."""

from typing import Final

from simctl.commands.asking.ask import LostError, ask, controller, wait_until
from simctl.kernel.fabric import NEVER_US
from simctl.kernel.procs import exit_code_of, signal_of
from simctl.site import CommandCall
from simctl.wire.errno import SlurmError, slurm_strerror
from simctl.wire.ids import SECOND
from simctl.wire.messages import Message, RequestJobInfo, ResponseJobInfo

_AGAIN_US: Final = 10 * SECOND
"""How far apart the tries to ask for a job are while slurmctld cannot be reached."""


async def end_of_job(call: CommandCall, job_id: int) -> int:
    """Wait for the end of a job or an array; return the greatest exit status, 1 for a signal.

    Raises:
        SlurmError: slurmctld will never be reached again.
    """
    reply = await _job_over(call, job_id)
    jobs = reply.jobs if isinstance(reply, ResponseJobInfo) else ()
    if not jobs:
        call.err(f"sbatch: error: Job {job_id} no longer found and exit code not found")
    return max(
        (1 if signal_of(job.exit_code) else exit_code_of(job.exit_code) for job in jobs),
        default=1,
    )


async def _job_over(call: CommandCall, job_id: int) -> Message:
    """Return what is told of a job once it is over; the end of a cut is waited for."""
    site = call.site
    while True:
        try:
            return await ask(call, RequestJobInfo(job_id=job_id, when_over=True), patient=True)
        except SlurmError as error:
            to = controller(call)
            lost = isinstance(error, LostError) and not error.for_ever
            if to is None or not (lost or site.fabric.holds_back(call.process, to)):
                raise
            due_us = site.fabric.next_try_us(call.mailbox, to, _AGAIN_US, rests=not lost)
            if due_us == NEVER_US and not site.fabric.waits_for(to):
                raise
            call.err(
                "sbatch: error: Currently unable to load job state information, retrying: "
                f"{slurm_strerror(error.errno)}"
            )
            await wait_until(call, due_us)
