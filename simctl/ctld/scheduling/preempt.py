"""Preemption: jobs of partitions of a lower tier make room for those of a higher one.

PreemptType=preempt/partition_prio. A job that finds no room has the least important jobs end, go
back into the queue or be suspended, of those whose nodes would give it room. It starts once they
are gone, or at once beside suspended ones, which go on when their nodes are free again; until then
no job that is no more important than they are gets these.
"""

from collections.abc import Iterable

import attrs

from simctl.ctld.checkpoints import checkpoints
from simctl.ctld.choose import reserved
from simctl.ctld.choose.select import choose, demand_in
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import completion, signals, suspend, suspend_switch
from simctl.ctld.state.notices import PreemptAsked
from simctl.ctld.state.records import JobRecord, PartRecord
from simctl.ctld.state.recurring import PERIODIC_US
from simctl.kernel.fabric import Envelope
from simctl.kernel.procs import SIGCONT, SIGTERM
from simctl.plugin import CheckOp
from simctl.wire.bitmap import mask_of, members
from simctl.wire.errno import ESLURM_NOT_SUPPORTED, SLURM_SUCCESS
from simctl.wire.ids import SECOND
from simctl.wire.messages import RequestCheckpoint, RequestKillPreempted
from simctl.wire.states import JobBase, Reason


def is_on(ctld: Controller) -> bool:
    """Return whether jobs may be preempted at all."""
    return ctld.site.conf.preempt_type != "preempt/none"


def mode_of(ctld: Controller, victim: JobRecord) -> str:
    """Return what becomes of a job that is preempted, a word of PreemptMode; OFF for nothing."""
    mode = victim.part.preempt_mode or ctld.site.conf.preempt_mode
    if mode == "REQUEUE" and not (victim.batch and victim.requeue):
        return "CANCEL"
    return mode


async def make_room(ctld: Controller, job: JobRecord, part: PartRecord, allowed: int) -> None:
    """Have as many jobs give way as a job needs, unless some already do."""
    if not is_on(ctld):
        return
    if any(victim.state.completing or _gives_way(ctld, victim) for victim in job.gives_way):
        return
    job.preempt(choose_victims(ctld, job, part, allowed))
    for victim in job.gives_way:
        await _preempt(ctld, victim)


def choose_victims(
    ctld: Controller, job: JobRecord, part: PartRecord, allowed: int
) -> tuple[JobRecord, ...]:
    """Return the jobs that have to give way so that a job has room; none if that is no use. Pure.

    Of a lower tier are taken first, then of a lower priority, or with preempt_youngest_first those
    that started last; and none whose nodes are not needed in the end.
    """
    youngest_first = ctld.site.conf.scheduler_parameters.preempt_youngest_first

    def importance(victim: JobRecord) -> tuple[int, int, int]:
        how_old = -victim.start_us if youngest_first else victim.priority
        return victim.part.tier, how_old, -victim.job_id

    candidates = sorted(
        (
            victim
            for victim in ctld.running.values()
            if not victim.state.flags
            and victim.part.tier < part.tier
            and mode_of(ctld, victim) != "OFF"
            and any(part.mask >> node.index & 1 for node in victim.nodes)
        ),
        key=importance,
    )
    victims: list[JobRecord] = []
    for candidate in candidates:
        victims.append(candidate)
        if _fits_without(ctld, job, part, allowed, victims):
            break
    else:
        return ()
    for victim in victims[:-1]:
        rest = [other for other in victims if other is not victim]
        if _fits_without(ctld, job, part, allowed, rest):
            victims = rest
    return tuple(victims)


def _fits_without(
    ctld: Controller,
    job: JobRecord,
    part: PartRecord,
    allowed: int,
    victims: Iterable[JobRecord],
) -> bool:
    """Return whether a job has room once some others are gone, and those that are going."""
    mask = part.mask & allowed & ctld.serviceable_nodes
    if ctld.reservations:
        mask &= reserved.open_to(ctld, job, part, ctld.now_us)
    rooms = {index: ctld.nodes[index].free.copy() for index in members(mask)}
    for victim in victims:
        for index, share in victim.shares.items():
            if index in rooms:
                rooms[index].take(share, -1)
    demand = demand_in(job, part)
    if demand.whole:
        rooms = {i: room for i, room in rooms.items() if room == ctld.nodes[i].total}
    return bool(choose(demand, rooms.values()))


