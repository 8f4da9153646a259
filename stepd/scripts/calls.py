"""Simple commands as they run: assignments, builtins, functions, programs and sourced files."""

from __future__ import annotations

import attrs

from simctl.stepd.scripts.assigning import Declared, assign, begin_array, declared
from simctl.stepd.scripts.builtins import BUILTIN_COMMANDS
from simctl.stepd.scripts.compounds import Compounds
from simctl.stepd.scripts.expand import expand_word
from simctl.stepd.scripts.host import Redirects
from simctl.stepd.scripts.processes import changes_nothing, last_of
from simctl.stepd.scripts.progress import BOUNDS, ENDING, SKIPPING
from simctl.stepd.scripts.redirect import RedirectionError, open_files, parts_of
from simctl.stepd.scripts.state import (
    BadSubscriptError,
    Call,
    Returned,
    ScriptExit,
    SkippedLine,
)
from simctl.stepd.scripts.tree import (
    Assignment,
    Command,
    Simple,
    Word,
)
from simctl.stepd.scripts.variables import ReadonlyError, Scope
from simctl.stepd.signals import ERR_TRAP

_WEIGHT_OF_TEXT = 3
"""How many commands in one another a text counts for that is read while the script runs."""

_LENIENT = ("eval", "source", ".", "command")
"""In which `set -e` does nothing at all while somebody asks how they end."""


