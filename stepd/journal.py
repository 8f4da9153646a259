"""The journal of a shell: what it asked of its process, so that another shell can take its place.

A shell does nothing but what its script says and what the answers to its questions lead to. So one
that is given the same answers again comes to the same place, with the same variables, loops and
traps, while nothing that it does meanwhile has any effect. The same holds for tools that stand in
for programs. A shell is looked at only while it waits: all it did before that has been done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NoReturn, Protocol

from simctl.stepd.image_file import Entry, ImageError
from simctl.stepd.scripts.host import (
    Body,
    DeadlySignal,
    Disposition,
    Info,
    Inherited,
    Interrupted,
    OpenFile,
    OpenText,
    PipeEnd,
    Redirects,
    ShellHost,
    Stream,
)
from simctl.stepd.scripts.tree import OpenMode

_DEADLY = "deadly"


class DivergedError(ImageError):
    """Say that a script has asked for something else than the journal of its image holds."""


class ResumingHost(ShellHost, Protocol):
    """What really acts for a shell, which may take another's place."""

    def put(self, stream: Stream, text: str) -> str:
        """Write without waiting for room."""

    async def drain(self, stream: Stream) -> None:
        """Wait until there is room in a pipe."""

    def connect(self, redirects: Redirects, *, counted: bool = True) -> None:
        """Change the descriptors; without *counted* an image has counted who holds them."""

    def adopt(self, pid: int, body: Body) -> None:
        """Let the child *pid*, if it is one of an image, go on with *body*."""


