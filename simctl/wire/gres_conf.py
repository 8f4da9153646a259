"""gres.conf held against slurm.conf: Slurm drains nodes that have less than NodeName says."""

from collections import Counter
from collections.abc import Iterator, Mapping

from simctl.wire.conf.cluster import SiteNode
from simctl.wire.conf.lines import Setting, SiteMistake
from simctl.wire.hostlist import compress, expand
from simctl.wire.site_files import SiteFile


def too_few(gres: SiteFile, nodes: Mapping[str, SiteNode]) -> Iterator[SiteMistake]:
    """Tell of resources of which gres.conf has fewer than slurm.conf, once for nodes alike.

    Slurm counts them by itself where AutoDetect is on; then nothing can be told.
    """
    detect = [line["autodetect"].value for line in gres.lines if "autodetect" in line]
    if any(value.casefold() != "off" for value in detect):
        return
    there = _there(gres, nodes)
    alike: dict[tuple[str, int, int], list[str]] = {}
    for node, spec in nodes.items():
        for name, wants in _wanted(spec).items():
            has = there[node][name]
            if has < wants and name in there[""]:
                alike.setdefault((name, has, wants), []).append(node)
    places = {line["name"].value: line["name"] for line in gres.lines if "name" in line}
    for (name, has, wants), names in alike.items():
        message = (
            f"{compress(names)} has {has} {name} here, and {wants} by slurm.conf: Slurm drains "
            "such a node"
        )
        yield SiteMistake(places[name].place, places[name].key, message)


def _there(gres: SiteFile, nodes: Mapping[str, SiteNode]) -> dict[str, Counter[str]]:
    """Return how many of each resource a node has; of no node, what the file speaks of."""
    there: dict[str, Counter[str]] = {name: Counter() for name in ("", *nodes)}
    for line in gres.lines:
        if "name" in line:
            count = _count(line)
            for node in ("", *_nodes(line, nodes)):
                there[node][line["name"].value] += count
    return there


def _wanted(spec: SiteNode) -> Counter[str]:
    """Return how many of each resource slurm.conf says that a node has, of all types."""
    wanted = Counter[str]()
    for full, count in spec.gres.items():
        wanted[full.partition(":")[0]] += count
    return wanted


def _nodes(line: Mapping[str, Setting], nodes: Mapping[str, SiteNode]) -> list[str]:
    if "nodename" not in line:
        return list(nodes)
    try:
        return [name for name in expand(line["nodename"].value) if name in nodes]
    except ValueError:
        return []


def _count(line: Mapping[str, Setting]) -> int:
    """Return how many a line brings: its Count, or one for each File, or one."""
    if "count" in line and line["count"].value.isascii() and line["count"].value.isdigit():
        return int(line["count"].value[:18])
    file = line.get("file", line.get("files"))
    try:
        return max(1, len(expand(file.value))) if file is not None else 1
    except ValueError:
        return 1
