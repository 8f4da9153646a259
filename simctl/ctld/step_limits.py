"""Time limits of steps, which are looked at when those of jobs are."""

from typing import TYPE_CHECKING

import attrs

from simctl.ctld.limits import PERIODIC_US
from simctl.ctld.records import StepRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.messages import RequestKillStepTimelimit, SrunTimeout

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
    limit_us = ctld.now_us + time_limit_min * 60 * SECOND
    due_us = -(-limit_us // PERIODIC_US) * PERIODIC_US
    step.limit_timer = ctld.mailbox.post_at(due_us, StepLimitDue(step))


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
    if step.srun is not None and step.srun.open:
        ctld.send(step.srun, SrunTimeout(job_id=job.job_id))
    for name in step.layout.nodes:
        node = ctld.nodes_by_name[name]
        request = RequestKillStepTimelimit(job_id=job.job_id, step_id=step.step_id)
        ctld.send(ctld.address(node), request)
