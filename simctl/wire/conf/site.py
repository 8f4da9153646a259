"""A site's slurm.conf, read whole: settings, nodes, partitions, and everything wrong with them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import attrs

from simctl.limits import HOSTS
from simctl.wire.conf.cluster import Ignored, NodeSets, SiteNode, SitePartition
from simctl.wire.conf.lines import LineReader, Place, ReadFile, Setting, SiteMistake, by_key
from simctl.wire.conf.names import NEWER
from simctl.wire.conf.records import RecordReader
from simctl.wire.conf.site_file import KeyKind, key_kind
from simctl.wire.conf.slurm_conf import unknown_key
from simctl.wire.hostlist import compress, expand
from simctl.wire.ids import INFINITE

_RECORDS: Final = {
    name.casefold(): name
    for name in ("NodeName", "PartitionName", "DownNodes", "NodeSet", "FrontendName")
}


@attrs.define(kw_only=True)
class Site:
    """What the files say; of a key given twice the last value, as in Slurm."""

    file: str
    settings: dict[str, Setting] = attrs.field(factory=dict)
    """The keys that stand on lines of their own, folded, in their order."""
    controllers: list[Setting] = attrs.field(factory=list)
    """The lines that name a host of slurmctld: the primary's, then the backups'."""

    nodes: dict[str, SiteNode] = attrs.field(factory=dict)
    partitions: dict[str, SitePartition] = attrs.field(factory=dict)
    node_sets: NodeSets = attrs.field(factory=NodeSets)
    ignored: Ignored = attrs.field(factory=Ignored)
    mistakes: list[SiteMistake] = attrs.field(factory=list)
    warnings: list[SiteMistake] = attrs.field(factory=list)
    lines: list[tuple[tuple[str, ...], SiteNode]] = attrs.field(factory=list)
    """The NodeName lines, in their order: names, and what is said of them."""

    def members(self, text: str) -> tuple[list[str], list[str]]:
        """Return the nodes that a partition's Nodes names, and the names that mean nothing.

        The unknown ones stand among the others too; nodes that are FUTURE are left out.
        """
        names: list[str] = []
        unknown: list[str] = []
        for name in expand(text):
            members = self.node_sets.members(name, self.nodes)
            if members is None and name not in self.nodes:
                unknown.append(name)
            names += (name,) if members is None else members
        here = [name for name in names if not self._future(name)]
        return here, unknown

    def _future(self, name: str) -> bool:
        return name in self.nodes and self.nodes[name].state == "FUTURE"


def read_site(text: str, file: str, read_file: ReadFile) -> Site:
    """Read a slurm.conf and the files it includes.

    Args:
        text: What it says.
        file: What it is called, in mistakes and as the folder of what it includes.
        read_file: Reads an included file.
    """
    return _Reader(site=Site(file=file), read_file=read_file).read(text)


@attrs.define(kw_only=True)
class _Reader:
    site: Site
    read_file: ReadFile
    _node_default: dict[str, Setting] = attrs.field(factory=dict, init=False)
    _partition_default: dict[str, Setting] = attrs.field(factory=dict, init=False)
    _down: list[tuple[Setting, dict[str, Setting]]] = attrs.field(factory=list, init=False)
    _records: RecordReader = attrs.field(init=False)
    _plain: list[Setting] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        site = self.site
        self._records = RecordReader(mistakes=site.mistakes, ignored=site.ignored)

    def read(self, text: str) -> Site:
        site = self.site
        takers = {
            "NodeName": self._node_line,
            "PartitionName": self._partition_line,
            "DownNodes": self._down_line,
            "NodeSet": self._set_line,
        }
        reader = LineReader(self.read_file, site.mistakes)
        for settings in reader.lines(text, site.file):
            for index, setting in enumerate(settings):
                record = _RECORDS.get(setting.folded)
                if record == "FrontendName":
                    site.ignored.add("FrontendName", "every node runs a slurmd of its own here")
                    break
                if record is not None:
                    rest = by_key(settings[index + 1 :], site.warnings.append)
                    takers[record](setting, self._records.known(record, rest))
                    break
                self._plain.append(setting)
        self._settings()
        self._set_down()
        future = [name for name, node in site.nodes.items() if node.state == "FUTURE"]
        if future:
            site.ignored.add("NodeName", f"{compress(future)} is FUTURE and left out")
        return site

    def _settings(self) -> None:
        """Sort the plain keys into those that act and those that do not."""
        site = self.site
        site.controllers += [each for each in self._plain if each.folded == "slurmctldhost"]
        for folded, setting in by_key(tuple(self._plain), site.warnings.append).items():
            kind = key_kind(setting.key, setting.value)
            if folded == "include":
                message = 'write Include FILE, without "="'
                site.mistakes.append(SiteMistake(setting.key_place, "", message))
            elif kind is KeyKind.UNKNOWN and folded in NEWER:
                site.ignored.add(NEWER[folded], "of newer releases")
            elif kind is KeyKind.UNKNOWN:
                message = unknown_key(setting.key)
                site.mistakes.append(SiteMistake(setting.key_place, "", message))
            else:
                site.settings[folded] = setting

    # Nodes.

    def _node_line(self, name: Setting, settings: dict[str, Setting]) -> None:
        settings = self._started(name, settings)
        if name.value.casefold() == "default":
            self._node_default |= settings
            # So that what is wrong in it is told whether or not a node has it.
            self._records.values("NodeName", settings, ())
            return
        names = self._names(name)
        if len(self.site.nodes) + len(names) > HOSTS:
            self._records.note(name, f"more than {HOSTS} nodes, the most a cluster may have")
            names = ()
        node = self._node(name, self._node_default | settings, names)
        counts = Counter(names)
        taken = [each for each in counts if each in self.site.nodes or counts[each] > 1]
        if taken:
            self._records.note(name, f"node {taken[0]} is there already")
        fresh = tuple(each for each in counts if each not in self.site.nodes)
        if fresh:
            self.site.nodes.update(dict.fromkeys(fresh, node))
            self.site.lines.append((fresh, node))

    def _started(self, name: Setting, settings: dict[str, Setting]) -> dict[str, Setting]:
        """Return the keys of nodes that the site starts on demand as of nodes that are up."""
        state = settings.get("State")
        if state is None or state.value.upper() != "CLOUD":
            return settings
        note = "up from the beginning here, without the time that starting it takes"
        self.site.ignored.add(f"State=CLOUD of {name.value}", note)
        return {key: each for key, each in settings.items() if key != "State"}

    def _names(self, setting: Setting) -> tuple[str, ...]:
        try:
            names = expand(setting.value)
        except ValueError as error:
            self._records.note(setting, str(error))
            return ()
        if not names:
            self._records.note(setting, "expected a host list such as n[1-2]")
        return names

    def _node(
        self, name: Setting, settings: dict[str, Setting], names: tuple[str, ...]
    ) -> SiteNode:
        values = self._records.values("NodeName", settings, names)
        return SiteNode(
            cpus=self._cpus(name, values, settings),
            memory_mb=values.get("RealMemory", 1),
            gres=values.get("Gres", {}),
            features=values.get("Features", values.get("Feature", ())),
            state=values.get("State", "UNKNOWN"),
            reason=values.get("Reason", ""),
            place=name.place,
        )

    def _cpus(self, name: Setting, values: Mapping[str, Any], given: Mapping[str, Setting]) -> int:
        """Return the processors of a node, from CPUs or from boards, sockets, cores, threads."""
        cpus: int = values.get("CPUs", values.get("Procs", 0))
        cores = values.get("CoresPerSocket", 1)
        threads = values.get("ThreadsPerCore", 1)
        if "Sockets" in values:
            sockets = values["Sockets"]
        elif "SocketsPerBoard" in values or "Boards" in values:
            sockets = values.get("Boards", 1) * values.get("SocketsPerBoard", 1)
        else:
            sockets = max(1, cpus // (cores * threads))
        product: int = sockets * cores * threads
        if cpus in (sockets, sockets * cores, product):
            return cpus
        if product > _MOST_CPUS:
            self._records.note(name, f"{product} processors are more than {_MOST_CPUS}")
            return 1
        if cpus:
            where = given.get("CPUs", given.get("Procs", name))
            message = (
                f"{cpus} is neither Sockets ({sockets}) nor these times CoresPerSocket "
                f"({sockets * cores}) nor these times ThreadsPerCore ({product}): {product} "
                "counts, as in Slurm"
            )
            warning = SiteMistake(where.place, where.key, message)
            self.site.warnings.append(warning)
        return product

    def _down_line(self, name: Setting, settings: dict[str, Setting]) -> None:
        self._down.append((name, settings))

    def _set_down(self) -> None:
        """Take the nodes of DownNodes lines down; they may stand above those of the nodes."""
        nodes = self.site.nodes
        for name, settings in self._down:
            values = self._records.values("DownNodes", settings, (name.value,))
            whole = name.value.casefold() == "all"
            names = tuple(nodes) if whole else self._names(name)
            unknown = [each for each in names if each not in nodes]
            if unknown:
                self._records.note(name, f"no NodeName line names {unknown[0]}")
            for each in names:
                if each in nodes:
                    nodes[each] = attrs.evolve(
                        nodes[each],
                        state=values.get("State", "DOWN"),
                        reason=values.get("Reason", ""),
                    )

    def _set_line(self, name: Setting, settings: dict[str, Setting]) -> None:
        sets = self.site.node_sets
        if not settings:
            self._records.note(name, "a NodeSet has Nodes or Feature")
        if name.value in sets.nodes or name.value in sets.features:
            self._records.note(name, f"node set {name.value} is there already")
            return
        sets.nodes[name.value] = self._names(settings["Nodes"]) if "Nodes" in settings else ()
        if "Feature" in settings:
            sets.features[name.value] = settings["Feature"].value

    # Partitions.

    def _partition_line(self, name: Setting, settings: dict[str, Setting]) -> None:
        if name.value.casefold() == "default":
            self._partition_default |= settings
            self._records.values("PartitionName", settings, ())
            return
        merged = self._partition_default | settings
        values = self._records.values("PartitionName", merged, (name.value,))
        partition = _partition(name, merged, values)
        if name.value in self.site.partitions:
            self._records.note(name, f"partition {name.value} is there already")
            return
        partition = self._checked(partition, merged)
        if partition.default:
            self._only_default(name)
        self.site.partitions[name.value] = partition

    def _only_default(self, name: Setting) -> None:
        """Take the last of several default partitions, as Slurm does."""
        for other in self.site.partitions.values():
            if other.default:
                message = f"{other.name} was the default above: {name.value} is, as in Slurm"
                self.site.warnings.append(SiteMistake(name.place, "Default", message))
                self.site.partitions[other.name] = attrs.evolve(other, default=False)

    def _checked(self, partition: SitePartition, given: Mapping[str, Setting]) -> SitePartition:
        """Return the partition without a DefaultTime that is too long, which Slurm drops."""
        if partition.min_nodes > partition.max_nodes:
            self._records.note(given.get("MinNodes", given["MaxNodes"]), "MinNodes above MaxNodes")
        if (partition.default_time_min or 0) <= partition.max_time_min:
            return partition
        setting = given["DefaultTime"]
        message = f"above the MaxTime of {partition.name}, which holds instead, as in Slurm"
        self.site.warnings.append(SiteMistake(setting.place, setting.key, message))
        return attrs.evolve(partition, default_time_min=None)


_MOST_CPUS: Final = 0xFFFD


def _partition(
    name: Setting, settings: Mapping[str, Setting], values: Mapping[str, Any]
) -> SitePartition:
    return SitePartition(
        name=name.value,
        nodes=settings.get("Nodes"),
        default=values.get("Default", False),
        max_time_min=values.get("MaxTime", INFINITE),
        default_time_min=values.get("DefaultTime"),
        max_nodes=values.get("MaxNodes", INFINITE),
        min_nodes=values.get("MinNodes", 1),
        state=values.get("State", "UP"),
        priority_tier=values.get("PriorityTier", values.get("Priority", 1)),
        exclusive=values.get("OverSubscribe", values.get("Shared", False)),
        preempt_mode=values.get("PreemptMode", ""),
        grace_time_s=values.get("GraceTime", 0),
        root_only=values.get("RootOnly", False),
        allow_accounts=values.get("AllowAccounts", ()),
        deny_accounts=values.get("DenyAccounts", ()),
        def_mem_per_cpu_mb=values.get("DefMemPerCPU", 0),
        def_mem_per_node_mb=values.get("DefMemPerNode", 0),
        place=name.place,
    )


__all__ = ["Place", "Site", "read_site"]
