"""Lua's patterns, matched step by step: for those that could take for ever in C.

Texts hold a byte a character, so that places are Lua's own.
"""

import string
from collections.abc import Callable, Mapping
from typing import Final

import attrs

MOST_STEPS: Final = 1_000_000
"""How many single characters one search may try."""

_MOST_CAPTURES: Final = 32
_DEEPEST: Final = 180
_POSITION: Final = -2
_OPEN: Final = -1

_CLASSES: Final[Mapping[str, Callable[[str], bool]]] = {
    "a": str.isalpha,
    "d": str.isdigit,
    "l": str.islower,
    "s": lambda c: c in " \t\n\r\f\v",
    "u": str.isupper,
    "w": str.isalnum,
    "x": lambda c: c in "0123456789abcdefABCDEF",
    "p": lambda c: c in string.punctuation,
    "c": lambda c: c < " " or c == "\x7f",
    "g": lambda c: "!" <= c <= "~",
    "z": lambda c: c == "\0",
}


class Endless(Exception):
    """A search tried too many characters."""


class Malformed(ValueError):
    """A pattern that is none."""


def search(subject: str, pattern: str, init: int) -> tuple[int | str, ...] | None:
    """Return where a pattern is first found from *init* on: first, last place and captures.

    Places count from 1; the captures are texts, or places for ``()``.

    Raises:
        Endless: It took `MOST_STEPS`.
        Malformed: The pattern is none.
    """
    anchored = pattern.startswith("^")
    matcher = _Matcher(subject, pattern)
    for start in range(init - 1, len(subject) + 1):
        matcher.captures = []
        end = matcher.match(start, 1 if anchored else 0, 0)
        if end >= 0:
            return (start + 1, end, *matcher.found())
        if anchored:
            break
    return None


