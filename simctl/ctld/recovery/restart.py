"""slurmctld starts with what its state files hold: records, then plugins, then timers and nodes.

What plugins hold of jobs and steps crosses as packed bytes alone. The switch plugin restores its
global state from a file of its own before.
"""

from typing import Final

import attrs

from simctl.ctld.checkpoints import checkpoint_times
from simctl.ctld.controller import Controller, Fatal
from simctl.ctld.jobs import asking, awaited, completion, eligible, limits, prologs, suspend
from simctl.ctld.recovery import buffers_at_start, resync
from simctl.ctld.saved.state_save import PROTOCOL_VERSION
from simctl.ctld.state import notices, queue
from simctl.ctld.state.notices import SaveDue
from simctl.ctld.state.records import JobRecord, NodeRecord, StepRecord
from simctl.ctld.steps import step_limits, steps
from simctl.kernel.fabric import Envelope
from simctl.plugins.hooks import NULL, About, Handle, failed
from simctl.plugins.points.checkpoint import slurm_ckpt_alloc_job, slurm_ckpt_unpack_job
from simctl.plugins.points.switch import (
    switch_p_alloc_jobinfo,
    switch_p_libstate_save,
    switch_p_unpack_jobinfo,
)
from simctl.plugins.points.switch_besides import switch_p_job_step_allocated
from simctl.wire.buf import Buf, Packed
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.states import (
    PENDING,
    PENDING_COMPLETING,
    PENDING_CONFIGURING,
    PENDING_REQUEUE,
    JobBase,
    JobFlag,
    NodeBase,
    NodeFlag,
)

NODES_ASKED_AFTER_US: Final = 4 * SECOND
"""How long after a restart the nodes are asked what they are like and what they run."""


@attrs.frozen
class StopDue:
    """Time to stop in good order, as SIGTERM asks for."""


async def save(ctld: Controller) -> None:
    """Have the switch save its state, pack what plugins hold of jobs and steps, and write it."""
    where = ctld.site.conf.state_save_location
    await ctld.site.hooks.call(switch_p_libstate_save, ctld.process, where)
    await ctld.saves.pack_all()
    ctld.saves.stopped = True
    ctld.saves.write_all()


# What plugins hold.


async def recover(ctld: Controller) -> None:
    """Give jobs and steps what plugins packed of them; a step that none can read is lost."""
    for job in list(ctld.jobs.values()):
        job.keep_record(await _recover_job(ctld, job))
        await buffers_at_start.count_as_read(ctld, job)
        for step in list(job.steps.values()):
            if not await _recover_step(ctld, step):
                await steps.lose(ctld, step)


async def _recover_job(ctld: Controller, job: JobRecord) -> Handle:
    record, good = await _record(ctld, job.packed_record, job.about)
    if not good:
        _tell_lost(ctld, "a job's checkpoint record", job.about)
    return record


async def _recover_step(ctld: Controller, step: StepRecord) -> bool:
    hooks, who = ctld.site.hooks, ctld.process
    if ctld.site.model == "guide":
        switch_job = await hooks.call(switch_p_alloc_jobinfo, who, about=step.about)
        if failed(switch_job):
            raise Fatal("switch_g_alloc_jobinfo failed")
    else:
        switch_job = await hooks.blank(who, switch_p_alloc_jobinfo)
    step.keep_credential(switch_job)
    buffer = step.packed_job.opened()
    about = step.about
    if failed(await hooks.call(switch_p_unpack_jobinfo, who, switch_job, buffer, about=about)):
        _tell_lost(ctld, "a step's credential", about)
        return False
    check_job, good = await _record(ctld, step.packed_record, about)
    step.keep_record(check_job)
    if not good:
        _tell_lost(ctld, "a step's checkpoint record", about)
        return False
    await hooks.call_besides(
        switch_p_job_step_allocated, who, switch_job, step.node_list, about=about
    )
    return True


async def _record(ctld: Controller, packed: Packed, about: About) -> tuple[Handle, bool]:
    """Return a checkpoint record with what was packed of it, and whether that could be read."""
    hooks, who = ctld.site.hooks, ctld.process
    record = await hooks.call(slurm_ckpt_alloc_job, who, about=about)
    if failed(record):
        return NULL, False
    buffer = Buf(packed.data)
    rc = await hooks.call(slurm_ckpt_unpack_job, who, record, buffer, PROTOCOL_VERSION, about=about)
    return record, not failed(rc)


def _tell_lost(ctld: Controller, what: str, about: About) -> None:
    ctld.site.trace.note(
        "log",
        "incomplete_state",
        ctld.process,
        args={"text": f"{what} cannot be read"},
        job=about.job,
        step=about.step,
    )


# What is not saved: who has what of which node, queues, timers.


