"""What a running shell remembers: variables, options, traps, children, and how it is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from simctl.limits import ASSIGNED_CHARACTERS
from simctl.stepd.scripts.arithmetic import ArithmeticMistake, evaluate, whole_number, wrap
from simctl.stepd.scripts.host import PipeEnd, Redirects, ShellHost, Stream
from simctl.stepd.scripts.tree import Command, Function, Part, Substitution
from simctl.stepd.scripts.variables import (
    Elements,
    Key,
    ReadonlyError,
    TooLongError,
    Variable,
    Variables,
    in_order,
)

SECOND_US = 1_000_000
BASH_VERSION = "5.2.15(1)-release"


class ScriptExit(Exception):
    """Leave the script with *status*."""

    def __init__(self, status: int) -> None:
        """Keep what the eight bits of an exit status keep."""
        super().__init__(status)
        self.status = status & 255


class ReportedExit(ScriptExit):
    """Leave the script where it stands, for an error of the shell's own."""


class LoopJump(Exception):
    """Leave *levels* loops, and begin the outermost of them *again* or not."""

    def __init__(self, levels: int, *, again: bool) -> None:
        """Say how far."""
        super().__init__(levels, again)
        self.levels = levels
        self.again = again


class Returned(Exception):
    """Leave a function, or a sourced file, with *status*."""

    def __init__(self, status: int) -> None:
        """Keep what the eight bits of an exit status keep."""
        super().__init__(status)
        self.status = status & 255


class ExpansionError(Exception):
    """Say why a word has no value; the rest of the line, or the subshell, is skipped."""

    status = 1


class EndingError(ExpansionError):
    """Say why the script ends: a value that must be there is not."""


class BoundError(EndingError):
    """Say which bound is passed; this ends the script wherever it happens."""


class SkippedLine(Exception):
    """Skip the rest of the line, with *status*; what is wrong has been said."""

    def __init__(self, status: int = 1) -> None:
        """Say nothing more."""
        super().__init__()
        self.status = status


class CommandError(Exception):
    """Say why a command could not even be begun; the script goes on, with status 1."""


class BadSubscriptError(ArithmeticMistake):
    """Say that a subscript counts back to before the first element."""


class AmbiguousTargetError(Exception):
    """Say that a redirection leads to no file or to several; its command is not run."""


@attrs.define(kw_only=True)
class Job:
    """What was put into the background: its pids, the last of which tells how it ended."""

    number: int
    pids: tuple[int, ...]
    text: str = ""
    told: bool = False
    leads: bool = False  # its first process leads a process group, as under `set -m`
    inherited: bool = False
    """Whether it is a job of the shell that forked this one, which cannot wait for it."""


@attrs.define(kw_only=True)
class Call:
    """A function, or a file that is sourced, while it runs."""

    name: str
    line: int
    source: str
    arguments: tuple[str, ...] | None = None  # those from before; None if they stay


