"""What the traces of trial clusters tell of a script: blocks that were reached, errors."""

import re
from collections.abc import Iterable
from typing import Final

from simctl.kernel.events import Event
from simctl.testing.plugin_check.lua.source import MARK

_MARKED: Final = re.compile(rf"(?:lua: )?{MARK} (\d+)")
_SCRIPTS: Final = "(?:job_submit|burst_buffer|cli_filter)"
"""Whose lines count: an error in a module keeps its place in its text."""

_PLACE: Final = re.compile(rf"^(?:/etc/slurm/{_SCRIPTS}\.lua:(?:\d+:)? )+")
_MODULE: Final = re.compile(r"module '([^']+)' not found")
_FILE: Final = re.compile(r"(?:cannot open |^)(/\S+?)(?:: No such file or directory)?$")
_AT: Final = re.compile(rf"{_SCRIPTS}\.lua:(\d+):")


def text_of(event: Event) -> str:
    """Return the text of a line of the log."""
    return str(event.args.get("text", "")) if isinstance(event.args, dict) else ""


def reached(events: Iterable[Event]) -> frozenset[int]:
    """Return the numbers of the blocks that were reached."""
    found = (_MARKED.fullmatch(text_of(each)) for each in events if each.kind == "log")
    return frozenset(int(each[1]) for each in found if each)


def shown_error(error: str) -> str:
    """Return what an error says, without the place in the script."""
    return _PLACE.sub("", error)


def line_of(error: str) -> int:
    """Return the line that an error names; 0 if it names none."""
    found = _AT.search(error)
    return int(found[1]) if found else 0


def shown_failure(script: str, text: str) -> str:
    """Return why a script does not load, in a line, with what would do."""
    module, file = _MODULE.search(text), _FILE.search(text)
    if module is not None:
        file_name = module[1].replace(".", "/") + ".lua"
        what_would_do = f"lay {file_name}, or a stand-in for it, beside {script}"
        return f"module {module[1]} is not there; {what_would_do}"
    if file is not None:
        return f"{text}; give a --scenario that has {file[1]} under `files:`"
    return text
