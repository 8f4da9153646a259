"""What `simctl serve --record` writes: a scenario in which what came from outside comes again."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from simctl.limits import TEXT_BYTES
from simctl.outputs import Kind, Output
from simctl.repl.saving import child, move_paths, put
from simctl.scenario.model import (
    CommandCame,
    CommandLeft,
    CommandSignalled,
    FileSeen,
    OutsideDeed,
    Scenario,
    Stopped,
    TaskEnded,
    TaskWrote,
)
from simctl.scenario.positions import compose

MARK: Final = "# Recorded by `simctl serve --record`"
RECORDING: Final = Kind("recording", (MARK.encode(),))
_MOST_BYTES: Final = TEXT_BYTES - (1 << 20)
_MOST_TEXT: Final = 4000
"""How much of what a task writes at once is written down."""

_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\uf780-\uf7ff]")
_BYTES: Final = {0xDC00 + byte: 0xF700 + byte for byte in range(0x80, 0x100)}
"""Bytes that are no characters, which YAML has no way to write, and what stands for them."""


class Recorder:
    """Writes down what enters a served cluster, as the timeline of a scenario."""

    def __init__(
        self,
        path: Path,
        scenario: Scenario,
        *,
        model: str,
        force: bool,
        tell: Callable[[str], None],
    ) -> None:
        """Begin the file.

        Raises:
            OSError: It cannot be written, or is no recording.
        """
        self._output = Output(path, RECORDING, force=force)
        self._tell = tell
        self._bases: dict[int, CommandCame] = {}
        """By uid the command whose environment others are held against."""

        self._last_us = 0
        self._written = 0
        self._full = self._lost = False
        self._write(_head(scenario, path.absolute().parent, model))

    def note(self, time_us: int, deed: OutsideDeed) -> None:
        """Write down what happens at a moment."""
        if self._full:
            return
        if self._written > _MOST_BYTES:
            self._tell("the recording is as long as a scenario may be: it ends here")
            self._entry(time_us, {"stop": True})
            self._full = True
            return
        self._last_us = max(self._last_us, time_us)
        self._entry(time_us, self._told(deed))

    def act(self, time_us: int, deed: Mapping[str, Any]) -> None:
        """Write down a fault that `serve ctl` has let happen."""
        if not self._full:
            self._write(f"- {quoted({'at': f'{time_us}us', **deed})}\n")

    def _entry(self, time_us: int, what: Mapping[str, Any]) -> None:
        self._write(f"- {quoted({'at': f'{time_us}us', 'outside': what})}\n")

    def _write(self, text: str) -> None:
        data = text.encode()
        self._written += len(data)
        try:
            self._output.stream.write(data)
        except OSError as error:
            self._give_up(error)

    def end(self, time_us: int) -> None:
        """Write the end, and give the file its name."""
        if not self._full:
            self._entry(max(time_us, self._last_us), {"stop": True})
        if self._lost:
            return
        try:
            self._output.keep()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Tell that the recording cannot be written: half of one is none."""
        if not self._lost:
            self._tell(f"--record: {error.strerror}: it is given up, and the cluster goes on")
            self._output.__exit__(None, None, None)
        self._full = self._lost = True

    def _told(self, deed: OutsideDeed) -> dict[str, Any]:
        """Return a deed as a scenario has it."""
        if isinstance(deed, CommandCame):
            return self._came(deed)
        if isinstance(deed, CommandSignalled):
            return {"command": deed.command, "signal": deed.number}
        if isinstance(deed, CommandLeft):
            return {"command": deed.command, "left": deed.status}
        if isinstance(deed, TaskWrote):
            text = deed.text
            if len(text) > _MOST_TEXT:
                text = f"{text[:_MOST_TEXT]}... ({len(text)} characters)\n"
            return {"task": deed.task, "stream": deed.stream, "wrote": text}
        if isinstance(deed, TaskEnded):
            return {"task": deed.task, "ended": deed.status}
        if isinstance(deed, FileSeen):
            told: dict[str, Any] = {"path": deed.path, "uid": deed.uid, "mode": deed.mode}
            if deed.text is not None:
                told["text"] = deed.text
            return told | ({"directory": True} if deed.is_dir else {})
        assert isinstance(deed, Stopped)
        return {"stop": True}

    def _came(self, came: CommandCame) -> dict[str, Any]:
        """Return a command; of its environment what is another than in the first of its user."""
        told: dict[str, Any] = {
            "command": came.command,
            "argv": list(came.argv),
            "user": came.user,
            "uid": came.uid,
            "gid": came.gid,
            "cwd": came.cwd,
        }
        if came.stdin:
            told["stdin"] = came.stdin
        if came.task:
            told["task"] = came.task
        base = self._bases.setdefault(came.uid, came)
        if base is came:
            return told | {"base": True, "env": dict(came.env)}
        told["env_of"] = base.command
        env = {key: text for key, text in came.env.items() if base.env.get(key) != text}
        unset = [key for key in base.env if key not in came.env]
        return told | ({"env": env} if env else {}) | ({"unset": unset} if unset else {})


def quoted(value: Any) -> str:
    """Return plain data as YAML on one line, which is JSON with a few more escapes."""
    text = json.dumps(value, ensure_ascii=False).translate(_BYTES)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _head(scenario: Scenario, folder: Path, model: str) -> str:
    """Return the cluster as it is served, for a file in *folder*, up to its timeline."""
    source = (Path(scenario.folder) / scenario.path_name).read_text()
    node = compose(source, scenario.path_name)
    assert isinstance(node, yaml.MappingNode)
    move_paths(node, Path(scenario.folder), folder)
    timeline = child(node, "timeline")
    node.value = [pair for pair in node.value if pair[0].value not in ("timeline", "expect")]
    users = {
        user.name: {
            "uid": user.uid,
            "gid": user.gid,
            **({"account": user.account} if user.account else {}),
            **({"admin": user.admin} if user.admin != "none" else {}),
        }
        for user in scenario.users
        if user.name not in ("root", "slurm")
    }
    options = child(node, "options")
    if isinstance(options, yaml.MappingNode):
        put(options, "state_saves", scenario.options.state_saves)
    else:
        put(node, "options", {"state_saves": scenario.options.state_saves})
    for key, value in (("users", users), ("start_time", scenario.start_time), ("model", model)):
        put(node, key, value)
    text: str = yaml.serialize(node, Dumper=yaml.BaseDumper, width=100, allow_unicode=True)
    given = ""
    if isinstance(timeline, yaml.SequenceNode) and timeline.value:
        timeline.flow_style = False
        given = yaml.serialize(timeline, Dumper=yaml.BaseDumper, width=100, allow_unicode=True)
    note = f"{MARK}: `simctl run` repeats it. Clients' environments are in it."
    return f"{note}\n{text}timeline:\n{given}"