def _gives_way(ctld: Controller, victim: JobRecord) -> bool:
    """Return whether a job has grace time left, or is being checkpointed so that it can end.

    One that was suspended may have missed the end of its grace time.
    """
    if victim.state.base is not JobBase.RUNNING:
        return False
    return victim.ckpt_preempted or victim.preempt_us > ctld.now_us


async def _preempt(ctld: Controller, victim: JobRecord) -> None:
    """End a job, or send it back into the queue; with a grace time, warn it first."""
    grace_us = victim.part.grace_time_s * SECOND
    mode = mode_of(ctld, victim)
    if victim.ckpt_preempted or (mode == "CHECKPOINT" and await _checkpoint(ctld, victim)):
        return
    if mode == "REQUEUE":
        await completion.requeue(ctld, victim, preempted=True)
    elif mode == "SUSPEND":
        if not await suspend_switch.test(ctld, victim):
            await suspend.put_aside(ctld, victim)
            ctld.preempted[victim.job_id] = victim
    elif grace_us and victim.preempt_us < 0:
        victim.give_way_by(ctld.now_us + grace_us)
        for signal in (SIGCONT, SIGTERM):
            signals.signal_steps(ctld, victim, signal)
        ctld.grace_at(victim.preempt_us, victim)
    else:
        await end(ctld, victim)


@attrs.frozen
class StillThere:
    """Time to look whether a job that was checkpointed to give way has done so."""

    job: JobRecord
    run: int
    idle: bool = False
    """Nothing of the checkpoint was under way the last time."""


async def _checkpoint(ctld: Controller, victim: JobRecord) -> bool:
    """Have a job checkpointed and requeued, or checkpointed and ended; false if neither can be."""
    rc = SLURM_SUCCESS if victim.batch or victim.steps else ESLURM_NOT_SUPPORTED
    for op in (CheckOp.REQUEUE, CheckOp.VACATE) if not rc else ():
        request = RequestCheckpoint(op=op, job_id=victim.job_id)
        rc = (await checkpoints.operate(ctld, request, 0)).rc
        if rc != ESLURM_NOT_SUPPORTED:
            break
    victim.give_way_by_checkpoint(asked=not rc)
    if victim.ckpt_preempted:
        look_again(ctld, StillThere(victim, victim.restart_cnt))
    return victim.ckpt_preempted


async def asked(ctld: Controller, _: Envelope, notice: PreemptAsked) -> None:
    """Have a job give way that a fault asks to preempt; without a PreemptMode it ends."""
    victim = ctld.running.get(notice.job_id)
    if victim is not None and not victim.state.flags:
        await _preempt(ctld, victim)


def look_again(ctld: Controller, notice: StillThere) -> None:
    """Look at a job that is checkpointed to give way when limits are looked at next."""
    due_us = (ctld.now_us // PERIODIC_US + 1) * PERIODIC_US
    ctld.mailbox.post_at(due_us, notice)


async def still_there(ctld: Controller, _: Envelope, notice: StillThere) -> None:
    """End a job that runs on although no checkpoint of it has been under way for a while."""
    job = notice.job
    if job.state.base is not JobBase.RUNNING or job.restart_cnt != notice.run:
        return
    request = RequestCheckpoint(op=CheckOp.ABLE, job_id=job.job_id)
    outcome = await checkpoints.operate(ctld, request, 0)
    idle = not outcome.status.event_time
    if idle and notice.idle:
        await end(ctld, job)
        return
    look_again(ctld, attrs.evolve(notice, idle=idle))


async def end(ctld: Controller, victim: JobRecord) -> None:
    """End a preempted job whose grace time is over, if it still runs."""
    if victim.state.base is JobBase.RUNNING:
        await completion.end_job(
            ctld, victim, JobBase.PREEMPTED, Reason.NONE, request=RequestKillPreempted
        )


# Suspended jobs.


def kept_nodes(ctld: Controller, part: PartRecord) -> int:
    """Return the nodes that wait for preempted jobs at least as important as a partition's."""
    return mask_of(
        node.index
        for victim in ctld.preempted.values()
        if victim.part.tier >= part.tier
        for node in victim.nodes
    )


async def let_go_on(ctld: Controller) -> None:
    """Let preempted jobs go on whose nodes are free again, the most important first."""
    for victim in sorted(
        ctld.preempted.values(), key=lambda each: (-each.part.tier, each.suspend_us, each.job_id)
    ):
        await suspend.go_on(ctld, victim)
