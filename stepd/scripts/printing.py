"""The texts that ``echo``, ``printf`` and ``set -x`` write, and words quoted to be read again."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from simctl.limits import VALUE_CHARACTERS
from simctl.stepd.scripts import escapes

_DIRECTIVE = re.compile(
    r"%(?:%|([-+ 0#']*)(\*|\d{0,9})((?:\.(?:\*|-?\d{0,9}))?)"
    r"(?:[hlLjzt]*)(\([^)]*\)T|[sbqcdiuoxXeEfFgG]))"
)
_NUMBER = re.compile(r"[ \t\n]*([-+]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)", re.ASCII)
_REAL = re.compile(r"[ \t\n]*[-+]?(\d{1,300}\.?\d{0,300}|\.\d{1,300})([eE][-+]?\d{1,4})?", re.ASCII)
_HEXADECIMAL = re.compile(r"[ \t\n]*[-+]?0[xX][0-9a-fA-F]{1,16}", re.ASCII)
_BASE = {"0x": 16, "0X": 16}
_UNSIGNED = 1 << 64
_MOST_DIGITS = 100
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
_UNQUOTED = re.compile(r"([^\w@%+:./=~#-]|(?<=[:=])~|^[~#])", re.ASCII)
_LOOKED_AT = re.compile(r"[\s'\"\\|&;()<>!{}*\[?\]^$`\x00-\x1f\x7f]|^[~#]|[=:]~")
_META = re.compile(r"[\s'\"\\|&;()<>!{}*\[?\]^$`]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NAMED = {
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
    "\x1b": "\\E",
}


class PrintMistake(ValueError):
    """Say why a format cannot be followed."""


def echo_text(arguments: tuple[str, ...]) -> str:
    """Return what ``echo`` writes; it knows -n, -e and -E, also as one word."""
    ends, reads = True, False
    rest = list(arguments)
    while rest and re.fullmatch("-[neE]+", rest[0]):
        letters = rest.pop(0)[1:]
        ends = ends and "n" not in letters
        for letter in letters.replace("n", ""):
            reads = letter == "e"
    text = " ".join(rest)
    if not reads:
        return text + "\n" * ends
    text, stops = escapes.echoed(text)
    return text + "\n" * (ends and not stops)


def printf_text(
    form: str, arguments: tuple[str, ...], now_s: int = 0
) -> tuple[str, tuple[str, ...]]:
    """Return what ``printf`` writes, and which arguments should have been numbers.

    The format is used again while arguments are left; those that are missing are empty, or 0.

    Raises:
        PrintMistake: the format holds a directive that there is not, or the text is too long.
    """
    left = list(reversed(arguments))
    written: list[str] = []
    refused: list[str] = []
    while True:
        before = len(left)
        stops = _Pass(form=form, left=left, refused=refused, written=written, now_s=now_s).follow()
        if sum(map(len, written)) > VALUE_CHARACTERS:
            raise PrintMistake(f"a text of more than {VALUE_CHARACTERS} characters")
        if stops or not left or len(left) == before:
            return "".join(written), tuple(refused)


class _Pass:
    """One use of a format."""

    def __init__(
        self, *, form: str, left: list[str], refused: list[str], written: list[str], now_s: int
    ) -> None:
        self.form = form
        self.left = left
        self.refused = refused
        self.written = written
        self.now_s = now_s

    def follow(self) -> bool:
        r"""Write what the format says; tell whether a ``\c`` ends all."""
        at = 0
        while at < len(self.form):
            percent = self.form.find("%", at)
            end = percent if percent >= 0 else len(self.form)
            self.written.append(escapes.formatted(self.form[at:end]))
            if percent < 0:
                break
            match = _DIRECTIVE.match(self.form, percent)
            if not match:
                shown = self.form[percent : percent + 2]
                raise PrintMistake(f"`{shown}': no directive that is simulated")
            if self._directive(match):
                return True
            at = match.end()
        return False

    def _next(self) -> str:
        return self.left.pop() if self.left else ""

    def _measure(self, text: str) -> str:
        """Return a width or a precision, which may be an argument."""
        if "*" in text:
            text = text.replace("*", str(self._number(self._next())))
        if len(text.strip(".-")) > len(str(VALUE_CHARACTERS)):
            raise PrintMistake(f"a text of more than {VALUE_CHARACTERS} characters")
        return "" if text.startswith(".-") else text

    def _directive(self, match: re.Match[str]) -> bool:
        """Write what one directive says; tell whether that is the end of all."""
        if match[0] == "%%":
            self.written.append("%")
            return False
        flags, letter = match[1].replace("'", ""), match[4]
        width, precision = self._measure(match[2]), self._measure(match[3])
        if width.startswith("-"):
            flags, width = flags + "-", width[1:]
        form = f"%{flags}{width}{precision}"
        self._check(width, precision)
        stops = False
        if letter in "diuoxX":
            self.written.append(self._integer(form, letter))
        elif letter in "eEfFgG":
            self.written.append(f"{form}{letter}" % self._real(self._next()))
        else:
            text, stops = self._text(letter)
            form = f"%{flags.replace('0', '').replace('+', '').replace(' ', '')}{width}{precision}"
            self.written.append(f"{form.replace('#', '')}s" % text)
        return stops

    @staticmethod
    def _check(width: str, precision: str) -> None:
        for text in (width, precision.removeprefix(".")):
            if text and int(text) > VALUE_CHARACTERS:
                raise PrintMistake(f"a text of more than {VALUE_CHARACTERS} characters")

    def _text(self, letter: str) -> tuple[str, bool]:
        if letter.endswith("T"):
            return self._time(letter[1:-2]), False
        argument = self._next()
        if letter == "b":
            return escapes.argument(argument)
        if letter == "c":
            return argument[:1] or "\0", False
        return (backslashed(argument) if letter == "q" else argument), False

    def _time(self, form: str) -> str:
        argument = self._next()
        moment = self.now_s if argument in ("", "-1", "-2") else self._number(argument)
        if not _FIRST_S <= moment <= _LAST_S:
            raise PrintMistake(f"{argument}: no moment of the years 1 to 9999")
        return datetime.fromtimestamp(moment, UTC).strftime(form or "%H:%M:%S")

    def _integer(self, form: str, letter: str) -> str:
        value = self._number(self._next())
        if letter in "uoxX":
            value = value % _UNSIGNED if abs(value) < _UNSIGNED else _UNSIGNED - 1
        else:
            value = min(max(value, -_UNSIGNED // 2), _UNSIGNED // 2 - 1)
        letter = "d" if letter in "iu" else letter
        if letter == "o" and "#" in form:
            form = form.replace("#", "")
            return f"{form}s" % f"0{value:o}"
        if "." in form:
            form = form.replace("0", "", 1) if re.match(r"%[-+ #]*0", form) else form
        return f"{form}{letter}" % value

    def _number(self, text: str) -> int:
        """Read an argument that should be a number: decimal, 0 octal, 0x, or a character."""
        if text[:1] in ("'", '"'):
            return ord(text[1]) if text[1:] else 0
        match = _NUMBER.match(text)
        if not match:
            self.refused.extend([text] if text else [])
            return 0
        if match.end() < len(text):
            self.refused.append(text)
        digits = match[2][:_MOST_DIGITS]
        base = _BASE.get(digits[:2], 8 if digits.startswith("0") else 10)
        return int(match[1] + digits, base)

    def _real(self, text: str) -> float:
        if text[:1] in ("'", '"'):
            return float(self._number(text))
        match = _HEXADECIMAL.fullmatch(text) or _REAL.match(text)
        if not match or match.end() < len(text):
            self.refused.extend([text] if text else [])
        if match and match.re is _HEXADECIMAL:
            return float(int(text, 16))
        return float(match[0]) if match else 0.0


def single_quoted(word: str) -> str:
    """Quote *word* whatever it is."""
    return "\\'" if word == "'" else "'" + word.replace("'", "'\\''") + "'"


def quoted(word: str) -> str:
    """Quote *word* as ``set -x`` shows it."""
    if word and not _LOOKED_AT.search(word):
        return word
    if _CONTROL.search(word) and not _META.search(word):
        return _ansi(word)
    return single_quoted(word)


def quoted_for_reuse(word: str) -> str:
    """Quote *word* as ``${NAME@Q}`` does."""
    if _CONTROL.search(word):
        return _ansi(word)
    return single_quoted(word)


def backslashed(word: str) -> str:
    """Quote *word* as the ``%q`` of printf does."""
    if not word:
        return "''"
    if _CONTROL.search(word):
        return _ansi(word)
    return _UNQUOTED.sub(r"\\\1", word)


def double_quoted(word: str) -> str:
    """Quote *word* as ``declare -p`` does."""
    if _CONTROL.search(word):
        return _ansi(word)
    return '"' + re.sub(r'([$`"\\])', r"\\\1", word) + '"'


def quoted_key(key: str) -> str:
    """Quote the key of an array as ``declare -p`` does: only if it holds what a shell looks at."""
    return double_quoted(key) if key == "@" or _LOOKED_AT.search(key) else key


def _ansi(word: str) -> str:
    shown = word.replace("\\", "\\\\").replace("'", "\\'")
    return (
        "$'"
        + _CONTROL.sub(lambda found: _NAMED.get(found[0], f"\\{ord(found[0]):03o}"), shown)
        + "'"
    )