@attrs.define
class _Matcher:
    subject: str
    pattern: str
    captures: list[tuple[int, int]] = attrs.field(factory=list)
    """Where each begins, and its length, `_OPEN` or `_POSITION`."""

    steps: int = 0

    def found(self) -> list[int | str]:
        """Return the captures."""
        out: list[int | str] = []
        for start, length in self.captures:
            if length == _OPEN:
                raise Malformed("unfinished capture")
            place = length == _POSITION
            out.append(start + 1 if place else self.subject[start : start + length])
        return out

    def match(self, s: int, p: int, depth: int) -> int:  # noqa: PLR0912 - a case an item
        """Return where the rest of the pattern, from *p* on, ends if it fits at *s*, or -1."""
        if depth > _DEEPEST:
            raise Malformed("pattern too complex")
        pattern = self.pattern
        while p < len(pattern):
            c = pattern[p]
            if c == "(":
                position = pattern[p + 1 : p + 2] == ")"
                if len(self.captures) >= _MOST_CAPTURES:
                    raise Malformed("too many captures")
                self.captures.append((s, _POSITION if position else _OPEN))
                end = self.match(s, p + 2 if position else p + 1, depth + 1)
                if end < 0:
                    self.captures.pop()
                return end
            if c == ")":
                return self._close(s, p, depth)
            if c == "$" and p + 1 == len(pattern):
                return s if s == len(self.subject) else -1
            if c == "%" and pattern[p + 1 : p + 2] == "b":
                s, p = self._balanced(s, p + 2), p + 4
            elif c == "%" and pattern[p + 1 : p + 2] == "f":
                stop = self._end_of(p + 2)
                before = self.subject[s - 1] if s else "\0"
                after = self.subject[s] if s < len(self.subject) else "\0"
                fits = not self._one(before, p + 2, stop) and self._one(after, p + 2, stop)
                s, p = (s if fits else -1), stop
            elif c == "%" and pattern[p + 1 : p + 2].isdecimal():
                s, p = self._same_again(s, int(pattern[p + 1])), p + 2
            else:
                stop = self._end_of(p)
                sign = pattern[stop : stop + 1]
                if sign == "?":
                    if self._fits(s, p, stop):
                        end = self.match(s + 1, stop + 1, depth + 1)
                        if end >= 0:
                            return end
                    p = stop + 1
                    continue
                if sign in ("*", "+"):
                    return self._most(s, p, stop, 1 if sign == "+" else 0, depth)
                if sign == "-":
                    return self._least(s, p, stop, depth)
                s, p = (s + 1 if self._fits(s, p, stop) else -1), stop
            if s < 0:
                return -1
        return s

    def _close(self, s: int, p: int, depth: int) -> int:
        opened = [at for at, (_, length) in enumerate(self.captures) if length == _OPEN]
        if not opened:
            raise Malformed("invalid pattern capture")
        at = opened[-1]
        start = self.captures[at][0]
        self.captures[at] = (start, s - start)
        end = self.match(s, p + 1, depth + 1)
        if end < 0:
            self.captures[at] = (start, _OPEN)
        return end

    def _most(self, s: int, p: int, stop: int, least: int, depth: int) -> int:
        count = 0
        while self._fits(s + count, p, stop):
            count += 1
        while count >= least:
            end = self.match(s + count, stop + 1, depth + 1)
            if end >= 0:
                return end
            count -= 1
        return -1

    def _least(self, s: int, p: int, stop: int, depth: int) -> int:
        while True:
            end = self.match(s, stop + 1, depth + 1)
            if end >= 0:
                return end
            if not self._fits(s, p, stop):
                return -1
            s += 1

    def _balanced(self, s: int, p: int) -> int:
        opens, closes = self.pattern[p : p + 1], self.pattern[p + 1 : p + 2]
        if not closes:
            raise Malformed("malformed pattern (missing arguments to '%b')")
        if self.subject[s : s + 1] != opens:
            return -1
        level = 0
        for at in range(s, len(self.subject)):
            self._step()
            if self.subject[at] == closes:
                level -= 1
                if not level:
                    return at + 1
            elif self.subject[at] == opens:
                level += 1
        return -1

    def _same_again(self, s: int, number: int) -> int:
        if not 1 <= number <= len(self.captures) or self.captures[number - 1][1] == _OPEN:
            raise Malformed(f"invalid capture index %{number}")
        start, length = self.captures[number - 1]
        text = self.subject[start : start + max(length, 0)]
        return s + len(text) if self.subject.startswith(text, s) else -1

    def _end_of(self, p: int) -> int:
        """Return where the item ends that begins at *p*, without its sign of repetition."""
        pattern = self.pattern
        if pattern[p : p + 1] == "%":
            if p + 1 >= len(pattern):
                raise Malformed("malformed pattern (ends with '%')")
            return p + 2
        if pattern[p : p + 1] != "[":
            return p + 1
        at = p + 2 if pattern[p + 1 : p + 2] == "^" else p + 1
        first = True
        while first or pattern[at : at + 1] != "]":
            if at >= len(pattern):
                raise Malformed("malformed pattern (missing ']')")
            at += 2 if pattern[at] == "%" else 1
            first = False
        return at + 1

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Endless

    def _fits(self, s: int, p: int, stop: int) -> bool:
        self._step()
        return s < len(self.subject) and self._one(self.subject[s], p, stop)

    def _one(self, c: str, p: int, stop: int) -> bool:
        kind = self.pattern[p]
        if kind == ".":
            return True
        if kind == "%":
            return _in_class(c, self.pattern[p + 1])
        if kind == "[":
            return self._in_set(c, p, stop - 1)
        return kind == c

    def _in_set(self, c: str, p: int, last: int) -> bool:
        pattern, at, inside = self.pattern, p + 1, True
        if pattern[at] == "^":
            at, inside = at + 1, False
        while at < last:
            if pattern[at] == "%":
                if _in_class(c, pattern[at + 1]):
                    return inside
                at += 2
            elif pattern[at + 1] == "-" and at + 2 < last:
                if pattern[at] <= c <= pattern[at + 2]:
                    return inside
                at += 3
            else:
                if pattern[at] == c:
                    return inside
                at += 1
        return not inside


def _in_class(c: str, letter: str) -> bool:
    test = _CLASSES.get(letter.lower())
    if test is None:
        return letter == c
    return bool(c.isascii() and test(c)) == letter.islower()
