"""What sinfo can show of nodes and partitions: the letters of -o and the names of -O."""

from collections.abc import Callable
from typing import Any, Final

import attrs

from simctl.commands.asking.showing import VERSION
from simctl.commands.columns.formats import Column, by_letter, by_name, fixed, run_time
from simctl.commands.columns.node_states import (
    complete_state_text,
    short_state_text,
    state_number,
    state_text,
)
from simctl.commands.sinfo.rows import NodeRow
from simctl.wire.hostlist import compress, sort_key_of, sort_unique
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


def _of_part(
    title: str,
    read: Callable[[PartInfo], str],
    facet: str,
    sort: Callable[[PartInfo], Any],
) -> InfoColumn:
    """Return a column for something of a partition."""
    return InfoColumn(
        title,
        lambda row: read(row.part),
        facet=facet,
        sort=lambda row: sort(row.part),
    )


def _of_node(
    title: str,
    read: Callable[[NodeInfo], str],
    none: str,
    facet: str,
    sort: Callable[[NodeRow], Any] | None = None,
) -> InfoColumn:
    """Return a column for what all nodes of a row have in common."""

    def text(row: NodeRow) -> str:
        return read(row.nodes[0]) if row.nodes else none

    return InfoColumn(title, text, facet=facet, sort=sort)


def _node_key(read: Callable[[NodeInfo], Any], none: Any) -> Callable[[NodeRow], Any]:
    """Sort by what a row's nodes have in common."""
    return lambda row: read(row.nodes[0]) if row.nodes else none


def _size(title: str, read: Callable[[NodeInfo], int], facet: str) -> InfoColumn:
    """Return a column for a size: the least of a row, with a plus if others have more."""

    def text(row: NodeRow) -> str:
        return _least([read(node) for node in row.nodes])

    return InfoColumn(title, text, facet=facet, sort=_least_key(read))


def _least_key(read: Callable[[NodeInfo], int]) -> Callable[[NodeRow], int]:
    return lambda row: min((read(node) for node in row.nodes), default=0)


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


def _partition(row: NodeRow) -> str:
    return row.part.name


def _numbers(counts: tuple[int, ...]) -> str:
    return "/".join(map(str, counts))


def _user(node: NodeInfo) -> str:
    return node.reason_user if node.reason else "Unknown"


def _user_with_id(node: NodeInfo) -> str:
    if not node.reason or node.reason_uid == NO_VAL:
        return "Unknown"
    return f"{node.reason_user}({node.reason_uid})"


def _told_at(row: NodeRow) -> str:
    """Return when the reason was given."""
    return row.clock.moment(row.nodes[0].reason_s, none="Unknown") if row.nodes else "n/a"


def _first_node(row: NodeRow) -> Any:
    return (1, min(sort_key_of(node.name) for node in row.nodes)) if row.nodes else (0,)


_BY_STATE: Final = _node_key(state_number, 0)
_BY_USER: Final = _node_key(lambda node: node.reason_user, "")

