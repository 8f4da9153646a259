"""Host lists: ``n[1-3,7]`` to names and back, order and duplicates kept.

The grammar is Slurm's for a cluster of one dimension. Elements stand apart by commas, blanks, tabs
or newlines; brackets hold numbers and ranges, and several bracket groups give every combination:
the last one varies fastest, then the first, and the last but one slowest. A number is padded with
zeros to the width of the range's first.
"""

import functools
import itertools
import re
from collections.abc import Iterable
from typing import Final

import attrs

from simctl.limits import DIGITS, HOSTS

_KEPT: Final = 16_384
"""The most names of a list that is remembered; a cluster of that many nodes stays quick."""

# A bracket that is never closed is read like any other character: its element ends at a separator.
_ELEMENT: Final = re.compile(r"(?:[^\[, \t\n]+|\[[^\[\]]*\]|\[)+")
_GROUP: Final = re.compile(r"\[([^\[\]]*)\]")
_RANGE: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")
# At most nine digits count as the number of a host: more would not fit Slurm's.
_NUMBERED: Final = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)
_UNFIT: Final = re.compile(r"[\[\], \t\n]")
_BRACKET: Final = re.compile(r"[\[\]]")
_CHUNK: Final = re.compile(r"[0-9]+|[^0-9]")


class HostlistError(ValueError):
    """A host list that cannot be read.

    Attributes:
        text: The whole list.
        column: Where the trouble begins, counted from 1.
        range_text: The range that cannot be read, as ``scontrol`` names it; empty if it is not
            a range that is wrong.
    """

    text: str
    column: int
    range_text: str

    def __init__(self, text: str, column: int, what: str, range_text: str = "") -> None:
        """Say *what* is wrong at *column* of *text*."""
        super().__init__(f"host list {text!r}, column {column}: {what}")
        self.text = text
        self.column = column
        self.range_text = range_text


@attrs.frozen
class _Range:
    """Numbers *low* to *high*, written with at least *width* digits."""

    low: int
    high: int
    width: int

    def __len__(self) -> int:
        return self.high - self.low + 1

    def texts(self) -> list[str]:
        width = self.width
        return [f"{number:0{width}d}" for number in range(self.low, self.high + 1)]


def expand(text: str, *, tolerant: bool = False) -> tuple[str, ...]:
    """Return the names that *text* stands for, in its order, duplicates included.

    Args:
        text: A host list such as ``n[1-3],gpu1``. An empty one has no names.
        tolerant: Read as Slurm's commands do, which make a host of an unclosed bracket (``n[1-``
            becomes ``n]``) and take a range without an end for its first number.

    Raises:
        HostlistError: A bracket or a range cannot be read, or names too many hosts.
    """
    names = _expand(text, tolerant)
    if len(names) > _KEPT:
        # What is remembered is bounded in lists; this bounds their names.
        _expand.cache_clear()
    return names


@functools.lru_cache(maxsize=256)
def _expand(text: str, tolerant: bool) -> tuple[str, ...]:
    names: list[str] = []
    for match in _ELEMENT.finditer(text):
        element = match[0]
        if "[" not in element and "]" not in element:
            names.append(element)
        elif tolerant and element.rfind("[") > element.rfind("]"):
            names.extend(_unclosed(element))
        else:
            names.extend(_expand_element(text, match.start(), element, tolerant=tolerant))
        if len(names) > HOSTS:
            what = f"it names more than {HOSTS} hosts with this; at most {HOSTS} are allowed"
            raise HostlistError(text, match.start() + 1, what, element)
    return tuple(names)


def _unclosed(element: str) -> list[str]:
    """Return the host Slurm makes of an element with a bracket that is never closed."""
    prefix, _, rest = element.rpartition("[")
    host = f"{prefix}]" if prefix else rest
    return [host] if host else []


def _expand_element(text: str, start: int, element: str, *, tolerant: bool) -> list[str]:
    """Return the names of one element that has brackets, every combination of its groups."""
    parts: list[list[str]] = []
    count = 1
    position = 0
    for match in _GROUP.finditer(element):
        prefix = element[position : match.start()]
        _check_plain(text, start + position, prefix)
        ranges = _ranges(text, start + match.start() + 1, match[1], tolerant=tolerant)
        count *= sum(len(found) for found in ranges)
        if parts and count > HOSTS:
            what = f"{count} hosts in one element are too many; at most {HOSTS}"
            raise HostlistError(text, start + 1, what, element)
        parts.append([prefix])
        parts.append([number for found in ranges for number in found.texts()])
        position = match.end()
    rest = element[position:]
    _check_plain(text, start + position, rest)
    if rest:
        what = f"{rest!r} may not follow ']'; only a separator or another bracket group may"
        raise HostlistError(text, start + position + 1, what)
    # The last group varies fastest, then the first, as Slurm's prefix of a list is one itself.
    inner, outer = parts[-2:], parts[:-2]
    prefixes = ["".join(reversed(each)) for each in itertools.product(*reversed(outer))]
    return ["".join((prefix, *each)) for prefix in prefixes for each in itertools.product(*inner)]


