"""Expansion: what the words of a command become when it runs."""

from __future__ import annotations

import re

import attrs

from simctl.limits import VALUE_CHARACTERS
from simctl.stepd.scripts.arithmetic import ArithmeticMistake, evaluate
from simctl.stepd.scripts.simple import split_assignment
from simctl.stepd.scripts.state import AmbiguousTargetError, ExpansionError, ShellState
from simctl.stepd.scripts.tree import Arithmetic, Parameter, Part, Text, Word

_BLANKS = " \t\n"
_ALL_ARGUMENTS = ("@", "*")


def expand_words(words: tuple[Word, ...], state: ShellState) -> tuple[str, ...]:
    """Return the arguments that *words* stand for: unquoted values are split at blanks."""
    declares = bool(words) and words[0].literal == "export"
    fields: list[str] = []
    for word in words:
        name, value = split_assignment(word)
        if declares and name and not name.endswith("+"):
            fields.append(f"{name}={expand_text(value, state)}")
        else:
            fields += _expand_word(word, state)
    return tuple(fields)


def expand_text(parts: tuple[Part, ...], state: ShellState) -> str:
    """Return the one text that *parts* stand for, as in an assignment: nothing is split."""
    texts = [_text_of(part, state) for part in parts]
    bounded_length(sum(map(len, texts)))
    return "".join(texts)


def bounded_length(length: int) -> int:
    """Return the length of a text that comes of an expansion.

    Raises:
        ExpansionError: It is beyond the bound; doubling a variable gets there in twenty turns.
    """
    if length > VALUE_CHARACTERS:
        raise ExpansionError(f"a word or value of more than {VALUE_CHARACTERS} characters")
    return length


def expand_one(word: Word, state: ShellState) -> str:
    """Return the one file name that *word* stands for.

    Raises:
        AmbiguousTargetError: it stands for none, or for several.
    """
    fields = _expand_word(word, state)
    if len(fields) != 1:
        raise AmbiguousTargetError("ambiguous redirect: this is no file name, or several")
    return fields[0]


@attrs.define
class _Fields:
    """Gather arguments piece by piece; all of a command's together are bounded."""

    done: list[str] = attrs.field(factory=list)
    _pieces: list[str] = attrs.field(init=False, factory=list)
    _length: int = attrs.field(init=False, default=0)

    def add(self, text: str) -> None:
        """Add *text*, even if empty, to the argument that is being gathered."""
        self._length = bounded_length(self._length + len(text))
        self._pieces.append(text)

    def cut(self) -> None:
        """End the argument, if one was begun."""
        if self._pieces:
            self.done.append("".join(self._pieces))
            self._pieces.clear()

    def add_split(self, text: str) -> None:
        """Add an unquoted value: its blanks end arguments."""
        pieces = re.split(f"[{_BLANKS}]+", text)
        for index, piece in enumerate(pieces):
            if index:
                self.cut()
            if piece:
                self.add(piece)


def _expand_word(word: Word, state: ShellState) -> list[str]:
    """Return the arguments, often one, that *word* stands for."""
    fields = _Fields()
    _expand_parts(word.parts, state, fields)
    fields.cut()
    return fields.done


def _expand_parts(parts: tuple[Part, ...], state: ShellState, fields: _Fields) -> None:
    """Add what *parts* stand for to *fields*."""
    for part in parts:
        if isinstance(part, Parameter):
            _expand_parameter(part, state, fields)
        elif part.quoted:
            fields.add(_text_of(part, state))
        else:
            fields.add_split(_text_of(part, state))


def _expand_parameter(part: Parameter, state: ShellState, fields: _Fields) -> None:
    """Add the value of a parameter, or the operand that stands in for it, to *fields*."""
    value, operand = _choose(part, state)
    if operand:
        _expand_parts(operand, state, fields)
    elif part.name == "@" and part.quoted:
        for index, argument in enumerate(() if part.operator.endswith("+") else state.arguments):
            if index:
                fields.cut()
            fields.add(argument)
    elif part.quoted:
        fields.add(value)
    else:
        fields.add_split(value)


def _choose(part: Parameter, state: ShellState) -> tuple[str, tuple[Part, ...]]:
    """Return the value of a parameter, or the operand that is to be expanded instead."""
    is_set, value = state.look_up(part.name)
    kind = part.operator[-1:]
    missing = not is_set or (part.operator.startswith(":") and not value)
    if not kind:
        if not is_set and "u" in state.options and part.name not in _ALL_ARGUMENTS:
            raise ExpansionError(f"{part.name}: unbound variable")
        return value, ()
    if kind == "+":
        return "", () if missing else part.operand
    if not missing:
        return value, ()
    if kind == "-":
        return "", part.operand
    text = expand_text(part.operand, state)
    if kind == "?":
        raise ExpansionError(f"{part.name}: {text or 'parameter null or not set'}")
    if not part.name.isidentifier():
        raise ExpansionError(f"{part.name}: cannot be assigned to")
    state.variables.values[part.name] = text
    return text, ()


def _text_of(part: Part, state: ShellState) -> str:
    """Return the text that one part stands for."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Parameter):
        value, operand = _choose(part, state)
        return expand_text(operand, state) if operand else value
    return _compute(part, state)


def _compute(part: Arithmetic, state: ShellState) -> str:
    """Return the value of an arithmetic expansion."""

    def look_up(name: str) -> str:
        is_set, value = state.look_up(name)
        if not is_set and "u" in state.options:
            raise ExpansionError(f"{name}: unbound variable")
        return value

    def store(name: str, value: str) -> None:
        state.variables.values[name] = value

    try:
        return str(evaluate(expand_text(part.parts, state), look_up, store))
    except ArithmeticMistake as mistake:
        raise ExpansionError(str(mistake)) from None
