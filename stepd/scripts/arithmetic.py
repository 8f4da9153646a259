"""The whole-number arithmetic of ``$((…))``: C's operators on 64 signed bits.

Values are computed while the text is read, so that a long sum needs no deep tree; what must not be
computed (the other side of ``&&``, ``||`` and ``?:``) is read with the evaluation switched off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import attrs

from simctl.limits import EXPRESSION_NESTING

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+#[0-9a-zA-Z@_]+|0[xX][0-9a-fA-F]+|\d+)(?![\w#])|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator><<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|[-+*/%&^|<>=!]=|[-+*/%&^|<>=!~?:(),]))",
    re.ASCII,
)
_PRECEDENCE = {
    operator: level
    for level, operators in enumerate(
        ("|", "^", "&", "== !=", "<= >= < >", "<< >>", "+ -", "* / %")
    )
    for operator in operators.split()
}
_ASSIGNING = re.compile(r"\s*(<<=|>>=|[-*/%+&^|]?=(?!=))")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@_"
_ONE_CASE = 36
_MOST_DIGITS = 1000
_WORD = 1 << 64
_HALF = 1 << 63


class ArithmeticMistake(ValueError):
    """Say why an expression has no value."""

    status = 1  # that of the line which is skipped for it


def wrap(value: int) -> int:
    """Cut *value* to a signed number of 64 bits, as the machine would."""
    return (value + _HALF) % _WORD - _HALF


def whole_number(text: str) -> int:
    """Read a decimal number with its sign, blanks around it allowed.

    Raises:
        ValueError: the text is no such number, or does not fit in 64 bits.
    """
    match = re.fullmatch(r"[ \t\n]*([-+]?)0*(\d{1,19})[ \t\n]*", text, re.ASCII)
    value = int(match[1] + match[2]) if match else _HALF
    if not -_HALF <= value < _HALF:
        raise ValueError(text)
    return value


LookUp: TypeAlias = Callable[[str, str | None], str]
"""Gives the text of a variable, or of the element with a subscript."""

Store: TypeAlias = Callable[[str, str | None, int], None]
"""Takes the value of a variable, or of the element with a subscript."""


def evaluate(text: str, look_up: LookUp, store: Store) -> int:
    """Return the value of the expression *text*; an empty one is 0.

    The value that *look_up* has for a name is an expression of its own, and 0 if empty. What is
    assigned is given to *store*.

    Raises:
        ArithmeticMistake: the text is no expression, or divides by zero.
    """
    return _Reader(text=text, look_up=look_up, store=store, live=True).value()


def check_expression(text: str) -> None:
    """Refuse a *text* that is no expression, without computing it.

    Raises:
        ArithmeticMistake: as `evaluate` does.
    """
    _Reader(text=text, look_up=_nothing, store=_discard, live=False).value()


def _nothing(name: str, subscript: str | None) -> str:
    """Look up nothing, where nothing is computed."""
    return ""


def _discard(name: str, subscript: str | None, value: int) -> None:
    """Store nothing, where nothing is computed."""


def _divide(left: int, right: int) -> int:
    """Divide towards zero, as C does."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_BINARY: dict[str, Callable[[int, int], int]] = {
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "&": lambda left, right: left & right,
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<=": lambda left, right: int(left <= right),
    ">=": lambda left, right: int(left >= right),
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "<<": lambda left, right: left << (right & 63),
    ">>": lambda left, right: left >> (right & 63),
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "%": lambda left, right: left - right * _divide(left, right),
}


