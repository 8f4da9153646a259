"""A number for what an object holds, to see whether a call has changed it."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

_DEEPEST: Final = 12
_MOST: Final = 20_000
_THE_WORLD: Final = (
    "simctl.kernel.",
    "simctl.api.",
    "simctl.ctld.",
    "simctl.plugins.points.",
    "simctl.world",
    "trio.",
)
"""Modules of what is no state of a plugin's: threads, live records and all that hangs on them."""


def fingerprint(value: Any) -> int:
    """Return a number that changes when anything in *value* does.

    What cannot be looked into counts by its identity; what lies very deep, or past the first
    twenty thousand parts, is not looked at.
    """
    try:
        return _Reader().read(value, 0)
    except Exception:  # noqa: BLE001 - it is a plugin's object, and will not be looked into
        return id(value)


class _Reader:
    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._left = _MOST
        self._kept: list[Any] = []

    def read(self, value: Any, depth: int) -> int:
        kind = type(value)
        if kind in (int, str, bytes, bool, float, complex, type(None)):
            return hash((kind.__name__, value))
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return 0
        known = self._seen.get(id(value))
        if known is not None:
            return known
        self._seen[id(value)] = len(self._seen) + 1
        self._kept.append(value)
        return hash((kind.__qualname__, *self._parts(value, depth + 1)))

    def _parts(self, value: Any, depth: int) -> list[int]:
        if isinstance(value, Mapping):
            return [self.read(part, depth) for item in value.items() for part in item]
        if isinstance(value, list | tuple | deque):
            return [self.read(part, depth) for part in value]
        if isinstance(value, set | frozenset):
            return sorted(self.read(part, depth) for part in value)
        if isinstance(value, bytearray | memoryview):
            return [hash(bytes(value))]
        if isinstance(value, type) or callable(value):
            return [id(value)]
        if type(value).__module__.startswith(_THE_WORLD):
            return [id(value)]
        held = self._held(value)
        if held is None:
            return [id(value)]
        return [hash(name) ^ self.read(part, depth) for name, part in held.items()]

    @staticmethod
    def _held(value: Any) -> dict[str, Any] | None:
        held = dict(getattr(value, "__dict__", {}))
        slotted = False
        for base in type(value).__mro__:
            slots = vars(base).get("__slots__")
            if slots is None:
                continue
            slotted = True
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name) and not name.startswith("__"):
                    held[name] = getattr(value, name)
        return held if held or slotted or hasattr(value, "__dict__") else None
