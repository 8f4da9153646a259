"""Nodes: registration, pings of those that do not answer, time limits of the jobs they run."""

from collections.abc import Callable
from typing import Any

from simctl.ctld import agent, excise, limits, missing, node_switch, resync, suspend
from simctl.ctld.completion import (
    clients,
    end_by_status,
    end_job,
    requeue_after_node_failure,
)
from simctl.ctld.controller import Controller
from simctl.ctld.leftovers import Run, end_leftovers, forget_others
from simctl.ctld.notices import PingDue, RegistrationsDue, StruckPingsDue
from simctl.ctld.records import JobRecord, NodeRecord
from simctl.kernel.fabric import Envelope
from simctl.kernel.procs import wait_status
from simctl.wire.errno import (
    ESLURM_DUPLICATE_JOB_ID,
    ESLURM_USER_ID_MISSING,
    ESLURMD_CREDENTIAL_EXPIRED,
    ESLURMD_CREDENTIAL_REVOKED,
    ESLURMD_INVALID_JOB_CREDENTIAL,
)
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.messages import (
    MessageNodeRegistrationStatus,
    RequestBatchJobLaunch,
    RequestKillTimelimit,
    RequestLaunchProlog,
    RequestNodeRegistrationStatus,
    RequestPing,
    ResponseSlurmRc,
    SrunNodeFail,
    SrunTimeout,
)
from simctl.wire.states import CONFIGURING, RUNNING, JobBase, NodeBase, NodeFlag, Reason

_PINGS_PER_TIMEOUT = 3
PINGS_PER_REGISTRATION = 20

NOT_RESPONDING = "Not responding"
"""The reason of a node that was set down because it did not answer."""

_NON_STARTABLE = (
    ESLURM_USER_ID_MISSING,
    ESLURMD_INVALID_JOB_CREDENTIAL,
    ESLURMD_CREDENTIAL_EXPIRED,
    ESLURMD_CREDENTIAL_REVOKED,
)
"""Why nothing of a job is launched, nor ever will be: it fails."""

_RETURNS_WHATEVER_THE_REASON = 2
"""ReturnToService by which a registration brings a node back that was DOWN for any reason."""


async def node_registration(
    ctld: Controller, envelope: Envelope, message: MessageNodeRegistrationStatus
) -> None:
    """Take in a node's registration: its switch state, then the node itself."""
    if message.status:
        # It has no switch state: slurmd only says that a launch has failed there.
        known = message.status == ESLURM_DUPLICATE_JOB_ID
        reason = "Duplicate jobid" if known else "Prolog error"
        ctld.drain(ctld.nodes_by_name[message.node_name], reason)
        return
    node = ctld.nodes_by_name[message.node_name]
    if not await node_switch.unpack_node_info(ctld, message):
        node_switch.drop(ctld, node, message, _next_ping_us(ctld))
        return
    first = message.startup and message.started_us > node.slurmd_start_us
    started = first or node.start_missed
    node.slurmd_start_us = max(node.slurmd_start_us, message.started_us)
    rebooted = message.booted_us > node.booted_us
    node.booted_us = message.booted_us
    node.start_missed, node.invalid_registrations = False, 0
    node.last_response_us = ctld.now_us
    runs = [(job_id, restart_cnt) for job_id, _, restart_cnt in message.steps]
    if started:
        node.start_us = ctld.now_us
        if rebooted:
            await _after_restart(ctld, node, runs)
        else:
            forget_others(ctld, node, (*runs, *message.left))
        agent.slurmd_is_back(ctld, node, same=not rebooted)
    flags = node.flags & ~NodeFlag.NO_RESPOND
    ctld.set_node(node, node.base, flags)
    base = node.working_base()
    if node.base is NodeBase.DOWN and not _returns(ctld, node):
        base = NodeBase.DOWN
    else:
        node.reason = "" if not flags & NodeFlag.DRAIN else node.reason
    ctld.set_node(node, base, flags)
    end_leftovers(ctld, node, (*runs, *message.left))
    await missing.look(ctld, node, message, started=started and not rebooted)
    if ctld.unheard:
        await resync.node_registered(ctld, node, message)
    if node.usable:
        ctld.request_pass()


async def _after_restart(ctld: Controller, node: NodeRecord, runs: list[Run]) -> None:
    """Take in that a node has started anew: what it does not list is gone from there."""
    running = {job_id for job_id, _ in runs}
    for job in _jobs_of(ctld, node):
        if job.job_id not in running:
            await _fail_job(ctld, node, job)
    await _forget_completing(ctld, node, lambda job: job.job_id in running or _was_told(job, node))
    forget_others(ctld, node, runs)


