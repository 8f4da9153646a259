"""Braces: ``{a,b}`` and ``{1..9..2}`` make several words of one, before anything is expanded."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from simctl.limits import BRACE_WORDS, BRACES
from simctl.stepd.scripts.tree import Part, Text, Word

_NUMBERS = re.compile(r"(-?\d{1,18})\.\.(-?\d{1,18})(?:\.\.(-?\d{1,18}))?", re.ASCII)
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d{1,18}))?", re.ASCII)

_Atom = str | Part
"""One unquoted character, or what is quoted or expanded, whole."""


class TooManyWordsError(ValueError):
    """Say that braces stand for more words than anybody can use."""


def words_of(word: Word) -> tuple[Word, ...]:
    """Return the words that *word* stands for; itself alone if it holds no such braces.

    Raises:
        TooManyWordsError: They are more than `BRACE_WORDS`, or it opens more than `BRACES`.
    """
    if not any(
        isinstance(part, Text) and not part.quoted and "{" in part.text for part in word.parts
    ):
        return (word,)
    atoms: list[_Atom] = []
    for part in word.parts:
        atoms += list(part.text) if isinstance(part, Text) and not part.quoted else [part]
    if atoms.count("{") > BRACES:
        raise TooManyWordsError(f"this word opens more than {BRACES} braces; quote what is text")
    return tuple(attrs.evolve(word, parts=_parts(each)) for each in _expanded(atoms))


def _parts(atoms: Sequence[_Atom]) -> tuple[Part, ...]:
    """Join characters to texts again."""
    parts: list[Part] = []
    run: list[str] = []
    for atom in (*atoms, None):
        if isinstance(atom, str):
            run.append(atom)
            continue
        if run:
            parts.append(Text(text="".join(run), quoted=False))
            run = []
        if atom is not None:
            parts.append(atom)
    return tuple(parts)


def _expanded(atoms: list[_Atom]) -> list[list[_Atom]]:
    """Return what *atoms* stand for: the first braces that mean something, and what is behind."""
    start = 0
    while True:
        try:
            start = atoms.index("{", start)
        except ValueError:
            return [atoms]
        close = _close(atoms, start)
        choices = _choices(atoms[start + 1 : close]) if close > 0 else None
        if choices is not None:
            break
        start += 1
    behind = _expanded(atoms[close + 1 :])
    if len(choices) * len(behind) > BRACE_WORDS:
        raise TooManyWordsError(f"these braces stand for more than {BRACE_WORDS} words")
    return [[*atoms[:start], *choice, *rest] for choice in choices for rest in behind]


def _close(atoms: list[_Atom], start: int) -> int:
    """Return where the brace that opens at *start* closes, or -1."""
    depth = 0
    for place in range(start, len(atoms)):
        depth += (atoms[place] == "{") - (atoms[place] == "}")
        if depth == 0:
            return place
    return -1


def _choices(inner: list[_Atom]) -> list[list[_Atom]] | None:
    """Return what stands between commas, or a sequence; None if the braces mean nothing."""
    if (sequence := _sequence(inner)) is not None:
        return sequence
    pieces: list[list[_Atom]] = [[]]
    depth = 0
    for atom in inner:
        depth += (atom == "{") - (atom == "}")
        if atom == "," and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(atom)
    if len(pieces) == 1:
        return None
    found = [each for piece in pieces for each in _expanded(piece)]
    if len(found) > BRACE_WORDS:
        raise TooManyWordsError(f"these braces stand for more than {BRACE_WORDS} words")
    return found


def _sequence(inner: list[_Atom]) -> list[list[_Atom]] | None:
    """Return what ``1..9`` or ``a..e`` stands for."""
    text = "".join(atom if isinstance(atom, str) else "\0" for atom in inner)
    if numbers := _NUMBERS.fullmatch(text):
        first, last, step = int(numbers[1]), int(numbers[2]), int(numbers[3] or "1")
        padded = any(re.match(r"-?0\d", numbers[place]) for place in (1, 2))
        width = max(len(numbers[1]), len(numbers[2])) if padded else 0
        return [
            list(f"{each:0{width}d}" if width else str(each)) for each in _steps(first, last, step)
        ]
    if letters := _LETTERS.fullmatch(text):
        first, last, step = ord(letters[1]), ord(letters[2]), int(letters[3] or "1")
        return [[chr(each)] for each in _steps(first, last, step)]
    return None


def _steps(first: int, last: int, step: int) -> range:
    """Return the numbers from *first* to *last*."""
    step = abs(step) or 1
    if abs(last - first) // step >= BRACE_WORDS:
        raise TooManyWordsError(f"these braces stand for more than {BRACE_WORDS} words")
    return range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
