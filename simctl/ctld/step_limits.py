"""Time limits of steps, which are looked at when those of jobs are."""

from typing import TYPE_CHECKING

import attrs

from simctl.ctld.limits import check_at_or_after
from simctl.ctld.records import JobRecord, StepRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.messages import RequestKillStepTimelimit, SrunTimeout
from simctl.wire.states import JobBase

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld


@attrs.frozen
class StepLimitDue:
    """Time to end a step that has reached its time limit."""

    step: StepRecord


def watch(ctld: "Slurmctld", step: StepRecord, time_limit_min: int) -> None:
    """Have a step ended at the first check after its time limit, if it asked for one."""
    if time_limit_min in (NO_VAL, INFINITE):
        return
    step.time_limit_min = time_limit_min
    # What its job has been suspended before does not count, nor will what it is from now on.
    step.limit_us = ctld.now_us - step.job.suspended_us + time_limit_min * 60 * SECOND
    _look_again(ctld, step)


def _look_again(ctld: "Slurmctld", step: StepRecord) -> None:
    due_us = check_at_or_after(step.limit_us + step.job.suspended_us)
    step.limit_timer = ctld.mailbox.post_at(max(due_us, ctld.now_us), StepLimitDue(step))


def resume(ctld: "Slurmctld", job: JobRecord) -> None:
    """Go on with the limits of the steps of a job that was suspended."""
    for step in job.steps.values():
        if step.limit_us != INFINITE:
            unwatch(step)
            _look_again(ctld, step)


def unwatch(step: StepRecord) -> None:
    """Forget the time limit of a step that is over."""
    if step.limit_timer is not None:
        step.limit_timer.cancel()
        step.limit_timer = None


async def step_limit_due(ctld: "Slurmctld", _: Envelope, message: StepLimitDue) -> None:
    """Tell the srun and the nodes of a step that its time is over; its job goes on."""
    step = message.step
    job = step.job
    if job.steps.get(step.step_id) is not step:
        return
    step.limit_timer = None
    if job.state.base is JobBase.SUSPENDED:
        # Its clock stands still; it is looked at again once the job goes on.
        return
    step.timed_out = True
    if step.srun is not None and step.srun.open:
        ctld.send(step.srun, SrunTimeout(job_id=job.job_id))
    for name in step.layout.nodes:
        node = ctld.nodes_by_name[name]
        request = RequestKillStepTimelimit(job_id=job.job_id, step_id=step.step_id)
        ctld.send(ctld.address(node), request)
