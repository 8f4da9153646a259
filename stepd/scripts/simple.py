"""Simple commands: assignments, words and redirections."""

from __future__ import annotations

import re

import attrs

from simctl.stepd.scripts.braces import TooManyWordsError, words_of
from simctl.stepd.scripts.rules import DECLARING, complaints
from simctl.stepd.scripts.tokens import Token, Tokens
from simctl.stepd.scripts.tree import (
    Assignment,
    Element,
    Here,
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
from simctl.stepd.scripts.words import WORD_ENDS

_MODES: dict[str, OpenMode] = {
    ">": "write",
    ">|": "write",
    ">>": "append",
    "<": "read",
    "<>": "both",
    "&>": "write",
    "&>>": "append",
    ">&": "write",
}
_HERE_DOCUMENTS = ("<<", "<<-")
REDIRECTING = (*_MODES, *_HERE_DOCUMENTS, "<<<", "<&")
_READING = ("<", "<>", "<<", "<<-", "<<<", "<&")
_BOTH_OUTPUTS = ("&>", "&>>")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=", re.ASCII)
_ELEMENT = re.compile(r"([A-Za-z_]\w*)\[", re.ASCII)
_ARRAY = re.compile(r"([A-Za-z_]\w*)(\+?)=\(", re.ASCII)
_EQUALS = re.compile(r"(\+?)=")
_HOMES = re.compile(r"(?<=:)~(?=[/:]|$)")
_SOURCE = re.compile(r"\d+-?|-", re.ASCII)
_MOST_DESCRIPTORS = 256


@attrs.define
class SimpleCommands(Tokens):
    """Read simple commands from a script."""

    def _simple(self) -> Simple:
        """Read one simple command."""
        start = self._peek()
        assignments: list[Assignment] = []
        words: list[Word | Assignment] = []
        redirections: list[Redirection] = []
        declares = False
        while True:
            assigns = self._assignment_ahead() if declares or not words else None
            if assigns is not None:
                if words:
                    words.append(assigns)
                else:
                    assignments.append(assigns)
                continue
            token = self._peek()
            if token.text in REDIRECTING:
                redirections += self._redirection()
            elif token.kind != "word":
                break
            else:
                words += self._braces(self._next().word)
                if len(words) == 1 and isinstance(words[0], Word):
                    declares = words[0].literal in DECLARING
        command = Simple(
            line=self.line(start.at),
            assignments=tuple(assignments),
            words=tuple(words),
            redirections=tuple(redirections),
        )
        self._check(command)
        return command

    def _braces(self, word: Word) -> tuple[Word, ...]:
        """Return the words that *word* stands for."""
        try:
            return words_of(word)
        except TooManyWordsError as error:
            self.note(self.place(word.line, word.column), str(error))
            return (word,)

    def _assignment_ahead(self) -> Assignment | None:
        """Read ``NAME=value`` and its kin, if they come next.

        They are looked for in the text, because the ``(`` of an array is no part of a word.
        """
        ahead, behind = list(self._ahead), self.at
        if ahead and ahead[0].kind != "word":
            return None
        if ahead:
            self.at = ahead[0].at
        else:
            self._skip_blanks()
        self._ahead.clear()
        found = self._assignment_here()
        if found is None and ahead:
            self._ahead, self.at = ahead, behind
        return found

    def _assignment_here(self) -> Assignment | None:
        """Read an assignment of any form; None if there is none here."""
        at = self.at
        if array := _ARRAY.match(self.text, at, self._end):
            self.at = array.end()
            name, append = array[1], bool(array[2])
            elements, shown = self._elements(at)
            return Assignment(name=name, value=(), append=append, elements=elements, shown=shown)
        if plain := _ASSIGNMENT.match(self.text, at, self._end):
            self.at = plain.end()
            return Assignment(name=plain[1], value=self._value(), append=bool(plain[2]))
        if element := _ELEMENT.match(self.text, at, self._end):
            return self._element(at, element)
        return None

    def _element(self, at: int, element: re.Match[str]) -> Assignment | None:
        """Read ``NAME[subscript]=value``; None if it is something else."""
        mark = len(self.mistakes)
        close = self.skip_balanced(element.end() - 1, "[", "]")
        equals = _EQUALS.match(self.text, close, self._end)
        if not equals or self.cut_short:
            self.cut_short = False
            del self.mistakes[mark:]
            return None
        self.at = element.end()
        subscript = self.parts(frozenset("]"), quoted=False)
        shown = self.written(element.end())
        self.at = equals.end()
        if self.text[self.at : self.at + 1] == "(":
            self.note(at, "an element of an array cannot hold an array")
        return Assignment(
            name=element[1],
            value=self._value(),
            append=bool(equals[1]),
            subscript=subscript,
            shown=shown,
        )

    def _value(self) -> tuple[Part, ...]:
        """Read the value of an assignment; ``~`` counts at its start and behind each ``:``."""
        parts: list[Part] = []
        for part in self.parts(WORD_ENDS, quoted=False):
            if not isinstance(part, Text) or part.quoted:
                parts.append(part)
                continue
            before = "" if parts else ":"
            pieces = _HOMES.split(before + part.text)
            pieces[0] = pieces[0].removeprefix(before)
            for index, piece in enumerate(pieces):
                if index:
                    parts.append(Parameter(name="HOME", quoted=True))
                if piece:
                    parts.append(Text(text=piece, quoted=False))
        return tuple(parts)

    def _elements(self, at: int) -> tuple[tuple[Element, ...], str]:
        """Read the elements of an array up to its ``)``; return them, and how they are written."""
        elements: list[Element] = []
        shown: list[str] = []
        while True:
            self._skip_newlines()
            if self._take(")"):
                return tuple(elements), " ".join(shown)
            token = self._peek()
            if token.kind != "word":
                if not self.cut_short:
                    self._never_closed(at, "array")
                return tuple(elements), ""
            self.at = token.at
            self._ahead.clear()
            elements += self._array_element()
            shown.append(self.written(token.at))

    def _array_element(self) -> list[Element]:
        """Read one element, with its ``[subscript]=`` if it has one."""
        subscript = None
        if self.text[self.at] == "[":
            mark, at = len(self.mistakes), self.at
            close = self.skip_balanced(at, "[", "]")
            if self.text[close : close + 1] == "=" and not self.cut_short:
                self.at = at + 1
                subscript = self.parts(frozenset("]"), quoted=False)
                self.at = close + 1
                line, column = self.line(at), self.column(at)
                value = Word(line=line, column=column, parts=self._value())
                return [Element(subscript=subscript, word=value)]
            self.cut_short = False
            del self.mistakes[mark:]
        return [Element(subscript=None, word=each) for each in self._braces(self.word())]

    def _check(self, command: Simple) -> None:
        """Note what the written-out words of *command* ask for that is not simulated."""
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
        self.parse_text(word.literal, found, word.line)
        for mistake in found:
            column = mistake.column + (word.column if mistake.line == word.line else 0)
            self.mistakes.append(attrs.evolve(mistake, column=column))

    def parse_text(self, text: str, mistakes: list[ScriptMistake], first_line: int) -> None:
        """Read commands in a text of their own, for their mistakes."""
        raise NotImplementedError

    def _place(self, word: Word) -> int:
        """Return the index of the character at which *word* begins."""
        return self.place(word.line, word.column)

    def _redirection(self) -> tuple[Redirection, ...]:
        """Read one redirection; none if something is wrong with it."""
        token = self._next()
        target = self._peek()
        if target.kind != "word":
            self.note(token.at, f"there is no file behind this `{token.text}`")
            return ()
        self._next()
        descriptor = self._descriptor(token)
        if token.text in _HERE_DOCUMENTS:
            return (self._here_document(token, target, descriptor),)
        if token.text == "<<<":
            here = Here(line=self.line(token.at), descriptor=descriptor, ends_line=True)
            here.parts = target.word.parts
            return (here,)
        if token.text in (">&", "<&") and self._copies(token, target.word):
            return (
                ToDescriptor(line=self.line(token.at), descriptor=descriptor, source=target.word),
            )
        if token.text == "<&":
            self.note(token.at, "`<&` needs a number or - behind it")
            return ()
        both = token.text in _BOTH_OUTPUTS or (token.text == ">&" and token.descriptor < 0)
        return (
            ToFile(
                line=self.line(token.at),
                descriptors=(1, 2) if both else (descriptor,),
                mode=_MODES[token.text],
                target=target.word,
            ),
        )

    def _copies(self, token: Token, word: Word) -> bool:
        """Whether ``>&`` or ``<&`` before *word* is about a descriptor, not a file."""
        return (
            token.descriptor >= 0 or _SOURCE.fullmatch(word.bare) is not None or not word.is_literal
        )

    def _descriptor(self, token: Token) -> int:
        """Return the file descriptor that the redirection *token* concerns."""
        if token.descriptor >= _MOST_DESCRIPTORS:
            self.note(token.at, f"file descriptors go up to {_MOST_DESCRIPTORS - 1}")
        if token.descriptor >= 0:
            return token.descriptor
        return 0 if token.text in _READING else 1

    def _here_document(self, token: Token, target: Token, descriptor: int) -> Here:
        """Announce a here-document, whose text begins on the next line."""
        here = Here(line=self.line(token.at), descriptor=descriptor)
        parts = target.word.parts
        raw = self.text[target.at : self.at]
        is_quoted = any(isinstance(part, Text) and part.quoted for part in parts) or "\\" in raw
        delimiter = target.word.literal if target.word.is_literal else raw
        self._here_documents.append((here, delimiter, is_quoted, token.text == "<<-"))
        return here


def trap_texts(command: Simple) -> tuple[Word, ...]:
    """Return the word that holds a trap's commands, if *command* sets one and writes it out."""
    words = [word for word in command.words if isinstance(word, Word) and word.literal != "--"]
    if not words or words[0].literal != "trap" or not words[2:]:
        return ()
    resets = words[1].literal in ("", "-") or words[1].literal.isdecimal()
    return () if resets or not words[1].is_literal else (words[1],)
