"""scontrol update partitionname: limits and states of partitions, and what that means for jobs."""

from typing import TYPE_CHECKING, Final

from simctl.ctld import eligible, update
from simctl.ctld.records import PartRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.errno import (
    ESLURM_ACCESS_DENIED,
    ESLURM_INVALID_PARTITION_NAME,
    SLURM_SUCCESS,
)
from simctl.wire.ids import NO_VAL
from simctl.wire.messages import RequestUpdatePartition
from simctl.wire.states import JobBase, PartState

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld

_NUMBERS: Final = {
    "max_time_min": "max_time_min",
    "default_time_min": "default_time_min",
    "max_nodes": "max_nodes",
    "min_nodes": "min_nodes",
    "priority_tier": "tier",
    "grace_time_s": "grace_time_s",
}
"""Fields of the request, and of the record each changes."""


async def update_partition(
    ctld: "Slurmctld", envelope: Envelope, message: RequestUpdatePartition
) -> None:
    """Change a partition; jobs that wait for it are held against it anew."""
    sender = envelope.sender
    uid = sender.process.uid if sender is not None else ctld.process.uid
    part = ctld.partitions.get(message.name)
    if not ctld.is_operator(uid):
        rc = ESLURM_ACCESS_DENIED
    elif part is None:
        rc = ESLURM_INVALID_PARTITION_NAME
    else:
        rc = SLURM_SUCCESS
        _apply(ctld, part, message)
        for job in list(ctld.jobs.values()):
            if job.state.base is JobBase.PENDING and part.name in job.desc.partition.split(","):
                update.ask_anew(ctld, job)
                eligible.settle(ctld, job)
        ctld.request_pass()
    ctld.answer(envelope, rc)


def _apply(ctld: "Slurmctld", part: PartRecord, message: RequestUpdatePartition) -> None:
    for asked, field in _NUMBERS.items():
        value = getattr(message, asked)
        if value != NO_VAL:
            setattr(part, field, value)
    if message.state:
        part.state = PartState[message.state]
    if message.exclusive is not None:
        part.exclusive = message.exclusive
    if message.root_only is not None:
        part.root_only = message.root_only
    if message.preempt_mode:
        part.preempt_mode = message.preempt_mode
    if message.default:
        for other in ctld.partitions.values():
            other.default = False
    if message.default is not None:
        part.default = message.default
