"""Cut a Lua script into tokens, of all versions from 5.1 to 5.4."""

import re
from collections.abc import Iterator
from typing import Final

import attrs

_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--\[(?P<ceq>=*)\[.*?\](?P=ceq)\]|--(?!\[=*\[)[^\n]*|--[^\n]*)
  | (?P<long>\[(?P<eq>=*)\[.*?\](?P=eq)\])
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<number>0[xX][0-9a-fA-F.]+(?:[pP][-+]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign>\.\.\.|\.\.|==|~=|<=|>=|::|//|<<|>>|.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\(z\s*|\d{1,3}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}

KEYWORDS: Final = frozenset(
    "and break do else elseif end false for function goto if in local nil not or repeat return "
    "then true until while".split()
)


@attrs.frozen(slots=True)
class Token:
    """A word of a script; `kind` is ``text``, ``number``, ``name``, ``keyword`` or ``sign``.

    `value` is what a text or a number stands for.
    """

    kind: str
    text: str
    line: int
    start: int
    end: int
    value: str | float | None = None


def tokens(script: str) -> tuple[Token, ...]:
    """Return the tokens of a script, without its comments and a first line that begins with #."""
    return tuple(_tokens(script))


def _tokens(script: str) -> Iterator[Token]:
    at, line = 0, 1
    if script.startswith("#"):
        at = script.find("\n") if "\n" in script else len(script)
    while at < len(script):
        found = _TOKEN.match(script, at)
        assert found is not None, at
        kind, text = found.lastgroup or "", found[0]
        kind = next(k for k in _KINDS if found[k] is not None)
        if kind not in ("space", "comment"):
            yield _token(kind, text, line, at, found.end())
        line += text.count("\n")
        at = found.end()


_KINDS: Final = ("space", "comment", "long", "text", "number", "name", "sign")


def _token(kind: str, text: str, line: int, start: int, end: int) -> Token:
    value: str | float | None = None
    if kind == "long":
        inner = text[text.index("[", 1) + 1 : -(text.index("[", 1) + 1)]
        kind, value = "text", inner.removeprefix("\n")
    elif kind == "text":
        value = _ESCAPE.sub(_unescaped, text[1:-1])
    elif kind == "number":
        value = _number(text)
    elif kind == "name" and text in KEYWORDS:
        kind = "keyword"
    return Token(kind, text, line, start, end, value)


def _unescaped(found: re.Match[str]) -> str:
    what = found[1]
    if what.startswith("z"):
        return ""
    if what.isdigit():
        return chr(min(int(what), 255))
    if len(what) == 3 and what.startswith("x"):  # noqa: PLR2004 - \xHH
        return chr(int(what[1:], 16))
    return _PLAIN.get(what, what)


def _number(text: str) -> float:
    try:
        return float(int(text, 16)) if text[:2].lower() == "0x" else float(text)
    except ValueError:
        return 0.0
