"""``[[ … ]]``: its tests, judged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from simctl.stepd.scripts.arithmetic import ArithmeticMistake
from simctl.stepd.scripts.expand import expand_pattern, expand_regular, expand_text
from simctl.stepd.scripts.file_tests import judge_unary
from simctl.stepd.scripts.patterns import fits
from simctl.stepd.scripts.regular import RegularMistake, regular
from simctl.stepd.scripts.state import ShellState
from simctl.stepd.scripts.tree import Condition, Joined, Test

_MISUSED = 2
_EMPTY = "''"
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}


class _NoNumberError(Exception):
    """Say why an operand is no number; the test fails, while a word without a value skips it."""


Show: TypeAlias = Callable[[str], Awaitable[None]]
"""Shows a test that is about to be judged, if ``set -x`` asks for it."""


async def judge(test: Test, state: ShellState, show: Show) -> int:
    """Return the status of tests: 0 they hold, 1 they do not, 2 they make no sense."""
    try:
        return 0 if await _holds(test, state, show) else 1
    except (_NoNumberError, RegularMistake) as error:
        await state.tell()
        await state.complain(str(error) and f"[[: {error}")
        return _MISUSED if isinstance(error, RegularMistake) else 1


async def _holds(test: Test, state: ShellState, show: Show) -> bool:
    if isinstance(test, Condition):
        return await _condition(test, state, show)
    if test.operator == "!":
        return not await _holds(test.conditions[0], state, _inverted(test, show))
    for each in test.conditions:
        if await _holds(each, state, show) == (test.operator == "||"):
            return test.operator == "||"
    return test.operator == "&&"


def _inverted(test: Joined, show: Show) -> Show:
    """Return what shows the test behind a ``!``; one in parentheses is shown without it."""

    async def show_inverted(text: str) -> None:
        await show(f"! {text}")

    return show_inverted if isinstance(test.conditions[0], Condition) else show


async def _condition(test: Condition, state: ShellState, show: Show) -> bool:
    first = await expand_text(test.operands[0].parts, state)
    if len(test.operands) == 1:
        operator = test.operator or "-n"
        await show(f"{operator} {first or _EMPTY}")
        return judge_unary(operator, first, state)
    right = test.operands[1].parts
    if test.operator in ("==", "=", "!="):
        text = await expand_pattern(right, state)
    elif test.operator == "=~":
        text = await expand_regular(right, state)
    else:
        text = await expand_text(right, state)
    await show(f"{first or _EMPTY} {test.operator} {text or _EMPTY}")
    return _compare(test.operator, first, text, state)


def _compare(operator: str, left: str, right: str, state: ShellState) -> bool:
    if operator in ("==", "=", "!="):
        return fits(left, right) == (operator != "!=")
    if operator == "=~":
        return _matches(left, right, state)
    if operator in ("<", ">"):
        return left < right if operator == "<" else left > right
    try:
        return _COMPARED[operator](state.calculate(left), state.calculate(right))
    except ArithmeticMistake as error:
        raise _NoNumberError(str(error)) from None


def _matches(left: str, right: str, state: ShellState) -> bool:
    """Match a regular expression; BASH_REMATCH then holds what its parentheses fit."""
    found = regular(right, extended=True).search(left)
    state.variables.unset("BASH_REMATCH")
    variable = state.variables.make("BASH_REMATCH")
    variable.value = {**dict(enumerate(found.texts if found is not None else ()))}
    return found is not None
