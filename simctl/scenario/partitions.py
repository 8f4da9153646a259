"""Read the partitions of the cluster."""

import re
from typing import Final

import attrs

from simctl.kernel.pattern import near
from simctl.scenario.cluster import host_names, not_built
from simctl.scenario.durations import UNITS_US, parse_duration_us
from simctl.scenario.model import PartitionSpec
from simctl.scenario.positions import Reading, Value, pairs
from simctl.scenario.scalars import BOOLEAN, whole
from simctl.scenario.shapes import Built, Field, Items, Record, Scalar, Values
from simctl.wire.ids import INFINITE

_PARTITION_KEYS: Final = (
    "alloc_nodes allow_accounts allow_groups allow_qos alternate cpu_bind def_cpu_per_gpu "
    "def_mem_per_cpu def_mem_per_node deny_accounts deny_qos disable_root_jobs exclusive_user "
    "grace_time hidden lln max_cpus_per_node max_mem_per_cpu max_mem_per_node over_subscribe "
    "over_time_limit preempt_mode priority priority_job_factor priority_tier qos req_resv "
    "resume_timeout root_only select_type_parameters shared state suspend_time suspend_timeout "
    "tres_billing_weights"
)
_PARTITION_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")


def _read_limit(value: Value, reading: Reading) -> int:
    """Read a partition's time limit, rounded up to the minutes in which Slurm keeps it."""
    if value.scalar.upper() in {"UNLIMITED", "INFINITE"}:
        return INFINITE
    us = parse_duration_us(value.scalar)
    minutes = -(-us // UNITS_US["m"])
    if not 0 < minutes < INFINITE:
        raise ValueError(f"expected a time limit above 0, or UNLIMITED, got {value.shown()}")
    if value.scalar.isdigit():
        written = f"{value.scalar}s or {value.scalar}m"
        reading.warn(value, f"a bare number is seconds here, not slurm.conf's minutes: {written}")
    return minutes


_LIMIT: Final = Scalar(
    expected="a time limit such as 1:00:00, or UNLIMITED",
    convert=_read_limit,
    json={"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]},
)


def _build_partition(values: Values, _: Value, __: Reading) -> PartitionSpec:
    return PartitionSpec(
        name=values["name"],
        nodes=values["nodes"],
        default=values["default"] is True,
        max_time_min=values["max_time"],
        default_time_min=values["default_time"] or values["max_time"],
        max_nodes=values["max_nodes"],
        min_nodes=values["min_nodes"],
    )


def _check_partition(values: Values, reading: Reading) -> None:
    name = values["name"]
    if name is not None and name in reading.partitions:
        reading.mistake(values.place("name"), f"partition {name!r} is there already")
    earlier = [other for other, default in reading.partitions.items() if default]
    if values["default"] and earlier:
        message = f"{earlier[0]!r} is the default already; only one partition can be"
        reading.mistake(values.place("default"), message)
    elif name is not None:
        reading.partitions[name] = bool(values["default"])
    if values["default_time"] and values["default_time"] > values["max_time"]:
        reading.mistake(values.place("default_time"), "default_time is above max_time")
    if values["min_nodes"] > values["max_nodes"]:
        reading.mistake(values.place("min_nodes"), "min_nodes is above max_nodes")


def _read_partition_name(value: Value, _: Reading) -> str:
    if _PARTITION_NAME.fullmatch(value.scalar) is None or value.scalar.upper() == "DEFAULT":
        raise ValueError(f"{value.shown()} cannot be the name of a partition")
    return value.scalar


def _read_partition_nodes(value: Value, reading: Reading) -> tuple[str, ...]:
    """Expand the nodes of a partition, in the order of the nodes."""
    if value.scalar.upper() == "ALL":
        return tuple(reading.nodes)
    names = dict.fromkeys(host_names(value))
    unknown = [name for name in names if name not in reading.nodes]
    if unknown and "nodes" not in reading.unsure:
        more = f" (and {len(unknown) - 1} more)" if unknown[1:] else ""
        hint = near(unknown[0], list(reading.nodes))
        raise ValueError(f"no node {unknown[0]!r}{more} in `nodes:`{hint}")
    known = [name for name in names if name in reading.nodes]
    return tuple(sorted(known, key=reading.nodes.__getitem__))


def _build_partitions(
    partitions: tuple[PartitionSpec, ...], value: Value, reading: Reading
) -> tuple[PartitionSpec, ...]:
    """Make a partition that stands alone the default, unless it says it is not."""
    if len(partitions) != 1 or "default" in {key for _, key, _ in pairs(value.items()[0], reading)}:
        return partitions
    return (attrs.evolve(partitions[0], default=True),)


_NODE_COUNT: Final = whole("a whole number of nodes", least=0, most=INFINITE - 2)
PARTITIONS: Final = Built(
    shape=Items(
        expected="a list of partitions",
        least=1,
        item=Record(
            what="a partition",
            fields=(
                Field(
                    name="name",
                    shape=Scalar(
                        expected="a name", convert=_read_partition_name, json={"type": "string"}
                    ),
                    required=True,
                    doc="Its name.",
                ),
                Field(
                    name="nodes",
                    shape=Scalar(
                        expected="a host list such as n[1-2], or ALL",
                        convert=_read_partition_nodes,
                        json={"type": "string", "minLength": 1},
                    ),
                    required=True,
                    doc="Its nodes, as a host list, or ALL.",
                ),
                Field(
                    name="default",
                    shape=BOOLEAN,
                    doc="Whether jobs that name no partition go here; true for a partition alone.",
                ),
                Field(
                    name="max_time",
                    shape=_LIMIT,
                    default=INFINITE,
                    shown="UNLIMITED",
                    doc="Longest time limit of a job, rounded up to minutes.",
                ),
                Field(
                    name="default_time",
                    shape=_LIMIT,
                    doc="Time limit of a job that asks for none; max_time if left out.",
                ),
                Field(
                    name="max_nodes",
                    shape=_NODE_COUNT,
                    default=INFINITE,
                    doc="Most nodes of a job; no limit if left out.",
                ),
                Field(
                    name="min_nodes",
                    shape=_NODE_COUNT,
                    default=1,
                    shown=1,
                    doc="Fewest nodes of a job.",
                ),
            ),
            build=_build_partition,
            check=_check_partition,
            not_built=not_built(_PARTITION_KEYS),
        ),
    ),
    build=_build_partitions,
)
