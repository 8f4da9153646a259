"""The main scheduler pass: by priority, and first in, first out, until a job does not fit.

A job that finds no room blocks its partition, and the nodes of it, for all that come after it; one
that names a reservation blocks only those that name the same.
"""

from heapq import heappop, heappush

from simctl.ctld.choose import reserved
from simctl.ctld.choose.select import choose, could_hold, demand_in, uniform_need, whole_nodes
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import arrays, launch, staging
from simctl.ctld.scheduling import preempt
from simctl.ctld.state.queue import enqueue, take_from_queue
from simctl.ctld.state.records import JobRecord, PartRecord
from simctl.plugins.points.switch import switch_p_no_frag
from simctl.wire.bitmap import first, members
from simctl.wire.hostlist import compress
from simctl.wire.ids import SECOND
from simctl.wire.resources import Share
from simctl.wire.states import Reason

_Entry = tuple[int, int, JobRecord]
_Queue = list[_Entry]


class Line:
    """The jobs that wait in all partitions, in the order in which a pass looks at them.

    What is looked at and not started is set aside, and back in its place when the pass is over.
    """

    def __init__(self, ctld: Controller) -> None:
        self._parts = list(ctld.partitions.values())
        self._open = [
            (part, queue)
            for part in self._parts
            if part.waiting and part.state.starts_jobs
            for queue in (part.queue, part.reserved_queue)
        ]
        self._at: _Queue = []
        """The queue whose head is next."""
        self._aside: list[tuple[_Queue, _Entry]] = []
        self._last = ctld.last_queue_number

    def head(self) -> tuple[PartRecord, JobRecord] | None:
        """Return who is next: of the highest tier, the highest priority, the longest there."""
        best: tuple[tuple[int, int, int], PartRecord, JobRecord] | None = None
        for place in range(len(self._open) - 1, -1, -1):
            part, queue = self._open[place]
            entry = _front(queue)
            if entry is None:
                del self._open[place]
                continue
            rank = (-part.tier, entry[0], entry[1])
            # Where a job waits for several partitions of a tier, the first of them comes first.
            if best is None or rank <= best[0]:
                best = (rank, part, entry[2])
                self._at = queue
        return best[1:] if best is not None else None

    def take(self) -> None:
        """Take the head out of the queue, of every partition it waits for."""
        take_from_queue(heappop(self._at)[2])

    def skip(self) -> None:
        """Go on behind the head."""
        self._aside.append((self._at, heappop(self._at)))

    def block(self) -> None:
        """Look at no more jobs of the queue whose head is next."""
        self._open = [each for each in self._open if each[1] is not self._at]

    def close(self) -> None:
        """End the pass: each job that still waits has been looked at, or one before it."""
        for queue, entry in self._aside:
            if _is_in_place(entry):
                heappush(queue, entry)
        for part in self._parts:
            part.examined(self._last)


def _front(queue: _Queue) -> _Entry | None:
    while queue:
        if _is_in_place(queue[0]):
            return queue[0]
        heappop(queue)
    return None


def _is_in_place(entry: _Entry) -> bool:
    """Return whether a job still waits where this entry has it."""
    rank, number, job = entry
    return job.queued and job.queue_number == number and job.priority == -rank


async def main_pass(ctld: Controller) -> None:
    """Run a pass of the main loop; one that is long after the last such looks at every job."""
    ctld.last_pass_us = now_us = ctld.now_us
    interval_us = ctld.site.conf.scheduler_parameters.sched_interval_us
    full = ctld.last_full_us < 0 or now_us >= ctld.last_full_us + interval_us
    if full:
        ctld.last_full_us = now_us
    if ctld.bb is not None and (ctld.anybody_waits() or ctld.bb.is_awaited):
        await staging.before_pass(ctld)
    elif ctld.bb is not None:
        staging.tell_cleaning(ctld)
    await run_pass(ctld, full=full)


