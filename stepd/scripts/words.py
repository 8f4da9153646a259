"""The words of a script: quotes, and ``$`` in all its forms.

What lies outside of what is simulated is noted with its place and then stepped over whole, so that
one mistake does not hide or cause others.
"""

from __future__ import annotations

import re
from typing import Literal

import attrs

from simctl.limits import SCRIPT_NESTING
from simctl.stepd.scripts.arithmetic import ArithmeticMistake, check_expression
from simctl.stepd.scripts.escapes import ansi_c
from simctl.stepd.scripts.source import Source
from simctl.stepd.scripts.tree import (
    PARAMETER_OPERATORS,
    Arithmetic,
    Command,
    Parameter,
    Part,
    Substitution,
    Text,
    Word,
)

WORD_ENDS = frozenset(" \t\n|&;()<>")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SPECIAL = "?#@*$!-"
_BRACED = re.compile(r"([A-Za-z_]\w*|\d+|[?@*$#!-])", re.ASCII)
_MEASURED = re.compile(r"#(?=[A-Za-z_0-9@*?$!])(?!\?\S)", re.ASCII)
_INDIRECT = re.compile(r"!(?=[A-Za-z_0-9@*#?])", re.ASCII)
_NAMES = re.compile(r"!([A-Za-z_]\w*)([*@])\}", re.ASCII)
_TILDE = re.compile(r"~(?=[/\s;&|<>():]|$)")
_NAMED_TILDE = re.compile(r"([A-Za-z_]\w*=)~(?=[/\s;&|<>():]|$)", re.ASCII)
_OPERAND_TILDE = re.compile(r"~(?=[/:}])")
_EXTENDED = re.compile(r"[?*+@!]\(")
_PATTERNS = ("##", "#", "%%", "%", "//", "/#", "/%", "/", "^^", "^", ",,", ",")
_TRANSFORMS = "QULu"
_REFUSED_VARIABLES = {
    "BASH_LINENO": "",
    "BASH_COMMAND": "",
    "BASH_ARGV": "",
    "BASH_ARGC": "",
    "COPROC": "",
    "DIRSTACK": "use cd and PWD",
    "SRANDOM": "use RANDOM, which the run's seed decides",
}


