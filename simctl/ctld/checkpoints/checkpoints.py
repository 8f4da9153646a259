"""Checkpoint operations: who may ask for which when, where images go, what the plugin says.

The step id of a batch script is also that of "all steps": of a batch job the script is meant, of
any other job each of its steps, one after the other.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from simctl.ctld.checkpoints import checkpoint_files
from simctl.ctld.checkpoints.checkpoint_times import _job, due_us, watch
from simctl.ctld.controller import Controller
from simctl.ctld.reporting.step_view import LiveStep, live_step
from simctl.ctld.state.notices import CheckpointsDue
from simctl.ctld.state.records import JobRecord, StepRecord
from simctl.kernel.fabric import Envelope
from simctl.plugin import CheckOp, CheckpointStatus
from simctl.plugins.hooks import About
from simctl.plugins.points.checkpoint import slurm_ckpt_op
from simctl.wire.conf.slurm_conf import can_checkpoint
from simctl.wire.errno import (
    ESLURM_ACCESS_DENIED,
    ESLURM_ALREADY_DONE,
    ESLURM_DISABLED,
    ESLURM_INVALID_JOB_ID,
    ESLURM_JOB_PENDING,
    ESLURM_JOB_SUSPENDED,
    SLURM_ERROR,
    SLURM_SUCCESS,
)
from simctl.wire.ids import SLURM_BATCH_SCRIPT, step_name
from simctl.wire.messages import RequestCheckpoint
from simctl.wire.states import JobBase

MAKES_IMAGES: Final = (CheckOp.CREATE, CheckOp.VACATE, CheckOp.REQUEUE)
_NOTHING: Final = CheckpointStatus()


@attrs.frozen
class Outcome:
    """What became of an operation: 0 or an error's number, and what the plugin gave back."""

    rc: int
    status: CheckpointStatus = _NOTHING


async def operate(ctld: Controller, request: RequestCheckpoint, uid: int) -> Outcome:
    """Have the plugin perform an operation, unless slurmctld itself refuses it."""
    job = ctld.jobs.get(request.job_id)
    whole = request.step_id == SLURM_BATCH_SCRIPT
    if job is None:
        return Outcome(ESLURM_INVALID_JOB_ID)
    others = (0, ctld.process.uid) if whole else (0,)
    rc = refusal(job, uid in (job.desc.uid, *others), whole=whole)
    if rc:
        return Outcome(rc)
    if not whole:
        step = job.steps.get(request.step_id)
        return Outcome(ESLURM_INVALID_JOB_ID) if step is None else await _step(ctld, step, request)
    if job.batch:
        return await _batch(ctld, job, request)
    return worst([await _step(ctld, step, request) for step in list(job.steps.values())])


def refusal(job: JobRecord, allowed: bool, *, whole: bool) -> int:
    """Return why no operation may concern a job now, or 0; *whole* that it is no one step. Pure."""
    if not allowed:
        return ESLURM_ACCESS_DENIED
    base = job.state.base
    if base is JobBase.PENDING:
        return ESLURM_JOB_PENDING
    if base is JobBase.SUSPENDED:
        return ESLURM_JOB_SUSPENDED if whole else ESLURM_DISABLED
    return SLURM_SUCCESS if base is JobBase.RUNNING else ESLURM_ALREADY_DONE


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Return what to tell of an operation on several steps. Pure.

    The highest error number there is, the latest begin, and the highest error code with its text.
    """
    rc = max((each.rc for each in outcomes if each.rc), default=SLURM_SUCCESS)
    status = max((each.status for each in outcomes), key=_error_code, default=_NOTHING)
    begun = max((each.status.event_time for each in outcomes), default=0)
    return Outcome(rc, attrs.evolve(status, event_time=begun))


def _error_code(status: CheckpointStatus) -> int:
    return status.error_code


async def _batch(ctld: Controller, job: JobRecord, request: RequestCheckpoint) -> Outcome:
    """Perform an operation on a batch script; one that makes images keeps the job's description."""
    folder = ""
    if request.op in MAKES_IMAGES:
        folder = request.image_dir or job.ckpt_dir
        rc = checkpoint_files.write(ctld, job, folder) if folder else ESLURM_DISABLED
        # checkpoint/none has no directory to write to, and refuses by itself.
        if rc and can_checkpoint(ctld.site.conf):
            return Outcome(rc)
    image_dir = f"{folder}/{job.job_id}"
    about = About(job=job.job_id, step=step_name(job.job_id, SLURM_BATCH_SCRIPT))
    outcome = await _ask(ctld, None, request, SLURM_BATCH_SCRIPT, image_dir, about)
    await ctld.saves.note(job)
    if request.op == CheckOp.REQUEUE and outcome.rc == SLURM_SUCCESS:
        job.requeue_from(image_dir)
    return outcome


async def _step(ctld: Controller, step: StepRecord, request: RequestCheckpoint) -> Outcome:
    """Perform an operation on a step."""
    image_dir = f"{request.image_dir or step.ckpt_dir}/{step.job.job_id}.{step.step_id}"
    view = live_step(ctld, step)
    outcome = await _ask(ctld, view, request, step.step_id, image_dir, step.about)
    await ctld.saves.note(step)
    return outcome


async def _ask(
    ctld: Controller,
    view: LiveStep | None,
    request: RequestCheckpoint,
    step_id: int,
    image_dir: str,
    about: About,
) -> Outcome:
    result = await ctld.site.hooks.call(
        slurm_ckpt_op,
        ctld.process,
        request.job_id,
        step_id,
        view,
        int(request.op),
        request.data,
        image_dir,
        about=about,
    )
    if isinstance(result, CheckpointStatus):
        return Outcome(SLURM_SUCCESS, result)
    rc = int(result or SLURM_SUCCESS)
    return Outcome(ctld.process.errno or SLURM_ERROR if rc < 0 else rc)


async def checkpoints_due(ctld: Controller, _: Envelope, message: CheckpointsDue) -> None:
    """Ask for the checkpoints that are due, in the order of the jobs; a refusal is ignored."""
    if message.at_us != ctld.periodic_us:
        # It came while slurmctld was away.
        return
    due = [
        (_job(record).place, key, record)
        for key, record in ctld.periodic.items()
        if _job(record).state.base is JobBase.RUNNING and due_us(record) <= ctld.now_us
    ]
    for _place, (job_id, step_id), record in sorted(due, key=lambda each: each[:2]):
        record.checkpointed(ctld.now_us)
        request = RequestCheckpoint(op=CheckOp.CREATE, job_id=job_id, step_id=step_id)
        await operate(ctld, request, 0)
    watch(ctld)
