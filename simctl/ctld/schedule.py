"""sched/builtin: in each partition by priority, and first in, first out."""

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from simctl.ctld import arrays, launch
from simctl.ctld.records import JobRecord, NodeRecord, PartRecord
from simctl.ctld.select import choose, is_plain, uniform_need
from simctl.plugins.points.switch import switch_p_no_frag
from simctl.wire.ids import SECOND
from simctl.wire.states import Reason

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld


async def run_pass(ctld: "Slurmctld") -> None:
    """Start, in each partition, jobs from the head of the queue until one does not fit."""
    ctld.pass_is_due = False
    if not any(part.waiting for part in ctld.partitions.values()):
        return
    if await held_by_fragmentation(ctld):
        return
    for part in ctld.partitions.values():
        while part.waiting:
            job = _head(part)
            if arrays.is_full(job):
                # Until one of its tasks ends nothing of the array can start, and others may.
                job.reason = Reason.ARRAY_TASK_LIMIT
                _take_head(part, job)
                continue
            nodes = find_nodes(ctld, job)
            if not nodes:
                job.reason = Reason.RESOURCES
                break
            array = job.array
            if array is not None and array.rest is job:
                task = await arrays.split_off(ctld, job, array.waiting[0])
                if task is job:
                    _take_head(part, job)
                launch.start(ctld, task, nodes)
                continue
            _take_head(part, job)
            launch.start(ctld, job, nodes)
        part.examined_to = ctld.last_queue_number


def _take_head(part: PartRecord, job: JobRecord) -> None:
    take_from_queue(job)
    heappop(part.queue)


def _head(part: PartRecord) -> JobRecord:
    queue = part.queue
    while not _is_in_place(queue[0]):
        heappop(queue)
    return queue[0][2]


def _is_in_place(entry: tuple[int, int, JobRecord]) -> bool:
    """Tell whether a job still waits where this entry has it."""
    rank, number, job = entry
    return job.queued and job.queue_number == number and job.priority == -rank


def find_nodes(ctld: "Slurmctld", job: JobRecord) -> tuple[NodeRecord, ...]:
    """Return nodes on which a job may start now, taken out of the partition's idle ones."""
    part = job.part
    if is_plain(job):
        need = uniform_need(job, part.uniform_cpus)
        if not need or part.idle < need:
            return ()
        return tuple(part.take_first(need, ctld.nodes))
    return choose(job, (node for node in part.nodes if node.usable))


async def held_by_fragmentation(ctld: "Slurmctld") -> bool:
    """Tell whether the switch wants jobs to wait because another is completing (model guide).

    A job counts for KillWait + 2 seconds after its end, so that a stuck one blocks nobody for ever.
    """
    if ctld.site.model != "guide":
        return False
    if not await ctld.site.hooks.call(switch_p_no_frag, ctld.process):
        return False
    span_us = (ctld.site.conf.kill_wait_s + 2) * SECOND
    ends = [
        job.end_us + span_us
        for job in ctld.jobs.values()
        if job.state.completing and job.end_us + span_us >= ctld.now_us
    ]
    if ends:
        ctld.pass_at(max(ends) + 1)
    return bool(ends)


def enqueue(ctld: "Slurmctld", job: JobRecord) -> None:
    """Put a job into its partition's queue, behind those of its priority."""
    ctld.last_queue_number += 1
    job.queue_number = ctld.last_queue_number
    job.queued = True
    heappush(job.part.queue, (-job.priority, job.queue_number, job))
    job.part.waiting += 1


def take_from_queue(job: JobRecord) -> None:
    """Note that a job waits no more; a pass drops its place when it meets it."""
    job.queued = False
    job.part.waiting -= 1


def reason_to_wait(job: JobRecord) -> str:
    """Return why a pending job waits: a pass tells it of the head, the others follow from that."""
    if job.queued and job.reason == Reason.NONE and job.queue_number <= job.part.examined_to:
        return Reason.PRIORITY
    return job.reason
