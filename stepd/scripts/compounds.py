"""Compound commands: lists, conditions, loops, cases, groups, and functions as they are defined."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from simctl.stepd.scripts.arithmetic import ArithmeticMistake
from simctl.stepd.scripts.expand import (
    expand_pattern,
    expand_text,
    expand_words,
)
from simctl.stepd.scripts.judging import judge
from simctl.stepd.scripts.patterns import fits
from simctl.stepd.scripts.processes import Processes
from simctl.stepd.scripts.redirect import RedirectionError, open_files
from simctl.stepd.scripts.state import LoopJump
from simctl.stepd.scripts.tree import (
    AndOr,
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
    Redirected,
    Subshell,
    Time,
    While,
)
from simctl.stepd.scripts.variables import ReadonlyError

_US = 1_000_000


@attrs.define
class Compounds(Processes):
    """Runs what consists of other commands."""

    async def _and_or(self, command: AndOr, tested: bool) -> None:
        """Run each command whose turn the status before it makes it."""
        await self._execute(command.first, tested=True)
        last = command.rest[-1]
        for joined in command.rest:
            if (joined[0] == "&&") == (self.state.status == 0):
                await self._execute(joined[1], tested=tested or joined is not last)

    async def _not(self, command: Not, tested: bool) -> None:
        state = self.state
        await self._execute(command.command, tested=True)
        state.status = 0 if state.status else 1
        if isinstance(command.command, DoubleBracket | Calculate):
            state.statuses = (state.status,)

    async def _time(self, command: Time, tested: bool) -> None:
        """Run a pipeline and tell how long it took; nobody knows what of that a processor did."""
        state = self.state
        began_us, where = state.host.now_us(), state.streams.stderr
        try:
            await self._execute(command.command, tested=tested)
        finally:
            status = state.status
        took = state.host.now_us() - began_us
        if command.posix:
            told = f"real {took / _US:.2f}\nuser 0.00\nsys 0.00\n"
        else:
            shown = f"{took // (60 * _US)}m{took % (60 * _US) / _US:.3f}s"
            told = f"\nreal\t{shown}\nuser\t0m0.000s\nsys\t0m0.000s\n"
        await state.host.write(where, told)
        state.status = status

    async def _if(self, command: If, tested: bool) -> None:
        """Run the first branch whose condition succeeds."""
        for condition, body in command.branches:
            if await self.run_list(condition, tested=True) == 0:
                await self.run_list(body, tested=tested)
                return
        if command.otherwise:
            await self.run_list(command.otherwise, tested=tested)
        else:
            self.state.status = 0

    async def _while(self, command: While, tested: bool) -> None:
        """Repeat the body as the condition says."""

        async def goes_on() -> bool:
            status = await self.run_list(command.condition, tested=True)
            return (status == 0) != command.until

        await self._loop(goes_on, command.body, tested=tested)

    async def _for(self, command: For, tested: bool) -> None:
        """Repeat the body for each word, all of which are expanded first."""
        state = self.state
        state.line = command.line
        left = await expand_words(command.words, state)
        left.reverse()

        async def goes_on() -> bool:
            if not left:
                return False
            await self._show_text(f"for {command.name} in {command.shown}")
            state.assign(command.name, left.pop())
            return True

        try:
            await self._loop(goes_on, command.body, tested=tested)
        except ReadonlyError as error:
            await state.report(str(error))
            await self._end_command(1, tested=tested, trapped=False)

    async def _counting_for(self, command: CountingFor, tested: bool) -> None:
        """Repeat the body as three expressions say."""
        state = self.state
        state.line = command.line
        before = command.first
        value: int | None = 0

        async def goes_on() -> bool:
            nonlocal before, value
            for parts in (before, command.condition):
                # None at all counts as 1.
                text = (await expand_text(parts, state)).lstrip() or "1"
                if (value := await self._value(text)) is None:
                    return False
            before = command.step
            return value != 0

        await self._loop(goes_on, command.body, tested=tested)
        if value is None:
            state.status = 1

    async def _value(self, text: str) -> int | None:
        """Return the value of an expression; None if it has none, which is told."""
        state = self.state
        await self._show_text(f"(( {text} ))")
        try:
            return state.calculate(text)
        except ArithmeticMistake as error:
            await state.tell()
            await state.complain(str(error) and f"((: {error}")
            return None

    async def _loop(
        self, goes_on: Callable[[], Awaitable[bool]], body: tuple[Command, ...], *, tested: bool
    ) -> None:
        """Run *body* again and again; its last status is that of the loop."""
        state = self.state
        status = 0
        state.loops += 1
        try:
            while True:
                try:
                    if not await goes_on():
                        break
                    await self._count_turn()
                    status = await self.run_list(body, tested=tested)
                except LoopJump as jump:
                    status = state.status = 0
                    if jump.levels > 1:
                        raise LoopJump(jump.levels - 1, again=jump.again) from None
                    if not jump.again:
                        break
        finally:
            state.loops -= 1
        state.status = status

    async def _case(self, command: Case, tested: bool) -> None:
        """Run the branch whose pattern fits a word."""
        state = self.state
        state.line = command.line
        await self._show_text(f"case {command.shown} in")
        text = await expand_text(command.word.parts, state)
        extended = bool(state.options.get("extglob"))
        status, runs = 0, False
        for clause in command.clauses:
            if not runs:
                for pattern in clause.patterns:
                    if fits(text, await expand_pattern(pattern.parts, state), extended=extended):
                        runs = True
                        break
            if runs:
                status = await self.run_list(clause.body, tested=tested) if clause.body else 0
                if clause.end == ";;":
                    break
                runs = clause.end == ";&"
        state.status = status

    async def _group(self, command: Group | Line, tested: bool) -> None:
        await self.run_list(command.body, tested=tested)

    async def _double_bracket(self, command: DoubleBracket, tested: bool) -> None:
        """Judge ``[[ … ]]``."""
        self.state.line = command.line
        await self._end_command(
            await judge(command.test, self.state, self._show_test), tested=tested
        )

    async def _show_test(self, text: str) -> None:
        await self._show_text(f"[[ {text} ]]")

    async def _calculate(self, command: Calculate, tested: bool) -> None:
        """Judge ``(( … ))``."""
        state = self.state
        state.line = command.line
        value = await self._value(await expand_text(command.parts, state))
        await self._end_command(0 if value else 1, tested=tested)

    async def _function(self, command: Function, tested: bool) -> None:
        """Remember a function."""
        self.state.functions[command.name] = command
        self.state.status = 0

    async def _redirected(self, command: Redirected, tested: bool) -> None:
        """Run a compound command with streams of its own; a subshell opens its files itself."""
        state = self.state
        if isinstance(command.command, Subshell):
            await self._subshell(command.command, tested, command.redirections)
            return
        before, opened, lost = state.streams, len(state.opened), state.lost
        state.line = command.line
        try:
            state.streams = await open_files(command.redirections, state)
            state.lost = state.streams.lost(before) + lost
        except RedirectionError as error:
            await state.complain(str(error), before.stderr)
            await self._end_command(1, tested=tested)
            return
        try:
            await self._execute(command.command, tested=tested)
        finally:
            state.streams, state.lost = before, lost
            self._close_substituted(opened)
