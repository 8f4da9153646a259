"""Simple commands: assignments, words and redirections."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import attrs

from simctl.stepd.scripts.rules import complaints
from simctl.stepd.scripts.tokens import Token, Tokens
from simctl.stepd.scripts.tree import (
    Assignment,
    Command,
    OpenMode,
    Parameter,
    Part,
    Redirection,
    ScriptMistake,
    Simple,
    Text,
    ToDescriptor,
    ToFile,
    Word,
)

_HERE_DOCUMENTS = ("<<", "<<-")
_MODES: dict[str, OpenMode] = {
    ">": "write",
    ">|": "write",
    ">>": "append",
    "<": "read",
    "&>": "write",
    "&>>": "append",
    ">&": "write",
}
REDIRECTING = (*_MODES, *_HERE_DOCUMENTS, "<<<", "<&", "<>", "<(", ">(")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=", re.ASCII)
_ELEMENT = re.compile(r"[A-Za-z_]\w*\[[^]]*\]\+?=", re.ASCII)
_ARRAY = ("an array", "write the words in one variable")


ParseCommands: TypeAlias = Callable[[str, list[ScriptMistake], int], tuple[Command, ...]]
"""Reads the commands of a trap, given their first line's number, and adds to the mistakes."""


@attrs.define
class SimpleCommands(Tokens):
    """Read simple commands from a script."""

    parse_commands: ParseCommands = attrs.field(kw_only=True)

    def _simple(self) -> Simple:
        """Read one simple command."""
        start = self._peek()
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while True:
            token = self._peek()
            if token.text in REDIRECTING:
                redirections += self._redirection()
            elif token.kind != "word":
                break
            elif not words and _ASSIGNMENT.match(_beginning(token.word)):
                assignments.append(self._assignment())
            else:
                words.append(self._next().word)
        command = Simple(
            line=self.line(start.at),
            assignments=tuple(assignments),
            words=tuple(words),
            redirections=tuple(redirections),
        )
        self._check(command)
        return command

    def _assignment(self) -> Assignment:
        """Read ``NAME=value`` or ``NAME+=value``."""
        token = self._next()
        if self.text.startswith("(", self.at):
            self.refuse(token.at, *_ARRAY)
            self._skip_pair(self.at)
        name, value = split_assignment(token.word)
        if name.rstrip("+") == "IFS":
            self.refuse(token.at, "another IFS", "words are split at blanks and line ends")
        return Assignment(name=name.rstrip("+"), value=value, append=name.endswith("+"))

    def _check(self, command: Simple) -> None:
        """Note what the written-out words of *command* ask for that is not simulated."""
        if command.words and _ELEMENT.match(_beginning(command.words[0])):
            self.refuse(self._place(command.words[0]), *_ARRAY)
        for word, what, advice in complaints(command):
            if what:
                self.refuse(self._place(word), what, advice)
            else:
                self.note(self._place(word), advice)
        for word in trap_texts(command):
            self._check_trap(word)

    def _check_trap(self, word: Word) -> None:
        """Note the mistakes in a trap's commands, at the lines they stand on."""
        found: list[ScriptMistake] = []
        self.parse_commands(word.literal, found, word.line)
        for mistake in found:
            column = mistake.column + (word.column if mistake.line == word.line else 0)
            self.mistakes.append(attrs.evolve(mistake, column=column))

    def _place(self, word: Word) -> int:
        """Return the index of the character at which *word* begins."""
        return self.place(word.line, word.column)

    def _redirection(self) -> tuple[Redirection, ...]:
        """Read one redirection; none if it is refused."""
        token = self._next()
        if token.text in ("<(", ">("):
            self.refuse(token.at, f"process substitution, {token.text}…),", "use a file")
            self._skip_pair(self.at - 1)
            return ()
        target = self._peek()
        if target.text in ("<(", ">("):
            return self._redirection()
        if target.kind != "word":
            self.note(token.at, f"there is no file behind this `{token.text}`")
            return ()
        self._next()
        if token.text not in _MODES:
            return self._refused_redirection(token, target)
        if token.text == ">&" and (
            token.descriptor >= 0 or re.fullmatch(r"\d+|-", target.word.bare, re.ASCII)
        ):
            return self._copied(token, target.word.bare)
        return (
            ToFile(
                line=self.line(token.at),
                descriptors=self._descriptors(token),
                mode=_MODES[token.text],
                target=target.word,
            ),
        )

    def _descriptors(self, token: Token) -> tuple[int, ...]:
        """Return the file descriptors that the redirection *token* concerns."""
        if token.text in ("&>", "&>>", ">&"):
            return (1, 2)
        known = (0,) if token.text == "<" else (1, 2)
        chosen = token.descriptor if token.descriptor >= 0 else known[0]
        if chosen not in known:
            shown = f"the redirection {chosen}{token.text}"
            self.refuse(token.at, shown, "0 is for input, 1 and 2 are for output")
        return (chosen,)

    def _copied(self, token: Token, source: str) -> tuple[Redirection, ...]:
        """Read ``2>&1`` and ``>&2``."""
        descriptor = token.descriptor if token.descriptor >= 0 else 1
        if source not in ("1", "2") or descriptor not in (1, 2):
            shown = f"the redirection {descriptor}>&{source}"
            self.refuse(token.at, shown, "1>&2 and 2>&1 are simulated")
            return ()
        copied = ToDescriptor(line=self.line(token.at), descriptor=descriptor, source=int(source))
        return (copied,)

    def _refused_redirection(self, token: Token, target: Token) -> tuple[Redirection, ...]:
        """Refuse what feeds a program from the script itself, and other descriptors."""
        if token.text in _HERE_DOCUMENTS:
            texts = (part.text for part in target.word.parts if isinstance(part, Text))
            self._here_documents.append("".join(texts))
            self.refuse(token.at, f"a here-document, `{token.text}`,", "use a file")
        else:
            self.refuse(token.at, f"the redirection `{token.text}`", "use a file")
        return ()


def split_assignment(word: Word) -> tuple[str, tuple[Part, ...]]:
    """Split ``NAME=value`` into NAME (with the + of ``+=``) and value; no name if it is none."""
    found = _ASSIGNMENT.match(_beginning(word))
    if not found:
        return "", word.parts
    rest = _beginning(word)[found.end() :]
    value: tuple[Part, ...] = ()
    if re.match(r"~(/|$)", rest):
        value, rest = (Parameter(name="HOME", quoted=True),), rest[1:]
    if rest:
        value += (Text(text=rest, quoted=False),)
    return found[1] + found[2], value + word.parts[1:]


def trap_texts(command: Simple) -> tuple[Word, ...]:
    """Return the word that holds a trap's commands, if *command* sets one and writes it out."""
    words = tuple(word for word in command.words if word.literal != "--")
    if not words or words[0].literal != "trap" or not words[2:]:
        return ()
    resets = words[1].literal in ("", "-") or words[1].literal.isdigit()
    return () if resets else words[1:2]


def _beginning(word: Word) -> str:
    """Return the unquoted characters that *word* begins with."""
    first = word.parts[0] if word.parts else Text(text="", quoted=True)
    return first.text if isinstance(first, Text) and not first.quoted else ""
