"""awk: patterns and actions on the fields of lines.

Simulated: BEGIN, END, patterns and ranges; print and printf, also into nothing but the output; if,
while, do, for, break, continue, next, exit, delete; arrays; all operators; getline and functions of
one's own are refused, as are files and commands that a script would read or write.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs

from simctl.limits import EXPRESSION_NESTING, LOOP_TURNS, VALUE_CHARACTERS
from simctl.stepd.scripts.escapes import formatted
from simctl.stepd.scripts.printing import PrintMistake
from simctl.stepd.scripts.regular import Regular, RegularMistake, regular
from simctl.stepd.scripts.tools.tool import Options, Tool, ToolMistake, lines_of

_STATUS = 2
_EXACT = 1e300
_TOKEN = re.compile(
    r"(?P<blank>[ \t]+|\\\n|#[^\n]*)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<text>\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<call>[A-Za-z_]\w*(?=\())"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\+\+|--|\+=|-=|\*=|/=|%=|\^=|==|<=|>=|!=|!~|&&|\|\||[-+*/%^<>=!~?:,;(){}\[\]$|&]|\n)",
    re.DOTALL,
)
_WORDS = (
    *("BEGIN", "END", "print", "printf", "if", "else", "while", "for", "do", "in", "break"),
    *("continue", "next", "exit", "delete", "function", "func", "getline", "return", "nextfile"),
)
_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_COMPARED = ("<", "<=", "==", "!=", ">", ">=")
_FUNCTIONS = {
    "length": (0, 1),
    "substr": (2, 3),
    "index": (2, 2),
    "split": (2, 3),
    "sub": (2, 3),
    "gsub": (2, 3),
    "match": (2, 2),
    "sprintf": (1, 99),
    "toupper": (1, 1),
    "tolower": (1, 1),
    "int": (1, 1),
    "sqrt": (1, 1),
    "exp": (1, 1),
    "log": (1, 1),
}
_FORMAT = re.compile(r"%(?:%|([-+ 0#]*)(\*|\d{0,6})((?:\.(?:\*|\d{0,6}))?)([sdiouxXcfFeEgG]))")


def _mistake(told: str) -> ToolMistake:
    return ToolMistake(f"awk: {told}", _STATUS)


@attrs.frozen
class _Node:
    """One piece of a program: what kind it is, and its parts."""

    kind: str
    parts: tuple[Any, ...] = ()


@attrs.define(kw_only=True)
class _Rule:
    """A pattern with its action."""

    kind: str  # "BEGIN", "END", "", or "range"
    pattern: _Node | None = None
    last: _Node | None = None
    action: _Node | None = None
    active: bool = False


class _Jump(Exception):
    """Leave a loop, a line or the program."""

    def __init__(self, kind: str, status: int = 0) -> None:
        """Say what is left."""
        super().__init__(kind)
        self.kind = kind
        self.status = status


# Reading.


class _Parser:
    """Reads a program."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        self.depth = 0
        self.in_for = False
        self._read(text)

    def _read(self, text: str) -> None:
        at = 0
        while at < len(text):
            if text[at] == "/" and self._begins_operand():
                found = re.compile(r"/((?:\\.|\[\^?\]?[^]\n]*\]|[^/\\\n\[])*)/").match(text, at)
                if not found:
                    raise _mistake("unterminated regexp")
                self.tokens.append(("regular", found[1].replace("\\/", "/")))
                at = found.end()
                continue
            match = _TOKEN.match(text, at)
            if not match:
                raise _mistake(f"syntax error at `{text[at : at + 10]}'")
            at = match.end()
            kind = str(match.lastgroup)
            if kind != "blank":
                word = kind in ("name", "call") and match[0] in _WORDS
                self.tokens.append(("word" if word else kind, match[0]))
        self.tokens.append(("end", ""))

    def _begins_operand(self) -> bool:
        if not self.tokens:
            return True
        kind, text = self.tokens[-1]
        return not (kind in ("number", "text", "name", "regular") or text in (")", "]", "$"))

    def _peek(self, *texts: str) -> bool:
        kind, text = self.tokens[self.at]
        return kind not in ("text", "regular") and text in texts

    def _take(self, *texts: str) -> str:
        if self._peek(*texts):
            self.at += 1
            return self.tokens[self.at - 1][1]
        return ""

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise _mistake(f"syntax error: `{text}' expected at `{self.tokens[self.at][1]}'")

    def _skip(self, *texts: str) -> None:
        while self._take(*texts):
            pass

    def rules(self) -> list[_Rule]:
        """Read all rules."""
        rules: list[_Rule] = []
        while True:
            self._skip("\n", ";")
            if self.tokens[self.at][0] == "end":
                return rules
            rules.append(self._rule())

    def _rule(self) -> _Rule:
        if word := self._take("BEGIN", "END"):
            return _Rule(kind=word, action=self._block())
        if self._peek("function", "func"):
            raise _mistake("functions of one's own are not simulated")
        if self._peek("{"):
            return _Rule(kind="", action=self._block())
        pattern = self.expression()
        last = None
        if self._take(","):
            self._skip("\n")
            last = self.expression()
        action = self._block() if self._peek("{") else None
        return _Rule(kind="range" if last else "", pattern=pattern, last=last, action=action)

    def _block(self) -> _Node:
        self._need("{")
        found: list[_Node] = []
        while True:
            self._skip("\n", ";")
            if self._take("}"):
                return _Node("block", tuple(found))
            if self.tokens[self.at][0] == "end":
                raise _mistake("syntax error: `}' expected at the end")
            found.append(self.statement())

    def _body(self) -> _Node:
        self._skip("\n")
        if self._take(";"):
            return _Node("block")
        return self.statement()

    def statement(self) -> _Node:
        """Read one statement."""
        self.depth += 1
        if self.depth > EXPRESSION_NESTING:
            raise _mistake(f"statements are nested more than {EXPRESSION_NESTING} deep")
        try:
            if self._peek("{"):
                return self._block()
            word = self._take(*_WORDS) if self.tokens[self.at][0] == "word" else ""
            if word:
                return self._worded(word)
            return self._ended(_Node("expression", (self.expression(),)))
        finally:
            self.depth -= 1

    def _ended(self, node: _Node) -> _Node:
        if not self._peek("}", "") and not self._take(";", "\n"):
            raise _mistake(f"syntax error at `{self.tokens[self.at][1]}'")
        return node

    def _worded(self, word: str) -> _Node:
        match word:
            case "if":
                self._need("(")
                condition = self.expression()
                self._need(")")
                body = self._body()
                mark = self.at
                self._skip("\n", ";")
                if self._take("else"):
                    return _Node("if", (condition, body, self._body()))
                self.at = mark
                return _Node("if", (condition, body, None))
            case "while":
                self._need("(")
                condition = self.expression()
                self._need(")")
                return _Node("while", (condition, self._body()))
            case "do":
                body = self._body()
                self._skip("\n", ";")
                self._need("while")
                self._need("(")
                condition = self.expression()
                self._need(")")
                return self._ended(_Node("do", (body, condition)))
            case "for":
                return self._for()
            case "print" | "printf":
                return self._print(word)
            case "break" | "continue" | "next":
                return self._ended(_Node(word))
            case "exit":
                value = None if self._peek(";", "\n", "}", "") else self.expression()
                return self._ended(_Node("exit", (value,)))
            case "delete":
                name = self._name()
                key = self._subscript() if self._peek("[") else None
                return self._ended(_Node("delete", (name, key)))
        raise _mistake(f"`{word}' is not simulated")

    def _for(self) -> _Node:
        self._need("(")
        kinds = [text for _, text in self.tokens[self.at : self.at + 4]]
        if len(kinds) == 4 and kinds[1] == "in" and kinds[3] == ")":  # noqa: PLR2004 - k in a )
            name = self._name()
            self._need("in")
            array = self._name()
            self._need(")")
            return _Node("each", (name, array, self._body()))
        first = None if self._peek(";") else self.expression()
        self._need(";")
        condition = None if self._peek(";") else self.expression()
        self._need(";")
        step = None if self._peek(")") else self.expression()
        self._need(")")
        return _Node("for", (first, condition, step, self._body()))

    def _print(self, word: str) -> _Node:
        parts: list[_Node] = []
        if not self._peek(";", "\n", "}", "", ">", "|"):
            grouped = self._grouped()
            parts = list(grouped) if grouped is not None else self._list(no_greater=True)
        if self._peek(">", "|"):
            told = f"`{word}' into files and commands is not simulated; redirect awk itself"
            raise _mistake(told)
        return self._ended(_Node(word, tuple(parts)))

    def _grouped(self) -> tuple[_Node, ...] | None:
        """Read ``(a, b)`` behind print, if the parentheses are around all of it."""
        if not self._peek("("):
            return None
        mark = self.at
        self.at += 1
        found = self._list(no_greater=False)
        if self._take(")") and self._peek(";", "\n", "}", "", ">", "|"):
            return tuple(found)
        self.at = mark
        return None

    def _list(self, *, no_greater: bool) -> list[_Node]:
        found = [self.expression(no_greater=no_greater)]
        while self._take(","):
            self._skip("\n")
            found.append(self.expression(no_greater=no_greater))
        return found

    def _name(self) -> str:
        kind, text = self.tokens[self.at]
        if kind != "name":
            raise _mistake(f"syntax error: a name expected at `{text}'")
        self.at += 1
        return text

    def _subscript(self) -> _Node:
        self._need("[")
        keys = self._list(no_greater=False)
        self._need("]")
        return _Node("keys", tuple(keys)) if keys[1:] else keys[0]

    # Expressions, loosest first.

    def expression(self, *, no_greater: bool = False) -> _Node:
        """Read an expression."""
        self.depth += 1
        if self.depth > EXPRESSION_NESTING:
            raise _mistake(f"expressions are nested more than {EXPRESSION_NESTING} deep")
        left = self._choice(no_greater=no_greater)
        if left.kind in ("name", "element", "field") and self._peek(
            "=", "+=", "-=", "*=", "/=", "%=", "^="
        ):
            sign = self._take("=", "+=", "-=", "*=", "/=", "%=", "^=")
            self._skip("\n")
            right = self.expression(no_greater=no_greater)
            left = _Node("assign", (left, sign[:-1], right))
        self.depth -= 1
        return left

    def _choice(self, *, no_greater: bool) -> _Node:
        condition = self._or(no_greater=no_greater)
        if not self._take("?"):
            return condition
        self._skip("\n")
        first = self.expression(no_greater=no_greater)
        self._skip("\n")
        self._need(":")
        self._skip("\n")
        return _Node("choice", (condition, first, self.expression(no_greater=no_greater)))

    def _or(self, *, no_greater: bool) -> _Node:
        left = self._and(no_greater=no_greater)
        while self._take("||"):
            self._skip("\n")
            left = _Node("or", (left, self._and(no_greater=no_greater)))
        return left

    def _and(self, *, no_greater: bool) -> _Node:
        left = self._in(no_greater=no_greater)
        while self._take("&&"):
            self._skip("\n")
            left = _Node("and", (left, self._in(no_greater=no_greater)))
        return left

    def _in(self, *, no_greater: bool) -> _Node:
        left = self._matched(no_greater=no_greater)
        while self._take("in"):
            left = _Node("in", (left, self._name()))
        return left

    def _matched(self, *, no_greater: bool) -> _Node:
        left = self._compared(no_greater=no_greater)
        while sign := self._take("~", "!~"):
            left = _Node("match", (left, sign == "!~", self._compared(no_greater=no_greater)))
        return left

    def _compared(self, *, no_greater: bool) -> _Node:
        left = self._joined()
        signs = tuple(sign for sign in _COMPARED if sign != ">" or not no_greater)
        if sign := self._take(*signs):
            return _Node("compare", (sign, left, self._joined()))
        return left

    def _joined(self) -> _Node:
        left = self._sum()
        while self._operand_ahead():
            left = _Node("join", (left, self._sum()))
        return left

    def _operand_ahead(self) -> bool:
        kind, text = self.tokens[self.at]
        if kind in ("number", "text", "name", "call", "regular"):
            return True
        return kind == "sign" and text in ("(", "$", "!", "-", "+", "++", "--") and text != "!"

    def _sum(self) -> _Node:
        left = self._product()
        while sign := self._take("+", "-"):
            left = _Node("binary", (sign, left, self._product()))
        return left

    def _product(self) -> _Node:
        left = self._unary()
        while sign := self._take("*", "/", "%"):
            left = _Node("binary", (sign, left, self._unary()))
        return left

    def _unary(self) -> _Node:
        if sign := self._take("!", "-", "+"):
            self.depth += 1
            if self.depth > EXPRESSION_NESTING:
                raise _mistake(f"expressions are nested more than {EXPRESSION_NESTING} deep")
            inner = self._unary()
            self.depth -= 1
            return _Node("unary", (sign, inner))
        return self._power()

    def _power(self) -> _Node:
        base = self._stepped()
        if self._take("^"):
            return _Node("binary", ("^", base, self._unary()))
        return base

    def _stepped(self) -> _Node:
        if sign := self._take("++", "--"):
            return _Node("before", (sign, self._primary()))
        found = self._primary()
        if found.kind in ("name", "element", "field") and (sign := self._take("++", "--")):
            return _Node("after", (sign, found))
        return found

    def _primary(self) -> _Node:
        kind, text = self.tokens[self.at]
        self.at += 1
        match kind:
            case "number":
                return _Node("number", (float(text),))
            case "text":
                return _Node("text", (formatted(text[1:-1].replace("\\/", "/")),))
            case "regular":
                return _Node("regular", (text,))
            case "name":
                if self._peek("["):
                    return _Node("element", (text, self._subscript()))
                return _Node("call", (text, ())) if text == "length" else _Node("name", (text,))
            case "call":
                return self._call(text)
        if text == "$":
            if self._peek("++", "--"):
                return _Node("field", (self._stepped(),))
            return _Node("field", (self._primary(),))
        if text == "(":
            found = self._list(no_greater=False)
            self._need(")")
            if found[1:]:
                return _Node("keys", tuple(found))
            return _Node("group", (found[0],))
        if text in ("-", "+", "!"):
            self.at -= 1
            return self._unary()
        if text == "getline":
            raise _mistake("`getline' is not simulated")
        raise _mistake(f"syntax error at `{text or 'the end'}'")

    def _call(self, name: str) -> _Node:
        if name not in _FUNCTIONS:
            raise _mistake(f"the function `{name}' is not simulated")
        self._need("(")
        arguments: list[_Node] = []
        if not self._peek(")"):
            arguments = self._list(no_greater=False)
        self._need(")")
        least, most = _FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            told = f"`{name}' has {len(arguments)} arguments, which are too few or too many"
            raise _mistake(told)
        return _Node("call", (name, tuple(arguments)))


