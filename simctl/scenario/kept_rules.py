"""Rules over what a plugin keeps: `unique`, `equal` and `check` of an `always:` expectation.

Pure. A path such as `steps.*.ports` leads into plain data; `*` stands for every key and item.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

_SHOWN: Final = 200


@attrs.frozen
class Unique:
    """No value that a path leads to is there twice; lists count by their items."""

    path: str

    @property
    def text(self) -> str:
        """Return the rule as it is written."""
        return f"unique {self.path}"


@attrs.frozen
class Equal:
    """Every value that a path leads to is this one."""

    path: str
    value: Any

    @property
    def text(self) -> str:
        """Return the rule as it is written."""
        return f"equal [{self.path}, {json.dumps(self.value)}]"


@attrs.frozen
class Check:
    """A function says what is wrong: `./rules.py:no_port_twice`."""

    reference: str

    @property
    def text(self) -> str:
        """Return the rule as it is written."""
        return f"check {self.reference}"


Rule = Unique | Equal | Check
Judge = Callable[[Any], object]
"""The function of a `check`: it gets the state."""


def found(state: Any, path: str) -> list[tuple[str, Any]]:
    """Return what a path leads to, each with the way there."""
    places: list[tuple[str, Any]] = [("", state)]
    for part in path.split("."):
        places = [
            (f"{way}.{key}".lstrip("."), value)
            for way, kept in places
            for key, value in _children(kept)
            if part in ("*", key)
        ]
    return places


def _children(kept: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(kept, dict):
        yield from kept.items()
    elif isinstance(kept, list):
        yield from ((str(at), each) for at, each in enumerate(kept))


def not_unique(state: Any, rule: Unique) -> str:
    """Return which value is there twice, and where; nothing if none is."""
    first: dict[str, str] = {}
    for way, value in found(state, rule.path):
        inside = _items(way, value)
        for place, each in inside:
            key = json.dumps(each, sort_keys=True)
            if key in first:
                return f"{_cut(key)} stands at {first[key]} and at {place}"
            first[key] = place
    return ""


def _items(way: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, list):
        return [(way, value)]
    return [(f"{way}.{at}", each) for at, each in enumerate(value)]


def not_equal(state: Any, rule: Equal) -> str:
    """Return which value is another; nothing if none is."""
    wanted = json.dumps(rule.value, sort_keys=True)
    for way, value in found(state, rule.path):
        said = json.dumps(value, sort_keys=True)
        if said != wanted:
            return f"{way} is {_cut(said)}, not {_cut(wanted)}"
    return ""


def judged(answer: object) -> str:
    """Return what the function of a `check` found wrong; nothing if it did not.

    Raises:
        TypeError: It answered neither yes, no nor with a text.
    """
    if answer is None or answer is True or answer == "":
        return ""
    if answer is False:
        return "it returned False"
    if isinstance(answer, str):
        return _cut(answer)
    raise TypeError(
        f"it returned a {type(answer).__name__}; expected None or True where all is well, "
        "False or a text where it is not"
    )


def shown(state: Any) -> str:
    """Return a state in a line."""
    return _cut(json.dumps(state))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
