"""What an awk program is made of: rules and nodes, and what leaves a loop or the program."""

from __future__ import annotations

from typing import Any, Final

import attrs

from simctl.stepd.scripts.tools.tool import ToolMistake

STATUS: Final = 2
"""What awk ends with that cannot go on."""


def awk_mistake(told: str) -> ToolMistake:
    """Return what awk says of a program or file that it cannot take, with its status."""
    return ToolMistake(f"awk: {told}", STATUS)


@attrs.frozen
class Node:
    """One piece of a program: what kind it is, and its parts."""

    kind: str
    parts: tuple[Any, ...] = ()


@attrs.define(kw_only=True)
class Rule:
    """A pattern with its action."""

    kind: str  # "BEGIN", "END", "", or "range"
    pattern: Node | None = None
    last: Node | None = None
    action: Node | None = None
    active: bool = False


class Jump(Exception):
    """Leave a loop, a line or the program."""

    def __init__(self, kind: str, status: int = 0) -> None:
        """Say what is left."""
        super().__init__(kind)
        self.kind = kind
        self.status = status
