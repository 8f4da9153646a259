"""Whether nodes answer: pings, and nodes that have fallen silent."""

from simctl.ctld.controller import Controller
from simctl.ctld.state.notices import PingDue
from simctl.ctld.state.records import NodeRecord
from simctl.wire.ids import SECOND
from simctl.wire.states import NodeBase, NodeFlag

_PINGS_PER_TIMEOUT = 3


PINGS_PER_REGISTRATION = 20


def ping_interval_us(ctld: Controller) -> int:
    """Return how far apart pings are."""
    timeout_s = ctld.site.conf.slurmd_timeout_s or 100 * _PINGS_PER_TIMEOUT
    return timeout_s * SECOND // _PINGS_PER_TIMEOUT


def watch_unreachable(ctld: Controller) -> None:
    """Have the next ping sent: only pings that will not be answered are simulated."""
    if ctld.ping_timer is not None and ctld.ping_timer.live:
        return
    ctld.ping_timer = ctld.mailbox.post_at(next_ping_us(ctld), PingDue())


def next_ping_us(ctld: Controller) -> int:
    """Return when nodes are pinged next."""
    interval_us = ping_interval_us(ctld)
    return (ctld.now_us // interval_us + 1) * interval_us


def answers(ctld: Controller, node: NodeRecord) -> bool:
    """Tell whether a ping of a node would be answered now."""
    return ctld.site.fabric.reaches(ctld.process.host, ctld.address(node))


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
