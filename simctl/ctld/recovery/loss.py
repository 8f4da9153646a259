"""A node is gone: its jobs fail, wait again, or go on without it."""

from collections.abc import Callable

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import completion, suspensions
from simctl.ctld.jobs.completion import end_job, requeue_after_node_failure
from simctl.ctld.nodes.leftovers import forget_others
from simctl.ctld.nodes.reachability import answers
from simctl.ctld.recovery import excise
from simctl.ctld.state.notices import NodeGivenUp
from simctl.ctld.state.records import JobRecord, NodeRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.messages import SrunNodeFail
from simctl.wire.states import JobBase, NodeBase, NodeFlag, Reason

NOT_RESPONDING = "Not responding"
"""The reason of a node that was set down because it did not answer."""


async def forget_completing(
    ctld: Controller, node: NodeRecord, is_there: Callable[[JobRecord], bool] = lambda _: False
) -> None:
    """Take a fresh registration as the end of completing jobs that are no longer there."""
    for job in list(ctld.jobs.values()) if node.completing else ():
        if node.name in job.completing_nodes and not is_there(job):
            await completion.node_is_gone(ctld, job, node)


async def set_down(ctld: Controller, node: NodeRecord) -> None:
    """Give a node up: its jobs fail, or wait again."""
    if node.base is not NodeBase.DOWN:
        ctld.note_reason(node, NOT_RESPONDING, ctld.process.uid)
    ctld.set_node(node, NodeBase.DOWN, node.flags | NodeFlag.NO_RESPOND)
    await fail_jobs(ctld, node)
    await forget_completing(ctld, node)
    forget_others(ctld, node, ())


async def given_up(ctld: Controller, _: Envelope, notice: NodeGivenUp) -> None:
    """Give a node up before SlurmdTimeout is over."""
    node = next(each for each in ctld.nodes if each.name == notice.node)
    if not answers(ctld, node):
        await set_down(ctld, node)


async def take_down(ctld: Controller, node: NodeRecord) -> None:
    """Set a node down by hand: its jobs fail, or wait again.

    One that cannot be reached has to register first, also after a resume: its jobs still run there.
    """
    flags = node.flags
    if not answers(ctld, node):
        flags |= NodeFlag.NO_RESPOND
    ctld.set_node(node, NodeBase.DOWN, flags)
    await fail_jobs(ctld, node)


async def fail_jobs(ctld: Controller, node: NodeRecord) -> None:
    """End the jobs of a node that is gone, send them back into the queue, or go on without."""
    for job in jobs_of(ctld, node):
        await fail_job(ctld, node, job)


def jobs_of(ctld: Controller, node: NodeRecord) -> list[JobRecord]:
    """Return the jobs that run on a node, and those that are suspended there."""
    return [*node.jobs.values(), *suspensions.suspended_on(ctld, node)]


async def fail_job(ctld: Controller, node: NodeRecord, job: JobRecord) -> None:
    """End a job of a node that is gone, send it back into the queue, or go on without the node."""
    for srun in excise.who_is_told(job, node):
        ctld.send(srun, SrunNodeFail(job_id=job.job_id, node_list=node.name))
    told = was_told(job, node)
    if excise.survives(job, node):
        await excise.take_out(ctld, job, node, told=told)
        return
    if node.base is not NodeBase.DOWN and not told:
        # It has restarted: nothing of the job is left to be told to end.
        job.lose_on(node)
    if job.batch and job.requeue:
        await requeue_after_node_failure(ctld, job)
    else:
        await end_job(ctld, job, JobBase.NODE_FAIL, Reason.NODE_DOWN)


def was_told(job: JobRecord, node: NodeRecord) -> bool:
    """Return whether a node was told to begin with a job since its slurmd started. Pure.

    That may come before its registration does, which says that what it had before is gone.
    """
    told_us = job.prologs_us
    if job.batch and job.nodes[:1] == (node,):
        told_us = max(told_us, job.launched_us)
    return told_us >= max(node.slurmd_start_us, 0)
