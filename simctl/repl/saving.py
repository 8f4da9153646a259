"""Write a session as a scenario that repeats it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from simctl.outputs import SESSION, write_output
from simctl.repl.errors import CommandError
from simctl.repl.session import Session
from simctl.scenario.durations import format_us
from simctl.scenario.positions import compose

_PATH_KEYS = ("slurm_conf_file", "burst_buffer_conf_file", "slurm_lib", "slurm_records")


def save_session(session: Session, name: str, *, force: bool) -> Iterator[str]:
    """Write the session into a file, unless another's is there; say how to run it.

    Raises:
        CommandError: It cannot be written.
    """
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = path.with_name(path.name + ".yaml")
    text = saved_text(session, path.parent)
    try:
        write_output(path, SESSION, text.encode(), force=force)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error
    world = session.world
    schedule = world.kernel.schedule.name
    how = "" if schedule == "fifo" else f" --schedule {schedule}"
    yield f"written to {path}; to repeat: simctl run {path}{how}"


def saved_text(session: Session, folder: Path) -> str:
    """Return the scenario that repeats the session, for a file in *folder*."""
    text = session.source
    node = compose(text, session.scenario.path_name)
    assert isinstance(node, yaml.MappingNode)
    put(node, "seed", session.world.seed)
    put(node, "model", session.world.model)
    move_paths(node, Path(session.scenario.folder), folder)
    entries = [act.as_entry() for act in session.desk.acts]
    stay: dict[str, Any] = {"place": str(session.place)}
    if session.kind == "turn":
        stay["at"] = format_us(session.world.kernel.now_us)
    entries.append({**stay, "stay": True})
    timeline = child(node, "timeline")
    if not isinstance(timeline, yaml.SequenceNode):
        timeline = yaml.SequenceNode("tag:yaml.org,2002:seq", [], flow_style=False)
        node.value.append((_scalar("timeline"), timeline))
    timeline.flow_style = False
    for entry in entries:
        timeline.value.append(_node(entry))
    head = "".join(
        f"# {line}".rstrip() + "\n" for line in session.scenario.description.splitlines()
    )
    written: str = yaml.serialize(node, Dumper=yaml.BaseDumper, width=100, allow_unicode=True)
    return f"{head}# A session of simctl repl, saved: it happens again, act by act.\n{written}"


def _node(value: Any) -> yaml.Node:
    node = yaml.compose(
        yaml.safe_dump(value, sort_keys=False, allow_unicode=True), Loader=yaml.BaseLoader
    )
    assert isinstance(node, yaml.Node)
    return node


def _scalar(text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text)


def child(node: yaml.MappingNode, key: str) -> yaml.Node | None:
    """Return the node of a key."""
    for name, value in node.value:
        if name.value == key:
            found: yaml.Node = value
            return found
    return None


def put(node: yaml.MappingNode, key: str, value: object) -> None:
    """Let a scenario have a key with a value."""
    node.value = [pair for pair in node.value if pair[0].value != key]
    node.value.insert(0, (_scalar(key), _node(value)))


def move_paths(node: yaml.MappingNode, old: Path, new: Path) -> None:
    """Let paths that are taken from the folder of the scenario lead to the same files."""
    for key in _PATH_KEYS:
        file = child(node, key)
        if isinstance(file, yaml.ScalarNode):
            file.value = _relative(file.value, old, new)
    plugins = [child(node, "plugins")]
    nodes = child(node, "nodes")
    if isinstance(nodes, yaml.SequenceNode):
        plugins += [
            child(each, "plugins") for each in nodes.value if isinstance(each, yaml.MappingNode)
        ]
    for each in plugins:
        for item in each.value if isinstance(each, yaml.SequenceNode) else ():
            file, colon, kind = item.value.partition(":")
            if file.endswith((".py", ".so", ".c")):
                item.value = _relative(file, old, new) + colon + kind


def _relative(path: str, old: Path, new: Path) -> str:
    if Path(path).is_absolute():
        return path
    moved = os.path.relpath((old / path).resolve(), new.resolve())
    return moved if moved.startswith("..") else f"./{moved}"
