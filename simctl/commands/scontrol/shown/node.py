"""``scontrol show node``: what nodes have, what is taken of it, and their states."""

from collections.abc import Iterator
from typing import Final

from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.text import NULL, gres, moment, tres
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.info import NodeInfo
from simctl.wire.messages import RequestNodeInfo, ResponseNodeInfo
from simctl.wire.states import NodeBase, NodeFlag

VERSION: Final = "22.05.8"
"""The version of Slurm whose commands these are."""

_PORT: Final = 6818
"""SlurmdPort, where nothing else is configured."""


async def show_nodes(order: Order, value: str | None) -> int:
    """Print all nodes, or those that a host list names, in its order."""
    answer = await order.load(RequestNodeInfo(), "slurm_load_node")
    if not isinstance(answer, ResponseNodeInfo):
        return 1
    if value is None:
        order.print_records([_lines(order, node) for node in answer.nodes])
        return 0
    nodes = {node.name: node for node in answer.nodes}
    try:
        names = expand(value, tolerant=True)
    except HostlistError:
        names = (value,)
    for name in names:
        if name in nodes:
            order.print_records([_lines(order, nodes[name])])
        elif not order.quiet:
            order.call.out(f"Node {name} not found")
    return 0 if all(name in nodes for name in names) else 1


def state_text(node: NodeInfo) -> str:
    """Return the state of a node with all that stands beside it: ``IDLE+DRAIN``."""
    beside = {
        "COMPLETING": NodeFlag.COMPLETING in node.flags,
        "DRAIN": NodeFlag.DRAIN in node.flags,
        "MAINTENANCE": node.maintenance,
        "RESERVED": node.reserved,
        "NOT_RESPONDING": NodeFlag.NO_RESPOND in node.flags,
        "PLANNED": node.planned,
    }
    return "+".join([node.base.name, *(name for name, holds in beside.items() if holds)])


def _lines(order: Order, node: NodeInfo) -> list[str]:
    details = []
    if order.details:
        details = ["GresDrain=N/A", f"GresUsed={_used(node, order.call.site.conf.gres_types)}"]
    return [*_head(node), *details, *_body(node)]


def _used(node: NodeInfo, types: tuple[str, ...]) -> str:
    """Return how many of each generic resource jobs have, and which; all types are named."""
    found = []
    for name in [*node.gres, *(kind for kind in types if not _has(node, kind))]:
        count = node.gres_used.get(name, 0)
        last = f"-{count - 1}" if count > 1 else ""
        which = f"(IDX:{f'0{last}' if count else 'N/A'})" if name in node.gres else ""
        found.append(f"{name}:{count}{which}")
    return ",".join(found) or NULL


def _has(node: NodeInfo, kind: str) -> bool:
    return any(name.partition(":")[0] == kind for name in node.gres)


def _is_known(node: NodeInfo) -> bool:
    """Return whether a node has ever registered."""
    return node.slurmd_start_s > 0 and node.base is not NodeBase.UNKNOWN


def _head(node: NodeInfo) -> Iterator[str]:
    arch = "Arch=x86_64 " if _is_known(node) else ""
    yield f"NodeName={node.name} {arch}CoresPerSocket={node.cpus} "
    yield (f"CPUAlloc={node.cpus_allocated} CPUEfctv={node.cpus} CPUTot={node.cpus} CPULoad=N/A")
    features = ",".join(node.features) or NULL
    yield f"AvailableFeatures={features}"
    yield f"ActiveFeatures={features}"
    yield f"Gres={gres(node.gres)}"


def _body(node: NodeInfo) -> Iterator[str]:
    known = _is_known(node)
    version = f" Version={VERSION}" if known else ""
    yield f"NodeAddr={node.name} NodeHostName={node.name} Port={_PORT}{version}"
    if known:
        yield "OS=Linux "
    yield (
        f"RealMemory={node.memory_mb} AllocMem={node.memory_allocated_mb} FreeMem=N/A "
        "Sockets=1 Boards=1"
    )
    yield (f"State={state_text(node)} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A")
    if node.partitions:
        yield f"Partitions={','.join(node.partitions)} "
    boot = moment(node.boot_s if known else 0, "None")
    yield f"BootTime={boot} SlurmdStartTime={moment(node.slurmd_start_s, 'None')}"
    yield f"LastBusyTime={moment(node.last_busy_s)}"
    yield f"CfgTRES={tres_of(node.cpus, node.memory_mb)},billing={node.cpus}"
    yield f"AllocTRES={tres_of(node.cpus_allocated, node.memory_allocated_mb)}"
    yield "CapWatts=n/a"
    yield "CurrentWatts=0 AveWatts=0"
    yield "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s"
    if node.reason:
        yield f"Reason={node.reason} [{node.reason_user}@{moment(node.reason_s)}]"


def tres_of(cpus: int, memory_mb: int) -> str:
    """Return cpus and memory as a set of resources; empty for none."""
    return tres(cpus=cpus, memory_mb=memory_mb)
