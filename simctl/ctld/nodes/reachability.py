"""Whether nodes answer: pings, and nodes that have fallen silent."""

from simctl.ctld.controller import Controller
from simctl.ctld.state.notices import ConnectFailed, PingDue
from simctl.ctld.state.records import NodeRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.ids import SECOND
from simctl.wire.states import NodeBase, NodeFlag

_PINGS_PER_TIMEOUT = 3
_MOST_TRIES_S = 10
"""How long at most a connection to a node is tried."""

PINGS_PER_REGISTRATION = 20


def ping_interval_us(ctld: Controller) -> int:
    """Return how far apart pings are."""
    timeout_s = ctld.site.conf.slurmd_timeout_s or 100 * _PINGS_PER_TIMEOUT
    return timeout_s * SECOND // _PINGS_PER_TIMEOUT


def watch_unreachable(ctld: Controller) -> None:
    """Have the next ping sent: only pings that will not be answered are simulated."""
    if ctld.ping_timer is not None and ctld.ping_timer.live:
        return
    due_us = next_ping_us(ctld)
    if ctld.pinging_until_us > ctld.now_us:
        # One round of pings follows the other, and the main loop comes by once a second.
        due_us = max(due_us, ctld.pinging_until_us + SECOND)
    ctld.ping_timer = ctld.mailbox.post_at(due_us, PingDue())


def next_ping_us(ctld: Controller) -> int:
    """Return when nodes are pinged next."""
    interval_us = ping_interval_us(ctld)
    return (ctld.now_us // interval_us + 1) * interval_us


def answers(ctld: Controller, node: NodeRecord) -> bool:
    """Return whether a ping of a node would be answered now."""
    return ctld.site.fabric.reaches(ctld.process.host, ctld.address(node))


def not_responding(ctld: Controller, node: NodeRecord) -> None:
    """Note that a node has left a request unanswered: it gets no job until it is heard of."""
    if not node.flags & NodeFlag.NO_RESPOND:
        # It has answered all before.
        asked_us = ctld.now_us - ctld.site.fabric.timeout_us
        node.heard(asked_us)
    silent(ctld, node)


def unreached(ctld: Controller, node: NodeRecord) -> int:
    """Try to connect to a node whose slurmd is not there; return when that is given up.

    Source: slurm_send_addr_recv_msgs() tries once a second.
    """
    tries_s = min(ctld.site.conf.message_timeout_s, _MOST_TRIES_S)
    given_up_us = ctld.now_us + tries_s * SECOND
    ctld.mailbox.post_at(given_up_us, ConnectFailed(node, ctld.now_us))
    return given_up_us


async def connect_failed(ctld: Controller, _: Envelope, notice: ConnectFailed) -> None:
    """Flag a node that could not be reached; what it may have answered before counts."""
    node = notice.node
    if answers(ctld, node) or node.base in (NodeBase.DOWN, NodeBase.UNKNOWN):
        return
    if not node.flags & NodeFlag.NO_RESPOND:
        node.heard(notice.sent_us - SECOND)
    silent(ctld, node)


def silent(ctld: Controller, node: NodeRecord) -> None:
    """Note that a node that has registered cannot be reached; from now on it is pinged."""
    if node.base not in (NodeBase.DOWN, NodeBase.UNKNOWN):
        ctld.set_node(node, node.base, node.flags | NodeFlag.NO_RESPOND)
        watch_unreachable(ctld)