def rebuild(ctld: Controller) -> None:
    """Make from restored records what follows from them; nothing is sent, no plugin asked."""
    for node in ctld.nodes:
        node.begin_anew(ctld.now_us, len(ctld.leftovers.get(node.name, ())))
    for job in ctld.jobs.values():
        _place(ctld, job)
    for node in ctld.nodes:
        _settle_node(ctld, node)
    for job in sorted(ctld.jobs.values(), key=lambda each: each.queue_number):
        _queue(ctld, job)
    for record in ctld.reservations.values():
        for when_us in (record.start_us, record.end_us):
            if when_us >= ctld.now_us or when_us == record.end_us:
                ctld.reservation_at(max(when_us, ctld.now_us), record)


def _place(ctld: Controller, job: JobRecord) -> None:
    """Give a job what it has of nodes, and enter it in the tables of its state."""
    if job.state == PENDING_REQUEUE:
        # It was on its way back into the queue; its nodes have yet to hear of it.
        ctld.set_job(job, PENDING_COMPLETING)
    elif job.state == PENDING_CONFIGURING and job.nodes:
        # It was about to start, and no client or node was told: it waits, and is tried again.
        ctld.set_job(job, PENDING)
    state = job.state
    job.begin_anew(was_stopped=ctld.saves.was_stopped)
    ctld.move_job(job, state)
    if state.completing:
        for name in sorted(job.completing_nodes):
            ctld.nodes_by_name[name].expect_end()
    elif state.base is JobBase.RUNNING:
        for node in job.nodes:
            node.keep(job)
    elif state.base is JobBase.SUSPENDED:
        ctld.suspended[job.job_id] = job


def _settle_node(ctld: Controller, node: NodeRecord) -> None:
    """Find the state of a node: in model modern one without jobs is UNKNOWN until it registers."""
    flags = node.flags & ~NodeFlag.COMPLETING
    if node.completing:
        flags |= NodeFlag.COMPLETING
    base = node.base
    if base >= NodeBase.IDLE:
        anew = ctld.site.model == "modern" and not node.jobs
        base = NodeBase.UNKNOWN if anew else node.working_base()
    ctld.set_node(node, base, flags)
    if ctld.move_node(node, node.base, node.flags):
        ctld.request_pass()


def _queue(ctld: Controller, job: JobRecord) -> None:
    """Put a job that waits where it belongs, and set the timers of every other."""
    eligible.note_name(ctld, job)
    base = job.state.base
    queued = queue.forget_place(job)
    if base is JobBase.PENDING and not job.state.completing:
        eligible.register(ctld, job)
        limits.watch_deadline(ctld, job)
        if queued and not job.lasting_reason and not job.state.flags & ~JobFlag.SPECIAL_EXIT:
            queue.enqueue(ctld, job)
        else:
            eligible.settle(ctld, job, asks=False)
    elif base in (JobBase.RUNNING, JobBase.SUSPENDED):
        _watch(ctld, job)
    elif job.state.finished and not job.state.completing:
        completion.purge_in_time(ctld, job)


def _watch(ctld: Controller, job: JobRecord) -> None:
    limits.watch_deadline(ctld, job)
    checkpoint_times.job_started(ctld, job)
    for step in job.steps.values():
        checkpoint_times.step_started(ctld, step)
    if job.state.base is not JobBase.RUNNING:
        return
    if job.limit_us != INFINITE and not job.prolog_slurmctld_runs and not job.prologs_out:
        ctld.watch_limit(job)
        limits.watch_warning(ctld, job)
    if not job.state.configuring:
        step_limits.resume(ctld, job)
    if job.preempt_us >= 0:
        ctld.grace_at(job.preempt_us, job)


# What others are told.


async def take_up(ctld: Controller) -> None:
    """Go on with what was under way, once plugins have their state: ends, starts, waits."""
    asking.watch_all(ctld)
    for job in list(ctld.jobs.values()):
        if job.state.completing:
            await _end_again(ctld, job)
        elif job.state.base is JobBase.RUNNING:
            prologs.take_up(ctld, job)
            resync.tell_client(ctld, job)
        has_nodes = job.state.base in (JobBase.RUNNING, JobBase.SUSPENDED)
        if has_nodes and job.suspensions and ctld.site.model == "guide":
            await suspend.tell_again(ctld, job)
    resync.tell_clients_of_ends(ctld)
    for job_id in list(ctld.awaited):
        awaited.over_id(ctld, job_id)
    await resync.fail_on_lost_nodes(ctld)
    ctld.request_pass()
    ctld.request_backfill()
    ctld.unheard = {node.name for node in ctld.nodes}
    ctld.mailbox.post_at(ctld.now_us + NODES_ASKED_AFTER_US, notices.NodesDue())


async def _end_again(ctld: Controller, job: JobRecord) -> None:
    """Have a job that is over ended on the nodes that have not reported it gone."""
    if not job.completing_nodes:
        await completion.gone(ctld, job)
    else:
        completion.terminate_again(ctld, job)


async def save_due(ctld: Controller, _: Envelope, message: SaveDue) -> None:
    """Save, unless nothing has changed."""
    ctld.process.cause = 0  # nothing but the time leads to this
    await ctld.saves.save_in_time(forced=message.forced)
