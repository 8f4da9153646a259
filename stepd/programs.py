"""What simulated executables do."""

import errno
import os
import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import attrs

from simctl.kernel.disk import DiskView
from simctl.kernel.procs import Process, wait_status
from simctl.site import CommandCall, User
from simctl.stepd.image_file import ImageError, ScriptState, State
from simctl.stepd.outcome import NEVER_US, ProgramRun
from simctl.stepd.scripts import script
from simctl.stepd.scripts.tools import TOOLS, is_tool
from simctl.stepd.scripts.tree import Script
from simctl.wire.ids import SECOND

Describe = Callable[[int, random.Random], ProgramRun]
"""Gives what a described program does in the task of a rank."""

CHECKPOINT_HELPER: Final = "cr_checkpoint.sh"
"""Saves a process into an image: ``cr_checkpoint.sh PID IMAGE``."""

RESTART_HELPER: Final = "cr_restart.sh"
"""Becomes the process of an image: ``cr_restart.sh IMAGE``."""

NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SLEEP: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_SHELLS: Final = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/usr/bin/sh"})


_NO_SCRIPT: Final = Script(commands=())


@attrs.frozen(kw_only=True)
class ScriptRun:
    """A program that is a script: its text, the tree of it, and its arguments from ``$0`` on.

    A *tool* that stands in for a program has its name in place of a script.
    """

    text: str = ""
    script: Script = _NO_SCRIPT
    argv: tuple[str, ...]
    tool: str = ""


class TaskHost(Protocol):
    """What runs the program of a task where that is more than a time and a status known ahead."""

    def signal(self, number: int, *, children: bool) -> None:
        """Take a signal; with *children* what it has started gets it as well."""

    @property
    def has_children(self) -> bool:
        """Return whether something may be left that it has started, and that has to be killed."""

    def kill_children(self) -> None:
        """Kill what it has started, save sruns: these end by themselves, told that the job does."""

    def commands(self) -> "list[CommandCall]":
        """Return the commands of Slurm's that it has under way."""

    def pause(self) -> None:
        """Stop while an image is written."""

    def unpause(self) -> None:
        """Go on after that."""

    def state(self, memories: Mapping[int, Any]) -> State:
        """Return what an image holds.

        Raises:
            ImageError: It cannot be saved.
        """


@attrs.frozen(kw_only=True)
class OutsideTask:
    """A task whose program runs outside of the simulation: what that is given.

    `write` takes a file descriptor (1 or 2) and what it wrote; `ended` its wait status. Both are
    called in turns of their own. `std_out` and `std_err` are files that it opens by itself, empty
    where `write` takes all it writes. `stdin` is what it finds on its standard input, which so many
    tasks as `readers` read.
    """

    process: Process
    argv: tuple[str, ...]
    env: dict[str, str]
    user: User
    work_dir: str
    batch: bool
    stdin: str
    readers: int
    write: Callable[[int, str], None]
    ended: Callable[[int], None]
    std_out: str = ""
    std_err: str = ""


@attrs.frozen(kw_only=True)
class OutsideRun:
    """A program that runs outside of the simulation; `start` sets it going."""

    start: Callable[[OutsideTask], TaskHost]


@attrs.define
class Input:
    """What is left to be read on a standard input, which processes share."""

    text: str = ""

    def take(self) -> str:
        """Read all of it: nothing is left for others."""
        text, self.text = self.text, ""
        return text


def _nobody() -> None:
    """Do nothing."""


