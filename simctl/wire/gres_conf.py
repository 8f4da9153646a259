"""gres.conf held against slurm.conf: Slurm drains nodes that have less than NodeName says."""

from collections import Counter
from collections.abc import Iterator, Mapping

from simctl.wire.conf_lines import Setting, SiteMistake
from simctl.wire.hostlist import compress, expand
from simctl.wire.site_cluster import SiteNode
from simctl.wire.site_files import SiteFile


def too_few(gres: SiteFile, nodes: Mapping[str, SiteNode]) -> Iterator[SiteMistake]:
    """Tell of resources of which gres.conf has fewer than slurm.conf, once for nodes alike.

    Slurm counts them by itself where AutoDetect is on; then nothing can be told.
    """
    if any(
        line["autodetect"].value.casefold() != "off" for line in gres.lines if "autodetect" in line
    ):
        return
    there: dict[str, Counter[str]] = {name: Counter() for name in nodes}
    places: dict[str, Setting] = {}
    for line in gres.lines:
        if "name" not in line:
            continue
        name = line["name"].value
        places[name] = line["name"]
        for node in _nodes(line, nodes):
            there[node][name] += _count(line)
    missing: dict[tuple[str, int, int], list[str]] = {}
    for node, spec in nodes.items():
        wanted = Counter[str]()
        for full, count in spec.gres.items():
            wanted[full.partition(":")[0]] += count
        for name, count in wanted.items():
            if name in places and there[node][name] < count:
                missing.setdefault((name, there[node][name], count), []).append(node)
    for (name, has, count), alike in missing.items():
        message = (
            f"{compress(alike)} has {has} {name} here, and {count} by slurm.conf: Slurm drains "
            "such a node"
        )
        yield SiteMistake(places[name].place, places[name].key, message)


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
