"""sched/backfill: jobs may pass those ahead of them as long as no head of a queue is delayed.

The head of each partition has a reservation: where and when it will start at the latest if every
running job uses its time limit up. A job behind it starts now if it is over by then, or leaves
alone what the head will need.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from simctl.ctld.choose import reserved
from simctl.ctld.choose.select import choose, demand_in, limit_in, uniform_need, whole_nodes
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import arrays, staging
from simctl.ctld.scheduling import preempt
from simctl.ctld.scheduling.schedule import Line, held_by_fragmentation, move, start_head
from simctl.ctld.state.records import JobRecord, PartRecord
from simctl.wire.bitmap import first, mask_of, members
from simctl.wire.hostlist import compress
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.resources import Demand, Room, Share
from simctl.wire.states import Reason

NEVER_US: Final = 1 << 62


@attrs.frozen(kw_only=True)
class Planned:
    """The reservation of a head: from when to when, and what it will have of which nodes.

    `spare` is what its nodes will have left beside it when it starts.
    """

    start_us: int
    end_us: int
    shares: dict[int, Share]
    nodes: int
    spare: dict[int, Room]


async def run_backfill(ctld: Controller) -> None:
    """Look at the queue beyond the heads that block it, and start what delays none of them."""
    ctld.backfill_is_due = False
    if ctld.anybody_waits():
        await staging.before_pass(ctld)
        move(ctld)
    line = Line(ctld)
    if line.head() is None or await held_by_fragmentation(ctld):
        ctld.planned_nodes = 0
        line.close()
        return
    limits = _Limits(ctld)
    plan = Plan(ctld)
    while (found := line.head()) is not None and limits.go_on():
        part, job = found
        if arrays.is_full(job):
            job.waits_for(Reason.ARRAY_TASK_LIMIT)
            line.take()
            continue
        if not limits.admit(job, part):
            line.skip()
            continue
        job.looked_at(ctld.now_us, "Backfill")
        ready, from_us = True, ctld.now_us
        if ctld.bb is not None:
            ready, from_us = await staging.may_backfill(ctld, job)
        if job.without_nodes:
            # The main pass sees to it.
            line.skip()
            continue
        shares = plan.room_now(job, part) if ready else ()
        if shares and await staging.confirm(ctld, job):
            limits.started += 1
            plan.lower_limit(job, part, shares)
            plan.hold(job, part, shares)
            await start_head(ctld, line, part, job, shares)
            continue
        if not ready:
            plan.expect(job, part, from_us)
        # Data that is on its way keeps no nodes idle; space that is to come free may.
        counts = ready or from_us > ctld.now_us
        if counts and limits.may_reserve(job, part) and plan.reserve(job, part, from_us):
            limits.note_head(job, part)
        line.skip()
    line.close()
    await staging.after_backfill(ctld)
    move(ctld)
    ctld.planned_nodes = plan.kept_nodes()
    if limits.started and (limits.cut_short or not all(job.queued for job in limits.heads)):
        # There is room for others within the limits, or in the plan.
        ctld.request_backfill()


class _Limits:
    """How far a pass goes: the bf_* words of SchedulerParameters."""

    def __init__(self, ctld: Controller) -> None:
        self._words = ctld.site.conf.scheduler_parameters
        self._now_us = ctld.now_us
        self._tested = 0
        self.started = 0
        self._of_user: Counter[int] = Counter()
        self._of_part: Counter[str] = Counter()
        self.heads: list[JobRecord] = []
        """Those that have a place in the plan."""
        self._have_head: set[tuple[str, str]] = set()
        """The partitions, and reservations in them, whose head that is."""
        self.cut_short = False
        """A job was not looked at."""

    def go_on(self) -> bool:
        """Return whether another job may be looked at."""
        words = self._words
        enough = 0 < words.bf_max_job_start <= self.started
        if enough or self._tested >= words.bf_max_job_test:
            self.cut_short = True
        return not self.cut_short

    def admit(self, job: JobRecord, part: PartRecord) -> bool:
        """Count a job, and tell whether it is to be looked at."""
        words = self._words
        if (
            0 < words.bf_max_job_user <= self._of_user[job.desc.uid]
            or 0 < words.bf_max_job_part <= self._of_part[part.name]
        ):
            self.cut_short = True
            return False
        self._tested += 1
        self._of_user[job.desc.uid] += 1
        self._of_part[part.name] += 1
        return True

    def may_reserve(self, job: JobRecord, part: PartRecord) -> bool:
        """Return whether a job that has to wait is its partition's head, and important enough."""
        words = self._words
        waited_us = self._now_us - max(job.eligible_us, 0)
        old_enough = waited_us >= words.bf_min_age_reserve_us
        first = (part.name, job.desc.reservation) not in self._have_head
        return first and old_enough and job.priority >= words.bf_min_prio_reserve

    def note_head(self, job: JobRecord, part: PartRecord) -> None:
        """Note that a job is the head of its partition, or of a reservation there."""
        self.heads.append(job)
        self._have_head.add((part.name, job.desc.reservation))


