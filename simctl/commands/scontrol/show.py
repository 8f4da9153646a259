"""``scontrol show``: which entity is meant, and what there is to say of those that simctl lacks."""

from collections.abc import Awaitable, Callable
from typing import Final

from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.shown.burst_buffer import show_burst_buffers, show_status
from simctl.commands.scontrol.shown.cluster import show_partitions, show_reservations
from simctl.commands.scontrol.shown.config import show_config
from simctl.commands.scontrol.shown.hosts import show_hostlist, show_hostlistsorted, show_hostnames
from simctl.commands.scontrol.shown.job import show_jobs
from simctl.commands.scontrol.shown.node import show_nodes
from simctl.commands.scontrol.shown.step import show_steps
from simctl.commands.scontrol.shown.switch import show_switch

Show = Callable[[Order, str | None], Awaitable[int]]


async def show(order: Order) -> int:
    """Print what is known of an entity, or of all of a kind."""
    order.count(1)
    word = order.words[0]
    kind, equals, value = word.partition("=")
    given: str | None = value if equals else None
    if not equals and len(order.words) > 1:
        given = order.words[1]
    act = _find(kind.lower())
    if act is not show_status:
        order.count(1, 3 if act is show_switch else 2)
    if act is None:
        order.complain(f"invalid entity:{word} for keyword:{order.keyword} ")
        return 1
    return await act(order, given)


def _find(word: str) -> Show | None:
    """Return what an entity's name means, or the beginning of it that is long enough."""
    for name, (least, act) in ENTITIES.items():
        if len(word) >= least and name.startswith(word):
            return act
    return None


async def _nothing(_: Order, __: str | None) -> int:
    """Print nothing: there are no aliases and no federations."""
    return 0


async def _daemons(order: Order, value: str | None) -> int:
    """Print which daemons run on this host."""
    if value is not None:
        raise UsageError(1, f"too many arguments for keyword:{order.keyword}")
    host = order.call.process.host
    here = ["slurmctld"] if host.name == "slurmctld" else []
    order.call.out(" ".join([*here, *(["slurmd"] if host.node not in (None, "login") else [])]))
    return 0


async def _licenses(order: Order, _: str | None) -> int:
    order.call.out("No licenses configured in Slurm.")
    return 0


async def _topology(order: Order, _: str | None) -> int:
    order.call.err("scontrol: error: No topology information available")
    return 0


async def refuse(order: Order, _: str | None) -> int:
    """Refuse an entity that simctl lacks, by the name that was given."""
    name = order.words[0].partition("=")[0]
    order.call.err(f"scontrol: error: show {name} is known to Slurm but not simulated yet")
    return 1


ENTITIES: Final[dict[str, tuple[int, Show]]] = {
    "aliases": (1, _nothing),
    "assoc_mgr": (2, refuse),
    "burstbuffer": (2, show_burst_buffers),
    "bbstat": (2, show_status),
    "config": (1, show_config),
    "daemons": (1, _daemons),
    "dwstat": (2, show_status),
    "federation": (2, _nothing),
    "frontendname": (1, refuse),
    "hostnames": (5, show_hostnames),
    "hostlist": (5, show_hostlist),
    "hostlistsorted": (9, show_hostlistsorted),
    "jobs": (1, show_jobs),
    "jobid": (1, show_jobs),
    "licenses": (2, _licenses),
    "nodes": (1, show_nodes),
    "nodename": (1, show_nodes),
    "partitions": (1, show_partitions),
    "partitionname": (1, show_partitions),
    "powercapping": (2, refuse),
    "reservations": (1, show_reservations),
    "reservationname": (1, show_reservations),
    "slurmd": (2, refuse),
    "steps": (2, show_steps),
    "stepid": (2, show_steps),
    "switch": (2, show_switch),
    "topology": (1, _topology),
}
"""The entities, how much of each name is enough, and what shows them; the first that fits counts.
"""
