"""What a running shell remembers: variables, options, traps, children, and how it is left."""

from __future__ import annotations

import attrs

from simctl.stepd.scripts.host import Redirects, ShellHost, Stream
from simctl.stepd.scripts.tree import Command


class ScriptExit(Exception):
    """Leave the script with *status*."""

    def __init__(self, status: int) -> None:
        """Keep what the eight bits of an exit status keep."""
        super().__init__(status)
        self.status = status & 255


class LoopJump(Exception):
    """Leave *levels* loops, and begin the outermost of them *again* or not."""

    def __init__(self, levels: int, *, again: bool) -> None:
        """Say how far."""
        super().__init__(levels, again)
        self.levels = levels
        self.again = again


class ExpansionError(Exception):
    """Say why a word has no value; the script ends."""


class AmbiguousTargetError(Exception):
    """Say that a redirection leads to no file or to several; its command is not run."""


@attrs.define
class Variables:
    """Hold the values of variables, and which of them programs see."""

    values: dict[str, str]
    exported: dict[str, bool] = attrs.field(factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the exported variables, in the order they were first set."""
        return {name: text for name, text in self.values.items() if self.exported.get(name)}

    def export(self, name: str) -> None:
        """Show *name* to programs from now on, also if its value comes later."""
        self.exported[name] = True

    def unset(self, name: str) -> None:
        """Forget *name*."""
        self.values.pop(name, "")
        self.exported.pop(name, False)

    def restore(self, name: str, before: Variables) -> None:
        """Make *name* what it was in *before*."""
        self.unset(name)
        if name in before.values:
            self.values[name] = before.values[name]
        if name in before.exported:
            self.exported[name] = before.exported[name]

    def copy(self) -> Variables:
        """Return a copy that lives on its own."""
        return Variables(dict(self.values), dict(self.exported))


@attrs.define(kw_only=True)
class ShellState:
    """Hold everything a builtin may read or change."""

    host: ShellHost
    name: str  # $0
    arguments: tuple[str, ...]  # $1 and so on
    variables: Variables
    options: tuple[str, ...] = ()  # of "e", "u" and "x"
    streams: Redirects = attrs.field(factory=Redirects)
    status: int = 0  # $?
    line: int = 0
    loops: int = 0  # how many stand around the present command
    last_child: int = 0  # $!, or 0 before the first
    running: list[int] = attrs.field(factory=list)  # background children not yet waited for
    ended: dict[int, int] = attrs.field(factory=dict)  # statuses of those that were
    traps: dict[int, tuple[Command, ...]] = attrs.field(factory=dict)
    trap_statuses: list[int] = attrs.field(factory=list)  # $? when each trap now running began

    def complain(self, message: str, stream: Stream) -> None:
        """Write an error line, which begins as bash's do."""
        self.host.write(stream, f"{self.name}: line {self.line}: {message}\n")

    def look_up(self, name: str) -> tuple[bool, str]:
        """Return whether a variable or special parameter is set, and its value or ""."""
        if name.isdigit():
            return self._positional(int(name[:9]))
        special = {
            "?": str(self.status),
            "#": str(len(self.arguments)),
            "$": str(self.host.pid),
            "!": str(self.last_child) if self.last_child else "",
            "@": " ".join(self.arguments),
            "*": " ".join(self.arguments),
        }
        if name in special:
            is_set = bool(self.arguments) if name in "@*" else name != "!" or self.last_child != 0
            return is_set, special[name]
        return name in self.variables.values, self.variables.values.get(name, "")

    def _positional(self, number: int) -> tuple[bool, str]:
        """Look up ``$0``, ``$1`` and so on."""
        if number == 0:
            return True, self.name
        is_set = number <= len(self.arguments)
        return is_set, self.arguments[number - 1] if is_set else ""
