"""scontrol's keywords for the controller as a whole."""

from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.shown.node import VERSION
from simctl.wire.errno import slurm_strerror
from simctl.wire.messages import RequestReconfigure, RequestShutdown


async def reconfigure(order: Order) -> int:
    """Have the controller and all nodes read their configuration again."""
    order.count(0, 0)
    rc = await order.ask(RequestReconfigure())
    if rc:
        order.complain(f"slurm_reconfigure error: {slurm_strerror(rc)}")
    return 1 if rc else 0


async def shutdown(order: Order) -> int:
    """Have all daemons stop, or the controller alone."""
    order.count(0, 1)
    if order.words and order.words[0] not in ("slurmctld", "controller"):
        order.call.err(f"invalid shutdown argument:{order.words[0]}")
        return 1
    rc = await order.ask(RequestShutdown(controller_only=bool(order.words)), once=True)
    if rc:
        order.complain(f"slurm_shutdown error: {slurm_strerror(rc)}")
    return 1 if rc else 0


async def version(order: Order) -> int:
    """Print which Slurm this is."""
    order.count(0, 0)
    order.call.out(f"slurm-wlm {VERSION}")
    return 0
