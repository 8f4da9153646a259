"""Settings: what is put where into a scenario, or beside it, by paths such as `nodes[0].cpus`."""

import copy
import re
from collections.abc import Sequence
from typing import Any, Final

import yaml

OF_RUNS: Final = ("scenario", "swf", "schedule", "until", "max_turns", "orderings")
"""Settings that no scenario holds: which it is, or which log, and how it is run."""

OF_LOGS: Final = ("nodes", "cpus_per_node", "limit", "skip_bad", "latency", "model", "slurm_conf")
"""Those of the replay of a log."""

_PART: Final = re.compile(r'(?:^|(?<=.)\.)([A-Za-z_][\w-]*)|\[(\d{1,9})\]|\["([^"\]]+)"\]')
_MAPPING: Final = "tag:yaml.org,2002:map"
_TEXT: Final = "tag:yaml.org,2002:str"
_WIDTH: Final = 1 << 20


class PathError(ValueError):
    """A path that leads nowhere."""


def parts(path: str) -> tuple[str | int, ...]:
    """Return the steps of a path: names of keys, and places in lists from 0.

    Raises:
        PathError: It is none.
    """
    found: list[str | int] = []
    at = 0
    while at < len(path):
        match = _PART.match(path, at)
        if match is None:
            raise PathError(
                f"{path!r} is no path: expected keys such as slurm_conf.SchedulerType, "
                'nodes[0].cpus, or files["job.sh"]'
            )
        name, place, quoted = match.groups()
        found.append(int(place) if place is not None else name or quoted)
        at = match.end()
    return tuple(found)


def put(root: yaml.Node, path: str, value: yaml.Node) -> yaml.Node:
    """Return a tree of YAML in which a value stands at a path; what it shares stays as it is.

    Raises:
        PathError: The path leads through what is no mapping and no list.
    """
    return _put(root, parts(path), value, path, (root.start_mark, root.end_mark))


def _put(
    node: yaml.Node | None,
    steps: Sequence[str | int],
    value: yaml.Node,
    path: str,
    mark: tuple[Any, Any],
) -> yaml.Node:
    """Return a node with a value put into it; what is new has the *mark* of what was there."""
    if not steps:
        return value
    step, *rest = steps
    mark = mark if node is None else (node.start_mark, node.end_mark)
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value and not node.style):
        node = yaml.MappingNode(_MAPPING, [], *mark)
    changed = copy.copy(node)
    if isinstance(step, int):
        if not isinstance(node, yaml.SequenceNode):
            raise PathError(f"{path}: there is no list where [{step}] is asked for")
        if step >= len(node.value):
            raise PathError(f"{path}: the list has {len(node.value)} items, from [0] on")
        changed.value = list(node.value)
        changed.value[step] = _put(node.value[step], rest, value, path, mark)
        return changed
    if not isinstance(node, yaml.MappingNode):
        raise PathError(f"{path}: there is no mapping that could have a key {step}")
    changed.value = list(node.value)
    for place, (key, old) in enumerate(node.value):
        if _is(key, step, path):
            changed.value[place] = (key, _put(old, rest, value, path, mark))
            return changed
    if rest and any(_is(key, "<<", path) for key, _ in node.value):
        raise PathError(f"{path}: {step} may come from an alias (<<); write it out there")
    changed.value.append((yaml.ScalarNode(_TEXT, step, *mark), _put(None, rest, value, path, mark)))
    return changed


def _is(key: yaml.Node, name: str, path: str) -> bool:
    """Return whether a key is meant: the case of those of slurm.conf does not matter."""
    if path.startswith("slurm_conf."):
        return str(key.value).casefold() == name.casefold()
    return bool(key.value == name)


def written(node: yaml.Node) -> str:
    """Return a value as one line of YAML."""
    flat = copy.deepcopy(node)
    _flatten(flat)
    text: str = yaml.serialize(flat, Dumper=_Plain, width=_WIDTH, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def parsed(text: str) -> yaml.Node:
    """Return the tree of what `written` wrote, or of a scenario that was read before."""
    node = yaml.compose(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    assert isinstance(node, yaml.Node)
    return node


class _Plain(yaml.BaseDumper):
    """Writes nodes as they were read: no tags."""


def _flatten(node: yaml.Node) -> None:
    if isinstance(node, yaml.ScalarNode):
        node.style = '"' if node.style in ("|", ">") else node.style
        return
    assert isinstance(node, yaml.SequenceNode | yaml.MappingNode)
    node.flow_style = True
    for each in node.value:
        for inner in each if isinstance(each, tuple) else (each,):
            _flatten(inner)
