"""What an object holds, as plain data: to see whether a call has changed it, and what of it."""

import enum
from collections import Counter, deque
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from simctl.plugins.compiled.classes import CompiledPlugin, Pointer

_DEEPEST: Final = 12
_MOST: Final = 20_000
_PLAIN: Final = frozenset((int, str, bytes, bool, float, complex, type(None)))
_THE_WORLD: Final = (
    "simctl.kernel.",
    "simctl.api.",
    "simctl.ctld.",
    "simctl.plugins.points.",
    "simctl.plugins.compiled.",
    "simctl.world",
    "trio.",
)
"""Modules of what is no state of a plugin's: threads, live records and all that hangs on them."""


def plain(value: Any) -> Any:
    """Return a copy of *value* in dicts, lists, sets and primitives; equal if nothing changed.

    An object is a pair of its class's name and its attributes. What cannot be looked into is told
    by its class; what lies very deep, or past the first twenty thousand parts, is not looked at.
    """
    try:
        return _Reader().read(value, 0)
    except Exception:  # noqa: BLE001 - it is a plugin's object, and will not be looked into
        return f"<{type(value).__name__}>"


def leaves(value: Any) -> Counter[tuple[Any, ...]]:
    """Return how often each part stands where in plain data, whatever the order of lists.

    A part is a path of keys and attributes, and what is found there.
    """
    found: Counter[tuple[Any, ...]] = Counter()
    _gather(value, (), found)
    return found


def _gather(value: Any, path: tuple[Any, ...], found: Counter[tuple[Any, ...]]) -> None:
    kind = type(value)
    if kind is dict:
        for key, part in value.items():
            _gather(part, (*path, key), found)
        if not value:
            found[(*path, "{}")] += 0
    elif kind is list:
        for part in value:
            if type(part) in _PLAIN:
                found[(*path, "[]", part)] += 1
            else:
                found[(*path, "[]", repr(part))] += 1
    elif kind is frozenset:
        for part in value:
            found[(*path, "{}", part)] += 1
    elif kind is tuple:
        _gather(value[1], path, found)
    else:
        found[(*path, value)] += 1


def mutable_parts(value: Any, path: str = "", deepest: int = 6) -> dict[int, str]:
    """Return the lists, dicts and sets in an object, by their id, each with its path."""
    found: dict[int, str] = {}
    if isinstance(value, list | set | dict | bytearray | deque):
        found[id(value)] = path
    parts: dict[Any, Any] = {}
    if isinstance(value, dict):
        parts = value
    elif isinstance(value, list | tuple | deque):
        parts = dict(enumerate(value))
    elif not isinstance(value, type) and not type(value).__module__.startswith(_THE_WORLD):
        parts = _held(value) or {}
    for key, part in (*parts.items(),) if deepest else ():
        if type(part) not in _PLAIN:
            for number, where in mutable_parts(part, f"{path}.{key}", deepest - 1).items():
                found.setdefault(number, where)
    return found


class _Reader:
    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._left = _MOST
        self._kept: list[Any] = []

    def read(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is Pointer:
            return value.plain()
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return "..."
        known = self._seen.get(id(value))
        if known is not None and known <= depth and known >= 0:
            return f"<the {kind.__name__} above>"
        self._seen[id(value)] = depth
        self._kept.append(value)
        read = self._parts(value, kind, depth + 1)
        self._seen[id(value)] = -1
        return read

    def _parts(self, value: Any, kind: Any, depth: int) -> Any:
        sort = _sort_of(kind)
        if sort is _Sort.MAPPING:
            return self._mapping(value, depth)
        if sort is _Sort.SEQUENCE:
            if _PLAIN.issuperset(map(type, value)):
                return list(value)
            return [self.read(part, depth) for part in value]
        if sort is _Sort.SET:
            if _PLAIN.issuperset(map(type, value)):
                return frozenset(value)
            return frozenset(_key(self.read(part, depth)) for part in value)
        if sort is _Sort.BYTES:
            return bytes(value)
        if sort is _Sort.PLAIN:
            return value
        if sort is _Sort.OPAQUE:
            return f"<{getattr(value, '__qualname__', kind.__name__)}>"
        held = _held(value)
        if held is None:
            return f"<{kind.__name__}>"
        return kind.__name__, {name: self.read(part, depth) for name, part in held.items()}

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        if (
            type(value) is dict
            and _PLAIN.issuperset(map(type, value.values()))
            and _PLAIN.issuperset(map(type, value))
        ):
            return dict(value)
        return {_key(self.read(key, depth)): self.read(part, depth) for key, part in value.items()}


def _key(value: Any) -> Any:
    """Return plain data that may be a key: the text of it, where it could not."""
    return value if type(value) in _PLAIN or type(value) is frozenset else repr(value)


def _held(value: Any) -> dict[str, Any] | None:
    own = getattr(value, "__dict__", None)
    held = dict(own or {})
    kind: Any = type(value)
    slots = _slots_of(kind)
    for name in slots or ():
        found = getattr(value, name, _NOTHING)
        if found is not _NOTHING:
            held[name] = found
    return held if held or slots is not None or own is not None else None


_NOTHING: Final = object()


class _Sort(enum.Enum):
    """How an object is looked into."""

    MAPPING = enum.auto()
    SEQUENCE = enum.auto()
    SET = enum.auto()
    BYTES = enum.auto()
    PLAIN = enum.auto()
    OPAQUE = enum.auto()
    """Not at all: a class, a function, or no state of a plugin's."""

    OBJECT = enum.auto()


# By class, for a check looks at the same few of them hundreds of thousands of times.


@lru_cache(maxsize=1024)
def _sort_of(kind: type[Any]) -> _Sort:
    for classes, sort in (
        ((Mapping,), _Sort.MAPPING),
        ((list, tuple, deque), _Sort.SEQUENCE),
        ((set, frozenset), _Sort.SET),
        ((bytearray, memoryview), _Sort.BYTES),
        ((int, str, bytes, float), _Sort.PLAIN),
    ):
        if issubclass(kind, classes):
            return sort
    if issubclass(kind, type) or any("__call__" in vars(base) for base in kind.__mro__):
        return _Sort.OPAQUE
    return _Sort.OPAQUE if kind.__module__.startswith(_THE_WORLD) else _Sort.OBJECT


@lru_cache(maxsize=1024)
def _slots_of(kind: type[Any]) -> tuple[str, ...] | None:
    """Return the names of a class's slots, None where it has none at all."""
    found: list[str] = []
    slotted = False
    for base in kind.__mro__:
        slots = vars(base).get("__slots__")
        if slots is None:
            continue
        slotted = True
        names = (slots,) if isinstance(slots, str) else tuple(slots)
        found += [name for name in names if not name.startswith("__")]
    return tuple(found) if slotted else None


def attributes(instance: Any) -> dict[str, Any]:
    """Return what a plugin keeps, by attribute, or by variable where it is compiled."""
    if isinstance(instance, CompiledPlugin):
        return instance.kept()
    return {name: plain(value) for name, value in (_held(instance) or {}).items()}
