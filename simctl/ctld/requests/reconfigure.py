"""scontrol reconfigure: the controller reads its configuration again, and has the nodes do so."""

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import asking
from simctl.ctld.recovery import buffers_at_start
from simctl.kernel.fabric import Envelope
from simctl.plugins.points.switch_besides import switch_p_reconfig
from simctl.wire.errno import SLURM_SUCCESS
from simctl.wire.messages import RequestReconfigure
from simctl.wire.states import NodeBase


async def reconfigure(ctld: Controller, envelope: Envelope, message: RequestReconfigure) -> None:
    """Find the states of the nodes anew, answer, and only then tell every slurmd."""
    before = [(node, node.base) for node in ctld.nodes if node.base is not NodeBase.DOWN]
    for node, _ in before:
        ctld.set_node(node, NodeBase.UNKNOWN, node.flags)
    for node, base in before:
        ctld.set_node(node, base, node.flags)
    await ctld.site.hooks.call_besides(switch_p_reconfig, ctld.process)
    if ctld.bb is not None:
        await ctld.bb.reconfig()
        if ctld.site.model == "guide":
            await buffers_at_start.measure(ctld, ctld.bb)
        asking.stirred(ctld, by_somebody=True)
        ctld.request_pass()
    ctld.answer(envelope, SLURM_SUCCESS)
    for node in ctld.nodes:
        ctld.send(ctld.address(node), message)
