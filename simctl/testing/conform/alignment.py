"""Two strands laid side by side, so that as many acts as possible stand beside their like."""

from collections.abc import Iterator, Sequence
from typing import Final

from simctl.testing.conform.acts import Act

Pair = tuple[Act | None, Act | None]
"""An act of the run and the same act of the recording; None where one side has none."""


def align(ours: Sequence[Act], theirs: Sequence[Act]) -> Iterator[Pair]:
    """Pair the acts of a strand so that as many as possible are the same in the same order.

    Where several ways do that, acts that agree in everything go together.
    """
    rows, columns = len(ours), len(theirs)
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1])
            if ours[i].what == theirs[j].what:
                best[i][j] = max(best[i][j], best[i + 1][j + 1] + _alike(ours[i], theirs[j]))
    i = j = 0
    while i < rows and j < columns:
        same = ours[i].what == theirs[j].what
        if same and best[i][j] == best[i + 1][j + 1] + _alike(ours[i], theirs[j]):
            yield ours[i], theirs[j]
            i, j = i + 1, j + 1
        elif best[i][j] == best[i][j + 1]:
            yield None, theirs[j]
            j += 1
        else:
            yield ours[i], None
            i += 1
    yield from ((act, None) for act in ours[i:])
    yield from ((None, act) for act in theirs[j:])


_SAME: Final = 1000


def _alike(mine: Act, other: Act) -> int:
    """Return more for acts that agree in more; that they are the same act outweighs the rest."""
    return _SAME + int(mine.result == other.result) + int(mine.user == other.user)