# Running.


class _Field(str):
    """A text from the input, which is a number if it looks like one."""

    __slots__ = ()


def _number(value: object) -> float:
    if isinstance(value, float):
        return value
    found = _NUMBER.match(str(value))
    return float(found[0]) if found else 0.0


def _text(value: object, form: str = "%.6g") -> str:
    if not isinstance(value, float):
        return str(value)
    if abs(value) < _EXACT and value == int(value):
        return str(int(value))
    return form % value


def _looks_like_number(value: object) -> bool:
    if isinstance(value, float):
        return True
    if not isinstance(value, _Field):
        return False
    found = _NUMBER.match(value)
    return found is not None and value[found.end() :].strip() == ""


def _true(value: object) -> bool:
    if isinstance(value, float):
        return value != 0
    if isinstance(value, _Field) and _looks_like_number(value):
        return _number(value) != 0
    return value != ""


class _Run:
    """One run of a program."""

    def __init__(self, tool: Tool, rules: list[_Rule], variables: dict[str, str]) -> None:
        self.tool = tool
        self.rules = rules
        self.values: dict[str, Any] = {
            "FS": " ",
            "OFS": " ",
            "ORS": "\n",
            "NR": 0.0,
            "NF": 0.0,
            "FNR": 0.0,
            "FILENAME": "",
            "SUBSEP": "\x1c",
            "OFMT": "%.6g",
            "CONVFMT": "%.6g",
            "RSTART": 0.0,
            "RLENGTH": -1.0,
            "RS": "\n",
        }
        self.arrays: dict[str, dict[str, Any]] = {
            "ENVIRON": {name: _Field(text) for name, text in tool.env.items()}
        }
        for name, text in variables.items():
            self.values[name] = _Field(formatted(text))
        self.line = ""
        self.fields: list[str] = []
        self.turns = 0
        self.written: list[str] = []
        self.length = 0

    def put(self, text: str) -> None:
        """Write."""
        self.written.append(text)
        self.length += len(text)
        if self.length > 16 * VALUE_CHARACTERS:
            raise _mistake("too much output")

    async def flush(self) -> None:
        """Let out what was written."""
        text = "".join(self.written)
        self.written.clear()
        await self.tool.out(text)

    def begin(self) -> None:
        """Run what is to be done before any line."""
        for rule in self.rules:
            if rule.kind == "BEGIN" and rule.action is not None:
                self.run(rule.action)

    def end(self) -> None:
        """Run what is to be done after the last line."""
        for rule in self.rules:
            if rule.kind == "END" and rule.action is not None:
                self.run(rule.action)

    def take_line(self, line: str) -> None:
        """Run the rules on one line."""
        self.values["NR"] += 1.0
        self.values["FNR"] += 1.0
        self.set_line(line)
        try:
            for rule in self.rules:
                if rule.kind in ("BEGIN", "END") or not self._fits(rule):
                    continue
                if rule.action is None:
                    self.put(self.line + _text(self.values["ORS"]))
                else:
                    self.run(rule.action)
        except _Jump as jump:
            if jump.kind != "next":
                raise

    def _fits(self, rule: _Rule) -> bool:
        if rule.kind == "range":
            assert rule.pattern is not None
            assert rule.last is not None
            if not rule.active and not _true(self.value(rule.pattern)):
                return False
            rule.active = not _true(self.value(rule.last))
            return True
        return rule.pattern is None or _true(self.value(rule.pattern))

    def set_line(self, line: str) -> None:
        """Become at a line."""
        self.line = line
        self.fields = self.split(line, _text(self.values["FS"]))
        self.values["NF"] = float(len(self.fields))

    def split(self, text: str, separator: str) -> list[str]:
        """Split a text into fields."""
        if separator == " ":
            return text.split()
        if not text:
            return []
        if separator == "":
            return list(text)
        if len(separator) == 1 and separator not in "\\|.*+?[]^$(){}":
            return text.split(separator)
        if len(separator) == 1 and separator != "\\":
            return text.split(separator)
        expression = self.regular(separator)
        found: list[str] = []
        at = 0
        while (place := expression.search(text, at)) is not None and place.end > place.start:
            found.append(text[at : place.start])
            at = place.end
        return [*found, text[at:]]

    @staticmethod
    def regular(text: str) -> Regular:
        """Read a regular expression."""
        try:
            return regular(text, extended=True)
        except RegularMistake as mistake:
            raise _mistake(str(mistake)) from None

    def _rebuild(self) -> None:
        self.line = _text(self.values["OFS"]).join(self.fields)

    def run(self, node: _Node) -> None:
        """Run a statement."""
        _STATEMENTS[node.kind](self, *node.parts)

    def _count(self) -> None:
        self.turns += 1
        if self.turns > LOOP_TURNS:
            raise _mistake(f"its loops took more than {LOOP_TURNS} turns")

    def block(self, *statements: _Node) -> None:
        """Run statements."""
        for statement in statements:
            self.run(statement)

    def expression(self, node: _Node) -> None:
        """Compute, for what that does."""
        self.value(node)

    def choose(self, condition: _Node, body: _Node, other: _Node | None) -> None:
        """Run one of two statements."""
        if _true(self.value(condition)):
            self.run(body)
        elif other is not None:
            self.run(other)

    def _loop(self, goes_on: Callable[[], bool], body: _Node, step: Callable[[], None]) -> None:
        while goes_on():
            self._count()
            try:
                self.run(body)
            except _Jump as jump:
                if jump.kind == "break":
                    return
                if jump.kind != "continue":
                    raise
            step()

    def repeat(self, condition: _Node, body: _Node) -> None:
        """Run a statement while a condition holds."""
        self._loop(lambda: _true(self.value(condition)), body, lambda: None)

    def repeat_first(self, body: _Node, condition: _Node) -> None:
        """Run a statement once, and on while a condition holds."""
        first = [True]

        def goes_on() -> bool:
            if first:
                first.clear()
                return True
            return _true(self.value(condition))

        self._loop(goes_on, body, lambda: None)

    def count(
        self, first: _Node | None, condition: _Node | None, step: _Node | None, body: _Node
    ) -> None:
        """Run a counting loop."""
        if first is not None:
            self.value(first)
        self._loop(
            lambda: condition is None or _true(self.value(condition)),
            body,
            lambda: None if step is None else self.expression(step),
        )

    def each(self, name: str, array: str, body: _Node) -> None:
        """Run a statement for each key, in the order of their setting; awk leaves it open."""
        left = list(self.arrays.get(array, {}))
        left.reverse()

        def goes_on() -> bool:
            if not left:
                return False
            self.values[name] = _Field(left.pop())
            return True

        self._loop(goes_on, body, lambda: None)

    def show(self, *nodes: _Node) -> None:
        """Write values, or the line."""
        form = _text(self.values["OFMT"])
        texts = [_text(self.value(node), form) for node in nodes] if nodes else [self.line]
        self.put(_text(self.values["OFS"]).join(texts) + _text(self.values["ORS"]))

    def show_formatted(self, *nodes: _Node) -> None:
        """Write as a format says."""
        self.put(self.formatted([self.value(node) for node in nodes]))

    def jump(self, kind: str) -> Callable[..., None]:
        """Make a statement that leaves."""
        raise _Jump(kind)

    def leave(self, value: _Node | None) -> None:
        """Leave the program."""
        raise _Jump("exit", int(_number(self.value(value))) if value is not None else -1)

    def forget(self, name: str, key: _Node | None) -> None:
        """Forget an element, or all."""
        if key is None:
            self.arrays[name] = {}
        else:
            self.arrays.setdefault(name, {}).pop(self._key(key), None)

    # Values.

    def value(self, node: _Node) -> Any:
        """Return the value of an expression: a text or a number."""
        return _VALUES[node.kind](self, *node.parts)

    def _key(self, node: _Node) -> str:
        if node.kind == "keys":
            return _text(self.values["SUBSEP"]).join(_text(self.value(each)) for each in node.parts)
        return _text(self.value(node))

    def named(self, name: str) -> Any:
        """Return a variable."""
        return self.values.get(name, _Field(""))

    def element(self, name: str, key: _Node) -> Any:
        """Return an element, which is there from then on."""
        return self.arrays.setdefault(name, {}).setdefault(self._key(key), _Field(""))

    def field(self, place: _Node) -> Any:
        """Return a field, or the line."""
        number = int(_number(self.value(place)))
        if number < 0:
            raise _mistake(f"attempt to access field {number}")
        if number == 0:
            return _Field(self.line)
        return _Field(self.fields[number - 1]) if number <= len(self.fields) else _Field("")

    def assign(self, target: _Node, sign: str, node: _Node) -> Any:
        """Give a variable, an element or a field a value."""
        value = self.value(node)
        if sign:
            value = self.compute(sign, _number(self.value(target)), _number(value))
        return self.store(target, value)

    def store(self, target: _Node, value: Any) -> Any:
        """Put a value where it belongs."""
        if isinstance(value, str) and len(value) > VALUE_CHARACTERS:
            raise _mistake(f"a value of more than {VALUE_CHARACTERS} characters")
        if target.kind == "name":
            self._set(target.parts[0], value)
        elif target.kind == "element":
            self.arrays.setdefault(target.parts[0], {})[self._key(target.parts[1])] = value
        else:
            self._set_field(int(_number(self.value(target.parts[0]))), _text(value))
        return value

    def _set(self, name: str, value: Any) -> None:
        if name == "RS" and _text(value) != "\n":
            raise _mistake("another RS than a line end is not simulated")
        self.values[name] = value
        if name == "NF":
            count = int(_number(value))
            if not 0 <= count <= LOOP_TURNS:
                raise _mistake(f"NF set to {count}")
            self.fields = (self.fields + [""] * count)[:count]
            self._rebuild()

    def _set_field(self, place: int, text: str) -> None:
        if not 0 <= place <= LOOP_TURNS:
            raise _mistake(f"attempt to access field {place}")
        if place == 0:
            self.set_line(text)
            return
        self.fields += [""] * (place - len(self.fields))
        self.fields[place - 1] = text
        self.values["NF"] = float(len(self.fields))
        self._rebuild()

    @staticmethod
    def compute(sign: str, left: float, right: float) -> float:
        """Compute one operator."""
        if sign in ("/", "%") and right == 0:
            raise _mistake("division by zero attempted")
        try:
            match sign:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "/":
                    return left / right
                case "%":
                    whole = abs(left) % abs(right)
                    return whole if left >= 0 else -whole
            result = left**right
            return float(result) if not isinstance(result, complex) else float("nan")
        except OverflowError:
            return float("inf")

    def binary(self, sign: str, left: _Node, right: _Node) -> float:
        """Compute one operator on two expressions."""
        return self.compute(sign, _number(self.value(left)), _number(self.value(right)))

    def unary(self, sign: str, node: _Node) -> float:
        """Compute a sign or a negation."""
        value = self.value(node)
        if sign == "!":
            return float(not _true(value))
        return -_number(value) if sign == "-" else _number(value)

    def step(self, sign: str, node: _Node, *, before: bool) -> float:
        """Count up or down."""
        old = _number(self.value(node))
        new = old + (1 if sign == "++" else -1)
        self.store(node, new)
        return new if before else old

    def compare(self, sign: str, left: _Node, right: _Node) -> float:
        """Compare: as numbers where both look like it, else as texts."""
        one, other = self.value(left), self.value(right)
        if _looks_like_number(one) and _looks_like_number(other):
            pair: tuple[Any, Any] = (_number(one), _number(other))
        else:
            pair = (_text(one), _text(other))
        first, second = pair
        return float(
            {
                "<": first < second,
                "<=": first <= second,
                "==": first == second,
                "!=": first != second,
                ">": first > second,
                ">=": first >= second,
            }[sign]
        )

    def matches(self, left: _Node, negated: bool, right: _Node) -> float:
        """Match a regular expression."""
        text = _text(self.value(left))
        expression = right.parts[0] if right.kind == "regular" else _text(self.value(right))
        return float(self._search(expression, text) != negated)

    def _search(self, expression: str, text: str) -> bool:
        try:
            return self.regular(expression).matches(text)
        except RegularMistake as mistake:
            raise _mistake(str(mistake)) from None

    def joined(self, left: _Node, right: _Node) -> str:
        """Return two texts side by side."""
        text = _text(self.value(left)) + _text(self.value(right))
        if len(text) > VALUE_CHARACTERS:
            raise _mistake(f"a value of more than {VALUE_CHARACTERS} characters")
        return text

    def within(self, key: _Node, name: str) -> float:
        """Return whether an array has a key."""
        return float(self._key(key) in self.arrays.get(name, {}))

    def formatted(self, values: list[Any]) -> str:
        """Return what a format makes of values."""
        form, left = _text(values[0]), list(reversed(values[1:]))

        def directive(found: re.Match[str]) -> str:
            if found[0] == "%%":
                return "%"
            flags, width, precision, letter = found.groups()
            if width == "*":
                width = str(int(_number(left.pop() if left else 0.0)))
            if precision == ".*":
                precision = f".{int(_number(left.pop() if left else 0.0))}"
            value = left.pop() if left else ""
            head = f"%{flags}{width}{precision}"
            if letter in "diouxX":
                number = int(_number(value))
                return f"{head}{'d' if letter in 'iu' else letter}" % number
            if letter in "fFeEgG":
                return f"{head}{letter}" % _number(value)
            if letter == "c":
                value = chr(int(value)) if isinstance(value, float) else _text(value)[:1]
            return f"{head.replace('0', '', 1) if flags.startswith('0') else head}s" % _text(value)

        try:
            return _FORMAT.sub(directive, form)
        except (ValueError, OverflowError, PrintMistake) as error:
            raise _mistake(f"printf: {error}") from None

    def call(self, name: str, arguments: tuple[_Node, ...]) -> Any:
        """Call one of awk's own functions."""
        if name == "length":
            return self._length(arguments)
        if name == "split":
            return self._split(arguments)
        if name in ("sub", "gsub"):
            return self._substitute(name == "gsub", arguments)
        if name == "match":
            text = _text(self.value(arguments[0]))
            found = self.regular(self._expression_of(arguments[1])).search(text)
            self.values["RSTART"] = float(found.start + 1 if found else 0)
            self.values["RLENGTH"] = float(found.end - found.start if found else -1)
            return self.values["RSTART"]
        values = [self.value(argument) for argument in arguments]
        match name:
            case "substr":
                return self._part(values)
            case "index":
                return float(_text(values[0]).find(_text(values[1])) + 1)
            case "sprintf":
                return self.formatted(values)
            case "toupper":
                return _text(values[0]).upper()
            case "tolower":
                return _text(values[0]).lower()
        return self._computed(name, _number(values[0]))

    @staticmethod
    def _computed(name: str, number: float) -> float:
        try:
            match name:
                case "int":
                    return float(int(number))
                case "sqrt":
                    return float(number**0.5) if number >= 0 else float("nan")
                case "exp":
                    return float(2.718281828459045**number)
        except OverflowError:
            return float("inf")
        raise _mistake(f"`{name}' is not simulated")

    def _length(self, arguments: tuple[_Node, ...]) -> float:
        if not arguments:
            return float(len(self.line))
        node = arguments[0]
        if node.kind == "name" and node.parts[0] in self.arrays:
            return float(len(self.arrays[node.parts[0]]))
        return float(len(_text(self.value(node))))

    @staticmethod
    def _part(values: list[Any]) -> str:
        text = _text(values[0])
        first = round(_number(values[1]))
        last = first + round(_number(values[2])) if values[2:] else len(text) + 1
        return text[max(first, 1) - 1 : max(last - 1, 0)]

    def _split(self, arguments: tuple[_Node, ...]) -> float:
        text = _text(self.value(arguments[0]))
        if arguments[1].kind != "name":
            raise _mistake("split: an array is needed")
        separator = self._expression_of(arguments[2]) if arguments[2:] else _text(self.values["FS"])
        pieces = self.split(text, separator)
        self.arrays[arguments[1].parts[0]] = {
            str(place): _Field(piece) for place, piece in enumerate(pieces, start=1)
        }
        return float(len(pieces))

    def _expression_of(self, node: _Node) -> str:
        return str(node.parts[0]) if node.kind == "regular" else _text(self.value(node))

    def _substitute(self, all_of_them: bool, arguments: tuple[_Node, ...]) -> float:
        expression = self.regular(self._expression_of(arguments[0]))
        new = _text(self.value(arguments[1]))
        target = arguments[2] if arguments[2:] else _Node("field", (_Node("number", (0.0,)),))
        text = _text(self.value(target))
        out: list[str] = []
        at = count = 0
        ended = -1
        while at <= len(text):
            found = expression.search(text, at)
            if found is None:
                break
            out.append(text[at : found.start])
            if not (found.start == found.end == ended):
                out.append(_replacement(new, found.texts[0]))
                count += 1
            at = ended = found.end
            if found.start == found.end:
                out.append(text[at : at + 1])
                at += 1
            if count and not all_of_them:
                break
        if count:
            self.store(target, "".join(out) + text[at:])
        return float(count)


