"""Assignments: to variables, to elements, to whole arrays."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from simctl.stepd.scripts.expand import expand_text, expand_word
from simctl.stepd.scripts.printing import single_quoted
from simctl.stepd.scripts.state import BadSubscriptError, ShellState
from simctl.stepd.scripts.tree import Assignment
from simctl.stepd.scripts.variables import ReadonlyError, Variable


@attrs.frozen(kw_only=True)
class Declared:
    """An assignment whose value is expanded: a *text*, or the *elements* of an array.

    Each element has the text of its subscript, or None, and what its word has become.
    """

    name: str
    append: bool = False
    subscript: str | None = None
    text: str | None = None
    elements: tuple[tuple[str | None, tuple[str, ...]], ...] | None = None

    def __str__(self) -> str:
        """Return it as a word of a command."""
        place = "" if self.subscript is None else f"[{self.subscript}]"
        return f"{self.name}{place}{'+' * self.append}={self.text or ''}"

    @property
    def shown(self) -> str:
        """The assignment of an array as ``set -x`` shows it."""
        texts = [
            ("" if key is None else f"[{single_quoted(key)}]=") + single_quoted(text)
            for key, texts in self.elements or ()
            for text in texts
        ]
        return f"{self}({' '.join(texts)})"


async def declared(assignment: Assignment, state: ShellState) -> Declared:
    """Expand the value of an assignment."""
    subscript = None
    if assignment.subscript is not None:
        subscript = await expand_text(assignment.subscript, state)
        found = state.variables.find(assignment.name)
        if assignment.subscript and (found is None or not found.keyed):
            # One that is written, and comes to nothing, counts as any empty expression does.
            subscript = subscript or "0"
    if assignment.elements is None:
        return Declared(
            name=assignment.name,
            append=assignment.append,
            subscript=subscript,
            text=await expand_text(assignment.value, state),
        )
    elements: list[tuple[str | None, tuple[str, ...]]] = []
    for element in assignment.elements:
        if element.subscript is None:
            elements.append((None, tuple(await expand_word(element.word, state))))
        else:
            key = await expand_text(element.subscript, state)
            elements.append((key, (await expand_text(element.word.parts, state),)))
    return Declared(name=assignment.name, append=assignment.append, elements=tuple(elements))


async def assign(given: Declared, state: ShellState) -> None:
    """Assign to the variable that the name means here.

    Raises:
        ReadonlyError, TooLongError, ArithmeticMistake: It cannot have the value.
    """
    if given.elements is not None:
        _assign_array(given, state)
    elif given.subscript is not None:
        if not given.subscript:
            raise BadSubscriptError(f"{given.name}[]: bad array subscript")
        key = state.key_of(given.name, given.subscript)
        state.assign(given.name, given.text or "", key, append=given.append)
    else:
        state.assign(given.name, given.text or "", append=given.append)


def begin_array(assignment: Assignment, state: ShellState) -> None:
    """Make an array of the variable that is to be one, before its elements are expanded."""
    if assignment.elements is None:
        return
    variable = _writable(assignment.name, state)
    if variable.value is None:
        variable.value = {}
    elif isinstance(variable.value, str):
        variable.value = {0: variable.value}


def _writable(name: str, state: ShellState) -> Variable:
    variable = state.variables.make(name)
    if variable.readonly:
        raise ReadonlyError(f"{name}: readonly variable")
    return variable


def _assign_array(given: Declared, state: ShellState) -> None:
    variable = _writable(given.name, state)
    if not given.append or variable.value is None:
        variable.value = {}
    elif isinstance(variable.value, str):
        variable.value = {0: variable.value}
    by_name = variable.keyed
    for key, text in _by_name(given) if by_name else _by_number(given, variable, state):
        shown = str(state.calculate(text)) if variable.integer else text
        state.variables.store(variable, given.name, shown, key)


def _by_name(given: Declared) -> list[tuple[int | str, str]]:
    """Return keys and texts for an array by name: words without subscripts come in pairs."""
    pairs: list[tuple[int | str, str]] = []
    loose: list[str] = []
    for key, texts in given.elements or ():
        if key is None:
            loose += texts
        else:
            pairs.append((key, texts[0]))
    loose += [""] * (len(loose) % 2)
    return [*pairs, *zip(loose[::2], loose[1::2], strict=True)]


def _by_number(
    given: Declared, variable: Variable, state: ShellState
) -> Iterator[tuple[int | str, str]]:
    """Yield keys and texts for an array by number: each counts on from the one before.

    Each is stored before the next is looked at, which may fail or count back from the last.
    """
    assert isinstance(variable.value, dict)
    place = max((int(key) for key in variable.value), default=-1) + 1
    for key, texts in given.elements or ():
        if key == "":
            state.untold.append(f"[]={texts[0]}: bad array subscript")
            continue
        if key is not None:
            wanted = state.calculate(key)
            if wanted < 0:
                wanted += max(map(int, variable.value), default=-1) + 1
            if wanted < 0:
                state.untold.append(f"[{key}]={texts[0]}: bad array subscript")
                continue
            place = wanted
        for text in texts:
            yield place, text
            place += 1
