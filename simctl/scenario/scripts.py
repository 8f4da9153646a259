"""Check the batch scripts a scenario submits, and the programs they and the timeline run."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from simctl.kernel.pattern import near
from simctl.scenario.model import Program
from simctl.scenario.positions import Reading, Value
from simctl.scenario.programs import file_key
from simctl.scenario.timeline.timeline import OTHER_COMMANDS
from simctl.stepd.scripts.header import passed_over, sbatch_options
from simctl.stepd.scripts.script import UNKNOWN, has_interpreter, parse, programs_used
from simctl.stepd.scripts.tools import is_tool, refusal
from simctl.wire.command_lines import after_options, operand

BUILT_IN: Final = ("sleep", "true", "false", "exit", "echo", "sh", "bash")
"""Programs that every node has, besides the tools."""

STARTERS: Final = ("srun", "srun_cr")
"""Commands that start a step of the program they are given."""

_SHELL_SCRIPT: Final = 2
"""Place of the commands in ``sh -c COMMANDS``."""

_NOT_FOUND: Final = 127
"""What a shell leaves with where there is no such program."""

_NO_ENTRY: Final = 2
"""What the task of a step leaves with: the number of execve's error."""

_SCRIPT_OPTIONS: Final = ("prolog", "epilog", "task-prolog", "task-epilog")
_HOME: Final = re.compile(r"/(?:root|home/[^/]+)/")
"""What a path of a scenario's file may begin with: all users have the files at home."""


def program(argv: Sequence[str]) -> str:
    """Return the program that a srun runs; empty where a file says what each task runs."""
    return "" if "--multi-prog" in argv else operand(argv)


def own_scripts(argv: Sequence[str]) -> list[str]:
    """Return the prologs and epilogs that a srun names; ``none`` asks for none."""
    found: list[str] = []
    for index, word in enumerate(argv):
        name, equals, path = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in _SCRIPT_OPTIONS:
            continue
        if not equals:
            path = argv[index + 1] if index + 1 < len(argv) else ""
        if path and path.lower() != "none":
            found.append(path)
    return found


def wrapped(argv: Sequence[str]) -> str:
    """Return the command that `sbatch --wrap` makes a script of, or nothing."""
    for index, word in enumerate(argv):
        if word.startswith("--wrap="):
            return word.removeprefix("--wrap=")
        if word == "--wrap" and index + 1 < len(argv):
            return argv[index + 1]
    return ""


