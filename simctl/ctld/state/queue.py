"""The queues of partitions: which jobs wait, in which order, and why."""

from heapq import heappush

from simctl.ctld.state.records import JobRecord
from simctl.ctld.state.tables import State
from simctl.wire.states import PartState, Reason


def enqueue(state: State, job: JobRecord) -> None:
    """Put a job into the queues of its partitions, behind those of its priority."""
    state.last_queue_number += 1
    job.queue_number = state.last_queue_number
    job.queued = True
    for part in job.parts:
        queue = part.reserved_queue if job.desc.reservation else part.queue
        heappush(queue, (-job.priority, job.queue_number, job))
        part.waiting += 1


def forget_place(job: JobRecord) -> bool:
    """Return whether a restored job stood in the queue, where it has to be put again."""
    queued, job.queued = job.queued, False
    return queued


def take_from_queue(job: JobRecord) -> None:
    """Note that a job waits no more; a pass drops its places when it meets them."""
    job.queued = False
    for part in job.parts:
        part.waiting -= 1


def reason_to_wait(job: JobRecord) -> str:
    """Return why a pending job waits: a pass tells it of the head, the others follow from that."""
    if job.state_desc:
        return job.state_desc
    if not job.queued:
        return job.reason
    if not any(part.state.starts_jobs for part in job.parts):
        down = job.part.state is PartState.DOWN
        return Reason.PARTITION_DOWN if down else Reason.PARTITION_INACTIVE
    if job.reason == Reason.NONE and job.queue_number <= job.part.examined_to:
        return Reason.PRIORITY
    return job.reason
