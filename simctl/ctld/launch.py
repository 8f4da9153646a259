"""The start of a job: nodes taken, RUNNING, and whoever runs it told."""

from typing import TYPE_CHECKING

from simctl.ctld import arrays, eligible, limits
from simctl.ctld.records import JobRecord, NodeRecord
from simctl.wire.hostlist import compress
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.messages import RequestBatchJobLaunch, ResponseResourceAllocation
from simctl.wire.states import RUNNING, NodeBase, Reason

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld


def start(ctld: "Slurmctld", job: JobRecord, nodes: tuple[NodeRecord, ...]) -> None:
    """Start a job on *nodes*, which are idle."""
    job.nodes = nodes
    job.node_list = compress(tuple(node.name for node in nodes))
    job.start_us = ctld.now_us
    job.begin_us = -1
    job.reason = Reason.NONE
    if job.time_limit_min != INFINITE:
        job.limit_us = job.start_us + job.time_limit_min * 60 * SECOND
        ctld.watch_limit(job)
        limits.watch_warning(ctld, job)
    arrays.started(job)
    ctld.set_job(job, RUNNING)
    limits.watch_deadline(ctld, job)
    eligible.changed(ctld, job)
    for node in nodes:
        node.job = job
        ctld.set_node(node, NodeBase.ALLOCATED, node.flags)
    if job.batch:
        _launch_batch(ctld, job)
    else:
        ctld.send(
            job.client,
            ResponseResourceAllocation(job_id=job.job_id, error_code=0, node_list=job.node_list),
        )


def _launch_batch(ctld: "Slurmctld", job: JobRecord) -> None:
    ctld.send(
        ctld.address(job.nodes[0]),
        RequestBatchJobLaunch(
            job_id=job.job_id,
            job_desc=job.desc,
            node_list=job.node_list,
            nodes=tuple(node.name for node in job.nodes),
            cpus_per_node=tuple(node.cpus for node in job.nodes),
            restart_cnt=job.restart_cnt,
            array_job_id=job.array.job_id if job.array is not None else 0,
            array_task_id=job.array_task if job.array is not None else NO_VAL,
        ),
    )