@attrs.define(kw_only=True)
class _Reader:
    """Read one expression from left to right, and compute it unless switched off."""

    text: str
    look_up: LookUp
    store: Store
    live: bool
    depth: int = 0
    at: int = 0
    kind: str = ""
    token: str = ""
    subscript: str | None = None
    """What stands in brackets behind the name that is the token."""

    def value(self) -> int:
        """Return the value of the whole text."""
        self._advance()
        if self.kind == "end":
            return 0
        value = self._comma()
        if self.kind != "end":
            raise self._unexpected()
        return value

    def _advance(self) -> None:
        """Move to the next token."""
        match = _TOKEN.match(self.text, self.at)
        if match:
            self.at = match.end()
            self.kind, self.token = str(match.lastgroup), match[str(match.lastgroup)]
            self.subscript = self._subscript() if self.kind == "name" else None
        elif self.text[self.at :].strip():
            self.kind, self.token = "other", self.text[self.at :].split()[0]
        else:
            self.kind, self.token = "end", ""

    def _subscript(self) -> str | None:
        """Take what stands in brackets here."""
        if self.text[self.at : self.at + 1] != "[":
            return None
        depth = 0
        for place in range(self.at, len(self.text)):
            depth += (self.text[place] == "[") - (self.text[place] == "]")
            if depth == 0:
                found, self.at = self.text[self.at + 1 : place], place + 1
                return found
        raise ArithmeticMistake(f'in "{self.text.strip()}": a ] is missing')

    def _unexpected(self) -> ArithmeticMistake:
        """Describe the token that does not belong here."""
        found = f'"{self.token}"' if self.token else "the end"
        return ArithmeticMistake(f'in "{self.text.strip()}": {found} was not expected')

    def _take(self, *operators: str) -> str:
        """Move past the next token if it is one of *operators*, and return it, else ""."""
        if self.kind != "operator" or self.token not in operators:
            return ""
        token = self.token
        self._advance()
        return token

    def _need(self, operator: str) -> None:
        """Move past *operator*, which must come next."""
        if not self._take(operator):
            raise self._unexpected()

    def _comma(self) -> int:
        """Read expressions joined by commas; the last one's value counts."""
        value = self._assignment()
        while self._take(","):
            value = self._assignment()
        return value

    def _assignment(self) -> int:
        """Read ``name = …`` or an expression without assignment."""
        self._deeper()
        match = _ASSIGNING.match(self.text, self.at)
        if self.kind == "name" and match:
            name, operator = (self.token, self.subscript), match[1]
            self._advance()
            self._advance()
            value = self._assignment()
            if operator != "=":
                value = self._binary(operator[:-1], self._look_up(*name), value)
            self._store(*name, value)
        else:
            value = self._choice()
        self.depth -= 1
        return value

    def _deeper(self) -> None:
        """Count one more level, and refuse what no person writes."""
        self.depth += 1
        if self.depth > EXPRESSION_NESTING:
            raise ArithmeticMistake(f"an expression is nested more than {EXPRESSION_NESTING} deep")

    def _choice(self) -> int:
        """Read ``a ? b : c``, of which one side only is computed."""
        condition = self._or()
        if not self._take("?"):
            return condition
        live = self.live
        self.live = live and condition != 0
        chosen = self._comma()
        self._need(":")
        self.live = live and condition == 0
        self._deeper()
        other = self._choice()
        self.depth -= 1
        self.live = live
        return chosen if condition else other

    def _or(self) -> int:
        """Read ``a || b``, whose right side is computed only if the left one is 0."""
        value = self._and()
        while self._take("||"):
            live = self.live
            self.live = live and value == 0
            right = self._and()
            self.live = live
            value = int(value != 0 or right != 0)
        return value

    def _and(self) -> int:
        """Read ``a && b``, whose right side is computed only if the left one is not 0."""
        value = self._level(0)
        while self._take("&&"):
            live = self.live
            self.live = live and value != 0
            right = self._level(0)
            self.live = live
            value = int(value != 0 and right != 0)
        return value

    def _level(self, lowest: int) -> int:
        """Read operators that bind from left to right and at least as tightly as *lowest*."""
        value = self._power()
        while (level := self._precedence()) >= lowest:
            operator = self._take(self.token)
            value = self._binary(operator, value, self._level(level + 1))
        return value

    def _precedence(self) -> int:
        """Return how tightly the next token binds, or -1 if it joins nothing."""
        return _PRECEDENCE.get(self.token, -1) if self.kind == "operator" else -1

    def _binary(self, operator: str, left: int, right: int) -> int:
        """Compute one operator; what is switched off may divide by zero."""
        if operator in ("/", "%") and right == 0:
            if self.live:
                raise ArithmeticMistake(f'in "{self.text.strip()}": division by zero')
            return 0
        return wrap(_BINARY[operator](left, right))

    def _power(self) -> int:
        """Read ``a ** b``, which binds from right to left."""
        value = self._unary()
        if not self._take("**"):
            return value
        self._deeper()
        exponent = self._power()
        self.depth -= 1
        if exponent < 0 and self.look_up is not _nothing:
            # Bash refuses it where it is switched off as well.
            raise ArithmeticMistake(f'in "{self.text.strip()}": an exponent below zero')
        return wrap(pow(value, max(exponent, 0), _WORD))

    def _unary(self) -> int:
        """Read signs, ``!``, ``~`` and what they stand before."""
        operator = self._take("++", "--", "+", "-", "!", "~")
        if not operator:
            return self._atom()
        if operator in ("++", "--") and self.kind == "name":
            name = (self.token, self.subscript)
            self._advance()
            return self._store(*name, self._look_up(*name) + (1 if operator == "++" else -1))
        self._deeper()
        value = self._unary()
        self.depth -= 1
        changed = {"-": -value, "!": int(value == 0), "~": ~value}
        return wrap(changed.get(operator, value))

    def _atom(self) -> int:
        """Read a number, a name, or an expression in parentheses."""
        kind, token, subscript = self.kind, self.token, self.subscript
        if self._take("("):
            value = self._comma()
            self._need(")")
            return value
        if kind not in ("number", "name"):
            raise self._unexpected()
        self._advance()
        if kind == "number":
            return self._number(token)
        value = self._look_up(token, subscript)
        if step := self._take("++", "--"):
            self._store(token, subscript, value + (1 if step == "++" else -1))
        return value

    def _number(self, digits: str) -> int:
        """Return the value of a constant: decimal, 0 octal, 0x hexadecimal or base#digits."""
        base_text, sharp, rest = digits.partition("#")
        if sharp:
            return self._of_base(int(base_text[:9]), rest)
        base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") else 10
        try:
            return wrap(int(digits[:_MOST_DIGITS], base))
        except ValueError:
            raise ArithmeticMistake(f"{digits[:20]} is no number of base {base}") from None

    @staticmethod
    def _of_base(base: int, digits: str) -> int:
        """Return the value of *digits* in a base from 2 to 64."""
        value = 0
        for char in digits:
            digit = _DIGITS.index(char)
            if base <= _ONE_CASE and char.isupper():
                digit = _DIGITS.index(char.lower())
            if digit >= base or not 2 <= base <= len(_DIGITS):  # noqa: PLR2004 - the least base
                raise ArithmeticMistake(f"{base}#{digits[:20]} is no number of base {base}")
            value = wrap(value * base + digit)
        return value

    def _look_up(self, name: str, subscript: str | None) -> int:
        """Return the value of a variable, which is an expression of its own."""
        text = self.look_up(name, subscript).strip() if self.live else ""
        try:
            return whole_number(text) if text[:1] != "0" else self._nested(text)
        except ValueError:
            return self._nested(text)

    def _nested(self, text: str) -> int:
        """Compute the expression a variable holds; one that leads to itself is refused."""
        self._deeper()
        reader = attrs.evolve(self, text=text, at=0)
        value = reader.value()
        self.depth -= 1
        return value

    def _store(self, name: str, subscript: str | None, value: int) -> int:
        """Give a variable a value, unless switched off."""
        if self.live:
            self.store(name, subscript, wrap(value))
        return wrap(value)
