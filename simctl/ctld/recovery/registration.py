"""A node registers: its switch state, then the node itself, then what it runs."""

from simctl.ctld.controller import Controller
from simctl.ctld.nodes import node_switch
from simctl.ctld.nodes.leftovers import Run, end_leftovers, forget_others
from simctl.ctld.nodes.reachability import next_ping_us
from simctl.ctld.recovery import agent, missing, resync
from simctl.ctld.recovery.loss import NOT_RESPONDING, fail_job, forget_completing, jobs_of, was_told
from simctl.ctld.state.records import NodeRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.errno import ESLURM_DUPLICATE_JOB_ID
from simctl.wire.messages import MessageNodeRegistrationStatus
from simctl.wire.states import NodeBase, NodeFlag

_RETURNS_WHATEVER_THE_REASON = 2
"""ReturnToService by which a registration brings a node back that was DOWN for any reason."""


async def node_registration(
    ctld: Controller, envelope: Envelope, message: MessageNodeRegistrationStatus
) -> None:
    """Handle a node's registration: its switch state, then the node itself."""
    if message.status:
        # It has no switch state: slurmd only says that a launch has failed there.
        known = message.status == ESLURM_DUPLICATE_JOB_ID
        reason = "Duplicate jobid" if known else "Prolog error"
        ctld.drain(ctld.nodes_by_name[message.node_name], reason)
        return
    node = ctld.nodes_by_name[message.node_name]
    if not await node_switch.unpack_node_info(ctld, message):
        node_switch.drop(ctld, node, message, next_ping_us(ctld))
        return
    first = message.startup and message.started_us > node.slurmd_start_us
    started = first or node.start_missed
    rebooted = message.booted_us > node.booted_us
    node.register(
        ctld.now_us,
        started_us=message.started_us,
        booted_us=message.booted_us,
        started=started,
    )
    runs = [(job_id, restart_cnt) for job_id, _, restart_cnt in message.steps]
    if started:
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
    elif not flags & NodeFlag.DRAIN:
        node.in_service()
    ctld.set_node(node, base, flags)
    end_leftovers(ctld, node, (*runs, *message.left))
    await missing.look(ctld, node, message, started=started and not rebooted)
    if ctld.unheard:
        await resync.node_registered(ctld, node, message)
    if node.usable:
        ctld.request_pass()


async def _after_restart(ctld: Controller, node: NodeRecord, runs: list[Run]) -> None:
    """Note that a node has started anew: what it does not list is gone from there."""
    running = {job_id for job_id, _ in runs}
    for job in jobs_of(ctld, node):
        if job.job_id not in running:
            await fail_job(ctld, node, job)
    await forget_completing(ctld, node, lambda job: job.job_id in running or was_told(job, node))
    forget_others(ctld, node, runs)


def _returns(ctld: Controller, node: NodeRecord) -> bool:
    """Return whether a node that is DOWN comes back by registering: as ReturnToService says."""
    if ctld.site.conf.return_to_service == _RETURNS_WHATEVER_THE_REASON:
        return True
    return bool(ctld.site.conf.return_to_service) and node.reason == NOT_RESPONDING
