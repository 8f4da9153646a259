"""Lines of Slurm's configuration files: ``Key=Value`` pairs, each with its place.

A ``#`` begins a comment, a backslash at the end of a line joins the next one to it, a backslash
before any other character takes that character as it is. Values with blanks stand in double
quotes. ``Include FILE`` is read in place; ``%c`` in its name is the ClusterName read so far.
"""

import bisect
import operator
import re
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Final

import attrs

from simctl.wire.conf.names import REPEATED

ReadFile = Callable[[str], str]
"""Returns the text of a file; raises OSError, or ValueError where it is no text."""

_MOST_INCLUDES: Final = 1000
_SPACE: Final = re.compile(r"\s*")
_PAIR: Final = re.compile(r'([A-Za-z0-9_.]+)\s*=\s*(?:"([^"]*)"|([^\s"]\S*))(?=\s|$)')
_INCLUDE: Final = re.compile(r'include\s+(?:"([^"]*)"|([^\s"=]\S*))\s*', re.IGNORECASE)
_NEXT: Final = re.compile(r"\s(?=[A-Za-z0-9_.]+\s*=)")
_WORD: Final = re.compile(r"\S+")
_ENDLESS: Final = re.compile(r'[A-Za-z0-9_.]+\s*=\s*"[^"]*$')
_EMPTY: Final = re.compile(r"([A-Za-z0-9_.]+)\s*=\s*$")


@attrs.frozen
class Place:
    """A file, and a line and a column of it that count from 1; line 0 is the file as a whole."""

    file: str
    line: int = 0
    column: int = 0


@attrs.frozen
class Setting:
    """A pair as it was written; `place` is that of the value."""

    key: str
    value: str
    place: Place
    key_place: Place

    @property
    def folded(self) -> str:
        """The key as keys are compared."""
        return self.key.casefold()


@attrs.frozen
class SiteMistake:
    """Something in a file that cannot be taken, or with a warning, that may not be meant."""

    place: Place
    key: str
    message: str
    unbuilt: bool = False
    """Slurm takes it; it is not simulated."""
    owners: tuple[str, ...] = ()
    """The nodes, or the partition, it is said of."""


@attrs.define
class _Logical:
    """A line with those that its backslashes joined to it, comment and backslashes removed."""

    file: str
    text: str
    starts: list[tuple[int, int, int]]
    """Where in the joined text each line of the file begins: offset, line number, column."""

    kept: list[int] = attrs.field(factory=list)
    """Where backslashes were removed: the offset in the joined text of each character left."""

    comment: bool = False
    """Whether a comment was removed."""

    def place(self, offset: int) -> Place:
        """Return where a character of the text stands in the file."""
        if self.kept:
            after = offset - len(self.kept) + 1
            offset = self.kept[-1] + after if after > 0 else self.kept[offset]
        index = bisect.bisect_right(self.starts, offset, key=operator.itemgetter(0))
        begin, line, column = self.starts[index - 1]
        return Place(self.file, line, offset - begin + column)


def _logical_lines(text: str, file: str) -> Iterator[_Logical]:
    """Join continued lines, and strip comments and backslashes, in Slurm's order."""
    joined, starts = "", []
    lines = re.split(r"\r\n|\r|\n", text)
    for number, line in enumerate(lines, 1):
        starts.append((len(joined), number, 1))
        body = line.rstrip()
        backslashes = len(body) - len(body.rstrip("\\"))
        if backslashes % 2 and number < len(lines):
            joined += body[:-1]
            continue
        yield _stripped(_Logical(file, joined + line, starts))
        joined, starts = "", []


def _stripped(line: _Logical) -> _Logical:
    text = line.text
    if "\\" not in text:
        line.text, sign, _ = text.partition("#")
        line.comment = bool(sign)
        return line
    position = 0
    while position < len(text) and text[position] != "#":
        position += text[position] == "\\"
        if position < len(text):
            line.kept.append(position)
        position += 1
    line.text, line.comment = "".join(text[each] for each in line.kept), position < len(text)
    return line


