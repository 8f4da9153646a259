"""What a script and all it has started share: open files, texts and pipes, by their numbers."""

from codecs import utf_8_decode
from collections import deque
from collections.abc import Callable
from typing import Final

import attrs

from simctl.kernel.disk import DiskView
from simctl.kernel.threads import Thread
from simctl.kernel.turns import Kernel
from simctl.limits import PIPE_CHARACTERS, SCRIPT_TURNS, WRITTEN_CHARACTERS
from simctl.stepd.image_file import FileState, PipeState, StreamsState
from simctl.stepd.programs import Input
from simctl.stepd.scripts.host import (
    Inherited,
    OpenFile,
    OpenText,
    PipeEnd,
    Redirects,
    Stream,
)

Output = Callable[[int, str], None]
"""Takes a file descriptor (1 or 2) and a text that a process wrote to it."""

_BAD: Final = "Bad file descriptor"
_CHUNK: Final = 1 << 16
_AHEAD: Final = 1 << 20
_ERRORS: Final = Inherited(descriptor=2)
BROKEN: Final = "Broken pipe"


class BlockedError(Exception):
    """Say that there is nothing to read yet, but there may be later."""


@attrs.define(kw_only=True)
class _File:
    """A file that is read: what was taken from it so far, and what was read ahead."""

    seen: int = 0
    text: str = ""
    at: int = 0


@attrs.define(eq=False, kw_only=True)
class _Pipe:
    """A pipe: what is in it, how many processes hold each end, and who waits."""

    chunks: deque[str] = attrs.field(factory=deque)
    length: int = 0
    readers: int = 0
    writers: int = 0
    waiting: list[Thread] = attrs.field(factory=list)


