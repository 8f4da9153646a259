"""Read an awk program into rules."""

from __future__ import annotations

import re

from simctl.limits import EXPRESSION_NESTING
from simctl.stepd.scripts.escapes import formatted
from simctl.stepd.scripts.tools.awk.tree import Node, Rule, awk_mistake

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


class Parser:
    """Reads a program."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        self.depth = 0
        self._read(text)

    def _read(self, text: str) -> None:
        at = 0
        while at < len(text):
            if text[at] == "/" and self._begins_operand():
                found = re.compile(r"/((?:\\.|\[\^?\]?[^]\n]*\]|[^/\\\n\[])*)/").match(text, at)
                if not found:
                    raise awk_mistake("unterminated regexp")
                self.tokens.append(("regular", found[1].replace("\\/", "/")))
                at = found.end()
                continue
            match = _TOKEN.match(text, at)
            if not match:
                raise awk_mistake(f"syntax error at `{text[at : at + 10]}'")
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
            raise awk_mistake(f"syntax error: `{text}' expected at `{self.tokens[self.at][1]}'")

    def _skip(self, *texts: str) -> None:
        while self._take(*texts):
            pass

    def rules(self) -> list[Rule]:
        """Read all rules."""
        rules: list[Rule] = []
        while True:
            self._skip("\n", ";")
            if self.tokens[self.at][0] == "end":
                return rules
            rules.append(self._rule())

    def _rule(self) -> Rule:
        if word := self._take("BEGIN", "END"):
            return Rule(kind=word, action=self._block())
        if self._peek("function", "func"):
            raise awk_mistake("functions of one's own are not simulated")
        if self._peek("{"):
            return Rule(kind="", action=self._block())
        pattern = self.expression()
        last = None
        if self._take(","):
            self._skip("\n")
            last = self.expression()
        action = self._block() if self._peek("{") else None
        return Rule(kind="range" if last else "", pattern=pattern, last=last, action=action)

    def _block(self) -> Node:
        self._need("{")
        found: list[Node] = []
        while True:
            self._skip("\n", ";")
            if self._take("}"):
                return Node("block", tuple(found))
            if self.tokens[self.at][0] == "end":
                raise awk_mistake("syntax error: `}' expected at the end")
            found.append(self.statement())

    def _body(self) -> Node:
        self._skip("\n")
        if self._take(";"):
            return Node("block")
        return self.statement()

    def statement(self) -> Node:
        """Read one statement."""
        self.depth += 1
        if self.depth > EXPRESSION_NESTING:
            raise awk_mistake(f"statements are nested more than {EXPRESSION_NESTING} deep")
        try:
            if self._peek("{"):
                return self._block()
            word = self._take(*_WORDS) if self.tokens[self.at][0] == "word" else ""
            if word:
                return self._worded(word)
            return self._ended(Node("expression", (self.expression(),)))
        finally:
            self.depth -= 1

    def _ended(self, node: Node) -> Node:
        if not self._peek("}", "") and not self._take(";", "\n"):
            raise awk_mistake(f"syntax error at `{self.tokens[self.at][1]}'")
        return node

    def _worded(self, word: str) -> Node:
        match word:
            case "if":
                self._need("(")
                condition = self.expression()
                self._need(")")
                body = self._body()
                mark = self.at
                self._skip("\n", ";")
                if self._take("else"):
                    return Node("if", (condition, body, self._body()))
                self.at = mark
                return Node("if", (condition, body, None))
            case "while":
                self._need("(")
                condition = self.expression()
                self._need(")")
                return Node("while", (condition, self._body()))
            case "do":
                body = self._body()
                self._skip("\n", ";")
                self._need("while")
                self._need("(")
                condition = self.expression()
                self._need(")")
                return self._ended(Node("do", (body, condition)))
            case "for":
                return self._for()
            case "print" | "printf":
                return self._print(word)
            case "break" | "continue" | "next":
                return self._ended(Node(word))
            case "exit":
                value = None if self._peek(";", "\n", "}", "") else self.expression()
                return self._ended(Node("exit", (value,)))
            case "delete":
                name = self._name()
                key = self._subscript() if self._peek("[") else None
                return self._ended(Node("delete", (name, key)))
        raise awk_mistake(f"`{word}' is not simulated")

    def _for(self) -> Node:
        self._need("(")
        kinds = [text for _, text in self.tokens[self.at : self.at + 4]]
        if len(kinds) == 4 and kinds[1] == "in" and kinds[3] == ")":  # noqa: PLR2004 - k in a )
            name = self._name()
            self._need("in")
            array = self._name()
            self._need(")")
            return Node("each", (name, array, self._body()))
        first = None if self._peek(";") else self.expression()
        self._need(";")
        condition = None if self._peek(";") else self.expression()
        self._need(";")
        step = None if self._peek(")") else self.expression()
        self._need(")")
        return Node("for", (first, condition, step, self._body()))

    def _print(self, word: str) -> Node:
        parts: list[Node] = []
        if not self._peek(";", "\n", "}", "", ">", "|"):
            grouped = self._grouped()
            parts = list(grouped) if grouped is not None else self._list(no_greater=True)
        if self._peek(">", "|"):
            told = f"`{word}' into files and commands is not simulated; redirect awk itself"
            raise awk_mistake(told)
        return self._ended(Node(word, tuple(parts)))

    def _grouped(self) -> tuple[Node, ...] | None:
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

    def _list(self, *, no_greater: bool) -> list[Node]:
        found = [self.expression(no_greater=no_greater)]
        while self._take(","):
            self._skip("\n")
            found.append(self.expression(no_greater=no_greater))
        return found

    def _name(self) -> str:
        kind, text = self.tokens[self.at]
        if kind != "name":
            raise awk_mistake(f"syntax error: a name expected at `{text}'")
        self.at += 1
        return text

    def _subscript(self) -> Node:
        self._need("[")
        keys = self._list(no_greater=False)
        self._need("]")
        return Node("keys", tuple(keys)) if keys[1:] else keys[0]

    # Expressions, loosest first.

    def expression(self, *, no_greater: bool = False) -> Node:
        """Read an expression."""
        self.depth += 1
        if self.depth > EXPRESSION_NESTING:
            raise awk_mistake(f"expressions are nested more than {EXPRESSION_NESTING} deep")
        left = self._choice(no_greater=no_greater)
        if left.kind in ("name", "element", "field") and self._peek(
            "=", "+=", "-=", "*=", "/=", "%=", "^="
        ):
            sign = self._take("=", "+=", "-=", "*=", "/=", "%=", "^=")
            self._skip("\n")
            right = self.expression(no_greater=no_greater)
            left = Node("assign", (left, sign[:-1], right))
        self.depth -= 1
        return left

    def _choice(self, *, no_greater: bool) -> Node:
        condition = self._or(no_greater=no_greater)
        if not self._take("?"):
            return condition
        self._skip("\n")
        first = self.expression(no_greater=no_greater)
        self._skip("\n")
        self._need(":")
        self._skip("\n")
        return Node("choice", (condition, first, self.expression(no_greater=no_greater)))

    def _or(self, *, no_greater: bool) -> Node:
        left = self._and(no_greater=no_greater)
        while self._take("||"):
            self._skip("\n")
            left = Node("or", (left, self._and(no_greater=no_greater)))
        return left

    def _and(self, *, no_greater: bool) -> Node:
        left = self._in(no_greater=no_greater)
        while self._take("&&"):
            self._skip("\n")
            left = Node("and", (left, self._in(no_greater=no_greater)))
        return left

    def _in(self, *, no_greater: bool) -> Node:
        left = self._matched(no_greater=no_greater)
        while self._take("in"):
            left = Node("in", (left, self._name()))
        return left

    def _matched(self, *, no_greater: bool) -> Node:
        left = self._compared(no_greater=no_greater)
        while sign := self._take("~", "!~"):
            left = Node("match", (left, sign == "!~", self._compared(no_greater=no_greater)))
        return left

    def _compared(self, *, no_greater: bool) -> Node:
        left = self._joined()
        signs = tuple(sign for sign in _COMPARED if sign != ">" or not no_greater)
        if sign := self._take(*signs):
            return Node("compare", (sign, left, self._joined()))
        return left

    def _joined(self) -> Node:
        left = self._sum()
        while self._operand_ahead():
            left = Node("join", (left, self._sum()))
        return left

    def _operand_ahead(self) -> bool:
        kind, text = self.tokens[self.at]
        if kind in ("number", "text", "name", "call", "regular"):
            return True
        return kind == "sign" and text in ("(", "$", "!", "-", "+", "++", "--") and text != "!"

    def _sum(self) -> Node:
        left = self._product()
        while sign := self._take("+", "-"):
            left = Node("binary", (sign, left, self._product()))
        return left

    def _product(self) -> Node:
        left = self._unary()
        while sign := self._take("*", "/", "%"):
            left = Node("binary", (sign, left, self._unary()))
        return left

    def _unary(self) -> Node:
        if sign := self._take("!", "-", "+"):
            self.depth += 1
            if self.depth > EXPRESSION_NESTING:
                raise awk_mistake(f"expressions are nested more than {EXPRESSION_NESTING} deep")
            inner = self._unary()
            self.depth -= 1
            return Node("unary", (sign, inner))
        return self._power()

    def _power(self) -> Node:
        base = self._stepped()
        if self._take("^"):
            return Node("binary", ("^", base, self._unary()))
        return base

    def _stepped(self) -> Node:
        if sign := self._take("++", "--"):
            return Node("before", (sign, self._primary()))
        found = self._primary()
        if found.kind in ("name", "element", "field") and (sign := self._take("++", "--")):
            return Node("after", (sign, found))
        return found

    def _primary(self) -> Node:
        kind, text = self.tokens[self.at]
        self.at += 1
        match kind:
            case "number":
                return Node("number", (float(text),))
            case "text":
                return Node("text", (formatted(text[1:-1].replace("\\/", "/")),))
            case "regular":
                return Node("regular", (text,))
            case "name":
                if self._peek("["):
                    return Node("element", (text, self._subscript()))
                return Node("call", (text, ())) if text == "length" else Node("name", (text,))
            case "call":
                return self._call(text)
        if text == "$":
            if self._peek("++", "--"):
                return Node("field", (self._stepped(),))
            return Node("field", (self._primary(),))
        if text == "(":
            found = self._list(no_greater=False)
            self._need(")")
            if found[1:]:
                return Node("keys", tuple(found))
            return Node("group", (found[0],))
        if text in ("-", "+", "!"):
            self.at -= 1
            return self._unary()
        if text == "getline":
            raise awk_mistake("`getline' is not simulated")
        raise awk_mistake(f"syntax error at `{text or 'the end'}'")

    def _call(self, name: str) -> Node:
        if name not in _FUNCTIONS:
            raise awk_mistake(f"the function `{name}' is not simulated")
        self._need("(")
        arguments: list[Node] = []
        if not self._peek(")"):
            arguments = self._list(no_greater=False)
        self._need(")")
        least, most = _FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            told = f"`{name}' has {len(arguments)} arguments, which are too few or too many"
            raise awk_mistake(told)
        return Node("call", (name, tuple(arguments)))
