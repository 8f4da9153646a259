"""The least cluster on which the jobs of an import can have run as they did."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from simctl.importing.sacct_rows import Row
from simctl.wire.hostlist import compress, sort_unique

_DIGITS: Final = re.compile(r"\d+")


@attrs.frozen(kw_only=True)
class Nodes:
    """Nodes that are alike."""

    names: tuple[str, ...]
    cpus: int
    memory_mb: int


@attrs.define
class _Use:
    """What is in use of something, now and at most."""

    cpus: int = 0
    memory_mb: int = 0
    most_cpus: int = 1
    most_memory_mb: int = 1

    def change(self, cpus: int, memory_mb: int) -> None:
        self.cpus += cpus
        self.memory_mb += memory_mb
        self.most_cpus = max(self.most_cpus, self.cpus)
        self.most_memory_mb = max(self.most_memory_mb, self.memory_mb)


def find_nodes(rows: Sequence[Row]) -> list[Nodes]:
    """Return nodes with as many cpus and as much memory as jobs had there at one time.

    Nodes whose names differ by numbers alone are taken to be alike. Where no record says on which
    nodes jobs ran, there are as many as their cpus needed.
    """
    use = _per_node([row for row in rows if row.node_list])
    if not use:
        return [_without_names(rows)]
    kinds: dict[str, list[str]] = {}
    for name in sort_unique(use):
        kinds.setdefault(_DIGITS.sub("#", name), []).append(name)
    return [
        Nodes(
            names=tuple(names),
            cpus=max(use[name].most_cpus for name in names),
            memory_mb=max(use[name].most_memory_mb for name in names),
        )
        for names in kinds.values()
    ]


def _per_node(rows: Iterable[Row]) -> dict[str, _Use]:
    use: dict[str, _Use] = {}
    changes: list[tuple[int, int, int, int, tuple[str, ...]]] = []
    for row in rows:
        cpus, memory_mb = -(-row.cpus // row.nodes), -(-row.memory_mb // row.nodes)
        for name in row.node_list:
            found = use.setdefault(name, _Use())
            found.most_cpus = max(found.most_cpus, cpus)
            found.most_memory_mb = max(found.most_memory_mb, memory_mb)
        if row.start_s >= 0 and row.elapsed_s:
            end_s = row.start_s + row.elapsed_s
            # What ends in a second makes room for what starts in it.
            changes.append((row.start_s, 1, cpus, memory_mb, row.node_list))
            changes.append((end_s, 0, -cpus, -memory_mb, row.node_list))
    for _, _, cpus, memory_mb, names in sorted(changes):
        for name in names:
            use[name].change(cpus, memory_mb)
    return use


def _without_names(rows: Sequence[Row]) -> Nodes:
    cpus = max(-(-row.cpus // row.nodes) for row in rows)
    memory_mb = max(-(-row.memory_mb // row.nodes) for row in rows)
    whole = _Use()
    changes: list[tuple[int, int, int]] = []
    for row in rows:
        if row.elapsed_s:
            start_s = row.start_s if row.start_s >= 0 else row.submit_s
            changes += [(start_s, 1, row.cpus), (start_s + row.elapsed_s, 0, -row.cpus)]
    for _, _, change in sorted(changes):
        whole.change(change, 0)
    count = max(*(row.nodes for row in rows), -(-whole.most_cpus // cpus), 1)
    names = tuple(f"n{number}" for number in range(1, count + 1))
    return Nodes(names=names, cpus=cpus, memory_mb=max(1, memory_mb))


def partitions(rows: Iterable[Row]) -> dict[str, str]:
    """Return the partitions that jobs named, with the nodes that they had there; else ALL."""
    nodes: dict[str, set[str]] = {}
    widest: dict[str, int] = {}
    for row in rows:
        for name in row.partitions:
            here = nodes.setdefault(name, set())
            if len(row.partitions) == 1:
                here |= set(row.node_list)
            widest[name] = max(widest.get(name, 0), row.nodes)
    return {
        name: compress(sort_unique(here)) if len(here) >= widest[name] and here else "ALL"
        for name, here in nodes.items()
    }
