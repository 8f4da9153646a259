"""What sinfo can show of nodes and partitions: the letters of -o and the names of -O."""

from collections.abc import Callable
from typing import Final

import attrs

from simctl.commands.asking.showing import VERSION
from simctl.commands.columns.formats import Column, run_time
from simctl.commands.columns.node_states import complete_state_text, short_state_text, state_text
from simctl.commands.sinfo.rows import NodeRow
from simctl.wire.hostlist import compress, sort_unique
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.info import NodeInfo, PartInfo
from simctl.wire.states import PartState

_AVAILABLE: Final = {
    PartState.UP: "up",
    PartState.DOWN: "down",
    PartState.DRAIN: "drain",
    PartState.INACTIVE: "inact",
}


@attrs.frozen
class InfoColumn(Column[NodeRow]):
    """A field of sinfo; rows that differ in its facet are told apart."""

    facet: str = attrs.field(default="", kw_only=True)


@attrs.frozen
class PartitionColumn(InfoColumn):
    """The name of a partition, with a star behind that of the default one, whatever the width."""

    def text(self, row: NodeRow, width: int) -> str:
        """Return the name; the star takes the place of what does not fit."""
        name = row.part.name
        if not row.part.default:
            return name
        return f"{name[: width - 1] if width else name}*"


def _fixed(heading: str, text: str) -> InfoColumn:
    """Return a column for what is not simulated: all nodes have nothing, or the usual, of it."""
    return InfoColumn(heading, lambda _: text)


def _of_part(heading: str, read: Callable[[PartInfo], str], facet: str) -> InfoColumn:
    return InfoColumn(heading, lambda row: read(row.part), facet=facet)


def _of_node(heading: str, read: Callable[[NodeInfo], str], none: str, facet: str) -> InfoColumn:
    """Return a column for what all nodes of a row have in common."""

    def text(row: NodeRow) -> str:
        return read(row.nodes[0]) if row.nodes else none

    return InfoColumn(heading, text, facet=facet)


def _size(heading: str, read: Callable[[NodeInfo], int], facet: str) -> InfoColumn:
    """Return a column for a size: the least of a row, with a plus if others have more."""

    def text(row: NodeRow) -> str:
        return _least([read(node) for node in row.nodes])

    return InfoColumn(heading, text, facet=facet)


def _least(sizes: list[int]) -> str:
    if not sizes:
        return "0"
    return str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)}+"


def _minutes(minutes: int) -> str:
    return "infinite" if minutes == INFINITE else run_time(minutes * 60)


def _default_time(part: PartInfo) -> str:
    if part.default_time_min == part.max_time_min:
        return "n/a"
    return _minutes(part.default_time_min)


def _job_size(part: PartInfo) -> str:
    least = max(1, part.min_nodes)
    if part.max_nodes == INFINITE:
        return f"{least}-infinite"
    return str(least) if least == part.max_nodes else f"{least}-{part.max_nodes}"


def _sockets(row: NodeRow) -> str:
    return f"1:{_least([node.cpus for node in row.nodes])}:1"


def _features(node: NodeInfo) -> str:
    return ",".join(node.features) or "(null)"


def _gres(node: NodeInfo) -> str:
    return ",".join(f"{name}:{count}" for name, count in node.gres.items()) or "(null)"


def _gres_used(row: NodeRow) -> str:
    used = row.nodes[0].gres_used if row.nodes else {}
    types = dict.fromkeys((*row.gres_types, *used))
    return ",".join(f"{name}:{used.get(name, 0)}" for name in types) or "(null)"


def _names(row: NodeRow) -> str:
    return compress(sort_unique(node.name for node in row.nodes))


def _numbers(counts: tuple[int, ...]) -> str:
    return "/".join(map(str, counts))


def _user(node: NodeInfo) -> str:
    return node.reason_user if node.reason else "Unknown"


def _user_with_id(node: NodeInfo) -> str:
    if not node.reason or node.reason_uid == NO_VAL:
        return "Unknown"
    return f"{node.reason_user}({node.reason_uid})"


def _told_at(row: NodeRow) -> str:
    """Return when somebody gave the reason."""
    return row.clock.moment(row.nodes[0].reason_s, none="Unknown") if row.nodes else "n/a"


_STATE: Final = _of_node("STATE", lambda node: state_text(node).lower(), "n/a", "state")
_REASON: Final = _of_node("REASON", lambda node: node.reason or "none", "none", "reason")
_NODE_LIST: Final = InfoColumn("NODELIST", _names, cut=False)

