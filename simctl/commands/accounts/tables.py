"""Tables as sacctmgr and sshare print them: columns with headings, or texts with bars between."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from simctl.limits import WIDTH
from simctl.site import User

Row = Mapping[str, str]
"""The texts of a line, by the names of their columns; what is missing is empty."""

_COLUMN: Final = re.compile(r"([A-Za-z]+)(?:%(-?\d{1,5}))?")


@attrs.frozen
class Field:
    """A column: its heading and its width, below 0 with the texts at the left."""

    heading: str
    width: int


@attrs.frozen(kw_only=True)
class Table:
    """What is shown, and how: with an *ending* texts stand between bars, and end with it."""

    fields: Mapping[str, Field]
    columns: Sequence[tuple[str, int]]
    ending: str | None = None
    header: bool = True

    def lines(self, rows: Sequence[Row]) -> Iterator[str]:
        """Return the lines of the table."""
        if self.header:
            yield self._line({name: field.heading for name, field in self.fields.items()})
            if self.ending is None:
                yield "".join("-" * abs(width) + " " for _, width in self.columns)
        for row in rows:
            yield self._line(row)

    def _line(self, row: Row) -> str:
        if self.ending is not None:
            return "|".join(row.get(name, "").strip() for name, _ in self.columns) + self.ending
        return "".join(_placed(row.get(name, ""), width) + " " for name, width in self.columns)


def _placed(text: str, width: int) -> str:
    """Return a text in its column; one that is cut ends with a plus."""
    room = abs(width)
    if len(text) > room:
        text = text[: room - 1] + "+" if room else ""
    return text.ljust(room) if width < 0 else text.rjust(room)


def read_columns(text: str, fields: Mapping[str, Field]) -> list[tuple[str, int]]:
    """Return the columns of a format such as ``account%20,user``, each with its width.

    Raises:
        LookupError: With the first word that is none.
    """
    found = []
    for word in filter(None, text.split(",")):
        match = _COLUMN.fullmatch(word)
        name = match[1].lower() if match else ""
        known = name if name in fields else next((n for n in fields if n.startswith(name)), "")
        if match is None or not known:
            raise LookupError(word)
        width = fields[known].width if match[2] is None else int(match[2])
        found.append((known, max(-WIDTH, min(WIDTH, width))))
    return found


def ending_of(options: Mapping[str, object]) -> str | None:
    """Return what ends a line by the options ``-p`` and ``-P``; None for a table."""
    return "|" if "parsable" in options else "" if "parsable2" in options else None


def account_of(user: User) -> str:
    """Return the account of a user; "" for one who has none."""
    return user.account or ("root" if user.uid == 0 else "")
