"""A site's own slurm.conf beside a scenario, which overrides it and completes it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from simctl.kernel.pattern import near
from simctl.scenario.model import NodeSpec, PartitionSpec
from simctl.scenario.names import check_node_name, check_partition_name
from simctl.scenario.positions import Mistake, Reading, Value
from simctl.scenario.shapes import Values
from simctl.wire.conf import (
    KeyKind,
    SlurmConf,
    acting_words,
    holds_instead,
    key_kind,
    read_conf,
    slurm_name,
)
from simctl.wire.conf_lines import Place, Setting, SiteMistake
from simctl.wire.conf_names import renamed
from simctl.wire.site import Site, read_site
from simctl.wire.site_cluster import SiteNode, SitePartition

_TAG: Final = "tag:yaml.org,2002:str"


def read_text(path: str) -> str:
    """Return the text of a file.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not UTF-8, or its name is none.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(f"line {line} is not UTF-8; save the file as UTF-8") from error


class SiteShape:
    """The path of a slurm.conf, from the folder of the scenario on; reading it reads that file."""

    def read(self, value: Value, reading: Reading) -> str:
        """Read the file into the reading, with all its mistakes."""
        if not isinstance(value.node, yaml.ScalarNode) or not value.scalar:
            raise reading.refuse(value, f"expected the path of a slurm.conf, got {value.shown()}")
        path = str(Path(reading.folder) / value.scalar)
        try:
            text = read_text(path)
        except OSError as error:
            raise reading.refuse(value, f"cannot read {path}: {error.strerror or error}") from error
        except ValueError as error:
            raise reading.refuse(value, f"cannot read {path}: {error}") from error
        site = read_site(text, path, read_text)
        reading.site = site
        for name, node in site.nodes.items():
            if node.state != "FUTURE":
                reading.nodes.setdefault(name, len(reading.nodes))
        _check_names(site)
        reading.partitions |= {name: part.default for name, part in site.partitions.items()}
        return value.scalar

    def schema(self) -> dict[str, Any]:
        """Return a text."""
        return {"type": "string", "minLength": 1}


def _check_names(site: Site) -> None:
    """Note names that Slurm takes, it may be, and that cannot be had here."""
    for name, node in site.nodes.items():
        try:
            check_node_name(name)
        except ValueError as error:
            site.mistakes.append(SiteMistake(node.place, "NodeName", str(error)))
    for name, part in site.partitions.items():
        try:
            check_partition_name(name)
        except ValueError as error:
            site.mistakes.append(SiteMistake(part.place, "PartitionName", str(error)))


def placed(setting: Setting) -> Value:
    """Return a setting of the file as a value of the scenario that stands there."""
    mark = _mark(setting.place)
    node = yaml.ScalarNode(_TAG, setting.value, start_mark=mark, end_mark=mark, style='"')
    return Value(node=node, path=setting.key, file=setting.place.file)


def _mark(place: Place) -> Any:
    return yaml.Mark(place.file, 0, place.line - 1, place.column - 1, None, 0)


# slurm.conf


def site_settings(
    given: Iterable[str], reading: Reading
) -> tuple[dict[str, Value], dict[str, str]]:
    """Return the places and the values of what acts in the file and the scenario does not give."""
    site = reading.site
    places: dict[str, Value] = {}
    values: dict[str, str] = {}
    own = {key.casefold() for key in given}
    for folded, setting in site.settings.items() if site is not None else ():
        if folded in own:
            continue
        name = slurm_name(setting.key)
        kind = key_kind(setting.key, setting.value)
        if kind is KeyKind.NO_EFFECT:
            holds = holds_instead(setting.key)
            note = f"{setting.value}, where {holds} holds" if holds else renamed(name)
            _ignore(site, name, note)
        elif kind is KeyKind.ACTS:
            value, without = acting_words(setting.key, setting.value)
            for word in without:
                _ignore(site, f"{name}={word}", "")
            places[setting.key] = placed(setting)
            values[setting.key] = value
    return places, values


def _ignore(site: Site | None, name: str, note: str) -> None:
    if site is not None:
        site.ignored.add(name, note)


