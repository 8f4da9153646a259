"""Partitions changed, created and deleted by scontrol, and what that means for jobs."""

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import admission, eligible
from simctl.ctld.state.records import JobRecord, NodeRecord, PartRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.errno import (
    ESLURM_INVALID_NODE_NAME,
    ESLURM_INVALID_PARTITION_NAME,
    ESLURM_PARTITION_IN_USE,
    SLURM_SUCCESS,
)
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.ids import INFINITE
from simctl.wire.messages import (
    RequestCreatePartition,
    RequestDeletePartition,
    RequestUpdatePartition,
)
from simctl.wire.states import JobBase


async def update_partition(
    ctld: Controller, envelope: Envelope, message: RequestUpdatePartition
) -> None:
    """Change a partition; jobs that wait for it are held against it anew.

    Answers ESLURM_INVALID_PARTITION_NAME or ESLURM_INVALID_NODE_NAME. In Slurm: `update_part()`
    of partition_mgr.c.
    """
    part = ctld.partitions.get(message.name)
    nodes = _nodes(ctld, message)
    if part is None:
        rc = ESLURM_INVALID_PARTITION_NAME
    elif nodes is None:
        rc = ESLURM_INVALID_NODE_NAME
    else:
        rc = SLURM_SUCCESS
        if message.nodes is not None:
            part.set_nodes(nodes)
        ctld.update_partition(part, message)
        for job in list(ctld.jobs.values()):
            if job.state.base is JobBase.PENDING and part.name in job.desc.partition.split(","):
                admission.ask_anew(ctld, job)
                eligible.settle(ctld, job)
        ctld.request_pass()
    ctld.answer(envelope, rc)


def _nodes(ctld: Controller, message: RequestUpdatePartition) -> tuple[NodeRecord, ...] | None:
    """Return the nodes a request names, in their order; None if it names one that is not there."""
    if not message.nodes:
        return ()
    if message.nodes.upper() == "ALL":
        return tuple(ctld.nodes)
    try:
        names = set(expand(message.nodes))
    except HostlistError:
        return None
    found = tuple(node for node in ctld.nodes if node.name in names)
    return found if len(found) == len(names) else None


async def create_partition(
    ctld: Controller, envelope: Envelope, message: RequestCreatePartition
) -> None:
    """Take a new partition in; what is not told is as slurm.conf has it by default.

    Answers ESLURM_INVALID_PARTITION_NAME if there is one of the name, or
    ESLURM_INVALID_NODE_NAME. In Slurm: `update_part()` of partition_mgr.c.
    """
    nodes = _nodes(ctld, message)
    if message.name in ctld.partitions:
        rc = ESLURM_INVALID_PARTITION_NAME
    elif nodes is None:
        rc = ESLURM_INVALID_NODE_NAME
    else:
        rc = SLURM_SUCCESS
        part = PartRecord(
            name=message.name,
            nodes=nodes,
            default=False,
            max_time_min=INFINITE,
            default_time_min=INFINITE,
            max_nodes=INFINITE,
            min_nodes=0,
            uniform_cpus=0,
        )
        part.set_nodes(nodes)
        ctld.partitions[part.name] = part
        ctld.update_partition(part, message)
    ctld.answer(envelope, rc)


async def delete_partition(
    ctld: Controller, envelope: Envelope, message: RequestDeletePartition
) -> None:
    """Forget a partition that no job waits for or runs in.

    Answers ESLURM_INVALID_PARTITION_NAME, or ESLURM_PARTITION_IN_USE. In Slurm:
    `delete_partition()` of partition_mgr.c.
    """
    if message.name not in ctld.partitions:
        rc = ESLURM_INVALID_PARTITION_NAME
    elif any(_uses(job, message.name) for job in ctld.jobs.values()):
        rc = ESLURM_PARTITION_IN_USE
    else:
        rc = SLURM_SUCCESS
        del ctld.partitions[message.name]
    ctld.answer(envelope, rc)


def _uses(job: JobRecord, name: str) -> bool:
    """Return whether a job that is not over runs in a partition, or could."""
    over = job.state.finished and not job.state.completing
    return not over and (job.part.name == name or name in job.desc.partition.split(","))