def _check_plain(text: str, position: int, plain: str) -> None:
    """Refuse a bracket without its partner in what stands between groups."""
    stray = _BRACKET.search(plain)
    if stray is not None:
        what = "']' closes a bracket that was not opened"
        if stray[0] == "[":
            what = "this '[' is not closed; add ']'"
        raise HostlistError(text, position + stray.start() + 1, what)


def _ranges(text: str, position: int, body: str, *, tolerant: bool) -> list[_Range]:
    """Read what stands between two brackets."""
    found = []
    for piece in body.split(","):
        found.append(_read_range(text, position + 1, piece, tolerant=tolerant))
        position += len(piece) + 1
    return found


def _read_range(text: str, column: int, piece: str, *, tolerant: bool) -> _Range:
    match = _RANGE.fullmatch(piece[:-1] if tolerant and piece.endswith("-") else piece)
    if match is None:
        what = f"expected a number or a range such as 1-4, got {piece!r}"
        raise HostlistError(text, column, what, piece)
    if len(piece) > DIGITS:
        what = f"a range of {len(piece)} characters; a number has at most {DIGITS} digits"
        raise HostlistError(text, column, what, piece)
    low_text = match[1]
    high_text = match[2] or low_text
    low, high = int(low_text), int(high_text)
    if low > high:
        what = f"the range {piece} runs backwards; write {high_text}-{low_text}"
        raise HostlistError(text, column, what, piece)
    if high - low >= HOSTS:
        what = f"the range {piece} names {high - low + 1} hosts; at most {HOSTS} are allowed"
        raise HostlistError(text, column, what, piece)
    return _Range(low, high, len(low_text))


@attrs.define
class _Run:
    """Names in a row that one bracket group can write: a prefix and its ranges.

    Each range is a first number, a last one and the width of the first; a name without a number
    has a run of its own with no range.
    """

    prefix: str
    ranges: list[tuple[int, int, int]]

    def add(self, number: int, digits: str) -> None:
        """Add the number spelled *digits*, to the last range where it goes on from it."""
        low, high, width = self.ranges[-1]
        if number == high + 1 and digits == f"{number:0{width}d}":
            self.ranges[-1] = (low, number, width)
        else:
            self.ranges.append((number, number, len(digits)))

    def __str__(self) -> str:
        if not self.ranges:
            return self.prefix
        texts = [
            f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}"
            for low, high, width in self.ranges
        ]
        if len(texts) == 1 and "-" not in texts[0]:
            return self.prefix + texts[0]
        return f"{self.prefix}[{','.join(texts)}]"


def compress(names: Iterable[str]) -> str:
    """Return *names* as a ranged string, in their order, duplicates kept.

    Only the last number of a name goes into brackets, and only neighbours share them:
    ``r1n1 r1n2 r2n1`` is ``r1n[1-2],r2n1``. `expand` gives the same names back.

    Raises:
        HostlistError: A name is empty or holds a bracket or a separator.
    """
    return _compress(tuple(names))


@functools.lru_cache(maxsize=1024)
def _compress(names: tuple[str, ...]) -> str:
    runs: list[_Run] = []
    for name in names:
        _check_name(name)
        match = _NUMBERED.fullmatch(name)
        if match is None:
            runs.append(_Run(name, []))
            continue
        prefix, digits = match.groups()
        number = int(digits)
        if runs and runs[-1].ranges and runs[-1].prefix == prefix:
            runs[-1].add(number, digits)
        else:
            runs.append(_Run(prefix, [(number, number, len(digits))]))
    return ",".join(map(str, runs))


def _check_name(name: str) -> None:
    unfit = _UNFIT.search(name)
    if unfit is not None:
        what = f"a host name cannot hold {unfit[0]!r}"
        raise HostlistError(name, unfit.start() + 1, what)
    if not name:
        raise HostlistError(name, 1, "a host name cannot be empty")


def sort_unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return *names* in Slurm's order, each once.

    Names sort by what stands before their last number, in which numbers count as numbers
    (``r2n1`` before ``r10n1``), then by the width of that number, then by its value. A name
    without a number comes before its numbered kin.
    """
    return tuple(sorted(dict.fromkeys(names), key=sort_key_of))


def sort_key_of(name: str) -> tuple[object, ...]:
    """Return what a name sorts by."""
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return (_natural(name), False, 0, 0)
    prefix, digits = match.groups()
    return (_natural(prefix), True, len(digits), int(digits))


@functools.lru_cache(maxsize=4096)
def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that compares runs of digits by value and all else by character.

    Digits that start with 0 compare as a fraction does, from the left, and come first.
    """
    return tuple(
        (ord("0"), 0 if chunk[0] == "0" else len(chunk), chunk)
        if "0" <= chunk[0] <= "9"
        else (ord(chunk), 0, "")
        for chunk in _CHUNK.findall(text)
    )
