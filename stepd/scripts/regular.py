"""Regular expressions of POSIX, basic and extended, as grep, sed, awk and ``=~`` take them.

They are translated for Python's matcher. Where an expression has a choice, the longest match
counts, which that matcher does not look for by itself. An expression with which it could take for
ever is run by a machine of ours, slowly but within bounds.
"""

from __future__ import annotations

import re
from functools import lru_cache

import attrs

from simctl.limits import EXPRESSION_NESTING
from simctl.stepd.scripts.machine import (
    Char,
    Choice,
    Group,
    Node,
    Place,
    Repeat,
    Same,
    Sequence,
    TooMuchError,
    machine_of,
    python_of,
    repetitions,
)
from simctl.stepd.scripts.patterns import CLASSES

_MUCH = 10**8
_ESCAPES = {"n": "\n", "t": "\t", "f": "\f", "v": "\v", "r": "\r", "a": "\a"}


class RegularMistake(ValueError):
    """Say why a text is no regular expression, or none that is simulated."""


@attrs.frozen(kw_only=True)
class Found:
    """Where an expression fits, and what each pair of its parentheses does; "" for nothing."""

    start: int
    end: int
    texts: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Regular:
    """A regular expression: *node* is how it was read, *repeats* how many repetitions it has."""

    pattern: re.Pattern[str]
    node: Node
    chooses: bool
    nested: bool
    repeats: int

    def search(self, text: str, start: int = 0) -> Found | None:
        """Return the first and longest place in *text* that fits, from *start* on.

        Raises:
            RegularMistake: It would take too long to find out.
        """
        if self._is_heavy(len(text)):
            return self._search_slowly(text, start)
        found = self.pattern.search(text, start)
        if found is None:
            return None
        if self.chooses:
            for end in range(len(text), found.end(), -1):
                longer = self.pattern.fullmatch(text, found.start(), end)
                if longer is not None:
                    found = longer
                    break
        texts = tuple(each or "" for each in (found[0], *found.groups()))
        return Found(start=found.start(), end=found.end(), texts=texts)

    def matches(self, text: str) -> bool:
        """Return whether the expression fits anywhere in *text*."""
        if self._is_heavy(len(text)):
            return self._search_slowly(text, 0) is not None
        return self.pattern.search(text) is not None

    def _is_heavy(self, length: int) -> bool:
        """Whether trying all ways of a fit, as Python's matcher does, could take too long."""
        return self.nested or (self.repeats > 1 and length ** (self.repeats + 1) > _MUCH)

    def _search_slowly(self, text: str, start: int) -> Found | None:
        flags = self.pattern.flags & (re.DOTALL | re.IGNORECASE)
        try:
            spans = machine_of(self.node, flags).search(text, start)
        except TooMuchError as error:
            raise RegularMistake(str(error)) from None
        if spans is None:
            return None
        texts = tuple(text[low:high] if low >= 0 else "" for low, high in spans)
        return Found(start=spans[0][0], end=spans[0][1], texts=texts)