def _replacement(text: str, found: str) -> str:
    return re.sub(r"\\\\|\\&|&", lambda match: {"&": found, "\\&": "&"}.get(match[0], "\\"), text)


_STATEMENTS: dict[str, Callable[..., None]] = {
    "block": _Run.block,
    "expression": _Run.expression,
    "if": _Run.choose,
    "while": _Run.repeat,
    "do": _Run.repeat_first,
    "for": _Run.count,
    "each": _Run.each,
    "print": _Run.show,
    "printf": _Run.show_formatted,
    "break": lambda run: run.jump("break"),
    "continue": lambda run: run.jump("continue"),
    "next": lambda run: run.jump("next"),
    "exit": _Run.leave,
    "delete": _Run.forget,
}

_VALUES: dict[str, Callable[..., Any]] = {
    "number": lambda run, number: number,
    "text": lambda run, text: text,
    "regular": lambda run, text: float(run._search(text, run.line)),
    "name": _Run.named,
    "element": _Run.element,
    "field": _Run.field,
    "group": lambda run, node: run.value(node),
    "keys": lambda run, *nodes: run._key(_Node("keys", nodes)),
    "assign": _Run.assign,
    "choice": lambda run, condition, one, other: run.value(
        one if _true(run.value(condition)) else other
    ),
    "or": lambda run, one, other: float(_true(run.value(one)) or _true(run.value(other))),
    "and": lambda run, one, other: float(_true(run.value(one)) and _true(run.value(other))),
    "in": _Run.within,
    "match": _Run.matches,
    "compare": _Run.compare,
    "join": _Run.joined,
    "binary": _Run.binary,
    "unary": _Run.unary,
    "before": lambda run, sign, node: run.step(sign, node, before=True),
    "after": lambda run, sign, node: run.step(sign, node, before=False),
    "call": _Run.call,
}


