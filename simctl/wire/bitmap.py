"""Sets of nodes as Slurm keeps them: one bit a node, in the order in which the nodes are listed."""

from collections.abc import Iterable, Iterator


def mask_of(indexes: Iterable[int]) -> int:
    """Return the set of the nodes with these indexes."""
    mask = 0
    for index in indexes:
        mask |= 1 << index
    return mask


def members(mask: int) -> Iterator[int]:
    """Yield the indexes of a set's nodes, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def first(mask: int, count: int) -> list[int]:
    """Return the lowest *count* indexes of a set, or all if it has fewer."""
    found: list[int] = []
    for index in members(mask):
        if len(found) == count:
            break
        found.append(index)
    return found
