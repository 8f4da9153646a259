"""scontrol's keywords for the controller as a whole."""

from simctl.commands.scontrol_order import Order
from simctl.commands.show_node import VERSION
from simctl.wire.errno import slurm_strerror
from simctl.wire.messages import RequestReconfigure


async def reconfigure(order: Order) -> int:
    """Have the controller and all nodes read their configuration again."""
    order.count(0, 0)
    rc = await order.ask(RequestReconfigure())
    if rc:
        order.complain(f"slurm_reconfigure error: {slurm_strerror(rc)}")
    return 1 if rc else 0


async def version(order: Order) -> int:
    """Print which Slurm this is."""
    order.count(0, 0)
    order.call.out(f"slurm-wlm {VERSION}")
    return 0
