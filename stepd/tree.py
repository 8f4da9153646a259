"""The tree in which the step daemons of a step report its end, so that slurmctld hears of it once.

The daemon of rank 0 is the root. The other ranks are dealt to at most `width` children in runs of
neighbours, and each run to its first rank's children in the same way; so every daemon speaks for a
range of ranks that begins with its own.
"""

from functools import lru_cache
from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class Branch:
    """The place of one daemon in the tree: whom it reports to, and for which ranks.

    `parent` is -1 for the root, `last` the last rank of the range that begins with its own, and
    `height` the number of levels below it.
    """

    parent: int
    last: int
    height: int


ALONE: Final = Branch(parent=-1, last=0, height=0)
"""The place of the only daemon of a step."""


@lru_cache(maxsize=512)
def branches(nodes: int, width: int) -> tuple[Branch, ...]:
    """Return the place of every rank of a step on *nodes* nodes."""
    places: list[Branch | None] = [None] * nodes
    _place(places, 0, nodes - 1, -1, width)
    return tuple(place for place in places if place is not None)


def _place(places: list[Branch | None], first: int, last: int, parent: int, width: int) -> int:
    """Give ranks *first* to *last* their places, the first as their root; return its height."""
    below = last - first
    children = min(width, below)
    height = 0
    start = first + 1
    for child in range(children):
        size = below // children + (child < below % children)
        height = max(height, 1 + _place(places, start, start + size - 1, first, width))
        start += size
    places[first] = Branch(parent=parent, last=last, height=height)
    return height
