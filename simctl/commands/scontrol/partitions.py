"""scontrol's changes of partitions: updated, created, deleted."""

from typing import Any, Final

from simctl.commands.arguments.options import UsageError
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.pairs import (
    BadValueError,
    Key,
    begins,
    find_key,
    not_negative,
    read_value,
    refuse_key,
    split_pairs,
    yes_or_no,
)
from simctl.wire.conf.readers import read_preempt_mode
from simctl.wire.errno import slurm_strerror
from simctl.wire.ids import INFINITE
from simctl.wire.messages import (
    RequestCreatePartition,
    RequestDeletePartition,
    RequestUpdatePartition,
)
from simctl.wire.time_limits import parse_time_limit_min


def _count(text: str) -> int:
    return INFINITE if text.upper() in ("UNLIMITED", "INFINITE") else not_negative(text)


_STATES: Final = {"INACTIVE": 1, "DOWN": 2, "UP": 1, "DRAIN": 2}


def _state(text: str) -> str:
    for name, least in _STATES.items():
        if begins(text.upper(), name, least):
            return name
    raise BadValueError('Acceptable State values are "UP", "DOWN", "DRAIN", and "INACTIVE"')


def _exclusive(text: str) -> bool:
    for name, holds in (("EXCLUSIVE", True), ("NO", False)):
        if begins(text.upper(), name, 1):
            return holds
    if begins(text.upper().partition(":")[0], "YES", 1) or begins(text.upper()[:5], "FORCE", 1):
        raise BadValueError("scontrol: error: that jobs share cpus is not simulated")
    raise BadValueError('Acceptable OverSubscribe values are "NO" and "EXCLUSIVE"')


def _preempt_mode(text: str) -> str:
    try:
        return read_preempt_mode(text)
    except ValueError as error:
        raise BadValueError(f"scontrol: error: {error}") from None


def _accounts(text: str) -> tuple[str, ...]:
    return () if text.upper() == "ALL" else tuple(filter(None, text.split(",")))


PARTITION_KEYS: Final = {
    "maxtime": Key(4, "max_time_min", parse_time_limit_min),
    "defaulttime": Key(8, "default_time_min", parse_time_limit_min),
    "maxnodes": Key(4, "max_nodes", _count),
    "minnodes": Key(2, "min_nodes", _count),
    "default": Key(7, "default", yes_or_no),
    "rootonly": Key(3, "root_only", yes_or_no),
    "shared": Key(2, "exclusive", _exclusive),
    "oversubscribe": Key(5, "exclusive", _exclusive),
    "preemptmode": Key(3, "preempt_mode", _preempt_mode),
    "prioritytier": Key(9, "priority_tier", not_negative),
    "state": Key(2, "state", _state),
    "gracetime": Key(5, "grace_time_s", not_negative),
    "allowaccounts": Key(6, "allow_accounts", _accounts),
    "denyaccounts": Key(5, "deny_accounts", _accounts),
    "defmempercpu": Key(10, "def_mem_per_cpu_mb", not_negative),
    "defmempernode": Key(10, "def_mem_per_node_mb", not_negative),
    "nodes": Key(1, "nodes"),
}
"""Keys of a change of a partition."""

_UNBUILT: Final = frozenset(
    """
    allocnodes allowgroups allowqos alternate cpubind denyqos disablerootjobs exclusiveuser hidden
    jobdefaults lln maxcpuspernode maxmempercpu maxmempernode overtimelimit powerdownonidle
    priority priorityjobfactor qos reqresv resumetimeout selecttypeparameters suspendtime
    suspendtimeout tresbillingweights
    """.split()
)


def read_partition(words: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """Return the partition that words name, and the fields to be set.

    Raises:
        UsageError: A word is none, or its key or value is not known or not built.
    """
    name, fields = "", {}
    for pair in split_pairs(words):
        if begins(pair.key, "partitionname", 3):
            name = pair.value
            continue
        key = find_key(PARTITION_KEYS, pair.key)
        if key is None:
            raise refuse_key("partitionname", pair, _UNBUILT)
        fields[key.field] = read_value(key, pair)
    return name, fields


async def update_partition(order: Order) -> int:
    """Change a partition."""
    name, fields = read_partition(order.words)
    if not fields:
        raise UsageError(1, "No changes specified")
    rc = await order.ask(RequestUpdatePartition(name=name, **fields))
    if rc:
        order.complain(f"slurm_update error: {slurm_strerror(rc)}")
    return 1 if rc else 0


async def create_partition(order: Order, words: tuple[str, ...]) -> int:
    """Create a partition."""
    name, fields = read_partition(words)
    if not name:
        raise UsageError(1, "PartitionName must be given.")
    rc = await order.ask(RequestCreatePartition(name=name, **fields))
    if rc:
        order.complain(f"Error creating the partition: {slurm_strerror(rc)}")
    return 1 if rc else 0


async def delete_partition(order: Order, name: str) -> int:
    """Delete a partition that no job asks for."""
    rc = await order.ask(RequestDeletePartition(name=name))
    if rc:
        order.complain(f"delete_partition {order.words[0]}: {slurm_strerror(rc)}")
    return 1 if rc else 0