def _returns(ctld: Controller, node: NodeRecord) -> bool:
    """Tell whether a node that is DOWN comes back by registering: as ReturnToService says."""
    if ctld.site.conf.return_to_service == _RETURNS_WHATEVER_THE_REASON:
        return True
    return bool(ctld.site.conf.return_to_service) and node.reason == NOT_RESPONDING


async def _forget_completing(
    ctld: Controller, node: NodeRecord, is_there: Callable[[JobRecord], bool] = lambda _: False
) -> None:
    """Take a fresh registration as the end of completing jobs that are no longer there."""
    from simctl.ctld import completion  # noqa: PLC0415 - only for jobs a restart has lost

    for job in list(ctld.jobs.values()) if node.completing else ():
        if node.name in job.completing_nodes and not is_there(job):
            await completion.node_is_gone(ctld, job, node)


# Nodes that do not answer.


def ping_interval_us(ctld: Controller) -> int:
    """Return how far apart pings are."""
    timeout_s = ctld.site.conf.slurmd_timeout_s or 100 * _PINGS_PER_TIMEOUT
    return timeout_s * SECOND // _PINGS_PER_TIMEOUT


def watch_unreachable(ctld: Controller) -> None:
    """Have the next ping sent: only pings that will not be answered are simulated."""
    if ctld.ping_timer is not None and ctld.ping_timer.live:
        return
    ctld.ping_timer = ctld.mailbox.post_at(_next_ping_us(ctld), PingDue())


