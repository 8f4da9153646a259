"""The words of a script: quotes, ``$`` in all its forms, and the braces of bash.

What lies outside the subset is noted with its place and then stepped over whole, so that one
mistake does not hide or cause others.
"""

from __future__ import annotations

import re

import attrs

from simctl.limits import SCRIPT_NESTING
from simctl.stepd.scripts.arithmetic import ArithmeticMistake, check_expression
from simctl.stepd.scripts.source import Source
from simctl.stepd.scripts.tree import PARAMETER_OPERATORS, Arithmetic, Parameter, Part, Text, Word

_WORD_ENDS = frozenset(" \t\n|&;()<>")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SPECIAL = "?#@*$!"
_BRACED = re.compile(r"\$\{([A-Za-z_]\w*|\d+|[?@*$]|[#!](?=[}:=?+-]))", re.ASCII)
_TILDE = re.compile(r"~(?=[/\s;&|<>()]|$)")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_OWN_VARIABLES = (
    *("RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "LINENO", "PIPESTATUS"),
    *("BASHPID", "PPID", "UID", "EUID", "FUNCNAME", "REPLY", "_", "OPTARG", "OPTIND"),
)
_OPERATOR_NAMES = {
    "%": "cutting off an end",
    "#": "cutting off a beginning",
    "/": "replacing a part",
    ":": "taking a part",
    "[": "an array element",
    "^": "changing case",
    ",": "changing case",
    "@": "transforming a value",
}


@attrs.define
class Words(Source):
    """Read the words of a script."""

    _depth: int = attrs.field(init=False, default=0)

    def _word(self) -> Word:
        """Read one word."""
        at = self.at
        parts: list[Part] = []
        if _TILDE.match(self.text, at):
            self.at += 1
            parts.append(Parameter(name="HOME", quoted=True))
        parts += self._parts(_WORD_ENDS, quoted=False)
        word = Word(line=self.line(at), column=self.column(at), parts=tuple(parts))
        if not re.match(r"\w+=", _shadow(word.parts)):
            self._refuse_braces(word, at)
        return word

    def _refuse_braces(self, word: Word, at: int) -> None:
        """Refuse ``{1..3}`` and ``{a,b}``, which bash and sh read differently."""
        if found := _BRACES.search(_shadow(word.parts)):
            advice = "write the words out, or quote the braces if they are meant as they stand"
            self.refuse(at, f"brace expansion, {found[0].replace(chr(0), '…')},", advice)

    def _parts(self, ends: frozenset[str], *, quoted: bool) -> tuple[Part, ...]:
        """Read parts up to one of *ends*, which is left standing."""
        parts: list[Part] = []
        run: list[str] = []
        while self.at < self._end and self.text[self.at] not in ends:
            if self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] == "\\" and self._escapes(ends, quoted=quoted):
                _flush(run, parts, quoted=quoted)
                parts.append(Text(text=self.text[self.at + 1], quoted=True))
                self.at += 2
            elif found := self._special_parts(quoted=quoted):
                _flush(run, parts, quoted=quoted)
                parts += found
            else:
                run.append(self.text[self.at])
                self.at += 1
        _flush(run, parts, quoted=quoted)
        return tuple(parts)

    def _escapes(self, ends: frozenset[str], *, quoted: bool) -> bool:
        """Whether the backslash here takes the meaning from the character behind it."""
        behind = self.text[self.at + 1 : min(self.at + 2, self._end)]
        return behind != "" and (not quoted or behind in '$`"\\' or behind in ends)

    def _special_parts(self, *, quoted: bool) -> tuple[Part, ...]:
        """Read quotes or an expansion; none if the character here stands for itself."""
        char = self.text[self.at]
        if char == "'" and not quoted:
            return (self._single_quoted(),)
        if char == '"':
            return self._double_quoted()
        if char == "`":
            return (self._backquoted(),)
        return self._dollar(quoted=quoted) if char == "$" else ()

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
        parts = self._parts(frozenset('"'), quoted=True)
        if self.at >= self._end:
            self._never_closed(at, '"')
        self.at = min(self.at + 1, self._end)
        return parts or (Text(text="", quoted=True),)

    def _backquoted(self) -> Part:
        """Refuse a command substitution in backquotes."""
        at = self.at
        close = self._skip_quoted(at)
        if self.text[close] != "`" or close == at:
            self._never_closed(at, "`")
        self.at = close + 1
        self.refuse(at, "command substitution, `…`,")
        return Text(text="", quoted=True)

    def _dollar(self, *, quoted: bool) -> tuple[Part, ...]:
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
        return self._refused_dollar(behind, quoted=quoted)

    def _refused_dollar(self, behind: str, *, quoted: bool) -> tuple[Part, ...]:
        """Refuse the forms of ``$`` outside the subset; a lone one stands for itself."""
        at = self.at
        if behind == "(":
            self.at = self.skip_balanced(at + 1, "(", ")")
            self.refuse(at, "command substitution, $(…),")
        elif behind == "[":
            self.at = self.skip_balanced(at + 1, "[", "]")
            self.refuse(at, "old arithmetic, $[…],", "write $((…))")
        elif behind == "-":
            self.at += 2
            self.refuse(at, "$-")
        elif behind and behind in "'\"" and not quoted:
            self.at += 1
            self.refuse(at, f"${behind}…{behind}", f"write {behind}…{behind}")
        else:
            return ()
        return (Text(text="", quoted=True),)

    def _parameter(self, at: int, name: str, *, quoted: bool) -> Parameter:
        """Make a plain parameter, unless only a real shell could give its value."""
        if name in _OWN_VARIABLES or name.startswith("BASH_"):
            self.refuse(at, f"the shell's own ${name}")
        return Parameter(name=name, quoted=quoted)

    def _arithmetic(self, *, quoted: bool) -> tuple[Part, ...]:
        """Read ``$((…))``; none if the parentheses show it to be a command substitution."""
        at, end = self.at, self._end
        close = self.skip_balanced(at + 1, "(", ")")
        if self.text[close - 2 : close] != "))" and not self.cut_short:
            return ()
        self._end = close if self.cut_short else close - 2
        self.at = at + 3
        parts = self._deeper(at, frozenset(), quoted=True)
        self.at, self._end = close, end
        self._check_arithmetic(at, parts)
        return (Arithmetic(parts=parts, quoted=quoted),)

    def _check_arithmetic(self, at: int, parts: tuple[Part, ...]) -> None:
        """Note what is wrong with an expression that holds no expansions."""
        text = "".join(part.text for part in parts if isinstance(part, Text))
        for name in _NAME.findall(text):
            if name in _OWN_VARIABLES:
                self.refuse(at, f"the shell's own ${name}")
        if self.cut_short or not all(isinstance(part, Text) for part in parts):
            return
        try:
            check_expression(text)
        except ArithmeticMistake as mistake:
            self.note(at, str(mistake))

    def _deeper(self, at: int, ends: frozenset[str], *, quoted: bool) -> tuple[Part, ...]:
        """Read parts one level down; too many levels are refused and stepped over."""
        self._depth += 1
        if self._depth > SCRIPT_NESTING:
            self.note(at, f"expansions are nested more than {SCRIPT_NESTING} deep")
            self.cut_short, self.at, self._depth = True, self._end, 0
            return ()
        parts = self._parts(ends, quoted=quoted)
        self._depth -= 1
        return parts

    def _braced(self, *, quoted: bool) -> Part:
        """Read ``${…}``."""
        at = self.at
        found = _BRACED.match(self.text, at, self._end)
        if not found:
            return self._refused_braces(at, "")
        self.at = found.end()
        self._parameter(at, found[1], quoted=quoted)
        operators = (op for op in PARAMETER_OPERATORS if self.text.startswith(op, self.at))
        operator = next(operators, "")
        if not operator and self.text[self.at : self.at + 1] != "}":
            return self._refused_braces(at, self.text[self.at : self.at + 1])
        self.at += len(operator)
        operand = self._deeper(at, frozenset("}"), quoted=quoted)
        if self.at >= self._end and not self.cut_short:
            self._never_closed(at, "${")
        self.at = min(self.at + 1, self._end)
        return Parameter(name=found[1], quoted=quoted, operator=operator, operand=operand)

    def _refused_braces(self, at: int, operator: str) -> Part:
        """Refuse a ``${…}`` outside the subset."""
        self.at = self.skip_balanced(at + 1, "{", "}")
        if self.cut_short:
            return Text(text="", quoted=True)
        shown = self.text[at : self.at]
        if operator in _OPERATOR_NAMES:
            self.refuse(at, f"{_OPERATOR_NAMES[operator]}, {shown},")
        elif shown.startswith(("${#", "${!")):
            what = "the length of a value" if shown[2] == "#" else "a variable's name in a variable"
            self.refuse(at, f"{what}, {shown},")
        else:
            self.note(at, f"{shown} names no variable")
        return Text(text="", quoted=True)


def _flush(run: list[str], parts: list[Part], *, quoted: bool) -> None:
    """Make one part of the characters gathered so far."""
    if run:
        parts.append(Text(text="".join(run), quoted=quoted))
        run.clear()


def _shadow(parts: tuple[Part, ...]) -> str:
    """Show the unquoted characters of a word, and a NUL for all that is quoted or expanded."""
    return "".join(
        part.text if isinstance(part, Text) and not part.quoted else "\0" for part in parts
    )
