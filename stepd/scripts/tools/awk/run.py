"""Run an awk program: its statements, its expressions and its functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from simctl.limits import LOOP_TURNS, VALUE_CHARACTERS
from simctl.stepd.scripts.escapes import formatted
from simctl.stepd.scripts.printing import PrintMistake
from simctl.stepd.scripts.regular import Regular, RegularMistake, regular
from simctl.stepd.scripts.tools.awk.tree import Jump, Node, Rule, awk_mistake
from simctl.stepd.scripts.tools.awk.values import (
    Field,
    is_true,
    looks_like_number,
    number_of,
    text_of,
)
from simctl.stepd.scripts.tools.tool import Tool

_FORMAT = re.compile(
    r"%(?:%|([-+ 0#]*)(\*|\d{0,9})((?:\.(?:\*|\d{0,9}))?)([sdiouxXcfFeEgG])|.?)", re.DOTALL
)


class Run:
    """One run of a program."""

    def __init__(self, tool: Tool, rules: list[Rule], variables: dict[str, str]) -> None:
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
            "ENVIRON": {name: Field(text) for name, text in tool.env.items()}
        }
        for name, text in variables.items():
            self.values[name] = Field(formatted(text))
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
            raise awk_mistake("too much output")

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
                    self.put(self.line + text_of(self.values["ORS"]))
                else:
                    self.run(rule.action)
        except Jump as jump:
            if jump.kind != "next":
                raise

    def _fits(self, rule: Rule) -> bool:
        if rule.kind == "range":
            assert rule.pattern is not None
            assert rule.last is not None
            if not rule.active and not is_true(self.value(rule.pattern)):
                return False
            rule.active = not is_true(self.value(rule.last))
            return True
        return rule.pattern is None or is_true(self.value(rule.pattern))

    def set_line(self, line: str) -> None:
        """Become at a line."""
        self.line = line
        self.fields = self.split(line, text_of(self.values["FS"]))
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
            return regular(text, extended=True, escapes="*")
        except RegularMistake as mistake:
            raise awk_mistake(str(mistake)) from None

    def _rebuild(self) -> None:
        self.line = text_of(self.values["OFS"]).join(self.fields)

    def run(self, node: Node) -> None:
        """Run a statement."""
        _STATEMENTS[node.kind](self, *node.parts)

    def _count(self) -> None:
        self.turns += 1
        if self.turns > LOOP_TURNS:
            raise awk_mistake(f"its loops took more than {LOOP_TURNS} turns")

    def block(self, *statements: Node) -> None:
        """Run statements."""
        for statement in statements:
            self.run(statement)

    def expression(self, node: Node) -> None:
        """Compute, for what that does."""
        self.value(node)

    def choose(self, condition: Node, body: Node, other: Node | None) -> None:
        """Run one of two statements."""
        if is_true(self.value(condition)):
            self.run(body)
        elif other is not None:
            self.run(other)

    def _loop(self, goes_on: Callable[[], bool], body: Node, step: Callable[[], None]) -> None:
        while goes_on():
            self._count()
            try:
                self.run(body)
            except Jump as jump:
                if jump.kind == "break":
                    return
                if jump.kind != "continue":
                    raise
            step()

    def repeat(self, condition: Node, body: Node) -> None:
        """Run a statement while a condition holds."""
        self._loop(lambda: is_true(self.value(condition)), body, lambda: None)

    def repeat_first(self, body: Node, condition: Node) -> None:
        """Run a statement once, and on while a condition holds."""
        first = [True]

        def goes_on() -> bool:
            if first:
                first.clear()
                return True
            return is_true(self.value(condition))

        self._loop(goes_on, body, lambda: None)

    def count(
        self, first: Node | None, condition: Node | None, step: Node | None, body: Node
    ) -> None:
        """Run a counting loop."""
        if first is not None:
            self.value(first)
        self._loop(
            lambda: condition is None or is_true(self.value(condition)),
            body,
            lambda: None if step is None else self.expression(step),
        )

    def each(self, name: str, array: str, body: Node) -> None:
        """Run a statement for each key, in the order of their setting; awk leaves it open."""
        left = list(self.arrays.get(array, {}))
        left.reverse()

        def goes_on() -> bool:
            if not left:
                return False
            self.values[name] = Field(left.pop())
            return True

        self._loop(goes_on, body, lambda: None)

    def show(self, *nodes: Node) -> None:
        """Write values, or the line."""
        form = text_of(self.values["OFMT"])
        texts = [text_of(self.value(node), form) for node in nodes] if nodes else [self.line]
        self.put(text_of(self.values["OFS"]).join(texts) + text_of(self.values["ORS"]))

    def show_formatted(self, *nodes: Node) -> None:
        """Write as a format says."""
        self.put(self.formatted([self.value(node) for node in nodes]))

    def jump(self, kind: str) -> Callable[..., None]:
        """Make a statement that leaves."""
        raise Jump(kind)

    def leave(self, value: Node | None) -> None:
        """Leave the program."""
        raise Jump("exit", int(number_of(self.value(value))) if value is not None else -1)

    def forget(self, name: str, key: Node | None) -> None:
        """Forget an element, or all."""
        if key is None:
            self.arrays[name] = {}
        else:
            self.arrays.setdefault(name, {}).pop(self._key(key), None)

    # Values.

    def value(self, node: Node) -> Any:
        """Return the value of an expression: a text or a number."""
        return _VALUES[node.kind](self, *node.parts)

    def _key(self, node: Node) -> str:
        if node.kind == "keys":
            return text_of(self.values["SUBSEP"]).join(
                text_of(self.value(each)) for each in node.parts
            )
        return text_of(self.value(node))

    def named(self, name: str) -> Any:
        """Return a variable."""
        return self.values.get(name, Field(""))

    def element(self, name: str, key: Node) -> Any:
        """Return an element, which is there from then on."""
        return self.arrays.setdefault(name, {}).setdefault(self._key(key), Field(""))

    def field(self, place: Node) -> Any:
        """Return a field, or the line."""
        number = int(number_of(self.value(place)))
        if number < 0:
            raise awk_mistake(f"attempt to access field {number}")
        if number == 0:
            return Field(self.line)
        return Field(self.fields[number - 1]) if number <= len(self.fields) else Field("")

    def assign(self, target: Node, sign: str, node: Node) -> Any:
        """Give a variable, an element or a field a value."""
        value = self.value(node)
        if sign:
            value = self.compute(sign, number_of(self.value(target)), number_of(value))
        return self.store(target, value)

    def store(self, target: Node, value: Any) -> Any:
        """Put a value where it belongs."""
        if isinstance(value, str) and len(value) > VALUE_CHARACTERS:
            raise awk_mistake(f"a value of more than {VALUE_CHARACTERS} characters")
        if target.kind == "name":
            self._set(target.parts[0], value)
        elif target.kind == "element":
            self.arrays.setdefault(target.parts[0], {})[self._key(target.parts[1])] = value
        else:
            self._set_field(int(number_of(self.value(target.parts[0]))), text_of(value))
        return value

    def _set(self, name: str, value: Any) -> None:
        if name == "RS" and text_of(value) != "\n":
            raise awk_mistake("another RS than a line end is not simulated")
        self.values[name] = value
        if name == "NF":
            count = int(number_of(value))
            if not 0 <= count <= LOOP_TURNS:
                raise awk_mistake(f"NF set to {count}")
            self.fields = (self.fields + [""] * count)[:count]
            self._rebuild()

    def _set_field(self, place: int, text: str) -> None:
        if not 0 <= place <= LOOP_TURNS:
            raise awk_mistake(f"attempt to access field {place}")
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
            raise awk_mistake("division by zero attempted")
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
            return math.inf

    def binary(self, sign: str, left: Node, right: Node) -> float:
        """Compute one operator on two expressions."""
        return self.compute(sign, number_of(self.value(left)), number_of(self.value(right)))

    def unary(self, sign: str, node: Node) -> float:
        """Compute a sign or a negation."""
        value = self.value(node)
        if sign == "!":
            return float(not is_true(value))
        return -number_of(value) if sign == "-" else number_of(value)

    def step(self, sign: str, node: Node, *, before: bool) -> float:
        """Count up or down."""
        old = number_of(self.value(node))
        new = old + (1 if sign == "++" else -1)
        self.store(node, new)
        return new if before else old

    def compare(self, sign: str, left: Node, right: Node) -> float:
        """Compare: as numbers where both look like it, else as texts."""
        one, other = self.value(left), self.value(right)
        if looks_like_number(one) and looks_like_number(other):
            pair: tuple[Any, Any] = (number_of(one), number_of(other))
        else:
            pair = (text_of(one), text_of(other))
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

    def matches(self, left: Node, negated: bool, right: Node) -> float:
        """Match a regular expression."""
        text = text_of(self.value(left))
        expression = right.parts[0] if right.kind == "regular" else text_of(self.value(right))
        return float(self._search(expression, text) != negated)

    def _search(self, expression: str, text: str) -> bool:
        try:
            return self.regular(expression).matches(text)
        except RegularMistake as mistake:
            raise awk_mistake(str(mistake)) from None

    def joined(self, left: Node, right: Node) -> str:
        """Return two texts side by side."""
        text = text_of(self.value(left)) + text_of(self.value(right))
        if len(text) > VALUE_CHARACTERS:
            raise awk_mistake(f"a value of more than {VALUE_CHARACTERS} characters")
        return text

    def within(self, key: Node, name: str) -> float:
        """Return whether an array has a key."""
        return float(self._key(key) in self.arrays.get(name, {}))

    def formatted(self, values: list[Any]) -> str:
        """Return what a format makes of values."""
        form, left = text_of(values[0]), list(reversed(values[1:]))

        def directive(found: re.Match[str]) -> str:
            if found[0] == "%%":
                return "%"
            flags, width, precision, letter = found.groups()
            if not letter:
                raise PrintMistake(f"`{found[0]}': no directive that is simulated")
            if width == "*":
                width = str(int(number_of(left.pop() if left else 0.0)))
            if precision == ".*":
                precision = f".{int(number_of(left.pop() if left else 0.0))}"
            for size in (width, precision[1:]):
                if size and abs(int(size)) > VALUE_CHARACTERS:
                    raise PrintMistake(f"a text of more than {VALUE_CHARACTERS} characters")
            value = left.pop() if left else ""
            head = f"%{flags}{width}{precision}"
            if letter in "diouxX":
                number = int(number_of(value))
                return f"{head}{'d' if letter in 'iu' else letter}" % number
            if letter in "fFeEgG":
                return f"{head}{letter}" % number_of(value)
            if letter == "c":
                value = chr(int(value)) if isinstance(value, float) else text_of(value)[:1]
            return f"{head.replace('0', '', 1) if flags.startswith('0') else head}s" % text_of(
                value
            )

        try:
            return _FORMAT.sub(directive, form)
        except (ValueError, OverflowError, PrintMistake) as error:
            raise awk_mistake(f"printf: {error}") from None

    def call(self, name: str, arguments: tuple[Node, ...]) -> Any:
        """Call one of awk's own functions."""
        if name == "length":
            return self._length(arguments)
        if name == "split":
            return self._split(arguments)
        if name in ("sub", "gsub"):
            return self._substitute(name == "gsub", arguments)
        if name == "match":
            text = text_of(self.value(arguments[0]))
            found = self.regular(self._expression_of(arguments[1])).search(text)
            self.values["RSTART"] = float(found.start + 1 if found else 0)
            self.values["RLENGTH"] = float(found.end - found.start if found else -1)
            return self.values["RSTART"]
        values = [self.value(argument) for argument in arguments]
        match name:
            case "substr":
                return self._part(values)
            case "index":
                return float(text_of(values[0]).find(text_of(values[1])) + 1)
            case "sprintf":
                return self.formatted(values)
            case "toupper":
                return text_of(values[0]).upper()
            case "tolower":
                return text_of(values[0]).lower()
        return self._computed(name, number_of(values[0]))

    @staticmethod
    def _computed(name: str, number: float) -> float:
        try:
            match name:
                case "int":
                    return float(int(number))
                case "sqrt":
                    return math.sqrt(number) if number >= 0 else math.nan
                case "exp":
                    return math.exp(number)
                case "log":
                    return (
                        math.log(number) if number > 0 else -math.inf if number == 0 else math.nan
                    )
        except OverflowError:
            return math.inf
        raise awk_mistake(f"`{name}' is not simulated")

    def _length(self, arguments: tuple[Node, ...]) -> float:
        if not arguments:
            return float(len(self.line))
        node = arguments[0]
        if node.kind == "name" and node.parts[0] in self.arrays:
            return float(len(self.arrays[node.parts[0]]))
        return float(len(text_of(self.value(node))))

    @staticmethod
    def _part(values: list[Any]) -> str:
        text = text_of(values[0])
        first = round(number_of(values[1]))
        last = first + round(number_of(values[2])) if values[2:] else len(text) + 1
        return text[max(first, 1) - 1 : max(last - 1, 0)]

    def _split(self, arguments: tuple[Node, ...]) -> float:
        text = text_of(self.value(arguments[0]))
        if arguments[1].kind != "name":
            raise awk_mistake("split: an array is needed")
        separator = (
            self._expression_of(arguments[2]) if arguments[2:] else text_of(self.values["FS"])
        )
        pieces = self.split(text, separator)
        self.arrays[arguments[1].parts[0]] = {
            str(place): Field(piece) for place, piece in enumerate(pieces, start=1)
        }
        return float(len(pieces))

    def _expression_of(self, node: Node) -> str:
        return str(node.parts[0]) if node.kind == "regular" else text_of(self.value(node))

    def _substitute(self, all_of_them: bool, arguments: tuple[Node, ...]) -> float:
        expression = self.regular(self._expression_of(arguments[0]))
        new = text_of(self.value(arguments[1]))
        target = arguments[2] if arguments[2:] else Node("field", (Node("number", (0.0,)),))
        text = text_of(self.value(target))
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
    "block": Run.block,
    "expression": Run.expression,
    "if": Run.choose,
    "while": Run.repeat,
    "do": Run.repeat_first,
    "for": Run.count,
    "each": Run.each,
    "print": Run.show,
    "printf": Run.show_formatted,
    "break": lambda run: run.jump("break"),
    "continue": lambda run: run.jump("continue"),
    "next": lambda run: run.jump("next"),
    "exit": Run.leave,
    "delete": Run.forget,
}

_VALUES: dict[str, Callable[..., Any]] = {
    "number": lambda run, number: number,
    "text": lambda run, text: text,
    "regular": lambda run, text: float(run._search(text, run.line)),
    "name": Run.named,
    "element": Run.element,
    "field": Run.field,
    "group": lambda run, node: run.value(node),
    "keys": lambda run, *nodes: run._key(Node("keys", nodes)),
    "assign": Run.assign,
    "choice": lambda run, condition, one, other: run.value(
        one if is_true(run.value(condition)) else other
    ),
    "or": lambda run, one, other: float(is_true(run.value(one)) or is_true(run.value(other))),
    "and": lambda run, one, other: float(is_true(run.value(one)) and is_true(run.value(other))),
    "in": Run.within,
    "match": Run.matches,
    "compare": Run.compare,
    "join": Run.joined,
    "binary": Run.binary,
    "unary": Run.unary,
    "before": lambda run, sign, node: run.step(sign, node, before=True),
    "after": lambda run, sign, node: run.step(sign, node, before=False),
    "call": Run.call,
}
