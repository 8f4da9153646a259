"""``scontrol ping``: whether the controller answers."""

from simctl.commands.scontrol.order import Order
from simctl.wire.messages import RequestPing


async def ping(order: Order) -> int:
    """Say whether the controller answers; root is told what to do if it does not."""
    order.count(0, 0)
    down = bool(await order.ask(RequestPing(), once=True))
    order.call.out(f"Slurmctld(primary) at slurmctld is {'DOWN' if down else 'UP'}")
    if down and not order.call.user.uid:
        stars = "*" * 41
        for line in (stars, "** RESTORE SLURMCTLD DAEMON TO SERVICE **", stars):
            order.call.out(line)
    return 1 if down else 0
