"""What ``$NAME`` and ``${…}`` stand for: values, arrays, and all that is made of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import attrs

from simctl.stepd.scripts.patterns import (
    PatternTooHeavyError,
    fits,
    replaced,
    without_end,
    without_start,
)
from simctl.stepd.scripts.printing import quoted_for_reuse
from simctl.stepd.scripts.state import (
    BadSubscriptError,
    BoundError,
    EndingError,
    ExpansionError,
    ShellState,
    SkippedLine,
)
from simctl.stepd.scripts.tree import Parameter, Part, Text
from simctl.stepd.scripts.variables import Elements

_NAME = re.compile(r"([A-Za-z_]\w*)(?:\[(.*)\])?|\d+|[@*#?$!-]", re.ASCII | re.DOTALL)
_STANDING_IN = (":-", ":=", ":?", ":+", "-", "=", "?", "+")


@attrs.frozen(kw_only=True)
class Values:
    """What a parameter stands for: one text, or *all* of several, or several that are joined.

    *operand* is what stands in for it, if something does.
    """

    texts: tuple[str, ...] = ()
    kind: Literal["one", "all", "joined"] = "one"
    operand: tuple[Part, ...] | None = None


def joined(values: Values, state: ShellState) -> str:
    """Return values as one text, as where nothing is split."""
    between = state.separators[:1] if values.kind == "joined" else " "
    return between.join(values.texts)


async def values_of(part: Parameter, state: ShellState) -> Values:
    """Return what a parameter stands for.

    Raises:
        ExpansionError: It stands for nothing, and that is an error.
    """
    if part.form == "names":
        found = tuple(name for name in state.variables.names() if name.startswith(part.name))
        return Values(texts=found, kind="all" if part.operator == "@" else "joined")
    if part.subscript == ():
        state.status = 1
        await state.report(f"{part.name}[]: bad substitution")
        raise SkippedLine
    pointed = await _pointed(part, state) if part.form == "indirect" else part
    part = pointed or attrs.evolve(part, form="")
    keyed = await _values(part, state) if pointed else None
    if part.form == "keys":
        texts = tuple(str(key) for key in keyed or {})
        return Values(texts=texts, kind=_kind(part))
    if part.form == "length":
        return _length(part, keyed, state)
    if part.operator in _STANDING_IN:
        return await _stood_in(part, keyed, state)
    if keyed is None:
        _check_set(part, state)
        keyed = {}
        if _kind(part) == "one":
            return Values(texts=("",))
    if not part.operator:
        return Values(texts=tuple(keyed.values()), kind=_kind(part))
    try:
        texts = await _changed(part, keyed, state)
    except (PatternTooHeavyError, re.error) as error:
        raise BoundError(str(error)) from None
    return Values(texts=texts, kind=_kind(part))


async def _pointed(part: Parameter, state: ShellState) -> Parameter | None:
    """Return the parameter whose name is the value of another; None if that has no value."""
    keyed = await _values(part, state)
    there = state.variables.find(part.name) or not part.name.isidentifier()
    if keyed is None and there:
        return None
    name = " ".join((keyed or {}).values())
    found = _NAME.fullmatch(name)
    if not found:
        what = "invalid indirect expansion" if keyed is None else "invalid variable name"
        await state.report(f"{name or part.name}: {what}")
        raise SkippedLine
    subscript = (Text(text=found[2], quoted=False),) if found[2] is not None else None
    return attrs.evolve(part, name=found[1] or name, subscript=subscript, form="")


_KINDS: dict[str, Literal["all", "joined"]] = {"@": "all", "*": "joined"}


def _kind(part: Parameter) -> Literal["one", "all", "joined"]:
    """Return whether a parameter stands for all elements, and how they are told apart."""
    sign = part.name if part.name in ("@", "*") else _sign(part.subscript)
    return _KINDS.get(sign, "one")


def _sign(subscript: tuple[Part, ...] | None) -> str:
    """Return the ``@`` or ``*`` of a subscript, or ""."""
    if subscript is not None and len(subscript) == 1 and isinstance(subscript[0], Text):
        text = subscript[0]
        return text.text if text.text in ("@", "*") and not text.quoted else ""
    return ""


async def _values(part: Parameter, state: ShellState) -> Elements | None:
    """Return the values that a parameter has by itself; None if it is not set."""
    if part.name in ("@", "*"):
        return {**dict(enumerate(state.arguments, start=1))} or None
    if part.subscript is None:
        text = state.look_up(part.name)
        return None if text is None else {0: text}
    elements = state.elements(part.name)
    if _sign(part.subscript):
        return elements or None
    subscript = await state.expand_text(part.subscript, state)
    try:
        key = state.key_of(part.name, subscript)
    except BadSubscriptError as error:
        await state.report(str(error))
        if part.form == "length":
            raise SkippedLine from None
        return None
    text = (elements or {}).get(key)
    return None if text is None else {0: text}


def _shown(part: Parameter) -> str:
    """Return a parameter as errors name it."""
    if part.subscript is None:
        return part.name
    return f"{part.name}[{''.join(each.text for each in part.subscript if isinstance(each, Text))}]"


def _check_set(part: Parameter, state: ShellState) -> None:
    """Raise what ``set -u`` has to say of a parameter that is not set."""
    if state.options.get("u") and _kind(part) == "one":
        raise EndingError(f"{_shown(part)}: unbound variable")


def _length(part: Parameter, keyed: Elements | None, state: ShellState) -> Values:
    """Return the length of a value, or how many there are."""
    if _kind(part) != "one":
        found = state.variables.find(part.name)
        is_array = part.name in ("@", "*") or (found is not None and isinstance(found.value, dict))
        if state.options.get("u") and not is_array and state.elements(part.name) is None:
            raise EndingError(f"{part.name}: unbound variable")
        return Values(texts=(str(len(keyed or {})),))
    if keyed is None:
        _check_set(part, state)
    return Values(texts=(str(len(next(iter((keyed or {0: ""}).values())))),))


async def _stood_in(part: Parameter, keyed: Elements | None, state: ShellState) -> Values:
    """Return what ``:-`` and its kin choose: the value, or what stands in for it."""
    colon = part.operator.startswith(":")
    texts = tuple((keyed or {}).values())
    there = bool(texts) and not (colon and joined(Values(texts=texts), state) == "")
    kind = part.operator[-1]
    if kind == "+":
        return Values(operand=part.operand) if there else Values(texts=(), kind=_many(part))
    if there:
        return Values(texts=texts, kind=_kind(part))
    if kind == "-":
        return Values(operand=part.operand)
    text = await state.expand_text(part.operand, state)
    if kind == "?":
        default = "parameter null or not set" if colon else "parameter not set"
        raise EndingError(f"{_shown(part)}: {text or default}")
    if not part.name.isidentifier() or _kind(part) != "one":
        state.status = state.status if part.subscript else 1
        await state.report(f"{_shown(part)}: cannot assign in this way")
        raise SkippedLine(1 if part.subscript is None else 2)
    key = None
    if part.subscript is not None:
        try:
            key = state.key_of(part.name, await state.expand_text(part.subscript, state))
        except BadSubscriptError as error:
            await state.report(str(error))
            raise SkippedLine(2) from None
    state.assign(part.name, text, key)
    return Values(texts=(text,))


def _many(part: Parameter) -> Literal["one", "all", "joined"]:
    """Return how nothing is told: as no field at all where all elements were asked for."""
    return "all" if _kind(part) == "all" else "one"


async def _changed(part: Parameter, keyed: Elements, state: ShellState) -> tuple[str, ...]:
    """Return what the operator of a parameter makes of its values."""
    operator = part.operator
    if operator == ":":
        return await _slice(part, keyed, state)
    if operator.startswith("@"):
        return tuple(_transformed(text, operator[1]) for text in keyed.values())
    pattern = await state.expand_pattern(part.operand, state)
    extended = bool(state.options.get("extglob"))
    if operator.startswith("/"):
        new = await _replacement(part.second or (), state)
        return tuple(
            replaced(text, pattern, new, operator, extended=extended) for text in keyed.values()
        )
    longest = len(operator) == 2  # noqa: PLR2004 - the doubled ones
    if operator[0] == "#":
        cut = without_start
    elif operator[0] == "%":
        cut = without_end
    else:
        return tuple(_cased(text, pattern, operator) for text in keyed.values())
    return tuple(cut(text, pattern, longest=longest, extended=extended) for text in keyed.values())


_MATCHED = re.compile(r"\\[\\&]|&")


async def _replacement(parts: tuple[Part, ...], state: ShellState) -> Callable[[str], str]:
    """Return what makes a replacement of a match, for which ``&`` stands where it is not quoted."""
    pieces = [(await state.expand_text((part,), state), part.quoted) for part in parts]
    used = any("&" in _MATCHED.findall(text) for text, quoted in pieces if not quoted)
    if not used:
        return lambda _: "".join(text for text, _ in pieces)

    def made(match: str) -> str:
        def meant(sign: re.Match[str]) -> str:
            return match if sign[0] == "&" else sign[0][1:]

        return "".join(text if quoted else _MATCHED.sub(meant, text) for text, quoted in pieces)

    return made


def _cased(text: str, pattern: str, operator: str) -> str:
    """Change the case of the characters that fit a pattern: of the first, or of all."""
    change = str.upper if operator[0] == "^" else str.lower
    last = len(text) if operator[1:] else 1
    return "".join(
        change(char) if place < last and fits(char, pattern or "?") else char
        for place, char in enumerate(text)
    )


def _transformed(text: str, letter: str) -> str:
    match letter:
        case "U":
            return text.upper()
        case "L":
            return text.lower()
        case "u":
            return text[:1].upper() + text[1:]
    return quoted_for_reuse(text)


async def _slice(part: Parameter, keyed: Elements, state: ShellState) -> tuple[str, ...]:
    """Return a part of a text, or some elements of an array."""
    place = state.calculate(await state.expand_text(part.operand, state))
    length = None
    if part.second is not None:
        length = state.calculate(await state.expand_text(part.second, state))
    if _kind(part) == "one":
        return (_cut(next(iter(keyed.values())), place, length),)
    positional = part.name in ("@", "*")
    if positional:
        keyed = {0: state.name, **keyed}
    last = max((int(key) for key in keyed), default=-1) if _numbered(keyed) else len(keyed) - 1
    first = place if place >= 0 else last + 1 + place
    if first < 0 or first > last + (positional or not _numbered(keyed)):
        return ()
    if length is not None and length < 0:
        raise ExpansionError(f"{length}: substring expression < 0")
    if _numbered(keyed):
        texts = [text for key, text in keyed.items() if int(key) >= first]
    else:
        texts = list(keyed.values())[first:]
    return tuple(texts[:length])


def _numbered(keyed: Elements) -> bool:
    return all(isinstance(key, int) for key in keyed)


def _cut(text: str, place: int, length: int | None) -> str:
    first = place if place >= 0 else len(text) + place
    if first < 0 or first > len(text):
        return ""
    if length is None:
        return text[first:]
    end = first + length if length >= 0 else len(text) + length
    if end < first:
        raise ExpansionError(f"{length}: substring expression < 0")
    return text[first:end]
