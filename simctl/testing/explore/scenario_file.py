"""Edit a scenario as a text, so that what was found can be written as a file of its own.

The tree of YAML is edited, not the values: lengths of time, scripts and flow style stay as they
were written. Comments are lost.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
import yaml

MARK: Final = "# Found by `simctl explore"
"""How a file begins that may be written over."""

_PATHS: Final = ("slurm_conf_file", "burst_buffer_conf_file", "slurm_lib", "slurm_records")
_WIDTH: Final = 100


@attrs.frozen(kw_only=True)
class Change:
    """What becomes of a timeline: which entries stay, which go to another moment, what is new."""

    kept: tuple[int, ...]
    added: tuple[str, ...] = ()
    """New entries, each a mapping in YAML's flow style; they stand before the others."""


def edited(
    text: str,
    change: Change | None = None,
    *,
    seed: int | None = None,
    model: str = "",
    folders: tuple[Path, Path] | None = None,
) -> str:
    """Return a scenario's text with another timeline, seed and model.

    Args:
        text: The scenario; one that can be read.
        change: What becomes of the timeline.
        seed: Its seed; None leaves it as it is.
        model: Its model, if it is to have another.
        folders: From where to where the file moves; relative paths of other files follow.
    """
    root = yaml.compose(text, Loader=yaml.BaseLoader)
    assert isinstance(root, yaml.MappingNode)
    if change is not None:
        _change(root, change)
    if model:
        _put(root, "model", model)
    if seed is not None:
        _put(root, "seed", str(seed))
    if folders is not None:
        _move(root, *folders)
    dumped: str = yaml.serialize(root, Dumper=_Plain, width=_WIDTH, allow_unicode=True)
    return dumped


def entry_text(text: str, place: int) -> dict[str, str]:
    """Return the values of an entry of the timeline, each in YAML's flow style, by its key."""
    root = yaml.compose(text, Loader=yaml.BaseLoader)
    entries = _value(root, "timeline")
    assert isinstance(entries, yaml.SequenceNode)
    entry = entries.value[place]
    return {key.value: _flow(value) for key, value in entry.value}


def quoted(text: str) -> str:
    """Return a text as a scalar of YAML's that stands in a flow mapping."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Plain(yaml.BaseDumper):
    """Writes nodes as they were read: no tags, and lists indented as below a key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _flow(node: yaml.Node) -> str:
    copied = yaml.compose(
        yaml.serialize(node, Dumper=_Plain, width=1 << 20), Loader=yaml.BaseLoader
    )
    _make_flow(copied)
    dumped = yaml.serialize(copied, Dumper=_Plain, width=1 << 20, allow_unicode=True)
    return str(dumped).removesuffix("\n").removesuffix("\n...")


def _make_flow(node: yaml.Node | None) -> None:
    if isinstance(node, yaml.MappingNode):
        node.flow_style = True
        for key, value in node.value:
            _make_flow(key)
            _make_flow(value)
    elif isinstance(node, yaml.SequenceNode):
        node.flow_style = True
        for each in node.value:
            _make_flow(each)
    elif isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        node.style = '"'


def _value(root: yaml.Node | None, key: str) -> yaml.Node | None:
    assert isinstance(root, yaml.MappingNode)
    return next((value for name, value in root.value if name.value == key), None)


def _change(root: yaml.MappingNode, change: Change) -> None:
    entries = _value(root, "timeline")
    if not isinstance(entries, yaml.SequenceNode):
        if not change.added:
            return
        entries = yaml.SequenceNode("tag:yaml.org,2002:seq", [], flow_style=False)
        root.value.append((_scalar("timeline"), entries))
    added = [yaml.compose(each, Loader=yaml.BaseLoader) for each in change.added]
    entries.value = [*added, *(entries.value[place] for place in change.kept)]
    if not entries.value:
        entries.flow_style = True


def _put(root: yaml.MappingNode, key: str, text: str) -> None:
    for place, (name, _) in enumerate(root.value):
        if name.value == key:
            root.value[place] = (name, _scalar(text))
            return
    root.value.insert(0, (_scalar(key), _scalar(text)))


def _scalar(text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text)


def _move(root: yaml.MappingNode, old: Path, new: Path) -> None:
    """Have relative paths of other files be right from another folder."""
    for key in _PATHS:
        node = _value(root, key)
        if isinstance(node, yaml.ScalarNode) and node.value:
            node.value = _from(node.value, old, new)
    lists = [_value(root, "plugins")]
    nodes = _value(root, "nodes")
    entries = nodes.value if isinstance(nodes, yaml.SequenceNode) else ()
    lists += [_value(each, "plugins") for each in entries if isinstance(each, yaml.MappingNode)]
    for plugins in lists:
        for plugin in plugins.value if isinstance(plugins, yaml.SequenceNode) else ():
            if isinstance(plugin, yaml.ScalarNode):
                plugin.value = _plugin_from(plugin.value, old, new)


def _plugin_from(reference: str, old: Path, new: Path) -> str:
    """Return a plugin's reference from another folder; modules that are installed stay as named."""
    where, colon, name = reference.rpartition(":")
    if not colon:
        where, name = reference, ""
    beside = old / where.split(".", maxsplit=1)[0]
    here = beside.is_dir() or beside.with_suffix(".py").is_file()
    if where.endswith(".py") or "/" in where or here:
        where = _from(where, old, new)
    return f"{where}{colon}{name}"


def _from(path: str, old: Path, new: Path) -> str:
    if Path(path).is_absolute():
        return path
    relative = Path(os.path.relpath((old / path).resolve(), new.resolve())).as_posix()
    return relative if relative.startswith(".") else f"./{relative}"


def sequence(entries: Sequence[object], *, without: int | None = None) -> tuple[int, ...]:
    """Return the places of all entries but one."""
    return tuple(place for place in range(len(entries)) if place != without)
