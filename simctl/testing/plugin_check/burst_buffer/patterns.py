"""A text that a regular expression matches, to try a plugin's own patterns with."""

import re
from re import _constants as sre  # type: ignore[attr-defined] # there is no public name
from re import _parser as parser  # type: ignore[attr-defined] # there is no public name
from typing import Any, Final

_CATEGORIES: Final = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_WORD: " ",
}
_SAMPLES: Final = "1aG/ -="
_PRINTABLE: Final = range(32, 127)


def example_of(pattern: str) -> str:
    """Return a short text that *pattern* matches, with all that is optional; else nothing."""
    try:
        text = _text(parser.parse(pattern))
        return text if re.search(pattern, text) else ""
    except (re.error, ValueError, RecursionError, OverflowError):
        return ""


def _text(items: Any) -> str:
    return "".join(_item(operation, value) for operation, value in items)


def _item(operation: Any, value: Any) -> str:
    if operation is sre.LITERAL:
        return chr(value)
    if operation is sre.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if operation is sre.ANY:
        return "a"
    if operation is sre.IN:
        return _one_of(value)
    if operation is sre.BRANCH:
        return _text(value[1][0])
    if operation is sre.SUBPATTERN:
        return _text(value[-1])
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, getattr(sre, "POSSESSIVE_REPEAT", None)):
        least, most, inner = value
        times: int = min(max(least, 1), most)
        return _text(inner) * times
    return ""


def _one_of(choices: Any) -> str:
    """Return a character of a set: a digit, a letter or a slash where that is one of it."""
    negated = choices[0][0] is sre.NEGATE

    def has(character: str) -> bool:
        return any(_holds(kind, value, character) for kind, value in choices) is not negated

    every = (*_SAMPLES, *map(chr, _PRINTABLE))
    return next((each for each in every if has(each)), "")


def _holds(kind: Any, value: Any, character: str) -> bool:
    if kind is sre.LITERAL:
        return bool(ord(character) == value)
    if kind is sre.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if kind is sre.CATEGORY:
        return bool(_CATEGORIES.get(value) == character) or (
            value is sre.CATEGORY_NOT_SPACE and character not in " \t"
        )
    return False


__all__ = ["example_of"]