class Programs:
    """Finds what a command line runs: described programs, built-in ones, scripts in files."""

    outside = False
    """Whether the programs of tasks may run outside of the simulation."""

    def __init__(self, described: Mapping[str, Describe], chance: random.Random) -> None:
        self._described = dict(described)
        self._chance = chance
        self.seed = 0
        """The run's, from which the RANDOM of shells comes."""

        self.drawn: Callable[[], None] = _nobody
        """Told whenever what a described program does may have been drawn by chance."""

    def describe(self, name: str, description: Describe) -> None:
        """Say from now on what the program of a name does."""
        self._described[name] = description

    def find(
        self, argv: tuple[str, ...], rank: int, files: DiskView, stdin: Input | None = None
    ) -> ProgramRun | ScriptRun:
        """Return what *argv* does as the task of *rank*; the unknown ends with 127.

        *files* are those of the process that executes it: its host, its user, where it stands.
        Without *stdin* it is connected with a stream, as in a script; what reads a *stdin* that is
        given does so at once.
        """
        name = argv[0] if argv else ""
        describe = self._description(name)
        if describe is not None:
            self.drawn()
            return describe(rank, self._chance)
        known = name.rsplit("/", 1)[-1] if name.startswith("/") else name
        builtin = _BUILT_IN.get(known)
        if builtin is not None:
            return builtin(argv)
        if known == "hostname" and len(argv) == 1:
            return ProgramRun(runs_us=0, output=files.host + "\n")
        if known == "cat" and stdin is not None:
            return _cat(argv, files, stdin)
        if self.helper(name, files):
            problem = f"{known}: simctl runs it for checkpoint plugins in slurmstepd alone\n"
            return ProgramRun(runs_us=0, status=wait_status(1), error=problem)
        if name in _SHELLS:
            return _shell(argv, files, stdin)
        text = files.find_text(name)
        if text is not None and script.has_interpreter(text):
            return read_script(text, argv)
        if is_tool(name):
            return ScriptRun(argv=argv, tool=known)
        is_dir = "/" in name and files.is_dir(name)
        if is_dir or (text is not None and "/" in name):
            # What lies there without an interpreter is nothing to be executed.
            return ProgramRun(
                runs_us=0,
                status=wait_status(_NOT_EXECUTABLE),
                error=f"{name}: {'Is a directory' if is_dir else 'Permission denied'}\n",
                exec_errno=errno.EACCES,
            )
        problem = "No such file or directory" if "/" in name else "command not found"
        return ProgramRun(
            runs_us=0,
            status=wait_status(NOT_FOUND),
            error=f"{name}: {problem}\n",
            exec_errno=errno.ENOENT if text is None else errno.EACCES,
        )

    def of_task(
        self,
        argv: tuple[str, ...],
        rank: int,
        files: DiskView,
        stdin: Input | None = None,
        *,
        searches: bool = True,
    ) -> ProgramRun | ScriptRun | OutsideRun:
        """Return what *argv* does as a task of a job; `searches` tells whether there is a PATH."""
        return (self.find if searches else self.none)(argv, rank, files, stdin)

    def _description(self, name: str) -> Describe | None:
        """Return what was said of a program, by its name or its path."""
        found = self._described.get(name)
        if found is None and not name.startswith("/"):
            found = self._described.get(name.removeprefix("./"))
        return found

    def helper(self, name: str, files: DiskView) -> str:
        """Return which helper of checkpoints a program is, or "".

        One that is described, or that lies there as a file, is what is there instead.
        """
        base = name.rsplit("/", 1)[-1]
        if base not in (CHECKPOINT_HELPER, RESTART_HELPER) or self._description(name) is not None:
            return ""
        return "" if files.find_text(name) is not None else base

    def lacks(self, argv: tuple[str, ...], files: DiskView) -> bool:
        """Return whether there is nothing that *argv* could execute."""
        if self._description(argv[0]) is not None:
            return False
        run = self.find(argv, 0, files)
        return isinstance(run, ProgramRun) and bool(run.exec_errno)

    def none(
        self, argv: tuple[str, ...], rank: int, files: DiskView, stdin: Input | None = None
    ) -> ProgramRun | ScriptRun:
        """Return what *argv* does without a PATH: what is named by its path runs, nothing else."""
        if "/" in argv[0]:
            return self.find(argv, rank, files, stdin)
        return ProgramRun(runs_us=0, exec_errno=errno.ENOENT)


class OutsidePrograms(Programs):
    """Programs of a cluster whose tasks run outside of the simulation, save those described."""

    outside = True

    def __init__(
        self,
        described: Mapping[str, Describe],
        chance: random.Random,
        start: Callable[[OutsideTask], TaskHost],
    ) -> None:
        super().__init__(described, chance)
        self._run = OutsideRun(start=start)

    def of_task(
        self,
        argv: tuple[str, ...],
        rank: int,
        files: DiskView,
        stdin: Input | None = None,
        *,
        searches: bool = True,
    ) -> ProgramRun | ScriptRun | OutsideRun:
        """Return what *argv* does as a task of a job."""
        if self._description(argv[0]) is not None:
            return self.find(argv, rank, files, stdin)
        return self._run


def _cat(argv: tuple[str, ...], files: DiskView, stdin: Input) -> ProgramRun:
    """Show files, among which ``-``, or no file at all, is the standard input."""
    output, errors = [], []
    for path in argv[1:] or ("-",):
        try:
            text = stdin.take() if path == "-" else files.read(path).decode(errors="replace")
            output.append(text)
        except OSError as error:
            errors.append(f"cat: {path}: {error.strerror}\n")
    return ProgramRun(
        runs_us=0,
        status=wait_status(1 if errors else 0),
        output="".join(output),
        error="".join(errors),
    )


