"""The conditions of ``test`` and ``[``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from simctl.limits import EXPRESSION_NESTING
from simctl.stepd.scripts.arithmetic import whole_number
from simctl.stepd.scripts.file_tests import NUMBER_TESTS, UNARY_TESTS, judge_unary
from simctl.stepd.scripts.state import ShellState

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
_COMPARE_TEXT: dict[str, Callable[[str, str], bool]] = {
    "=": lambda left, right: left == right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
}


class TestMistake(ValueError):
    """Say why a condition makes no sense; the status is then 2."""

    __test__ = False  # no test class, for all its name


BINARY_TESTS = (*_COMPARE_TEXT, *NUMBER_TESTS)


def holds(arguments: Sequence[str], state: ShellState) -> bool:
    """Say whether the condition *arguments* holds.

    As POSIX has it, up to four arguments are read by their number, so that a value which looks like
    an operator does no harm; ``-a``, ``-o`` and parentheses count among more.

    Raises:
        TestMistake: the arguments are no condition.
    """
    return _Reader(arguments=(), state=state).by_number(tuple(arguments))


@attrs.define(kw_only=True)
class _Reader:
    """Read one condition."""

    arguments: tuple[str, ...]
    state: ShellState
    at: int = 0
    depth: int = 0

    def by_number(self, words: tuple[str, ...]) -> bool:
        """Judge *words* by how many they are."""
        match words:
            case ():
                return False
            case (only,):
                return only != ""
            case ("!", only):
                return only == ""
            case (operator, operand):
                return self._unary(operator, operand)
            case (left, operator, right) if operator in BINARY_TESTS:
                return self._binary(left, operator, right)
        return self._by_place(words)

    def _by_place(self, words: tuple[str, ...]) -> bool:
        """Judge what has a ``!``, parentheses, or more arguments than have a rule of their own."""
        match words:
            case (left, "-a" | "-o" as operator, right):
                judge = all if operator == "-a" else any
                return judge((left != "", right != ""))
            case ("!", _, _) | ("!", _, _, _):
                return not self.by_number(words[1:])
            case ("(", *inner, ")") if len(inner) in (1, 2):
                return self.by_number(tuple(inner))
        reader = _Reader(arguments=words, state=self.state)
        value = reader._or()
        if reader.at < len(words):
            raise TestMistake(f"{words[reader.at]}: this argument is one too many")
        return value

    def _next(self) -> str:
        """Take the next argument."""
        if self.at >= len(self.arguments):
            raise TestMistake("an argument is missing at the end")
        self.at += 1
        return self.arguments[self.at - 1]

    def _take(self, word: str) -> bool:
        """Take the next argument if it is *word*."""
        found = self.arguments[self.at : self.at + 1] == (word,)
        self.at += found
        return found

    def _or(self) -> bool:
        """Read conditions joined by ``-o``."""
        value = self._and()
        while self._take("-o"):
            right = self._and()
            value = value or right
        return value

    def _and(self) -> bool:
        """Read conditions joined by ``-a``."""
        value = self._primary()
        while self._take("-a"):
            right = self._primary()
            value = value and right
        return value

    def _primary(self) -> bool:
        """Read one comparison, or a condition in parentheses."""
        negated = False
        while self._take("!"):
            negated = not negated
        word = self._next()
        behind = self.arguments[self.at : self.at + 2]
        if len(behind) > 1 and behind[0] in BINARY_TESTS:
            self.at += 2
            return self._binary(word, *behind) != negated
        if word == "(":
            return self._parenthesis() != negated
        if word in UNARY_TESTS and behind:
            return self._unary(word, self._next()) != negated
        return (word != "") != negated

    def _parenthesis(self) -> bool:
        """Read to the closing parenthesis."""
        self.depth += 1
        if self.depth > EXPRESSION_NESTING:
            raise TestMistake(f"parentheses are nested more than {EXPRESSION_NESTING} deep")
        value = self._or()
        if not self._take(")"):
            raise TestMistake("a closing parenthesis is missing")
        self.depth -= 1
        return value

    def _unary(self, operator: str, operand: str) -> bool:
        """Judge an operator with one operand."""
        if operator in UNARY_TESTS:
            return judge_unary(operator, operand, self.state)
        raise TestMistake(f"{operator}: unary operator expected")

    def _binary(self, left: str, operator: str, right: str) -> bool:
        """Judge an operator with two operands."""
        if operator in _COMPARE_TEXT:
            return _COMPARE_TEXT[operator](left, right)
        return _COMPARE[operator](_number(left), _number(right))


def _number(text: str) -> int:
    """Read an operand that must be a number."""
    try:
        return whole_number(text)
    except ValueError:
        raise TestMistake(f"{text}: a whole number was expected") from None
