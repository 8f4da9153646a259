"""The rows of sinfo: nodes that are alike in all that the format shows share a line."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

import attrs

from simctl.commands.columns.formats import STANDARD, Clock
from simctl.commands.columns.node_states import base_of, state_text
from simctl.wire.info import NodeInfo, PartInfo
from simctl.wire.states import NodeBase, NodeFlag


@attrs.frozen(kw_only=True)
class NodeRow:
    """A line of sinfo: some nodes, and the partition that shows them."""

    part: PartInfo
    nodes: tuple[NodeInfo, ...] = ()
    cluster: str = ""
    gres_types: tuple[str, ...] = ()
    clock: Clock = STANDARD

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return how many nodes are allocated, idle, in another state, and all."""
        busy = sum(_is_busy(node) for node in self.nodes)
        idle = sum(_is_idle(node) for node in self.nodes)
        return busy, idle, len(self.nodes) - busy - idle, len(self.nodes)

    @property
    def cpu_counts(self) -> tuple[int, int, int, int]:
        """Return how many cpus are allocated, idle, on nodes that take no job, and all."""
        busy = sum(node.cpus_allocated for node in self.nodes)
        total = sum(node.cpus for node in self.nodes)
        other = sum(node.cpus - node.cpus_allocated for node in self.nodes if not _takes_jobs(node))
        return busy, total - busy - other, other, total


def _takes_jobs(node: NodeInfo) -> bool:
    return not node.flags & NodeFlag.DRAIN and node.base is not NodeBase.DOWN


def _is_busy(node: NodeInfo) -> bool:
    if node.flags & NodeFlag.DRAIN:
        return False
    busy = base_of(node) in (NodeBase.ALLOCATED, NodeBase.MIXED)
    return busy or bool(node.flags & NodeFlag.COMPLETING)


def _is_idle(node: NodeInfo) -> bool:
    return _takes_jobs(node) and not _is_busy(node) and node.base is NodeBase.IDLE


_PARTITION_KEYS: Final[dict[str, Callable[[PartInfo], Any]]] = {
    "partition": lambda part: part.name,
    "avail": lambda part: part.state,
    "job_size": lambda part: (part.min_nodes, part.max_nodes),
    "default_time": lambda part: part.default_time_min,
    "max_time": lambda part: part.max_time_min,
    "root": lambda part: part.root_only,
    "oversubscribe": lambda part: part.exclusive,
    "preempt_mode": lambda part: part.preempt_mode,
    "priority_tier": lambda part: part.tier,
}
_NODE_KEYS: Final[dict[str, Callable[[NodeInfo], Any]]] = {
    "name": lambda node: node.name,
    "features": lambda node: node.features,
    "gres": lambda node: tuple(sorted(node.gres.items())),
    "gres_used": lambda node: tuple(sorted(node.gres_used.items())),
    "reason": lambda node: node.reason,
    "reason_time": lambda node: node.reason_s,
    "reason_user": lambda node: node.reason_uid,
    "state": state_text,
    "alloc_mem": lambda node: node.memory_allocated_mb,
}
_EXACT_KEYS: Final[dict[str, Callable[[NodeInfo], Any]]] = {
    "cpus": lambda node: node.cpus,
    "memory": lambda node: node.memory_mb,
}
"""What tells rows apart, where a format shows it; the last ones with --exact alone."""

FACETS: Final = frozenset({*_PARTITION_KEYS, *_NODE_KEYS, *_EXACT_KEYS})


@attrs.frozen(kw_only=True)
class Grouping:
    """How nodes are put together: what is shown, and whether each stands alone."""

    shown: Collection[str]
    each_node: bool = False
    exact: bool = False

    def part_key(self, part: PartInfo) -> tuple[Any, ...]:
        """Return what a partition's nodes have in common."""
        shown = {*self.shown, "partition"} if self.each_node else self.shown
        return tuple(key(part) for name, key in _PARTITION_KEYS.items() if name in shown)

    def node_key(self, node: NodeInfo) -> tuple[Any, ...]:
        """Return what the nodes of a line have in common."""
        if self.each_node:
            return (node.name,)
        keys = {**_NODE_KEYS, **(_EXACT_KEYS if self.exact else {})}
        return tuple(key(node) for name, key in keys.items() if name in self.shown)


def group(
    parts: Sequence[PartInfo], nodes: Iterable[NodeInfo], grouping: Grouping, row: NodeRow
) -> list[NodeRow]:
    """Return the lines, in the order of partitions and nodes; *row* has what all of them share.

    A partition without nodes has a line of its own, unless lines are about single nodes.
    """
    by_name = {node.name: node for node in nodes}
    empty = "partition" in grouping.shown and not grouping.each_node
    found: dict[tuple[Any, ...], tuple[PartInfo, dict[str, NodeInfo]]] = {}
    for part in parts:
        part_key = grouping.part_key(part)
        here = [by_name[name] for name in part.nodes if name in by_name]
        for node in here:
            key = (part_key, grouping.node_key(node))
            found.setdefault(key, (part, {}))[1][node.name] = node
        if empty and not here:
            found[part_key, ()] = (part, {})
    return [
        attrs.evolve(row, part=part, nodes=tuple(each.values())) for part, each in found.values()
    ]
