"""Signals for jobs and steps, sent to the nodes that run them."""

from simctl.ctld.controller import Controller
from simctl.ctld.state.records import JobRecord, StepRecord
from simctl.wire.errno import ESLURM_ALREADY_DONE, ESLURM_INVALID_JOB_ID, SLURM_SUCCESS
from simctl.wire.ids import SLURM_BATCH_SCRIPT
from simctl.wire.messages import RequestKillJob, RequestSignalTasks
from simctl.wire.states import JobBase


def signal_job(ctld: Controller, job: JobRecord, message: RequestKillJob) -> None:
    """Signal the steps of a running job, or its batch script, or with `full` both."""
    if not message.batch_only:
        signal_steps(ctld, job, message.signal)
    if job.batch and (message.batch_only or message.full):
        ctld.send(
            ctld.address(job.nodes[0]),
            RequestSignalTasks(
                job_id=job.job_id, step_id=SLURM_BATCH_SCRIPT, signal=message.signal
            ),
        )


def signal_steps(ctld: Controller, job: JobRecord, signal: int) -> None:
    """Signal the steps of a running job, and not its batch script."""
    for step in job.steps.values():
        signal_step(ctld, step, signal)


def signal_one(ctld: Controller, job: JobRecord, step_id: int, signal: int) -> int:
    """Signal one step of a running job, or its batch script and what that has started.

    Of a job without a script all steps are meant by the number of the script.
    """
    if job.state.base is not JobBase.RUNNING:
        return ESLURM_ALREADY_DONE
    if step_id != SLURM_BATCH_SCRIPT:
        step = job.steps.get(step_id)
        if step is None:
            return ESLURM_INVALID_JOB_ID
        signal_step(ctld, step, signal)
    elif not job.batch:
        signal_steps(ctld, job, signal)
    else:
        ctld.send(
            ctld.address(job.nodes[0]),
            RequestSignalTasks(
                job_id=job.job_id, step_id=SLURM_BATCH_SCRIPT, signal=signal, container=True
            ),
        )
    return SLURM_SUCCESS


def signal_step(ctld: Controller, step: StepRecord, signal: int) -> None:
    """Signal a step on each of its nodes."""
    for node in ctld.nodes_named(step.layout.nodes):
        ctld.send(
            ctld.address(node),
            RequestSignalTasks(job_id=step.job.job_id, step_id=step.step_id, signal=signal),
        )