@attrs.define
class LineReader:
    """Reads a file, and those it includes, into lines of settings; notes what it cannot read."""

    read_file: ReadFile
    mistakes: list[SiteMistake] = attrs.field(factory=list)
    cluster_name: str = ""
    includes: bool = True
    """Whether ``Include`` means anything in the file."""

    _open: list[str] = attrs.field(factory=list, init=False)
    _included: int = attrs.field(default=0, init=False)

    def lines(self, text: str, file: str) -> Iterator[tuple[Setting, ...]]:
        """Go through the lines that say anything, those of included files in their place."""
        self._open.append(str(PurePath(file)))
        for line in _logical_lines(text, file):
            match = _INCLUDE.match(line.text.lstrip()) if self.includes else None
            if match is not None:
                yield from self._include(line, match)
            elif settings := self._settings(line):
                yield settings
        self._open.pop()

    def _note(self, place: Place, key: str, message: str) -> None:
        self.mistakes.append(SiteMistake(place, key, message))

    def _settings(self, line: _Logical) -> tuple[Setting, ...]:
        found: list[Setting] = []
        text, position = line.text, 0
        while (position := _SPACE.match(text, position).end()) < len(text):  # type: ignore[union-attr]  # it matches anywhere
            match = _PAIR.match(text, position)
            if match is None:
                position = self._unreadable(line, position)
                continue
            group = 2 if match[2] is not None else 3
            setting = Setting(
                match[1],
                match[group],
                line.place(match.start(group)),
                line.place(position),
            )
            if setting.folded == "clustername":
                self.cluster_name = setting.value
            found.append(setting)
            position = match.end()
        return tuple(found)

    def _unreadable(self, line: _Logical, position: int) -> int:
        """Note that no pair begins here; return where to go on."""
        text, place = line.text, line.place(position)
        empty = _EMPTY.match(text, position)
        if empty is not None:
            self._note(place, empty[1], 'nothing stands behind "="; leave the key out')
            return len(text)
        if _ENDLESS.match(text, position):
            hint = "; # begins a comment in quotes too, and \\# does not" if line.comment else ""
            message = f"the quote that is opened here is not closed on the line{hint}"
            self._note(place, "", message)
            return len(text)
        word = _WORD.match(text, position)
        end = len(text) if word is None else word.end()
        self._note(place, "", f'expected Key=Value, got "{text[position:end][:_SHOWN]}"')
        again = _NEXT.search(text, end)
        return len(text) if again is None else again.end()

    def _include(self, line: _Logical, match: re.Match[str]) -> Iterator[tuple[Setting, ...]]:
        indent = len(line.text) - len(line.text.lstrip())
        group = 1 if match[1] is not None else 2
        place = line.place(indent + match.start(group))
        rest = indent + match.end()
        if rest < len(line.text):
            self._note(line.place(rest), "Include", "one file stands behind Include, nothing more")
        name = match[group]
        if "%c" in name:
            if not self.cluster_name:
                self._note(place, "Include", "%c is the ClusterName, which stands nowhere above")
                return
            name = name.replace("%c", self.cluster_name)
        path = str(PurePath(line.file).parent / name)
        self._included += 1
        if path in self._open:
            self._note(place, "Include", f"{name} includes itself")
        elif self._included > _MOST_INCLUDES:
            self._note(place, "Include", f"more than {_MOST_INCLUDES} files are included")
        else:
            text = self._text(path, place)
            if text is not None:
                yield from self.lines(text, path)

    def _text(self, path: str, place: Place) -> str | None:
        try:
            return self.read_file(path)
        except OSError as error:
            self._note(place, "Include", f"cannot read {path}: {error.strerror or error}")
        except ValueError as error:
            self._note(place, "Include", f"cannot read {path}: {error}")
        return None


_SHOWN: Final = 60


def by_key(
    settings: tuple[Setting, ...], note: Callable[[SiteMistake], object]
) -> dict[str, Setting]:
    """Return settings by their folded keys; of a key given twice the last counts, as in Slurm."""
    found: dict[str, Setting] = {}
    for setting in settings:
        before = found.get(setting.folded)
        if before is not None and setting.folded not in REPEATED:
            message = f"given twice, first on line {before.key_place.line}: the last one counts"
            note(SiteMistake(setting.key_place, setting.key, message))
        found[setting.folded] = setting
    return found
