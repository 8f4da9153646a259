"""The values of awk: numbers, texts, and texts of the input that look like numbers."""

from __future__ import annotations

import re

_EXACT = 1e300
_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


class Field(str):
    """A text from the input, which is a number if it looks like one."""

    __slots__ = ()


def number_of(value: object) -> float:
    """Return the number that a value begins with, or 0."""
    if isinstance(value, float):
        return value
    found = _NUMBER.match(str(value))
    return float(found[0]) if found else 0.0


def text_of(value: object, form: str = "%.6g") -> str:
    """Return a value as text; whole numbers without a point, others by CONVFMT or OFMT."""
    if not isinstance(value, float):
        return str(value)
    if abs(value) < _EXACT and value == int(value):
        return str(int(value))
    return form % value


def looks_like_number(value: object) -> bool:
    """Return whether a value is compared as a number: it is one, or text of the input like one."""
    if isinstance(value, float):
        return True
    if not isinstance(value, Field):
        return False
    found = _NUMBER.match(value)
    return found is not None and value[found.end() :].strip() == ""


def is_true(value: object) -> bool:
    """Return whether a value holds as a condition."""
    if isinstance(value, float):
        return value != 0
    if isinstance(value, Field) and looks_like_number(value):
        return number_of(value) != 0
    return value != ""
