"""How a shell goes through its script: command after command, traps between them, up to an end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, NoReturn

import attrs

from simctl.limits import CALL_NESTING, LOOP_TURNS, SCRIPT_TURNS
from simctl.stepd.scripts.arithmetic import ArithmeticMistake
from simctl.stepd.scripts.expand import expand_text
from simctl.stepd.scripts.host import DeadlySignal, Redirects, ShellHost
from simctl.stepd.scripts.parser import parse_quoted
from simctl.stepd.scripts.patterns import PatternTooHeavyError
from simctl.stepd.scripts.printing import quoted
from simctl.stepd.scripts.redirect import RedirectionError, open_files
from simctl.stepd.scripts.state import (
    BoundError,
    EndingError,
    ExpansionError,
    LoopJump,
    ReportedExit,
    Returned,
    ScriptExit,
    ShellState,
    SkippedLine,
)
from simctl.stepd.scripts.tree import Command, Redirection, Script, Simple, Word
from simctl.stepd.scripts.variables import TooLongError
from simctl.stepd.signals import ERR_TRAP, EXIT_TRAP

ENDING = (EndingError, TooLongError, PatternTooHeavyError)
"""What ends the shell."""

_KILLING = ("kill", "builtin", "command")

BOUNDS = (BoundError, TooLongError, PatternTooHeavyError)
"""What of that says which bound is passed."""

SKIPPING = (ExpansionError, ArithmeticMistake, SkippedLine)
"""What skips the rest of a line, and ends a subshell."""


@attrs.define
class Progress:
    """Where a shell has come to, and what it does between commands.

    Args:
        script: a tree without mistakes.
        host: the process the shell is.
        args: ``$0``, with which error lines begin, ``$1`` and so on.
        env: the environment; the script starts with these variables, all exported.
        streams: what its descriptors are connected with.
        max_turns: the bound on loops; passing it ends the script with status 1.
    """

    runs: ClassVar[dict[type[Command], Callable[..., Awaitable[None]]]]
    """What runs each kind of command."""

    script: Script
    host: ShellHost
    args: tuple[str, ...] = attrs.field(default=("slurm_script",), kw_only=True)
    env: dict[str, str] = attrs.field(factory=dict, kw_only=True)
    streams: Redirects = attrs.field(factory=Redirects, kw_only=True)
    max_turns: int = attrs.field(default=LOOP_TURNS, kw_only=True)
    state: ShellState = attrs.field(init=False)
    tested: bool = attrs.field(init=False, default=False)
    """Whether somebody asks how the present command ends, so that ``set -e`` lets it be."""

    _deadly: int = attrs.field(init=False, default=0)  # a signal of which the shell dies
    _last: Command | None = attrs.field(init=False, default=None)
    """The simple command with which a subshell ends."""

    _turns: int = attrs.field(init=False, default=0)
    _depth: int = attrs.field(init=False, default=0)
    _pending: list[int] = attrs.field(init=False, factory=list)  # signals whose trap is due
    _trapping: list[int] = attrs.field(init=False, factory=list)  # signals whose trap runs

    async def _to_end(
        self, commands: tuple[Command, ...], redirections: tuple[Redirection, ...] = ()
    ) -> int:
        """Open the files of *redirections*, and run commands and the EXIT trap."""
        try:
            _, status = await self._until_left(commands, redirections)
            status = await self.leave(status)
            if self._deadly:
                self.host.die(self._deadly)
            return status
        finally:
            # It is this shell's own method: the two would hold each other.
            del self.state.capture

    async def leave(self, status: int) -> int:
        """Run the EXIT trap, if it has not run yet, and return the status to leave with."""
        state = self.state
        trap = state.traps.pop(EXIT_TRAP, None)
        if trap is None:
            return status
        self.host.set_trap(EXIT_TRAP, "default")
        state.status = status
        state.trap_statuses = [status]
        left, changed = await self._until_left(trap[1])
        return changed if left else status

    async def _until_left(
        self, commands: tuple[Command, ...], redirections: tuple[Redirection, ...] = ()
    ) -> tuple[bool, int]:
        """Run *commands*; say whether they left the script, and with which status they ended."""
        state = self.state
        try:
            if redirections:
                state.streams = await open_files(redirections, state)
                self.host.connect(state.streams)
            return False, await self._run_lines(commands)
        except ScriptExit as end:
            return True, end.status
        except Returned as end:
            return True, end.status
        except LoopJump:
            return True, 0
        except DeadlySignal as end:
            self._deadly = end.signal
            return True, state.status
        except (*BOUNDS, RedirectionError, EndingError, *SKIPPING) as error:
            await state.complain(str(error))
            # Such an error undoes the redirections around a subshell too, before its EXIT trap.
            for descriptor, stream in state.lost:
                state.streams = state.streams.put(descriptor, stream)
            return True, 1

    async def _run_lines(self, commands: tuple[Command, ...]) -> int:
        """Run the lines of a script; what cannot be expanded skips the rest of its line.

        A subshell ends by it.
        """
        state, tested = self.state, self.tested
        for command in commands:
            try:
                await self._execute(command, tested=tested)
            except ENDING:
                raise
            except SKIPPING as error:
                if state.level:
                    raise
                await state.complain(str(error))
                state.status, state.statuses = error.status, (error.status,)
        return state.status

    async def run_list(self, commands: tuple[Command, ...], *, tested: bool) -> int:
        """Run commands one after the other and return the last status.

        *tested* says that a failure is asked about, so that ``set -e`` lets it be.
        """
        for command in commands:
            await self._execute(command, tested=tested)
        return self.state.status

    async def _execute(self, command: Command, *, tested: bool) -> None:
        """Run one command; its status is then the state's."""
        if self._depth >= CALL_NESTING:
            await self.state.complain(
                f"more than {CALL_NESTING} commands of this script are under way in one another"
            )
            raise ScriptExit(1)
        self._depth += 1
        try:
            try:
                await self.runs[type(command)](self, command, tested)
            except SKIPPING:
                await self.state.tell()
                raise
        except DeadlySignal:
            # The trap runs where the signal came: with the streams, names and arguments there.
            if not self._dies_of_own_kill(command):
                await self.leave(self.state.status)
            self.state.traps.pop(EXIT_TRAP, None)
            raise
        except ReportedExit as end:
            raise ScriptExit(await self.leave(end.status)) from None
        finally:
            self._depth -= 1

    def _dies_of_own_kill(self, command: Command) -> bool:
        """Whether the shell ends by killing itself, which spares it the EXIT trap."""
        if command is not self._last or not isinstance(command, Simple):
            return False
        return isinstance(word := command.words[0], Word) and word.literal in _KILLING

    async def _end_command(
        self, status: int, *, tested: bool, trapped: bool = True, simple: bool = False
    ) -> None:
        """Note the status of a command, and leave the script if ``set -e`` asks for it.

        Without *trapped* there was no ERR trap when it began, and one that it has set is no matter.
        """
        state = self.state
        await state.tell()
        state.status = status
        state.statuses = (status,)
        if not status or tested:
            return
        if trapped and ERR_TRAP in state.traps:
            await self._run_trap(ERR_TRAP)
        if state.options.get("e"):
            await self._fail(simple=simple)

    async def _fail(self, *, simple: bool) -> NoReturn:
        """Leave the script where a command has failed; its EXIT trap sees no local variables.

        Of redirections a *simple* command leaves those of the innermost function or eval with any.
        """
        state = self.state
        scopes = state.variables.scopes
        local = [] if state.level else scopes[1:]
        del scopes[len(scopes) - len(local) :]
        for descriptor, stream in state.unwound if simple else ():
            state.streams = state.streams.put(descriptor, stream)
        try:
            raise ScriptExit(await self.leave(state.status))
        finally:
            scopes += local

    async def _count_turn(self) -> None:
        """Count a turn of a loop or trap, and end a script that takes too many."""
        self._turns += 1
        if self._turns > self.max_turns:
            await self.state.complain(
                f"the loops of this script took more than {self.max_turns} turns; it ends here"
            )
            raise ScriptExit(1)
        if not self.host.count_turn():
            told = f"all loops of this script and its processes took {SCRIPT_TURNS} turns"
            await self.state.complain(f"{told}; it ends here")
            raise ScriptExit(1)

    async def _run_traps(self) -> None:
        """Run the traps of the signals that arrived, but none inside itself."""
        self._pending += self.host.take_signals()
        due = [number for number in self._pending if number not in self._trapping]
        while due:
            self._pending.remove(due[0])
            await self._run_trap(due[0])
            self._pending += self.host.take_signals()
            due = [number for number in self._pending if number not in self._trapping]

    async def _run_trap(self, number: int) -> None:
        """Run the commands of one trap; the status is then what it was."""
        state = self.state
        if number not in state.traps or number in self._trapping:
            return
        await self._count_turn()
        self._trapping.append(number)
        state.trap_statuses.append(state.status)
        kept = state.statuses
        lost, state.lost = state.lost, ()
        try:
            self.tested = False
            await self._run_lines(state.traps[number][1])
        finally:
            self._trapping.remove(number)
            state.lost = lost
            status = state.trap_statuses.pop()
        state.status, state.statuses = status, kept

    async def _show(self, words: list[str] | tuple[str, ...], before: str = "") -> None:
        """Write the command that is about to run, if ``set -x`` asks for it."""
        if words:
            quoted_words = (quoted(word) for word in words if word or not before)
            await self._show_text(before + " ".join(quoted_words))

    async def _show_text(self, shown: str) -> None:
        """Write what is about to run as it is shown, if ``set -x`` asks for it."""
        state = self.state
        if state.options.get("x"):
            prompt = state.look_up("PS4") or ""
            if "$" in prompt or "`" in prompt:
                state.options["x"] = False
                try:
                    prompt = await expand_text(parse_quoted(prompt), state)
                except (*ENDING, *SKIPPING) as error:
                    await state.complain(str(error))
                finally:
                    state.options["x"] = True
            prompt = prompt[:1] * state.shown_level + prompt
            await self.host.write(state.streams.stderr, f"{prompt}{shown}\n")
