"""Sizes of burst buffers: read, rounded up, and shown as Slurm shows them."""

import re
from typing import Final

MOST: Final = (1 << 63) - 1
"""The largest size there can be."""

GIB: Final = 1 << 30
_MIB: Final = 1 << 20

_SIZE: Final = re.compile(r"(-?)([0-9]+) *([A-Za-z]*)", re.ASCII)
_LETTERS: Final = "kmgtp"
_LONGEST: Final = 25


def parse_size(text: str) -> int:
    """Read a size in bytes: ``k`` and ``kib`` are 1024 of them, ``kb`` 1000, and so on up to ``p``.

    Raises:
        ValueError: The text is no size, or counts nodes.
        OverflowError: It is below zero, or more than 63 bits hold.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'expected a size such as 10GiB, got "{text}"')
    factor = _factor(match[3].casefold(), text)
    if match[1]:
        raise OverflowError(f'a size cannot be below zero: "{text}"')
    if len(match[2]) > _LONGEST or int(match[2]) * factor > MOST:
        raise OverflowError(f'"{text}" is more than there can be')
    return int(match[2]) * factor


def _factor(unit: str, text: str) -> int:
    if unit in ("", "b"):
        return 1
    if unit in ("n", "node", "nodes"):
        raise ValueError(f'"{text}" counts nodes; give bytes, such as 10GiB')
    if unit[0] not in _LETTERS or unit[1:] not in ("", "b", "ib"):
        raise ValueError(f'expected a size such as 10GiB, got "{text}"')
    return int((1000 if unit[1:] == "b" else 1024) ** (1 + _LETTERS.index(unit[0])))


def round_up(size: int, granularity: int) -> int:
    """Return the least multiple of *granularity* that holds *size*."""
    return -(-size // max(granularity, 1)) * max(granularity, 1)


def show_size(size: int) -> str:
    """Return a size in the largest unit that divides it: ``10GiB``; ``0`` for nothing."""
    if not size:
        return "0"
    for power in range(len(_LETTERS), 0, -1):
        for base, ending in ((1024, "iB"), (1000, "B")):
            if size % base**power == 0:
                return f"{size // base**power}{_LETTERS[power - 1].upper()}{ending}"
    return str(size)


def megabytes(size: int) -> int:
    """Return how many MB a size takes, which is how trackable resources are counted."""
    return -(-size // _MIB)
