"""``KEY=VALUE`` words of scontrol: their keys may be shortened, as far as Slurm has it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from simctl.commands.arguments.options import UsageError

_ENOUGH: Final = 3
"""How much of the name of a key is enough that simctl lacks."""


@attrs.frozen
class Pair:
    """A word: its key in lower case, its value, and the word itself."""

    key: str
    value: str
    word: str


@attrs.frozen
class Key:
    """A key: the field it sets, what reads its value, and how much of its name is enough.

    A reader may raise ValueError; what it says is printed below, if it is not empty.
    """

    least: int
    field: str
    read: Callable[[str], Any] = str


def split_pairs(words: tuple[str, ...], *, apart: bool = False) -> list[Pair]:
    """Return the words of an update as keys and values.

    Where values may stand *apart*, a word that is no KEY=VALUE is the key of the next one.

    Raises:
        UsageError: A word is no KEY=VALUE.
    """
    found = []
    left = iter(words)
    for word in left:
        key, equals, value = word.partition("=")
        following = next(left, None) if apart and not equals else None
        if following is not None:
            value = following
        elif not equals:
            raise UsageError(1, f"Invalid input: {word}", "Request aborted")
        found.append(Pair(key.lower(), value.strip("\"'"), word))
    return found


def begins(word: str, name: str, least: int) -> bool:
    """Return whether a word is a name, or the beginning of it that is long enough."""
    return len(word) >= least and name.startswith(word)


def refuse_key(entity: str, pair: Pair, unbuilt: frozenset[str]) -> UsageError:
    """Return how a key is refused: as one that simctl lacks, or as none of Slurm's."""
    # What would be added to a list, or taken from it.
    partly = pair.key[-1:] in ("+", "-")
    if partly or any(begins(pair.key, name, _ENOUGH) for name in unbuilt):
        known = f"update {entity} {pair.key}= is known to Slurm but not simulated yet"
        return UsageError(1, f"scontrol: error: {known}")
    return UsageError(
        1, f"Update of this parameter is not supported: {pair.word}", "Request aborted"
    )


def find_key(keys: Mapping[str, Key], word: str) -> Key | None:
    """Return what a key means, or the beginning of one that is long enough."""
    if word in keys:
        return keys[word]
    return next((key for name, key in keys.items() if begins(word, name, key.least)), None)


def read_value(key: Key, pair: Pair) -> Any:
    """Return what a value stands for.

    Raises:
        UsageError: It stands for nothing.
    """
    try:
        return key.read(pair.value)
    except (ValueError, OverflowError) as error:
        told = _told(error)
        raise UsageError(1, f"Invalid input: {pair.word}", "Request aborted", *told) from None


class BadValueError(ValueError):
    """A value that is none, with a line that says which there are."""


def _told(error: Exception) -> tuple[str, ...]:
    return (str(error),) if isinstance(error, BadValueError) else ()


def not_negative(text: str) -> int:
    """Read a whole number that is not below 0."""
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def yes_or_no(text: str) -> bool:
    """Read YES or NO, or the beginning of one."""
    for name, holds in (("yes", True), ("no", False)):
        if begins(text.lower(), name, 1):
            return holds
    raise BadValueError("Acceptable values are YES and NO")
