"""grep: the lines that fit a regular expression."""

from __future__ import annotations

import re

from simctl.stepd.scripts.regular import Regular, RegularMistake, regular
from simctl.stepd.scripts.tools.tool import Options, Tool, ToolMistake, lines_of

_TROUBLE = 2


def check(options: Options) -> None:
    """Refuse expressions that are none."""
    if "e" not in options and "f" not in options and options.operands:
        _expressions(options, [options.operands[0]], basic="E" not in options)
    _expressions(options, list(options.all("e")), basic="E" not in options)


def _expressions(options: Options, texts: list[str], *, basic: bool) -> list[Regular]:
    found: list[Regular] = []
    for text in (line for each in texts for line in each.split("\n")):
        shown = text
        if "F" in options:
            shown = re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", text)
        if "w" in options:
            shown = (
                rf"(^|\W)({shown})($|\W)"
                if not basic or "F" in options
                else rf"\(^\|\W\)\({shown}\)\($\|\W\)"
            )
        if "x" in options:
            shown = f"^({shown})$" if not basic or "F" in options else rf"^\({shown}\)$"
        try:
            found.append(
                regular(shown, extended=not basic or "F" in options, ignores_case="i" in options)
            )
        except RegularMistake as mistake:
            raise ToolMistake(f"grep: {mistake}", _TROUBLE) from None
    return found


async def grep(tool: Tool, options: Options) -> int:
    """Write the lines that fit, or how many there are, or where."""
    if "o" in options and "w" in options:
        raise ToolMistake("grep: -o with -w is not simulated", _TROUBLE)
    operands = list(options.operands)
    texts = list(options.all("e"))
    for path in options.all("f"):
        texts += lines_of(await tool.text(path, status=_TROUBLE))
    if not texts and "f" not in options:
        if not operands:
            raise ToolMistake("grep: an expression is needed", _TROUBLE)
        texts = [operands.pop(0)]
    expressions = _expressions(options, texts, basic="E" not in options and tool.name != "egrep")
    paths = operands
    if "r" in options:
        paths = _below(tool, operands or ["."])
        if not operands:
            paths = [path.removeprefix("./") for path in paths]
    many = (len(paths) > 1 or "r" in options or "H" in options) and "h" not in options
    found, trouble = False, 0
    for path in paths or ["-"]:
        try:
            count = await _search(tool, options, expressions, path, named=many)
        except ToolMistake as mistake:
            if "s" not in options:
                await tool.err(str(mistake))
            trouble = _TROUBLE
            continue
        found = found or count > 0
        if found and "q" in options:
            return 0
    return trouble or (0 if found else 1)


def _below(tool: Tool, paths: list[str]) -> list[str]:
    found: list[str] = []
    for path in paths:
        info = tool.host.info(path)
        if info is None or not info.is_dir:
            found.append(path)
            continue
        base = path.rstrip("/")
        found += _below(tool, [f"{base}/{name}" for name in tool.host.names(path)])
    return found


async def _search(
    tool: Tool, options: Options, expressions: list[Regular], path: str, *, named: bool
) -> int:
    """Search one file; return how many lines fit."""
    stream = tool.open(path)
    if isinstance(stream, str):
        raise ToolMistake(f"grep: {path}: {stream}", _TROUBLE)
    info = tool.host.info(path) if path != "-" else None
    if info is not None and info.is_dir:
        raise ToolMistake(f"grep: {path}: Is a directory", _TROUBLE)
    shown = "(standard input)" if path == "-" else path
    most = int(options.get("m")) if options.get("m").isdecimal() else -1
    context = _Context(options)
    count = number = 0
    quiet = any(letter in options for letter in "qclL")
    while most and (line := await tool.host.read(stream, "\n")):
        number += 1
        text = line.removesuffix("\n")
        try:
            fits = any(each.matches(text) for each in expressions) != ("v" in options)
        except RegularMistake as mistake:
            raise ToolMistake(f"grep: {mistake}", _TROUBLE) from None
        count += fits
        if fits and ("q" in options or "l" in options):
            break
        if not quiet:
            prefix = (f"{shown}:" if named else "", f"{number}:" if "n" in options else "")
            if "o" in options:
                for piece in _pieces(expressions, text) if fits and "v" not in options else ():
                    await tool.out("".join(prefix) + piece + "\n")
            else:
                await tool.out(context.taken(fits, number, text, prefix))
        if 0 < most <= count and not context.after_left:
            break
    if "c" in options and most:
        await tool.out((f"{shown}:" if named else "") + f"{count}\n")
    elif ("l" in options and count) or ("L" in options and not count):
        await tool.out(f"{shown}\n")
    return count


class _Context:
    """The lines around those that fit, as -A, -B and -C ask for."""

    def __init__(self, options: Options) -> None:
        around = options.get("C", "0")
        self.before = int(options.get("B", around)) if options.get("B", around).isdecimal() else 0
        self.after = int(options.get("A", around)) if options.get("A", around).isdecimal() else 0
        self.kept: list[tuple[int, str, tuple[str, str]]] = []
        self.after_left = 0
        self.last = 0
        self.asked = bool(self.before or self.after)

    def taken(self, fits: bool, number: int, text: str, prefix: tuple[str, str]) -> str:
        """Take in a line, and return what is to be written now."""
        if fits:
            out = "".join(self._shown(*each, "-") for each in self.kept)
            self.kept.clear()
            self.after_left = self.after
            return out + self._shown(number, text, prefix, ":")
        if self.after_left:
            self.after_left -= 1
            return self._shown(number, text, prefix, "-")
        if self.before:
            self.kept = [*self.kept, (number, text, prefix)][-self.before :]
        return ""

    def _shown(self, number: int, text: str, prefix: tuple[str, str], sign: str) -> str:
        gap = self.asked and self.last and number > self.last + 1
        self.last = number
        head = "".join(piece[:-1] + sign if piece else "" for piece in prefix)
        return "--\n" * bool(gap) + f"{head}{text}\n"


def _pieces(expressions: list[Regular], text: str) -> list[str]:
    """Return the parts of a line that fit."""
    found: list[str] = []
    at = 0
    while at <= len(text):
        places = [place for each in expressions if (place := each.search(text, at)) is not None]
        if not places:
            break
        first = min(places, key=lambda place: (place.start, -place.end))
        if first.end > first.start:
            found.append(text[first.start : first.end])
        at = max(first.end, first.start + 1) if first.end == first.start else first.end
    return found
