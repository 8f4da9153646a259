"""What is left of a job when it has ended: a row of the report."""

from typing import Any

import attrs

from simctl.ctld.state.records import JobRecord
from simctl.kernel.procs import exit_code_of, signal_of
from simctl.wire.arrays import format_tasks


@attrs.frozen(kw_only=True)
class JobRow:
    """A run of a job as it ended, or a job as it stands; times in microseconds, -1 for never."""

    job_id: int
    name: str
    user: str
    partition: str
    state: str
    reason: str
    exit_code: str
    num_nodes: int
    nodes: str
    submit_us: int
    start_us: int
    end_us: int
    restarts: int
    cpus: int
    array_job_id: int = 0
    array_task_id: int = -1
    """-1 for a job that is no task of an array, and for the record of those that wait."""

    array_waiting: str = ""
    """The tasks that a record stands for, such as ``0-3,7``."""

    def as_json(self) -> dict[str, Any]:
        """Return the row as `run --json` prints it; what has not happened is null."""
        return {
            "job_id": self.job_id,
            "array_job_id": self.array_job_id or None,
            "array_task_id": self.array_task_id if self.array_task_id >= 0 else None,
            "name": self.name,
            "user": self.user,
            "partition": self.partition,
            "state": self.state,
            "reason": self.reason,
            "exit_code": self.exit_code,
            "num_nodes": self.num_nodes,
            "nodes": self.nodes,
            "submit_us": self.submit_us,
            "start_us": self.start_us if self.start_us >= 0 else None,
            "end_us": self.end_us if self.end_us >= 0 else None,
            "restarts": self.restarts,
        }


def exit_code_text(status: int) -> str:
    """Return a wait status as Slurm prints exit codes: ``code:signal``; one of them is 0."""
    number = signal_of(status)
    return f"0:{number}" if number else f"{exit_code_of(status)}:0"


def row(job: JobRecord, state: str, reason: str) -> JobRow:
    """Return the row of a job as it stands."""
    return JobRow(
        job_id=job.job_id,
        name=job.desc.name,
        user=job.desc.user,
        partition=job.desc.partition,
        state=state,
        reason=str(reason),
        exit_code=exit_code_text(job.exit_code),
        num_nodes=len(job.nodes) or job.demand.min_nodes,
        nodes=job.node_list if job.nodes else "",
        submit_us=job.submit_us,
        start_us=job.start_us,
        end_us=job.end_us,
        restarts=job.restarts,
        cpus=sum(job.cpus),
        array_job_id=job.array.job_id if job.array is not None else 0,
        array_task_id=job.array_task,
        array_waiting=format_tasks(job.array.waiting)
        if job.array is not None and job.array.rest is job
        else "",
    )
