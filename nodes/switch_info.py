"""What the switch plugin says of a node, for users of scontrol."""

from simctl.kernel.procs import Process
from simctl.plugins.hooks import Hooks, failed
from simctl.plugins.points.switch import (
    switch_p_alloc_node_info,
    switch_p_build_node_info,
    switch_p_free_node_info,
    switch_p_sprintf_node_info,
)
from simctl.wire.messages import RequestSwitchInfo, ResponseSwitchInfo


async def node_switch_info(
    hooks: Hooks, who: Process, message: RequestSwitchInfo
) -> ResponseSwitchInfo:
    """Build a record of the node's switch, have it printed, and release it."""
    record = await hooks.call(switch_p_alloc_node_info, who)
    if failed(record):
        return ResponseSwitchInfo(text=await hooks.strerror(who, who.errno), failed=True)
    if failed(await hooks.call(switch_p_build_node_info, who, record)):
        answer = ResponseSwitchInfo(text=await hooks.strerror(who, who.errno), failed=True)
    else:
        text = await hooks.call(switch_p_sprintf_node_info, who, record, message.number)
        answer = ResponseSwitchInfo(text=text if isinstance(text, str) else "")
    await hooks.call(switch_p_free_node_info, who, record)
    return answer
