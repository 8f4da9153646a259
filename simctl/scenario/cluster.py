"""Read the cluster: its clocks, slurm.conf and nodes."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from simctl.limits import HOSTS
from simctl.scenario.model import NodeSpec
from simctl.scenario.names import check_node_name
from simctl.scenario.positions import Reading, Value, pairs
from simctl.scenario.programs import PLUGINS
from simctl.scenario.scalars import choice, text, whole
from simctl.scenario.shapes import Built, Field, Items, Record, Scalar, Values, check_mapping
from simctl.scenario.site.merge import merge_nodes, override
from simctl.scenario.site.site import conf_of
from simctl.wire.conf.slurm_conf import SlurmConf
from simctl.wire.features import feature_names
from simctl.wire.hostlist import expand
from simctl.wire.resources import parse_gres

NOT_BUILT: Final = "known to Slurm but not simulated yet; leave it out"

_NODE_KEYS: Final = (
    "boards core_spec_count cores_per_socket cpu_bind cpu_spec_list "
    "mem_spec_limit node_addr node_hostname port sockets "
    "sockets_per_board threads_per_core tmp_disk tres_weights weight"
)
_SPELT: Final = {
    "feature": "write `features`",
    "procs": "write `cpus`",
    "real_memory": "write `memory_mb`",
}


def not_built(keys: str) -> dict[str, str]:
    """Return what a record says of keys that Slurm knows and that are not simulated."""
    return dict.fromkeys(keys.split(), NOT_BUILT)


def _read_start_time(value: Value, reading: Reading) -> datetime:
    try:
        moment = datetime.fromisoformat(value.scalar)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError from error
    if moment.microsecond or moment.timestamp() < 0:
        raise ValueError(f"expected whole seconds, in 1970 or later, got {value.shown()}")
    return moment


START_TIME: Final = Scalar(
    expected="a moment such as 2026-01-01T00:00:00Z",
    convert=_read_start_time,
    json={"type": "string", "format": "date-time"},
)


def default_start_time() -> datetime:
    """Return the moment at which a scenario starts that does not say when."""
    return datetime(2026, 1, 1, tzinfo=UTC)


class SlurmConfShape:
    """slurm.conf keys and their values; wire.conf knows them and what they may be."""

    def read(self, value: Value, reading: Reading) -> SlurmConf:
        """Return the configuration, with each key's mistakes at the key's value."""
        if value.nothing:
            return conf_of({}, {}, reading)
        check_mapping(value, reading, "slurm.conf keys")
        children = {key: child for _, key, child in pairs(value, reading)}
        settings: dict[str, object] = {}
        for key, child in children.items():
            if isinstance(child.node, yaml.ScalarNode):
                settings[key] = child.scalar
            elif key.casefold() == _LISTED and all(
                isinstance(each.node, yaml.ScalarNode) for each in child.items()
            ):
                settings[key] = [each.scalar for each in child.items()]
            else:
                reading.mistake(child, f"expected one word, number or text, got {child.shown()}")
        return conf_of(children, settings, reading)

    def schema(self) -> dict[str, Any]:
        """Return an object with scalar values; the controllers may be a list."""
        scalar = {"type": ["string", "number", "boolean"]}
        hosts = {"anyOf": [scalar, {"type": "array", "items": {"type": "string"}}]}
        return {
            "type": "object",
            "properties": {"SlurmctldHost": hosts},
            "additionalProperties": scalar,
        }


_LISTED: Final = "slurmctldhost"
"""The key that stands in slurm.conf several times, and here once, with a list."""


def host_names(value: Value) -> tuple[str, ...]:
    """Expand a host list; ValueError (which HostlistError is) if it cannot be, or names nothing."""
    names = expand(value.scalar)
    if not names:
        raise ValueError
    return names


def _read_node_names(value: Value, reading: Reading) -> tuple[str, ...]:
    """Expand the name of nodes and take each down, so that what follows can refer to it."""
    try:
        names = host_names(value)
        for name in names:
            check_node_name(name)
    except ValueError:
        reading.unsure.append("nodes")
        raise
    if len(reading.nodes) + sum(name not in reading.nodes for name in names) > HOSTS:
        reading.unsure.append("nodes")
        raise ValueError(f"more than {HOSTS} nodes, the most a cluster may have")
    site = reading.site.nodes if reading.site is not None else {}
    said = reading.overridden.get("nodes", ())
    taken = [
        name
        for name, count in Counter(names).items()
        if count > 1 or (name in reading.nodes and (name not in site or (name, "name") in said))
    ]
    for name in names:
        reading.nodes.setdefault(name, len(reading.nodes))
    if taken:
        raise ValueError(f"node {taken[0]!r} is there already")
    return names


def _build_nodes(values: Values, _: Value, reading: Reading) -> tuple[NodeSpec, ...]:
    override(reading, "nodes", values["name"], values.places)
    return tuple(
        NodeSpec(
            name=name,
            cpus=values["cpus"],
            memory_mb=values["memory_mb"],
            gres=values["gres"],
            state=values["state"],
            reason=values["reason"],
            features=values["features"],
            plugins=values["plugins"],
        )
        for name in values["name"]
    )


def _read_features(value: Value, _: Reading) -> tuple[str, ...]:
    return feature_names(value.scalar)


def _flatten(
    groups: tuple[tuple[NodeSpec, ...], ...], _: Value, reading: Reading
) -> tuple[NodeSpec, ...]:
    return merge_nodes((one for group in groups for one in group), reading)


NODES: Final = Built(
    shape=Items(
        expected="a list of nodes",
        least=1,
        item=Record(
            what="a node",
            fields=(
                Field(
                    name="name",
                    shape=Scalar(
                        expected="a host list such as n[1-2]",
                        convert=_read_node_names,
                        json={"type": "string", "minLength": 1},
                    ),
                    required=True,
                    doc="Name of the node, or a host list for several alike.",
                ),
                Field(
                    name="cpus",
                    shape=whole("a whole number above 0", least=1, most=0xFFFD),
                    default=1,
                    shown=1,
                    doc="Processors of each.",
                ),
                Field(
                    name="memory_mb",
                    shape=whole("a whole number of megabytes above 0", least=1),
                    default=1,
                    shown=1,
                    doc="Memory of each in megabytes.",
                ),
                Field(
                    name="gres",
                    shape=Scalar(
                        expected="generic resources such as gpu:2 or gpu:tesla:2,fast:1",
                        convert=lambda value, _: parse_gres(value.scalar),
                        json={"type": "string"},
                    ),
                    default={},
                    doc="Generic resources of each, as NAME[:TYPE]:COUNT.",
                ),
                Field(
                    name="state",
                    shape=choice("UNKNOWN", "DOWN", "DRAIN"),
                    default="UNKNOWN",
                    shown="UNKNOWN",
                    doc="What it begins in; UNKNOWN until its daemon registers.",
                ),
                Field(
                    name="reason",
                    shape=text("a text"),
                    default="",
                    doc="Why it begins DOWN or DRAIN.",
                ),
                Field(
                    name="features",
                    shape=Scalar(
                        expected="names of features such as fast,big",
                        convert=_read_features,
                        json={"type": "string"},
                    ),
                    default=(),
                    shown="",
                    doc="Features of each, for --constraint, apart by commas.",
                ),
                Field(
                    name="plugins",
                    shape=PLUGINS,
                    default=(),
                    doc="Plugin classes that stand for those of their type there: other versions.",
                ),
            ),
            build=_build_nodes,
            not_built={**not_built(_NODE_KEYS), **_SPELT},
        ),
    ),
    build=_flatten,
)
