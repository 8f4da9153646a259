"""The switch state in a node's registration: unpacked, printed if that is wanted, released."""

from typing import Final

import attrs

from simctl.ctld.controller import Controller
from simctl.ctld.state.records import NodeRecord
from simctl.kernel.fabric import Envelope
from simctl.plugins.hooks import Handle, failed
from simctl.plugins.points.switch import (
    switch_p_alloc_node_info,
    switch_p_free_node_info,
    switch_p_sprintf_node_info,
    switch_p_unpack_node_info,
)
from simctl.wire.messages import MessageNodeRegistrationStatus, RequestNodeRegistrationStatus

_PRINTED: Final = 4096
"""The size of the buffer that a node's switch state is printed into."""

_ASKED_AT_MOST: Final = 3
"""How many registrations in a row may be invalid before the node is asked no more."""


@attrs.frozen
class NodeDue:
    """Time to ask a node again whose registration could not be read."""

    node: NodeRecord


async def unpack_node_info(ctld: Controller, message: MessageNodeRegistrationStatus) -> bool:
    """Unpack the node's switch state; a failure makes the message invalid."""
    hooks = ctld.site.hooks
    who = ctld.process
    if ctld.site.model == "guide":
        info = await hooks.call(switch_p_alloc_node_info, who)
        if failed(info):
            return False
    else:
        info = await hooks.blank(who, switch_p_alloc_node_info)
    buffer = message.switch_nodeinfo.opened()
    good = not failed(await hooks.call(switch_p_unpack_node_info, who, info, buffer))
    if good and ctld.site.conf.debug_flags:
        await _print_node_info(ctld, info, message.node_name)
    await hooks.call(switch_p_free_node_info, who, info)
    return good


async def _print_node_info(ctld: Controller, info: Handle, name: str) -> None:
    """Have a node's switch state printed into the log."""
    text = await ctld.site.hooks.call(switch_p_sprintf_node_info, ctld.process, info, _PRINTED)
    if isinstance(text, str):
        args = {"node": name, "text": text}
        ctld.site.trace.note("log", "switch_node_info", ctld.process, args=args)


def drop(
    ctld: Controller, node: NodeRecord, message: MessageNodeRegistrationStatus, due_us: int
) -> None:
    """Drop an invalid registration; the node is asked for another at a moment, a few times."""
    args = {"rpc": message.rpc, "node": message.node_name}
    ctld.site.trace.note("log", "invalid_message", ctld.process, args=args)
    if node.misread(startup=message.startup) <= _ASKED_AT_MOST:
        ctld.mailbox.post_at(due_us, NodeDue(node))


async def node_due(ctld: Controller, _: Envelope, message: NodeDue) -> None:
    """Ask a node again, unless it has registered meanwhile or is gone."""
    ctld.process.cause = 0  # nothing but the time leads to this
    if message.node.invalid_registrations:
        ctld.send(ctld.address(message.node), RequestNodeRegistrationStatus())
