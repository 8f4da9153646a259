"""The shell that runs a batch script: the tree of a script, walked in simulated time.

Whatever takes time or touches the world is asked of a `ShellHost`; what the host raises to end the
process passes through untouched, so that a shell that is killed does nothing more, not even its
EXIT trap. A subshell is another shell in a process of its own, which starts with a copy of the
state of this one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

import attrs

from simctl.stepd.scripts.calls import Calls
from simctl.stepd.scripts.expand import expand_pattern, expand_text
from simctl.stepd.scripts.state import ShellState
from simctl.stepd.scripts.tree import (
    AndOr,
    Background,
    Calculate,
    Case,
    Command,
    CountingFor,
    DoubleBracket,
    For,
    Function,
    Group,
    If,
    Line,
    Not,
    Pipeline,
    Redirected,
    Simple,
    Subshell,
    Time,
    While,
)
from simctl.stepd.scripts.variables import Variables


@attrs.define
class Shell(Calls):
    """Run one script, once; what it does between its beginning and its end is in the base classes.

    `progress` goes through the script, `processes` starts what runs beside the shell, `compounds`
    and `calls` run the kinds of commands.
    """

    runs: ClassVar[dict[type[Command], Callable[..., Awaitable[None]]]] = {
        Simple: Calls._simple,
        Background: Calls._background,
        Not: Calls._not,
        Time: Calls._time,
        Pipeline: Calls._pipeline,
        AndOr: Calls._and_or,
        If: Calls._if,
        While: Calls._while,
        For: Calls._for,
        CountingFor: Calls._counting_for,
        Case: Calls._case,
        Group: Calls._group,
        Line: Calls._group,
        Subshell: Calls._subshell,
        DoubleBracket: Calls._double_bracket,
        Calculate: Calls._calculate,
        Function: Calls._function,
        Redirected: Calls._redirected,
    }

    async def run(self) -> int:
        """Run the script and its EXIT trap, and return its exit status, 0 to 255."""
        self.state = ShellState(
            host=self.host,
            name="".join(self.args[:1]),
            source="".join(self.args[:1]),
            arguments=self.args[1:],
            variables=Variables.of(self.env),
            options=dict.fromkeys(self.script.options, True),
            streams=self.streams,
            shell_pid=self.host.pid,
            started_us=self.host.now_us(),
            capture=self._capture,
            expand_text=expand_text,
            expand_pattern=expand_pattern,
        )
        return await self._to_end(self.script.commands)