async def run_pass(ctld: Controller, *, full: bool = False) -> None:
    """Start, in each partition, jobs from the head of the queue until one does not fit.

    Unless it is *full*, burst buffers are asked about the first default_queue_depth jobs alone.
    """
    ctld.pass_is_due = False
    if not ctld.anybody_waits() or await held_by_fragmentation(ctld):
        if ctld.preempted:
            await preempt.let_go_on(ctld)
        return
    if ctld.bb is not None:
        await _split_ahead(ctld)
        move(ctld)
    looking = _Pass(ctld, full=full)
    while (found := looking.line.head()) is not None:
        await looking.at(*found)
    looking.line.close()
    if ctld.bb is not None:
        await staging.after_pass(ctld)
        move(ctld)
    if ctld.preempted:
        await preempt.let_go_on(ctld)
    if not all(job.queued for job in looking.blocking):
        # It has started in another of its partitions, and blocks this one no more.
        ctld.request_pass()
    ctld.request_backfill()
    if ctld.reservations and ctld.anybody_waits():
        _wait_for_reservations(ctld)


class _Pass:
    """One pass: the line it goes along, and what those that have to wait keep others from."""

    def __init__(self, ctld: Controller, *, full: bool) -> None:
        self._ctld = ctld
        depth = ctld.site.conf.scheduler_parameters.default_queue_depth
        self._left_to_ask = len(ctld.jobs) if full else depth
        self.line = Line(ctld)
        self.blocking: list[JobRecord] = []
        self._blocked = 0
        """The nodes of partitions whose head found no room."""
        self._full: set[str] = set()
        """Reservations that had no room for one of their jobs."""
        self._refused_arrays: set[int] = set()
        """Arrays of which a task has to wait for its burst buffer."""

    async def at(self, part: PartRecord, job: JobRecord) -> None:
        """Look at the job that is next: start it, or tell what it waits for."""
        ctld = self._ctld
        job.looked_at(ctld.now_us, "Main")
        if job.desc.reservation in self._full:
            self.line.skip()
        elif arrays.is_full(job):
            # Until one of its tasks ends nothing of the array can start, and others may.
            job.waits_for(Reason.ARRAY_TASK_LIMIT)
            self.line.take()
        elif ctld.bb is not None and not await self._is_staged_in(job):
            self.line.skip()
        elif job.without_nodes:
            self.line.take()
            await launch.run_without_nodes(ctld, job)
        else:
            await self._find_room(part, job)

    async def _is_staged_in(self, job: JobRecord) -> bool:
        """Ask for a job's burst buffer; of an array whose task has to wait no other is asked.

        As recorded, Slurm 22.05 with burst_buffer/lua asks for all of its tasks in one pass.
        """
        array_id = job.array.job_id if job.array is not None else 0
        if array_id in self._refused_arrays or self._left_to_ask <= 0:
            return False
        self._left_to_ask -= 1
        if await staging.may_start(self._ctld, job):
            return True
        if array_id and not (self._ctld.bb and "burst_buffer/lua" in self._ctld.bb.types):
            self._refused_arrays.add(array_id)
        return False

    async def _find_room(self, part: PartRecord, job: JobRecord) -> None:
        """Start a job where there is room for it; one without may block those behind it."""
        ctld, line = self._ctld, self.line
        own = job.desc.reservation
        allowed = -1 if own else ~self._blocked
        shares = find_nodes(ctld, job, part, allowed)
        if shares:
            await start_head(ctld, line, part, job, shares)
            return
        if waits_for := _what_time_alone_brings(ctld, job, part):
            job.waits_for(waits_for)
            line.skip()
            return
        job.waits_for(Reason.RESOURCES)
        await preempt.make_room(ctld, job, part, allowed)
        # Beside jobs that were suspended for it, it may start at once.
        shares = find_nodes(ctld, job, part, allowed) if job.gives_way else ()
        if shares:
            await start_head(ctld, line, part, job, shares)
        elif own:
            self._full.add(own)
            line.skip()
        else:
            line.block()
            self._blocked |= part.mask
            self.blocking.append(job)


