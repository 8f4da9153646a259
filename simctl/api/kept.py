"""What plugins say of themselves: `simctl_state()`, made into plain data of bounded size.

A plugin, and any object that it hands out, may have `simctl_state(self)`: it returns what it keeps,
as a person would write it down, and changes nothing. Traces with values show it, and `always:`
expectations hold it against rules.
"""

from inspect import iscoroutinefunction
from typing import Any, Final

_MOST_VALUES: Final = 10_000
_MOST_DEPTH: Final = 20
_MOST_TEXT: Final = 4_096

METHOD: Final = "simctl_state"


class NotPlainError(ValueError):
    """What a plugin says of itself is no plain data; the text says where, and what it found."""


def tells(kept: object) -> bool:
    """Return whether an object says what it keeps."""
    return hasattr(type(kept), METHOD)


def state_of(kept: object) -> Any:
    """Return what an object says it keeps, as data that JSON can hold.

    Sets become sorted lists, and keys of dictionaries texts.

    Raises:
        NotPlainError: It is no plain data, or too much of it, or simctl_state is an `async def`.
        Exception: What simctl_state raised.
    """
    method = getattr(kept, METHOD)
    if iscoroutinefunction(method):
        raise NotPlainError("simctl_state is an `async def`; it has to answer at once")
    return plain(method())


def plain(value: object) -> Any:
    """Return plain data as JSON would hold it.

    Raises:
        NotPlainError: It is none.
    """
    return _Plain().of(value, "", 0)


class _Plain:
    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def of(self, value: object, where: str, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise NotPlainError(f"it holds more than {_MOST_VALUES} values")
        if depth > _MOST_DEPTH:
            raise NotPlainError(f"{where} is more than {_MOST_DEPTH} deep")
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return _readable(value)
        if isinstance(value, set | frozenset):
            return sorted((self.of(each, f"{where}.*", depth + 1) for each in value), key=_order)
        if isinstance(value, list | tuple):
            return [self.of(each, f"{where}.{at}", depth + 1) for at, each in enumerate(value)]
        if isinstance(value, dict):
            return {
                self._key(key, where): self.of(each, f"{where}.{key}", depth + 1)
                for key, each in value.items()
            }
        raise NotPlainError(
            f"{where.lstrip('.') or 'it'} is of type {type(value).__name__}; plain data is None, "
            "bool, int, float, str, list, tuple, set and dict"
        )

    @staticmethod
    def _key(key: object, where: str) -> str:
        if isinstance(key, str | int) and not isinstance(key, bool):
            return _readable(str(key))
        raise NotPlainError(f"{where.lstrip('.') or 'it'} has a key of type {type(key).__name__}")


def _readable(text: str) -> str:
    text = text if text.isascii() else text.encode(errors="backslashreplace").decode()
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."


def _order(value: object) -> tuple[str, Any]:
    return (type(value).__name__, value if isinstance(value, int | float | str) else repr(value))
