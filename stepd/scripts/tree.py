"""What a batch script says, as a tree: words, commands and the mistakes found in them.

One tree is read by the check of a scenario and run by every shell that takes the same script;
nobody changes it once it is read.
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


# Words.


@attrs.frozen(kw_only=True)
class Text:
    """Hold characters that stand for themselves; quoted ones are neither split nor patterns."""

    text: str
    quoted: bool


@attrs.frozen(kw_only=True)
class Parameter:
    """Stand for the value of a variable or special parameter, and what ``${…}`` makes of it."""

    name: str
    quoted: bool
    subscript: tuple[Part, ...] | None = None  # of an element of an array, or its @ or *
    operator: str = ""  # one of PARAMETER_OPERATORS
    operand: tuple[Part, ...] = ()
    second: tuple[Part, ...] | None = None  # the replacement, or the length of a slice
    form: Literal["", "length", "indirect", "keys", "names"] = ""


@attrs.frozen(kw_only=True)
class Arithmetic:
    """Stand for the value of ``$((…))``; its parts give the expression's text."""

    parts: tuple[Part, ...]
    quoted: bool


@attrs.frozen(kw_only=True)
class Substitution:
    """Stand for what commands write: ``$(…)``, backquotes, or, of *process*, ``<(…)``."""

    line: int
    commands: tuple[Command, ...]
    quoted: bool
    process: Literal["", "<", ">"] = ""


Part: TypeAlias = Text | Parameter | Arithmetic | Substitution

PARAMETER_OPERATORS = (
    *(":-", ":=", ":?", ":+", "-", "=", "?", "+"),
    *("##", "#", "%%", "%", "//", "/#", "/%", "/", "^^", "^", ",,", ",", "@", ":"),
)
"""What may stand behind a name in ``${…}``; the first that fits counts."""


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


# Simple commands.


@attrs.frozen(kw_only=True)
class Element:
    """Hold one element of ``NAME=(…)``; without a *subscript* its words are counted on."""

    subscript: tuple[Part, ...] | None
    word: Word


@attrs.frozen(kw_only=True)
class Assignment:
    """Give a variable a value, or add to the one it has (``+=``); or *elements* to an array."""

    name: str
    value: tuple[Part, ...]
    append: bool
    subscript: tuple[Part, ...] | None = None
    elements: tuple[Element, ...] | None = None
    shown: str = ""  # the elements, or the subscript, as written


OpenMode: TypeAlias = Literal["read", "write", "append", "both"]


@attrs.frozen(kw_only=True)
class ToFile:
    """Connect file descriptors with a file: ``>``, ``>>``, ``<``, ``<>``, ``2>``, ``&>``."""

    line: int
    descriptors: tuple[int, ...]
    mode: OpenMode
    target: Word


@attrs.frozen(kw_only=True)
class ToDescriptor:
    """Make a file descriptor a copy of another: ``2>&1``; or close it: ``3>&-``.

    *source* stands for a number, ``-``, or a number and ``-``, which closes it afterwards.
    """

    line: int
    descriptor: int
    source: Word


@attrs.define(kw_only=True, eq=False)
class Here:
    """Give a command a text as its input: ``<<`` or ``<<<``.

    The body of a here-document stands behind the line, so its parts are filled in later.
    """

    line: int
    descriptor: int
    parts: tuple[Part, ...] = ()
    ends_line: bool = False  # a here-string gets a line end


Redirection: TypeAlias = ToFile | ToDescriptor | Here


@attrs.frozen(kw_only=True)
class Simple:
    """Run one program, function or builtin, or only assign and redirect."""

    line: int
    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]  # the arguments of export and its kin may be assignments
    redirections: tuple[Redirection, ...]


# Conditions of [[ … ]].


@attrs.frozen(kw_only=True)
class Condition:
    """Hold one test of ``[[ … ]]``: *operator* is "" for a word alone, else one or two operands."""

    operator: str
    operands: tuple[Word, ...]


@attrs.frozen(kw_only=True)
class Joined:
    """Join conditions with ``!``, ``&&`` or ``||``."""

    operator: Literal["!", "&&", "||"]
    conditions: tuple[Test, ...]


Test: TypeAlias = Condition | Joined


# Compound commands.


@attrs.frozen(kw_only=True)
class Background:
    """Start a command and go on at once: ``&``; *text* is how it is written."""

    line: int
    command: Command
    text: str


@attrs.frozen(kw_only=True)
class Not:
    """Turn success into failure and back: ``!``."""

    line: int
    command: Command


@attrs.frozen(kw_only=True)
class Time:
    """Tell how long a pipeline took."""

    line: int
    command: Command
    posix: bool


@attrs.frozen(kw_only=True)
class Pipeline:
    """Run commands beside each other, each reading what the one before it writes."""

    line: int
    commands: tuple[Command, ...]


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
    shown: str  # the words as written


@attrs.frozen(kw_only=True)
class CountingFor:
    """Repeat a body as ``for ((first; condition; step))`` says; empty parts stand for 1."""

    line: int
    first: tuple[Part, ...]
    condition: tuple[Part, ...]
    step: tuple[Part, ...]
    body: tuple[Command, ...]


@attrs.frozen(kw_only=True)
class Clause:
    """Hold one branch of a ``case``, and how it ends: ``;;``, ``;&`` or ``;;&``."""

    patterns: tuple[Word, ...]
    body: tuple[Command, ...]
    end: str


@attrs.frozen(kw_only=True)
class Case:
    """Run the branch whose pattern fits a word."""

    line: int
    word: Word
    clauses: tuple[Clause, ...]
    shown: str  # the word as written


@attrs.frozen(kw_only=True)
class Group:
    """Run commands between braces, as one where one is expected."""

    line: int
    body: tuple[Command, ...]


@attrs.frozen(kw_only=True)
class Line:
    """Run commands that stand on one line, outside of others: an error skips the rest of them."""

    line: int
    body: tuple[Command, ...]


@attrs.frozen(kw_only=True)
class Subshell:
    """Run commands in a shell of their own: ``( … )``."""

    line: int
    body: tuple[Command, ...]


@attrs.frozen(kw_only=True)
class DoubleBracket:
    """Judge ``[[ … ]]``."""

    line: int
    test: Test


@attrs.frozen(kw_only=True)
class Calculate:
    """Judge ``(( … ))``: anything but 0 is a success."""

    line: int
    parts: tuple[Part, ...]


@attrs.frozen(kw_only=True)
class Function:
    """Give a command a name."""

    line: int
    name: str
    body: Command


@attrs.frozen(kw_only=True)
class Redirected:
    """Run a compound command with its input or output redirected as a whole."""

    line: int
    command: Command
    redirections: tuple[Redirection, ...]


Command: TypeAlias = (
    Simple
    | Background
    | Not
    | Time
    | Pipeline
    | AndOr
    | If
    | While
    | For
    | CountingFor
    | Case
    | Group
    | Line
    | Subshell
    | DoubleBracket
    | Calculate
    | Function
    | Redirected
)


@attrs.frozen(kw_only=True)
class Script:
    """Hold a whole script: its commands, and the options its first line gives the shell."""

    options: tuple[str, ...] = ()  # of "e", "u" and "x"
    commands: tuple[Command, ...]
