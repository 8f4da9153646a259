"""Requests about checkpoints: operations, restarts of batch jobs, and reports that one is made."""

from typing import Any

import attrs

from simctl.ctld import authority
from simctl.ctld.checkpoints import checkpoint_files
from simctl.ctld.checkpoints.checkpoints import operate
from simctl.ctld.controller import Controller
from simctl.ctld.reporting.step_view import live_step
from simctl.ctld.requests import submit
from simctl.ctld.state.records import StepRecord
from simctl.kernel.fabric import Envelope
from simctl.plugin import CheckOp
from simctl.plugins.hooks import failed
from simctl.plugins.points.checkpoint import slurm_ckpt_comp, slurm_ckpt_task_comp
from simctl.plugins.points.declare import Point
from simctl.wire.errno import (
    EPERM,
    ESLURM_ACCESS_DENIED,
    ESLURM_ALREADY_DONE,
    ESLURM_INVALID_JOB_ID,
    ESLURM_JOB_NOT_FINISHED,
    ESLURM_JOB_PENDING,
    ESLURM_NOT_SUPPORTED,
    SLURM_ERROR,
    SLURM_SUCCESS,
    SlurmError,
)
from simctl.wire.hostlist import expand
from simctl.wire.ids import SLURM_BATCH_SCRIPT
from simctl.wire.messages import (
    RequestCheckpoint,
    RequestCheckpointComp,
    RequestCheckpointTaskComp,
    ResponseCheckpoint,
)
from simctl.wire.states import JobBase


async def checkpoint(ctld: Controller, envelope: Envelope, message: RequestCheckpoint) -> None:
    """Perform an operation; what ABLE and ERROR find out is answered, of others the error alone.

    Answers ESLURM_INVALID_JOB_ID, ESLURM_ACCESS_DENIED, ESLURM_JOB_PENDING,
    ESLURM_JOB_SUSPENDED (of a step ESLURM_DISABLED), ESLURM_ALREADY_DONE, or the errno of the
    plugin; of a restart ESLURM_NOT_SUPPORTED (of a step), ESLURM_JOB_NOT_FINISHED, EPERM, or the
    errno with which a submission is refused. In Slurm: `job_checkpoint()` of job_mgr.c.
    """
    uid = authority.uid_of(ctld, envelope)
    if message.op == CheckOp.RESTART:
        rc = await restart(ctld, message, uid)
        if rc == EPERM:
            ctld.tell_refusal(envelope, rc)
        ctld.answer(envelope, rc)
        return
    outcome = await operate(ctld, message, uid)
    asks = message.op in (CheckOp.ABLE, CheckOp.ERROR)
    if not asks:
        ctld.saves.schedule_job_save()
    if outcome.rc or not asks:
        ctld.answer(envelope, outcome.rc)
        return
    status = outcome.status
    answer = ResponseCheckpoint(
        event_time=status.event_time, error_code=status.error_code, error_msg=status.error_msg
    )
    ctld.send(envelope.sender, answer)


async def restart(ctld: Controller, request: RequestCheckpoint, uid: int) -> int:
    """Submit a batch job again that is over, under its own id, to be launched from its images.

    No plugin is asked. The old record must be gone: as long as it is kept, its id is taken.
    """
    if request.step_id != SLURM_BATCH_SCRIPT:
        return ESLURM_NOT_SUPPORTED
    job = ctld.jobs.get(request.job_id)
    if job is not None and not job.state.finished:
        return ESLURM_JOB_NOT_FINISHED
    try:
        saved = checkpoint_files.read(ctld, request.job_id)
    except SlurmError as error:
        return error.errno
    if uid not in (saved.job.uid, 0, ctld.process.uid):
        return EPERM
    desc = attrs.evolve(saved.job, appends=True)
    if request.data:
        desc = attrs.evolve(desc, nodes=expand(saved.nodes))
    made = await submit.resubmit(ctld, desc)
    if isinstance(made, submit.Refusal):
        return made.error_code
    made.restart_from(f"{request.image_dir or saved.image_dir}/{made.job_id}")
    return SLURM_SUCCESS


async def checkpoint_comp(
    ctld: Controller, envelope: Envelope, message: RequestCheckpointComp
) -> None:
    """Hand the plugin a report that a checkpoint is complete.

    Answers ESLURM_INVALID_JOB_ID, ESLURM_ACCESS_DENIED, ESLURM_JOB_PENDING,
    ESLURM_ALREADY_DONE, ESLURM_NOT_SUPPORTED if the plugin lacks the function, or its errno.
    """
    report = message.begin_time, message.error_code, message.error_msg
    rc = await _complete(ctld, envelope, message, slurm_ckpt_comp, *report)
    ctld.answer(envelope, rc)


async def checkpoint_task_comp(
    ctld: Controller, envelope: Envelope, message: RequestCheckpointTaskComp
) -> None:
    """Hand the plugin a report that the checkpoint of a task is complete.

    Answers as of a whole checkpoint (`checkpoint_comp`).
    """
    report = message.task_id, message.begin_time, message.error_code, message.error_msg
    rc = await _complete(ctld, envelope, message, slurm_ckpt_task_comp, *report)
    ctld.answer(envelope, rc)


async def _complete(
    ctld: Controller,
    envelope: Envelope,
    message: RequestCheckpointComp,
    point: Point,
    *report: Any,
) -> int:
    step = _reported_step(ctld, message, authority.uid_of(ctld, envelope))
    if not isinstance(step, StepRecord):
        return step
    hooks, who = ctld.site.hooks, ctld.process
    if not hooks.has(who, point):
        return ESLURM_NOT_SUPPORTED
    rc: int = await hooks.call(point, who, live_step(ctld, step), *report, about=step.about)
    await ctld.saves.note(step)
    return who.errno or SLURM_ERROR if failed(rc) else rc


def _reported_step(ctld: Controller, message: RequestCheckpointComp, uid: int) -> StepRecord | int:
    """Return the step that a report is about, or why it may not be; without number the first."""
    job = ctld.jobs.get(message.job_id)
    if job is None:
        return ESLURM_INVALID_JOB_ID
    if uid not in (job.desc.uid, 0):
        return ESLURM_ACCESS_DENIED
    if job.state.base is JobBase.PENDING:
        return ESLURM_JOB_PENDING
    if job.state.base not in (JobBase.RUNNING, JobBase.SUSPENDED):
        return ESLURM_ALREADY_DONE
    step = job.steps.get(message.step_id)
    if message.step_id == SLURM_BATCH_SCRIPT:
        step = next(iter(job.steps.values()), None)
    return ESLURM_INVALID_JOB_ID if step is None else step
