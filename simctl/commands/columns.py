"""Tables as squeue and sinfo print them: a format is text with fields in it, copied exactly.

``-o`` writes a field as ``%[.][WIDTH]LETTER``, ``-O`` as ``NAME[:[.][WIDTH][SUFFIX]]`` with commas
between. A field of some width is cut to it and filled up with blanks, at its left after a point.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeVar

import attrs

Row = TypeVar("Row")

_NAMED_WIDTH: Final = 20
"""Width of a field of -O that asks for none."""

_LETTER: Final = re.compile(r"%(\.?)(\d*)(.?)([^%]*)", re.DOTALL)
_NAMED: Final = re.compile(r"([^:,]+)(?::(\.?)(\d*)([^,]*))?")


@attrs.frozen
class Column(Generic[Row]):
    """What a field shows: its heading, and its text for a row."""

    heading: str
    read: Callable[[Row], str]


@attrs.frozen(kw_only=True)
class Field(Generic[Row]):
    """One field of a format; a width of 0 takes whatever the text has."""

    column: Column[Row]
    width: int = 0
    right: bool = False
    suffix: str = ""

    def show(self, text: str) -> str:
        """Return a text as it stands in the line."""
        if self.width:
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
        return self.prefix + "".join(field.show(field.column.heading) for field in self.fields)

    def line(self, row: Row) -> str:
        """Return the line of a row."""
        return self.prefix + "".join(field.show(field.column.read(row)) for field in self.fields)

    def lines(self, rows: Iterable[Row], *, heading: bool = True) -> list[str]:
        """Return all lines of a table."""
        found = [self.line(row) for row in rows]
        return [self.heading(), *found] if heading else found


def read_letters(text: str, columns: Mapping[str, Column[Row]]) -> Layout[Row]:
    """Read a format of ``-o``; a field that is none stays in the lines as it was written."""
    prefix, percent, rest = text.partition("%")
    fields: list[Field[Row]] = []
    unknown: list[str] = []
    for match in _LETTER.finditer(percent + rest):
        point, width, letter, suffix = match.groups()
        column = columns.get(letter)
        if column is None:
            unknown.append(letter)
            written = match[0]
            if fields:
                fields[-1] = attrs.evolve(fields[-1], suffix=fields[-1].suffix + written)
            else:
                prefix += written
            continue
        fields.append(Field(column=column, width=int(width or 0), right=bool(point), suffix=suffix))
    return Layout(prefix=prefix, fields=tuple(fields), unknown=tuple(unknown))


def read_names(text: str, columns: Mapping[str, Column[Row]]) -> Layout[Row]:
    """Read a format of ``-O``: names of fields, whatever their case, in the lower case of the keys.

    A field is 20 wide unless it says how wide, or what follows it.
    """
    fields: list[Field[Row]] = []
    unknown: list[str] = []
    for match in _NAMED.finditer(text):
        name, point, width, suffix = match.groups()
        column = columns.get(name.strip().lower())
        if column is None:
            unknown.append(name)
            continue
        usual = 0 if suffix else _NAMED_WIDTH
        fields.append(
            Field(
                column=column,
                width=int(width) if width else usual,
                right=bool(point),
                suffix=suffix or "",
            )
        )
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


def padded_time(seconds: int) -> str:
    """Return a time as scontrol and sacct print it: ``00:07:05``, ``1-02:00:00``."""
    hours, rest = divmod(max(0, seconds), 3600)
    days, hours = divmod(hours, 24)
    clock = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock
