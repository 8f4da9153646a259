"""Checkpoint images: what they hold of a process and of what it has started, and their file.

An image is the state of one moment. Of a program it is the time it has left and what it will write;
of a script its journal, by which another shell comes to the same place, and its children's states;
of a command of Slurm's what the command itself wants to be remembered.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, cast

import msgspec

from simctl.stepd.scripts.host import (
    CLOSED,
    Closed,
    Disposition,
    Inherited,
    OpenFile,
    OpenText,
    PipeEnd,
    Redirects,
    Stream,
)
from simctl.stepd.scripts.tree import OpenMode

IMAGE_VERSION: Final = 2
_KIND: Final = "simctl checkpoint image"


class ImageError(Exception):
    """Say why nothing can go on from an image, or why none could be written."""


Entry: TypeAlias = tuple[str, Any]
"""One result of what a shell asked of its process: the question, and the answer."""

StreamState: TypeAlias = int | tuple[str, int, str]
"""A file descriptor that was inherited; a file: how it was opened, its number and path; a "text" or
a "pipe" that is "r" or "w", by number; "closed"."""


class FileState(msgspec.Struct, frozen=True, kw_only=True):
    """An open file: how many bytes of it were seen, and what of them is still to be read."""

    seen: int
    text: str


class PipeState(msgspec.Struct, frozen=True, kw_only=True):
    """A pipe: what is in it, and how many processes hold its ends."""

    text: str
    readers: int
    writers: int


class StreamsState(msgspec.Struct, frozen=True, kw_only=True):
    """What a script and all it has started share."""

    last: int = 0
    processes: int = 0
    files: dict[int, FileState] = {}
    pipes: dict[int, PipeState] = {}


class ProgramState(msgspec.Struct, frozen=True, kw_only=True, tag="program"):
    """A program with *left_us* still to run, which then ends with a wait status.

    `stopped` says that it waits for SIGCONT, and `kept` which signals reached it meanwhile.
    """

    argv: tuple[str, ...]
    left_us: int
    status: int = 0
    output: str = ""
    ignores: tuple[int, ...] = ()
    exits_on: dict[int, int] = {}
    stopped: bool = False
    kept: tuple[int, ...] = ()
    size: int = 0


class CommandState(msgspec.Struct, frozen=True, kw_only=True, tag="command"):
    """A command of Slurm's; without a *memory* of its own it has lost its connections."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    work_dir: str = "/"
    stdin: str = ""
    memory: Any = None
    size: int = 0


class ScriptState(msgspec.Struct, frozen=True, kw_only=True, tag="script"):
    """A shell in the middle of a script, or a tool (by its name) in the middle of its work.

    `env` and `start_dir` are what it began with, `work_dir` where it stands, `stdin` what is left
    to be read, `journal` what it has asked so far, `foreground` the child that it waits for to go
    on, 0 for none. A script that has not `begun` has done nothing yet. One that was `forked` goes
    on as its parent's journal leads to. `streams` are in the image of the outermost alone, and
    `kept_ends` are those of pipes that the shell itself holds. It is to die of the signal
    `deadly`, unless that is 0.
    """

    text: str
    argv: tuple[str, ...]
    env: dict[str, str]
    pid: int
    begun: bool
    start_dir: str
    work_dir: str
    stdin: str = ""
    tool: str = ""
    forked: bool = False
    streams: StreamsState | None = None
    kept_ends: tuple[tuple[int, bool], ...] = ()
    journal: tuple[Entry, ...] = ()
    foreground: int = 0
    children: tuple[ChildState, ...] = ()
    dispositions: dict[int, Disposition] = {}
    pending: tuple[int, ...] = ()
    deadly: int = 0
    stopped: bool = False
    kept: tuple[int, ...] = ()
    out_of_memory: bool = False
    size: int = 0


State: TypeAlias = ProgramState | CommandState | ScriptState


class ChildState(msgspec.Struct, frozen=True, kw_only=True):
    """What a script has started: by the pid it knows, and its descriptors; ended if no state."""

    pid: int
    state: State | None = None
    status: int = 0
    streams: tuple[tuple[int, StreamState], ...] = ()


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint image: whose it is, how much it takes, and the state of its process."""

    kind: str = _KIND
    version: int = IMAGE_VERSION
    job: int = 0
    step: str = ""
    task: int = 0
    uid: int = 0
    program: str = ""
    size: int = 0
    state: State

    def encode(self) -> bytes:
        """Return the text of its file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    version: int


def decode(data: bytes) -> Image:
    """Read the file of an image.

    Raises:
        ImageError: It is none, or not a whole one, or of another version.
    """
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.kind != _KIND:
            raise ImageError("this is no checkpoint image")
        if head.version != IMAGE_VERSION:
            raise ImageError(
                f"this is an image of version {head.version}, and only version {IMAGE_VERSION} "
                "can be restarted"
            )
        return msgspec.json.decode(data, type=Image)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ImageError("this is no checkpoint image, or not the whole of one") from None


def redirects_state(redirects: Redirects) -> tuple[tuple[int, StreamState], ...]:
    """Return descriptors as an image holds them."""
    numbered = [(0, redirects.stdin), (1, redirects.stdout), (2, redirects.stderr)]
    return tuple((number, _stream_state(each)) for number, each in (*numbered, *redirects.more))


def redirects_of(state: tuple[tuple[int, StreamState], ...]) -> Redirects:
    """Return the descriptors that an image holds."""
    redirects = Redirects()
    for number, stream in state:
        redirects = redirects.put(number, _stream_of(stream))
    return redirects


def _stream_state(stream: Stream) -> StreamState:
    match stream:
        case Inherited():
            return stream.descriptor
        case OpenFile():
            return (stream.mode, stream.number, stream.path)
        case OpenText():
            return ("text", stream.number, "")
        case PipeEnd():
            return ("pipe", stream.number, "r" if stream.reads else "w")
        case Closed():
            return ("closed", 0, "")


def _stream_of(state: StreamState) -> Stream:
    match state:
        case int():
            return Inherited(descriptor=state)
        case ("text", number, _):
            return OpenText(number=number)
        case ("pipe", number, way):
            return PipeEnd(number=number, reads=way == "r")
        case ("closed", _, _):
            return CLOSED
        case (mode, number, path):
            return OpenFile(path=path, mode=cast(OpenMode, mode), number=number)


def total_size(state: State) -> int:
    """Return how many bytes of memory a process has, with all that it has started."""
    if not isinstance(state, ScriptState):
        return state.size
    below = (total_size(child.state) for child in state.children if child.state is not None)
    return state.size + sum(below)