def check(options: Options) -> None:
    """Refuse programs that are none, or ask for what is not simulated."""
    if "f" not in options:
        _Parser(_program(options)).rules()


def _program(options: Options) -> str:
    if not options.operands:
        raise _mistake("a program is needed")
    return options.operands[0]


async def awk(tool: Tool, options: Options) -> int:
    """Run a program on the lines of files."""
    if "f" in options:
        text = "\n".join([await tool.text(path) for path in options.all("f")])
        paths = options.operands
    else:
        text, paths = _program(options), options.operands[1:]
    variables: dict[str, str] = {}
    for given in options.all("v"):
        name, equals, value = given.partition("=")
        if not equals or not name.isidentifier():
            raise _mistake(f"-v {given}: NAME=VALUE was expected")
        variables[name] = value
    if "F" in options:
        separator = options.get("F")
        variables["FS"] = "\t" if separator == "t" else separator
    run = _Run(tool, _Parser(text).rules(), variables)
    return await _over(tool, run, paths)


async def _over(tool: Tool, run: _Run, paths: tuple[str, ...]) -> int:
    """Run a program on files; an exit in a rule still runs END."""
    status = 0
    try:
        run.begin()
        if any(rule.kind != "BEGIN" for rule in run.rules):
            status = await _read(tool, run, paths)
    except _Jump as jump:
        status = max(jump.status, 0)
        if jump.kind != "exit":
            raise _mistake(f"`{jump.kind}' in the wrong place") from None
    try:
        run.end()
    except _Jump as jump:
        status = jump.status if jump.status >= 0 else status
    await run.flush()
    return status & 255


async def _read(tool: Tool, run: _Run, paths: tuple[str, ...]) -> int:
    """Run the rules on each line of the files."""
    status = 0
    assigned = re.compile(r"[A-Za-z_]\w*=")
    files = [path for path in paths if not assigned.match(path)]
    for path in paths if files else (*paths, "-"):
        if assigned.match(path):
            name, _, value = path.partition("=")
            run._set(name, _Field(formatted(value)))
            continue
        try:
            text = await tool.text(path, status=_STATUS)
        except ToolMistake as mistake:
            await tool.err(str(mistake))
            status = _STATUS
            continue
        run.values["FILENAME"] = "" if path == "-" else path
        run.values["FNR"] = 0.0
        for line in lines_of(text):
            run.take_line(line)
    return status
