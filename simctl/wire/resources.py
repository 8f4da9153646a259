"""What jobs take of nodes: cpus, memory in megabytes, generic resources by name."""

import re
from collections.abc import Mapping
from typing import Final

import attrs

ALL_MEMORY: Final = -1
"""Stands for whatever memory a node has."""

Gres = Mapping[str, int]
"""How many of each generic resource, by ``name`` or ``name:type``."""

# What could be a count is none of the types, which may otherwise begin with a digit: gpu:2080ti:4.
_GRES: Final = re.compile(
    r"([A-Za-z][\w-]*)(?::(?!\d+[kKmMgG]?(?::|$))(\w[\w.+-]*))?(?::(\d+)([kKmMgG]?))?"
)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_gres(text: str) -> dict[str, int]:
    """Read ``gpu:2,license:tape:1`` or ``gpu:tesla:2``; a missing count is one.

    Raises:
        ValueError: It is none, or names one twice.
    """
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        match = _GRES.fullmatch(part.removeprefix("gres:"))
        if match is None:
            raise ValueError(f'"{part}" is no generic resource: write NAME[:TYPE][:COUNT]')
        name = f"{match[1]}:{match[2]}" if match[2] else match[1]
        if name in found:
            raise ValueError(f"{name} is given twice")
        count = 1 if match[3] is None else int(match[3]) * _UNITS[match[4].lower()]
        if count:
            found[name] = count
    return found


def format_gres(gres: Gres) -> str:
    """Return ``gpu:2,fast:1``."""
    return ",".join(f"{name}:{count}" for name, count in gres.items())


@attrs.define(kw_only=True)
class Room:
    """What a node has, or has left."""

    index: int
    cpus: int
    memory_mb: int
    gres: dict[str, int]
    total_memory_mb: int = attrs.field(
        default=attrs.Factory(lambda self: self.memory_mb, takes_self=True)
    )
    """What the node has of memory, used or not."""

    def copy(self) -> "Room":
        """Return the same again, to be changed by itself."""
        return Room(
            index=self.index,
            cpus=self.cpus,
            memory_mb=self.memory_mb,
            gres=dict(self.gres),
            total_memory_mb=self.total_memory_mb,
        )

    def take(self, share: "Share", sign: int = 1) -> None:
        """Take a share out of it; with a *sign* of -1, put it back."""
        self.cpus -= sign * share.cpus
        self.memory_mb -= sign * share.memory_mb
        for name, count in share.gres.items():
            self.gres[name] -= sign * count

    def least(self, other: "Room") -> "Room":
        """Return what is there in both."""
        return Room(
            index=self.index,
            cpus=min(self.cpus, other.cpus),
            memory_mb=min(self.memory_mb, other.memory_mb),
            gres={name: min(count, other.gres.get(name, 0)) for name, count in self.gres.items()},
            total_memory_mb=self.total_memory_mb,
        )


@attrs.frozen(kw_only=True)
class Share:
    """What a job has of one node."""

    index: int
    cpus: int
    memory_mb: int = 0
    gres: Gres = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Demand:
    """What a job asks of the nodes it runs on; `required` and `excluded` are sets of nodes.

    Memory is asked of each node, or of each cpu; generic resources of each node. A `whole` job
    shares its nodes with no other. One that may `overcommit` cpus has those of one task on each
    node, however many tasks it has.
    """

    min_nodes: int
    max_nodes: int
    num_tasks: int
    cpus_per_task: int = 1
    ntasks_per_node: int = 0
    """At most so many tasks on a node; 0 for any number."""

    cpus_per_node: int = 0
    """At least so many cpus on each node."""

    memory_per_node_mb: int = 0
    memory_per_cpu_mb: int = 0
    uses_memory: bool = True
    """Memory is taken from the nodes; else they must only have as much."""

    gres: Gres = attrs.field(factory=dict)
    whole: bool = False
    overcommit: bool = False
    required: int = 0
    excluded: int = 0

    @property
    def placed_tasks(self) -> int:
        """Return how many tasks are to find cpus of their own."""
        return self.min_nodes if self.overcommit else self.num_tasks

    @property
    def at_once(self) -> int:
        """Return how many tasks a node has to take if it is to be of use."""
        return 1 if self.overcommit else max(1, self.ntasks_per_node)

    def asked_cpus(self, num_nodes: int) -> int:
        """Return how many cpus are asked for on so many nodes together."""
        tasks = num_nodes if self.overcommit else self.num_tasks
        return max(tasks * self.cpus_per_task, num_nodes * max(1, self.cpus_per_node))

    @property
    def plain(self) -> bool:
        """Return whether the job takes any whole nodes that have the cpus."""
        return (
            self.whole
            and not (self.required or self.excluded or self.gres)
            and not (self.memory_per_node_mb or self.memory_per_cpu_mb)
        )


def split_gres(wanted: Gres, left: Gres) -> Gres | None:
    """Return which of a node's resources serve what is wanted, or None if they do not suffice.

    ``gpu:2`` is served by whatever types the node has, in their order; ``gpu:tesla:2`` by that
    type alone.
    """
    taken: dict[str, int] = {}
    for name, count in wanted.items():
        need = count
        for kind, there in left.items():
            if kind != name and kind.partition(":")[0] != name:
                continue
            use = min(need, there - taken.get(kind, 0))
            if use > 0:
                taken[kind] = taken.get(kind, 0) + use
                need -= use
        if need:
            return None
    return taken


def tasks_in(demand: Demand, room: Room) -> int:
    """Return how many tasks of a job a room takes."""
    cpus = room.cpus
    memory_mb = demand.memory_per_node_mb
    if memory_mb == ALL_MEMORY:
        memory_mb = room.total_memory_mb
    if memory_mb > room.memory_mb:
        return 0
    if demand.memory_per_cpu_mb:
        cpus = min(cpus, room.memory_mb // demand.memory_per_cpu_mb)
    if cpus < demand.cpus_per_node:
        return 0
    if demand.gres and split_gres(demand.gres, room.gres) is None:
        return 0
    fit = cpus // demand.cpus_per_task
    limited = demand.ntasks_per_node and not demand.overcommit
    return min(fit, demand.ntasks_per_node) if limited else fit
