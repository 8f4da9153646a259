"""Expansion: what the words of a command become when it runs."""

from __future__ import annotations

import re

import attrs

from simctl.limits import VALUE_CHARACTERS
from simctl.stepd.scripts.parameters import Values, joined, values_of
from simctl.stepd.scripts.patterns import PatternTooHeavyError, escaped, found_files, has_special
from simctl.stepd.scripts.state import AmbiguousTargetError, BoundError, ShellState, SkippedLine
from simctl.stepd.scripts.tree import (
    Arithmetic,
    Parameter,
    Part,
    Substitution,
    Text,
    Word,
)

_WHITE = " \t\n"
_ASSIGNED = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=", re.ASCII)


async def expand_words(words: tuple[Word, ...], state: ShellState) -> list[str]:
    """Return the arguments that *words* stand for: split, and with the names of files."""
    fields: list[str] = []
    for word in words:
        fields += await expand_word(word, state)
    bounded_length(sum(map(len, fields)))
    return fields


async def expand_text(parts: tuple[Part, ...], state: ShellState) -> str:
    """Return the one text that *parts* stand for, as in an assignment: nothing is split."""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    texts = [await _text_of(part, state) for part in parts]
    bounded_length(sum(map(len, texts)))
    return "".join(texts)


async def expand_pattern(parts: tuple[Part, ...], state: ShellState) -> str:
    """Return the pattern that *parts* stand for: what is quoted there stands for itself."""
    texts = [
        escaped(await _text_of(part, state)) if part.quoted else await _pattern_of(part, state)
        for part in parts
    ]
    bounded_length(sum(map(len, texts)))
    return "".join(texts)


async def _pattern_of(part: Part, state: ShellState) -> str:
    """Return what an unquoted part adds to a pattern; its own operand may hold quotes."""
    if isinstance(part, Parameter) and part.operator in _OPERANDED:
        chosen = await values_of(part, state)
        if chosen.operand is not None:
            return await expand_pattern(chosen.operand, state)
        return joined(chosen, state)
    return await _text_of(part, state)


_OPERANDED = (":-", ":+", "-", "+")


async def expand_regular(parts: tuple[Part, ...], state: ShellState) -> str:
    """Return the regular expression that *parts* stand for: what is quoted stands for itself."""
    texts = [
        re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", text) if part.quoted else text
        for part in parts
        for text in [await _text_of(part, state)]
    ]
    return "".join(texts)


def bounded_length(length: int) -> int:
    """Return the length of a text that comes of an expansion.

    Raises:
        BoundError: It is beyond the bound; doubling a variable gets there in twenty turns.
    """
    if length > VALUE_CHARACTERS:
        raise BoundError(f"a word or value of more than {VALUE_CHARACTERS} characters")
    return length


async def expand_one(word: Word, state: ShellState) -> str:
    """Return the one file name that *word* stands for.

    Raises:
        AmbiguousTargetError: it stands for none, or for several.
    """
    fields = await expand_word(word, state)
    if len(fields) != 1:
        raise AmbiguousTargetError("ambiguous redirect: this is no file name, or several")
    return fields[0]


@attrs.define
class _Fields:
    """Gather arguments piece by piece; all of a word's together are bounded."""

    separators: str
    done: list[list[tuple[str, bool]]] = attrs.field(factory=list)
    _pieces: list[tuple[str, bool]] = attrs.field(init=False, factory=list)
    _length: int = attrs.field(init=False, default=0)

    def add(self, text: str, *, quoted: bool) -> None:
        """Add *text*, even if empty, to the argument that is being gathered."""
        self._length = bounded_length(self._length + len(text))
        self._pieces.append((text, quoted))

    def cut(self, *, empty: bool = False) -> None:
        """End the argument, if one was begun, or else an *empty* one."""
        if self._pieces or empty:
            self.done.append(self._pieces)
            self._pieces = []

    def add_split(self, text: str) -> None:
        """Add an unquoted value: the characters of IFS end arguments."""
        if not self.separators:
            if text:
                self.add(text, quoted=False)
            return
        white = re.escape("".join(char for char in self.separators if char in _WHITE))
        other = re.escape("".join(char for char in self.separators if char not in _WHITE))
        blanks = f"[{white}]*" if white else ""
        hard = f"{blanks}[{other}]{blanks}" if other else ""
        soft = f"[{white}]+" if white else ""
        expression = "|".join(
            f"({each})" if each is hard else each for each in (hard, soft) if each
        )
        at = 0
        for match in re.finditer(expression, text):
            if match.start() > at:
                self.add(text[at : match.start()], quoted=False)
            at = match.end()
            self.cut(empty=bool(hard) and match[1] is not None)
        if at < len(text):
            self.add(text[at:], quoted=False)


