"""Nodes and partitions of a site's slurm.conf, under what a scenario says of them."""

from collections.abc import Iterable
from typing import Final

import attrs

from simctl.kernel.pattern import near
from simctl.scenario.model import NodeSpec, PartitionSpec
from simctl.scenario.positions import Reading
from simctl.scenario.site.site import note, placed
from simctl.wire.conf.cluster import SiteNode, SitePartition
from simctl.wire.conf.lines import Setting


def override(reading: Reading, kind: str, names: Iterable[str], keys: Iterable[str]) -> None:
    """Note that the scenario says something of nodes or partitions of the file."""
    said = reading.overridden.setdefault(kind, set())
    names = tuple(names)
    said.update((name, key) for key in keys for name in names)


def node_spec(name: str, node: SiteNode) -> NodeSpec:
    """Return a node of the file as the scenario has nodes."""
    return NodeSpec(
        name=name,
        cpus=node.cpus,
        memory_mb=node.memory_mb,
        gres=node.gres,
        state=node.state,
        reason=node.reason,
        features=node.features,
    )


def merge_nodes(own: Iterable[NodeSpec], reading: Reading) -> tuple[NodeSpec, ...]:
    """Return the nodes of the file, with what the scenario says of them, then the others."""
    site = reading.site
    if site is None:
        return tuple(own)
    found = {
        name: node_spec(name, node) for name, node in site.nodes.items() if node.state != "FUTURE"
    }
    said = reading.overridden.get("nodes", set())
    for spec in own:
        below = found.get(spec.name)
        if below is None:
            found[spec.name] = spec
            continue
        kept = {key: getattr(below, key) for key in NODE_KEYS if (spec.name, key) not in said}
        found[spec.name] = attrs.evolve(spec, **kept)
    return tuple(found.values())


NODE_KEYS: Final = ("cpus", "memory_mb", "gres", "state", "reason", "features")


def partition_spec(part: SitePartition, reading: Reading) -> PartitionSpec:
    """Return a partition of the file as the scenario has partitions; note unknown nodes."""
    nodes = _members(part, reading)
    default_time = part.default_time_min
    return PartitionSpec(
        name=part.name,
        nodes=nodes,
        default=part.default,
        max_time_min=part.max_time_min,
        default_time_min=part.max_time_min if default_time is None else default_time,
        max_nodes=part.max_nodes,
        min_nodes=part.min_nodes,
        state=part.state,
        priority_tier=part.priority_tier,
        exclusive=part.exclusive,
        preempt_mode=part.preempt_mode,
        grace_time_s=part.grace_time_s,
        root_only=part.root_only,
        allow_accounts=part.allow_accounts,
        deny_accounts=part.deny_accounts,
        def_mem_per_cpu_mb=part.def_mem_per_cpu_mb,
        def_mem_per_node_mb=part.def_mem_per_node_mb,
    )


def _members(part: SitePartition, reading: Reading) -> tuple[str, ...]:
    site = reading.site
    overridden = (part.name, "nodes") in reading.overridden.get("partitions", set())
    if site is None or overridden:
        return ()
    if part.nodes is None or not part.nodes.value:
        note(reading, part.place, "PartitionName", f"{part.name} has no Nodes; name some, or ALL")
        return ()
    if part.nodes.value.casefold() == "all":
        return _counted(tuple(reading.nodes), part.nodes, reading)
    value = placed(part.nodes)
    try:
        names, unknown = site.members(part.nodes.value)
    except ValueError as error:
        reading.mistake(value, str(error))
        return ()
    unknown = [name for name in unknown if name not in reading.nodes]
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if unknown[1:] else ""
        hint = near(unknown[0], list(reading.nodes))
        reading.mistake(value, f"no node {unknown[0]!r}{more}{hint}")
    known = {name for name in names if name in reading.nodes}
    if not known and not unknown:
        reading.mistake(value, "no node is left of these that is not FUTURE")
    return _counted(tuple(sorted(known, key=reading.nodes.__getitem__)), part.nodes, reading)


def _counted(names: tuple[str, ...], setting: Setting, reading: Reading) -> tuple[str, ...]:
    try:
        return reading.members(names)
    except ValueError as error:
        reading.mistake(placed(setting), str(error))
        return ()


def merge_partitions(own: Iterable[PartitionSpec], reading: Reading) -> tuple[PartitionSpec, ...]:
    """Return the partitions of the file, with what the scenario says of them, then the others."""
    site = reading.site
    if site is None:
        return tuple(own)
    found = {name: partition_spec(part, reading) for name, part in site.partitions.items()}
    said = reading.overridden.get("partitions", set())
    for spec in own:
        below = found.get(spec.name)
        if below is not None:
            kept = {
                field: getattr(below, field)
                for key, field in PARTITION_FIELDS.items()
                if (spec.name, key) not in said
            }
            spec = attrs.evolve(spec, **kept)  # noqa: PLW2901 - what is below shows through
        if spec.default:
            found = {name: attrs.evolve(part, default=False) for name, part in found.items()}
        found[spec.name] = spec
    return tuple(found.values())


PARTITION_FIELDS: Final = {
    "nodes": "nodes",
    "default": "default",
    "max_nodes": "max_nodes",
    "min_nodes": "min_nodes",
    "state": "state",
    "priority_tier": "priority_tier",
    "preempt_mode": "preempt_mode",
    "root_only": "root_only",
    "max_time": "max_time_min",
    "default_time": "default_time_min",
    "over_subscribe": "exclusive",
    "grace_time": "grace_time_s",
    "allow_accounts": "allow_accounts",
    "deny_accounts": "deny_accounts",
    "def_mem_per_cpu": "def_mem_per_cpu_mb",
    "def_mem_per_node": "def_mem_per_node_mb",
}
"""The keys of a partition of the scenario, and their fields in PartitionSpec."""
