"""Checkpoints that are made by themselves: every so many minutes, when limits are looked at."""

from typing import Final

from simctl.ctld.controller import Controller
from simctl.ctld.state.notices import CheckpointsDue
from simctl.ctld.state.records import JobRecord, StepRecord
from simctl.ctld.state.recurring import check_at_or_after
from simctl.wire.conf.slurm_conf import can_checkpoint
from simctl.wire.ids import SECOND, SLURM_BATCH_SCRIPT
from simctl.wire.states import JobBase

_MINUTE: Final = 60 * SECOND


def due_us(record: JobRecord | StepRecord) -> int:
    """Return when the next checkpoint of a job or step is due. Pure."""
    if isinstance(record, JobRecord):
        minutes = record.desc.ckpt_interval_min
    else:
        minutes = record.ckpt_interval_min
    return max(record.ckpt_us, record.start_us) + minutes * _MINUTE


def job_started(ctld: Controller, job: JobRecord) -> None:
    """Have the script of a job checkpointed at its interval, if it is a batch job with one."""
    if job.batch and job.desc.ckpt_interval_min and can_checkpoint(ctld.site.conf):
        ctld.periodic[job.job_id, SLURM_BATCH_SCRIPT] = job
        watch(ctld)


def step_started(ctld: Controller, step: StepRecord) -> None:
    """Have a step checkpointed at its interval, unless that of its batch job counts."""
    job = step.job
    if not step.ckpt_interval_min or (job.batch and job.desc.ckpt_interval_min):
        return
    if can_checkpoint(ctld.site.conf):
        ctld.periodic[job.job_id, step.step_id] = step
        watch(ctld)


def forget(ctld: Controller, job_id: int, step_id: int = SLURM_BATCH_SCRIPT) -> None:
    """Make no more checkpoints of a job or step that is over."""
    if ctld.periodic.pop((job_id, step_id), None) is not None:
        watch(ctld)


def _job(record: JobRecord | StepRecord) -> JobRecord:
    return record if isinstance(record, JobRecord) else record.job


def watch(ctld: Controller) -> None:
    """Set the timer for the first that is due of what runs; what is suspended has to wait.

    What was due while slurmctld was away is made when limits are looked at next.
    """
    if ctld.periodic_timer is not None:
        ctld.periodic_timer.cancel()
        ctld.periodic_timer, ctld.periodic_us = None, -1
    coming = [
        due_us(record)
        for record in ctld.periodic.values()
        if _job(record).state.base is JobBase.RUNNING
    ]
    if coming:
        at_us = check_at_or_after(max(min(coming), ctld.now_us))
        ctld.periodic_us = at_us
        ctld.periodic_timer = ctld.mailbox.post_at(at_us, CheckpointsDue(at_us))
