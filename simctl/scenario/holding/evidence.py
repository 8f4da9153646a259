"""What a run has to show beside its events: files, outputs, environments, what plugins keep.

`Evidence` is what expectations of these are held against; a run gathers it, a trace has none.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from simctl.scenario.model import (
    AlwaysExpect,
    EnvironmentExpect,
    FileExpect,
    LookingExpect,
    OutputExpect,
    TextWanted,
)

NO_EVIDENCE: Final = (
    "a trace alone does not tell: files, outputs, environments and what plugins keep are "
    "looked at while the scenario runs; state this in its `expect:`"
)
_SHOWN_LINES: Final = 12


class Evidence(Protocol):
    """What can be asked of a run that is over."""

    def kept(self, wanted: AlwaysExpect) -> str:
        """Return where what a plugin keeps broke a rule; nothing if it never did."""

    def file(self, host: str, path: str) -> tuple[bytes, str] | None:
        """Return what a file holds and who owns it; None if there is no file."""

    def output(self, job: str, stream: str) -> str:
        """Return the path of a batch job's output; nothing if there is no such job."""

    def environments(self, step: str) -> Mapping[int, Mapping[str, str]]:
        """Return the environment that each task of a step had as its program began."""


def look_trouble(wanted: LookingExpect, evidence: Evidence | None) -> str:
    """Return what is wrong in a run with a file, an output, an environment or a plugin's state."""
    if evidence is None:
        return NO_EVIDENCE
    if isinstance(wanted, AlwaysExpect):
        return evidence.kept(wanted)
    if isinstance(wanted, FileExpect):
        return _file_trouble(wanted, evidence)
    if isinstance(wanted, OutputExpect):
        return _output_trouble(wanted, evidence)
    return _environment_trouble(wanted, evidence)


def _file_trouble(wanted: FileExpect, evidence: Evidence) -> str:
    there = evidence.file(wanted.host, wanted.path)
    if there is None:
        return "" if not wanted.exists else f"there is no file {wanted.path} on {wanted.host}"
    data, owner = there
    if not wanted.exists:
        return f"it is there, {len(data)} bytes, of {owner}"
    if wanted.owner and owner != wanted.owner:
        return f"its owner is {owner}, not {wanted.owner}"
    return text_trouble(wanted.wanted, data)


def _output_trouble(wanted: OutputExpect, evidence: Evidence) -> str:
    path = evidence.output(wanted.job, wanted.stream)
    if not path:
        return f"there is no batch job {wanted.job} that has started"
    there = evidence.file("login", path)
    if there is None:
        return f"there is no file {path}"
    return text_trouble(wanted.wanted, there[0])


def text_trouble(wanted: TextWanted, data: bytes) -> str:
    """Return what of a text is not as it is wanted, and the text."""
    text = data.decode(errors="backslashreplace")
    wrong = [f"{each!r} is not in it" for each in wanted.contains if each not in text]
    wrong += [f"{each!r} is in it" for each in wanted.lacks if each in text]
    if wanted.equals is not None and text != wanted.equals:
        wrong.append(f"it is not {wanted.equals!r}")
    if not wrong:
        return ""
    lines = text.splitlines()
    more = [f"... {len(lines) - _SHOWN_LINES} more lines"] if lines[_SHOWN_LINES:] else []
    said = [f"| {line}" for line in lines[:_SHOWN_LINES]] or ["it is empty"]
    return "\n".join([*wrong, *said, *more])


def _environment_trouble(wanted: EnvironmentExpect, evidence: Evidence) -> str:
    there = evidence.environments(wanted.step)
    if wanted.task is not None and wanted.task not in there:
        tasks = ", ".join(map(str, sorted(there))) or "none"
        return f"no task {wanted.task} of step {wanted.step} executed a program; tasks: {tasks}"
    if not there:
        return f"no task of step {wanted.step} executed a program"
    for task in sorted(there) if wanted.task is None else (wanted.task,):
        env = there[task]
        for name, value in wanted.has:
            if name not in env:
                return f"task {task} has no {name}"
            if value is not None and env[name] != value:
                return f"task {task} has {name}={env[name]!r}, not {value!r}"
        for name in wanted.lacks:
            if name in env:
                return f"task {task} has {name}={env[name]!r}"
    return ""