@attrs.define
class Calls(Compounds):
    """Runs simple commands."""

    async def _simple(self, command: Simple, tested: bool) -> None:
        """Run a builtin, a function or a program, or only assign."""
        state = self.state
        state.line = command.line
        state.substituted = -1
        opened = len(state.opened)
        trapped = ERR_TRAP in state.traps
        streams = state.streams
        self.tested = tested
        try:
            words = await self._arguments(command.words)
            if not words:
                await self._assign(command.assignments)
            elif command is self._last and str(words[0]) in state.functions:
                self._last = last_of((state.functions[str(words[0])].body,))
            streams = await self._opened(command, words)
            for number, end in state.opened[opened:]:
                streams = streams.put(number, end)
            status = await self._call(command.assignments, words, streams, tested=tested)
            await state.tell(streams)
        except RedirectionError as error:
            await state.complain(str(error))
            status = error.status
        except (BadSubscriptError, ReadonlyError) as error:
            await state.report(str(error), streams)
            if not command.words:
                raise SkippedLine from None
            status = 1
        self._close_substituted(opened)
        state.status = status
        await self._run_traps()
        await self._end_command(status, tested=tested, trapped=trapped, simple=True)

    async def _opened(self, command: Simple, words: list[str | Declared]) -> Redirects:
        """Open the files of a simple command.

        Those of a program are opened by its process: what goes wrong ends that alone, and
        variables that are set meanwhile stay as they were.
        """
        state = self.state
        name = next((str(word) for word in words if str(word) != "command"), "")
        if not name or name in state.functions or name in BUILTIN_COMMANDS:
            return await open_files(command.redirections, state)
        parts = [part for each in command.redirections for part in parts_of(each)]
        if not all(map(changes_nothing, parts)):
            opened, state = state.opened, state.copy(state.host)
            state.opened = opened
        try:
            return await open_files(command.redirections, state)
        except BOUNDS:
            raise
        except (*ENDING, *SKIPPING) as error:
            raise RedirectionError(str(error)) from None
        except ScriptExit as end:
            raise RedirectionError("", end.status) from None

    async def _arguments(self, words: tuple[Word | Assignment, ...]) -> list[str | Declared]:
        """Expand the words of a command."""
        found: list[str | Declared] = []
        for word in words:
            if isinstance(word, Assignment):
                found.append(await declared(word, self.state))
            else:
                found += await expand_word(word, self.state)
        return found

    async def _call(
        self,
        assignments: tuple[Assignment, ...],
        words: list[str | Declared],
        streams: Redirects,
        *,
        tested: bool,
    ) -> int:
        """Run *words* with *assignments* that only it sees."""
        state = self.state
        if not words:
            return max(state.substituted, 0)
        if not assignments:
            return await self._perform(words, streams, tested=tested)
        scopes = state.variables.scopes
        scopes.append(Scope(passing=True))
        mark = scopes[-1]
        try:
            for assignment in assignments:
                await self._pass(assignment)
            return await self._perform(words, streams, tested=tested)
        finally:
            if mark in scopes:
                del scopes[next(place for place, each in enumerate(scopes) if each is mark)]

    async def _assign(self, assignments: tuple[Assignment, ...]) -> None:
        """Assign, where no command stands behind the assignments."""
        state = self.state
        for assignment in assignments:
            begin_array(assignment, state)
            shown, sign = assignment.shown, "+" * assignment.append + "="
            if assignment.elements is not None:
                await self._show_text(f"{assignment.name}{sign}({shown})")
            given = await declared(assignment, state)
            if given.text is not None:
                place = "" if assignment.subscript is None else f"[{shown}]"
                await self._show((given.text,), before=f"{assignment.name}{place}{sign}")
            await assign(given, state)

    async def _perform(
        self, words: list[str | Declared], streams: Redirects, *, tested: bool
    ) -> int:
        """Run a function, a builtin or a program."""
        state = self.state
        texts = [str(word) for word in words]
        state.last_argument = texts[-1]
        if state.options.get("x"):
            for word in words:
                if isinstance(word, Declared) and word.elements is not None:
                    await self._show_text(word.shown)
            await self._show([_named(word) for word in words])
            for word in words if texts[0] in ("export", "readonly") else ():
                if isinstance(word, Declared) and word.text is not None:
                    await self._show((word.text,), before=f"{word.name}=")
        if texts[0] in state.functions:
            return await self.call_function(texts, streams, tested=tested)
        kept = state.lenient
        # What `builtin` names is not among them.
        state.lenient = kept or (tested and texts[0] in _LENIENT)
        try:
            return await self.perform_command(texts, streams, words[1:])
        finally:
            state.lenient = kept

    async def perform_command(
        self, texts: list[str], streams: Redirects, arguments: list[str | Declared] | None = None
    ) -> int:
        """Run a builtin or a program, though a function may have its name."""
        builtin = BUILTIN_COMMANDS.get(texts[0])
        if builtin is not None:
            return await builtin(self, arguments or [*texts[1:]], streams)
        return await self.host.run(tuple(texts), self.state.variables.environment(), streams)

    async def call_function(self, words: list[str], streams: Redirects, *, tested: bool) -> int:
        """Run a function with arguments of its own."""
        state = self.state
        function = state.functions[words[0]]
        state.calls.append(Call(name=words[0], line=state.line, source=state.source))
        state.variables.scopes.append(Scope())
        scope = state.variables.scopes[-1]
        replaced, option_place = state.replaced, state.option_place
        kept = state.arguments, state.streams, state.lost, state.unwound, state.loops
        aside = streams.lost(state.streams)
        state.lost, state.unwound = aside + state.lost, aside or state.unwound
        state.arguments, state.streams, state.loops = tuple(words[1:]), streams, 0
        # Without `set -E` a function begins without the ERR trap, and may set its own.
        errors = None if state.options.get("E") else state.traps.pop(ERR_TRAP, None)
        try:
            await self._execute(function.body, tested=tested)
        except Returned as end:
            return end.status
        else:
            return state.status
        finally:
            state.arguments, state.streams, state.lost, state.unwound, state.loops = kept
            state.replaced = replaced
            if errors is not None:
                state.traps.setdefault(ERR_TRAP, errors)
            if "OPTIND" in scope.variables:
                # The search of a function that has its own is over; that of its caller goes on.
                state.option_place = option_place
            state.calls.pop()
            scopes = state.variables.scopes
            del scopes[next(place for place, each in enumerate(scopes) if each is scope) :]

    async def source(
        self,
        commands: tuple[Command, ...],
        name: str,
        arguments: tuple[str, ...],
        streams: Redirects,
    ) -> int:
        """Run the commands of another file in this shell."""
        state = self.state
        state.calls.append(Call(name="source", line=state.line, source=name))
        kept = state.arguments, state.source
        in_function = any(not each.passing for each in state.variables.scopes[1:])
        state.arguments, state.source = arguments or state.arguments, name
        state.replaced = False
        try:
            return await self.evaluate(commands, streams)
        except Returned as end:
            return end.status
        finally:
            state.source = kept[1]
            if arguments:
                # As in bash, what `set` gave the script itself stays, and what shift left does not.
                if in_function or not state.replaced:
                    state.arguments = kept[0]
                state.replaced = False
            state.calls.pop()

    async def evaluate(self, commands: tuple[Command, ...], streams: Redirects) -> int:
        """Run commands in this shell, as eval does."""
        state = self.state
        kept = state.streams, state.lost, state.unwound
        state.unwound = streams.lost(state.streams) or state.unwound
        state.streams, state.lost = streams, ()
        state.status = 0
        self._depth += _WEIGHT_OF_TEXT
        state.shown_level += 1
        try:
            return await self._run_lines(commands)
        finally:
            self._depth -= _WEIGHT_OF_TEXT
            state.shown_level -= 1
            state.streams, state.lost, state.unwound = kept


def _named(word: str | Declared) -> str:
    """Return a word as ``set -x`` shows it: an array, which is shown before, by its name."""
    is_array = isinstance(word, Declared) and word.elements is not None
    return word.name if isinstance(word, Declared) and is_array else str(word)
