"""What a shell starts: pipelines, subshells, background commands and substitutions."""

from __future__ import annotations

from typing import NoReturn

import attrs

from simctl.limits import SUBSHELL_NESTING, VALUE_CHARACTERS
from simctl.stepd.scripts.assigning import declared
from simctl.stepd.scripts.builtins import BUILTIN_COMMANDS
from simctl.stepd.scripts.expand import (
    expand_text,
    expand_words,
)
from simctl.stepd.scripts.host import OpenFile, Redirects, ShellHost, Stream
from simctl.stepd.scripts.progress import BOUNDS, ENDING, SKIPPING, Progress
from simctl.stepd.scripts.redirect import RedirectionError, open_files
from simctl.stepd.scripts.state import (
    BoundError,
    Job,
    ScriptExit,
)
from simctl.stepd.scripts.tree import (
    Arithmetic,
    Assignment,
    Background,
    Command,
    Group,
    Line,
    Not,
    Parameter,
    Part,
    Pipeline,
    Redirected,
    Redirection,
    Simple,
    Subshell,
    Substitution,
    Text,
    Time,
    ToFile,
    Word,
)
from simctl.stepd.scripts.variables import Scope, Variable, Variables
from simctl.stepd.signals import ERR_TRAP, SIGINT

_FIRST_SUBSTITUTED = 63
_NOTHING = OpenFile(path="/dev/null", mode="read")


@attrs.define
class Processes(Progress):
    """Starts processes, waits for those in the foreground, and reads what they write."""

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
            except BOUNDS:
                raise
            except (RedirectionError, ScriptExit, *ENDING, *SKIPPING) as error:
                # All this would be the child's to do, so that it alone ends by it.
                if not isinstance(error, ScriptExit):
                    await state.complain(str(error))
                status = error.status if isinstance(error, RedirectionError | ScriptExit) else 1
                return self.fork((_ending(status),), streams, tested=True)
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
            and all(map(changes_nothing, parts))
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
        if assignment.subscript is not None:
            told = f"`{assignment.name}[{assignment.shown}]': not a valid identifier"
            await state.complain(told)
            return
        text = await expand_text(assignment.value, state)
        if assignment.elements is not None:
            # A program sees an array as a text.
            given = await declared(assignment, state)
            text = " ".join(
                ("" if key is None else f"[{key}]=") + " ".join(texts)
                for key, texts in given.elements or ()
            )
            text = f"({text})"
        if assignment.append:
            text = (state.look_up(assignment.name) or "") + text
        found = state.variables.find(assignment.name)
        if found is not None and found.readonly:
            await state.report(f"{assignment.name}: readonly variable")
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
        reads: bool = False,
    ) -> int:
        """Start a subshell that runs *commands*, and return its pid.

        It opens the files of *redirections* itself, and has them for good.
        """
        state = self.state
        if state.level >= SUBSHELL_NESTING:
            raise BoundError(f"more than {SUBSHELL_NESTING} shells in one another")
        kept = state.copy(state.host)
        kept.streams = streams
        if substitutes or reads:
            kept.lost = kept.unwound = ()
        # A trap is the shell's that set it; an ignored signal stays ignored.
        errors = kept.traps.get(ERR_TRAP) if state.options.get("E") else None
        kept.traps = {ERR_TRAP: errors} if errors else {}
        kept.trap_statuses = []
        if not substitutes and not knows_jobs:
            # `jobs` in a substitution or a pipe tells of this shell's, and in other subshells not.
            kept.jobs = []
        kept.shown_level += substitutes or reads
        if background:
            kept.traps[SIGINT] = ("", ())
        if substitutes and not state.options.get("inherit_errexit"):
            kept.options["e"] = False

        async def body(host: ShellHost) -> int:
            child = type(self)(self.script, host, max_turns=self.max_turns)
            child._turns = self._turns
            child._last = None if substitutes or reads else last_of(commands)
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
        leads = bool(state.options.get("m"))
        if isinstance(inner, Pipeline):
            pids = await self._start_pipeline(
                inner.commands, streams, tested=tested, background=not leads
            )
        else:
            pids = [await self._start(inner, streams, tested=asked, background=not leads)]
        number = state.jobs[-1].number + 1 if state.jobs else 1
        state.jobs.append(Job(number=number, pids=tuple(pids), text=command.text, leads=leads))
        state.last_child = pids[-1]
        await self._run_traps()
        state.status = 0

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
        self.fork(
            part.commands, state.streams.put(1 if reads else 0, theirs), tested=False, reads=True
        )
        number = min((each for each, _ in state.opened), default=_FIRST_SUBSTITUTED + 1) - 1
        state.opened.append((number, own))
        return f"/dev/fd/{number}"

    def _close_substituted(self, before: int) -> None:
        """Let go of the pipes that the substitutions of a command have opened."""
        while len(self.state.opened) > before:
            self.host.close(self.state.opened.pop()[1])


def _body(command: Command) -> tuple[Command, ...]:
    """Return what a process does that runs *command* alone."""
    return command.body if isinstance(command, Subshell) else (command,)


def _words(command: Simple) -> tuple[Word, ...]:
    return tuple(word for word in command.words if isinstance(word, Word))


def last_of(commands: tuple[Command, ...]) -> Command | None:
    """Return the command that commands end with, whatever they hold."""
    last = commands[-1] if commands else None
    while isinstance(last, Group | Line | Not | Redirected | Time):
        last = last_of(last.body) if isinstance(last, Group | Line) else last.command
    return last


def changes_nothing(part: Part) -> bool:
    """Whether a part may be expanded in another process than it should, and nobody notices."""
    match part:
        case Text():
            return True
        case Parameter():
            inner = (*part.operand, *(part.second or ()), *(part.subscript or ()))
            assigns = part.operator in ("=", ":=", "?", ":?") or part.name in ("RANDOM", "BASHPID")
            return not assigns and all(map(changes_nothing, inner))
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


def _ending(status: int) -> Command:
    """Return what runs in place of a command whose files cannot be opened."""
    parts = [(Text(text=text, quoted=True),) for text in ("exit", str(status))]
    words = tuple(Word(line=0, column=1, parts=each) for each in parts)
    return Simple(line=0, assignments=(), words=words, redirections=())
