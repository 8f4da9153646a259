"""Write a cluster as a scenario that people read: in ranges, with comments on what is left out."""

import itertools
import re
import textwrap
from collections.abc import Iterator
from typing import Final

import yaml

from simctl.scenario.differing import differences
from simctl.scenario.imported import ImportedCluster
from simctl.scenario.model import NodeSpec, PartitionSpec
from simctl.wire.hostlist import compress
from simctl.wire.ids import INFINITE
from simctl.wire.time_limits import format_time_limit_min

_PLAIN: Final = re.compile(r"[A-Za-z0-9/._][A-Za-z0-9/._+-]*")
_WIDTH: Final = 100
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def scenario_text(cluster: ImportedCluster) -> str:
    """Return the text of a scenario of the cluster, with a small timeline to begin with."""
    lines = [
        *_comment(f"The cluster of {cluster.file}, as simctl import read it."),
        *_left_out(cluster),
        *_slurm_conf(cluster.settings),
        "nodes:",
        *map(_node_line, _alike(cluster.nodes)),
        "partitions:",
        *(_partition_line(part, cluster) for part in cluster.partitions),
        *_people(cluster),
    ]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Return a text as a scalar of YAML, in quotes where it could be taken for anything else."""
    if _PLAIN.fullmatch(text) and text.casefold() not in _WORDS:
        return text
    written: str = yaml.safe_dump(text, default_style='"', width=10**9, allow_unicode=True)
    return written.rstrip("\n")


def _comment(text: str, indent: str = "") -> Iterator[str]:
    shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    yield from textwrap.wrap(
        shown,
        _WIDTH,
        initial_indent="# ",
        subsequent_indent=f"# {indent}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _left_out(cluster: ImportedCluster) -> Iterator[str]:
    if cluster.left_out:
        yield "#"
        yield "# Not simulated yet, and left out, so that the default holds:"
        for mistake in cluster.left_out:
            yield from _comment(f"- {mistake}", "  ")
    if cluster.ignored:
        yield "#"
        yield "# Known to Slurm and not simulated, so that from the site's own cluster"
        for what, keys in differences(cluster.ignored):
            yield from _comment(f"- {what}: {', '.join(keys)}", "  ")


def _slurm_conf(settings: dict[str, str]) -> Iterator[str]:
    if settings:
        yield "slurm_conf:"
        for key, value in settings.items():
            yield f"  {key}: {quoted(value)}"


def _alike(nodes: tuple[NodeSpec, ...]) -> Iterator[tuple[str, NodeSpec]]:
    """Return neighbours that differ in their names alone, as a host list and one of them."""

    def rest(node: NodeSpec) -> tuple[object, ...]:
        gres = tuple(sorted(node.gres.items()))
        return (node.cpus, node.memory_mb, gres, node.state, node.reason, node.features)

    for _, group in itertools.groupby(nodes, rest):
        found = list(group)
        yield compress(node.name for node in found), found[0]


def _node_line(alike: tuple[str, NodeSpec]) -> str:
    names, node = alike
    parts = [f"name: {quoted(names)}", f"cpus: {node.cpus}", f"memory_mb: {node.memory_mb}"]
    if node.gres:
        gres = ",".join(f"{name}:{count}" for name, count in node.gres.items())
        parts.append(f"gres: {quoted(gres)}")
    if node.features:
        parts.append(f"features: {quoted(','.join(node.features))}")
    if node.state != "UNKNOWN":
        parts.append(f"state: {node.state}")
    if node.reason:
        parts.append(f"reason: {quoted(node.reason)}")
    return f"  - {{{', '.join(parts)}}}"


def _partition_line(part: PartitionSpec, cluster: ImportedCluster) -> str:
    whole = part.nodes == tuple(node.name for node in cluster.nodes)
    nodes = "ALL" if whole else compress(part.nodes)
    parts = [f"name: {quoted(part.name)}", f"nodes: {quoted(nodes)}"]
    # A partition that stands alone would be the default without it.
    if part.default or len(cluster.partitions) == 1:
        parts.append(f"default: {str(part.default).lower()}")
    parts += [*_limits(part), *_numbers(part), *_ways(part)]
    return f"  - {{{', '.join(parts)}}}"


def _limits(part: PartitionSpec) -> Iterator[str]:
    if part.max_time_min != INFINITE:
        yield f"max_time: {_limit(part.max_time_min)}"
    if part.default_time_min != part.max_time_min:
        yield f"default_time: {_limit(part.default_time_min)}"


def _ways(part: PartitionSpec) -> Iterator[str]:
    """Return how a partition treats its jobs, and whose they may be."""
    if part.state != "UP":
        yield f"state: {part.state}"
    if part.exclusive:
        yield "over_subscribe: EXCLUSIVE"
    if part.preempt_mode:
        yield f"preempt_mode: {quoted(part.preempt_mode)}"
    if part.grace_time_s:
        yield f"grace_time: {part.grace_time_s}s"
    if part.root_only:
        yield "root_only: true"
    for key in ("allow_accounts", "deny_accounts"):
        if accounts := getattr(part, key):
            yield f"{key}: [{', '.join(map(quoted, accounts))}]"


def _limit(minutes: int) -> str:
    return quoted(format_time_limit_min(minutes, padded=True))


_NUMBERS: Final = {
    "min_nodes": ("min_nodes", 1),
    "max_nodes": ("max_nodes", INFINITE),
    "priority_tier": ("priority_tier", 1),
    "def_mem_per_cpu": ("def_mem_per_cpu_mb", 0),
    "def_mem_per_node": ("def_mem_per_node_mb", 0),
}


def _numbers(part: PartitionSpec) -> list[str]:
    return [
        f"{key}: {getattr(part, field)}"
        for key, (field, default) in _NUMBERS.items()
        if getattr(part, field) != default
    ]


def _people(cluster: ImportedCluster) -> Iterator[str]:
    """Return users, programs and a timeline: someone who submits a job that can start."""
    part = min(cluster.partitions, key=lambda each: _ease(each, cluster))
    account = f", account: {quoted(part.allow_accounts[0])}" if part.allow_accounts else ""
    yield "users:"
    for name, uid in cluster.users.items():
        yield f"  {quoted(name)}: {uid}"
    user = next(name for name in _USERS if name not in cluster.users)
    yield f"  {user}: {{uid: 1001{account}}}"
    if cluster.scripts:
        yield "programs:"
        for path in cluster.scripts:
            yield f"  {quoted(path)}: {{runs: 0s}}"
    words = ["sbatch"]
    words += [] if part.default else [f"-p {part.name}"]
    words += [f"-N {part.min_nodes}"] if part.min_nodes > 1 else []
    yield "timeline:"
    yield f"  - {{at: 0s, as: {user}, run: {quoted(' '.join([*words, '--wrap', _SLEEP]))}}}"


_USERS: Final = ("alice", "bob")
_SLEEP: Final = "'sleep 60'"


def _ease(part: PartitionSpec, cluster: ImportedCluster) -> tuple[bool, ...]:
    """Return what stands in the way of a job in a partition; the default goes before others."""
    up = {node.name for node in cluster.nodes if node.state == "UNKNOWN"}
    fit = sum(name in up for name in part.nodes) >= max(part.min_nodes, 1)
    return (part.state != "UP" or part.root_only, not fit, part.max_nodes == 0, not part.default)
