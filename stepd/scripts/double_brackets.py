"""What stands in ``[[ … ]]``: tests, patterns and regular expressions, joined by && and ||."""

from __future__ import annotations

from typing import Literal

import attrs

from simctl.limits import EXPRESSION_NESTING
from simctl.stepd.scripts.rules import BRACKET_BINARY, BRACKET_UNARY, NO_TIMES, NO_TIMES_HINT
from simctl.stepd.scripts.simple import SimpleCommands
from simctl.stepd.scripts.tokens import Token
from simctl.stepd.scripts.tree import Condition, Joined, Part, Test, Text, Word

_NOTHING = Condition(operator="", operands=(Word(line=0, column=1, parts=()),))
_PATTERNED = ("==", "=", "!=")
_BLANKS = frozenset(" \t\n")


@attrs.define
class DoubleBrackets(SimpleCommands):
    """Read the tests of double brackets."""

    _levels: int = attrs.field(init=False, default=0)

    def read_test(self, opener: Token) -> Test:
        """Read to the ``]]`` that closes *opener*, and take it."""
        self._skip_newlines()
        test = self._joined("||", opener)
        self._skip_newlines()
        if not self._take("]]") and not self.cut_short:
            self._unexpected(opener)
        return test

    def _unexpected(self, opener: Token) -> None:
        """Note what does not belong here, and step over the rest of the brackets."""
        token = self._peek()
        line = self.line(opener.at)
        shown = {"end": "the end of the script", "newline": "the end of the line"}
        found = shown.get(token.kind, f"`{self.text[token.at : self.at].strip()}`")
        at = opener.at if token.kind == "end" else token.at
        self.note(at, f"the `[[` of line {line} does not expect {found} here")
        while self._peek().kind not in ("end", "newline") and self._next().keyword != "]]":
            pass

    def _joined(self, operator: Literal["&&", "||"], opener: Token) -> Test:
        """Read tests joined by an operator; ``&&`` binds more tightly."""
        tests = [self._below(operator, opener)]
        while True:
            self._skip_newlines()
            if not self._take(operator):
                break
            self._skip_newlines()
            tests.append(self._below(operator, opener))
        return Joined(operator=operator, conditions=tuple(tests)) if tests[1:] else tests[0]

    def _below(self, operator: str, opener: Token) -> Test:
        return self._joined("&&", opener) if operator == "||" else self._single(opener)

    def _single(self, opener: Token) -> Test:
        """Read one test, with the ``!`` before it, or tests in parentheses."""
        self._levels += 1
        if self._levels > EXPRESSION_NESTING:
            if not self.cut_short:
                self.note(opener.at, f"tests are nested more than {EXPRESSION_NESTING} deep")
            self.cut_short, self.at = True, self._end
            self._ahead.clear()
        try:
            negated = False
            while self._take("!"):
                negated = not negated
            if negated:
                return Joined(operator="!", conditions=(self._single(opener),))
            if self._take("("):
                test = self._joined("||", opener)
                if not self._take(")") and not self.cut_short:
                    self._unexpected(opener)
                return Joined(operator="&&", conditions=(test,))
            return self._condition(opener)
        finally:
            self._levels -= 1

    def _condition(self, opener: Token) -> Test:
        """Read an operand with its operator."""
        first = self._peek()
        if first.kind != "word" or first.keyword == "]]":
            if not self.cut_short and not (first.kind == "end" and self._levels > 1):
                self._unexpected_operand(opener, first)
            return _NOTHING
        self._next()
        behind = self._peek()
        if first.keyword in BRACKET_UNARY and behind.kind == "word" and behind.keyword != "]]":
            follows = self._binary_ahead(behind)
            if not follows:
                self._check_operator(first, first.keyword)
                return Condition(operator=first.keyword, operands=(self._next().word,))
        operator = behind.text if behind.text in ("<", ">") else behind.word.bare
        if operator not in BRACKET_BINARY:
            return Condition(operator="", operands=(first.word,))
        self._check_operator(self._next(), operator)
        return self._binary(opener, first.word, operator)

    def _check_operator(self, token: Token, operator: str) -> None:
        """Refuse a test that is not simulated."""
        if operator in NO_TIMES:
            self.refuse(token.at, f"the test {operator}", NO_TIMES_HINT)

    def _binary_ahead(self, behind: Token) -> bool:
        """Whether *behind* is an operator of two operands, so that what is before is a text."""
        return behind.word.bare in BRACKET_BINARY

    def _unexpected_operand(self, opener: Token, token: Token) -> None:
        line = self.line(opener.at)
        found = f"`{token.keyword}`" if token.keyword else "the end of the line"
        self.note(token.at, f"the `[[` of line {line} needs a word here, not {found}")
        if token.keyword and token.keyword != "]]":
            self._next()

    def _binary(self, opener: Token, left: Word, operator: str) -> Test:
        """Read the right operand of *operator*: a word, a pattern or a regular expression."""
        if operator == "=~":
            right = self._regular_expression()
        elif operator in _PATTERNED:
            self._skip_blanks()
            at = self.at
            parts = self.parts(frozenset(" \t\n|&;()<>"), quoted=False, pattern=True)
            right = Word(line=self.line(at), column=self.column(at), parts=parts)
        else:
            token = self._peek()
            right = token.word
            if token.kind == "word":
                self._next()
        if not right.parts and not self.cut_short:
            self._unexpected_operand(opener, self._peek())
            return _NOTHING
        return Condition(operator=operator, operands=(left, right))

    def _regular_expression(self) -> Word:
        """Read what stands behind ``=~``: blanks end it outside of parentheses only."""
        self._skip_blanks()
        at, depth = self.at, 0
        parts: list[Part] = []
        ends = frozenset(" \t\n()&;|<>")
        while self.at < self._end:
            found = self.parts(ends, quoted=False)
            parts += found
            char = self.text[self.at : self.at + 1] if self.at < self._end else ""
            stops = char in _BLANKS or (char in "&;" and depth == 0)
            closes = char == ")" and depth == 0
            joins = char == "|" and depth == 0 and self.text.startswith("||", self.at)
            if not char or (stops and depth == 0) or closes or joins:
                break
            depth += (char == "(") - (char == ")")
            parts.append(Text(text=char, quoted=False))
            self.at += 1
        return Word(line=self.line(at), column=self.column(at), parts=tuple(parts))