@lru_cache(maxsize=512)
def regular(text: str, *, extended: bool, ignores_case: bool = False, escapes: str = "") -> Regular:
    """Read a regular expression.

    Args:
        text: The expression.
        extended: Whether it is an extended one of POSIX, or else a basic one.
        ignores_case: Whether upper and lower case are the same.
        escapes: The letters behind a backslash that stand for other characters, such as ``t`` for a
            tab, in brackets too; with "*" a backslash in brackets takes the meaning from any.

    Raises:
        RegularMistake: It is none.
    """
    node = _Translator(text, extended=extended, escapes=escapes).whole()
    translated = python_of(node)
    # A newline is a character like any other: only grep and sed know lines, and give one at a time.
    flags = re.DOTALL | (re.IGNORECASE if ignores_case else re.NOFLAG)
    try:
        pattern = re.compile(translated, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise RegularMistake(f"{text}: invalid regular expression ({error})") from None
    repeats, nested = repetitions(node)
    return Regular(
        pattern=pattern,
        node=node,
        chooses="|" in translated,
        nested=nested,
        repeats=repeats,
    )


@attrs.define
class _Translator:
    """Reads an expression from left to right."""

    text: str
    extended: bool = attrs.field(kw_only=True)
    escapes: str = attrs.field(kw_only=True)
    at: int = 0
    depth: int = 0
    groups: int = 0

    def whole(self) -> Node:
        """Read all of it."""
        out = self._choices()
        if self.at < len(self.text):
            raise RegularMistake(f"{self.text}: Unmatched ) or \\)")
        return out

    def _is(self, operator: str) -> bool:
        """Return whether an operator stands here: with a backslash in basic expressions."""
        shown = operator if self.extended else "\\" + operator
        return self.text.startswith(shown, self.at)

    def _skip(self) -> None:
        self.at += 1 if self.extended else 2

    def _choices(self) -> Node:
        branches = [self._branch()]
        while self._is("|"):
            self._skip()
            branches.append(self._branch())
        return Choice(tuple(branches)) if branches[1:] else branches[0]

    def _branch(self) -> Node:
        out: list[Node] = []
        while self.at < len(self.text) and not self._is("|"):
            if self._is(")") and self.depth:
                break
            if self._is(")") and not self.extended:
                raise RegularMistake(f"{self.text}: Unmatched ) or \\)")
            first = not out or out == [Place("^")]
            atom = self._atom(first=first)
            out.append(self._repeated(atom))
        return Sequence(tuple(out))

    def _repeated(self, atom: Node) -> Node:
        """Read the repetitions behind an atom."""
        while self.at < len(self.text) and atom not in (Place("^"), Place(r"\Z")):
            char = self.text[self.at]
            if char == "*":
                self.at += 1
                atom = Repeat(atom, 0, None)
            elif (self._is("+") or self._is("?")) and (self.extended or char == "\\"):
                sign = self.text[self.at] if self.extended else self.text[self.at + 1]
                self._skip()
                atom = Repeat(atom, int(sign == "+"), None if sign == "+" else 1)
            elif self._is("{"):
                atom = Repeat(atom, *self._interval())
            else:
                break
        return atom

    def _interval(self) -> tuple[int, int | None]:
        close = "}" if self.extended else "\\}"
        found = re.compile(r"(\d{0,3})(,?)(\d{0,3})" + re.escape(close)).match(
            self.text, self.at + (1 if self.extended else 2)
        )
        if not found or not (found[1] or found[2]):
            raise RegularMistake(f"{self.text}: Invalid content of {{ }}")
        self.at = found.end()
        least = int(found[1] or 0)
        most = int(found[3]) if found[3] else None if found[2] else least
        if most is not None and most < least:
            raise RegularMistake(f"{self.text}: Invalid content of {{ }}")
        return least, most

    def _atom(self, *, first: bool) -> Node:
        char = self.text[self.at]
        if self._is("("):
            return self._group()
        if char == "\\":
            return self._escaped()
        self.at += 1
        if char == "[":
            return self._bracket()
        if char == ".":
            return Char(".")
        if char == "^" and (self.extended or first):
            return Place("^")
        if char == "$" and (self.extended or self._ends()):
            return Place(r"\Z")
        if char in "*+?" and self.extended and first:
            raise RegularMistake(f"{self.text}: a repetition of nothing")
        return Char(re.escape(char))

    def _ends(self) -> bool:
        return self.at >= len(self.text) or self._is("|") or self._is(")")

    def _group(self) -> Node:
        self._skip()
        self.depth += 1
        if self.depth > EXPRESSION_NESTING:
            raise RegularMistake(
                f"{self.text}: more than {EXPRESSION_NESTING} groups in one another"
            )
        self.groups += 1
        number = self.groups
        inner = self._choices()
        if not self._is(")"):
            raise RegularMistake(f"{self.text}: Unmatched ( or \\(")
        self._skip()
        self.depth -= 1
        return Group(number, inner)

    def _escaped(self) -> Node:
        behind = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if not behind:
            raise RegularMistake(f"{self.text}: Trailing backslash")
        if behind in "wWsSbB":
            return (Place if behind in "bB" else Char)("\\" + behind)
        if behind in "<>":
            return Place("\\b(?=\\w)" if behind == "<" else "\\b(?<=\\w)")
        if behind in "123456789":
            if int(behind) > self.groups:
                raise RegularMistake(f"{self.text}: Invalid back reference")
            return Same(int(behind))
        return Char(re.escape(self._meant(behind)))

    def _meant(self, letter: str) -> str:
        """Return what a letter behind a backslash stands for."""
        known = self.escapes and (self.escapes == "*" or letter in self.escapes)
        return _ESCAPES.get(letter, letter) if known else letter

    def _bracket(self) -> Node:
        negated = self.text[self.at : self.at + 1] == "^"
        self.at += negated
        members: list[str] = []
        first = True
        while True:
            char = self.text[self.at : self.at + 1]
            if not char:
                raise RegularMistake(f"{self.text}: Unmatched [, [^, [:, [., or [=")
            if char == "]" and not first:
                self.at += 1
                return Char(f"[{'^' if negated else ''}{''.join(members)}]")
            first = False
            if self.text.startswith("[:", self.at):
                end = self.text.find(":]", self.at)
                name = self.text[self.at + 2 : end]
                if end < 0 or name not in CLASSES:
                    raise RegularMistake(f"{self.text}: Invalid character class name")
                members.append(CLASSES[name])
                self.at = end + 2
                continue
            self.at += 1
            behind = self.text[self.at : self.at + 1]
            if char == "\\" and behind and (self.escapes == "*" or behind in self.escapes):
                char = self._meant(behind)
                self.at += 1
            high = self.text[self.at + 1 : self.at + 2]
            if self.text[self.at : self.at + 1] == "-" and high not in ("", "]"):
                self.at += 2
                if char > high:
                    raise RegularMistake(f"{self.text}: Invalid range end")
                members.append(f"{re.escape(char)}-{re.escape(high)}")
            else:
                members.append(re.escape(char))