@attrs.define(kw_only=True)
class ShellState:
    """Hold everything a builtin may read or change."""

    host: ShellHost
    name: str  # $0
    arguments: tuple[str, ...]  # $1 and so on
    variables: Variables
    options: dict[str, bool] = attrs.field(factory=dict)  # by letters, and by shopt's names
    streams: Redirects = attrs.field(factory=Redirects)
    lost: tuple[tuple[int, Stream], ...] = ()
    """What the redirections of compound commands and functions have put aside, innermost first."""

    unwound: tuple[tuple[int, Stream], ...] = ()
    """What the innermost function or eval with redirections has put aside."""

    shell_pid: int = 0  # $$, also in subshells
    level: int = 0  # how many subshells this is in
    status: int = 0  # $?
    statuses: tuple[int, ...] = (0,)  # PIPESTATUS
    substituted: int = -1  # the status of the last command substitution of a command
    line: int = 0
    shown_level: int = 0  # how many substitutions, evals and sourced files `set -x` tells of
    loops: int = 0  # how many stand around the present command
    calls: list[Call] = attrs.field(factory=list)
    functions: dict[str, Function] = attrs.field(factory=dict)
    aliases: dict[str, str] = attrs.field(factory=dict)
    last_child: int = 0  # $!, or 0 before the first
    jobs: list[Job] = attrs.field(factory=list)
    ended: dict[int, int] = attrs.field(factory=dict)  # statuses of children that were waited for
    traps: dict[int, tuple[str, tuple[Command, ...]]] = attrs.field(factory=dict)
    trap_statuses: list[int] = attrs.field(factory=list)  # $? when each trap now running began
    opened: list[tuple[int, PipeEnd]] = attrs.field(factory=list)  # of process substitutions
    lenient: bool = False  # in an eval and its kin that are tested, so that `set -e` does nothing
    untold: list[str] = attrs.field(factory=list)  # what arithmetic has passed over
    assigned: int = 0
    random: int | None = None
    started_us: int = 0
    source: str = ""
    limits: dict[str, str] = attrs.field(factory=dict)
    umask: int = 0o022
    option_place: int = 0  # where in a word getopts is
    last_argument: str = ""
    replaced: bool = False  # whether `set` has given arguments since a file was sourced
    capture: Callable[[Substitution], Awaitable[str]] = attrs.field(default=None)
    """Runs the commands of a substitution and returns what they wrote, or the path of a pipe."""

    expand_text: Callable[[tuple[Part, ...], ShellState], Awaitable[str]] = attrs.field(
        default=None
    )
    """Returns the one text that parts stand for."""

    expand_pattern: Callable[[tuple[Part, ...], ShellState], Awaitable[str]] = attrs.field(
        default=None
    )
    """Returns the pattern that parts stand for."""

    def copy(self, host: ShellHost) -> ShellState:
        """Return what a shell that is forked starts with."""
        return attrs.evolve(
            self,
            host=host,
            variables=self.variables.copy(),
            options=dict(self.options),
            calls=list(self.calls),
            functions=dict(self.functions),
            aliases=dict(self.aliases),
            jobs=[attrs.evolve(job, inherited=True) for job in self.jobs],
            ended=dict(self.ended),
            traps=dict(self.traps),
            trap_statuses=list(self.trap_statuses),
            opened=[],
            untold=[],
            limits=dict(self.limits),
            level=self.level + 1,
        )

    async def complain(self, message: str, stream: Stream | None = None) -> None:
        """Write an error line, which begins as bash's do; an empty *message* has been said."""
        where = self.streams.stderr if stream is None else stream
        if message:
            await self.host.write(where, f"{self.name}: line {self.line}: {message}\n")

    async def report(self, message: str, streams: Redirects | None = None) -> None:
        """Complain of an error of the shell's own: `set -e` ends it at once, tested or not.

        It leaves with ``$?``, if that is a failure. Errors of builtins and of arithmetic are not
        of that kind.
        """
        await self.complain(message, None if streams is None else streams.stderr)
        if self.options.get("e") and not self.lenient:
            self.streams = streams or self.streams
            raise ReportedExit(self.status or 1)

    async def tell(self, streams: Redirects | None = None) -> None:
        """Report what arithmetic has passed over."""
        while self.untold:
            await self.report(self.untold.pop(0), streams)

    # Variables.

    def look_up(self, name: str) -> str | None:
        """Return the value of a variable or special parameter; None if it is not set."""
        if name.isdecimal():
            number = int(name[:9])
            if number == 0:
                return self.name
            return self.arguments[number - 1] if number <= len(self.arguments) else None
        if name in _SPECIAL:
            return _SPECIAL[name](self)
        found = self.variables.find(name)
        if found is None or found.value is None:
            dynamic = _DYNAMIC.get(name)
            return dynamic(self) if dynamic is not None else None
        return found.text

    def elements(self, name: str) -> Elements | None:
        """Return the elements of an array, in order; None if nothing is set."""
        if name in _ARRAYS:
            return {**dict(enumerate(_ARRAYS[name](self)))}
        found = self.variables.find(name)
        if found is None or found.value is None:
            text = self.look_up(name)
            return None if text is None else {0: text}
        if isinstance(found.value, dict):
            if found.keyed:
                return in_order(found.value)
            return {key: found.value[key] for key in sorted(found.value, key=int)}
        return {0: found.value}

    def assign(self, name: str, text: str, key: Key | None = None, *, append: bool = False) -> None:
        """Give a variable, or an element, a value or more of it.

        Raises:
            ReadonlyError, TooLongError, ArithmeticMistake: It cannot have it.
        """
        if name == "RANDOM" and key is None:
            self.random = int(text) if text.isdecimal() else 0
            return
        if name == "SECONDS" and key is None:
            moment = int(text) if text.isdecimal() else 0
            self.started_us = self.host.now_us() - moment * SECOND_US
            return
        variable = self.variables.make(name)
        if variable.readonly:
            raise ReadonlyError(f"{name}: readonly variable")
        if name == "OPTIND":
            self.option_place = 0
        before = self._before(variable, key) if append else ""
        if variable.integer:
            try:
                number = self.calculate(text)
            except ArithmeticMistake as error:
                error.status = self.status or 1
                raise
            text = str(wrap(self.calculate(before or "0") + number) if append else number)
        else:
            text = before + text
        self.assigned += len(text)
        if self.assigned > ASSIGNED_CHARACTERS:
            raise TooLongError(f"values of more than {ASSIGNED_CHARACTERS} characters in all")
        self.variables.store(variable, name, text, key)

    @staticmethod
    def _before(variable: Variable, key: Key | None) -> str:
        if key is None:
            return variable.text or ""
        if isinstance(variable.value, dict):
            return variable.value.get(key, "")
        return (variable.value or "") if key == 0 else ""

    def calculate(self, text: str) -> int:
        """Return the value of an arithmetic expression.

        Raises:
            ArithmeticMistake, ExpansionError: It has none.
        """
        return evaluate(text, self._number_text, self._store_number)

    def key_of(self, name: str, subscript: str) -> Key:
        """Return the key that a subscript, its expansions done, means in an array.

        Raises:
            ArithmeticMistake: It is no number where one is needed.
        """
        found = self.variables.find(name)
        if found is not None and found.keyed:
            return subscript
        number = self.calculate(subscript)
        if number < 0:
            values = self.elements(name) or {}
            number += max((int(key) for key in values), default=-1) + 1
            if number < 0:
                raise BadSubscriptError(f"{name}[{subscript}]: bad array subscript")
        return number

    def _number_text(self, name: str, subscript: str | None) -> str:
        value = self.look_up(name) if subscript is None else None
        # An array that is there may lack the element.
        if value is None and self.options.get("u") and self.elements(name) is None:
            raise EndingError(f"{name}: unbound variable")
        if subscript is not None:
            try:
                value = (self.elements(name) or {}).get(self.key_of(name, subscript))
            except BadSubscriptError:
                self.untold.append(f"{name}: bad array subscript")
            except ArithmeticMistake as error:
                raise ExpansionError(str(error)) from None
        return value or ""

    def _store_number(self, name: str, subscript: str | None, value: int) -> None:
        try:
            key = None if subscript is None else self.key_of(name, subscript)
        except BadSubscriptError as error:
            self.untold.append(str(error))
        except ArithmeticMistake as error:
            raise ExpansionError(str(error)) from None
        else:
            try:
                self.assign(name, str(value), key)
            except ReadonlyError as error:
                self.untold.append(str(error))
                raise ArithmeticMistake from None

    @property
    def separators(self) -> str:
        """IFS, at whose characters values are split."""
        found = self.variables.find("IFS")
        return " \t\n" if found is None or found.value is None else str(found.text or "")

    def next_random(self) -> int:
        """Return the next value of RANDOM, by the rule of bash 5.1 and later."""
        if self.random is None:
            self.random = int(self.host.facts()["SEED"])
        seed = self.random or 123459876
        self.random = (16807 * (seed % 127773) - 2836 * (seed // 127773)) % 2147483647
        return (self.random ^ (self.random >> 16)) & 32767

    def seconds(self) -> int:
        """Return for how many seconds the shell has run."""
        return (self.host.now_us() - self.started_us) // SECOND_US


def _flags(state: ShellState) -> str:
    return "".join(each for each in "efhmuxBE" if state.options.get(each, each in "hB"))


def _fact(name: str) -> Callable[[ShellState], str | None]:
    return lambda state: state.host.facts().get(name)


_SPECIAL: dict[str, Callable[[ShellState], str | None]] = {
    "?": lambda state: str(state.status),
    "#": lambda state: str(len(state.arguments)),
    "$": lambda state: str(state.shell_pid),
    "!": lambda state: str(state.last_child) if state.last_child else None,
    "@": lambda state: " ".join(state.arguments) if state.arguments else None,
    "*": lambda state: " ".join(state.arguments) if state.arguments else None,
    "-": _flags,
}

_DYNAMIC: dict[str, Callable[[ShellState], str | None]] = {
    "RANDOM": lambda state: str(state.next_random()),
    "SECONDS": lambda state: str(state.seconds()),
    "EPOCHSECONDS": lambda state: str(state.host.now_us() // SECOND_US),
    "EPOCHREALTIME": lambda state: (
        f"{state.host.now_us() // SECOND_US}.{state.host.now_us() % SECOND_US:06d}"
    ),
    "LINENO": lambda state: str(state.line),
    "BASHPID": lambda state: str(state.host.pid),
    "BASH_SUBSHELL": lambda state: str(state.level),
    "PIPESTATUS": lambda state: str(state.statuses[0]),
    "FUNCNAME": lambda state: next(iter(_function_names(state)), None),
    "BASH_SOURCE": lambda state: next(iter(_sources(state)), None),
    "BASH_VERSINFO": lambda state: "5",
    "_": lambda state: state.last_argument,
    "HOSTNAME": _fact("HOSTNAME"),
    "UID": _fact("UID"),
    "EUID": _fact("UID"),
    "GROUPS": _fact("UID"),
    "PPID": _fact("PPID"),
    "PATH": lambda state: "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
    "BASH": lambda state: "/bin/bash",
    "SHELL": lambda state: "/bin/bash",
    "BASH_VERSION": lambda state: BASH_VERSION,
    "OSTYPE": lambda state: "linux-gnu",
    "HOSTTYPE": lambda state: "x86_64",
    "MACHTYPE": lambda state: "x86_64-pc-linux-gnu",
    "OPTIND": lambda state: "1",
    "OPTERR": lambda state: "1",
    "IFS": lambda state: " \t\n",
    "PS4": lambda state: "+ ",
    "SHLVL": lambda state: "1",
}
"""What a shell knows without being told; what a script assigns takes its place."""


def _function_names(state: ShellState) -> list[str]:
    names = [call.name for call in reversed(state.calls)]
    return [*names, "main"] if names else []


def _sources(state: ShellState) -> list[str]:
    return [*(call.source for call in reversed(state.calls)), state.name]


_ARRAYS: dict[str, Callable[[ShellState], list[str]]] = {
    "PIPESTATUS": lambda state: [str(status) for status in state.statuses],
    "FUNCNAME": _function_names,
    "BASH_SOURCE": _sources,
    "BASH_VERSINFO": lambda state: ["5", "2", "15", "1", "release", "x86_64-pc-linux-gnu"],
}

__all__ = [
    "AmbiguousTargetError",
    "BadSubscriptError",
    "BoundError",
    "Call",
    "CommandError",
    "EndingError",
    "ExpansionError",
    "Job",
    "LoopJump",
    "Returned",
    "ScriptExit",
    "ShellState",
    "SkippedLine",
    "whole_number",
]