def conf_of(children: dict[str, Value], given: dict[str, object], reading: Reading) -> SlurmConf:
    """Return the configuration of the scenario's keys and the file's; note their mistakes."""
    places, values = site_settings(children, reading)
    if reading.lenient:
        leave_out_unbuilt(values, reading)
    conf, mistakes = read_conf({**values, **given})
    for mistake in mistakes:
        place = children.get(mistake.key) or places.get(mistake.key)
        hint = ""
        if mistake.key in places and mistake.unbuilt:
            hint = f"; slurm_conf of the scenario may give another {slurm_name(mistake.key)}"
        if place is not None:
            reading.mistake(place, f"{mistake.message}{hint}")
    return conf


def leave_out_unbuilt(values: dict[str, str], reading: Reading) -> None:
    """Take out what is not simulated of the file's values, and what makes no sense without it."""
    while True:
        _, mistakes = read_conf(dict(values))
        found = [mistake for mistake in mistakes if mistake.unbuilt]
        if not found and reading.left_out:
            found = [mistake for mistake in mistakes if mistake.key.casefold() in _PREEMPTION]
        if not found:
            return
        for mistake in found:
            if values.pop(mistake.key, None) is not None and reading.site is not None:
                setting = reading.site.settings[mistake.key.casefold()]
                reading.left_out.append(_mistake(setting.place, setting.key, mistake.message))


_PREEMPTION: Final = ("preempttype", "preemptmode")


# Nodes and partitions.


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


NODE_KEYS: Final = ("cpus", "memory_mb", "gres", "state", "reason")


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
        _note(reading, part.place, "PartitionName", f"{part.name} has no Nodes; name some, or ALL")
        return ()
    if part.nodes.value.casefold() == "all":
        return tuple(reading.nodes)
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
    return tuple(sorted(known, key=reading.nodes.__getitem__))


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

# What is wrong.

_SCENARIO_KEYS: Final = {
    "state": "state",
    "preemptmode": "preempt_mode",
    "oversubscribe": "over_subscribe",
    "shared": "over_subscribe",
}


def complete(values: Values, reading: Reading) -> None:
    """Take from the file what the scenario does not say at all, and note what is wrong with it."""
    if reading.site is None:
        return
    if "slurm_conf" not in values.places:
        values["slurm_conf"] = conf_of({}, {}, reading)
    for key, merge in (("nodes", merge_nodes), ("partitions", merge_partitions)):
        if key not in values.places:
            values[key] = merge((), reading)
        if not values[key] and not reading.mistakes:
            _note(reading, Place(reading.site.file), "", f"the file names no {key}")
    _tell_site(reading)


def _tell_site(reading: Reading) -> None:
    """Note what is wrong with the file, and once what in it is not acted on."""
    site = reading.site
    if site is None:
        return
    for mistake in site.mistakes:
        if reading.lenient and mistake.unbuilt:
            reading.left_out.append(_mistake(mistake.place, mistake.key, mistake.message))
        elif not _mended(mistake, reading):
            hint = "; the scenario may say otherwise" if mistake.unbuilt else ""
            _note(reading, mistake.place, mistake.key, f"{mistake.message}{hint}")
    for warning in site.warnings:
        reading.warnings.append(_mistake(warning.place, warning.key, warning.message))
    if site.ignored.words:
        message = f"known to Slurm, and ignored here: {site.ignored}"
        reading.warnings.append(_mistake(Place(site.file), "", message))


def _mended(mistake: SiteMistake, reading: Reading) -> bool:
    """Tell whether a value is not simulated, and the scenario gives another for all it is of."""
    key = _SCENARIO_KEYS.get(mistake.key.casefold(), "")
    said = reading.overridden.get("nodes", set()) | reading.overridden.get("partitions", set())
    return mistake.unbuilt and all((owner, key) in said for owner in mistake.owners)


def _note(reading: Reading, place: Place, key: str, message: str) -> None:
    reading.mistakes.append(_mistake(place, key, message))


def _mistake(place: Place, key: str, message: str) -> Mistake:
    return Mistake(file=place.file, line=place.line, column=place.column, path=key, message=message)
