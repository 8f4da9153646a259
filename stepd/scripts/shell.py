"""The shell that runs a batch script: the tree of a script, walked in simulated time.

Whatever takes time or touches the world is asked of a `ShellHost`; what the host raises to end the
process passes through untouched, so that a shell that is killed does nothing more, not even its
EXIT trap. A subshell is another shell in a process of its own, which starts with a copy of the
state of this one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

import attrs

from simctl.limits import CALL_NESTING, LOOP_TURNS, SCRIPT_TURNS, SUBSHELL_NESTING, VALUE_CHARACTERS
from simctl.stepd.scripts.arithmetic import ArithmeticMistake
from simctl.stepd.scripts.assigning import Declared, assign, begin_array, declared
from simctl.stepd.scripts.builtins import BUILTIN_COMMANDS
from simctl.stepd.scripts.expand import (
    expand_pattern,
    expand_text,
    expand_word,
    expand_words,
)
from simctl.stepd.scripts.host import OpenFile, Redirects, ShellHost, Stream
from simctl.stepd.scripts.judging import judge
from simctl.stepd.scripts.patterns import PatternTooHeavyError, fits
from simctl.stepd.scripts.printing import quoted
from simctl.stepd.scripts.redirect import RedirectionError, open_files, parts_of
from simctl.stepd.scripts.state import (
    BoundError,
    Call,
    CommandError,
    EndingError,
    ExpansionError,
    Job,
    LoopJump,
    Returned,
    ScriptExit,
    ShellState,
    SkippedLine,
)
from simctl.stepd.scripts.tree import (
    AndOr,
    Arithmetic,
    Assignment,
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
    Parameter,
    Part,
    Pipeline,
    Redirected,
    Redirection,
    Script,
    Simple,
    Subshell,
    Substitution,
    Text,
    Time,
    ToFile,
    While,
    Word,
)
from simctl.stepd.scripts.variables import ReadonlyError, Scope, TooLongError, Variable, Variables
from simctl.stepd.signals import ERR_TRAP, EXIT_TRAP, SIGINT

_US = 1_000_000
_FIRST_SUBSTITUTED = 63
_ENDING = (EndingError, TooLongError, PatternTooHeavyError)
_SKIPPING = (ExpansionError, ArithmeticMistake, SkippedLine)
_WEIGHT_OF_TEXT = 3
"""How many commands in one another a text counts for that is read while the script runs."""

_NOTHING = OpenFile(path="/dev/null", mode="read")


@attrs.define
class Shell:
    """Run one script, once.

    Args:
        script: a tree without mistakes.
        host: the process the shell is.
        args: ``$0``, with which error lines begin, ``$1`` and so on.
        env: the environment; the script starts with these variables, all exported.
        streams: what its descriptors are connected with.
        max_turns: the bound on loops; passing it ends the script with status 1.
    """

    script: Script
    host: ShellHost
    args: tuple[str, ...] = attrs.field(default=("slurm_script",), kw_only=True)
    env: dict[str, str] = attrs.field(factory=dict, kw_only=True)
    streams: Redirects = attrs.field(factory=Redirects, kw_only=True)
    max_turns: int = attrs.field(default=LOOP_TURNS, kw_only=True)
    state: ShellState = attrs.field(init=False)
    tested: bool = attrs.field(init=False, default=False)
    """Whether somebody asks how the present command ends, so that ``set -e`` lets it be."""

    _turns: int = attrs.field(init=False, default=0)
    _depth: int = attrs.field(init=False, default=0)
    _pending: list[int] = attrs.field(init=False, factory=list)  # signals whose trap is due
    _trapping: list[int] = attrs.field(init=False, factory=list)  # signals whose trap runs

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

    async def _to_end(
        self, commands: tuple[Command, ...], redirections: tuple[Redirection, ...] = ()
    ) -> int:
        """Open the files of *redirections*, and run commands and the EXIT trap."""
        try:
            _, status = await self._until_left(commands, redirections)
            trap = self.state.traps.pop(EXIT_TRAP, ("", ()))[1]
            self.state.status = status
            self.state.trap_statuses = [status]
            left, changed = await self._until_left(trap)
            return changed if left else status
        finally:
            # It is this shell's own method: the two would hold each other.
            del self.state.capture

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
        except (RedirectionError, *_ENDING, *_SKIPPING) as error:
            if str(error):
                await state.complain(str(error))
            return True, 1

    async def _run_lines(self, commands: tuple[Command, ...]) -> int:
        """Run the lines of a script; what cannot be expanded skips the rest of its line.

        A subshell ends by it.
        """
        state, tested = self.state, self.tested
        for command in commands:
            try:
                await self._execute(command, tested=tested)
            except _ENDING:
                raise
            except _SKIPPING as error:
                if state.level:
                    raise
                if str(error):
                    await state.complain(str(error))
                state.status, state.statuses = 1, (1,)
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
            await _RUN[type(command)](self, command, tested)
        finally:
            self._depth -= 1

    # Lists and pipelines.

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

    async def _pipeline(self, command: Pipeline, tested: bool) -> None:
        """Run commands beside each other, and wait for all of them."""
        state = self.state
        pids = await self._start_pipeline(command.commands, state.streams, tested=tested)
        statuses = [await self._see_out(pid) for pid in pids]
        state.status = status = statuses[-1]
        await self._run_traps()
        if state.options.get("pipefail"):
            status = next((each for each in reversed(statuses) if each), 0)
        await self._end_command(status, tested=tested)
        state.statuses = tuple(statuses)

    async def _start_pipeline(
        self,
        commands: tuple[Command, ...],
        streams: Redirects,
        *,
        tested: bool,
        background: bool = False,
    ) -> list[int]:
        """Start the commands of a pipeline; each reads what the one before it writes."""
        pids: list[int] = []
        source = streams.stdin
        for index, each in enumerate(commands):
            own = streams.put(0, source)
            if index + 1 < len(commands):
                source, sink = self.host.pipe()
                own = own.put(1, sink)
            pids.append(await self._start(each, own, tested=tested, background=background))
        return pids

    async def _see_out(self, pid: int) -> int:
        """Wait for a child of the foreground, and return its status."""
        await self.host.wait((pid,), interruptible=False)
        return self.host.status(pid)

    async def _start(
        self, command: Command, streams: Redirects, *, tested: bool, background: bool = False
    ) -> int:
        """Start a command beside the shell: a program as it is, anything else as a subshell.

        One in the *background* does not mind INT and QUIT.
        """
        state = self.state
        if isinstance(command, Simple) and self._is_program(command):
            state.line = command.line
            before, state.streams = state.streams, streams
            try:
                words = await expand_words(_words(command), state)
                streams = await open_files(command.redirections, state)
                env = await self._environment(command.assignments)
                await self._show(words)
                pid = self.host.start(tuple(words), env, streams, background=background)
                return pid or self._too_many()
            except (RedirectionError, *_ENDING, *_SKIPPING) as error:
                # All this would be the child's to do, so that it alone ends by it.
                if isinstance(error, BoundError):
                    raise
                await state.complain(str(error))
                return self.fork((_FAILS,), streams, tested=True)
            finally:
                state.streams = before
        if isinstance(command, Redirected):
            inner, redirections = _body(command.command), command.redirections
            return self.fork(
                inner, streams, tested=tested, redirections=redirections, background=background
            )
        return self.fork(
            _body(command),
            streams,
            tested=tested,
            background=background,
            knows_jobs=isinstance(command, Simple),
        )

    def _is_program(self, command: Simple) -> bool:
        """Whether *command* runs a program whatever the state, and its words change nothing."""
        words = command.words
        if not words or not isinstance(words[0], Word) or not words[0].literal:
            return False
        name = words[0].literal
        parts = [part for word in words if isinstance(word, Word) for part in word.parts]
        parts += [part for assignment in command.assignments for part in assignment.value]
        return (
            name not in BUILTIN_COMMANDS
            and name not in self.state.functions
            and not self.state.options.get("u")
            and all(map(_changes_nothing, parts))
            and all(isinstance(each, ToFile) for each in command.redirections)
        )

    async def _environment(self, assignments: tuple[Assignment, ...]) -> dict[str, str]:
        """Return what a program sees, with what is assigned for it alone."""
        state = self.state
        if not assignments:
            return state.variables.environment()
        state.variables.scopes.append(Scope(passing=True))
        try:
            for assignment in assignments:
                await self._pass(assignment)
            return state.variables.environment()
        finally:
            state.variables.scopes.pop()

    async def _pass(self, assignment: Assignment) -> None:
        """Assign for one command alone; what is readonly stays, and ends a shell of ``set -e``."""
        state = self.state
        scope = state.variables.scopes[-1]
        text = await expand_text(assignment.value, state)
        if assignment.append:
            text = (state.look_up(assignment.name) or "") + text
        found = state.variables.find(assignment.name)
        if found is not None and found.readonly:
            await state.complain(f"{assignment.name}: readonly variable")
            if state.options.get("e"):
                raise ScriptExit(1)
            return
        variable = scope.variables[assignment.name] = Variable(exported=True)
        Variables.store(variable, assignment.name, text)
        await self._show((text,), before=f"{assignment.name}=")

    def fork(
        self,
        commands: tuple[Command, ...],
        streams: Redirects,
        *,
        tested: bool,
        substitutes: bool = False,
        redirections: tuple[Redirection, ...] = (),
        background: bool = False,
        knows_jobs: bool = False,
    ) -> int:
        """Start a subshell that runs *commands*, and return its pid.

        It opens the files of *redirections* itself, and has them for good.
        """
        state = self.state
        if state.level >= SUBSHELL_NESTING:
            raise BoundError(f"more than {SUBSHELL_NESTING} shells in one another")
        kept = state.copy(state.host)
        kept.streams = streams
        # A trap is the shell's that set it; an ignored signal stays ignored.
        errors = kept.traps.get(ERR_TRAP) if state.options.get("E") else None
        kept.traps = {ERR_TRAP: errors} if errors else {}
        kept.trap_statuses = []
        if not substitutes and not knows_jobs:
            # `jobs` in a substitution or a pipe tells of this shell's, and in other subshells not.
            kept.jobs = []
        if background:
            kept.traps[SIGINT] = ("", ())
        if substitutes and not state.options.get("inherit_errexit"):
            kept.options["e"] = False

        async def body(host: ShellHost) -> int:
            child = Shell(self.script, host, max_turns=self.max_turns)
            child._turns = self._turns
            child.tested = tested
            child.state = kept
            kept.host = host
            kept.capture = child._capture
            return await child._to_end(commands, redirections)

        return self.host.fork(body, streams, background=background) or self._too_many()

    @staticmethod
    def _too_many() -> NoReturn:
        raise BoundError("fork: too many processes of this script are under way")

    async def _subshell(
        self, command: Subshell, tested: bool, redirections: tuple[Redirection, ...] = ()
    ) -> None:
        state = self.state
        state.line = command.line
        pid = self.fork(command.body, state.streams, tested=tested, redirections=redirections)
        state.status = await self._see_out(pid)
        await self._run_traps()
        await self._end_command(state.status, tested=tested)

    async def _background(self, command: Background, tested: bool) -> None:
        """Start a command, or a pipeline, and go on.

        As in bash 5.2, a ``!`` before it has no effect on the status that `wait` tells.
        """
        state = self.state
        inner, asked = command.command, False
        while isinstance(inner, Not):
            inner, asked = inner.command, True
        streams = state.streams.put(0, _NOTHING)
        if isinstance(inner, Pipeline):
            pids = await self._start_pipeline(
                inner.commands, streams, tested=tested, background=True
            )
        else:
            pids = [await self._start(inner, streams, tested=asked, background=True)]
        number = state.jobs[-1].number + 1 if state.jobs else 1
        state.jobs.append(Job(number=number, pids=tuple(pids), text=command.text))
        state.last_child = pids[-1]
        await self._run_traps()
        state.status = 0

    # Substitutions.

    async def _capture(self, part: Substitution) -> str:
        """Run the commands of ``$(…)`` and return what they write, without the last line ends."""
        state = self.state
        if part.process:
            return self._substitute_process(part)
        if (path := _read_alone(part)) is not None:
            return (await self._contents(path)).rstrip("\n")
        source, sink = self.host.pipe(keeps="r")
        pid = self.fork(
            part.commands, state.streams.put(1, sink), tested=self.tested, substitutes=True
        )
        text = await self._read_all(source)
        self.host.close(source)
        state.substituted = state.status = await self._see_out(pid)
        if text is None:
            raise BoundError(f"a word or value of more than {VALUE_CHARACTERS} characters")
        return text.replace("\0", "").rstrip("\n")

    async def _read_all(self, stream: Stream) -> str | None:
        """Read to the end; None if that is more than a value can hold."""
        pieces: list[str] = []
        length = 0
        while chunk := await self.host.read(stream):
            pieces.append(chunk)
            length += len(chunk)
            if length > VALUE_CHARACTERS:
                return None
        return "".join(pieces)

    async def _contents(self, redirection: ToFile) -> str:
        """Return what ``$(< file)`` stands for."""
        state = self.state
        try:
            streams = await open_files((redirection,), state)
        except RedirectionError as error:
            await state.complain(str(error))
            state.substituted = state.status = 1
            return ""
        state.substituted = state.status = 0
        text = await self._read_all(streams.stdin)
        if text is None:
            raise BoundError(f"a word or value of more than {VALUE_CHARACTERS} characters")
        return text.replace("\0", "")

    def _substitute_process(self, part: Substitution) -> str:
        """Start the commands of ``<(…)``, and return the path of the pipe to them."""
        state = self.state
        reads = part.process == "<"
        source, sink = self.host.pipe(keeps="r" if reads else "w")
        own, theirs = (source, sink) if reads else (sink, source)
        self.fork(part.commands, state.streams.put(1 if reads else 0, theirs), tested=False)
        number = min((each for each, _ in state.opened), default=_FIRST_SUBSTITUTED + 1) - 1
        state.opened.append((number, own))
        return f"/dev/fd/{number}"

    def _close_substituted(self, before: int) -> None:
        """Let go of the pipes that the substitutions of a command have opened."""
        while len(self.state.opened) > before:
            self.host.close(self.state.opened.pop()[1])

    # Compound commands.

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
            state.assign(command.name, left.pop())
            return True

        try:
            await self._loop(goes_on, command.body, tested=tested)
        except ReadonlyError as error:
            await state.complain(str(error))
            await self._end_command(1, tested=tested)

    async def _counting_for(self, command: CountingFor, tested: bool) -> None:
        """Repeat the body as three expressions say."""
        state = self.state
        state.line = command.line
        await self._value(command.first)
        first = True

        async def goes_on() -> bool:
            nonlocal first
            if not first:
                await self._value(command.step)
            first = False
            return await self._value(command.condition) != 0

        await self._loop(goes_on, command.body, tested=tested)

    async def _value(self, parts: tuple[Part, ...]) -> int:
        """Return the value of an expression; none at all counts as 1."""
        text = await expand_text(parts, self.state)
        return self.state.calculate(text) if text.strip() else 1

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

    async def _case(self, command: Case, tested: bool) -> None:
        """Run the branch whose pattern fits a word."""
        state = self.state
        state.line = command.line
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
                state.status = 0
                status = await self.run_list(clause.body, tested=tested)
                if clause.end == ";;":
                    break
                runs = clause.end == ";&"
        state.status = status

    async def _group(self, command: Group | Line, tested: bool) -> None:
        await self.run_list(command.body, tested=tested)

    async def _double_bracket(self, command: DoubleBracket, tested: bool) -> None:
        """Judge ``[[ … ]]``."""
        self.state.line = command.line
        await self._end_command(await judge(command.test, self.state), tested=tested)

    async def _calculate(self, command: Calculate, tested: bool) -> None:
        """Judge ``(( … ))``."""
        state = self.state
        state.line = command.line
        try:
            text = await expand_text(command.parts, state)
            status = 0 if state.calculate(text) else 1
        except (ArithmeticMistake, ReadonlyError) as error:
            await state.complain(f"((: {error}")
            status = 1
        await self._end_command(status, tested=tested)

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
        before, opened = state.streams, len(state.opened)
        state.line = command.line
        try:
            state.streams = await open_files(command.redirections, state)
        except RedirectionError as error:
            await state.complain(str(error), before.stderr)
            await self._end_command(1, tested=tested)
            return
        try:
            await self._execute(command.command, tested=tested)
        finally:
            state.streams = before
            self._close_substituted(opened)

    # Simple commands.

    async def _simple(self, command: Simple, tested: bool) -> None:
        """Run a builtin, a function or a program, or only assign."""
        state = self.state
        state.line = command.line
        state.substituted = -1
        opened = len(state.opened)
        trapped = ERR_TRAP in state.traps
        self.tested = tested
        try:
            words = await self._arguments(command.words)
            if not words:
                await self._assign(command.assignments)
            streams = await self._opened(command, words)
            for number, end in state.opened[opened:]:
                streams = streams.put(number, end)
            status = await self._call(command.assignments, words, streams, tested=tested)
        except RedirectionError as error:
            await state.complain(str(error))
            status = 1
        except (CommandError, ReadonlyError) as error:
            await state.complain(str(error))
            if not command.words:
                if state.options.get("e") and not tested:
                    raise ScriptExit(1) from None
                raise SkippedLine from None
            status = 1
        self._close_substituted(opened)
        state.status = status
        await self._run_traps()
        await self._end_command(status, tested=tested, trapped=trapped)

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
        if not all(map(_changes_nothing, parts)):
            opened, state = state.opened, state.copy(state.host)
            state.opened = opened
        try:
            return await open_files(command.redirections, state)
        except (*_ENDING, *_SKIPPING) as error:
            if isinstance(error, BoundError):
                raise
            raise RedirectionError(str(error)) from None

    async def _arguments(self, words: tuple[Word | Assignment, ...]) -> list[str | Declared]:
        """Expand the words of a command."""
        found: list[str | Declared] = []
        for word in words:
            if isinstance(word, Assignment):
                found.append(await declared(word, self.state))
            else:
                found += await expand_word(word, self.state)
        return found

    async def _end_command(self, status: int, *, tested: bool, trapped: bool = True) -> None:
        """Note the status of a command, and leave the script if ``set -e`` asks for it.

        Without *trapped* there was no ERR trap when it began, and one that it has set is no matter.
        """
        state = self.state
        state.status = status
        state.statuses = (status,)
        if not status or tested:
            return
        if trapped and ERR_TRAP in state.traps:
            await self._run_trap(ERR_TRAP)
        if state.options.get("e"):
            raise ScriptExit(status)

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
            await assign(await declared(assignment, state), state)
            if state.options.get("x") and assignment.elements is None:
                value = state.look_up(assignment.name) or ""
                await self._show((value,), before=f"{assignment.name}=")

    async def _perform(
        self, words: list[str | Declared], streams: Redirects, *, tested: bool
    ) -> int:
        """Run a function, a builtin or a program."""
        state = self.state
        texts = [str(word) for word in words]
        state.last_argument = texts[-1]
        if state.options.get("x"):
            await self._show(texts)
        if texts[0] in state.functions:
            return await self.call_function(texts, streams, tested=tested)
        return await self.perform_command(texts, streams, words[1:])

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
        kept = state.arguments, state.streams, state.loops
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
            state.arguments, state.streams, state.loops = kept
            if errors is not None:
                state.traps.setdefault(ERR_TRAP, errors)
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
        kept = state.arguments, state.streams, state.source
        state.arguments = arguments or state.arguments
        state.streams, state.source = streams, name
        state.status = 0
        self._depth += _WEIGHT_OF_TEXT
        try:
            return await self._run_lines(commands)
        except Returned as end:
            return end.status
        finally:
            self._depth -= _WEIGHT_OF_TEXT
            changed = state.arguments
            state.arguments, state.streams, state.source = kept
            state.arguments = kept[0] if arguments else changed
            state.calls.pop()

    async def evaluate(self, commands: tuple[Command, ...], streams: Redirects) -> int:
        """Run commands in this shell, as eval does."""
        state = self.state
        kept, state.streams = state.streams, streams
        state.status = 0
        self._depth += _WEIGHT_OF_TEXT
        try:
            return await self._run_lines(commands)
        finally:
            self._depth -= _WEIGHT_OF_TEXT
            state.streams = kept

    async def _show(self, words: list[str] | tuple[str, ...], before: str = "") -> None:
        """Write the command that is about to run, if ``set -x`` asks for it."""
        state = self.state
        if words and state.options.get("x"):
            shown = before + " ".join(quoted(word) for word in words)
            prompt = state.look_up("PS4") or ""
            await self.host.write(state.streams.stderr, f"{prompt}{shown}\n")

    # Traps.

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
        try:
            self.tested = False
            await self._run_lines(state.traps[number][1])
        finally:
            self._trapping.remove(number)
            status = state.trap_statuses.pop()
        state.status, state.statuses = status, kept


def _body(command: Command) -> tuple[Command, ...]:
    """Return what a process does that runs *command* alone."""
    return command.body if isinstance(command, Subshell) else (command,)


def _words(command: Simple) -> tuple[Word, ...]:
    return tuple(word for word in command.words if isinstance(word, Word))


def _changes_nothing(part: Part) -> bool:
    """Whether a part may be expanded in another process than it should, and nobody notices."""
    match part:
        case Text():
            return True
        case Parameter():
            inner = (*part.operand, *(part.second or ()), *(part.subscript or ()))
            assigns = part.operator in ("=", ":=", "?", ":?") or part.name in ("RANDOM", "BASHPID")
            return not assigns and all(map(_changes_nothing, inner))
        case Arithmetic():
            text = "".join(each.text for each in part.parts if isinstance(each, Text))
            return not any(sign in text for sign in ("=", "++", "--", "/", "%", "RANDOM"))
    return False


def _read_alone(part: Substitution) -> ToFile | None:
    """Return the redirection of ``$(< file)``."""
    match part.commands:
        case (Simple(assignments=(), words=(), redirections=(ToFile(mode="read") as read,)),):
            return read
    return None


_FAILS = Simple(
    line=0,
    assignments=(),
    words=(Word(line=0, column=1, parts=(Text(text="false", quoted=False),)),),
    redirections=(),
)
"""What runs in place of a command whose files cannot be opened."""

_RUN: dict[type[Command], Callable[..., Awaitable[None]]] = {
    Simple: Shell._simple,
    Background: Shell._background,
    Not: Shell._not,
    Time: Shell._time,
    Pipeline: Shell._pipeline,
    AndOr: Shell._and_or,
    If: Shell._if,
    While: Shell._while,
    For: Shell._for,
    CountingFor: Shell._counting_for,
    Case: Shell._case,
    Group: Shell._group,
    Line: Shell._group,
    Subshell: Shell._subshell,
    DoubleBracket: Shell._double_bracket,
    Calculate: Shell._calculate,
    Function: Shell._function,
    Redirected: Shell._redirected,
}
"""What runs each kind of command."""
