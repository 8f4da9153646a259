"""Choose by name, as `-k` of pytest does: words joined by and, or, not and parentheses."""

import re
from typing import Final

from simctl.status import InputError

_TOKEN: Final = re.compile(r"\s*(?:([()])|([^\s()]+))")


def selects(expression: str, name: str) -> bool:
    """Return whether *expression* is true of *name*; a word is if the name holds it, in any case.

    Raises:
        InputError: The expression cannot be read.
    """
    return _Reader(expression, name.casefold()).read()


class _Reader:
    """Reads an expression from left to right; every operand is read, so that mistakes show."""

    def __init__(self, expression: str, name: str) -> None:
        self._tokens = [match[1] or match[2] for match in _TOKEN.finditer(expression)]
        self._place = 0
        self._name = name
        self._expression = expression

    def read(self) -> bool:
        value = self._any()
        if self._place < len(self._tokens):
            raise self._wrong(f"did not expect {self._tokens[self._place]!r}")
        return value

    def _any(self) -> bool:
        value = self._all()
        while self._take("or"):
            value = self._all() or value
        return value

    def _all(self) -> bool:
        value = self._one()
        while self._take("and"):
            value = self._one() and value
        return value

    def _one(self) -> bool:
        if self._take("not"):
            return not self._one()
        if self._take("("):
            value = self._any()
            if not self._take(")"):
                raise self._wrong("a parenthesis is not closed")
            return value
        if self._place == len(self._tokens):
            raise self._wrong("expected a word at its end")
        word = self._tokens[self._place]
        if word in ("and", "or", ")"):
            raise self._wrong(f"expected a word before {word!r}")
        self._place += 1
        return word.casefold() in self._name

    def _take(self, token: str) -> bool:
        if self._tokens[self._place : self._place + 1] != [token]:
            return False
        self._place += 1
        return True

    def _wrong(self, what: str) -> InputError:
        return InputError(f"-k {self._expression!r}: {what}")