async def expand_word(word: Word, state: ShellState) -> list[str]:
    """Return the arguments, often one, that *word* stands for."""
    parts = word.parts
    if len(parts) == 1:
        at_once = _at_once(parts[0], state)
        if at_once is not None:
            return at_once
    fields = _Fields(state.separators)
    await _expand_parts(parts, state, fields, splits=False)
    fields.cut()
    found: list[str] = []
    for pieces in fields.done:
        found += await _named(pieces, state)
    return found


def _at_once(part: Part, state: ShellState) -> list[str] | None:
    """Return what the only part of a word stands for, in the plain cases that are most."""
    if type(part) is Text:
        return [part.text] if part.quoted or not _PATTERN.search(part.text) else None
    if type(part) is not Parameter or part.operator or part.form or part.subscript is not None:
        return None
    if part.name in ("@", "*"):
        return None
    text = state.look_up(part.name)
    if text is None:
        return None
    if part.quoted:
        return [text]
    if not text or _DIVIDED.search(text) or state.separators != _WHITE:
        return None
    return [text]


_SPECIAL = re.compile(r"[*?\[(]")
_PATTERN = re.compile(r"[*?]|\[.+\]|[+@!]\(", re.DOTALL)
_DIVIDED = re.compile(r"[*?\[( \t\n]")


async def _named(pieces: list[tuple[str, bool]], state: ShellState) -> list[str]:
    """Return the files whose names fit a field, or the field itself."""
    text = "".join(piece for piece, _ in pieces)
    extended = bool(state.options.get("extglob"))
    unquoted = any(not quoted and _SPECIAL.search(piece) for piece, quoted in pieces)
    if not unquoted or state.options.get("f"):
        return [text]
    pattern = "".join(escaped(piece) if quoted else piece for piece, quoted in pieces)
    if not has_special(pattern, extended=extended):
        return [text]
    try:
        files = found_files(
            pattern, state.host, hidden=bool(state.options.get("dotglob")), extended=extended
        )
    except (PatternTooHeavyError, re.error) as error:
        raise BoundError(str(error)) from None
    if files:
        return files
    if state.options.get("failglob"):
        state.status = 1
        await state.report(f"no match: {text}")
        raise SkippedLine
    return [] if state.options.get("nullglob") else [text]


async def _expand_parts(
    parts: tuple[Part, ...], state: ShellState, fields: _Fields, *, splits: bool
) -> None:
    """Add what *parts* stand for to *fields*; *splits* says whether their texts are split too."""
    for part in parts:
        match part:
            case Parameter():
                await _expand_parameter(part, state, fields)
            case Text():
                if splits and not part.quoted:
                    fields.add_split(part.text)
                else:
                    fields.add(part.text, quoted=part.quoted)
            case Arithmetic() | Substitution():
                text = await _text_of(part, state)
                if part.quoted:
                    fields.add(text, quoted=True)
                else:
                    fields.add_split(text)


async def _expand_parameter(part: Parameter, state: ShellState, fields: _Fields) -> None:
    """Add the value of a parameter, or the operand that stands in for it, to *fields*."""
    values = await values_of(part, state)
    if values.operand is not None:
        if part.quoted and not values.operand:
            fields.add("", quoted=True)
        await _expand_parts(values.operand, state, fields, splits=True)
    elif values.kind == "all" or (values.kind == "joined" and not part.quoted):
        for index, text in enumerate(values.texts):
            if index:
                fields.cut()
            if part.quoted:
                fields.add(text, quoted=True)
            else:
                fields.add_split(text)
    elif part.quoted:
        fields.add(joined(values, state), quoted=True)
    else:
        fields.add_split(joined(values, state))


async def _text_of(part: Part, state: ShellState) -> str:
    """Return the text of one part, in which nothing is split."""
    match part:
        case Text():
            return part.text
        case Arithmetic():
            value = state.calculate(await expand_text(part.parts, state))
            await state.tell()
            return str(value)
        case Substitution():
            return await state.capture(part)
        case Parameter():
            values: Values = await values_of(part, state)
            if values.operand is not None:
                return await expand_text(values.operand, state)
            return joined(values, state)
