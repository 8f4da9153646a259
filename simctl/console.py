"""What people read: standard output and error, whatever they are connected to.

Names and texts come from users and from plugins: a terminal must not obey what they hold, and it
may lack some of their characters. The caller of the command may have closed either, or be gone.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, cast

_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_COLOURS: Final = re.compile("(\x1b\\[[0-9;]*m)")
_DESCRIPTORS: Final = (0, 1, 2)


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""Return a text without control characters, and without what an encoding lacks.

    What turns the direction of a line is such a character as well.

    Each stands as JSON writes it (`\u001b`); line ends and tabs are left.
    """
    text = _CONTROLS.sub(_escaped, text)
    if text.isascii():
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(each if _fits(each, encoding) else _escape(each) for each in text)
    return text


def _escaped(found: re.Match[str]) -> str:
    return _escape(found[0])


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _fits(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


class Screen:
    """A text stream that people look at; all but `write` is that of the stream below."""

    def __init__(self, below: IO[str], *, must_tell: bool) -> None:
        """Stand before a stream; without *must_tell* it is no error that no process listens."""
        self.below = below
        self.colours = True
        """Whether colours are let through: those of argparse, before anything else is told."""
        self._must_tell = must_tell

    def write(self, text: str) -> int:
        """Write what can be shown of a text."""
        encoding = encoding_of(self.below)
        if self.colours:
            parts = _COLOURS.split(text)
            parts[::2] = [visible(part, encoding) for part in parts[::2]]
            self.write_controls("".join(parts))
        else:
            self.write_controls(visible(text, encoding))
        return len(text)

    def write_controls(self, text: str) -> None:
        """Write a text of our own, with colours or movements of the cursor."""
        self._do(lambda: self.below.write(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Have what was written be seen."""
        self._do(self.below.flush)

    def _do(self, what: Callable[[], object]) -> None:
        try:
            what()
        except OSError:
            if self._must_tell:
                raise
            leave(self.below)

    def __getattr__(self, name: str) -> Any:
        """Return what the stream below has."""
        return getattr(self.below, name)


def leave(stream: IO[str]) -> None:
    """Have what is left for a stream go nowhere, so that nothing complains at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):  # it may be no file, as where a test looks on
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def encoding_of(stream: IO[str]) -> str:
    """Return the encoding of a text stream; UTF-8 where it has none of its own."""
    return getattr(stream, "encoding", None) or "utf-8"


def write_controls(stream: IO[str], text: str) -> None:
    """Write colours or movements of the cursor to standard output or error."""
    if isinstance(stream, Screen):
        stream.write_controls(text)
    else:
        stream.write(text)


@contextmanager
def screens() -> Iterator[None]:
    """Stand before standard output and error; what is closed of them leads nowhere."""
    before = sys.stdout, sys.stderr
    _open_what_is_closed()
    output, error = sys.stdout, sys.stderr
    sys.stdout = cast("Any", Screen(output, must_tell=True))
    sys.stderr = cast("Any", Screen(error, must_tell=False))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = (
            now if was is None else was for was, now in zip(before, (output, error), strict=True)
        )


def _open_what_is_closed() -> None:
    """Have no file of ours become standard input, output or error, and Python have all three."""
    for number in _DESCRIPTORS:
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def no_colours_any_more() -> None:
    """Let no colours through from here on, from any writer."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Screen):
            stream.colours = False


_live_lines: Final[list[Callable[[], None]]] = []
"""What takes each live line away that is on the terminal now."""


@contextmanager
def live_line(clear: Callable[[], None]) -> Iterator[None]:
    """Let a live line be taken away for good, as soon as somebody needs the terminal."""
    _live_lines.append(clear)
    try:
        yield
    finally:
        _live_lines.remove(clear)


def clear_live_lines() -> None:
    """Take away the live lines there are, for good."""
    for clear in _live_lines:
        clear()
