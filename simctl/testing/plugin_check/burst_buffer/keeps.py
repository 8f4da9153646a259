"""What a plugin keeps: how many entries its containers have, and its numbers, by their places."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

_DEEPEST: Final = 5
_WIDEST: Final = 200
_NOT_ITS_OWN: Final = ("simctl.", "trio.", "types", "functools", "re")


def kept_by(instance: Any) -> dict[str, int | float]:
    """Return the sizes and numbers of all that hangs on a plugin's instance, by path.

    A container counts as ``self.used[...]``, a number as ``self.free``.
    """
    return dict(_parts("self", instance, 0, set()))


def _parts(path: str, value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, int | float]]:
    if isinstance(value, bool) or value is None or isinstance(value, str | bytes):
        return
    if isinstance(value, int | float):
        yield path, value
        return
    if depth > _DEEPEST or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        yield f"{path}[...]", len(value)
        for key, part in list(value.items())[:_WIDEST]:
            if isinstance(key, str):
                yield from _parts(f"{path}[{key!r}]", part, depth + 1, seen)
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield f"{path}[...]", len(value)
    else:
        for name, part in _held(value, depth):
            yield from _parts(f"{path}.{name}", part, depth + 1, seen)


def _held(value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    bundled = kind.__module__.startswith("simctl.plugins.")
    if depth and not bundled and kind.__module__.startswith(_NOT_ITS_OWN):
        return
    if isinstance(value, type) or callable(value):
        return
    names = dict.fromkeys(getattr(value, "__dict__", {}))
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
    for name in names:
        if not name.startswith("__") and hasattr(value, name):
            yield name, getattr(value, name)


def more_than(after: dict[str, int | float], before: dict[str, int | float]) -> list[str]:
    """Return the containers that have more entries than before."""
    return [
        path
        for path, count in after.items()
        if path.endswith("[...]") and count > before.get(path, 0)
    ]


def other_numbers(after: dict[str, int | float], before: dict[str, int | float]) -> list[str]:
    """Return the numbers that are other ones than before."""
    return [
        path
        for path, number in after.items()
        if not path.endswith("[...]") and path in before and number != before[path]
    ]


__all__ = ["kept_by", "more_than", "other_numbers"]
