"""The shell that runs a batch script: the tree of a script, walked in simulated time.

It reads like a small bash without its conveniences. Whatever takes time or touches the world is
asked of a `ShellHost`; what the host raises to end the process passes through untouched, so that a
shell that is killed does nothing more, not even its EXIT trap.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from simctl.limits import LOOP_TURNS
from simctl.stepd.scripts.builtins import TIMELESS
from simctl.stepd.scripts.expand import bounded_length, expand_text, expand_words
from simctl.stepd.scripts.host import Redirects, ShellHost
from simctl.stepd.scripts.jobs import wait
from simctl.stepd.scripts.printing import quoted
from simctl.stepd.scripts.redirect import RedirectionError, open_files
from simctl.stepd.scripts.state import ExpansionError, LoopJump, ScriptExit, ShellState, Variables
from simctl.stepd.scripts.tree import (
    AndOr,
    Assignment,
    Background,
    Command,
    For,
    Group,
    If,
    Not,
    Redirected,
    Script,
    Simple,
    While,
)
from simctl.stepd.signals import EXIT_TRAP


@attrs.define
class Shell:
    """Run one script, once.

    Args:
        script: a tree without mistakes.
        host: the process the shell is.
        args: ``$0``, with which error lines begin, ``$1`` and so on.
        env: the environment; the script starts with these variables, all exported.
        max_turns: the bound on loops; passing it ends the script with status 1.
    """

    script: Script
    host: ShellHost
    args: tuple[str, ...] = attrs.field(default=("slurm_script",), kw_only=True)
    env: dict[str, str] = attrs.field(factory=dict, kw_only=True)
    max_turns: int = attrs.field(default=LOOP_TURNS, kw_only=True)
    _state: ShellState = attrs.field(init=False)
    _turns: int = attrs.field(init=False, default=0)
    _pending: list[int] = attrs.field(init=False, factory=list)  # signals whose trap is due
    _trapping: list[int] = attrs.field(init=False, factory=list)  # signals whose trap runs

    def __attrs_post_init__(self) -> None:
        """Begin with the variables of the environment."""
        self._state = ShellState(
            host=self.host,
            name="".join(self.args[:1]),
            arguments=self.args[1:],
            variables=Variables(dict(self.env), dict.fromkeys(self.env, True)),
            options=self.script.options,
        )

    async def run(self) -> int:
        """Run the script and its EXIT trap, and return its exit status, 0 to 255."""
        _, status = await self._until_left(self.script.commands)
        trap = self._state.traps.pop(EXIT_TRAP, ())
        self._state.status = status
        self._state.trap_statuses = [status]
        left, changed = await self._until_left(trap)
        return changed if left else status

    async def _until_left(self, commands: tuple[Command, ...]) -> tuple[bool, int]:
        """Run *commands*; say whether they left the script, and with which status they ended."""
        state = self._state
        try:
            return False, await self._list(commands, tested=False)
        except ScriptExit as end:
            return True, end.status
        except ExpansionError as error:
            state.complain(str(error), state.streams.stderr)
            return True, 1

    async def _list(self, commands: tuple[Command, ...], *, tested: bool) -> int:
        """Run commands one after the other and return the last status.

        *tested* says that a failure is asked about, so that ``set -e`` lets it be.
        """
        for command in commands:
            await self._execute(command, tested=tested)
        return self._state.status

    async def _execute(self, command: Command, *, tested: bool) -> None:
        """Run one command; its status is then the state's."""
        match command:
            case Simple():
                await self._simple(command, tested=tested)
            case Background():
                self._start(command.command)
                await self._run_traps()
            case Not():
                await self._execute(command.command, tested=True)
                self._state.status = 0 if self._state.status else 1
            case AndOr():
                await self._and_or(command, tested=tested)
            case If():
                await self._if(command, tested=tested)
            case While():
                await self._while(command, tested=tested)
            case For():
                await self._for(command, tested=tested)
            case Group():
                await self._list(command.body, tested=tested)
            case Redirected():
                await self._redirected(command, tested=tested)

    async def _and_or(self, command: AndOr, *, tested: bool) -> None:
        """Run each command whose turn the status before it makes it."""
        await self._execute(command.first, tested=True)
        last = command.rest[-1]
        for joined in command.rest:
            if (joined[0] == "&&") == (self._state.status == 0):
                await self._execute(joined[1], tested=tested or joined is not last)

    async def _if(self, command: If, *, tested: bool) -> None:
        """Run the first branch whose condition succeeds."""
        for condition, body in command.branches:
            if await self._list(condition, tested=True) == 0:
                await self._list(body, tested=tested)
                return
        if command.otherwise:
            await self._list(command.otherwise, tested=tested)
        else:
            self._state.status = 0

    async def _while(self, command: While, *, tested: bool) -> None:
        """Repeat the body as the condition says."""

        async def goes_on() -> bool:
            status = await self._list(command.condition, tested=True)
            return (status == 0) != command.until

        await self._loop(goes_on, command.body, tested=tested)

    async def _for(self, command: For, *, tested: bool) -> None:
        """Repeat the body for each word, all of which are expanded first."""
        self._state.line = command.line
        left = list(expand_words(command.words, self._state))

        async def goes_on() -> bool:
            if left:
                self._state.variables.values[command.name] = left.pop(0)
                return True
            return False

        await self._loop(goes_on, command.body, tested=tested)

    async def _loop(
        self, goes_on: Callable[[], Awaitable[bool]], body: tuple[Command, ...], *, tested: bool
    ) -> None:
        """Run *body* again and again; its last status is that of the loop."""
        state = self._state
        status = 0
        state.loops += 1
        try:
            while True:
                try:
                    if not await goes_on():
                        break
                    self._count_turn()
                    status = await self._list(body, tested=tested)
                except LoopJump as jump:
                    status = state.status = 0
                    if jump.levels > 1:
                        raise LoopJump(jump.levels - 1, again=jump.again) from None
                    if not jump.again:
                        break
        finally:
            state.loops -= 1
        state.status = status

    def _count_turn(self) -> None:
        """Count a turn of a loop or trap, and end a script that takes too many."""
        self._turns += 1
        if self._turns > self.max_turns:
            message = (
                f"the loops of this script took more than {self.max_turns} turns; it ends here"
            )
            self._state.complain(message, self._state.streams.stderr)
            raise ScriptExit(1)

    async def _redirected(self, command: Redirected, *, tested: bool) -> None:
        """Run a compound command with streams of its own."""
        state = self._state
        before = state.streams
        state.line = command.line
        try:
            state.streams = open_files(command.redirections, state)
        except RedirectionError as error:
            state.complain(str(error), before.stderr)
            self._end_command(1, tested=tested)
            return
        try:
            await self._execute(command.command, tested=tested)
        finally:
            state.streams = before

    async def _simple(self, command: Simple, *, tested: bool) -> None:
        """Run a builtin or a program, or only assign."""
        state = self._state
        state.line = command.line
        words = expand_words(command.words, state)
        try:
            streams = open_files(command.redirections, state)
        except RedirectionError as error:
            state.complain(str(error), state.streams.stderr)
            status = 1
        else:
            status = await self._call(command.assignments, words, streams)
        state.status = status
        await self._run_traps()
        self._end_command(status, tested=tested)

    def _end_command(self, status: int, *, tested: bool) -> None:
        """Note the status of a command, and leave the script if ``set -e`` asks for it."""
        self._state.status = status
        if status and not tested and "e" in self._state.options:
            raise ScriptExit(status)

    async def _call(
        self, assignments: tuple[Assignment, ...], words: tuple[str, ...], streams: Redirects
    ) -> int:
        """Run *words* with *assignments* that only it sees; without words they stay."""
        variables = self._state.variables
        before = variables.copy() if assignments else variables
        for assignment in assignments:
            self._assign(assignment)
        self._show(words)
        if not words:
            return 0
        for assignment in assignments:
            variables.export(assignment.name)
        env = variables.environment()
        if words[0] in TIMELESS:
            try:
                return TIMELESS[words[0]](self._state, words[1:], streams)
            finally:
                self._restore(assignments, before)
        self._restore(assignments, before)
        if words[0] == "wait":
            return await wait(self._state, words[1:], streams)
        if words[0] == "exec":
            return await self._exec(words[1:], env, streams)
        return await self.host.run(words, env, streams)

    def _assign(self, assignment: Assignment) -> None:
        """Give a variable its value."""
        text = expand_text(assignment.value, self._state)
        values = self._state.variables.values
        kept = values.get(assignment.name, "") if assignment.append else ""
        bounded_length(len(kept) + len(text))
        values[assignment.name] = kept + text
        self._show((text,), before=f"{assignment.name}=")

    def _restore(self, assignments: tuple[Assignment, ...], before: Variables) -> None:
        """Take back what was assigned for one command alone."""
        for assignment in assignments:
            self._state.variables.restore(assignment.name, before)

    def _show(self, words: tuple[str, ...], before: str = "") -> None:
        """Write the command that is about to run, if ``set -x`` asks for it."""
        if words and "x" in self._state.options:
            shown = before + " ".join(quoted(word) for word in words)
            self.host.write(self._state.streams.stderr, f"+ {shown}\n")

    def _start(self, command: Simple) -> None:
        """Start a program in the background."""
        state = self._state
        state.line = command.line
        words = expand_words(command.words, state) or ("true",)
        words = ("true",) if words[0] == ":" else words
        before = state.variables.copy()
        for assignment in command.assignments:
            self._assign(assignment)
            state.variables.export(assignment.name)
        env = state.variables.environment()
        self._restore(command.assignments, before)
        self._show(words)
        try:
            streams = open_files(command.redirections, state)
        except RedirectionError as error:
            state.complain(str(error), state.streams.stderr)
            words, streams = ("false",), state.streams
        state.last_child = self.host.start(words, env, streams)
        state.running.append(state.last_child)
        state.status = 0

    async def _exec(
        self, arguments: tuple[str, ...], env: dict[str, str], streams: Redirects
    ) -> int:
        """Run a program in place of the shell; without one, keep the redirections."""
        arguments = arguments[1:] if arguments[:1] == ("--",) else arguments
        if not arguments:
            self._state.streams = streams
            return 0
        for number in self._state.traps:
            if number != EXIT_TRAP:
                self.host.set_trap(number, "default")
        self._state.traps.clear()
        raise ScriptExit(await self.host.run(arguments, env, streams))

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
        state = self._state
        if number not in state.traps:
            return
        self._count_turn()
        self._trapping.append(number)
        state.trap_statuses.append(state.status)
        try:
            await self._list(state.traps[number], tested=False)
        finally:
            self._trapping.remove(number)
            status = state.trap_statuses.pop()
        state.status = status
