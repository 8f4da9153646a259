"""What a tool is: it stands in for a program that scripts lean on, on simulated files alone.

A tool does exactly what the program does with the options that its `Spec` knows, and refuses all
others, when the script is checked where they are written out, and when it runs otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

import attrs

from simctl.limits import OUTPUT_CHARACTERS, TOOL_CHARACTERS
from simctl.stepd.scripts.host import CLOSED, Redirects, ShellHost, Stream

_LEAST_WRITTEN = 512
"""How many characters a shorter text counts for, so that short ones have an end as well."""

_NEGATIVE = re.compile(r"-\.?\d")


class ToolMistake(Exception):
    """Say why a tool cannot do what it is asked for; it then leaves with *status*."""

    def __init__(self, message: str, status: int = 1) -> None:
        """Say it."""
        super().__init__(message)
        self.status = status


@attrs.frozen(kw_only=True)
class Spec:
    """The options of a tool: letters without and with a value, and long names of letters.

    Letters of *only_long* stand for long names alone. A *numeric* one takes ``-5`` for ``-n 5``;
    with *negatives* that is an operand. Where options *stop* at the first operand, what is behind
    belongs to another command.
    """

    flags: str = ""
    valued: str = ""
    long: dict[str, str] = attrs.field(factory=dict)
    numeric: str = ""
    only_long: str = ""
    stops: bool = False
    negatives: bool = False
    status: int = 1


@attrs.frozen(kw_only=True)
class Options:
    """The options that were given, with their values, and what stands behind them."""

    given: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def __contains__(self, letter: str) -> bool:
        """Return whether an option was given."""
        return any(each == letter for each, _ in self.given)

    def get(self, letter: str, default: str = "") -> str:
        """Return the value that an option was given last."""
        return next((value for each, value in reversed(self.given) if each == letter), default)

    def all(self, letter: str) -> tuple[str, ...]:
        """Return all values that an option was given."""
        return tuple(value for each, value in self.given if each == letter)


def read_options(spec: Spec, name: str, words: Sequence[str]) -> Options:
    """Split the options of a tool from its operands.

    Raises:
        ToolMistake: One is not simulated, or lacks its value.
    """
    given: list[tuple[str, str]] = []
    operands: list[str] = []
    left = list(reversed(words))
    while left:
        word = left.pop()
        if word == "--":
            operands += reversed(left)
            break
        is_number = spec.negatives and _NEGATIVE.match(word)
        if word == "-" or not word.startswith("-") or is_number:
            operands.append(word)
            if spec.stops:
                operands += reversed(left)
                break
        elif word.startswith("--"):
            given.append(_long(spec, name, word, left))
        elif spec.numeric and word[1:].isdecimal():
            given.append((spec.numeric, word[1:]))
        else:
            given += _short(spec, name, word, left)
    return Options(given=tuple(given), operands=tuple(operands))


def _long(spec: Spec, name: str, word: str, left: list[str]) -> tuple[str, str]:
    long, equals, value = word[2:].partition("=")
    letter = spec.long.get(long, "")
    if not letter:
        raise ToolMistake(f"{name}: the option --{long} is not simulated", spec.status)
    if letter not in spec.valued:
        return letter, value
    if not equals:
        if not left:
            raise ToolMistake(f"{name}: option '--{long}' requires an argument", spec.status)
        value = left.pop()
    return letter, value


def _short(spec: Spec, name: str, word: str, left: list[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for place, letter in enumerate(word[1:], start=1):
        if letter in spec.only_long:
            raise ToolMistake(f"{name}: invalid option -- '{letter}'", spec.status)
        if letter in spec.valued:
            value = word[place + 1 :]
            if not value:
                if not left:
                    told = f"{name}: option requires an argument -- '{letter}'"
                    raise ToolMistake(told, spec.status)
                value = left.pop()
            found.append((letter, value))
            return found
        if letter not in spec.flags:
            raise ToolMistake(f"{name}: the option -{letter} is not simulated", spec.status)
        found.append((letter, ""))
    return found


_DESCRIPTOR = re.compile(r"/dev/(?:fd/(\d{1,3})|std(in|out|err))", re.ASCII)
_NAMED = {"in": 0, "out": 1, "err": 2}


@attrs.define
class Tool:
    """One run of a tool."""

    host: ShellHost
    argv: tuple[str, ...]
    env: dict[str, str]
    redirects: Redirects
    written: int = attrs.field(init=False, default=0)

    @property
    def name(self) -> str:
        """The tool's name, as errors begin."""
        return self.argv[0].rsplit("/", 1)[-1]

    async def out(self, text: str) -> None:
        """Write to the standard output."""
        if text:
            self.written += max(len(text), _LEAST_WRITTEN)
            if self.written > TOOL_CHARACTERS:
                raise ToolMistake(
                    f"{self.name}: it has written more than {TOOL_CHARACTERS} characters and ends"
                )
            wrong = await self.host.write(self.redirects.stdout, text)
            if wrong:
                raise ToolMistake(f"{self.name}: write error: {wrong}")

    async def err(self, text: str) -> None:
        """Write a line to the standard error."""
        await self.host.write(self.redirects.stderr, f"{text}\n")

    def open(self, path: str) -> Stream | str:
        """Open a file to be read, ``-`` being the standard input; or return what is wrong."""
        if path == "-":
            return self.redirects.stdin
        if found := _DESCRIPTOR.fullmatch(path):
            return self._connected(found)
        return self.host.open(path, "read")

    def create(self, path: str, *, append: bool = False) -> Stream | str:
        """Open a file to be written, which may be a descriptor; or return what is wrong."""
        if found := _DESCRIPTOR.fullmatch(path):
            return self._connected(found)
        return self.host.open(path, "append" if append else "write")

    def _connected(self, descriptor: re.Match[str]) -> Stream | str:
        number = _NAMED[descriptor[2]] if descriptor[2] else int(descriptor[1])
        stream = self.redirects.get(number)
        return stream if stream != CLOSED else "No such file or directory"

    async def text(self, path: str = "-", *, status: int = 1) -> str:
        """Return all that a file holds.

        Raises:
            ToolMistake: It cannot be read.
        """
        stream = self.open(path)
        if isinstance(stream, str):
            told = _UNREADABLE.get(self.name, "{}").format(path)
            raise ToolMistake(f"{self.name}: {told}: {stream}", status)
        return await self.text_of(stream, path)

    async def text_of(self, stream: Stream, path: str = "-") -> str:
        """Return all that is left to be read of a stream.

        Raises:
            ToolMistake: It is too much.
        """
        pieces: list[str] = []
        length = 0
        while chunk := await self.host.read(stream):
            pieces.append(chunk)
            length += len(chunk)
            if length > OUTPUT_CHARACTERS:
                raise ToolMistake(f"{self.name}: {path}: more than {OUTPUT_CHARACTERS} characters")
        return "".join(pieces)

    async def texts(
        self, paths: Sequence[str], *, status: int = 1
    ) -> tuple[list[tuple[str, str]], int]:
        """Return files with what they hold, and the status: 1 if one cannot be read."""
        found: list[tuple[str, str]] = []
        worst = 0
        for path in paths or ("-",):
            try:
                found.append((path, await self.text(path, status=status)))
            except ToolMistake as mistake:
                await self.err(str(mistake))
                worst = mistake.status
        return found, worst


_UNREADABLE = {
    "sed": "can't read {}",
    "head": "cannot open '{}' for reading",
    "tail": "cannot open '{}' for reading",
    "tac": "failed to open '{}' for reading",
    "rev": "cannot open {}",
}
"""How tools name a file that they cannot read, where that is not by its name alone."""

ToolMain = Callable[[Tool], Awaitable[int]]
"""Does the work of a tool, and returns its exit status."""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without their ends."""
    if not text:
        return []
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def joined(lines: Sequence[str]) -> str:
    """Return lines as a text, each with its end."""
    return "".join(f"{line}\n" for line in lines)
