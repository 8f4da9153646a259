"""What a batch script says, as a tree: words, commands and the mistakes found in them.

Frozen throughout: one tree is read by the check of a scenario and run by every shell that takes
the same script.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs


@attrs.frozen(kw_only=True)
class ScriptMistake:
    """Say what is wrong at one place of a script; lines and columns count from 1."""

    line: int
    column: int
    message: str


@attrs.frozen(kw_only=True)
class Text:
    """Hold characters that stand for themselves; quoted ones are never split."""

    text: str
    quoted: bool


@attrs.frozen(kw_only=True)
class Parameter:
    """Stand for the value of a variable or special parameter, with its ``:-`` and kin."""

    name: str
    quoted: bool
    operator: str = ""  # "", or one of PARAMETER_OPERATORS
    operand: tuple[Part, ...] = ()


@attrs.frozen(kw_only=True)
class Arithmetic:
    """Stand for the value of ``$((…))``; its parts give the expression's text."""

    parts: tuple[Part, ...]
    quoted: bool


Part: TypeAlias = Text | Parameter | Arithmetic

PARAMETER_OPERATORS = (":-", ":=", ":?", ":+", "-", "=", "?", "+")


@attrs.frozen(kw_only=True)
class Word:
    """Hold one word as written: its parts, side by side."""

    line: int
    column: int
    parts: tuple[Part, ...]

    @property
    def is_literal(self) -> bool:
        """Whether the word reads the same whatever the variables hold."""
        return all(isinstance(part, Text) for part in self.parts)

    @property
    def literal(self) -> str:
        """The characters of a literal word, or "" of any other."""
        return "".join(part.text for part in self.parts if isinstance(part, Text)) * self.is_literal

    @property
    def bare(self) -> str:
        """The word if no part of it is quoted or expanded, else "": what can be a keyword."""
        plain = all(isinstance(part, Text) and not part.quoted for part in self.parts)
        return self.literal if plain else ""


@attrs.frozen(kw_only=True)
class Assignment:
    """Give a variable a value, or add to the one it has (``+=``)."""

    name: str
    value: tuple[Part, ...]
    append: bool


OpenMode: TypeAlias = Literal["read", "write", "append"]


@attrs.frozen(kw_only=True)
class ToFile:
    """Connect file descriptors with a file: ``>``, ``>>``, ``<``, ``2>``, ``&>``."""

    line: int
    descriptors: tuple[int, ...]
    mode: OpenMode
    target: Word


@attrs.frozen(kw_only=True)
class ToDescriptor:
    """Make a file descriptor a copy of another: ``2>&1``."""

    line: int
    descriptor: int
    source: int


Redirection: TypeAlias = ToFile | ToDescriptor


@attrs.frozen(kw_only=True)
class Simple:
    """Run one program or builtin, or only assign and redirect."""

    line: int
    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]


@attrs.frozen(kw_only=True)
class Background:
    """Start a simple command and go on at once: ``&``."""

    line: int
    command: Simple


@attrs.frozen(kw_only=True)
class Not:
    """Turn success into failure and back: ``!``."""

    line: int
    command: Command


@attrs.frozen(kw_only=True)
class AndOr:
    """Join commands with ``&&`` and ``||``, which bind alike, from left to right."""

    line: int
    first: Command
    rest: tuple[tuple[Literal["&&", "||"], Command], ...]


@attrs.frozen(kw_only=True)
class If:
    """Run the body of the first branch whose condition holds, else the last body."""

    line: int
    branches: tuple[tuple[tuple[Command, ...], tuple[Command, ...]], ...]
    otherwise: tuple[Command, ...]


@attrs.frozen(kw_only=True)
class While:
    """Repeat a body while a condition holds, or until it does."""

    line: int
    until: bool
    condition: tuple[Command, ...]
    body: tuple[Command, ...]


@attrs.frozen(kw_only=True)
class For:
    """Repeat a body, once a word."""

    line: int
    name: str
    words: tuple[Word, ...]
    body: tuple[Command, ...]


@attrs.frozen(kw_only=True)
class Group:
    """Run commands between braces, as one where one is expected."""

    line: int
    body: tuple[Command, ...]


@attrs.frozen(kw_only=True)
class Redirected:
    """Run a compound command with its input or output redirected as a whole."""

    line: int
    command: Command
    redirections: tuple[Redirection, ...]


Command: TypeAlias = Simple | Background | Not | AndOr | If | While | For | Group | Redirected


@attrs.frozen(kw_only=True)
class Script:
    """Hold a whole script: its commands, and the options its first line gives the shell."""

    options: tuple[str, ...] = ()  # of "e", "u" and "x"
    commands: tuple[Command, ...]