LETTERS: Final[dict[str, InfoColumn]] = {
    "a": _of_part("AVAIL", lambda part: _AVAILABLE[part.state], "avail"),
    "A": InfoColumn("NODES(A/I)", lambda row: _numbers(row.counts[:2])),
    "b": _of_node("ACTIVE_FEATURES", _features, "(null)", "features"),
    "B": _fixed("MAX_CPUS_PER_NODE", "UNLIMITED"),
    "c": _size("CPUS", lambda node: node.cpus, "cpus"),
    "C": InfoColumn("CPUS(A/I/O/T)", lambda row: _numbers(row.cpu_counts)),
    "d": _fixed("TMP_DISK", "0"),
    "D": InfoColumn("NODES", lambda row: str(len(row.nodes))),
    "e": _fixed("FREE_MEM", "N/A"),
    "E": _REASON,
    "f": _of_node("AVAIL_FEATURES", _features, "(null)", "features"),
    "F": InfoColumn("NODES(A/I/O/T)", lambda row: _numbers(row.counts)),
    "g": _fixed("GROUPS", "all"),
    "G": _of_node("GRES", _gres, "(null)", "gres"),
    "h": _of_part(
        "OVERSUBSCRIBE", lambda part: "EXCLUSIVE" if part.exclusive else "NO", "oversubscribe"
    ),
    "H": InfoColumn("TIMESTAMP", _told_at, facet="reason_time"),
    "I": _fixed("PRIO_JOB_FACTOR", "1"),
    "l": _of_part("TIMELIMIT", lambda part: _minutes(part.max_time_min), "max_time"),
    "L": _of_part("DEFAULTTIME", _default_time, "default_time"),
    "m": _size("MEMORY", lambda node: node.memory_mb, "memory"),
    "M": _of_part("PREEMPT_MODE", lambda part: part.preempt_mode.upper() or "OFF", "preempt_mode"),
    "n": InfoColumn("HOSTNAMES", _names, cut=False, facet="name"),
    "N": _NODE_LIST,
    "o": InfoColumn("NODE_ADDR", _names, cut=False, facet="name"),
    "O": _fixed("CPU_LOAD", "N/A"),
    "p": _of_part("PRIO_TIER", lambda part: str(part.tier), "priority_tier"),
    "P": PartitionColumn("PARTITION", lambda row: row.part.name, facet="partition"),
    "r": _of_part("ROOT", lambda part: "yes" if part.root_only else "no", "root"),
    "R": _of_part("PARTITION", lambda part: part.name, "partition"),
    "s": _of_part("JOB_SIZE", _job_size, "job_size"),
    "S": _fixed("ALLOCNODES", "all"),
    "t": _of_node("STATE", lambda node: short_state_text(node).lower(), "n/a", "state"),
    "T": _STATE,
    "u": _of_node("USER", _user, "Unknown", "reason_user"),
    "U": _of_node("USER", _user_with_id, "Unknown", "reason_user"),
    "v": _fixed("VERSION", VERSION),
    "V": _fixed("CLUSTER", "N/A"),
    "w": _fixed("WEIGHT", "1"),
    "X": _fixed("SOCKETS", "1"),
    "Y": _size("CORES", lambda node: node.cpus, "cpus"),
    "z": InfoColumn("S:C:T", _sockets, facet="cpus"),
    "Z": _fixed("THREADS", "1"),
}
"""The fields of -o."""

_BY_LETTER: Final = {
    "allocnodes": "S",
    "available": "a",
    "cores": "Y",
    "cpus": "c",
    "cpusload": "O",
    "cpusstate": "C",
    "defaulttime": "L",
    "disk": "d",
    "features": "f",
    "features_act": "b",
    "freemem": "e",
    "gres": "G",
    "groups": "g",
    "maxcpuspernode": "B",
    "memory": "m",
    "nodeaddr": "o",
    "nodeai": "A",
    "nodeaiot": "F",
    "nodehost": "n",
    "nodelist": "N",
    "nodes": "D",
    "oversubscribe": "h",
    "partition": "P",
    "partitionname": "R",
    "preemptmode": "M",
    "priorityjobfactor": "I",
    "prioritytier": "p",
    "reason": "E",
    "root": "r",
    "share": "h",
    "size": "s",
    "socketcorethread": "z",
    "sockets": "X",
    "statecompact": "t",
    "statelong": "T",
    "threads": "Z",
    "time": "l",
    "timestamp": "H",
    "user": "u",
    "userlong": "U",
    "version": "v",
    "weight": "w",
}

NAMES: Final[dict[str, InfoColumn]] = {
    **{name: LETTERS[letter] for name, letter in _BY_LETTER.items()},
    "allocmem": _of_node("ALLOCMEM", lambda n: str(n.memory_allocated_mb), "0", "alloc_mem"),
    "cluster": InfoColumn("CLUSTER", lambda row: row.cluster),
    "comment": _fixed("COMMENT", "(null)"),
    "extra": _fixed("EXTRA", "(null)"),
    "gresused": InfoColumn("GRES_USED", _gres_used, facet="gres_used"),
    "port": _fixed("PORT", "6818"),
    "statecomplete": _of_node(
        "STATECOMPLETE", lambda node: complete_state_text(node).lower(), "n/a", "state"
    ),
}
"""The fields of -O, in small letters."""
