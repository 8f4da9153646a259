"""Tools that read texts and write what they make of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from simctl.stepd.scripts.host import OpenFile, PipeEnd, Stream
from simctl.stepd.scripts.patterns import CLASSES
from simctl.stepd.scripts.tools.tool import Options, Tool, ToolMistake, joined, lines_of

_SUFFIXES = {"b": 512, "k": 1024, "K": 1024, "M": 1 << 20}


def _number(tool: Tool, text: str, what: str) -> int:
    found = re.fullmatch(r"(\d{1,15})([bkKM]?)", text)
    if not found:
        raise ToolMistake(f"{tool.name}: invalid number of {what}: '{text}'")
    return int(found[1]) * _SUFFIXES.get(found[2], 1)


async def cat(tool: Tool, options: Options) -> int:
    """Write files one after the other."""
    status, number = 0, 0
    for path in options.operands or ("-",):
        stream = tool.open(path)
        info = None if path == "-" or not isinstance(stream, str) else tool.host.info(path)
        if isinstance(stream, str):
            wrong = "Is a directory" if info is not None and info.is_dir else stream
            await tool.err(f"{tool.name}: {path}: {wrong}")
            status = 1
            continue
        if _feeds_itself(tool, stream):
            await tool.err(f"cat: {path}: input file is output file")
            status = 1
            continue
        if "n" not in options and "b" not in options and "s" not in options:
            while chunk := await tool.host.read(stream):
                await tool.out(chunk)
            continue
        blank = False
        while line := await tool.host.read(stream, "\n"):
            if "s" in options and line == "\n" and blank:
                continue
            blank = line == "\n"
            if "n" in options or ("b" in options and not blank):
                number += 1
                line = f"{number:6d}\t{line}"
            await tool.out(line)
    return status


def _feeds_itself(tool: Tool, stream: Stream) -> bool:
    """Return whether what is read from a file that holds something would be written behind it."""
    out = tool.redirects.stdout
    if not isinstance(stream, OpenFile) or not isinstance(out, OpenFile) or stream.path != out.path:
        return False
    info = tool.host.info(stream.path)
    return info is not None and info.size > 0


async def head(tool: Tool, options: Options) -> int:
    """Write the beginning of files."""
    count = options.get("n", "10")
    drops = count.startswith("-")
    status = 0
    titled = False
    paths = options.operands or ("-",)
    for path in paths:
        stream = tool.open(path)
        if isinstance(stream, str):
            await tool.err(f"head: cannot open '{path}' for reading: {stream}")
            status = 1
            continue
        if len(paths) > 1 and "q" not in options:
            await tool.out("\n" * titled + f"==> {'standard input' if path == '-' else path} <==\n")
            titled = True
        if "c" in options:
            await _head_bytes(tool, stream, options.get("c"))
        elif drops:
            lines = lines_of(await tool.text(path))
            await tool.out(joined(lines[: max(0, len(lines) - _number(tool, count[1:], "lines"))]))
        else:
            await _head_lines(tool, stream, _number(tool, count.lstrip("+"), "lines"))
    return status


async def _head_bytes(tool: Tool, stream: Stream, count: str) -> None:
    """Write the first bytes, or with a minus all but the last, and read no more than that."""
    left = _number(tool, count.lstrip("-"), "bytes")
    if count.startswith("-"):
        text = await tool.text_of(stream)
        await tool.out(text[: max(0, len(text) - left)])
        return
    while left and (chunk := await tool.host.read(stream, "", left)):
        await tool.out(chunk)
        left -= len(chunk)


async def _head_lines(tool: Tool, stream: Stream, count: int) -> None:
    """Write some lines; of a pipe what came with them is lost, as the program has read it."""
    if not isinstance(stream, PipeEnd):
        for _ in range(count):
            line = await tool.host.read(stream, "\n")
            if not line:
                break
            await tool.out(line)
        return
    while count:
        chunk = await tool.host.read(stream)
        if not chunk:
            return
        lines = chunk.split("\n")
        if len(lines) - 1 >= count:
            await tool.out(joined(lines[:count]))
            return
        count -= len(lines) - 1
        await tool.out(chunk)


async def tail(tool: Tool, options: Options) -> int:
    """Write the end of files."""
    found, status = await tool.texts(options.operands)
    for place, (path, text) in enumerate(found):
        if len(options.operands) > 1 and "q" not in options:
            await tool.out(
                "\n" * bool(place) + f"==> {'standard input' if path == '-' else path} <==\n"
            )
        given = options.get("c") or options.get("n", "10")
        from_start = given.startswith("+")
        count = _number(tool, given.lstrip("+-"), "lines")
        pieces: list[str] | str = text if "c" in options else re.findall(r"[^\n]*\n|[^\n]+", text)
        kept = pieces[max(count - 1, 0) :] if from_start else pieces[max(0, len(pieces) - count) :]
        await tool.out("".join(kept))
    return status


async def wc(tool: Tool, options: Options) -> int:
    """Count lines, words and characters."""
    found, status = await tool.texts(options.operands)
    letters = [letter for letter in "lwmc" if letter in options] or ["l", "w", "c"]
    rows = [([_counted(text, letter) for letter in letters], path) for path, text in found]
    if len(options.operands) > 1:
        rows.append(
            ([sum(row[0][place] for row in rows) for place in range(len(letters))], "total")
        )
    width = 1
    if len(letters) > 1 or len(rows) > 1:
        total = sum(len(text.encode(errors="surrogateescape")) for _, text in found)
        from_input = not options.operands or "-" in options.operands
        unknown = from_input and not isinstance(tool.redirects.stdin, OpenFile)
        width = 7 if unknown else len(str(total))
    for counts, path in rows:
        shown = " ".join(f"{count:{width}d}" for count in counts)
        await tool.out(shown + (f" {path}" if options.operands else "") + "\n")
    return status


def _counted(text: str, letter: str) -> int:
    match letter:
        case "l":
            return text.count("\n")
        case "w":
            return len(text.split())
        case "m":
            return len(text)
    return len(text.encode(errors="surrogateescape"))


async def cut(tool: Tool, options: Options) -> int:
    """Write columns of lines."""
    kinds = [letter for letter in "bcf" if letter in options]
    if len(kinds) != 1:
        raise ToolMistake("cut: you must specify a list of bytes, characters, or fields")
    ranges = _ranges(tool, options.get(kinds[0]))
    delimiter = options.get("d", "\t")
    if len(delimiter) != 1:
        raise ToolMistake("cut: the delimiter must be a single character")
    between = options.get("O", delimiter if kinds[0] == "f" else "")
    found, status = await tool.texts(options.operands)
    out: list[str] = []
    for _, text in found:
        for line in lines_of(text):
            if kinds[0] != "f":
                out.append(between.join(_picked(line, ranges, "C" in options)))
            elif delimiter not in line:
                if "s" not in options:
                    out.append(line)
            else:
                out.append(between.join(_picked(line.split(delimiter), ranges, "C" in options)))
    await tool.out(joined(out))
    return status


def _ranges(tool: Tool, text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for piece in text.split(","):
        match = re.fullmatch(r"(\d{1,9})?(-?)(\d{1,9})?", piece)
        if not match or not (match[1] or match[3]):
            raise ToolMistake(f"cut: invalid field value '{piece}'")
        first = int(match[1] or 1)
        last = int(match[3]) if match[3] else 1 << 40 if match[2] else first
        if first == 0 or last < first:
            raise ToolMistake("cut: fields and positions are numbered from 1, in rising ranges")
        found.append((first, last))
    return found


def _picked(items: list[str] | str, ranges: list[tuple[int, int]], others: bool) -> list[str]:
    return [
        item
        for place, item in enumerate(items, start=1)
        if any(first <= place <= last for first, last in ranges) != others
    ]


async def tr(tool: Tool, options: Options) -> int:
    """Replace, squeeze or delete characters."""
    sets = [
        _characters(tool, operand, fills=place == 1)
        for place, operand in enumerate(options.operands)
    ]
    deletes, squeezes = "d" in options, "s" in options
    complements = "c" in options or "C" in options
    if not sets or len(sets) > 2 or (deletes and not squeezes and len(sets) > 1):  # noqa: PLR2004
        raise ToolMistake("tr: missing or extra operand")
    if not deletes and not squeezes and len(sets) < 2:  # noqa: PLR2004
        raise ToolMistake(f"tr: missing operand after '{options.operands[0]}'")
    first, second = sets[0], sets[1] if sets[1:] else ""
    text = await tool.text()
    members = set(first)

    def inside(char: str) -> bool:
        return (char in members) != complements

    if deletes:
        text = "".join(char for char in text if not inside(char))
    elif second:
        text = _mapped(text, first, second, options, complements)
    if squeezes:
        squeezed = set(second or first)
        negated = complements and not second
        text = _squeezed(text, lambda char: (char in squeezed) != negated)
    await tool.out(text)
    return 0


def _mapped(text: str, first: str, second: str, options: Options, complements: bool) -> str:
    if complements:
        last = second[-1]
        return "".join(char if char in first else last for char in text)
    if "t" in options:
        first = first[: len(second)]
    padded = second + second[-1] * max(0, len(first) - len(second))
    table = dict(zip(first, padded, strict=False))
    return "".join(table.get(char, char) for char in text)


def _squeezed(text: str, inside: Callable[[str], bool]) -> str:
    out: list[str] = []
    for char in text:
        if not (out and out[-1] == char and inside(char)):
            out.append(char)
    return "".join(out)


_TR_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
}
_TR_ITEM = re.compile(
    r"\[:(\w+):\]|\[=(.)=\]|\[(\\[0-7]{1,3}|\\.|.)\*(\d*)\]|(\\[0-7]{1,3}|\\.|.)", re.DOTALL
)


def _characters(tool: Tool, text: str, *, fills: bool) -> str:
    """Return the characters that a set of tr stands for; one that *fills* may end with ``[x*]``."""
    out: list[str] = []
    at = 0
    while at < len(text):
        match = _TR_ITEM.match(text, at)
        assert match is not None
        at = match.end()
        if match[1]:
            if match[1] not in CLASSES:
                raise ToolMistake(f"tr: invalid character class '{match[1]}'")
            member = re.compile(f"[{CLASSES[match[1]]}]")
            out += [chr(code) for code in range(128) if member.match(chr(code))]
            continue
        if match[3] and (match[4] or at < len(text) or not fills):
            raise ToolMistake(f"tr: {match[0]}: repetitions are not simulated")
        # What is repeated at the end of the second set is so by itself.
        low = match[2] or _unescaped(match[3] or match[5])
        behind = _TR_ITEM.match(text, at + 1) if text[at : at + 1] == "-" else None
        if behind is not None and behind[5]:
            high = _unescaped(behind[5])
            if high < low:
                raise ToolMistake(f"tr: range-endpoints of '{low}-{high}' are in reverse order")
            out += [chr(code) for code in range(ord(low), ord(high) + 1)]
            at = behind.end()
        else:
            out.append(low)
    return "".join(out)


def _unescaped(text: str) -> str:
    if len(text) == 1:
        return text
    if text[1] in "01234567":
        return chr(int(text[1:], 8) & 255)
    return _TR_ESCAPES.get(text[1], text[1])


async def sort(tool: Tool, options: Options) -> int:
    """Write lines in order."""
    lines: list[str] = []
    for path in options.operands or ("-",):
        stream = tool.open(path)
        if isinstance(stream, str):
            raise ToolMistake(f"sort: cannot read: {path}: {stream}", 2)
        lines += lines_of(await tool.text(path, status=2))
    keys = [_Key(text, options) for text in options.all("k")] or [_Key("", options)]
    compare = _comparison(keys, options)
    if "c" in options:
        least = 0 if "u" in options else 1
        wrong = next((b for a, b in pairwise(lines) if compare(a, b) >= least), None)
        if wrong is not None:
            await tool.err(f"sort: -:{lines.index(wrong) + 1}: disorder: {wrong}")
        return 1 if wrong is not None else 0
    lines.sort(key=cmp_to_key(compare))
    if "u" in options:
        by_keys = _comparison(keys, options, last_resort=False)
        lines = [
            line
            for place, line in enumerate(lines)
            if not place or by_keys(lines[place - 1], line) != 0
        ]
    if "o" in options:
        opened = tool.host.open(options.get("o"), "write")
        if isinstance(opened, str):
            raise ToolMistake(f"sort: open failed: {options.get('o')}: {opened}", 2)
        await tool.host.write(opened, joined(lines))
    else:
        await tool.out(joined(lines))
    return 0


_KEY = re.compile(r"(\d+)(?:\.(\d+))?([bdfginrhV]*)(?:,(\d+)(?:\.(\d+))?([bdfginrhV]*))?")


class _Key:
    """One key of sort."""

    def __init__(self, text: str, options: Options) -> None:
        match = _KEY.fullmatch(text or "1")
        if not match or match[1] == "0":
            raise ToolMistake(f"sort: -k {text}: no such key", 2)
        own = match[3] + (match[6] or "")
        if "i" in own or "d" in own:
            raise ToolMistake(f"sort: -k {text}: d and i are not simulated", 2)
        general = "".join(letter for letter in "bfgnrhV" if letter in options)
        self.letters = own or general
        self.whole = not text
        self.first = (int(match[1]), int(match[2] or 1))
        self.last = (int(match[4] or 0), int(match[5] or 0)) if match[4] else None
        self.separator = options.get("t")

    def of(self, line: str) -> str:
        """Return the part of a line that the key is."""
        if self.whole:
            return line
        if self.separator:
            starts, at = [], 0
            for field in line.split(self.separator):
                starts.append((at, at + len(field)))
                at += len(field) + len(self.separator)
        else:
            fields = re.finditer(r"[ \t]*[^ \t]+|[ \t]+", line)
            starts = [(found.start(), found.end()) for found in fields]
        begin = self._place(line, starts, self.first, end=False)
        if self.last is None:
            return line[begin:]
        return line[begin : self._place(line, starts, self.last, end=True)]

    def _place(
        self, line: str, starts: list[tuple[int, int]], where: tuple[int, int], *, end: bool
    ) -> int:
        field, char = where
        if field > len(starts):
            return len(line)
        first, last = starts[field - 1]
        if end and not char:
            return last
        if "b" in self.letters:
            while first < last and line[first] in " \t":
                first += 1
        return min(first + char - (0 if end else 1), len(line))


_SORT_NUMBER = re.compile(r"[ \t]*(-?\d*(?:\.\d+)?)")
_GENERAL = re.compile(r"[ \t]*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_HUMAN = re.compile(r"[ \t]*(-?\d*(?:\.\d+)?)([KkMGTPE]?)")


def _comparison(
    keys: list[_Key], options: Options, *, last_resort: bool = True
) -> Callable[[str, str], int]:
    def compare(left: str, right: str) -> int:
        for key in keys:
            one, other = _value(key, left), _value(key, right)
            if one != other:
                return (1 if one > other else -1) * (-1 if "r" in key.letters else 1)
        if not last_resort or "s" in options or "u" in options or left == right:
            return 0
        return (1 if left > right else -1) * (-1 if "r" in options else 1)

    return compare


def _value(key: _Key, line: str) -> Any:
    text = key.of(line)
    if "V" in key.letters:
        pieces = re.findall(r"\d+|\D+", text)
        return [(0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in pieces]
    if "h" in key.letters:
        found = _HUMAN.match(text)
        assert found is not None
        scale = 1024 ** ("KMGTPE".find(found[2].upper()) + 1) if found[2] else 1
        return float(found[1] or 0) * scale if found[1] not in ("-", "") else 0.0
    if "g" in key.letters:
        general = _GENERAL.match(text)
        # What is no number comes before all that are.
        return (1, float(general[0])) if general is not None else (0, 0.0)
    if "n" in key.letters:
        found = _SORT_NUMBER.match(text)
        assert found is not None
        return float(found[1]) if found[1] not in ("", "-") else 0.0
    if "b" in key.letters and key.whole:
        text = text.lstrip(" \t")
    return text.upper() if "f" in key.letters else text


async def uniq(tool: Tool, options: Options) -> int:
    """Write lines that are alike once."""
    lines = lines_of(await tool.text(*(options.operands[:1])))
    skipped = int(options.get("f", "0")) if options.get("f", "0").isdecimal() else 0

    def key(line: str) -> str:
        rest = re.sub(rf"^(?:[ \t]*[^ \t]+){{0,{skipped}}}", "", line) if skipped else line
        return rest.lower() if "i" in options else rest

    groups: list[tuple[str, int]] = []
    for line in lines:
        if groups and key(groups[-1][0]) == key(line):
            groups[-1] = (groups[-1][0], groups[-1][1] + 1)
        else:
            groups.append((line, 1))
    out = [
        f"{count:7d} {line}" if "c" in options else line
        for line, count in groups
        if ("d" not in options or count > 1) and ("u" not in options or count == 1)
    ]
    text = joined(out)
    if len(options.operands) > 1:
        opened = tool.host.open(options.operands[1], "write")
        if isinstance(opened, str):
            raise ToolMistake(f"uniq: {options.operands[1]}: {opened}")
        await tool.host.write(opened, text)
    else:
        await tool.out(text)
    return 0


async def tee(tool: Tool, options: Options) -> int:
    """Write the input to files as well."""
    files: list[Stream] = []
    status = 0
    for path in options.operands:
        opened = tool.create(path, append="a" in options)
        if isinstance(opened, str):
            await tool.err(f"tee: {path}: {opened}")
            status = 1
        else:
            files.append(opened)
    while chunk := await tool.host.read(tool.redirects.stdin):
        # As the program does it: a pipe that nobody reads ends it before the files have the text.
        await tool.out(chunk)
        for file in files:
            await tool.host.write(file, chunk)
    return status


async def paste(tool: Tool, options: Options) -> int:
    """Write lines of files side by side, nothing at all where one of them is not there."""
    found: list[tuple[str, str]] = []
    status = 0
    for path in options.operands or ("-",):
        try:
            found.append((path, await tool.text(path)))
        except ToolMistake as mistake:
            info = tool.host.info(path)
            is_folder = info is not None and info.is_dir
            if not is_folder and "s" not in options:
                raise
            await tool.err(str(mistake))
            status = 1
            if is_folder:
                found.append((path, ""))
    between = options.get("d", "\t").replace("\\t", "\t").replace("\\n", "\n") or ""
    columns = [lines_of(text) for _, text in found]
    shared = [place for place, (path, _) in enumerate(found) if path == "-"]
    if shared and "s" not in options:
        # Each `-` takes the next line of the one input.
        lines = columns[shared[0]]
        for first, place in enumerate(shared):
            columns[place] = lines[first :: len(shared)]

    def side_by_side(items: list[str]) -> str:
        out = items[:1]
        for place, item in enumerate(items[1:]):
            out += [between[place % len(between)] if between else "", item]
        return "".join(out)

    if "s" in options:
        await tool.out(joined([side_by_side(lines) for lines in columns]))
        return status
    rows = max((len(lines) for lines in columns), default=0)
    out = [
        side_by_side([lines[row] if row < len(lines) else "" for lines in columns])
        for row in range(rows)
    ]
    await tool.out(joined(out))
    return status


async def tac(tool: Tool, options: Options) -> int:
    """Write lines from the last to the first."""
    found, status = await tool.texts(options.operands)
    for _, text in found:
        await tool.out("".join(reversed(re.findall(r"[^\n]*\n|[^\n]+", text))))
    return status


async def rev(tool: Tool, options: Options) -> int:
    """Write each line from its end to its beginning."""
    found, status = await tool.texts(options.operands)
    for _, text in found:
        await tool.out(re.sub(r"[^\n]+", lambda line: line[0][::-1], text))
    return status


async def nl(tool: Tool, options: Options) -> int:
    """Write lines with numbers before those that are not empty."""
    found, status = await tool.texts(options.operands)
    number = 0
    out: list[str] = []
    for _, text in found:
        for line in lines_of(text):
            if line or options.get("b") == "a":
                number += 1
                out.append(f"{number:6d}\t{line}")
            else:
                out.append("       ")
    await tool.out(joined(out))
    return status
