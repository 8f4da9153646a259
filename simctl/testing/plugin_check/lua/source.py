"""Read a Lua script: its blocks, and what of Slurm it uses."""

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, Final

import attrs

from simctl.testing.plugin_check.lua.tokens import tokens

MARK: Final = "simctl reached block"
_OPENS: Final = {"then": "if", "else": "else", "do": "do", "repeat": "repeat"}
_COMPARES: Final = frozenset({"==", "~=", "<", ">", "<=", ">="})


@attrs.frozen(kw_only=True)
class Block:
    """A branch of a script: the body of a function, a loop or an arm of an if."""

    number: int
    kind: str
    """``function``, ``if``, ``elseif``, ``else``, ``do``, ``repeat``."""

    head: int
    """The line on which what leads here stands."""

    line: int
    """The line on which it begins."""

    start: int
    """Where in the text it begins."""

    function: str
    """The function that it is in; empty for the main chunk."""


@attrs.frozen(kw_only=True)
class Function:
    """A function of a script; `name` is as it is written, empty for one without."""

    name: str
    parameters: tuple[str, ...]
    line: int
    first: int
    """The number of its first token."""

    last: int
    """The number of its `end`."""


@attrs.frozen(kw_only=True)
class Use:
    """``owner.field`` somewhere; `call` is whether it is called, `set` whether it is assigned."""

    owner: str
    field: str
    line: int
    at: int
    """The number of the field's token."""

    set: bool
    call: bool
    guarded: bool
    """Whether the script asks whether it is there."""

    function: str


@attrs.frozen(kw_only=True)
class Comparison:
    """A field compared with something that is written out; `sign` is as if the field came first."""

    use: Use
    sign: str
    other: str
    """As written: a literal, ``nil`` or ``slurm.NO_VAL``; empty for the field as a truth."""

    value: str | float | None


class Source:
    """A script, read once."""

    LET_PASS: ClassVar = "simctl-let-pass"
    """The name of a job that a marked slurm_job_submit lets pass at once."""

    def __init__(self, name: str, text: str, modules: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.text = text
        self.modules = modules or {}
        self.tokens = tokens(text)
        self.functions: list[Function] = []
        self.blocks: list[Block] = []
        self._read()
        self.uses = tuple(self._find_uses())
        self.constants = dict(self._find_constants())
        self.aliases = {name: use.field for name, use, _ in self._find_aliases()}
        self.alias_comparisons = tuple(self._compare_aliases())
        self.loose_comparisons = tuple(self._compare_aliases(loose=True))

    def function(self, name: str) -> Function | None:
        """Return the function of a name that counts: the last."""
        found = [each for each in self.functions if each.name == name]
        return found[-1] if found else None

    def line_of(self, name: str) -> int:
        """Return the line on which a function is defined; 0 if it is not."""
        found = self.function(name)
        return found.line if found is not None else 0

    def line_text(self, line: int) -> str:
        """Return a line of the script; nothing where there is none."""
        lines = self.text.split("\n")
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def function_at(self, line: int) -> str:
        """Return the function that a line is in."""
        found = [at for at, each in enumerate(self.tokens) if each.line == line]
        around = self.around(found[0]) if found else None
        return around.name if around is not None else ""

    def line_with(self, word: str) -> int:
        """Return the first line on which a name stands; 0 if it does not."""
        return next((each.line for each in self.tokens if each.text == word), 0)

    def around(self, at: int) -> Function | None:
        """Return the innermost function that a token is in."""
        found = [each for each in self.functions if each.first <= at <= each.last]
        return max(found, key=lambda each: each.first, default=None)

    def marked(self, entries: Collection[str] = (), head: str = "") -> str:
        """Return the script with a mark in each block, which tells the log once a call.

        No line is moved by it. *entries* are the functions that are called from outside; *head* is
        put before the script.
        """
        marks = (
            # Of a source of its own, so that no line of the script is blamed for what it does.
            "(loadstring or load)([[local log, seen = slurm.log_debug4, {} "
            "function simctl_mark(n, anew) if anew then seen = {} end "
            f"if not seen[n] then seen[n] = true log('{MARK} ' .. n) end end]], '=simctl')() "
        )
        pieces, at = [], 0
        if self.text.startswith("#"):
            at = self.text.find("\n") if "\n" in self.text else len(self.text)
            pieces.append("--" + self.text[:at] + ("" if at < len(self.text) else "\n"))
            if at < len(self.text):
                at += 1
                pieces.append("\n")
        pieces.append(marks + head)
        for block in sorted(self.blocks, key=lambda each: each.start):
            pieces.append(self.text[at : block.start])
            is_entry = block.kind == "function" and block.function in entries
            pieces.append(self._passing(block.function) if is_entry else "")
            pieces.append(f" simctl_mark({block.number}{', true' if is_entry else ''}); ")
            at = block.start
        pieces.append(self.text[at:])
        return "".join(pieces)

    def _passing(self, name: str) -> str:
        found = self.function(name)
        if name != "slurm_job_submit" or found is None or not found.parameters:
            return ""
        return f" if {found.parameters[0]}.name == '{self.LET_PASS}' then return 0 end"

    def _read(self) -> None:
        """Find functions and blocks; a script that does not parse yields what comes before."""
        open_: list[tuple[str, int, str, tuple[str, ...], int]] = []
        names: list[str] = []
        words = self.tokens
        at = 0
        heads: list[int] = []
        while at < len(words):
            word = words[at]
            text = word.text if word.kind == "keyword" else ""
            if text == "function":
                name, parameters, at = self._signature(at)
                names.append(name)
                open_.append(("function", word.line, name, parameters, at))
                self._open_block("function", word.line, at, name)
            elif text in ("if", "while", "for"):
                if text == "if":
                    open_.append(("if", word.line, "", (), at))
                heads.append(word.line)
            elif text == "elseif":
                heads.append(word.line)
            elif text == "then":
                self._open_block("if", heads.pop() if heads else word.line, at, _name(names))
            elif text == "else":
                self._open_block("else", word.line, at, _name(names))
            elif text == "do":
                open_.append(("do", word.line, "", (), at))
                self._open_block("do", heads.pop() if heads else word.line, at, _name(names))
            elif text == "repeat":
                open_.append(("repeat", word.line, "", (), at))
                self._open_block("repeat", word.line, at, _name(names))
            elif text in ("end", "until") and open_:
                kind, line, name, parameters, first = open_.pop()
                if kind == "function":
                    names.pop()
                    self.functions.append(
                        Function(name=name, parameters=parameters, line=line, first=first, last=at)
                    )
            at += 1

    def _open_block(self, kind: str, head: int, at: int, function: str) -> None:
        after = self.tokens[at + 1].line if at + 1 < len(self.tokens) else self.tokens[at].line
        self.blocks.append(
            Block(
                number=len(self.blocks) + 1,
                kind=kind,
                head=head,
                line=after,
                start=self.tokens[at].end,
                function=function,
            )
        )

    def _signature(self, at: int) -> tuple[str, tuple[str, ...], int]:
        """Return name and parameters of a function, and the number of the closing bracket."""
        words, name = self.tokens, ""
        before = words[at - 1] if at else None
        if before is not None and before.text == "=" and words[at - 2].kind == "name":
            name = words[at - 2].text
        at += 1
        while at < len(words) and words[at].text != "(":
            name = (name if words[at].text in ".:" or name[-1:] in (".", ":") else "") + words[
                at
            ].text
            at += 1
        parameters = []
        while at < len(words) and words[at].text != ")":
            if words[at].kind == "name" or words[at].text == "...":
                parameters.append(words[at].text)
            at += 1
        return name, tuple(parameters), min(at, len(words) - 1)

    def _find_uses(self) -> Iterator[Use]:
        words = self.tokens
        for at in range(1, len(words) - 1):
            owner = words[at - 1]
            if owner.kind != "name" or (at > 1 and words[at - 2].text in (".", ":")):
                continue
            if words[at].text == "." and words[at + 1].kind == "name":
                field, last = words[at + 1], at + 1
                name = field.text
            elif (
                words[at].text == "["
                and words[at + 1].kind == "text"
                and at + 2 < len(words)
                and words[at + 2].text == "]"
            ):
                field, last = words[at + 1], at + 2
                name = str(field.value)
            else:
                continue
            after = words[last + 1].text if last + 1 < len(words) else ""
            second = words[last + 2].text if last + 2 < len(words) else ""
            before = words[at - 2].text if at > 1 else ""
            around = self.around(at)
            yield Use(
                owner=owner.text,
                field=name,
                line=field.line,
                at=last,
                set=after == "=" or (before == "function" and after == "("),
                call=after in ("(", "{")
                or (last + 1 < len(words) and words[last + 1].kind == "text"),
                guarded=_is_guarded(before, after, second),
                function=around.name if around is not None else "",
            )

    def _find_constants(self) -> Iterator[tuple[str, str | float]]:
        """Yield what names stand for that are set to a literal once."""
        words, found = self.tokens, dict[str, list[str | float]]()
        for at in range(len(words) - 2):
            if (
                words[at].kind == "name"
                and words[at + 1].text == "="
                and words[at + 2].value is not None
                and (at == 0 or words[at - 1].text not in (".", ":"))
            ):
                value = words[at + 2].value
                assert value is not None
                found.setdefault(words[at].text, []).append(value)
        for name, values in found.items():
            if len(values) == 1:
                yield name, values[0]

    def _find_aliases(self) -> Iterator[tuple[str, Use, int]]:
        """Yield names that are set to a field alone, with the field and the number of the token."""
        words = self.tokens
        for use in self.uses:
            first = use.at - (3 if words[use.at].text == "]" else 2)
            after = words[use.at + 1] if use.at + 1 < len(words) else None
            alone = after is None or after.text == "or" or after.kind in ("name", "keyword")
            if alone and first > 1 and words[first - 1].text == "=":
                yield words[first - 2].text, use, first - 2

    def _compare_aliases(self, *, loose: bool = False) -> Iterator[Comparison]:
        """Yield comparisons of names that still stand for a field alone, as of the field.

        With *loose*, of those as well that have been set to something else since.
        """
        words = self.tokens
        stand = {at: use for _, use, at in self._find_aliases() if words[use.at + 1].text != "or"}
        names = {words[at].text for at in stand}
        of: dict[tuple[str, Function | None], Use | None] = {}
        for at in range(1, len(words) - 2):
            word, before, after = words[at], words[at - 1].text, words[at + 1].text
            if word.kind != "name" or word.text not in names or before in (".", ":"):
                continue
            key = (word.text, self.around(at))
            if after == "=" or (after == "," and before in ("local", "for", ",")):
                if at in stand or not loose:
                    of[key] = stand.get(at)
                continue
            use = of.get(key)
            if use is not None:
                here = attrs.evolve(use, line=word.line, at=at)
                yield from self._compared_at(here, at, at)

    def searched(self) -> Iterator[tuple[str, str, int]]:
        """Yield fields whose aliases are searched for a text, the text, and the line."""
        words = self.tokens
        for at in range(1, len(words) - 3):
            word = words[at]
            if word.kind != "name" or word.text not in self.aliases or words[at - 1].text == ".":
                continue
            within = words[at - 1].text == "(" and words[at + 1].text == ","
            of_itself = words[at + 1].text == ":" and words[at + 3].text == "("
            text = words[at + 2] if within else words[min(at + 4, len(words) - 1)]
            if (within or of_itself) and isinstance(text.value, str):
                yield self.aliases[word.text], text.value, word.line

    def of_aliases(self) -> Iterator[tuple[str, str | float, int]]:
        """Yield fields, what their aliases are compared with, and the line."""
        words = self.tokens
        for at in range(1, len(words) - 2):
            word = words[at]
            if word.kind != "name" or word.text not in self.aliases or words[at - 1].text == ".":
                continue
            if words[at + 1].text in _COMPARES:
                value = words[at + 2].value
                if value is None and words[at + 2].kind == "name":
                    value = self.constants.get(words[at + 2].text)
                if value is not None:
                    yield self.aliases[word.text], value, word.line

    def comparisons(self, use: Use) -> Iterator[Comparison]:
        """Yield what a field is compared with, if it is written out beside it."""
        at = use.at
        yield from self._compared_at(use, at - (3 if self.tokens[at].text == "]" else 2), at)

    def _compared_at(self, use: Use, first: int, at: int) -> Iterator[Comparison]:
        """Yield what the words from *first* to *at* are compared with, as a use of a field."""
        words = self.tokens
        after = words[at + 1].text if at + 1 < len(words) else ""
        if after in _COMPARES and at + 2 < len(words):
            yield from self._other(use, after, at + 2)
        elif first >= 1 and words[first - 1].text in _COMPARES and after not in ("..", "(", "."):
            yield from self._other_before(use, _turned(words[first - 1].text), first - 2)
        elif after in ("and", "or", "then", ")"):
            before = words[first - 1].text if first else ""
            asks = before in ("if", "elseif", "and", "or", "not", "while")
            asks = asks or (before in ("(", "=", "return") and after == "and")
            if before == "not" or (asks and after != ")"):
                yield Comparison(use=use, sign="", other="", value=None)

    def _other(self, use: Use, sign: str, at: int) -> Iterator[Comparison]:
        words = self.tokens
        word = words[at]
        if word.value is not None:
            yield Comparison(use=use, sign=sign, other=word.text, value=word.value)
        elif word.text in ("nil", "true", "false"):
            yield Comparison(use=use, sign=sign, other=word.text, value=None)
        elif word.text == "slurm" and at + 2 < len(words) and words[at + 1].text == ".":
            yield Comparison(use=use, sign=sign, other=f"slurm.{words[at + 2].text}", value=None)
        elif word.kind == "name" and word.text in self.constants:
            following = words[at + 1].text if at + 1 < len(words) else ""
            if following not in (".", "[", "(", ":"):
                value = self.constants[word.text]
                yield Comparison(use=use, sign=sign, other=word.text, value=value)

    def _other_before(self, use: Use, sign: str, at: int) -> Iterator[Comparison]:
        words = self.tokens
        if at < 0:
            return
        word = words[at]
        if word.value is not None:
            yield Comparison(use=use, sign=sign, other=word.text, value=word.value)
        elif word.text in ("nil", "true", "false"):
            yield Comparison(use=use, sign=sign, other=word.text, value=None)
        elif at >= 2 and words[at - 1].text == "." and words[at - 2].text == "slurm":  # noqa: PLR2004
            yield Comparison(use=use, sign=sign, other=f"slurm.{word.text}", value=None)
        elif word.kind == "name" and word.text in self.constants:
            value = self.constants[word.text]
            yield Comparison(use=use, sign=sign, other=word.text, value=value)


def _name(names: list[str]) -> str:
    return next((each for each in reversed(names) if each), "")


def _turned(sign: str) -> str:
    return {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign)


def _is_guarded(before: str, after: str, second: str) -> bool:
    """Return whether a script asks if a field is there, or has something in its stead."""
    if after in ("==", "~=") and second == "nil":
        return True
    return after in ("or", "and", "then") and before in (
        "if",
        "elseif",
        "and",
        "or",
        "not",
        "=",
        "(",
        "return",
        ",",
    )
