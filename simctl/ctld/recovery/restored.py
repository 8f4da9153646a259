"""What a slurmctld that starts says of its state files, in the trace: what it goes on with.

A line `restored` for each job, and one for nodes, partitions and reservations. Who was told of
something before can be held against it; slurmctld itself looks at none of it.
"""

from typing import Any

from simctl.ctld.port.port import Port
from simctl.ctld.state.records import JobRecord, NodeRecord
from simctl.wire.states import NodeBase, node_text

_NAME = "restored"


def tell(ctld: Port) -> None:
    """Tell what has been read, before anything is made of it."""
    note, who = ctld.site.trace.note, ctld.process
    for job in ctld.jobs.values():
        note("log", _NAME, who, args=_job(job), job=job.job_id)
    noted = [node for node in ctld.nodes if _is_noted(node)]
    args = {
        "nodes": {node.name: node_text(node.base, node.flags) for node in noted},
        "partitions": {part.name: part.state.name for part in ctld.partitions.values()},
        "reservations": list(ctld.reservations),
    }
    note("log", _NAME, who, args=args)


def _job(job: JobRecord) -> dict[str, Any]:
    return {
        "state": str(job.state),
        "restart_cnt": job.restart_cnt,
        "steps": [str(step.about.step) for step in job.steps.values()],
        "name": job.name,
        "partition": job.desc.partition,
        "priority": job.priority,
        "nice": job.nice,
        "time_limit_min": job.time_limit_min,
        "comment": job.desc.comment,
    }


def _is_noted(node: NodeRecord) -> bool:
    """Return whether something was decided about a node that it does not tell of itself."""
    return bool(node.flags) or node.base is NodeBase.DOWN
