"""The journal of a shell: what it asked of its process, so that another shell can take its place.

A shell does nothing but what its script says and what the answers to its questions lead to. So one
that is given the same answers again comes to the same place, with the same variables, loops and
traps, while nothing that it does meanwhile has any effect. A shell is looked at only while it waits
for a child: all it did before that has been done.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from simctl.stepd.image_file import Entry, ImageError
from simctl.stepd.scripts.host import (
    Disposition,
    Interrupted,
    OpenFile,
    Redirects,
    ShellHost,
    Stream,
)


class DivergedError(ImageError):
    """Say that a script has asked for something else than the journal of its image holds."""


class JournalingHost:
    """A shell's way to the world that keeps a journal, and begins by repeating an old one.

    Args:
        host: What really acts.
        repeated: The journal of an image.
        begun: Whether the shell of that image had begun: then all it does is a repetition until it
            waits for something that the journal knows no end of.
    """

    def __init__(
        self, host: ShellHost, repeated: tuple[Entry, ...] = (), *, begun: bool = False
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

    def _goes_live(self) -> bool:
        """Tell whether a wait is one that the old shell was still in."""
        if self._repeating and not self._left:
            self._repeating = False
        return not self._repeating

    @property
    def pid(self) -> int:
        """The shell's own pid."""
        return self._host.pid

    async def run(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Run a program and wait for its end."""
        if not self._goes_live():
            return int(self._next("run")[1])
        return int(self._note("run", await self._host.run(argv, env, redirects)))

    def start(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Start a program in the background."""
        if self._repeating:
            return int(self._next("start")[1])
        return int(self._note("start", self._host.start(argv, env, redirects)))

    async def wait(self, pid: int) -> int:
        """Wait for a background child, or for a trapped signal."""
        if not self._goes_live():
            question, answer = self._next("wait", "interrupted")
            if question == "interrupted":
                raise Interrupted(answer)
            return int(answer)
        try:
            status = await self._host.wait(pid)
        except Interrupted as interruption:
            self._note("interrupted", interruption.signal)
            raise
        return int(self._note("wait", status))

    def kill(self, pid: int, signal: int) -> bool:
        """Send a signal to the script itself or to a child."""
        if self._repeating:
            return bool(self._next("kill")[1])
        return bool(self._note("kill", self._host.kill(pid, signal)))

    def absolute(self, path: str) -> str:
        """Return a path as it is called from the root on."""
        if self._repeating:
            return str(self._next("absolute")[1])
        return str(self._note("absolute", self._host.absolute(path)))

    def open(self, file: OpenFile) -> str:
        """Make or empty a file, or check that it can be read."""
        if self._repeating:
            return str(self._next("open")[1])
        return str(self._note("open", self._host.open(file)))

    def write(self, stream: Stream, text: str) -> None:
        """Write to a descriptor or an open file."""
        if not self._repeating:
            self._host.write(stream, text)

    def exists(self, path: str) -> bool:
        """Say whether a file or a directory is there."""
        if self._repeating:
            return bool(self._next("exists")[1])
        return bool(self._note("exists", self._host.exists(path)))

    def is_directory(self, path: str) -> bool:
        """Say whether a directory is there."""
        if self._repeating:
            return bool(self._next("is_directory")[1])
        return bool(self._note("is_directory", self._host.is_directory(path)))

    def chdir(self, path: str) -> str:
        """Change the working directory."""
        if self._repeating:
            return str(self._next("chdir")[1])
        return str(self._note("chdir", self._host.chdir(path)))

    def set_trap(self, signal: int, disposition: Disposition) -> None:
        """Arrange what a signal does."""
        if not self._repeating:
            self._host.set_trap(signal, disposition)

    def take_signals(self) -> tuple[int, ...]:
        """Return the signals kept for traps.

        The journal tells only of those there were. One arrives while the shell waits or signals
        itself, and both have entries, so that it is clear to which question an answer belongs.
        """
        if self._repeating:
            if self._left and self._left[0][0] == "signals":
                answer: tuple[int, ...] = self._next("signals")[1]
                return answer
            return ()
        taken = self._host.take_signals()
        if taken:
            self._note("signals", taken)
        return taken
