"""Whose a job's buffer is, where the job is a task of an array."""

import attrs

from simctl.plugin import BurstBufferAlloc, slurmctld


def as_task(alloc: BurstBufferAlloc) -> BurstBufferAlloc:
    """Return an allocation with the array and the task that its job is, if it is one."""
    job = slurmctld.find_job(alloc.job_id) if alloc.job_id else None
    if job is None or not job.array_job_id:
        return alloc
    return attrs.evolve(alloc, array_job_id=job.array_job_id, array_task_id=job.array_task_id)
