"""A job that is not to be killed goes on without a node that fails."""

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import prologs
from simctl.ctld.state.records import JobRecord, NodeRecord, StepRecord
from simctl.ctld.steps import steps
from simctl.kernel.fabric import Mailbox
from simctl.wire.messages import RequestSignalTasks, RequestTerminateJob
from simctl.wire.signals import SIG_NODE_FAIL
from simctl.wire.states import RUNNING, RUNNING_RESIZING, JobBase, NodeBase, NodeFlag


def survives(job: JobRecord, node: NodeRecord) -> bool:
    """Return whether a job goes on without a node: not without its last, nor its script's. Pure."""
    return (
        job.desc.no_kill
        and job.state.base is JobBase.RUNNING
        and len(job.nodes) > 1
        and not (job.batch and job.nodes[0] is node)
    )


def who_is_told(job: JobRecord, node: NodeRecord) -> list[Mailbox]:
    """Return whom the loss of a node concerns: who made the allocation, and its steps there."""
    steps_there = [step.srun for step in job.steps.values() if node.name in step.layout.nodes]
    boxes = dict.fromkeys((job.client, *steps_there))
    return [box for box in boxes if box is not None and box.open]


async def take_out(
    ctld: Controller, job: JobRecord, node: NodeRecord, *, told: bool = False
) -> None:
    """Take a node out of a running job: the job shrinks, and its steps lose the node.

    One that was *told* to begin with the job since its slurmd started is told to end it.
    """
    resizes = ctld.site.model == "modern" and job.state == RUNNING
    if resizes:
        ctld.set_job(job, RUNNING_RESIZING)
    node.give_back(job)
    job.leave_out(node)
    ctld.site.trace.note(
        "log", "node_removed", ctld.process, args={"node": node.name}, job=job.job_id
    )
    trace, who = ctld.site.trace, ctld.process
    before = who.cause
    for step in list(job.steps.values()):
        # The order of the steps does not matter.
        trace.choose(who, before)
        await _leave_out(ctld, step, node)
    trace.choose(who, before)
    if resizes:
        ctld.set_job(job, RUNNING)
    # The job waits for no prolog there any more.
    prologs.prolog_over(ctld, job, node.name)
    by_hand = node.base is NodeBase.DOWN and not node.flags & NodeFlag.NO_RESPOND
    if by_hand or (told and node.base is not NodeBase.DOWN):
        # It can be reached, so it is told; the job does not wait for it.
        ctld.send(
            ctld.address(node),
            RequestTerminateJob(
                job_id=job.job_id, restart_cnt=job.restart_cnt, job_state="NODE_FAIL"
            ),
        )


async def _leave_out(ctld: Controller, step: StepRecord, node: NodeRecord) -> None:
    """Count a step as over on a node; unless it is not to be killed, it ends on the others."""
    nodes = step.layout.nodes
    if node.name not in nodes:
        return
    if step.end_on(node.name, ctld.process.cause):
        ctld.site.trace.join(ctld.process, *step.reports)
        await steps.delete(ctld, step)
        return
    await steps.partly_over(ctld, step, node.name)
    waits = [name for name, over in zip(nodes, step.reported, strict=True) if not over]
    for other in ctld.nodes_named(waits):
        if not step.no_kill:
            ctld.send(
                ctld.address(other),
                RequestSignalTasks(
                    job_id=step.job.job_id, step_id=step.step_id, signal=SIG_NODE_FAIL
                ),
            )
