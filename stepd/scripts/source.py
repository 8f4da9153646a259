"""The text of a script: places in it, mistakes noted at them, and stepping over pairs."""

from __future__ import annotations

import bisect
import re

import attrs

from simctl.stepd.scripts.tree import ScriptMistake


@attrs.define
class Source:
    """Read *text* from left to right, noting mistakes on the way."""

    text: str
    mistakes: list[ScriptMistake] = attrs.field(factory=list)
    at: int = 0
    cut_short: bool = False  # something was never closed, or nested too deep: the rest is lost
    first_line: int = attrs.field(default=1, kw_only=True)  # the number of the text's first line
    _end: int = attrs.field(init=False)
    _line_starts: list[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Index the lines."""
        self._end = len(self.text)
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line(self, at: int) -> int:
        """Return the line that the character *at* stands on."""
        return bisect.bisect_right(self._line_starts, at) + self.first_line - 1

    def column(self, at: int) -> int:
        """Return the column of the character *at*, from 1."""
        return at - self._line_starts[self.line(at) - self.first_line] + 1

    def place(self, line: int, column: int) -> int:
        """Return the index of the character at *line* and *column*."""
        return self._line_starts[line - self.first_line] + column - 1

    def written(self, at: int) -> str:
        """Return what stands between the character *at* and this one, on one line."""
        return self.text[at : self.at].replace("\\\n", "")

    def note(self, at: int, message: str) -> None:
        """Note a mistake at the character *at*."""
        self.mistakes.append(
            ScriptMistake(line=self.line(at), column=self.column(at), message=message)
        )

    def refuse(self, at: int, what: str, instead: str = "") -> None:
        """Note that *what* is shell, but not simulated."""
        advice = f"; {instead}" if instead else ""
        self.note(at, f"{what} is not simulated{advice}")

    def skip_balanced(self, at: int, opening: str, closing: str) -> int:
        """Return where the pair that opens at *at* has ended; quoted characters do not count."""
        depth, here = 0, at
        while here < self._end:
            char = self.text[here]
            if char == "\\":
                here += 1
            elif char in "'\"`":
                here = self._skip_quoted(here)
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
                if depth == 0:
                    return here + 1
            here += 1
        self._never_closed(at, opening)
        return self._end

    def _skip_quoted(self, at: int) -> int:
        """Return where the quote that opens at *at* closes, or the last character."""
        quote, here = self.text[at], at + 1
        while here < self._end and self.text[here] != quote:
            here += 2 if self.text[here] == "\\" and quote != "'" else 1
        return min(here, self._end - 1)

    def _never_closed(self, at: int, what: str) -> None:
        """Note that what opens at *at* goes on to the end of the text."""
        self.cut_short = True
        self.note(at, f"this {what} is never closed")
