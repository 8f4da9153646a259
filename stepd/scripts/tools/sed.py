"""sed: commands on lines, of which s, p, d, q, =, a, i, c, n, y and groups are simulated."""

from __future__ import annotations

import re

import attrs

from simctl.stepd.scripts.regular import Found, Regular, RegularMistake, regular
from simctl.stepd.scripts.tools.tool import Options, Tool, ToolMistake

_PLAIN = "pdq=nQ"
_REFUSED = "hHgGxNDPbtTrRwWleFz:"


@attrs.frozen(kw_only=True)
class _Address:
    """Where a command applies: a line's number, 0 for the last; an expression; or every so many."""

    line: int = -1
    expression: str | None = None
    step: int = 0
    ignores_case: bool = False


@attrs.define(kw_only=True)
class _Command:
    """One command, with where it applies."""

    letter: str
    first: _Address | None = None
    last: _Address | None = None
    negated: bool = False
    text: str = ""
    pattern: str = ""
    replacement: str = ""
    flags: str = ""
    number: int = 0
    body: tuple[_Command, ...] = ()
    active: bool = False
    """Whether the range has begun and not ended."""

    until: int = 0


def _mistake(told: str) -> ToolMistake:
    return ToolMistake(f"sed: {told}")


@attrs.define
class _Reader:
    """Reads a sed script."""

    text: str
    extended: bool
    at: int = 0

    def commands(self, *, inside: bool = False) -> tuple[_Command, ...]:
        """Read commands to the end, or to the ``}`` of a group."""
        found: list[_Command] = []
        while True:
            self._skip("\n; \t")
            if self.at >= len(self.text):
                if inside:
                    raise _mistake("unmatched `{'")
                return tuple(found)
            if self.text[self.at] == "}":
                if not inside:
                    raise _mistake("unexpected `}'")
                self.at += 1
                return tuple(found)
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
                continue
            found.append(self._command())

    def _skip(self, chars: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1

    def _command(self) -> _Command:
        first = self._address()
        last = None
        self._skip(" \t")
        if first is not None and self.text[self.at : self.at + 1] == ",":
            self.at += 1
            self._skip(" \t")
            last = self._address(relative=True)
            if last is None:
                raise _mistake("unexpected `,'")
        self._skip(" \t")
        negated = self.text[self.at : self.at + 1] == "!"
        if negated:
            self.at += 1
            self._skip(" \t!")
        letter = self.text[self.at : self.at + 1]
        if not letter:
            raise _mistake("missing command")
        self.at += 1
        command = _Command(letter=letter, first=first, last=last, negated=negated)
        if letter == "{":
            command.body = self.commands(inside=True)
        elif letter in ("s", "y"):
            self._substitution(command)
        elif letter in "aic":
            command.text = self._text()
        elif letter in _PLAIN:
            self._plain(command)
        elif letter in _REFUSED:
            raise _mistake(
                f"the command `{letter}' is not simulated; s, p, d, q, =, a, i, c, n and y are"
            )
        else:
            raise _mistake(f"unknown command: `{letter}'")
        return command

    def _plain(self, command: _Command) -> None:
        self._skip(" \t")
        if command.letter in "qQ":
            number = re.compile(r"\d{0,3}").match(self.text, self.at)
            assert number is not None
            command.number = int(number[0] or 0)
            self.at = number.end()
            self._skip(" \t")
        if self.text[self.at : self.at + 1] not in ("", ";", "\n", "}", "#"):
            raise _mistake(f"extra characters after command `{command.letter}'")

    def _address(self, *, relative: bool = False) -> _Address | None:
        char = self.text[self.at : self.at + 1]
        if char == "$":
            self.at += 1
            return _Address(line=0)
        if number := re.compile(r"(\d{1,9})(?:~(\d{1,9}))?").match(self.text, self.at):
            self.at = number.end()
            if number[2] is not None:
                if relative:
                    raise _mistake("N~STEP at the end of a range is not simulated")
                return _Address(line=int(number[1]), step=int(number[2]))
            if number[1] == "0":
                raise _mistake("the address 0 is not simulated")
            return _Address(line=int(number[1]))
        if char in ("+", "~") and relative:
            raise _mistake(f"the address {char}N is not simulated")
        if char == "/" or char == "\\":
            delimiter = char
            self.at += 1
            if char == "\\":
                delimiter = self.text[self.at : self.at + 1]
                self.at += 1
            expression = self._until(delimiter, in_expression=True)
            ignores = self.text[self.at : self.at + 1] == "I"
            self.at += ignores
            return _Address(expression=expression, ignores_case=ignores)
        return None

    def _until(self, delimiter: str, *, in_expression: bool) -> str:
        """Read to a delimiter, and take it."""
        out: list[str] = []
        bracket = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\" and self.at + 1 < len(self.text):
                behind = self.text[self.at + 1]
                if behind == delimiter and not (in_expression and behind in ".*[]^$+?(){}|"):
                    out.append(behind)
                else:
                    out.append(char + behind)
                self.at += 2
                continue
            if in_expression and char == "[" and not bracket:
                close = re.compile(r"\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^]])*\]").match(
                    self.text, self.at
                )
                if close:
                    out.append(close[0])
                    self.at = close.end()
                    continue
            self.at += 1
            if char == delimiter:
                return "".join(out)
            out.append(char)
        raise _mistake("unterminated address or `s' command")

    def _substitution(self, command: _Command) -> None:
        delimiter = self.text[self.at : self.at + 1]
        if delimiter in ("", "\n", "\\"):
            raise _mistake(f"unterminated `{command.letter}' command")
        self.at += 1
        command.pattern = self._until(delimiter, in_expression=command.letter == "s")
        command.replacement = self._until(delimiter, in_expression=False)
        if command.letter == "y":
            if len(_unescaped(command.pattern)) != len(_unescaped(command.replacement)):
                raise _mistake("strings for `y' command are different lengths")
            return
        flags = re.compile(r"[gpiI\d]*").match(self.text, self.at)
        assert flags is not None
        self.at = flags.end()
        command.flags = flags[0]
        digits = re.sub(r"\D", "", flags[0])
        command.number = int(digits[:9]) if digits else 0
        if self.text[self.at : self.at + 1] not in ("", ";", "\n", "}", " ", "\t", "#"):
            shown = self.text[self.at]
            raise _mistake(f"the flag `{shown}' of `s' is not simulated; g, p, I and numbers are")
        if re.search(r"\\[ULEul]", command.replacement):
            raise _mistake("\\U, \\L and their kin in a replacement are not simulated")

    def _text(self) -> str:
        self._skip(" \t")
        if self.text.startswith("\\", self.at):
            self.at += 1
            line = self.at
            self._skip(" \t")
            # Blanks on the line of the text itself belong to it.
            self.at = self.at + 1 if self.text.startswith("\n", self.at) else line
        out: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == "\\" and self.at < len(self.text):
                out.append(self.text[self.at])
                self.at += 1
            elif char == "\n":
                break
            else:
                out.append(char)
        return "".join(out)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def _script(options: Options) -> tuple[str, tuple[str, ...]]:
    """Return the script and the files."""
    if "e" in options:
        return "\n".join(options.all("e")), options.operands
    if not options.operands:
        raise _mistake("a script is needed")
    return options.operands[0], options.operands[1:]


def check(options: Options) -> None:
    """Refuse scripts that are none, or ask for what is not simulated."""
    if "f" in options:
        return
    extended = "E" in options
    _check_all(_Reader(_script(options)[0], extended).commands(), extended=extended)


def _check_all(commands: tuple[_Command, ...], *, extended: bool) -> None:
    for command in commands:
        if command.letter == "s" and command.pattern:
            _expression(command.pattern, extended=extended)
        for address in (command.first, command.last):
            if address is not None and address.expression:
                _expression(address.expression, extended=extended)
        _check_all(command.body, extended=extended)


def _expression(text: str, *, extended: bool, ignores_case: bool = False) -> Regular:
    try:
        return regular(text, extended=extended, ignores_case=ignores_case, escapes="ntfvra")
    except RegularMistake as mistake:
        raise _mistake(str(mistake)) from None


async def sed(tool: Tool, options: Options) -> int:
    """Run the script on each line of the files, all together or, in place, one by one."""
    if "f" in options:
        pieces = [
            value if letter == "e" else (await tool.text(value)).removesuffix("\n")
            for letter, value in options.given
            if letter in "ef"
        ]
        text, paths = "\n".join(pieces), options.operands
    else:
        text, paths = _script(options)
    extended = "E" in options or "r" in options
    commands = _Reader(text, extended).commands()
    _check_all(commands, extended=extended)
    if "i" not in options:
        found, status = await tool.texts(paths)
        run = _Run(commands, quiet="n" in options, extended=extended)
        texts = [content for _, content in found]
        if "s" in options:
            for content in texts:
                await tool.out(run.over([content]))
        else:
            await tool.out(run.over(texts))
        return run.status or (2 if status else 0)
    worst = 0
    for path in paths:
        try:
            content = await tool.text(path)
        except ToolMistake as mistake:
            await tool.err(str(mistake))
            worst = 2
            continue
        run = _Run(_Reader(text, extended).commands(), quiet="n" in options, extended=extended)
        changed = run.over([content])
        if suffix := options.get("i"):
            kept = tool.host.open(path + suffix, "write")
            if not isinstance(kept, str):
                await tool.host.write(kept, content)
        opened = tool.host.open(path, "write")
        if isinstance(opened, str):
            raise _mistake(f"couldn't open {path}: {opened}")
        await tool.host.write(opened, changed)
    return worst


class _Run:
    """One run of a script over lines."""

    def __init__(self, commands: tuple[_Command, ...], *, quiet: bool, extended: bool) -> None:
        self.commands = commands
        self.quiet = quiet
        self.extended = extended
        self.status = 0
        self.out: list[str] = []
        self.lines: list[str] = []
        self.number = 0
        self.space = ""
        self.after: list[str] = []
        self.last_expression = ""
        self.quits = self.at_end = False

    def over(self, texts: list[str]) -> str:
        """Return what the script makes of texts."""
        self.lines = [line for text in texts for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
        self.number, self.out = 0, []
        while self.number < len(self.lines) and not self.quits:
            self._next()
            if (self._all(self.commands) or self.at_end) and not self.quiet:
                self._print(self.space)
            self._put_after()
        return "".join(self.out)

    def _next(self) -> None:
        self.space = self.lines[self.number].removesuffix("\n")
        self.number += 1

    def _print(self, text: str) -> None:
        ends = self.number < len(self.lines) or self.lines[-1].endswith("\n")
        self._put(text + "\n" * ends)

    def _put(self, text: str) -> None:
        """Write on a line of its own, though the last one may have had no end."""
        if self.out and not self.out[-1].endswith("\n"):
            self.out.append("\n")
        self.out.append(text)

    def _put_after(self) -> None:
        for text in self.after:
            self._put(text)
        self.after = []

    def _all(self, commands: tuple[_Command, ...]) -> bool:
        """Run commands; tell whether the line goes on to its end."""
        return all(not self._applies(command) or self._run(command) for command in commands)

    def _applies(self, command: _Command) -> bool:
        return self._selected(command) != command.negated

    def _selected(self, command: _Command) -> bool:
        first, last = command.first, command.last
        if first is None:
            return True
        if last is None:
            return self._at(first)
        if command.active:
            if last.expression is None:
                ends = last.line or len(self.lines)
                command.active = self.number < ends
                return self.number <= ends
            command.active = not self._at(last)
            return True
        if not self._at(first):
            return False
        ends = last.line or len(self.lines)
        command.active = last.expression is not None or self.number < ends
        return True

    def _at(self, address: _Address) -> bool:
        if address.expression is not None:
            text = self._expression(address.expression)
            found = _expression(text, extended=self.extended, ignores_case=address.ignores_case)
            return found.matches(self.space)
        if address.step or address.line > 0:
            if not address.step:
                return self.number == address.line
            return self.number >= address.line and (self.number - address.line) % address.step == 0
        return self.number == len(self.lines)

    def _expression(self, text: str) -> str:
        """Return an expression, or the last that was used if it is empty, and note it."""
        self.last_expression = text or self.last_expression
        if not self.last_expression:
            raise _mistake("no previous regular expression")
        return self.last_expression

    def _run(self, command: _Command) -> bool:  # noqa: PLR0912 - one case for each command
        match command.letter:
            case "{":
                return self._all(command.body)
            case "d":
                return False
            case "p":
                self._print(self.space)
            case "=":
                self._put(f"{self.number}\n")
            case "q" | "Q":
                self.quits, self.status = True, command.number
                if command.letter == "Q":
                    self.after.clear()
                return command.letter == "q"
            case "a":
                self.after.append(command.text + "\n")
            case "i":
                self._put(command.text + "\n")
            case "c":
                if command.last is None or not command.active or command.negated:
                    self._put(command.text + "\n")
                return False
            case "n":
                if self.number >= len(self.lines):
                    # Nothing behind it is run, and the line is written as at its end.
                    self.quits = self.at_end = True
                    return False
                if not self.quiet:
                    self._print(self.space)
                self._put_after()
                self._next()
            case "y":
                table = dict(
                    zip(_unescaped(command.pattern), _unescaped(command.replacement), strict=True)
                )
                self.space = "".join(table.get(char, char) for char in self.space)
            case "s":
                self._substitute(command)
        return True

    def _substitute(self, command: _Command) -> None:
        text = self._expression(command.pattern)
        ignores = "i" in command.flags or "I" in command.flags
        expression = _expression(text, extended=self.extended, ignores_case=ignores)
        out: list[str] = []
        at = count = 0
        changed = False
        ended = -1
        while at <= len(self.space):
            found = expression.search(self.space, at)
            if found is None:
                break
            if found.start == found.end == ended:
                out.append(self.space[at : at + 1])
                at += 1
                continue
            count += 1
            out.append(self.space[at : found.start])
            replaces = count >= (command.number or 1)
            if replaces:
                out.append(_replacement(command.replacement, found))
                changed = True
            else:
                out.append(self.space[found.start : found.end])
            at = ended = found.end
            if replaces and "g" not in command.flags:
                break
            if found.start == found.end:
                out.append(self.space[at : at + 1])
                at += 1
        self.space = "".join(out) + self.space[at:]
        if changed and "p" in command.flags:
            self._print(self.space)


def _replacement(text: str, found: Found) -> str:
    def piece(match: re.Match[str]) -> str:
        if match[0] == "&":
            return found.texts[0]
        letter = match[1]
        if letter.isdecimal():
            place = int(letter)
            if place >= len(found.texts):
                raise _mistake(f"invalid reference \\{place} on `s' command's RHS")
            return found.texts[place]
        return {"n": "\n", "t": "\t"}.get(letter, letter)

    return re.sub(r"&|\\(.)", piece, text, flags=re.DOTALL)
