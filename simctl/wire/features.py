"""What ``--constraint`` asks of the features of nodes: ``gpu&(fast|big)``."""

import re
from collections.abc import Collection
from typing import Final

_NAME: Final = r"[^\s&|,()\[\]*]+"
_TOKEN: Final = re.compile(rf"\s*({_NAME}|[&|,()])")


def feature_names(text: str) -> tuple[str, ...]:
    """Read names of features apart by commas, each once.

    Raises:
        ValueError: One of them could not be asked for.
    """
    names = tuple(dict.fromkeys(filter(None, text.replace(" ", "").split(","))))
    for name in names:
        if re.fullmatch(_NAME, name) is None:
            raise ValueError(
                f"{name!r} cannot be a feature: & | * ( ) [ ] mean something to --constraint"
            )
    return names


class ConstraintError(ValueError):
    """An expression is no constraint, or one of those that are not simulated."""


class Constraint:
    """A constraint, read: the features it names, and which nodes it lets in.

    Raises:
        ConstraintError: The text is none; counts (``a*2``) and matching (``[a|b]``) are not
            simulated.
    """

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self.names = tuple(each for each in self._tokens if each not in "&|,()")
        self.admits(())

    def admits(self, features: Collection[str]) -> bool:
        """Return whether a node of these features will do."""
        rest = list(reversed(self._tokens))
        found = _any(rest, features)
        if rest:
            raise ConstraintError(rest[-1])
        return found


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConstraintError(text[at:])
        tokens.append(match[1])
        at = match.end()
    return tokens


def _any(rest: list[str], features: Collection[str]) -> bool:
    found = _all(rest, features)
    while rest and rest[-1] == "|":
        rest.pop()
        found = _all(rest, features) or found
    return found


def _all(rest: list[str], features: Collection[str]) -> bool:
    found = _one(rest, features)
    while rest and rest[-1] in "&,":
        rest.pop()
        found = _one(rest, features) and found
    return found


def _one(rest: list[str], features: Collection[str]) -> bool:
    token = rest.pop() if rest else ""
    if token == "(":
        found = _any(rest, features)
        if not rest or rest.pop() != ")":
            raise ConstraintError("(")
        return found
    if not token or token in "&|,)":
        raise ConstraintError(token)
    return token in features
