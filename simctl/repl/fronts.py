"""Where the lines of a session come from, and where its words go: pipes and scripts."""

import os
from typing import IO, Any, Final

import attrs

from simctl.console import encoding_of, visible, write_controls
from simctl.repl.errors import CommandError

_CHUNK: Final = 1 << 16
PROMPT: Final = "> "
MORE: Final = ". "


class Front:
    """One way to talk with a person or a program."""

    colours = False
    greets = False
    """Whether a person sits before it who is to be told what there is."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def attend(self, session: Any) -> None:
        """Hear which session reads its lines here; a front that shows more of it keeps it."""

    def write(self, text: str, colour: str = "") -> None:
        """Print text, in a colour (`2`, `1;31`) where there are any."""
        text = visible(text, encoding_of(self._out))
        if colour and self.colours:
            line = text.removesuffix("\n")
            text = f"\x1b[{colour}m{line}\x1b[0m\n"
        write_controls(self._out, text)

    def flush(self) -> None:
        """Let everything printed so far be seen."""
        self._out.flush()

    def read(self, prompt: str) -> str | None:
        """Return the next line, without its end; None where there are no more."""
        raise NotImplementedError

    def more(self) -> str | None:
        """Return a line that belongs to the command before."""
        raise NotImplementedError

    def edit(self, name: str, text: str) -> str:
        """Have a person edit a text; return what came of it.

        Raises:
            CommandError: There is no person, or no editor.
        """
        raise CommandError(f"only a terminal has an editor; `cat > {name} <<EOF` writes a file")

    def unread(self) -> Any:
        """Return what was read ahead, as something that can be handed to another process."""
        raise NotImplementedError

    def resume(self, unread: Any) -> None:
        """Go on with what another process of this session had read ahead."""
        raise NotImplementedError


class PipeFront(Front):
    """Lines from a pipe or a file, read no sooner than they are wanted; each is repeated."""

    def __init__(self, out: IO[str], descriptor: int) -> None:
        super().__init__(out)
        self._descriptor = descriptor
        self._read = b""
        self._ended = False

    def read(self, prompt: str) -> str | None:
        """Return the next line."""
        return self._line(PROMPT)

    def more(self) -> str | None:
        """Return the next line."""
        return self._line(MORE)

    def _line(self, mark: str) -> str | None:
        self.flush()
        while b"\n" not in self._read and not self._ended:
            chunk = os.read(self._descriptor, _CHUNK)
            self._ended = not chunk
            self._read += chunk
        if not self._read:
            return None
        line, _, self._read = self._read.partition(b"\n")
        text = line.decode(errors="replace").rstrip("\r")
        self.write(f"{mark}{text}\n")
        return text

    def unread(self) -> Any:
        """Return what came with the last line."""
        return self._read

    def resume(self, unread: Any) -> None:
        """Put back what came with the last line."""
        self._read = unread


@attrs.frozen
class ScriptLine:
    """A line of a script: a command, a comment, or one that belongs to the command before."""

    text: str
    is_more: bool = False


def is_comment(line: str) -> bool:
    """Return whether a line of a transcript is a comment, and not what a script begins with."""
    return line.startswith("# ") or line == "#"


def read_script(text: str) -> list[ScriptLine]:
    """Return the lines to be typed: of a transcript those behind `> ` and `. `, else all.

    Comments are kept, so that they stand in what is printed.
    """
    lines = text.splitlines()
    if not any(line.startswith(PROMPT) for line in lines):
        return [ScriptLine(line) for line in lines]
    found: list[ScriptLine] = []
    for line in lines:
        if is_comment(line):
            found.append(ScriptLine(line))
        elif line.startswith((PROMPT, MORE)) or line in (PROMPT.rstrip(), MORE.rstrip()):
            found.append(ScriptLine(line[len(PROMPT) :], is_more=line.startswith(MORE[0])))
    return found


class ScriptFront(Front):
    """The lines of a script, each repeated, so that what is printed is a transcript."""

    def __init__(self, out: IO[str], lines: list[ScriptLine]) -> None:
        super().__init__(out)
        self._lines = lines
        self._at = 0

    def read(self, prompt: str) -> str | None:
        """Return the next command."""
        while self._at < len(self._lines) and self._lines[self._at].is_more:
            # What belonged to a command that did not want it.
            self._at += 1
        return self._next(PROMPT)

    def more(self) -> str | None:
        """Return the next line, which in a transcript is marked as belonging to the last."""
        return self._next(MORE)

    def _next(self, mark: str) -> str | None:
        if self._at >= len(self._lines):
            return None
        text = self._lines[self._at].text
        self._at += 1
        as_it_is = mark == PROMPT and is_comment(text)
        self.write(f"{text}\n" if as_it_is else f"{mark}{text}".rstrip() + "\n")
        return text

    def unread(self) -> Any:
        """Return where in the script it is."""
        return self._at

    def resume(self, unread: Any) -> None:
        """Go on in the script."""
        self._at = unread