class JournalingHost:
    """A shell's way to the world that keeps a journal, and begins by repeating an old one.

    Args:
        host: What really acts.
        repeated: The journal of an image.
        begun: Whether the shell of that image had begun: then all it does is a repetition until it
            waits for something that the journal knows no end of.
    """

    def __init__(
        self, host: ResumingHost, repeated: tuple[Entry, ...] = (), *, begun: bool = False
    ) -> None:
        self.entries: list[Entry] = list(repeated)
        self._host = host
        self._left = deque(repeated)
        self._repeating = begun

    def _next(self, *questions: str) -> Any:
        """Return the next answer, which must be to the question that is asked."""
        if not self._left or self._left[0][0] not in questions:
            known = self._left[0][0] if self._left else "nothing"
            raise DivergedError(
                f"the image does not fit its script: it asks for {questions[0]!r} where the image "
                f"has {known!r}"
            )
        return self._left.popleft()

    def _note(self, question: str, answer: Any) -> Any:
        self.entries.append((question, answer))
        return answer

    def _ask(self, question: str, act: Callable[[], Any]) -> Any:
        """Answer a question that takes no time."""
        if self._repeating:
            return self._answer(question)
        try:
            return self._note(question, act())
        except DeadlySignal as end:
            self._note(_DEADLY, end.signal)
            raise

    def _answer(self, question: str) -> Any:
        """Return the next answer, or die of the signal that came instead of one."""
        found, answer = self._next(question, _DEADLY)
        if found == _DEADLY:
            raise DeadlySignal(answer)
        return answer

    def _goes_live(self) -> bool:
        """Return whether a wait is one that the old shell was still in."""
        if self._repeating and not self._left:
            self._repeating = False
        return not self._repeating

    async def _await(self, question: str, act: Callable[[], Awaitable[Any]]) -> Any:
        """Answer a question that may take time."""
        if not self._goes_live():
            return self._answer(question)
        try:
            return self._note(question, await act())
        except DeadlySignal as end:
            self._note(_DEADLY, end.signal)
            raise

    @property
    def pid(self) -> int:
        """The shell's own pid."""
        return self._host.pid

    # Processes.

    async def run(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Run a program and wait for its end."""
        return int(await self._await("run", lambda: self._host.run(argv, env, redirects)))

    def start(
        self,
        argv: tuple[str, ...],
        env: dict[str, str],
        redirects: Redirects,
        *,
        background: bool = False,
    ) -> int:
        """Start a program beside the shell."""

        def act() -> int:
            return self._host.start(argv, env, redirects, background=background)

        return int(self._ask("start", act))

    def fork(self, body: Body, redirects: Redirects, *, background: bool = False) -> int:
        """Start a child; one of an image goes on where that was taken."""
        repeats = self._repeating
        pid = int(
            self._ask("fork", lambda: self._host.fork(body, redirects, background=background))
        )
        if repeats:
            self._host.adopt(pid, body)
        return pid

    def connect(self, redirects: Redirects) -> None:
        """Say what the descriptors of this process are from now on."""
        self._host.connect(redirects, counted=not self._repeating)

    async def wait(
        self, pids: tuple[int, ...], *, interruptible: bool = True, until_us: int = 0
    ) -> int:
        """Wait for one of these children, a trapped signal, or a moment."""
        if not self._goes_live():
            question, answer = self._next("wait", "interrupted", _DEADLY)
            if question == _DEADLY:
                raise DeadlySignal(answer)
            if question == "interrupted":
                raise Interrupted(answer)
            return int(answer)
        try:
            pid = await self._host.wait(pids, interruptible=interruptible, until_us=until_us)
        except Interrupted as interruption:
            self._note("interrupted", interruption.signal)
            raise
        except DeadlySignal as end:
            self._note(_DEADLY, end.signal)
            raise
        return int(self._note("wait", pid))

    def status(self, pid: int) -> int:
        """Return the status of a child that has ended, else -1."""
        return int(self._ask("status", lambda: self._host.status(pid)))

    def kill(self, pid: int, signal: int) -> bool:
        """Send a signal to the script itself or to a child."""
        return bool(self._ask("kill", lambda: self._host.kill(pid, signal)))

    def has_program(self, name: str) -> bool:
        """Return whether there is a program of this name."""
        return bool(self._ask("has_program", lambda: self._host.has_program(name)))

    # Files and pipes.

    def absolute(self, path: str) -> str:
        """Return a path as it is called from the root on."""
        return str(self._ask("absolute", lambda: self._host.absolute(path)))

    def open(self, path: str, mode: OpenMode, permissions: int = 0o666) -> OpenFile | str:
        """Open a file."""

        def act() -> Any:
            opened = self._host.open(path, mode, permissions)
            return opened if isinstance(opened, str) else [opened.path, opened.number]

        answer = self._ask("open", act)
        if isinstance(answer, str):
            return answer
        return OpenFile(path=answer[0], mode=mode, number=answer[1])

    def text(self, text: str) -> OpenText:
        """Return a file that holds a text."""
        return OpenText(number=self._ask("text", lambda: self._host.text(text).number))

    def pipe(self, *, keeps: Literal["", "r", "w"] = "") -> tuple[PipeEnd, PipeEnd]:
        """Return the two ends of a new pipe."""
        number = self._ask("pipe", lambda: self._host.pipe(keeps=keeps)[0].number)
        return PipeEnd(number=number, reads=True), PipeEnd(number=number, reads=False)

    def close(self, end: PipeEnd) -> None:
        """Let go of the end of a pipe."""
        if not self._repeating:
            self._host.close(end)

    async def read(self, stream: Stream, until: str = "", most: int = 0) -> str | None:
        """Read from a stream."""
        found = await self._await("read", lambda: self._host.read(stream, until, most))
        return None if found is None else str(found)

    async def write(self, stream: Stream, text: str) -> str:
        """Write to a stream; of a write that waits for room, all has been written but not done."""
        if isinstance(stream, Inherited):
            if not self._repeating:
                self._host.put(stream, text)
            return ""
        if not isinstance(stream, PipeEnd):
            return str(self._ask("write", lambda: self._host.put(stream, text)))
        wrong = ""
        try:
            if not self._repeating:
                wrong = self._host.put(stream, text)
            elif self._left:
                return str(self._answer("write"))
            self._repeating = False
            await self._host.drain(stream)
        except DeadlySignal as end:
            if not self._repeating:
                self._note(_DEADLY, end.signal)
            raise
        return str(self._note("write", wrong))

    def info(self, path: str) -> Info | None:
        """Return what is at a path."""

        def act() -> Any:
            found = self._host.info(path)
            return found and [found.is_dir, found.size, found.mode, found.uid]

        answer = self._ask("info", act)
        if answer is None:
            return None
        return Info(is_dir=answer[0], size=answer[1], mode=answer[2], uid=answer[3])

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory."""
        return tuple(self._ask("names", lambda: list(self._host.names(path))))

    def change(self, what: str, path: str, argument: str = "") -> str:
        """Change files."""
        return str(self._ask("change", lambda: self._host.change(what, path, argument)))

    def chdir(self, path: str) -> str:
        """Change the working directory."""
        return str(self._ask("chdir", lambda: self._host.chdir(path)))

    # The rest.

    def facts(self) -> dict[str, str]:
        """Return what a shell knows of its surroundings."""
        return dict(self._ask("facts", self._host.facts))

    def users(self) -> list[tuple[str, int, int, str]]:
        """Return name, number, group and home of every user of the cluster."""
        found = self._ask("users", lambda: [list(each) for each in self._host.users()])
        return [(name, uid, gid, home) for name, uid, gid, home in found]

    def count_turn(self) -> bool:
        """Count a turn of a loop or trap."""
        return self._repeating or self._host.count_turn()

    def now_us(self) -> int:
        """Return the present moment."""
        return int(self._ask("now_us", self._host.now_us))

    def set_trap(self, signal: int, disposition: Disposition) -> None:
        """Arrange what a signal does."""
        if not self._repeating:
            self._host.set_trap(signal, disposition)

    def die(self, signal: int) -> NoReturn:
        """End the process by a signal."""
        self._host.die(signal)

    def take_signals(self) -> tuple[int, ...]:
        """Return the signals kept for traps.

        The journal tells only of those there were. One arrives while the shell waits or signals
        itself, and both have entries, so that it is clear to which question an answer belongs.
        """
        if self._repeating:
            if self._left and self._left[0][0] == "signals":
                answer: tuple[int, ...] = tuple(self._next("signals")[1])
                return answer
            return ()
        taken = self._host.take_signals()
        if taken:
            self._note("signals", list(taken))
        return taken
