"""Read the partitions of the cluster."""

from typing import Final

import attrs

from simctl.kernel.pattern import near
from simctl.scenario.cluster import NOT_BUILT, host_names, not_built
from simctl.scenario.durations import UNITS_US, parse_duration_us
from simctl.scenario.model import PartitionSpec
from simctl.scenario.names import check_partition_name
from simctl.scenario.positions import Reading, Value, pairs
from simctl.scenario.scalars import BOOLEAN, DURATION, text, whole
from simctl.scenario.shapes import Built, Field, Items, Record, Scalar, Values
from simctl.scenario.site.merge import merge_partitions, override
from simctl.wire.conf.readers import PREEMPT_MODES, read_preempt_mode
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.states import PartState

_PARTITION_KEYS: Final = (
    "alloc_nodes allow_groups allow_qos alternate cpu_bind def_cpu_per_gpu "
    "deny_qos disable_root_jobs exclusive_user "
    "hidden lln max_cpus_per_node max_mem_per_cpu max_mem_per_node "
    "over_time_limit priority priority_job_factor qos req_resv "
    "resume_timeout select_type_parameters shared suspend_time suspend_timeout "
    "tres_billing_weights"
)


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
        nodes=values["nodes"] or (),
        default=values["default"] is True,
        max_time_min=values["max_time"],
        default_time_min=values["default_time"] or values["max_time"],
        max_nodes=values["max_nodes"],
        min_nodes=values["min_nodes"],
        state=values["state"],
        priority_tier=values["priority_tier"],
        exclusive=values["over_subscribe"] == "EXCLUSIVE",
        preempt_mode=values["preempt_mode"],
        grace_time_s=values["grace_time"] // SECOND,
        root_only=values["root_only"],
        allow_accounts=values["allow_accounts"],
        deny_accounts=values["deny_accounts"],
        def_mem_per_cpu_mb=values["def_mem_per_cpu"],
        def_mem_per_node_mb=values["def_mem_per_node"],
    )


def _check_partition(values: Values, reading: Reading) -> None:
    name = values["name"]
    site = reading.site.partitions if reading.site is not None else {}
    said = {other for other, _ in reading.overridden.get("partitions", ())}
    if name in reading.partitions and (name not in site or name in said):
        reading.mistake(values.place("name"), f"partition {name!r} is there already")
    if "nodes" not in values.places and name not in site:
        reading.mistake(values.whole, "missing key `nodes`: Its nodes, as a host list, or ALL.")
    if name is not None:
        override(reading, "partitions", (name,), values.places)
    earlier = [
        other
        for other, default in reading.partitions.items()
        if default and (other not in site or (other, "default") in reading.overridden["partitions"])
    ]
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
    check_partition_name(value.scalar)
    return value.scalar


def _read_partition_nodes(value: Value, reading: Reading) -> tuple[str, ...]:
    """Expand the nodes of a partition, in the order of the nodes."""
    if value.scalar.upper() == "ALL":
        return reading.members(tuple(reading.nodes))
    names = dict.fromkeys(host_names(value))
    unknown = [name for name in names if name not in reading.nodes]
    if unknown and "nodes" not in reading.unsure:
        more = f" (and {len(unknown) - 1} more)" if unknown[1:] else ""
        hint = near(unknown[0], list(reading.nodes))
        raise ValueError(f"no node {unknown[0]!r}{more} in `nodes:`{hint}")
    known = [name for name in names if name in reading.nodes]
    return reading.members(tuple(sorted(known, key=reading.nodes.__getitem__)))


def _build_partitions(
    partitions: tuple[PartitionSpec, ...], value: Value, reading: Reading
) -> tuple[PartitionSpec, ...]:
    """Make a partition that stands alone the default, unless it says it is not."""
    if reading.site is not None:
        return merge_partitions(partitions, reading)
    if len(partitions) != 1 or "default" in {key for _, key, _ in pairs(value.items()[0], reading)}:
        return partitions
    return (attrs.evolve(partitions[0], default=True),)


def _word(*words: str, unbuilt: tuple[str, ...] = ()) -> Scalar[str]:
    """Return the shape of one of some words, whatever its case."""

    def convert(value: Value, _: Reading) -> str:
        word = value.scalar.upper()
        if word in words:
            return word
        if word.partition(":")[0] in unbuilt:
            raise ValueError(f"{word} is {NOT_BUILT}")
        raise ValueError

    return Scalar(expected=" or ".join(words), convert=convert, json={"enum": list(words)})


def _read_preempt_mode(value: Value, _: Reading) -> str:
    return read_preempt_mode(value.scalar)


_ACCOUNTS: Final = Items(item=text("the name of an account"), single=True, expected="accounts")
_MEGABYTES: Final = whole("a whole number of megabytes", least=0)
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
                Field(
                    name="state",
                    shape=_word(*PartState.__members__),
                    default="UP",
                    shown="UP",
                    doc="UP; DOWN starts no job, DRAIN takes none in, INACTIVE does neither.",
                ),
                Field(
                    name="priority_tier",
                    shape=whole("a whole number", least=0, most=0xFFFE),
                    default=1,
                    shown=1,
                    doc="Jobs of a higher tier come first, and may preempt those of lower ones.",
                ),
                Field(
                    name="over_subscribe",
                    shape=_word("NO", "EXCLUSIVE", unbuilt=("YES", "FORCE")),
                    default="NO",
                    shown="NO",
                    doc="EXCLUSIVE gives each job its nodes for itself.",
                ),
                Field(
                    name="preempt_mode",
                    shape=Scalar(
                        expected=" or ".join(PREEMPT_MODES),
                        convert=_read_preempt_mode,
                        json={"enum": list(PREEMPT_MODES)},
                    ),
                    default="",
                    doc="What becomes of its preempted jobs; PreemptMode if left out.",
                ),
                Field(
                    name="grace_time",
                    shape=DURATION,
                    default=0,
                    doc="How long a preempted job may still run after it was warned.",
                ),
                Field(
                    name="root_only",
                    shape=BOOLEAN,
                    default=False,
                    doc="Whether root alone may submit to it.",
                ),
                Field(
                    name="allow_accounts",
                    shape=_ACCOUNTS,
                    default=(),
                    doc="Accounts whose jobs it takes; all if left out.",
                ),
                Field(
                    name="deny_accounts",
                    shape=_ACCOUNTS,
                    default=(),
                    doc="Accounts whose jobs it refuses.",
                ),
                Field(
                    name="def_mem_per_cpu",
                    shape=_MEGABYTES,
                    default=0,
                    doc="Megabytes for each cpu of a job that asks for no memory.",
                ),
                Field(
                    name="def_mem_per_node",
                    shape=_MEGABYTES,
                    default=0,
                    doc="Megabytes on each node of a job that asks for no memory.",
                ),
            ),
            build=_build_partition,
            check=_check_partition,
            not_built=not_built(_PARTITION_KEYS),
        ),
    ),
    build=_build_partitions,
)
