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


def lowest(mask: int, count: int) -> int:
    """Return the lowest *count* members of a set, or all there are."""
    low = mask & -mask
    run = ((1 << count) - 1) * low
    if run & ~mask == 0:
        return run
    found = 0
    for _ in range(count):
        low = mask & -mask
        found |= low
        mask ^= low
    return found


def ranges(mask: int) -> str:
    """Return a set as ``0-1,3``."""
    texts = []
    start = 0
    while mask >> start:
        start += ((mask >> start) & -(mask >> start)).bit_length() - 1
        length = (~(mask >> start) & ((mask >> start) + 1)).bit_length() - 1
        texts.append(str(start) if length == 1 else f"{start}-{start + length - 1}")
        start += length
    return ",".join(texts)
