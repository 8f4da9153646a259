"""What a site's slurm.conf says of its cluster: nodes and partitions, each value with its place."""

from collections.abc import Mapping
from typing import Final

import attrs

from simctl.wire.conf.lines import Place, Setting
from simctl.wire.ids import INFINITE

HERE: Final = Place("")


@attrs.frozen(kw_only=True)
class SiteNode:
    """What a NodeName line says of each of its nodes."""

    cpus: int = 1
    memory_mb: int = 1
    gres: Mapping[str, int] = attrs.field(factory=dict)
    features: tuple[str, ...] = ()
    state: str = "UNKNOWN"
    """UNKNOWN, DOWN, DRAIN or FUTURE."""
    reason: str = ""
    place: Place = attrs.field(default=HERE, eq=False)


@attrs.frozen(kw_only=True)
class SitePartition:
    """A partition; `nodes` are host lists and names of node sets, as they were written."""

    name: str
    nodes: Setting | None = None
    default: bool = False
    max_time_min: int = INFINITE
    default_time_min: int | None = None
    max_nodes: int = INFINITE
    min_nodes: int = 1
    state: str = "UP"
    priority_tier: int = 1
    exclusive: bool = False
    preempt_mode: str = ""
    grace_time_s: int = 0
    root_only: bool = False
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    def_mem_per_cpu_mb: int = 0
    def_mem_per_node_mb: int = 0
    place: Place = attrs.field(default=HERE, eq=False)


@attrs.define(kw_only=True)
class Ignored:
    """What stands in the files and is not acted on: a word for each, once."""

    words: dict[str, str] = attrs.field(factory=dict)

    def add(self, key: str, note: str = "") -> None:
        """Add a key, with what is to be said of it."""
        self.words.setdefault(key, note)

    def texts(self) -> tuple[str, ...]:
        """Return each word, with its note in brackets."""
        return tuple(f"{key} ({note})" if note else key for key, note in self.words.items())

    def __str__(self) -> str:
        return ", ".join(self.texts())


@attrs.define(kw_only=True)
class NodeSets:
    """The NodeSet lines: names that stand for nodes, by host list or by feature."""

    nodes: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    features: dict[str, str] = attrs.field(factory=dict)

    def members(self, name: str, cluster: Mapping[str, SiteNode]) -> tuple[str, ...] | None:
        """Return the nodes of a set in the order of the cluster, or None if there is none."""
        if name not in self.nodes and name not in self.features:
            return None
        listed = set(self.nodes.get(name, ()))
        feature = self.features.get(name)
        return tuple(
            node
            for node, spec in cluster.items()
            if node in listed or (feature is not None and feature in spec.features)
        )
