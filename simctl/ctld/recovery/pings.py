"""Nodes: registration, pings of those that do not answer, time limits of the jobs they run."""

from simctl.ctld.controller import Controller
from simctl.ctld.nodes.reachability import (
    PINGS_PER_REGISTRATION,
    answers,
    next_ping_us,
    ping_interval_us,
    watch_unreachable,
)
from simctl.ctld.recovery.loss import set_down
from simctl.ctld.state.notices import PingDue, RegistrationsDue, StruckPingsDue
from simctl.ctld.state.records import NodeRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    MessageNodeRegistrationStatus,
    RequestNodeRegistrationStatus,
    RequestPing,
    ResponseSlurmRc,
)
from simctl.wire.states import NodeBase, NodeFlag


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
        """Time to ask the nodes to register again."""
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
    """Ask a node to register that can be reached; return whether to look at it again.

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


def ping_in_earnest(ctld: Controller) -> None:
    """Have the nodes pinged of which a ping or its answer may get lost, at every ping from now on.

    All other pings are answered, and change nothing. What recurs keeps no run alive.
    """
    kernel = ctld.site.kernel

    def ping() -> None:
        if ctld.mailbox.open and kernel.foreground:
            ctld.mailbox.post(StruckPingsDue())

    if any(_may_miss_ping(ctld, node) for node in ctld.nodes):
        kernel.call_in_background(next_ping_us(ctld), ping)


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
    """Ping a node that cannot answer; return whether it is to be pinged again.

    One that was heard of since the last round is left out of this one.
    """
    interval_us = ping_interval_us(ctld)
    timeout_us = ctld.site.conf.slurmd_timeout_s * SECOND
    # The last ping it answered was the last one before it fell silent.
    answered_us = _silent_since_us(ctld, node) // interval_us * interval_us
    node.heard(answered_us)
    # Slurm counts in whole seconds.
    silent_s = ctld.now_us // SECOND - node.last_response_us // SECOND
    if timeout_us and silent_s * SECOND >= timeout_us:
        ctld.send(ctld.address(node), RequestPing())
        await set_down(ctld, node)
        return False
    if node.flags & NodeFlag.NO_RESPOND or silent_s * SECOND >= interval_us:
        ctld.send(ctld.address(node), RequestPing())
    return bool(timeout_us)
