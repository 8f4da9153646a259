"""Compare credentials, and find what in them is handed out to one step alone."""

from collections import Counter
from typing import Any, Final

from simctl.testing.plugin_check.canon import leaves

_SCALARS: Final = (int, str, bytes, float)
_MARKS: Final = ("own", "copy", "copied", "orig", "master", "borrow", "live", "refs", "freed")
"""Words in names of fields by which a plugin tells a copy from the credential."""


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Return the fields in which two credentials differ, such as ``.ports`` or ``["key"]``.

    Lists, tuples and sets of the same things are equal. Fields that begin with ``_`` are what an
    object has worked out for itself, and marks tell a copy: neither has to be alike.
    """
    if one == other:
        return []
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other) == 2:  # noqa: PLR2004 - class and attributes
        return differences(one[1], other[1], path)
    if type(one) is dict and type(other) is dict:
        found = []
        for key in {**one, **other}:
            if isinstance(key, str) and (key.startswith("_") or _is_mark(key, one, other)):
                continue
            here = f"{path}.{key}" if path else str(key)
            if key not in one or key not in other:
                found.append(here)
            else:
                found += differences(one[key], other[key], here)
        return found
    if isinstance(one, list | frozenset) and isinstance(other, list | frozenset):
        if type(one) is list and type(other) is list:
            return [path or "the whole"]
        return [] if _bag(one) == _bag(other) else [path or "the whole"]
    return [path or "the whole"]


def _is_mark(key: str, one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    kinds = {type(one.get(key)), type(other.get(key))}
    return kinds <= {bool, int} and any(word in key.lower() for word in _MARKS)


def _bag(values: Any) -> Counter[Any]:
    return Counter(repr(each) for each in values)


def values_by_field(credential: Any) -> dict[tuple[Any, ...], set[Any]]:
    """Return the numbers and texts in a credential, by its outermost field."""
    found: dict[tuple[Any, ...], set[Any]] = {}
    for path in leaves(credential):
        *field, value = path
        if not isinstance(value, _SCALARS) or isinstance(value, bool) or value in ("[]", "{}"):
            continue
        name = tuple(part for part in field if part not in ("[]", "{}"))
        found.setdefault(name[:1], set()).add(value)
    return found


def values_in_rows(value: Any) -> list[set[Any]]:
    """Return the values that objects or dicts of one list have in each of their fields."""
    if isinstance(value, tuple):
        return values_in_rows(value[1])
    if isinstance(value, dict):
        return [found for part in value.values() for found in values_in_rows(part)]
    rows = value if isinstance(value, list) else []
    fields: dict[Any, set[Any]] = {}
    for row in rows:
        parts = row[1] if isinstance(row, tuple) else row
        for name, part in parts.items() if isinstance(parts, dict) else ():
            if isinstance(part, _SCALARS):
                fields.setdefault(name, set()).add(part)
    return list(fields.values())


def exclusive_fields(one: Any, other: Any) -> dict[tuple[Any, ...], bool]:
    """Return fields whose values are all different in two steps of one shape, built in a row."""
    mine, theirs = values_by_field(one), values_by_field(other)
    return {
        field: True
        for field, values in mine.items()
        if values and theirs.get(field) and not values & theirs[field]
    }
