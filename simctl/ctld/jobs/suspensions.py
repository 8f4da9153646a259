"""Who is suspended, and what of the nodes a suspended job gives back or takes again."""

from typing import Final

from simctl.ctld.controller import Controller
from simctl.ctld.state.records import JobRecord, NodeRecord
from simctl.wire.states import NodeBase, NodeFlag

_NOT_FREE: Final = NodeFlag.COMPLETING | NodeFlag.NO_RESPOND
"""A node with one of these is not given to a job that is resumed."""


def forget(ctld: Controller, job: JobRecord) -> None:
    """End a job's suspension, if there is one: its time is counted, it has a priority again."""
    if ctld.suspended.pop(job.job_id, None) is None:
        return
    ctld.preempted.pop(job.job_id, None)
    keeps = job.priority or job.hold_text
    job.resume(ctld.now_us, job.priority if keeps else ctld.next_priority(job.nice))


def hand_back(ctld: Controller, job: JobRecord) -> None:
    """Give a job's share of its nodes to other jobs."""
    for node in job.nodes:
        node.give_back(job)
        ctld.set_node(node, node.working_base(), node.flags)


def take_again(ctld: Controller, job: JobRecord) -> bool:
    """Take a suspended job's nodes again; false, and nothing done, if one has no room for it."""
    if not all(_has_room(node, job) for node in job.nodes):
        return False
    for node in job.nodes:
        node.take(job, job.shares[node.index])
        ctld.set_node(node, node.working_base(), node.flags)
    return True


def _has_room(node: NodeRecord, job: JobRecord) -> bool:
    """Return whether a node answers and has left what a job had of it."""
    share = job.shares[node.index]
    return (
        node.base >= NodeBase.IDLE
        and not node.flags & _NOT_FREE
        and node.free.cpus >= share.cpus
        and node.free.memory_mb >= share.memory_mb
        and all(node.free.gres.get(name, 0) >= count for name, count in share.gres.items())
    )


def suspended_on(ctld: Controller, node: NodeRecord) -> list[JobRecord]:
    """Return the jobs that are suspended on a node, or also there."""
    return [job for job in ctld.suspended.values() if node in job.nodes]