COLUMNS: Final[tuple[Column[NodeRow], ...]] = (
    _of_part(
        "a available AVAIL",
        lambda part: _AVAILABLE[part.state],
        "avail",
        lambda part: part.state.value,
    ),
    InfoColumn(
        "A nodeai NODES(A/I)", lambda row: _numbers(row.counts[:2]), sort=lambda row: row.counts[0]
    ),
    _of_node("b features_act ACTIVE_FEATURES", _features, "(null)", "features"),
    fixed("B maxcpuspernode MAX_CPUS_PER_NODE", "UNLIMITED"),
    _size("c cpus CPUS", lambda node: node.cpus, "cpus"),
    InfoColumn(
        "C cpusstate CPUS(A/I/O/T)",
        lambda row: _numbers(row.cpu_counts),
        sort=lambda row: row.cpu_counts[0],
    ),
    fixed("d disk TMP_DISK", "0"),
    InfoColumn("D nodes NODES", lambda row: str(len(row.nodes)), sort=lambda row: len(row.nodes)),
    fixed("e freemem FREE_MEM", "N/A"),
    _of_node(
        "E reason REASON",
        lambda node: node.reason or "none",
        "none",
        "reason",
        _node_key(lambda node: node.reason, ""),
    ),
    _of_node(
        "f features AVAIL_FEATURES",
        _features,
        "(null)",
        "features",
        _node_key(lambda node: node.features, ()),
    ),
    InfoColumn(
        "F nodeaiot NODES(A/I/O/T)",
        lambda row: _numbers(row.counts),
        sort=lambda row: row.counts[0],
    ),
    fixed("g groups GROUPS", "all"),
    _of_node(
        "G gres GRES",
        _gres,
        "(null)",
        "gres",
        _node_key(lambda node: sorted(node.gres.items()), []),
    ),
    _of_part(
        "h oversubscribe,share OVERSUBSCRIBE",
        lambda part: "EXCLUSIVE" if part.exclusive else "NO",
        "oversubscribe",
        lambda part: part.exclusive,
    ),
    InfoColumn(
        "H timestamp TIMESTAMP",
        _told_at,
        facet="reason_time",
        sort=_node_key(lambda node: node.reason_s, 0),
    ),
    fixed("I priorityjobfactor PRIO_JOB_FACTOR", "1"),
    _of_part(
        "l time TIMELIMIT",
        lambda part: _minutes(part.max_time_min),
        "max_time",
        lambda part: part.max_time_min,
    ),
    _of_part(
        "L defaulttime DEFAULTTIME",
        _default_time,
        "default_time",
        lambda part: part.default_time_min,
    ),
    _size("m memory MEMORY", lambda node: node.memory_mb, "memory"),
    _of_part(
        "M preemptmode PREEMPT_MODE",
        lambda part: part.preempt_mode.upper() or "OFF",
        "preempt_mode",
        lambda part: part.preempt_mode,
    ),
    InfoColumn("n nodehost HOSTNAMES", _names, cut=False, facet="name", sort=_first_node),
    InfoColumn("N nodelist NODELIST", _names, cut=False, sort=_first_node),
    InfoColumn("o nodeaddr NODE_ADDR", _names, cut=False, facet="name", sort=_first_node),
    fixed("O cpusload CPU_LOAD", "N/A"),
    _of_part(
        "p prioritytier PRIO_TIER",
        lambda part: str(part.tier),
        "priority_tier",
        lambda part: part.tier,
    ),
    PartitionColumn("P partition PARTITION", _partition, facet="partition", sort=_partition),
    _of_part(
        "r root ROOT",
        lambda part: "yes" if part.root_only else "no",
        "root",
        lambda part: part.root_only,
    ),
    InfoColumn("R partitionname PARTITION", _partition, facet="partition", sort=_partition),
    _of_part(
        "s size JOB_SIZE", _job_size, "job_size", lambda part: (part.max_nodes, part.min_nodes)
    ),
    fixed("S allocnodes ALLOCNODES", "all"),
    _of_node(
        "t statecompact STATE",
        lambda node: short_state_text(node).lower(),
        "n/a",
        "state",
        _BY_STATE,
    ),
    _of_node("T statelong STATE", lambda node: state_text(node).lower(), "n/a", "state", _BY_STATE),
    _of_node("u user USER", _user, "Unknown", "reason_user", _BY_USER),
    _of_node("U userlong USER", _user_with_id, "Unknown", "reason_user", _BY_USER),
    fixed("v version VERSION", VERSION),
    fixed("V - CLUSTER", "N/A"),
    fixed("w weight WEIGHT", "1"),
    fixed("X sockets SOCKETS", "1"),
    _size("Y cores CORES", lambda node: node.cpus, "cpus"),
    InfoColumn(
        "z socketcorethread S:C:T", _sockets, facet="cpus", sort=_least_key(lambda node: node.cpus)
    ),
    fixed("Z threads THREADS", "1"),
    _of_node("- allocmem ALLOCMEM", lambda n: str(n.memory_allocated_mb), "0", "alloc_mem"),
    InfoColumn("- cluster CLUSTER", lambda row: row.cluster),
    fixed("- comment COMMENT", "(null)"),
    fixed("- extra EXTRA", "(null)"),
    InfoColumn("- gresused GRES_USED", _gres_used, facet="gres_used"),
    fixed("- port PORT", "6818"),
    _of_node(
        "- statecomplete STATECOMPLETE",
        lambda node: complete_state_text(node).lower(),
        "n/a",
        "state",
    ),
)
"""What sinfo can show. By letters without a key rows are alike in Slurm too."""

LETTERS: Final = by_letter(COLUMNS)
NAMES: Final = by_name(COLUMNS)
