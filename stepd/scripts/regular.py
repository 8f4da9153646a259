"""Regular expressions of POSIX, basic and extended, as grep, sed, awk and ``=~`` take them.

They are translated for Python's matcher. Where an expression has a choice, the longest match
counts, which that matcher does not look for by itself.
"""

from __future__ import annotations

import re
from functools import lru_cache

import attrs

from simctl.stepd.scripts.patterns import CLASSES

_HEAVY = 5_000
_REPEATED_TWICE = re.compile(r"\((?:[^()]|\([^()]*\))*[*+}](?:[^()]|\([^()]*\))*\)[*+{]")


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
    """A regular expression."""

    pattern: re.Pattern[str]
    chooses: bool
    heavy: bool

    def search(self, text: str, start: int = 0) -> Found | None:
        """Return the first and longest place in *text* that fits, from *start* on.

        Raises:
            RegularMistake: It could take too long to find out.
        """
        if self.heavy and len(text) > _HEAVY:
            raise RegularMistake(
                f"a repetition in a repetition, in a text of more than {_HEAVY} characters"
            )
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
        if self.heavy and len(text) > _HEAVY:
            raise RegularMistake(
                f"a repetition in a repetition, in a text of more than {_HEAVY} characters"
            )
        return self.pattern.search(text) is not None


@lru_cache(maxsize=512)
def regular(text: str, *, extended: bool, ignores_case: bool = False) -> Regular:
    """Read a regular expression.

    Raises:
        RegularMistake: It is none.
    """
    translated = _Translator(text, extended=extended).whole()
    flags = re.IGNORECASE if ignores_case else re.NOFLAG
    try:
        pattern = re.compile(translated, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise RegularMistake(f"{text}: invalid regular expression ({error})") from None
    return Regular(
        pattern=pattern,
        chooses="|" in translated,
        heavy=_REPEATED_TWICE.search(translated) is not None,
    )


@attrs.define
class _Translator:
    """Reads an expression from left to right and writes it for Python."""

    text: str
    extended: bool = attrs.field(kw_only=True)
    at: int = 0
    depth: int = 0
    groups: int = 0

    def whole(self) -> str:
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

    def _choices(self) -> str:
        branches = [self._branch()]
        while self._is("|"):
            self._skip()
            branches.append(self._branch())
        return "|".join(branches)

    def _branch(self) -> str:
        out: list[str] = []
        while self.at < len(self.text) and not self._is("|"):
            if self._is(")") and self.depth:
                break
            if self._is(")") and not self.extended:
                raise RegularMistake(f"{self.text}: Unmatched ) or \\)")
            first = not out or out == ["^"]
            atom = self._atom(first=first)
            out.append(self._repeated(atom))
        return "".join(out)

    def _repeated(self, atom: str) -> str:
        """Read the repetitions behind an atom."""
        while self.at < len(self.text) and atom not in ("^", "$"):
            char = self.text[self.at]
            if char == "*":
                self.at += 1
                atom = self._again(atom, "*")
            elif (self._is("+") or self._is("?")) and (self.extended or char == "\\"):
                sign = self.text[self.at] if self.extended else self.text[self.at + 1]
                self._skip()
                atom = self._again(atom, sign)
            elif self._is("{"):
                atom = self._again(atom, self._interval())
            else:
                break
        return atom

    @staticmethod
    def _again(atom: str, sign: str) -> str:
        wraps = atom[-1:] in "*+?}" and not atom.endswith(("\\*", "\\+", "\\?", "\\}"))
        return f"(?:{atom}){sign}" if wraps else atom + sign

    def _interval(self) -> str:
        close = "}" if self.extended else "\\}"
        found = re.compile(r"(\d{0,3})(,?)(\d{0,3})" + re.escape(close)).match(
            self.text, self.at + (1 if self.extended else 2)
        )
        if not found or not (found[1] or found[2]):
            raise RegularMistake(f"{self.text}: Invalid content of {{ }}")
        self.at = found.end()
        return "{" + (found[1] or "0") + found[2] + found[3] + "}"

    def _atom(self, *, first: bool) -> str:
        char = self.text[self.at]
        if self._is("("):
            return self._group()
        if char == "\\":
            return self._escaped()
        self.at += 1
        if char == "[":
            return self._bracket()
        if char == ".":
            return "."
        if char == "^" and (self.extended or first):
            return "^"
        if char == "$" and (self.extended or self._ends()):
            return "$"
        if char in "*+?{" and self.extended and first:
            if char == "{":
                return "\\{"
            raise RegularMistake(f"{self.text}: a repetition of nothing")
        return re.escape(char)

    def _ends(self) -> bool:
        return self.at >= len(self.text) or self._is("|") or self._is(")")

    def _group(self) -> str:
        self._skip()
        self.depth += 1
        self.groups += 1
        inner = self._choices()
        if not self._is(")"):
            raise RegularMistake(f"{self.text}: Unmatched ( or \\(")
        self._skip()
        self.depth -= 1
        return f"({inner})"

    def _escaped(self) -> str:
        behind = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if not behind:
            raise RegularMistake(f"{self.text}: Trailing backslash")
        if behind in "wWsSbB":
            return "\\" + behind
        if behind in "<>":
            return "\\b(?=\\w)" if behind == "<" else "\\b(?<=\\w)"
        if behind in "123456789":
            if int(behind) > self.groups:
                raise RegularMistake(f"{self.text}: Invalid back reference")
            return "\\" + behind
        if behind == "n":
            return "\\n"
        if behind == "t":
            return "\\t"
        return re.escape(behind)

    def _bracket(self) -> str:
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
                return f"[{'^' if negated else ''}{''.join(members)}]"
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
            high = self.text[self.at + 1 : self.at + 2]
            if self.text[self.at : self.at + 1] == "-" and high not in ("", "]"):
                self.at += 2
                if char > high:
                    raise RegularMistake(f"{self.text}: Invalid range end")
                members.append(f"{re.escape(char)}-{re.escape(high)}")
            else:
                members.append(re.escape(char))
