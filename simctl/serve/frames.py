"""Frames between a command's client and the server: a letter, a length, and what follows.

`simctl/serve/client.py` tells what each letter means; it stands alone, and knows nothing of this.
"""

from collections.abc import Sequence
from typing import Final

import attrs

MOST_BYTES: Final = 16 << 20
"""How long a frame may be: a command line with its environment, or a piece of input."""

RUN, SIGNAL, STDIN, STATUS, CONTROL = b"R", b"S", b"I", b"X", b"C"
OUT, ERR, WANTED, EXEC, KILL, QUIT = b"o", b"e", b"i", b"x", b"k", b"q"
_HEAD: Final = 5
_DIGITS: Final = 9
_OF_CLIENTS: Final = (RUN, SIGNAL, STDIN, STATUS, CONTROL)


class FrameError(Exception):
    """What came is no frame of a client's."""


def frame(kind: bytes, what: bytes = b"") -> bytes:
    """Return a frame."""
    return kind + len(what).to_bytes(4, "big") + what


def take(buffer: bytearray) -> tuple[bytes, bytes] | None:
    """Take the first frame of a client off a buffer; None while it is not whole.

    Raises:
        FrameError: It begins with something else, or is too long.
    """
    if buffer and bytes(buffer[:1]) not in _OF_CLIENTS:
        raise FrameError("garbage")
    if len(buffer) < _HEAD:
        return None
    end = _HEAD + int.from_bytes(buffer[1:_HEAD], "big")
    if end > MOST_BYTES:
        raise FrameError("a frame that is too long")
    if len(buffer) < end:
        return None
    found = bytes(buffer[:1]), bytes(buffer[_HEAD:end])
    del buffer[:end]
    return found


@attrs.frozen(kw_only=True)
class Asked:
    """A command line as its client has sent it."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]


def read_run(what: bytes) -> Asked:
    """Read what a client wants to run.

    Raises:
        FrameError: It is not whole.
    """
    cwd, *rest = what.split(b"\0")
    count = number(rest.pop(0)) if rest else 0
    if not 0 < count <= len(rest):
        raise FrameError("a command that is not whole")
    words = [text(each) for each in rest]
    pairs = (each.partition("=") for each in words[count:])
    return Asked(
        argv=tuple(words[:count]),
        cwd=text(cwd) if cwd.startswith(b"/") else "/",
        env={name: value for name, equals, value in pairs if name and equals},
    )


def run_of(argv: Sequence[str], cwd: str, env: dict[str, str]) -> bytes:
    """Return what is to be run, as `read_run` reads it."""
    fields = [cwd, str(len(argv)), *argv, *(f"{name}={value}" for name, value in env.items())]
    return b"\0".join(data(each) for each in fields)


def number(what: bytes) -> int:
    """Return a number that a client has sent.

    Raises:
        FrameError: It is none.
    """
    if not what.isdigit() or len(what) > _DIGITS:
        raise FrameError("no number")
    return int(what)


def text(what: bytes) -> str:
    """Return bytes as a text that `data` gives back as they were."""
    return what.decode(errors="surrogateescape")


def data(what: str) -> bytes:
    """Return the bytes of a text; what is no character of any is a question mark."""
    try:
        return what.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return what.encode(errors="replace")


def printable(what: str) -> str:
    """Return a text that can stand in a trace."""
    return what.encode(errors="replace").decode()