class Plan:
    """What nodes will have at what time, as far as time limits and reservations tell."""

    def __init__(self, ctld: Controller) -> None:
        self._ctld = ctld
        self._now_us = ctld.now_us
        self._window_us = ctld.now_us + ctld.site.conf.scheduler_parameters.bf_window_us
        self._grain_us = ctld.site.conf.scheduler_parameters.bf_resolution_us
        self._planned: list[Planned] = []
        self._ends: list[tuple[int, int, int, dict[int, Share]]] = sorted(
            (self._end_of(job), job.job_id, mask_of(job.shares), job.shares)
            for job in ctld.running.values()
        )
        """When who is expected to end, on which nodes, and what that gives back."""

    def _end_of(self, job: JobRecord) -> int:
        """Return when a running job is expected to end; soon, if it should have already."""
        if job.limit_us == INFINITE:
            return NEVER_US
        return max(job.limit_us, self._now_us + SECOND)

    def _length_us(self, job: JobRecord, part: PartRecord) -> int:
        """Return how long a job is to have at least: its limit, or what --time-min says."""
        limit_min = limit_in(job, part)
        if job.desc.time_min_min:
            limit_min = min(limit_min, job.desc.time_min_min)
        return NEVER_US if limit_min == INFINITE else limit_min * 60 * SECOND

    def kept_nodes(self) -> int:
        """Return the nodes that are kept for those that wait."""
        kept = 0
        for planned in self._planned:
            kept |= planned.nodes
        return kept

    # Who may start now.

    def room_now(self, job: JobRecord, part: PartRecord) -> tuple[Share, ...]:
        """Return where a job may start now without delaying a head; nothing if nowhere."""
        ctld = self._ctld
        demand = demand_in(job, part)
        mask = (ctld.idle_nodes if demand.whole else ctld.usable_nodes) & part.mask
        if ctld.reservations:
            mask &= reserved.open_to(ctld, job, part, ctld.now_us)
        if ctld.preempted:
            mask &= ~preempt.kept_nodes(ctld, part)
        end_us = self._now_us + self._length_us(job, part)
        late = [planned for planned in self._planned if planned.start_us < end_us]
        if part.uniform_cpus and demand.plain:
            for planned in late:
                mask &= ~planned.nodes
            return _whole_nodes_of(mask, demand, part)
        return choose(demand, self._rooms_now(mask, late, demand))

    def _rooms_now(self, mask: int, late: list[Planned], demand: Demand) -> Iterator[Room]:
        for index in members(mask):
            room = self._ctld.nodes[index].free
            for planned in late:
                spare = planned.spare.get(index)
                if spare is not None:
                    room = room.least(spare)
                    if demand.whole:
                        # All of the node, or nothing: some of it will be needed.
                        room.cpus = 0
            yield room

    def lower_limit(self, job: JobRecord, part: PartRecord, shares: tuple[Share, ...]) -> None:
        """Have a job of --time-min that starts now end before what it takes is needed by a head."""
        limit_min = limit_in(job, part)
        if not job.desc.time_min_min or limit_min <= job.desc.time_min_min:
            return
        whole = demand_in(job, part).whole
        starts = [
            planned.start_us
            for planned in self._planned
            if any(
                _is_in_the_way(share, planned.spare.get(share.index), whole=whole)
                for share in shares
            )
        ]
        free_min = (min(starts, default=NEVER_US) - self._now_us) // (60 * SECOND)
        if free_min < limit_min and starts:
            job.limit_to(max(job.desc.time_min_min, free_min))

    def hold(self, job: JobRecord, part: PartRecord, shares: tuple[Share, ...]) -> None:
        """Note that a job starts now: what runs into a reservation takes of what it left over."""
        limit_min = limit_in(job, part)
        end_us = self._now_us + (NEVER_US if limit_min == INFINITE else limit_min * 60 * SECOND)
        number = len(self._ends) + NEVER_US
        held = {share.index: share for share in shares}
        insort(self._ends, (end_us, number, mask_of(held), held))
        for planned in self._planned:
            if planned.start_us < end_us:
                for share in shares:
                    if share.index in planned.spare:
                        planned.spare[share.index].take(share)

    # When a head will start.

    def first_fit(self, job: JobRecord, part: PartRecord) -> tuple[int, tuple[Share, ...]] | None:
        """Return when and where a job would fit first; None if that is not known."""
        for when_us in self._moments(job, part):
            shares = self._fit_at(job, part, when_us)[0]
            if shares:
                return when_us, shares
        return None

    def reserve(self, job: JobRecord, part: PartRecord, from_us: int = 0) -> bool:
        """Find when and where a head will start, and keep that free; false if not known.

        It will not start before *from_us*.
        """
        for when_us in self._moments(job, part, from_us):
            shares, spare = self._fit_at(job, part, when_us)
            if shares:
                self._note(job, when_us, shares)
                for share in shares:
                    spare[share.index].take(share)
                self._planned.append(
                    Planned(
                        # Rounded down: a coarser plan is a more careful one.
                        start_us=when_us // self._grain_us * self._grain_us,
                        end_us=min(NEVER_US, when_us + self._length_us(job, part)),
                        shares={share.index: share for share in shares},
                        nodes=mask_of(share.index for share in shares),
                        spare=spare,
                    )
                )
                return True
        self._look_far_ahead(job, part)
        return False

    def expect(self, job: JobRecord, part: PartRecord, from_us: int) -> None:
        """Note when a job that waits for its burst buffer would have nodes."""
        found = self.first_fit(job, part)
        if found is not None:
            job.expect(max(from_us, found[0]))

    def _look_far_ahead(self, job: JobRecord, part: PartRecord) -> None:
        """Note when a head may start that cannot within the window: nothing is kept for it."""
        ends = sorted({each[0] for each in self._ends if self._window_us < each[0] < NEVER_US})
        place = bisect_left(ends, True, key=lambda end: bool(self._fit_at(job, part, end)[0]))
        if place < len(ends):
            job.plan(ends[place], "")

    def _note(self, job: JobRecord, when_us: int, shares: tuple[Share, ...]) -> None:
        """Say in the trace when and where a head will start at the latest, if that is news."""
        if job.planned_us == when_us:
            return
        ctld = self._ctld
        names = compress(tuple(ctld.nodes[share.index].name for share in shares))
        job.plan(when_us, names)
        args = {"start_us": when_us, "node_list": names}
        ctld.site.trace.note("log", "backfill_reservation", ctld.process, args=args, job=job.job_id)

    def _moments(self, job: JobRecord, part: PartRecord, from_us: int = 0) -> Iterator[int]:
        """Yield when things change that a head may wait for, until the end of the window."""
        from_us = max(self._now_us, from_us)
        moments = {from_us, *(each[0] for each in self._ends)}
        moments.update(planned.end_us for planned in self._planned)
        moments.update(self._now_us + due for due in reserved.waits(self._ctld, self._now_us))
        near = sorted(when for when in moments if from_us <= when <= self._window_us)
        if not self._planned and not self._ctld.reservations:
            # Nodes only get freer: what does not fit at one moment fits at none before.
            low, high = 0, len(near)
            while low < high:
                middle = (low + high) // 2
                if self._fit_at(job, part, near[middle])[0]:
                    high = middle
                else:
                    low = middle + 1
            near = near[low : low + 1]
        yield from near

    def _fit_at(
        self, job: JobRecord, part: PartRecord, when_us: int
    ) -> tuple[tuple[Share, ...], dict[int, Room]]:
        """Return what a job could take at a moment, and what those nodes would have."""
        ctld = self._ctld
        mask = part.mask & ctld.serviceable_nodes
        end_us = min(NEVER_US, when_us + self._length_us(job, part))
        if ctld.reservations:
            mask &= reserved.open_between(ctld, job, when_us, end_us)
        demand = demand_in(job, part)
        others = [
            planned
            for planned in self._planned
            if planned.start_us < end_us and when_us < planned.end_us
        ]
        if part.uniform_cpus and demand.plain:
            for _, _, busy, _ in self._ends[bisect_right(self._ends, when_us, key=_end) :]:
                mask &= ~busy
            for planned in others:
                mask &= ~planned.nodes
            # What is idle now is kept for a head only if what comes free by then is too little.
            shares = _whole_nodes_of(mask, demand, part, mask & ~ctld.idle_nodes)
            return shares, {share.index: ctld.nodes[share.index].total.copy() for share in shares}
        rooms = self._rooms_at(mask, when_us, others)
        if demand.whole:
            for index in [each for each in rooms if rooms[each] != ctld.nodes[each].total]:
                del rooms[index]
        comes_free = sorted(rooms.values(), key=lambda room: room is ctld.nodes[room.index].free)
        shares = choose(demand, comes_free)
        return shares, {share.index: rooms[share.index].copy() for share in shares}

    def _rooms_at(self, mask: int, when_us: int, others: list[Planned]) -> dict[int, Room]:
        """Return what nodes will have when all have ended that should by then, and others begun.

        Most nodes do not change; what they have free is not copied.
        """
        nodes = self._ctld.nodes
        rooms = {index: nodes[index].free for index in members(mask)}

        def change(shares: dict[int, Share], sign: int) -> None:
            for index, share in shares.items():
                if index in rooms:
                    if rooms[index] is nodes[index].free:
                        rooms[index] = rooms[index].copy()
                    rooms[index].take(share, sign)

        for end_us, _, _, shares in self._ends:
            if end_us > when_us:
                break
            change(shares, -1)
        for planned in others:
            change(planned.shares, 1)
        return rooms


def _is_in_the_way(share: Share, spare: Room | None, *, whole: bool) -> bool:
    """Return whether a share is more than a head leaves of a node; None: it needs none."""
    if spare is None:
        return False
    kinds = [spare.gres.get(name, 0) < count for name, count in share.gres.items()]
    return whole or spare.cpus < share.cpus or spare.memory_mb < share.memory_mb or any(kinds)


def _end(entry: tuple[int, int, int, dict[int, Share]]) -> int:
    return entry[0]


def _whole_nodes_of(
    mask: int, demand: Demand, part: PartRecord, rather: int = 0
) -> tuple[Share, ...]:
    """Return the first of these nodes, which are alike, that a job needs; none if too few.

    Those that it would *rather* have go before the others.
    """
    need = uniform_need(demand, part.uniform_cpus)
    if not 0 < need <= mask.bit_count():
        return ()
    some = first(mask & rather, need)
    return whole_nodes(part, sorted([*some, *first(mask & ~rather, need - len(some))]))
