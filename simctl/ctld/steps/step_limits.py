"""Time limits of steps, which are looked at when those of jobs are."""

import attrs

from simctl.ctld import authority
from simctl.ctld.controller import Controller
from simctl.ctld.state.records import JobRecord, StepRecord
from simctl.ctld.state.recurring import check_at_or_after
from simctl.kernel.fabric import Envelope
from simctl.wire.errno import ESLURM_ACCESS_DENIED, ESLURM_INVALID_JOB_ID, SLURM_SUCCESS
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.messages import RequestKillStepTimelimit, RequestUpdateJobStep, SrunTimeout
from simctl.wire.states import JobBase


@attrs.frozen
class StepLimitDue:
    """Time to end a step that has reached its time limit."""

    step: StepRecord


def watch(ctld: Controller, step: StepRecord, time_limit_min: int) -> None:
    """Have a step ended at the first check after its time limit, if it asked for one."""
    step.start_clock(ctld.now_us)
    if time_limit_min not in (NO_VAL, INFINITE):
        step.limit_to(time_limit_min)
        _look_again(ctld, step)


def _look_again(ctld: Controller, step: StepRecord) -> None:
    due_us = check_at_or_after(step.limit_us + step.job.suspended_us)
    step.watch_limit(ctld.mailbox.post_at(max(due_us, ctld.now_us), StepLimitDue(step)))


def resume(ctld: Controller, job: JobRecord) -> None:
    """Go on with the limits of the steps of a job that was suspended."""
    for step in job.steps.values():
        if step.limit_us != INFINITE:
            _look_again(ctld, step)


async def update_job_step(
    ctld: Controller, envelope: Envelope, message: RequestUpdateJobStep
) -> None:
    """Change the time limit of a step, or of all steps of a job; only operators raise one.

    Answers ESLURM_INVALID_JOB_ID, or ESLURM_ACCESS_DENIED to a user who raises it. In Slurm:
    `update_step()` of step_mgr.c.
    """
    job = ctld.jobs.get(message.job_id)
    found: list[StepRecord] = []
    if job is not None:
        every = message.step_id == NO_VAL
        found = [step for number, step in job.steps.items() if every or number == message.step_id]
    rc = SLURM_SUCCESS if found else ESLURM_INVALID_JOB_ID
    if job is not None and not ctld.is_operator(authority.uid_of(ctld, envelope)):
        raised = any(message.time_limit_min > step.time_limit_min for step in found)
        denied = ESLURM_ACCESS_DENIED if raised else SLURM_SUCCESS
        rc = authority.refusal(ctld, envelope, job.desc.uid) or denied or rc
    if not rc:
        for step in found:
            _change(ctld, step, message.time_limit_min)
    ctld.answer(envelope, rc)


def _change(ctld: Controller, step: StepRecord, time_limit_min: int) -> None:
    """Give a step another time limit, counted from its start."""
    step.limit_to(time_limit_min)
    if time_limit_min == INFINITE:
        step.watch_limit(None)
    else:
        _look_again(ctld, step)


async def step_limit_due(ctld: Controller, _: Envelope, message: StepLimitDue) -> None:
    """Tell the srun and the nodes of a step that its time is over; its job goes on."""
    step = message.step
    job = step.job
    if job.steps.get(step.step_id) is not step:
        return
    if job.state.base is not JobBase.RUNNING:
        # Of one that is suspended the clock stands still; it is looked at again once that goes on.
        # What has ended is told so already, and a node may have left it.
        return
    step.time_out()
    if step.srun is not None and step.srun.open:
        ctld.send(step.srun, SrunTimeout(job_id=job.job_id))
    for node in ctld.nodes_named(step.layout.nodes):
        request = RequestKillStepTimelimit(job_id=job.job_id, step_id=step.step_id)
        ctld.send(ctld.address(node), request)