def _shell(argv: tuple[str, ...], files: DiskView, stdin: Input | None) -> ProgramRun | ScriptRun:
    words = argv[1:]
    flags = ""
    while words and _FLAGS.fullmatch(words[0]):
        flags += words[0][1:]
        words = words[1:]
    if words[:1] == ("--",):
        words = words[1:]
    if "c" in flags:
        words = ("-c", *words)
    flags = "".join(letter for letter in flags if letter in "eux")
    run = _shell_run(argv, words, files, stdin)
    if isinstance(run, ScriptRun) and flags and not run.tool:
        options = tuple(dict.fromkeys((*run.script.options, *flags)))
        return attrs.evolve(run, script=attrs.evolve(run.script, options=options))
    return run


_FLAGS: Final = re.compile("-[euxlci]+")


def _shell_run(
    argv: tuple[str, ...], words: tuple[str, ...], files: DiskView, stdin: Input | None
) -> ProgramRun | ScriptRun:
    match words:
        case ("-c", text, *rest):
            return read_script(text, (rest[0] if rest else argv[0], *rest[1:]))
        case () | ("-s", *_) if stdin is None:
            return ScriptRun(argv=(argv[0], *words[1:]), tool="bash")
        case () if stdin is not None and stdin.text:
            return read_script(stdin.take(), (argv[0],))
        case (path, *rest) if not path.startswith("-"):
            try:
                return read_script(files.read(path).decode(errors="replace"), (path, *rest))
            except OSError as error:
                problem = f"{argv[0]}: {path}: {error.strerror}\n"
                return ProgramRun(runs_us=0, status=wait_status(NOT_FOUND), error=problem)
    problem = f"{argv[0]}: simctl runs `{argv[0]} -c COMMANDS` and `{argv[0]} FILE`\n"
    return ProgramRun(runs_us=0, status=wait_status(2), error=problem)


def not_executed(run: ProgramRun, name: str, node: str) -> ProgramRun:
    """Return what becomes of a task that cannot execute its program: why, as its exit status."""
    why = os.strerror(run.exec_errno)
    return ProgramRun(
        runs_us=0,
        status=wait_status(run.exec_errno),
        error=f"slurmstepd-{node}: error: execve(): {name}: {why}\n",
    )


def read_script(text: str, argv: tuple[str, ...]) -> ProgramRun | ScriptRun:
    """Return what a script does; one with mistakes tells them and ends with 2."""
    tree, mistakes = script.parse(text)
    if mistakes:
        told = "".join(f"{argv[0]}: line {each.line}: {each.message}\n" for each in mistakes)
        return ProgramRun(runs_us=0, status=wait_status(2), error=told)
    return ScriptRun(text=text, script=tree, argv=argv)


def script_of(state: ScriptState) -> ScriptRun | None:
    """Return what the script or tool of an image is; None of a subshell, which is its parent's.

    Raises:
        ImageError: No shell could read it.
    """
    if state.forked:
        return None
    if state.tool:
        if state.tool not in TOOLS:
            raise ImageError(f"its tool {state.tool} is not known")
        return ScriptRun(argv=state.argv, tool=state.tool)
    run = read_script(state.text, state.argv)
    if not isinstance(run, ScriptRun):
        raise ImageError("its script cannot be read")
    return run


def _sleep(argv: tuple[str, ...]) -> ProgramRun:
    total = 0.0
    for word in argv[1:]:
        if word in ("inf", "infinity"):
            return ProgramRun(runs_us=NEVER_US)
        match = _SLEEP.fullmatch(word)
        if match is None:
            problem = f"sleep: invalid time interval '{word}'\n"
            return ProgramRun(runs_us=0, status=wait_status(1), error=problem)
        total += float(match[1]) * _UNITS[match[2]]
    if len(argv) == 1:
        return ProgramRun(runs_us=0, status=wait_status(1), error="sleep: missing operand\n")
    return ProgramRun(runs_us=round(total * SECOND))


def _echo(argv: tuple[str, ...]) -> ProgramRun:
    if argv[1:2] == ("-n",):
        return ProgramRun(runs_us=0, output=" ".join(argv[2:]))
    return ProgramRun(runs_us=0, output=" ".join(argv[1:]) + "\n")


def _exit(argv: tuple[str, ...]) -> ProgramRun:
    code = int(argv[1]) if len(argv) > 1 and argv[1].isdecimal() else 0
    return ProgramRun(runs_us=0, status=wait_status(code))


_BUILT_IN: Final[Mapping[str, Callable[[tuple[str, ...]], ProgramRun]]] = {
    "sleep": _sleep,
    "echo": _echo,
    "exit": _exit,
    "true": lambda _: ProgramRun(runs_us=0),
    "false": lambda _: ProgramRun(runs_us=0, status=wait_status(1)),
}
