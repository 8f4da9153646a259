"""The order of sinfo's rows: the keys of --sort, the least important sorted by first."""

from collections.abc import Sequence
from typing import Final

from simctl.commands.sinfo.columns import LETTERS
from simctl.commands.sinfo.rows import NodeRow

USUAL: Final = "#P,-t"
USUAL_OF_NODES: Final = "N"


def sorted_rows(rows: Sequence[NodeRow], text: str, partitions: Sequence[str]) -> list[NodeRow]:
    """Return rows in the order of --sort; ``#P`` is the order of *partitions*."""
    found = list(rows)
    for place in range(len(text) - 1, -1, -1):
        sign = text[place - 1] if place else ""
        column = LETTERS.get(text[place])
        key = None if column is None else column.sort
        if text[place] in "PR" and sign == "#":
            key = lambda row: partitions.index(row.part.name)  # noqa: E731 - one key more
        if key is not None:
            found.sort(key=key, reverse=sign == "-")
    return found
