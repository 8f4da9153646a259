r"""Patterns: ``*``, ``?``, ``[…]`` and ``@(a|b)``, against texts and against the names of files.

A pattern is a text in which a backslash takes the meaning from the character behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from simctl.limits import EXPRESSION_NESTING
from simctl.stepd.scripts.host import ShellHost
from simctl.stepd.scripts.machine import (
    Char,
    Choice,
    Machine,
    Node,
    Place,
    Repeat,
    Sequence,
    TooMuchError,
    machine_of,
)

_SPECIAL = frozenset("*?[\\")
CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": " \\t\\n\\r\\f\\v",
    "blank": " \\t",
    "punct": "!-/:-@\\[-`{-~",
    "xdigit": "0-9A-Fa-f",
    "cntrl": "\\x00-\\x1f\\x7f",
    "print": " -~",
    "graph": "!-~",
    "word": "a-zA-Z0-9_",
}
_HEAVY = 50_000
_SEARCHED = 20_000
_VARYING = 20
_REPEATS_WHAT_VARIES = re.compile(r"[*+]\([^)]*(?:[|*?]|[+!]\()")
_GROUP = re.compile(r"[?*+@!]\(")
_STAR_BEFORE_MORE = re.compile(r"(?<!\\)\*[^*]")
_FOUND_FILES = 100_000


class PatternTooHeavyError(ValueError):
    """Say that matching a pattern could take too long."""


def escaped(text: str) -> str:
    """Return *text* as a pattern that it alone fits."""
    return re.sub("(.)", r"\\\1", text, flags=re.DOTALL)


def plain(pattern: str) -> str:
    """Return the text that a pattern without special characters stands for."""
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def has_special(pattern: str, *, extended: bool = False) -> bool:
    """Return whether a pattern is more than a text."""
    return (
        re.search(
            r"(?<!\\)(?:\\\\)*([*?]|\[.*\]" + (r"|[?*+@!]\(" if extended else "") + ")",
            pattern,
            re.DOTALL,
        )
        is not None
    )


@lru_cache(maxsize=1024)
def compiled(pattern: str, *, lazy: bool = False, extended: bool = True) -> re.Pattern[str]:
    """Return the regular expression of a pattern; *lazy* stars take as little as they can."""
    text, _ = _translated(pattern, 0, lazy=lazy, extended=extended, inside=False)
    return re.compile(text, re.DOTALL)


def fits(text: str, pattern: str, *, extended: bool = True) -> bool:
    """Return whether the whole *text* fits a pattern."""
    if extended and (machine := _machine(pattern, whole=True)) is not None:
        return _found(machine, text, 0) is not None
    _check(text, pattern)
    return compiled(pattern, extended=extended).fullmatch(text) is not None


def _check(text: str, pattern: str) -> None:
    if len(text) > _HEAVY and len(re.findall(r"[*+]", pattern)) > 2:  # noqa: PLR2004
        raise PatternTooHeavyError(f"a pattern with many * over more than {_HEAVY} characters")
    if len(text) > _VARYING and _REPEATS_WHAT_VARIES.search(pattern):
        told = f"a pattern that repeats one of several, over more than {_VARYING} characters"
        raise PatternTooHeavyError(told)


def _check_search(text: str, pattern: str) -> None:
    """Refuse what takes the square of a long text: looking for a pattern at each of its places."""
    if len(text) > _SEARCHED and (_groups(pattern) or _STAR_BEFORE_MORE.search(pattern)):
        told = f"looking for a pattern with * or groups in more than {_SEARCHED} characters"
        raise PatternTooHeavyError(told)


@lru_cache(maxsize=256)
def _machine(pattern: str, *, whole: bool = False) -> Machine | None:
    """Return what fits a pattern with groups, whose ways may be countless; None if it has none.

    Nor is there one for a pattern that says what must not be there, with ``!(…)``.
    """
    if not _groups(pattern) or "!(" in pattern:
        return None
    node, _ = _node(pattern, 0, inside=False)
    nodes = (Place(r"\A"), node, Place(r"\Z")) if whole else (node,)
    try:
        return machine_of(Sequence(nodes), 0)
    except TooMuchError as error:
        raise PatternTooHeavyError(str(error)) from None


def _found(machine: Machine, text: str, start: int) -> tuple[int, int] | None:
    """Return where a pattern fits first from *start* on, and there longest."""
    try:
        spans = machine.search(text, start)
    except TooMuchError as error:
        raise PatternTooHeavyError(str(error)) from None
    return spans[0] if spans is not None else None


def _node(pattern: str, at: int, *, inside: bool, depth: int = 0) -> tuple[Node, int]:
    """Return what stands from *at* on for a machine, and where it ends."""
    if depth > EXPRESSION_NESTING:
        told = f"a pattern with more than {EXPRESSION_NESTING} groups in one another"
        raise PatternTooHeavyError(told)
    nodes: list[Node] = []
    while at < len(pattern):
        char = pattern[at]
        if char in _REPEATED and pattern[at + 1 : at + 2] == "(":
            choices: list[Node] = []
            at += 1
            while not choices or pattern[at : at + 1] == "|":
                inner, at = _node(pattern, at + 1, inside=True, depth=depth + 1)
                choices.append(inner)
            at += 1
            nodes.append(Repeat(Choice(tuple(choices)), *_REPEATED[char]))
            continue
        if inside and char in "|)":
            break
        if char == "\\" and at + 1 < len(pattern):
            nodes.append(Char(re.escape(pattern[at + 1])))
            at += 2
            continue
        if char == "[" and (found := _bracket(pattern, at)):
            nodes.append(Char(f"(?s:{found[0]})"))
            at = found[1]
            continue
        if char == "*":
            nodes.append(Repeat(Char("(?s:.)"), 0, None))
        else:
            nodes.append(Char("(?s:.)" if char == "?" else re.escape(char)))
        at += 1
    return Sequence(tuple(nodes)), at


_REPEATED: dict[str, tuple[int, int | None]] = {
    "@": (1, 1),
    "?": (0, 1),
    "*": (0, None),
    "+": (1, None),
}


def _translated(
    pattern: str, at: int, *, lazy: bool, extended: bool, inside: bool
) -> tuple[str, int]:
    """Return the regular expression of what stands from *at* on, and where it ends."""
    out: list[str] = []
    star = ".*?" if lazy else ".*"
    while at < len(pattern):
        char = pattern[at]
        if extended and char in "?*+@!" and pattern[at + 1 : at + 2] == "(":
            text, at = _group(pattern, at, lazy=lazy)
            out.append(text)
            continue
        if inside and char in "|)":
            break
        if char == "\\" and at + 1 < len(pattern):
            out.append(re.escape(pattern[at + 1]))
            at += 2
            continue
        if char == "[" and (found := _bracket(pattern, at)):
            text, at = found
            out.append(text)
            continue
        if char == "*":
            if out[-1:] != [star]:
                out.append(star)
        else:
            out.append("." if char == "?" else re.escape(char))
        at += 1
    return _with_one_way(out, star), at


def _with_one_way(atoms: list[str], star: str) -> str:
    """Join the atoms of a pattern; of all its stars the last alone may be tried in several ways.

    What stands between two stars fits best where it fits first.
    """
    places = [at for at, atom in enumerate(atoms) if atom == star]
    if len(places) < 2 or any(atom.startswith("(") for atom in atoms):  # noqa: PLR2004 - two
        return "".join(atoms)
    ends = [*places[1:], len(atoms)]
    between = ["".join(atoms[at + 1 : end]) for at, end in zip(places, ends, strict=True)]
    first = "".join(f"(?>.*?{text})" for text in between[:-1])
    return "".join(atoms[: places[0]]) + first + star + between[-1]


def _group(pattern: str, at: int, *, lazy: bool) -> tuple[str, int]:
    """Translate ``@(a|b)`` and its kin."""
    kind, choices = pattern[at], []
    at += 2
    while True:
        text, at = _translated(pattern, at, lazy=lazy, extended=True, inside=True)
        choices.append(text)
        if pattern[at : at + 1] != "|":
            break
        at += 1
    joined = "|".join(choices)
    if kind == "!":
        rest, _ = _translated(pattern, at + 1, lazy=lazy, extended=True, inside=False)
        return f"(?!(?:{joined}){rest}\\Z).*", at + 1
    return f"(?:{joined})" + {"@": "", "?": "?", "*": "*", "+": "+"}[kind], at + 1


def _bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """Translate ``[…]``; None if it is never closed."""
    here = at + 1
    negated = pattern[here : here + 1] in ("!", "^")
    here += negated
    members: list[str] = []
    first = True
    while here < len(pattern):
        char = pattern[here]
        if char == "]" and not first:
            shown = "".join(members)
            if not shown:
                return ("[^\\s\\S]" if not negated else ".", here + 1)
            return f"[{'^' if negated else ''}{shown}]", here + 1
        first = False
        if pattern.startswith("[:", here):
            end = pattern.find(":]", here)
            name = pattern[here + 2 : end]
            if end > 0 and name in CLASSES:
                members.append(CLASSES[name])
                here = end + 2
                continue
        low, here = _member(pattern, here)
        if pattern[here : here + 1] == "-" and pattern[here + 1 : here + 2] not in ("", "]"):
            high, here = _member(pattern, here + 1)
            if low <= high:
                members.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            members.append(re.escape(low))
    return None


def _member(pattern: str, at: int) -> tuple[str, int]:
    """Return one character in brackets, and where it ends."""
    if pattern[at] == "\\" and at + 1 < len(pattern):
        return pattern[at + 1], at + 2
    return pattern[at], at + 1


# Cutting off and replacing.


def without_start(text: str, pattern: str, *, longest: bool, extended: bool = True) -> str:
    """Return *text* without the beginning that fits a pattern."""
    _check(text, pattern)
    groups = extended and _groups(pattern)
    if groups:
        _check_search(text, pattern)
        places = range(len(text) + 1)
        for end in reversed(places) if longest else places:
            if fits(text[:end], pattern, extended=extended):
                return text[end:]
        return text
    found = compiled(pattern, lazy=not longest, extended=False).match(text)
    return text[found.end() :] if found else text


def without_end(text: str, pattern: str, *, longest: bool, extended: bool = True) -> str:
    """Return *text* without the end that fits a pattern."""
    _check(text, pattern)
    groups = extended and _groups(pattern)
    if groups:
        _check_search(text, pattern)
    if groups or len(text) < _SHORT:
        places = range(len(text) + 1)
        for start in places if longest else reversed(places):
            if fits(text[start:], pattern, extended=extended):
                return text[:start]
        return text
    turned = compiled(_turned(pattern), lazy=not longest, extended=False).match(text[::-1])
    return text[: len(text) - turned.end()] if turned else text


_SHORT = 200
_ATOM = re.compile(r"\\.|\[[!^]?\]?(?:\[:\w+:\]|\\.|[^]\\])*\]|.", re.DOTALL)


def _turned(pattern: str) -> str:
    """Return a pattern that fits what *pattern* fits, read from its end."""
    return "".join(reversed(_ATOM.findall(pattern)))


def _groups(pattern: str) -> bool:
    return _GROUP.search(pattern) is not None


def replaced(
    text: str, pattern: str, new: Callable[[str], str], how: str, *, extended: bool = True
) -> str:
    """Return *text* with what fits a pattern replaced: ``/`` once, ``//``, ``/#``, ``/%``.

    *new* makes what takes the place of a match of the match itself.
    """
    if not pattern:
        return {"/#": new("") + text, "/%": text + new("")}.get(how, text)
    if how == "/#":
        rest = without_start(text, pattern, longest=True, extended=extended)
        fitted = text[: len(text) - len(rest)]
        return new(fitted) + rest if fitted or fits("", pattern, extended=extended) else text
    if how == "/%":
        rest = without_end(text, pattern, longest=True, extended=extended)
        fitted = text[len(rest) :]
        return rest + new(fitted) if fitted or fits("", pattern, extended=extended) else text
    _check_search(text, pattern)
    if extended and text and (machine := _machine(pattern)) is not None:
        return _replaced_slowly(text, machine, new, once=how == "/")
    _check(text, pattern)
    return compiled(pattern, extended=extended).sub(
        lambda match: new(match[0]) if match[0] or not text else "", text, 0 if how == "//" else 1
    )


def _replaced_slowly(text: str, machine: Machine, new: Callable[[str], str], *, once: bool) -> str:
    pieces: list[str] = []
    at = 0
    while at < len(text) and (span := _found(machine, text, at)) is not None:
        start, end = span
        pieces += (text[at:start], new(text[start:end]))
        at = end
        if once:
            break
        if end == start:
            # As bash has it: nothing is replaced as well, and the next match is one place further.
            pieces.append(text[at : at + 1])
            at += 1
    return "".join((*pieces, text[at:]))


# Names of files.


def found_files(pattern: str, host: ShellHost, *, hidden: bool, extended: bool) -> list[str]:
    """Return the files whose paths fit a pattern, sorted."""
    pieces = re.split(r"(/+)", pattern)
    paths = ["/" * bool(pattern.startswith("/"))]
    if pattern.startswith("/"):
        pieces = pieces[2:]
    for index in range(0, len(pieces), 2):
        behind = "".join(pieces[index + 1 : index + 2])
        paths = _below(paths, pieces[index], behind, host, hidden=hidden, extended=extended)
    return sorted(paths)


def _below(
    paths: list[str], piece: str, behind: str, host: ShellHost, *, hidden: bool, extended: bool
) -> list[str]:
    """Return the paths in the directories *paths* whose last name fits *piece*."""
    found: list[str] = []
    for path in paths:
        if not has_special(piece, extended=extended):
            here = path + plain(piece)
            if piece == "" or host.info(here) is not None:
                found.append(here + behind)
            continue
        for name in host.names(path or "."):
            if name.startswith(".") and not hidden and not piece.startswith((".", "\\.")):
                continue
            if not fits(name, piece, extended=extended):
                continue
            info = host.info(path + name) if behind else None
            if behind and (info is None or not info.is_dir):
                continue
            found.append(path + name + behind)
            if len(found) > _FOUND_FILES:
                raise PatternTooHeavyError(f"{piece}: more than {_FOUND_FILES} files")
    return found