@attrs.define
class Words(Source):
    """Read the words of a script."""

    extended: bool = attrs.field(default=False, kw_only=True)
    """Whether ``@(a|b)`` and its kin are patterns."""

    _depth: int = attrs.field(init=False, default=0)

    def nested_commands(self, opener: int) -> tuple[Command, ...]:
        """Read commands up to the ``)`` that closes the parenthesis at *opener*, and take it."""
        raise NotImplementedError

    def commands_of(self, text: str, at: int) -> tuple[Command, ...]:
        """Read *text*, which was written at *at*, as commands of their own."""
        raise NotImplementedError

    def word(self, ends: frozenset[str] = WORD_ENDS) -> Word:
        """Read one word."""
        at = self.at
        parts: list[Part] = []
        if self.text.startswith(("<(", ">("), at):
            parts.append(self._process(at))
        if named := _NAMED_TILDE.match(self.text, at):
            # What looks like an assignment is read like one.
            self.at = named.end()
            parts += [Text(text=named[1], quoted=False), Parameter(name="HOME", quoted=True)]
        elif _TILDE.match(self.text, at):
            self.at += 1
            parts.append(Parameter(name="HOME", quoted=True))
        parts += self.parts(ends, quoted=False)
        return Word(line=self.line(at), column=self.column(at), parts=tuple(parts))

    def _process(self, at: int) -> Part:
        """Read ``<(…)`` or ``>(…)``."""
        self.at += 2
        commands = self.nested_commands(at)
        way: Literal["<", ">"] = "<" if self.text[at] == "<" else ">"
        return Substitution(line=self.line(at), commands=commands, quoted=True, process=way)

    def parts(
        self, ends: frozenset[str], *, quoted: bool, here: bool = False, pattern: bool = False
    ) -> tuple[Part, ...]:
        """Read parts up to one of *ends*, which is left standing.

        In a *here*-document double quotes stand for themselves, in a *pattern* ``@(a|b)`` is read.
        """
        parts: list[Part] = []
        run: list[str] = []
        while self.at < self._end and self.text[self.at] not in ends:
            char = self.text[self.at]
            if char == "\\" and self.text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "\\" and self._escapes(ends, quoted=quoted, here=here):
                _flush(run, parts, quoted=quoted)
                parts.append(Text(text=self.text[self.at + 1], quoted=True))
                self.at += 2
            elif (pattern or self.extended) and not quoted and _EXTENDED.match(self.text, self.at):
                _flush(run, parts, quoted=False)
                parts += self._extended_pattern()
            elif char in "$`'\"" and (found := self._special_parts(quoted=quoted, here=here)):
                _flush(run, parts, quoted=quoted)
                parts += found
            else:
                run.append(char)
                self.at += 1
        _flush(run, parts, quoted=quoted)
        return tuple(parts)

    def _extended_pattern(self) -> tuple[Part, ...]:
        """Read ``@(a|b)`` and its kin as the parts of a pattern."""
        at = self.at
        self.at += 2
        parts = (
            Text(text=self.text[at : at + 2], quoted=False),
            *self._deeper(at, frozenset(")"), quoted=False, pattern=True),
            Text(text=")", quoted=False),
        )
        if self.at >= self._end and not self.cut_short:
            self._never_closed(at, self.text[at : at + 2])
        self.at = min(self.at + 1, self._end)
        return parts

    def _escapes(self, ends: frozenset[str], *, quoted: bool, here: bool) -> bool:
        """Whether the backslash here takes the meaning from the character behind it."""
        behind = self.text[self.at + 1 : min(self.at + 2, self._end)]
        special = "$`\\" if here else '$`"\\'
        return behind != "" and (not quoted or behind in special or behind in ends)

    def _special_parts(self, *, quoted: bool, here: bool) -> tuple[Part, ...]:
        """Read quotes or an expansion; none if the character here stands for itself."""
        char = self.text[self.at]
        if char == "'" and not quoted:
            return (self._single_quoted(),)
        if char == '"' and not here:
            return self._double_quoted()
        if char == "`":
            return (self._backquoted(quoted=quoted),)
        return self._dollar(quoted=quoted, here=here) if char == "$" else ()

    def _single_quoted(self) -> Part:
        """Read ``'…'``, in which nothing has a meaning."""
        at = self.at
        close = self.text.find("'", at + 1, self._end)
        if close < 0:
            self._never_closed(at, "'")
            close = self._end
        self.at = min(close + 1, self._end)
        return Text(text=self.text[at + 1 : close], quoted=True)

    def _double_quoted(self) -> tuple[Part, ...]:
        """Read ``"…"``, in which ``$`` and a few escapes keep their meaning."""
        at = self.at
        self.at += 1
        parts = self.parts(frozenset('"'), quoted=True)
        if self.at >= self._end:
            self._never_closed(at, '"')
        self.at = min(self.at + 1, self._end)
        return parts or (Text(text="", quoted=True),)

    def _backquoted(self, *, quoted: bool) -> Part:
        """Read a command substitution in backquotes."""
        at = self.at
        close = self._skip_quoted(at)
        if self.text[close] != "`" or close == at:
            self._never_closed(at, "`")
        self.at = close + 1
        unescaped = re.sub(
            r"\\([$`\\\"])" if quoted else r"\\([$`\\])", r"\1", self.text[at + 1 : close]
        )
        self._depth += 1
        commands = () if self._too_deep(at) else self.commands_of(unescaped, at + 1)
        self._depth -= 1
        return Substitution(line=self.line(at), commands=commands, quoted=quoted)

    def _dollar(self, *, quoted: bool, here: bool) -> tuple[Part, ...]:
        """Read what a ``$`` begins; none if it stands for itself."""
        at, behind = self.at, self.text[self.at + 1 : min(self.at + 2, self._end)]
        if name := _NAME.match(self.text, at + 1, self._end):
            self.at = name.end()
            return (self._parameter(at, name[0], quoted=quoted),)
        if behind and (behind in _SPECIAL or behind in "0123456789"):
            self.at += 2
            return (Parameter(name=behind, quoted=quoted),)
        if behind == "{":
            return (self._braced(quoted=quoted),)
        if self.text.startswith("$((", at) and (part := self._arithmetic(quoted=quoted)):
            return part
        if behind == "(":
            self.at += 2
            self._depth += 1
            commands = () if self._too_deep(at) else self.nested_commands(at)
            self._depth -= 1
            return (Substitution(line=self.line(at), commands=commands, quoted=quoted),)
        return self._quoting_dollar(behind, quoted=quoted or here)

    def _quoting_dollar(self, behind: str, *, quoted: bool) -> tuple[Part, ...]:
        """Read ``$'…'`` and ``$"…"``; a lone ``$`` stands for itself."""
        at = self.at
        if behind == "[":
            self.at = self.skip_balanced(at + 1, "[", "]")
            self.refuse(at, "old arithmetic, $[…],", "write $((…))")
            return (Text(text="", quoted=True),)
        if quoted or not behind or behind not in "'\"":
            return ()
        self.at += 1
        if behind == '"':
            return self._double_quoted()
        close = self._skip_escaped(self.at)
        text = self.text[self.at + 1 : close]
        self.at = min(close + 1, self._end)
        return (Text(text=ansi_c(text), quoted=True),)

    def _skip_escaped(self, at: int) -> int:
        """Return where the ``'`` at *at*, in which a backslash counts, is closed."""
        here = at + 1
        while here < self._end and self.text[here] != "'":
            here += 2 if self.text[here] == "\\" else 1
        if here >= self._end:
            self._never_closed(at - 1, "$'")
        return min(here, self._end)

    def _parameter(self, at: int, name: str, *, quoted: bool) -> Parameter:
        """Make a plain parameter, unless nobody simulates it."""
        if name in _REFUSED_VARIABLES:
            self.refuse(at, f"the shell's own ${name}", _REFUSED_VARIABLES[name])
        return Parameter(name=name, quoted=quoted)

    def _arithmetic(self, *, quoted: bool) -> tuple[Part, ...]:
        """Read ``$((…))``; none if the parentheses show it to be a command substitution."""
        at, mark = self.at, len(self.mistakes)
        close = self.skip_balanced(at + 1, "(", ")")
        if self.text[close - 2 : close] != "))" and not self.cut_short:
            del self.mistakes[mark:]
            return ()
        return (Arithmetic(parts=self.expression(at, at + 3, close), quoted=quoted),)

    def expression(self, at: int, start: int, close: int) -> tuple[Part, ...]:
        """Read the expression from *start* to the ``))`` that ends at *close*, and move there."""
        end = self._end
        self._end = close if self.cut_short else close - 2
        self.at = start
        parts = self._deeper(at, frozenset(), quoted=True)
        self.at, self._end = close, end
        self.check_arithmetic(at, parts)
        return parts

    def check_arithmetic(self, at: int, parts: tuple[Part, ...]) -> None:
        """Note what is wrong with an expression that holds no expansions."""
        if self.cut_short or not all(isinstance(part, Text) for part in parts):
            return
        try:
            check_expression("".join(part.text for part in parts if isinstance(part, Text)))
        except ArithmeticMistake as mistake:
            self.note(at, str(mistake))

    def _deeper(
        self, at: int, ends: frozenset[str], *, quoted: bool, pattern: bool = False
    ) -> tuple[Part, ...]:
        """Read parts one level down; too many levels are refused and stepped over."""
        self._depth += 1
        parts = () if self._too_deep(at) else self.parts(ends, quoted=quoted, pattern=pattern)
        self._depth -= 1
        return parts

    def _too_deep(self, at: int) -> bool:
        """Note that expansions are nested too deep, and give up."""
        if self._depth <= SCRIPT_NESTING:
            return False
        if not self.cut_short:
            self.note(at, f"expansions are nested more than {SCRIPT_NESTING} deep")
        self.cut_short, self.at = True, self._end
        return True

    def _braced(self, *, quoted: bool) -> Part:
        """Read ``${…}``."""
        at = self.at
        here = at + 2
        if names := _NAMES.match(self.text, here, self._end):
            self.at = names.end()
            return Parameter(name=names[1], quoted=quoted, form="names", operator=names[2])
        form: Literal["", "length", "indirect"] = ""
        if _MEASURED.match(self.text, here, self._end):
            form, here = "length", here + 1
        elif _INDIRECT.match(self.text, here, self._end):
            form, here = "indirect", here + 1
        found = _BRACED.match(self.text, here, self._end)
        if not found:
            return self._no_parameter(at)
        self.at = found.end()
        self._parameter(at, found[1], quoted=quoted)
        parameter = Parameter(
            name=found[1], quoted=quoted, form=form, subscript=self._subscript(at, found[1])
        )
        if form == "indirect" and _all_of(parameter.subscript):
            parameter = attrs.evolve(parameter, form="keys")
        parameter = self._operated(at, parameter)
        if self.text[self.at : self.at + 1] != "}" and not self.cut_short:
            if self.at < self._end:
                return self._no_parameter(at)
            self._never_closed(at, "${")
        self.at = min(self.at + 1, self._end)
        return parameter

    def _subscript(self, at: int, name: str) -> tuple[Part, ...] | None:
        """Read ``[…]`` behind the name of an array, if it is there."""
        if self.text[self.at : self.at + 1] != "[" or not _NAME.match(name):
            return None
        self.at += 1
        parts = self._deeper(at, frozenset("]"), quoted=False)
        self.at = min(self.at + 1, self._end)
        return parts

    def _operated(self, at: int, parameter: Parameter) -> Parameter:
        """Read the operator behind a name, and its operands."""
        found = (op for op in PARAMETER_OPERATORS if self.text.startswith(op, self.at))
        operator = next(found, "")
        if not operator or self.at >= self._end:
            return parameter
        if parameter.form in ("length", "keys"):
            self.refuse(at, f"`{operator}` on a length or on keys", "use a variable between")
        self.at += len(operator)
        quoted = parameter.quoted
        if operator == "@":
            return self._transformed(at, parameter)
        ends = frozenset("}")
        second: tuple[Part, ...] | None = None
        if operator.startswith("/"):
            operand = self._deeper(at, frozenset("/}"), quoted=False, pattern=True)
            if self.text[self.at : self.at + 1] == "/" and self.at < self._end:
                self.at += 1
                second = self._deeper(at, ends, quoted=False)
        elif operator == ":":
            operand, second = self._slice(at)
        elif operator in _PATTERNS:
            operand = self._deeper(at, ends, quoted=False, pattern=True)
        else:
            operand = self._stand_in(at, quoted=quoted)
        return attrs.evolve(parameter, operator=operator, operand=operand, second=second)

    def _stand_in(self, at: int, *, quoted: bool) -> tuple[Part, ...]:
        """Read what stands behind ``:-`` and its kin; ``~`` counts at its start."""
        home: tuple[Part, ...] = ()
        if not quoted and _OPERAND_TILDE.match(self.text, self.at):
            self.at += 1
            home = (Parameter(name="HOME", quoted=True),)
        return home + self._deeper(at, frozenset("}"), quoted=quoted)

    def _slice(self, at: int) -> tuple[tuple[Part, ...], tuple[Part, ...] | None]:
        """Read the place and the length of ``${NAME:place:length}``, two expressions."""
        first = self._deeper(at, frozenset(":}?"), quoted=True)
        if self.text[self.at : self.at + 1] == "?":
            self.refuse(at, "`?:` in the place of a slice", "compute it in a variable before")
            self._deeper(at, frozenset("}"), quoted=True)
        second: tuple[Part, ...] | None = None
        if self.text[self.at : self.at + 1] == ":" and self.at < self._end:
            self.at += 1
            second = self._deeper(at, frozenset("}"), quoted=True)
        return first, second

    def _transformed(self, at: int, parameter: Parameter) -> Parameter:
        """Read the letter of ``${NAME@Q}``."""
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        if not letter or letter not in _TRANSFORMS:
            shown = self.text[at : self.at + 1]
            self.refuse(at, f"the transformation {shown}", f"{_TRANSFORMS} are simulated")
        return attrs.evolve(parameter, operator=f"@{letter}")

    def _no_parameter(self, at: int) -> Part:
        """Note a ``${…}`` that is none."""
        self.at = self.skip_balanced(at + 1, "{", "}")
        if not self.cut_short:
            self.note(at, f"{self.text[at : self.at]} names no variable")
        return Text(text="", quoted=True)


def _all_of(subscript: tuple[Part, ...] | None) -> bool:
    """Whether a subscript stands for all elements of an array."""
    return bool(subscript) and subscript in (
        (Text(text="@", quoted=False),),
        (Text(text="*", quoted=False),),
    )


def _flush(run: list[str], parts: list[Part], *, quoted: bool) -> None:
    """Make one part of the characters gathered so far."""
    if run:
        parts.append(Text(text="".join(run), quoted=quoted))
        run.clear()