@attrs.define(kw_only=True)
class ScriptCheck:
    """One walk over all scripts: those of slurm.conf, and those that the timeline leads to.

    `configured` are the prologs and epilogs that slurm.conf names, with their places;
    `written_later` the files that the timeline writes.
    """

    files: Mapping[str, Value]
    programs: Mapping[str, Program]
    reading: Reading
    configured: Sequence[tuple[Value, str]] = ()
    written_later: frozenset[str] = frozenset()
    _seen: dict[str, None] = attrs.field(factory=dict, init=False)
    _waiting: list[str] = attrs.field(factory=list, init=False)

    def run(self) -> None:
        """Note what lies outside the subset of sh, and warn of programs without a description."""
        for place, path in self.configured:
            self._warn(place, 0, _HOME.sub("", path, count=1) if _HOME.match(path) else path)
        for place, argv, fails in self.reading.runs:
            self._typed(place, argv)
            if not fails:
                self._check_usage(place, argv)
        while self._waiting:
            name = self._waiting.pop(0)
            self._script(self.files[name].scalar, self.files[name])

    def _typed(self, place: Value, argv: Sequence[str]) -> None:
        """Look at a command line of the timeline, or at one that salloc runs."""
        self._submitted(argv)
        if argv[0] == "sbatch" and wrapped(argv):
            self._script(wrapped(argv), place)
        elif argv[0] == "sbatch":
            self._look_for(place, operand(argv))
        elif argv[0] in STARTERS:
            self._warn(place, 0, program(argv), status=_NO_ENTRY)
            for path in own_scripts(argv):
                self._warn(place, 0, path)
        elif argv[0] == "salloc":
            self._allocated(place, after_options(argv))

    def _check_usage(self, place: Value, argv: Sequence[str]) -> None:
        """Note options that a command would refuse, those of the script it submits among them."""
        usage, reading = self.reading.usage, self.reading
        if usage is None:
            return
        slips = usage.of_line(argv)
        for slip in slips:
            reading.mistake(place, slip)
        # Behind an option that is unknown a script may be taken for its value.
        words = argv[1:] if slips else (operand(argv),)
        keys = [file_key(_HOME.sub("", each, count=1)) for each in words]
        there = [each for each in keys if each in self.files] if argv[0] == "sbatch" else []
        name = there[0] if there else ""
        if name in self.files and not wrapped(argv):
            text = self.files[name]
            for line, options in sbatch_options(text.scalar):
                for slip in usage.of_directive(options):
                    reading.mistake_in_block(text, line, 1, f"sbatch: {slip}")
            for line, why in passed_over(text.scalar):
                reading.warn_in_block(text, line, why)
        elif argv[0] == "salloc" and after_options(argv)[:1]:
            inner = after_options(argv)
            if inner[0] in reading.commands:
                self._check_usage(place, inner)

    def _allocated(self, place: Value, argv: Sequence[str]) -> None:
        """Look at the command of a salloc; one that a shell is to read is a script."""
        if argv and argv[0] in self.reading.commands:
            self._typed(place, argv)
        elif len(argv) > _SHELL_SCRIPT and argv[0] in ("sh", "bash") and argv[1] == "-c":
            self._script(argv[_SHELL_SCRIPT], place)
        elif argv:
            self._warn(place, 0, argv[0])

    def _look_for(self, place: Value, script: str) -> None:
        """Warn of a script that is no file of the scenario, nor of the timeline."""
        name = file_key(_HOME.sub("", script, count=1))
        there = {_HOME.sub("", each, count=1) for each in (*self.files, *self.written_later)}
        if name and name not in there:
            hint = near(name, [*self.files, *sorted(self.written_later)], cutoff=0.7)
            self.reading.warn(place, f"there is no file {script!r} in `files:`{hint}")

    def _submitted(self, argv: Sequence[str]) -> None:
        name = file_key(operand(argv)) if argv and argv[0] == "sbatch" else ""
        if name in self.files:
            self._read_later(name)

    def _read_later(self, name: str) -> None:
        if name not in self._seen:
            self._seen[name] = None
            self._waiting.append(name)

    def _script(self, text: str, place: Value) -> None:
        script, mistakes = parse(text)
        for mistake in mistakes:
            self.reading.mistake_in_block(place, mistake.line, mistake.column, mistake.message)
        if mistakes:
            return
        for line, name, argv, shape in programs_used(script):
            self._submitted(argv)
            if self.reading.usage is not None and argv and "$" not in "".join(argv):
                for slip in self.reading.usage.of_line(argv):
                    self.reading.warn_in_block(place, line, slip)
            if name in STARTERS:
                self._warn(place, line, program(shape), status=_NO_ENTRY)
                for path in own_scripts(argv):
                    self._warn(place, line, path)
                self._tool(place, line, after_options(shape))
            elif name not in self.reading.commands:
                self._warn(place, line, name)
                self._tool(place, line, shape)

    def _tool(self, place: Value, line: int, argv: Sequence[str]) -> None:
        """Note what a tool would refuse to do."""
        if argv and argv[0] not in self.programs and is_tool(argv[0]) and (why := refusal(argv)):
            self.reading.mistake_in_block(place, line, 1, why)

    def _warn(self, place: Value, line: int, name: str, status: int = _NOT_FOUND) -> None:
        """Warn of a program that will not be found; *line* is 0 outside of scripts."""
        if (
            not name
            or name == UNKNOWN
            or name in BUILT_IN
            or name in self.programs
            or is_tool(name)
        ):
            return
        if self._is_script(file_key(name)):
            self._read_later(file_key(name))
            return
        hint = near(name, list(self.programs), cutoff=0.7) or "; `programs:` can say what it does"
        what = f"nobody described {name!r}"
        if name in OTHER_COMMANDS:
            what = f"{name} is known to Slurm but not simulated yet"
        message = f"{what}: it ends with {status}{hint}"
        if line:
            self.reading.warn_in_block(place, line, message)
        else:
            self.reading.warn(place, message)

    def _is_script(self, name: str) -> bool:
        return name in self.files and has_interpreter(self.files[name].scalar)
