"""The parser of batch scripts: text in, a tree and all its mistakes out.

docs/scripts.md describes the subset of sh. A construct outside of it is noted with its line, then
read on as well as can be, so that every mistake of a script is found at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from simctl.stepd.scripts.header import has_interpreter, read_interpreter, sbatch_options
from simctl.stepd.scripts.parser import parse_commands
from simctl.stepd.scripts.rules import BUILTINS
from simctl.stepd.scripts.simple import trap_texts
from simctl.stepd.scripts.tree import (
    AndOr,
    Background,
    Command,
    For,
    Group,
    If,
    Not,
    Redirected,
    Script,
    ScriptMistake,
    Simple,
    While,
)

__all__ = [
    "ProgramUse",
    "Script",
    "ScriptMistake",
    "has_interpreter",
    "parse",
    "programs_used",
    "sbatch_options",
]


class ProgramUse(NamedTuple):
    """Name a program that a script runs; `argv` is empty where variables decide on a word."""

    line: int
    name: str
    argv: tuple[str, ...]


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
    commands = parse_commands(text, found)
    found.sort(key=lambda mistake: (mistake.line, mistake.column))
    return Script(options=options, commands=commands), tuple(dict.fromkeys(found))


def programs_used(script: Script) -> tuple[ProgramUse, ...]:
    """Return the programs whose names are written out in *script*, in the order of their places.

    Those in the commands of a trap stand at the line of the trap; the builtins of the shell are
    left out.
    """
    return tuple(
        use for command in _simple_commands(script.commands) for use in _programs_of(command)
    )


def _simple_commands(commands: tuple[Command, ...]) -> Iterator[Simple]:
    """Yield the simple commands of a tree as they stand in the text."""
    for command in commands:
        if isinstance(command, Simple):
            yield command
        else:
            yield from _simple_commands(_children(command))


def _children(command: Command) -> tuple[Command, ...]:
    """Return the commands that a compound command is made of."""
    match command:
        case Background() | Not() | Redirected():
            return (command.command,)
        case AndOr():
            return (command.first, *(joined for _, joined in command.rest))
        case If():
            bodies = (one for condition, body in command.branches for one in condition + body)
            return (*bodies, *command.otherwise)
        case While():
            return command.condition + command.body
        case For() | Group():
            return command.body
        case Simple():
            return ()


def _programs_of(command: Simple) -> Iterator[ProgramUse]:
    """Yield the program that *command* runs, or those in the trap that it sets."""
    words = command.words
    if words and words[0].literal == "exec":
        words = tuple(word for word in words[1:] if word.literal != "--")
    for word in trap_texts(command):
        for inner in _simple_commands(parse_commands(word.literal, [], word.line)):
            yield from _programs_of(inner)
    if words and words[0].literal and words[0].literal not in BUILTINS:
        fixed = all(word.is_literal for word in words)
        argv = tuple(word.literal for word in words) if fixed else ()
        yield ProgramUse(words[0].line, words[0].literal, argv)