def _next_ping_us(ctld: Controller) -> int:
    interval_us = ping_interval_us(ctld)
    return (ctld.now_us // interval_us + 1) * interval_us


def answers(ctld: Controller, node: NodeRecord) -> bool:
    """Tell whether a ping of a node would be answered now."""
    return ctld.site.fabric.reaches(ctld.process.host, ctld.address(node))


def _silent_since_us(ctld: Controller, node: NodeRecord) -> int:
    """Return since when a node that does not answer cannot: its host is down, or its link cut."""
    fabric = ctld.site.fabric
    slurmd = ctld.address(node)
    since_us = ctld.now_us
    if slurmd is None or not slurmd.open or not slurmd.host.up:
        since_us = fabric.down_since_us.get(node.name, node.last_response_us)
    cut = fabric.cut_between(ctld.process.host, slurmd.host) if slurmd is not None else None
    return min(since_us, cut.since_us) if cut is not None else since_us


def ask_in_a_while(ctld: Controller) -> None:
    """Have all nodes asked to register again, at every twentieth ping.

    This goes on as long as something else is due: what recurs keeps no run alive.
    """
    kernel = ctld.site.kernel

    def ask() -> None:
        if ctld.mailbox.open and kernel.foreground:
            ctld.mailbox.post(RegistrationsDue())

    due_us = ctld.now_us + PINGS_PER_REGISTRATION * ping_interval_us(ctld)
    kernel.call_in_background(due_us, ask)


async def registrations_due(ctld: Controller, _: Envelope, __: RegistrationsDue) -> None:
    """Ask the nodes that answer to register; the others are asked once they do."""
    ctld.process.cause = 0  # nothing but the time leads to this
    ctld.nodes_asked_us = ctld.now_us
    for node in ctld.nodes:
        if answers(ctld, node):
            ctld.send(ctld.address(node), RequestNodeRegistrationStatus())
    ask_in_a_while(ctld)


async def ping_due(ctld: Controller, _: Envelope, __: PingDue) -> None:
    """Ping the nodes that cannot answer; those silent for SlurmdTimeout become DOWN.

    One that can answer again is asked to register, which tells what it still runs.
    """
    again = False
    for node in ctld.nodes:
        if answers(ctld, node):
            if node.flags & NodeFlag.NO_RESPOND:
                again = await _ask_to_register(ctld, node) or again
        # A node that was set down by hand counts as long as a job has yet to leave it.
        elif node.base is not NodeBase.DOWN or node.completing:
            again = await _ping_in_vain(ctld, node) or again
    if again:
        watch_unreachable(ctld)


async def _ask_to_register(ctld: Controller, node: NodeRecord) -> bool:
    """Ask a node to register that can be reached; tell whether to look at it again.

    Where messages are lost it may not hear of it, or not be heard.
    """
    slurmd, disturbance = ctld.address(node), ctld.site.fabric.disturbance
    assert slurmd is not None
    if disturbance is None:
        ctld.send(slurmd, RequestNodeRegistrationStatus())
        return False
    timeout_us = ctld.site.conf.slurmd_timeout_s * SECOND
    silent_s = ctld.now_us // SECOND - node.last_response_us // SECOND
    if timeout_us and silent_s * SECOND >= timeout_us and node.base is not NodeBase.DOWN:
        await set_down(ctld, node)
    pinged = disturbance.may_strike(RequestPing.rpc, ctld.mailbox, slurmd)
    ctld.send(slurmd, RequestPing() if pinged else RequestNodeRegistrationStatus())
    return node.base is not NodeBase.DOWN or not (
        disturbance.loses_all(RequestPing.rpc, ctld.mailbox, slurmd)
        or disturbance.loses_all(RequestNodeRegistrationStatus.rpc, ctld.mailbox, slurmd)
        or disturbance.loses_all(MessageNodeRegistrationStatus.rpc, slurmd, ctld.mailbox)
    )


def not_responding(ctld: Controller, node: NodeRecord) -> None:
    """Note that a node has left a request unanswered: it gets no job until it is heard of."""
    if not node.flags & NodeFlag.NO_RESPOND:
        # It has answered all before.
        asked_us = ctld.now_us - ctld.site.fabric.timeout_us
        node.last_response_us = max(node.last_response_us, asked_us)
    silent(ctld, node)


def silent(ctld: Controller, node: NodeRecord) -> None:
    """Note that a node that has registered cannot be reached; from now on it is pinged."""
    if node.base not in (NodeBase.DOWN, NodeBase.UNKNOWN):
        ctld.set_node(node, node.base, node.flags | NodeFlag.NO_RESPOND)
        watch_unreachable(ctld)


def ping_in_earnest(ctld: Controller) -> None:
    """Have the nodes pinged of which a ping or its answer may get lost, at every ping from now on.

    All other pings are answered, and change nothing. What recurs keeps no run alive.
    """
    kernel = ctld.site.kernel

    def ping() -> None:
        if ctld.mailbox.open and kernel.foreground:
            ctld.mailbox.post(StruckPingsDue())

    if any(_may_miss_ping(ctld, node) for node in ctld.nodes):
        kernel.call_in_background(_next_ping_us(ctld), ping)


def _may_miss_ping(ctld: Controller, node: NodeRecord) -> bool:
    slurmd, disturbance = ctld.address(node), ctld.site.fabric.disturbance
    if slurmd is None or disturbance is None:
        return False
    return disturbance.may_strike(RequestPing.rpc, ctld.mailbox, slurmd) or disturbance.may_strike(
        ResponseSlurmRc.rpc, slurmd, ctld.mailbox
    )


async def struck_pings_due(ctld: Controller, _: Envelope, __: StruckPingsDue) -> None:
    """Ping the nodes that would answer if nothing got lost."""
    ctld.process.cause = 0  # nothing but the time leads to this
    for node in ctld.nodes:
        if node.base is NodeBase.DOWN or node.flags & NodeFlag.NO_RESPOND:
            continue
        if answers(ctld, node) and _may_miss_ping(ctld, node):
            ctld.send(ctld.address(node), RequestPing())
    ping_in_earnest(ctld)


async def _ping_in_vain(ctld: Controller, node: NodeRecord) -> bool:
    """Ping a node that cannot answer; tell whether it is to be pinged again."""
    interval_us = ping_interval_us(ctld)
    timeout_us = ctld.site.conf.slurmd_timeout_s * SECOND
    # The last ping it answered was the last one before it fell silent.
    answered_us = _silent_since_us(ctld, node) // interval_us * interval_us
    node.last_response_us = max(node.last_response_us, answered_us)
    ctld.send(ctld.address(node), RequestPing())
    # Slurm counts in whole seconds.
    silent_s = ctld.now_us // SECOND - node.last_response_us // SECOND
    if timeout_us and silent_s * SECOND >= timeout_us:
        await set_down(ctld, node)
        return False
    ctld.set_node(node, node.base, node.flags | NodeFlag.NO_RESPOND)
    return bool(timeout_us)


async def response_rc(ctld: Controller, envelope: Envelope, message: ResponseSlurmRc) -> None:
    """Take in slurmd's answer to a request; one that refuses a launch is told in the trace.

    Whatever a node answers, it is there. One that answers a ping, and had not answered before, is
    asked what it runs.
    """
    sender = envelope.sender
    node = ctld.nodes_by_name.get(sender.host.name) if sender is not None else None
    if node is not None:
        node.last_response_us = ctld.now_us
        if message.answers == RequestPing.rpc and node.flags & NodeFlag.NO_RESPOND:
            ctld.send(sender, RequestNodeRegistrationStatus())
    if message.return_code:
        ctld.site.trace.note(
            "log",
            "request_refused",
            ctld.process,
            args={"rpc": message.answers, "return_code": message.return_code},
        )
        await _launch_refused(ctld, message)


_LAUNCHES = (RequestBatchJobLaunch.rpc, RequestLaunchProlog.rpc)


async def _launch_refused(ctld: Controller, message: ResponseSlurmRc) -> None:
    """End a job of which a node says that nothing of it could ever start there.

    The node takes it for one which is over, because it bears the id of one that slurmctld has
    forgotten with its state; or its credential is bad.
    """
    job = ctld.jobs.get(message.job_id)
    if job is None or message.answers not in _LAUNCHES or message.return_code not in _NON_STARTABLE:
        return
    run = getattr(message.request, "restart_cnt", job.restart_cnt)
    if run == job.restart_cnt and job.state in (RUNNING, CONFIGURING):
        await end_by_status(ctld, job, wait_status(1))


async def set_down(ctld: Controller, node: NodeRecord) -> None:
    """Give a node up: its jobs fail, or wait again."""
    if node.base is not NodeBase.DOWN:
        ctld.note_reason(node, NOT_RESPONDING, ctld.process.uid)
    ctld.set_node(node, NodeBase.DOWN, node.flags | NodeFlag.NO_RESPOND)
    await fail_jobs(ctld, node)
    await _forget_completing(ctld, node)
    forget_others(ctld, node, ())


async def take_down(ctld: Controller, node: NodeRecord) -> None:
    """Set a node down by hand: its jobs fail, or wait again.

    One that cannot be reached has to register first, whoever resumes it: its jobs still run there.
    """
    flags = node.flags
    if not answers(ctld, node):
        flags |= NodeFlag.NO_RESPOND
    ctld.set_node(node, NodeBase.DOWN, flags)
    await fail_jobs(ctld, node)


async def fail_jobs(ctld: Controller, node: NodeRecord) -> None:
    """End the jobs of a node that is gone, send them back into the queue, or go on without."""
    for job in _jobs_of(ctld, node):
        await _fail_job(ctld, node, job)


def _jobs_of(ctld: Controller, node: NodeRecord) -> list[JobRecord]:
    """Return the jobs that run on a node, and those that are suspended there."""
    return [*node.jobs.values(), *suspend.suspended_on(ctld, node)]


async def _fail_job(ctld: Controller, node: NodeRecord, job: JobRecord) -> None:
    for srun in excise.who_is_told(job, node):
        ctld.send(srun, SrunNodeFail(job_id=job.job_id, node_list=node.name))
    told = _was_told(job, node)
    if excise.survives(job, node):
        await excise.take_out(ctld, job, node, told=told)
        return
    if node.base is not NodeBase.DOWN and not told:
        # It has restarted: nothing of the job is left to be told to end.
        job.nodes_lost.add(node.name)
    if job.batch and job.requeue:
        await requeue_after_node_failure(ctld, job)
    else:
        await end_job(ctld, job, JobBase.NODE_FAIL, Reason.NODE_DOWN)


def _was_told(job: JobRecord, node: NodeRecord) -> bool:
    """Tell whether a node was told to begin with a job since its slurmd started. Pure.

    That may come before its registration does, which says that what it had before is gone.
    """
    told_us = job.prologs_us
    if job.batch and job.nodes[:1] == (node,):
        told_us = max(told_us, job.launched_us)
    return told_us >= max(node.slurmd_start_us, 0)


# Time limits.


async def limit_due(ctld: Controller, _: Envelope, message: Any) -> None:
    """Warn the sruns of a job at the check before its limit; end it at the first check after."""
    job: JobRecord = message.job
    if job.restart_cnt != message.run or job.state.base is not JobBase.RUNNING:
        return
    if job.deadline_timer is not None and ctld.now_us >= limits.deadline_us(ctld, job):
        # Its deadline is there as well, and ends it.
        return
    for srun in clients(job):
        ctld.send(srun, SrunTimeout(job_id=job.job_id))
    over_us = ctld.site.conf.over_time_limit_min * 60 * SECOND
    if job.limit_us != INFINITE and ctld.now_us >= job.limit_us + over_us:
        job.limit_timer = None
        await end_job(ctld, job, JobBase.TIMEOUT, Reason.TIME_LIMIT, request=RequestKillTimelimit)
        return
    ctld.watch_limit(job)