async def _split_ahead(ctld: Controller) -> None:
    """Give tasks of arrays with burst buffers records of their own, so that data can come in."""
    for array in list(ctld.arrays.values()):
        head = array.rest
        if head is None or not head.queued:
            continue
        ahead = array.waiting[: staging.tasks_ahead(ctld, head)]
        for task in ahead:
            record = await arrays.split_off(ctld, head, task)
            await staging.admit_task(ctld, record)
            if record.priority:
                enqueue(ctld, record)
        if ahead:
            # Those that are split off come before the tasks that are not.
            take_from_queue(head)
            enqueue(ctld, head)
        if len(array.waiting) == 1 and head.burst_buffer:
            # The last task keeps the record that all have shared.
            await arrays.split_off(ctld, head, array.waiting[0])


async def start_head(
    ctld: Controller, line: Line, part: PartRecord, job: JobRecord, shares: tuple[Share, ...]
) -> None:
    """Start the head of a partition's queue, or one task of the array that is the head."""
    array = job.array
    if array is None or array.rest is not job:
        line.take()
        await launch.start(ctld, job, part, shares)
        return
    task = await arrays.split_off(ctld, job, array.waiting[0])
    if task is job:
        line.take()
    await launch.start(ctld, task, part, shares)


def _what_time_alone_brings(ctld: Controller, job: JobRecord, part: PartRecord) -> str:
    """Return what a job waits for that blocks no job behind it: its reservation, lost nodes."""
    if job.desc.reservation:
        return reserved.reason_to_wait(ctld, job, part, ctld.now_us)
    if not lacks_nodes(ctld, job, part):
        return ""
    wanted = job.demand.required & part.mask & ~ctld.serviceable_nodes
    if not wanted:
        return Reason.NODES_NOT_AVAIL
    names = compress(tuple(ctld.nodes[index].name for index in members(wanted)))
    return f"{Reason.REQ_NODE_NOT_AVAIL}, UnavailableNodes:{names}"


def lacks_nodes(ctld: Controller, job: JobRecord, part: PartRecord) -> bool:
    """Return whether a job waits for nodes of a partition that are down, drained or silent."""
    lost = part.mask & ~ctld.serviceable_nodes
    return bool(lost) and not could_hold(job, part, ctld.serviceable_nodes)


def find_nodes(
    ctld: Controller, job: JobRecord, part: PartRecord, allowed: int = -1
) -> tuple[Share, ...]:
    """Return what a job may take of nodes of a partition now; nothing if there is no room."""
    demand = demand_in(job, part)
    there = ctld.idle_nodes if demand.whole else ctld.usable_nodes
    mask = there & part.mask & allowed
    if ctld.reservations:
        mask &= reserved.open_to(ctld, job, part, ctld.now_us)
    if ctld.preempted:
        mask &= ~preempt.kept_nodes(ctld, part)
    if part.uniform_cpus and demand.plain:
        need = uniform_need(demand, part.uniform_cpus)
        if not need or mask.bit_count() < need:
            return ()
        return whole_nodes(part, first(mask, need))
    nodes = ctld.nodes
    return choose(demand, (nodes[index].free for index in members(mask)))


async def held_by_fragmentation(ctld: Controller) -> bool:
    """Return whether the switch wants jobs to wait because another is completing (model guide).

    A job counts for KillWait + 2 seconds after its end, so that a stuck one blocks none for ever.
    """
    if ctld.site.model != "guide":
        return False
    if not await ctld.site.hooks.call(switch_p_no_frag, ctld.process):
        return False
    span_us = (ctld.site.conf.kill_wait_s + 2) * SECOND
    ends = [
        job.end_us + span_us
        for job in ctld.completing.values()
        if job.end_us + span_us >= ctld.now_us
    ]
    if ends:
        ctld.pass_at(max(ends) + 1)
    return bool(ends)


def move(ctld: Controller) -> None:
    """Give jobs their places in the queues to which a plugin has given another priority."""
    while ctld.bb is not None and ctld.bb.moved:
        job = ctld.bb.moved.pop(0)
        if job.queued:
            take_from_queue(job)
            enqueue(ctld, job)


def _wait_for_reservations(ctld: Controller) -> None:
    """Have a pass run when the next reservation begins or ends; a job may wait for that."""
    coming = [ctld.now_us + wait_us for wait_us in reserved.waits(ctld, ctld.now_us)]
    if coming and ctld.boundary_us <= ctld.now_us:
        ctld.boundary_us = min(coming)
        ctld.pass_at(ctld.boundary_us)
