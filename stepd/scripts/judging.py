"""``[[ … ]]``: its tests, judged."""

from __future__ import annotations

from collections.abc import Callable

from simctl.stepd.scripts.arithmetic import ArithmeticMistake
from simctl.stepd.scripts.expand import expand_pattern, expand_regular, expand_text
from simctl.stepd.scripts.file_tests import judge_unary
from simctl.stepd.scripts.patterns import fits
from simctl.stepd.scripts.regular import RegularMistake, regular
from simctl.stepd.scripts.state import ShellState
from simctl.stepd.scripts.tree import Condition, Joined, Test, Word

_MISUSED = 2
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}


async def judge(test: Test, state: ShellState) -> int:
    """Return the status of tests: 0 they hold, 1 they do not, 2 they make no sense."""
    try:
        return 0 if await _holds(test, state) else 1
    except (ArithmeticMistake, RegularMistake) as error:
        await state.complain(f"[[: {error}")
        return _MISUSED if isinstance(error, RegularMistake) else 1


async def _holds(test: Test, state: ShellState) -> bool:
    if isinstance(test, Condition):
        return await _condition(test, state)
    return await _joined(test, state)


async def _joined(test: Joined, state: ShellState) -> bool:
    if test.operator == "!":
        return not await _holds(test.conditions[0], state)
    for each in test.conditions:
        if await _holds(each, state) == (test.operator == "||"):
            return test.operator == "||"
    return test.operator == "&&"


async def _condition(test: Condition, state: ShellState) -> bool:
    first = await expand_text(test.operands[0].parts, state)
    if not test.operator:
        return first != ""
    if len(test.operands) == 1:
        return judge_unary(test.operator, first, state)
    return await _binary(test.operator, first, test.operands[1], state)


async def _binary(operator: str, left: str, right: Word, state: ShellState) -> bool:
    if operator in ("==", "=", "!="):
        return fits(left, await expand_pattern(right.parts, state)) == (operator != "!=")
    if operator == "=~":
        return await _matches(left, right, state)
    text = await expand_text(right.parts, state)
    if operator in ("<", ">"):
        return left < text if operator == "<" else left > text
    return _COMPARED[operator](state.calculate(left), state.calculate(text))


async def _matches(left: str, right: Word, state: ShellState) -> bool:
    """Match a regular expression; BASH_REMATCH then holds what its parentheses fit."""
    found = regular(await expand_regular(right.parts, state), extended=True).search(left)
    state.variables.unset("BASH_REMATCH")
    variable = state.variables.make("BASH_REMATCH")
    variable.value = {**dict(enumerate(found.texts if found is not None else ()))}
    return found is not None
