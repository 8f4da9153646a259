"""The tokens of a script: words, operators and line ends, one ahead."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import attrs

from simctl.stepd.scripts.tree import Here, Part, Text, Word
from simctl.stepd.scripts.words import Words

TokenKind: TypeAlias = Literal["word", "operator", "newline", "end"]

_BLANKS = " \t"
_OPERATORS = (
    *("&>>", "<<<", "<<-", ";;&"),
    *("&&", "||", ";;", ";&", "|&", "&>", ">>", ">&", ">|", "<<", "<&", "<>"),
    *("|", "&", ";", "(", ")", "<", ">"),
)
_DESCRIPTOR = re.compile(r"\d+(?=[<>])", re.ASCII)
_NAMED_DESCRIPTOR = re.compile(r"\{[A-Za-z_]\w*\}(?=[<>])", re.ASCII)


_NO_WORD = Word(line=0, column=0, parts=())


@attrs.frozen(kw_only=True)
class Token:
    """Hold one word, operator or line end, with where it begins."""

    kind: TokenKind
    at: int
    text: str = ""  # an operator's characters
    word: Word = _NO_WORD
    descriptor: int = -1  # the number before a redirection, if one stands there

    @property
    def keyword(self) -> str:
        """The characters of an operator or of a word that could be a keyword, else ""."""
        return self.text if self.kind == "operator" else self.word.bare


@attrs.define
class Tokens(Words):
    """Read the tokens of a script, one ahead."""

    _ahead: list[Token] = attrs.field(init=False, factory=list)
    _here_documents: list[tuple[Here, str, bool, bool]] = attrs.field(init=False, factory=list)
    """Those that were announced on this line: where the text goes, what ends it, whether it is
    quoted, and whether tabs are taken off."""

    def _peek(self) -> Token:
        """Return the next token without taking it."""
        if not self._ahead:
            self._ahead.append(self._read_token())
        return self._ahead[0]

    def _next(self) -> Token:
        """Take the next token; `at` is then where it ends."""
        token = self._peek()
        self._ahead.clear()
        return token

    def _take(self, *keywords: str) -> bool:
        """Take the next token if it is one of *keywords*."""
        found = self._peek().keyword in keywords
        if found:
            self._next()
        return found

    def _skip_newlines(self) -> None:
        """Take line ends."""
        while self._peek().kind == "newline":
            self._next()

    def _skip_pair(self, at: int) -> None:
        """Go on reading behind the parenthesis that closes the one at *at*."""
        self._ahead.clear()
        self.at = self.skip_balanced(at, "(", ")")

    def _read_token(self) -> Token:
        """Read the next token."""
        self._skip_blanks()
        at = self.at
        if at >= self._end:
            return Token(kind="end", at=at)
        if self.text[at] == "\n":
            self.at += 1
            self._read_here_documents()
            return Token(kind="newline", at=at)
        if self.text.startswith(("<(", ">("), at):
            return Token(kind="word", at=at, word=self.word())
        if named := _NAMED_DESCRIPTOR.match(self.text, at):
            self.refuse(at, f"a file descriptor named by a variable, {named[0]},", "write a number")
            self.at = at = named.end()
        number = _DESCRIPTOR.match(self.text, at)
        start = number.end() if number else at
        for operator in _OPERATORS:
            if self.text.startswith(operator, start):
                self.at = start + len(operator)
                descriptor = int(number[0][:9]) if number else -1
                return Token(kind="operator", at=at, text=operator, descriptor=descriptor)
        return Token(kind="word", at=at, word=self.word())

    def _skip_blanks(self) -> None:
        """Move past blanks, continued lines and a comment."""
        while self.at < self._end:
            if self.text[self.at] in _BLANKS:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at, self._end)
                self.at = end if end >= 0 else self._end
            else:
                return

    def _read_here_documents(self) -> None:
        """Read the bodies of the here-documents that were announced on the line before."""
        announced, self._here_documents = self._here_documents, []
        for here, delimiter, is_quoted, strips in announced:
            start, lines = self.at, []
            while self.at < self._end:
                end = self.text.find("\n", self.at, self._end)
                end = end if end >= 0 else self._end
                line = self.text[self.at : end]
                line = line.lstrip("\t") if strips else line
                self.at = min(end + 1, self._end)
                if line == delimiter:
                    break
                lines.append(line + "\n")
            else:
                self.note(self.place(here.line, 1), f"this here-document has no end `{delimiter}`")
            text = "".join(lines)
            here.parts = (
                (Text(text=text, quoted=True),) if is_quoted else self.text_parts(text, start)
            )

    def text_parts(self, text: str, at: int) -> tuple[Part, ...]:
        """Read *text*, the body of a here-document that begins at *at*, as parts."""
        raise NotImplementedError
