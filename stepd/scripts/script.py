"""The parser of batch scripts: text in, a tree and all its mistakes out.

docs/scripts.md describes the language. A construct that is not simulated is noted with its line,
then read on as well as can be, so that every mistake of a script is found at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import attrs

from simctl.stepd.scripts.header import has_interpreter, read_interpreter, sbatch_options
from simctl.stepd.scripts.parser import parse_commands
from simctl.stepd.scripts.rules import BUILTINS
from simctl.stepd.scripts.simple import trap_texts
from simctl.stepd.scripts.tree import (
    Command,
    Function,
    Script,
    ScriptMistake,
    Simple,
    Text,
    Word,
)

__all__ = [
    "UNKNOWN",
    "ProgramUse",
    "Script",
    "ScriptMistake",
    "has_interpreter",
    "parse",
    "programs_used",
    "sbatch_options",
]


UNKNOWN = "\0"
"""Stands for a word of a command line that is not written out."""


class ProgramUse(NamedTuple):
    """Name a program that a script runs; `argv` is empty where variables decide on a word.

    `shape` has all its words, with `UNKNOWN` for each that is not written out.
    """

    line: int
    name: str
    argv: tuple[str, ...]
    shape: tuple[str, ...]


@lru_cache(maxsize=512)
def parse(text: str) -> tuple[Script, tuple[ScriptMistake, ...]]:
    """Read the batch script *text*.

    Returns:
        The tree, to be run only if there are no mistakes, and the mistakes in the order of their
        places.
    """
    options, mistakes = read_interpreter(text)
    found = list(mistakes)
    if "\r" in text:
        line = text[: text.index("\r")].count("\n") + 1
        message = "the script has DOS line breaks; end each line with a newline alone"
        found.append(ScriptMistake(line=line, column=1, message=message))
        text = text.replace("\r", "")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        found.append(ScriptMistake(line=line, column=1, message="the script holds a NUL byte"))
        text = text.replace("\0", "")
    commands = parse_commands(text, found, extended="extglob" in text)
    found.sort(key=lambda mistake: (mistake.line, mistake.column))
    return Script(options=options, commands=commands), tuple(dict.fromkeys(found))


def programs_used(script: Script) -> tuple[ProgramUse, ...]:
    """Return the programs whose names are written out in *script*, in the order of their places.

    Those in the commands of a trap stand at the line of the trap; the builtins of the shell and
    the functions of the script are left out.
    """
    functions = {each.name for each in _nodes(script) if isinstance(each, Function)}
    return tuple(
        use
        for each in _nodes(script)
        if isinstance(each, Simple)
        for use in _programs_of(each)
        if use.name not in functions
    )


def _nodes(node: object) -> Iterator[Command]:
    """Yield the commands of a tree as they stand in the text, whatever they stand in."""
    if isinstance(node, tuple):
        for each in node:
            yield from _nodes(each)
        return
    if isinstance(node, Simple | Function):
        yield node
    kind = type(node)
    if attrs.has(kind):
        for field in attrs.fields(kind):
            value = getattr(node, field.name)
            if isinstance(value, tuple) or attrs.has(type(value)):
                yield from _nodes(value)


def _programs_of(command: Simple) -> Iterator[ProgramUse]:
    """Yield the program that *command* runs, or those in the trap that it sets."""
    words = [word for word in command.words if isinstance(word, Word)]
    if words and words[0].literal in ("exec", "command"):
        words = words[1:]
        while words and words[0].literal.startswith("-"):
            if words[0].literal not in ("-a", "--", "-p"):
                return
            words = words[2:] if words[0].literal == "-a" else words[1:]
    for word in trap_texts(command):
        for inner in _nodes(parse_commands(word.literal, [], word.line)):
            if isinstance(inner, Simple):
                yield from _programs_of(inner)
    words = _behind_tools(words)
    if words and words[0].literal and words[0].literal not in BUILTINS:
        shape = tuple(word.literal if word.is_literal else UNKNOWN for word in words)
        argv = shape if UNKNOWN not in shape else ()
        yield ProgramUse(words[0].line, words[0].literal, argv, shape)


def _behind_tools(words: list[Word]) -> list[Word]:
    """Return the command that env, timeout and their kin start, where that is written out."""
    while words and words[0].literal in STARTERS:
        rest = words[1:]
        counted = words[0].literal == "timeout"
        while rest and (rest[0].literal.startswith("-") or _ASSIGNS.match(_shown(rest[0]))):
            takes_next = rest[0].literal in (
                "-n",
                "-s",
                "-k",
                "-u",
                "-I",
                "-P",
                "-L",
                "-d",
                "-o",
                "-e",
                "-i",
            )
            takes_next = takes_next and not (words[0].literal == "env" and rest[0].literal == "-i")
            rest = rest[2:] if takes_next else rest[1:]
        rest = rest[1:] if counted else rest
        if not rest:
            return []
        words = rest
    return words


def _shown(word: Word) -> str:
    first = word.parts[0] if word.parts else None
    return first.text if isinstance(first, Text) else ""


STARTERS = ("env", "timeout", "nohup", "nice", "xargs", "stdbuf", "setsid", "time")
"""Tools that start the command behind their options."""

_ASSIGNS = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
