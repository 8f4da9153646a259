"""Characters that are written with a backslash: in ``$'…'``, ``echo -e`` and ``printf``."""

from __future__ import annotations

import re

_PLAIN = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
}
_CODE = r"x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}"
_ECHO = re.compile(rf"\\(?:{_CODE}|0[0-7]{{0,3}}|.)", re.DOTALL)
_FORMAT = re.compile(rf"\\(?:{_CODE}|[0-7]{{1,3}}|.)", re.DOTALL)
_BOTH = re.compile(rf"\\(?:{_CODE}|0?[0-7]{{1,3}}|.)", re.DOTALL)
_ANSI = re.compile(rf"\\(?:{_CODE}|[0-7]{{1,3}}|c.|.)", re.DOTALL)
_LAST_ASCII = 0x7F
_LAST_CHARACTER = 0x10FFFF


def echoed(text: str) -> tuple[str, bool]:
    r"""Replace what ``echo -e`` knows; what follows ``\c`` is cut off, which the second says."""
    return _replaced(text, _ECHO, stops=True)


def formatted(text: str) -> str:
    """Replace what the format of ``printf`` knows."""
    return _replaced(text, _FORMAT, stops=False, quotes=True)[0]


def argument(text: str) -> tuple[str, bool]:
    r"""Replace what the ``%b`` of ``printf`` knows; as `echoed`, with ``\nnn`` besides."""
    return _replaced(text, _BOTH, stops=True, quotes=True)


def ansi_c(text: str) -> str:
    """Replace what ``$'…'`` knows; a NUL ends the text, as a C string."""
    return _replaced(text, _ANSI, stops=False, quotes=True, controls=True)[0].split("\0")[0]


def _replaced(
    text: str, escape: re.Pattern[str], *, stops: bool, quotes: bool = False, controls: bool = False
) -> tuple[str, bool]:
    kept: list[str] = []
    at = 0
    for match in escape.finditer(text):
        kept.append(text[at : match.start()])
        at = match.end()
        code = match[0][1:]
        if code == "c" and stops:
            return "".join(kept), True
        if quotes and code in ("'", '"', "?"):
            kept.append(code)
        elif controls and code[0] == "c" and code[1:]:
            kept.append(chr(ord(code[1]) & 0x1F))
        else:
            kept.append(_character(code))
    return "".join(kept) + text[at:], False


def _character(code: str) -> str:
    """Return what a backslash and *code* stand for: themselves, if they mean nothing."""
    if code in _PLAIN:
        return _PLAIN[code]
    if code[0] in "xuU" and code[1:]:
        number = int(code[1:], 16)
        if code[0] == "x" and number > _LAST_ASCII:
            return chr(0xDC00 + number)  # a byte that is no text of its own
        return chr(number) if number <= _LAST_CHARACTER else "\\" + code
    if code[0] in "01234567":
        number = int(code, 8) & 255
        return chr(number) if number <= _LAST_ASCII else chr(0xDC00 + number)
    return "\\" + code