class Streams:
    """The streams of one family of processes.

    `output` takes what is written to the descriptors 1 and 2 that the family was given, and `stdin`
    is what there is on its 0.
    """

    def __init__(self, kernel: Kernel, output: Output, stdin: Input) -> None:
        self._kernel = kernel
        self.output = output
        self.stdin = stdin
        self.processes = 0
        """How many of the family have not ended."""

        self.started = 0
        """How many there have been in all."""

        self.turns = 0
        """How many turns their loops and traps have taken."""

        self.written = 0
        """How many characters they have written."""

        self.seeds = 0
        """How many seeds of RANDOM were given out."""

        self._last = 0
        self._files: dict[int, _File] = {}
        self._pipes: dict[int, _Pipe] = {}

    def _number(self) -> int:
        self._last += 1
        return self._last

    # Making them.

    def open(self) -> int:
        """Return the number of a file that was just opened."""
        number = self._number()
        self._files[number] = _File()
        return number

    def text(self, text: str) -> OpenText:
        """Return a file that holds a text and has no name."""
        number = self._number()
        self._files[number] = _File(text=text)
        return OpenText(number=number)

    def pipe(self) -> tuple[PipeEnd, PipeEnd]:
        """Return the ends of a new pipe, which no process holds yet."""
        number = self._number()
        self._pipes[number] = _Pipe()
        return PipeEnd(number=number, reads=True), PipeEnd(number=number, reads=False)

    def hold(self, redirects: Redirects) -> None:
        """Count a process that has these."""
        for stream in redirects.all():
            if isinstance(stream, PipeEnd):
                self.hold_end(stream)

    def hold_end(self, end: PipeEnd) -> None:
        """Count a process that has an end of a pipe."""
        pipe = self._pipes[end.number]
        if end.reads:
            pipe.readers += 1
        else:
            pipe.writers += 1

    def release(self, redirects: Redirects) -> None:
        """Count a process no longer that had these."""
        for stream in redirects.all():
            if isinstance(stream, PipeEnd):
                self.release_end(stream)

    def release_end(self, end: PipeEnd) -> None:
        """Count a process no longer that had an end of a pipe; the last one's going is noticed."""
        pipe = self._pipes[end.number]
        if end.reads:
            pipe.readers -= 1
        else:
            pipe.writers -= 1
        if not pipe.readers or not pipe.writers:
            self._wake(pipe)

    def _wake(self, pipe: _Pipe) -> None:
        waiting, pipe.waiting = pipe.waiting, []
        for thread in waiting:
            self._kernel.wake(thread)

    def wait_for(self, end: PipeEnd, thread: Thread) -> None:
        """Have a thread woken once something changes at a pipe."""
        self._pipes[end.number].waiting.append(thread)

    # Using them.

    def read(self, stream: Stream, until: str, most: int, files: DiskView) -> str | None:
        """Return what there is, or what there is up to *until*; "" at the end, None for an error.

        Raises:
            BlockedError: There may be more later.
        """
        match stream:
            case Inherited(descriptor=0):
                return self._from_input(until, most)
            case OpenFile(path="/dev/null"):
                return ""
            case OpenFile(mode="read" | "both"):
                return self._from_file(stream, until, most, files)
            case OpenText():
                return _taken(self._files[stream.number], until, most)
            case PipeEnd(reads=True):
                return self._from_pipe(self._pipes[stream.number], until, most)
        return None

    def count_turn(self) -> bool:
        """Count a turn of a loop; return whether there may be more."""
        self.turns += 1
        return self.turns <= SCRIPT_TURNS

    def _from_input(self, until: str, most: int) -> str:
        file = _File(text=self.stdin.text)
        found = _taken(file, until, most)
        self.stdin.text = file.text[file.at :]
        return found

    def _from_file(self, stream: OpenFile, until: str, most: int, files: DiskView) -> str | None:
        file = self._files[stream.number]
        while file.at >= len(file.text) or (until and file.text.find(until, file.at) < 0):
            try:
                data = files.read(stream.path, file.seen, _AHEAD)
            except OSError:
                break
            found, taken = utf_8_decode(data, "surrogateescape", len(data) < _AHEAD)
            file.text, file.at = file.text[file.at :] + found, 0
            file.seen += taken
            if len(data) < _AHEAD:
                break
        return _taken(file, until, most)

    @staticmethod
    def _from_pipe(pipe: _Pipe, until: str, most: int) -> str:
        ended = not pipe.writers
        if not pipe.length and not ended:
            raise BlockedError
        if not until:
            wanted = min(most or _CHUNK, pipe.length)
        else:
            place = _place(pipe, until)
            if place < 0 and not ended and (not most or pipe.length < most):
                raise BlockedError
            wanted = place + 1 if place >= 0 else pipe.length
            wanted = min(wanted, most) if most else wanted
        return _drawn(pipe, wanted)

    def drain(self, end: PipeEnd, taken: str) -> None:
        """Wake who waits for room in a pipe from which something was taken."""
        pipe = self._pipes[end.number]
        if taken and pipe.length <= PIPE_CHARACTERS:
            self._wake(pipe)

    def write(self, stream: Stream, text: str, files: DiskView) -> str:
        """Write a text whole; return what stood in the way: `BROKEN` for a pipe without reader."""
        self.written += len(text)
        if self.written > WRITTEN_CHARACTERS and stream != _ERRORS:
            return f"the processes of this script have written {WRITTEN_CHARACTERS} characters"
        match stream:
            case Inherited(descriptor=1 | 2 as descriptor):
                self.output(
                    descriptor, text.encode(errors="surrogateescape").decode(errors="replace")
                )
            case OpenFile(mode="write" | "append" | "both"):
                try:
                    if stream.number:
                        self._write_in_place(stream, text, files)
                        return ""
                    files.append(stream.path, text.encode(errors="surrogateescape"))
                except OSError as error:
                    return error.strerror or str(error)
            case PipeEnd(reads=False):
                pipe = self._pipes[stream.number]
                if not pipe.readers:
                    return BROKEN
                pipe.chunks.append(text)
                pipe.length += len(text)
                self._wake(pipe)
            case _:
                return _BAD
        return ""

    def _write_in_place(self, stream: OpenFile, text: str, files: DiskView) -> None:
        """Write where this opening has come to, over what is there."""
        file = self._files[stream.number]
        ahead = len(file.text[file.at :].encode(errors="surrogateescape"))
        at, new = file.seen - ahead, text.encode(errors="surrogateescape")
        # Another opening may have emptied the file meanwhile, or it may be gone.
        size = files.stat(stream.path).size if files.exists(stream.path) else at
        if at >= size:
            files.append(stream.path, bytes(at - size) + new)
        else:
            before = files.read(stream.path)
            files.write(stream.path, before[:at] + new + before[at + len(new) :])
        file.seen, file.text, file.at = at + len(new), "", 0

    def is_full(self, end: PipeEnd) -> bool:
        """Return whether the process that wrote to a pipe has to wait."""
        pipe = self._pipes[end.number]
        return pipe.length > PIPE_CHARACTERS and pipe.readers > 0

    # Images.

    def state(self) -> StreamsState:
        """Return them as an image holds them."""
        return StreamsState(
            last=self._last,
            processes=self.processes,
            files={
                number: FileState(seen=file.seen, text=file.text[file.at :])
                for number, file in self._files.items()
            },
            pipes={
                number: PipeState(
                    text="".join(pipe.chunks), readers=pipe.readers, writers=pipe.writers
                )
                for number, pipe in self._pipes.items()
                if pipe.readers or pipe.writers
            },
        )

    def restore(self, state: StreamsState) -> None:
        """Become those of an image."""
        self._last, self.processes = state.last, state.processes
        for number, file in state.files.items():
            self._files[number] = _File(seen=file.seen, text=file.text)
        for number, pipe in state.pipes.items():
            self._pipes[number] = _Pipe(
                chunks=deque([pipe.text] if pipe.text else []),
                length=len(pipe.text),
                readers=pipe.readers,
                writers=pipe.writers,
            )


def _taken(file: _File, until: str, most: int) -> str:
    """Take from what was read ahead."""
    end = min(len(file.text), file.at + (most or (len(file.text) if until else _CHUNK)))
    if until:
        place = file.text.find(until, file.at, end)
        end = place + 1 if place >= 0 else end
    found, file.at = file.text[file.at : end], end
    return found


def _place(pipe: _Pipe, until: str) -> int:
    """Return where a character is in a pipe, or -1."""
    before = 0
    for chunk in pipe.chunks:
        place = chunk.find(until)
        if place >= 0:
            return before + place
        before += len(chunk)
    return -1


def _drawn(pipe: _Pipe, length: int) -> str:
    """Take so many characters out of a pipe."""
    pieces: list[str] = []
    left = length
    while left:
        chunk = pipe.chunks.popleft()
        if len(chunk) > left:
            pipe.chunks.appendleft(chunk[left:])
            chunk = chunk[:left]
        pieces.append(chunk)
        left -= len(chunk)
    pipe.length -= length
    return "".join(pieces)
