"""The texts that ``echo``, ``printf`` and ``set -x`` write."""

from __future__ import annotations

import re

_PLAIN = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
}
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{1,2}|0?[0-7]{1,3}|.)", re.DOTALL)
_DIRECTIVE = re.compile(r"%(?:%|([-+ 0#]*)(\d{0,4})((?:\.\d{0,4})?)([sbcdiuoxX]))")
_PLAIN_WORD = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_BASE = {"0x": 16, "0X": 16}


class PrintMistake(ValueError):
    """Say why a format cannot be followed."""


def echo_text(arguments: tuple[str, ...]) -> str:
    """Return what ``echo`` writes; it knows -n, -e and -E, also as one word."""
    ends, escapes = True, False
    rest = list(arguments)
    while rest and re.fullmatch("-[neE]+", rest[0]):
        letters = rest.pop(0)[1:]
        ends = ends and "n" not in letters
        for letter in letters.replace("n", ""):
            escapes = letter == "e"
    text = " ".join(rest) + "\n" * ends
    return unescape(text)[0] if escapes else text


def unescape(text: str) -> tuple[str, bool]:
    r"""Replace ``\n`` and its kin; what follows ``\c`` is cut off, which the second value says."""
    kept: list[str] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        kept.append(text[at : match.start()])
        at = match.end()
        code = match[0][1:]
        if code == "c":
            return "".join(kept), True
        kept.append(_unescaped(code))
    return "".join(kept) + text[at:], False


def _unescaped(code: str) -> str:
    """Return the character that a backslash and *code* stand for."""
    if code in _PLAIN:
        return _PLAIN[code]
    if code[0] == "x" and code[1:]:
        return chr(int(code[1:], 16))
    return chr(int(code, 8) & 255) if code[0] in "01234567" else "\\" + code


def printf_text(form: str, arguments: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return what ``printf`` writes, and which arguments should have been numbers.

    The format is used again while arguments are left; those that are missing are empty, or 0.

    Raises:
        PrintMistake: the format holds something else than %s %b %c %d %i %u %o %x %X %%.
    """
    left = list(arguments)
    written: list[str] = []
    refused: list[str] = []
    while True:
        before = len(left)
        text, stops = _one_pass(form, left, refused)
        written.append(text)
        if stops or not left or len(left) == before:
            return "".join(written), tuple(refused)


def _one_pass(form: str, left: list[str], refused: list[str]) -> tuple[str, bool]:
    """Follow the format once, taking arguments from *left*."""
    pieces: list[str] = []
    at = 0
    while at < len(form):
        percent = form.find("%", at)
        end = percent if percent >= 0 else len(form)
        text, stops = unescape(form[at:end])
        pieces.append(text)
        if stops or percent < 0:
            return "".join(pieces), stops
        match = _DIRECTIVE.match(form, percent)
        if not match:
            raise PrintMistake(f"{form[percent : percent + 2]}: no directive that is simulated")
        text, stops = _directive(match, left, refused)
        pieces.append(text)
        if stops:
            return "".join(pieces), True
        at = match.end()
    return "".join(pieces), False


def _directive(match: re.Match[str], left: list[str], refused: list[str]) -> tuple[str, bool]:
    """Return what one directive writes, and whether that is the end of all."""
    if match[0] == "%%":
        return "%", False
    flags, width, precision, letter = match.groups()
    argument = left.pop(0) if left else ""
    if letter in "diuoxX":
        value = _number(argument, refused)
        letter = "d" if letter in "iu" else letter
        return f"%{flags}{width}{precision}{letter}" % value, False
    stops = False
    if letter == "b":
        argument, stops = unescape(argument)
    elif letter == "c":
        argument = argument[:1]
    return f"%{flags.replace('0', '')}{width}{precision}s" % argument, stops


def _number(text: str, refused: list[str]) -> int:
    """Read an argument that should be a number: decimal, 0 octal, 0x, or a quoted character."""
    if text[:1] in ("'", '"'):
        return ord(text[1]) if text[1:] else 0
    match = re.fullmatch(r"[ \t]*([-+]?)(0[xX][0-9a-fA-F]{1,15}|0[0-7]{0,20}|\d{1,18})", text)
    if not match:
        refused.extend([text] if text else [])
        return 0
    digits = match[2]
    base = _BASE.get(digits[:2], 8 if digits.startswith("0") else 10)
    return int(match[1] + digits, base)


def quoted(word: str) -> str:
    """Quote *word* as ``set -x`` shows it."""
    if _PLAIN_WORD.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"
