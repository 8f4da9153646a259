"""The order of sinfo's rows: the keys of --sort, the least important sorted by first."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from simctl.commands.columns.node_states import state_number
from simctl.commands.sinfo.rows import NodeRow
from simctl.wire.hostlist import sort_key_of
from simctl.wire.info import NodeInfo

USUAL: Final = "#P,-t"
USUAL_OF_NODES: Final = "N"

Key = Callable[[NodeRow], Any]


def _node(read: Callable[[NodeInfo], Any], none: Any) -> Key:
    """Return a key of what a row's nodes have in common."""
    return lambda row: read(row.nodes[0]) if row.nodes else none


def _least(read: Callable[[NodeInfo], int]) -> Key:
    return lambda row: min((read(node) for node in row.nodes), default=0)


def _first_node(row: NodeRow) -> Any:
    return (1, min(sort_key_of(node.name) for node in row.nodes)) if row.nodes else (0,)


_KEYS: Final[dict[str, Key]] = {
    "a": lambda row: row.part.state.value,
    "A": lambda row: row.counts[0],
    "c": _least(lambda node: node.cpus),
    "C": lambda row: row.cpu_counts[0],
    "D": lambda row: len(row.nodes),
    "E": _node(lambda node: node.reason, ""),
    "f": _node(lambda node: node.features, ()),
    "F": lambda row: row.counts[0],
    "G": _node(lambda node: sorted(node.gres.items()), []),
    "h": lambda row: row.part.exclusive,
    "H": _node(lambda node: node.reason_s, 0),
    "l": lambda row: row.part.max_time_min,
    "L": lambda row: row.part.default_time_min,
    "m": _least(lambda node: node.memory_mb),
    "M": lambda row: row.part.preempt_mode,
    "n": _first_node,
    "N": _first_node,
    "o": _first_node,
    "p": lambda row: row.part.tier,
    "P": lambda row: row.part.name,
    "r": lambda row: row.part.root_only,
    "R": lambda row: row.part.name,
    "s": lambda row: (row.part.max_nodes, row.part.min_nodes),
    "t": _node(state_number, 0),
    "T": _node(state_number, 0),
    "u": _node(lambda node: node.reason_user, ""),
    "U": _node(lambda node: node.reason_user, ""),
    "Y": _least(lambda node: node.cpus),
    "z": _least(lambda node: node.cpus),
}
"""What each letter sorts by; by other letters, and by what is none, rows are alike in Slurm too."""


def sorted_rows(rows: Sequence[NodeRow], text: str, partitions: Sequence[str]) -> list[NodeRow]:
    """Return rows in the order of --sort; ``#P`` is the order of *partitions*."""
    found = list(rows)
    for place in range(len(text) - 1, -1, -1):
        sign = text[place - 1] if place else ""
        key = _KEYS.get(text[place])
        if text[place] in "PR" and sign == "#":
            key = lambda row: partitions.index(row.part.name)  # noqa: E731 - one key more
        if key is not None:
            found.sort(key=key, reverse=sign == "-")
    return found
