"""Tables as squeue and sinfo print them: a format is text with fields in it, copied exactly.

``-o`` writes a field as ``%[.][WIDTH]LETTER``, ``-O`` as ``NAME[:[.][WIDTH][SUFFIX]]`` with commas
between. A field of some width is cut to it and filled up with blanks, at its left after a point.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar

import attrs

from simctl.limits import WIDTH
from simctl.wire.hostlist import expand, sort_key_of
from simctl.wire.past_times import show_moment

Row = TypeVar("Row")

_NAMED_WIDTH: Final = 20
"""Width of a field of -O that says nothing of it."""

_LEAST_FIT: Final = 9
"""Width at the least of a field that is as wide as its longest text."""

_LETTER: Final = re.compile(r"(\.?)(#|\d*)(.?)(.*)", re.DOTALL)
_WIDTH: Final = re.compile(r"(\.?)(\d*)(.*)", re.DOTALL)
_LONGEST_S: Final = 365 * 24 * 3600


@attrs.frozen
class Column(Generic[Row]):
    """A field that a table can have: how it is asked for, its heading, and its text for a row."""

    title: str
    """Its letter in ``-o``, its names in ``-O`` with commas between, its heading; - for none."""

    read: Callable[[Row], str]
    sort: Callable[[Row], Any] | None = attrs.field(default=None, kw_only=True)
    """What its letter sorts rows by in ``--sort``; None if it is no key."""

    cut: bool = attrs.field(default=True, kw_only=True)
    """A text too long for the field is cut also where it stands at the right."""

    cut_heading: bool = attrs.field(default=True, kw_only=True)

    @property
    def letter(self) -> str:
        """Return its letter in ``-o``; empty if it has none."""
        return self._word(0)

    @property
    def names(self) -> list[str]:
        """Return its names in ``-O``, in small letters."""
        return [name for name in self._word(1).split(",") if name]

    @property
    def heading(self) -> str:
        """Return what stands above its texts."""
        return self._word(2)

    def _word(self, place: int) -> str:
        word = self.title.split()[place]
        return "" if word == "-" else word

    def text(self, row: Row, width: int) -> str:
        """Return the text for a row, in a field of a width, which is 0 if it has none."""
        del width
        return self.read(row)


AnyColumn = TypeVar("AnyColumn", bound=Column[Any])


def by_letter(columns: Iterable[AnyColumn]) -> dict[str, AnyColumn]:
    """Return the fields of ``-o``."""
    return {column.letter: column for column in columns if column.letter}


def by_name(columns: Iterable[AnyColumn]) -> dict[str, AnyColumn]:
    """Return the fields of ``-O``, by their names in small letters."""
    return {name: column for column in columns for name in column.names}


def fixed(title: str, text: str) -> Column[Any]:
    """Return a field of what is not simulated: all have nothing, or the usual, of it."""
    return Column(title, lambda _: text)


def alike(_: object) -> int:
    """Sort by nothing: rows are alike, or Slurm does not sort by it either."""
    return 0


def first_node_key(node_list: str) -> tuple[Any, ...]:
    """Sort by the first node of a host list; what has none comes first."""
    names = expand(node_list)
    return (1, min(map(sort_key_of, names))) if names else (0,)


@attrs.frozen(kw_only=True)
class Field(Generic[Row]):
    """One field of a format; a width of 0 takes whatever the text has."""

    column: Column[Row]
    width: int = 0
    right: bool = False
    suffix: str = ""
    fits: bool = False
    """Its width is that of its longest text."""

    def heading(self) -> str:
        """Return what stands above the texts."""
        return self._placed(self.column.heading, cut=self.column.cut_heading)

    def show(self, row: Row) -> str:
        """Return what stands in the line of a row."""
        return self._placed(self.column.text(row, self.width), cut=self.column.cut)

    def fitted(self, rows: Iterable[Row]) -> "Field[Row]":
        """Return the field with the width that these rows give it."""
        if not self.fits:
            return self
        lengths = [len(self.column.text(row, 0)) for row in rows]
        return attrs.evolve(self, width=max([_LEAST_FIT, *lengths]))

    def _placed(self, text: str, *, cut: bool) -> str:
        if self.width:
            if cut or not self.right:
                text = text[: self.width]
            text = text.rjust(self.width) if self.right else text.ljust(self.width)
        return text + self.suffix


@attrs.frozen(kw_only=True)
class Layout(Generic[Row]):
    """A format that was read: what stands before the first field, and the fields.

    `unknown` lists what names no field, as it was written.
    """

    prefix: str = ""
    fields: tuple[Field[Row], ...] = ()
    unknown: tuple[str, ...] = ()

    def heading(self) -> str:
        """Return the line above the rows."""
        return self.prefix + "".join(field.heading() for field in self.fields)

    def line(self, row: Row) -> str:
        """Return the line of a row."""
        return self.prefix + "".join(field.show(row) for field in self.fields)

    def fitted(self, rows: Iterable[Row]) -> "Layout[Row]":
        """Return the layout with the widths that these rows give it."""
        rows = list(rows)
        return attrs.evolve(self, fields=tuple(field.fitted(rows) for field in self.fields))


def _literal(text: str) -> Field[Any]:
    return Field(column=fixed("- - -", ""), suffix=text)


def bounded_width(digits: str) -> int:
    """Return the width that *digits* say; a column beyond the bound has that width."""
    return max(-WIDTH, min(int(digits), WIDTH))


def read_letters(
    text: str, columns: Mapping[str, Column[Row]], *, fits: bool = False
) -> Layout[Row]:
    """Read a format of ``-o``; a field that is none stays in the lines as it was written.

    Args:
        text: The format.
        columns: The columns by their letters.
        fits: Whether ``#`` may stand for the width of the longest text.
    """
    prefix, *tokens = text.split("%")
    fields: list[Field[Row]] = []
    unknown: list[str] = []
    for token in filter(None, tokens):
        match = _LETTER.match(token)
        assert match is not None
        point, width, letter, suffix = match.groups()
        if width == "#" and not fits:
            letter = "#"
        column = columns.get(letter)
        if column is None:
            unknown.append(letter)
            fields.append(_literal(f"%{token}"))
            continue
        fitting = width == "#"
        size = bounded_width(width) if width and not fitting else 0
        field = Field(column=column, width=size, right=bool(point), suffix=suffix, fits=fitting)
        fields.append(field)
    return Layout(prefix=prefix, fields=tuple(fields), unknown=tuple(unknown))


def read_all(columns: Mapping[str, Column[Row]], *, blank: bool = False) -> Layout[Row]:
    """Return the layout of ``%all``: every letter, small ones first, with bars between.

    With *blank*, as sinfo has it: a blank follows the text of a capital letter.
    """
    small = [letter for letter in sorted(columns) if letter.islower()]
    large = [letter for letter in sorted(columns) if letter.isupper()]
    last = (small + large)[-1]
    fields = []
    for letter in small + large:
        gap = " " if blank and letter.isupper() else ""
        bar = "" if letter == last else "|"
        fields.append(Field(column=columns[letter], suffix=gap + bar))
    return Layout(fields=tuple(fields))


def read_names(text: str, columns: Mapping[str, Column[Row]]) -> Layout[Row]:
    """Read a format of ``-O``: names of fields, whatever their case, in the lower case of the keys.

    A field is 20 wide unless a colon follows its name: then as wide as said there, or as its text.
    """
    fields: list[Field[Row]] = []
    unknown: list[str] = []
    for token in filter(None, text.split(",")):
        name, colon, size = token.partition(":")
        match = _WIDTH.match(size)
        assert match is not None
        point, width, suffix = match.groups()
        column = columns.get(name.lower())
        if column is None:
            unknown.append(name)
            fields.append(_literal(suffix))
            continue
        wide = bounded_width(width or "0") if colon else _NAMED_WIDTH
        fields.append(Field(column=column, width=wide, right=bool(point), suffix=suffix))
    return Layout(fields=tuple(fields), unknown=tuple(unknown))


def run_time(seconds: int) -> str:
    """Return a time as squeue prints it: ``7:05``, ``1:00:00``, ``1-02:00:00``."""
    minutes, secs = divmod(max(0, seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{secs:02}"
    if hours:
        return f"{hours}:{minutes:02}:{secs:02}"
    return f"{minutes}:{secs:02}"


def checked_time(seconds: int) -> str:
    """Return a time as squeue prints it where it may be below nothing or above a year."""
    return run_time(seconds) if 0 <= seconds <= _LONGEST_S else "INVALID"


def padded_time(seconds: int) -> str:
    """Return a time as scontrol and sacct print it: ``00:07:05``, ``1-02:00:00``."""
    hours, rest = divmod(max(0, seconds), 3600)
    days, hours = divmod(hours, 24)
    clock = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


@attrs.frozen
class Clock:
    """How the commands print moments: as SLURM_TIME_FORMAT says, at a present moment."""

    style: str = "standard"
    now_s: int = 0

    def moment(self, seconds: int, *, none: str = "N/A") -> str:
        """Return a moment, ``2026-11-20T23:26:55`` unless another way is asked for."""
        return show_moment(seconds, self.style, self.now_s) if seconds else none


STANDARD: Final = Clock()


def moment(seconds: int, *, none: str = "N/A") -> str:
    """Return a moment as the commands print it: ``2026-11-20T23:26:55``."""
    return STANDARD.moment(seconds, none=none)


def date_line(seconds: int) -> str:
    """Return the line with the date above a long table: ``Fri Nov 20 23:26:54 2026``."""
    now = datetime.fromtimestamp(seconds, UTC)
    return f"{now:%a %b} {now.day:2} {now:%H:%M:%S %Y}"


def with_unit(count: int, unit: str = "", *, convert: bool = True) -> str:
    """Return a count in the largest unit that it fills exactly: ``100M``, 4096 of M as ``4G``."""
    units = " KMGTP"
    place = units.index(unit or " ")
    while convert and count and not count % 1024 and place < len(units) - 1:
        count //= 1024
        place += 1
    return f"{count}{units[place].strip()}" if count else "0"
