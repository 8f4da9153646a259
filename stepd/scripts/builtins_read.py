"""The builtins that take in what others wrote: read, mapfile, getopts."""

from __future__ import annotations

import re

from simctl.stepd.scripts.builtin import Builtin, Shell, is_name, plain
from simctl.stepd.scripts.host import CLOSED, Redirects, Stream
from simctl.stepd.scripts.state import ShellState
from simctl.stepd.scripts.variables import Elements, ReadonlyError

_MISUSED = 2
_WHITE = " \t\n"
_VALUED = "dnNupia"
_MOST_LINES = 100_000


def _options(arguments: list[str], flags: str, valued: str) -> tuple[dict[str, str], list[str]]:
    """Split options, with the values that some take, from the rest.

    Raises:
        ValueError: One is not known.
    """
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        for place, letter in enumerate(word[1:], start=1):
            if letter in valued:
                inline = word[place + 1 :]
                if not inline and not rest:
                    raise ValueError(letter)
                found[letter] = inline or rest.pop(0)
                break
            if letter not in flags:
                raise ValueError(letter)
            found[letter] = ""
    return found, rest


@plain
async def _read(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Read a line, and give its words to variables."""
    state = shell.state
    try:
        options, names = _options(arguments, "rse", _VALUED)
    except ValueError as unknown:
        await state.complain(f"read: -{unknown}: invalid option", streams.stderr)
        return _MISUSED
    stream = streams.get(int(options["u"])) if options.get("u", "").isdecimal() else streams.stdin
    arrays = [options["a"]] if "a" in options else []
    for name in (*names, *arrays):
        if not is_name(name if name in arrays else name.partition("[")[0]):
            await state.complain(f"read: `{name}': not a valid identifier", streams.stderr)
            return 1
    exact = int(options["N"]) if options.get("N", "").isdecimal() else 0
    most = int(options["n"]) if options.get("n", "").isdecimal() else exact
    delimiter = "" if exact else (options["d"][:1] or "\0") if "d" in options else "\n"
    read = await _line(shell, stream, delimiter, most, raw="r" in options)
    if read is None:
        await state.complain("read: read error: Bad file descriptor", streams.stderr)
        return 1
    text, ended = read
    _give(state, text, names, options, splits=not exact)
    return 0 if ended else 1


async def _line(
    shell: Shell, stream: Stream, delimiter: str, most: int, *, raw: bool
) -> tuple[list[tuple[str, bool]], bool] | None:
    """Read up to a delimiter, which is dropped; a backslash escapes unless *raw*.

    Returns:
        The characters, each with whether it was escaped, and whether the end was found.
    """
    found: list[tuple[str, bool]] = []
    while True:
        left = most - len(found) if most else 0
        chunk = await shell.host.read(stream, delimiter or "\uffff", left)
        if chunk is None:
            return None
        ended = bool(chunk) and chunk[-1] == delimiter
        body = chunk[:-1] if ended else chunk
        place = 0
        continued = False
        while place < len(body):
            char = body[place]
            if char == "\\" and not raw:
                if place + 1 < len(body):
                    found.append((body[place + 1], True))
                    place += 2
                    continue
                continued = True
                break
            if char != "\0":
                found.append((char, False))
            place += 1
        if continued and ended:
            if delimiter != "\n":
                found.append((delimiter, True))
            continue
        if ended or (most and len(found) >= most):
            return found, True
        if not chunk or not most:
            return found, False


def _give(
    state: ShellState,
    text: list[tuple[str, bool]],
    names: list[str],
    options: dict[str, str],
    *,
    splits: bool,
) -> None:
    """Give the words of a line to variables: the last gets the rest."""
    if "a" in options:
        state.variables.unset(options["a"])
        variable = state.variables.make(options["a"])
        variable.value = dict(enumerate(_words(text, state.separators, 0)))
        return
    if not names:
        state.assign("REPLY", "".join(char for char, _ in text))
        return
    if not splits:
        words = ["".join(char for char, _ in text)]
    else:
        words = _words(text, state.separators, len(names))
    for place, name in enumerate(names):
        base, bracket, rest = name.partition("[")
        key = state.key_of(base, rest.removesuffix("]")) if bracket else None
        state.assign(base, words[place] if place < len(words) else "", key)


def _words(text: list[tuple[str, bool]], separators: str, most: int) -> list[str]:
    """Split characters at IFS into *most* words, 0 for any number; the last keeps what is left."""
    white = {char for char in separators if char in _WHITE}
    hard = set(separators) - white
    words: list[str] = []
    at = 0
    length = len(text)

    def skip(at: int) -> int:
        while at < length and not text[at][1] and text[at][0] in white:
            at += 1
        return at

    at = skip(0)
    while at < length:
        if most and len(words) == most - 1:
            words.append(_rest(text, at, white, hard))
            return words
        start = at
        while at < length and (
            text[at][1] or (text[at][0] not in white and text[at][0] not in hard)
        ):
            at += 1
        words.append("".join(char for char, _ in text[start:at]))
        at = skip(at)
        if at < length and not text[at][1] and text[at][0] in hard:
            at = skip(at + 1)
    return words


def _rest(text: list[tuple[str, bool]], at: int, white: set[str], hard: set[str]) -> str:
    """Return what is left for the last variable, without the white space at its end.

    A single separator at its end goes as well, if it would have ended the last of the words.
    """
    end = len(text)
    while end > at and not text[end - 1][1] and text[end - 1][0] in white:
        end -= 1
    inner = text[at:end]
    if inner and not inner[-1][1] and inner[-1][0] in hard:
        before = inner[:-1]
        if not any(not escaped and char in hard for char, escaped in before):
            bare = before
            stripped = len(bare)
            while stripped and not bare[stripped - 1][1] and bare[stripped - 1][0] in white:
                stripped -= 1
            if not any(not escaped and char in white for char, escaped in bare[:stripped]):
                inner = bare[:stripped]
    return "".join(char for char, _ in inner)


@plain
async def _mapfile(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Read lines into an array."""
    state = shell.state
    try:
        options, names = _options(arguments, "t", "dnOsuCc")
    except ValueError as unknown:
        await state.complain(f"mapfile: -{unknown}: invalid option", streams.stderr)
        return _MISUSED
    stream = streams.get(int(options["u"])) if options.get("u", "").isdecimal() else streams.stdin
    delimiter = (options["d"][:1] or "\0") if "d" in options else "\n"
    most = int(options["n"]) if options.get("n", "").isdecimal() else 0
    skipped = int(options["s"]) if options.get("s", "").isdecimal() else 0
    origin = int(options["O"]) if options.get("O", "").isdecimal() else 0
    name = names[0] if names else "MAPFILE"
    odd = [options[each] for each in "nsOuc" if not options.get(each, "0").isdecimal()]
    wrong = f"{odd[0]}: a number from 0 on was expected" if odd else ""
    wrong = wrong or (f"{options.get('u')}: Bad file descriptor" if stream == CLOSED else "")
    if wrong or not is_name(name):
        wrong = wrong or f"`{name}': not a valid identifier"
        await state.complain(f"mapfile: {wrong}", streams.stderr)
        return 1
    if "O" not in options:
        state.variables.unset(name)
    variable = state.variables.make(name)
    before = variable.value
    values: Elements = before if isinstance(before, dict) else {} if before is None else {0: before}
    variable.value = values
    place = 0
    while (line := await shell.host.read(stream, delimiter)) and place < _MOST_LINES + skipped:
        if place >= skipped:
            text = line.removesuffix(delimiter) if "t" in options or delimiter == "\0" else line
            values[origin + place - skipped] = text
        place += 1
        if most and place >= most + skipped:
            break
    return 0


@plain
async def _getopts(shell: Shell, arguments: list[str], streams: Redirects) -> int:
    """Find the next option among arguments."""
    state = shell.state
    if len(arguments) < 2:  # noqa: PLR2004 - the letters and the name
        await state.complain("getopts: usage: getopts optstring name [arg]", streams.stderr)
        return _MISUSED
    letters, name, *words = arguments
    status, found = await _next_option(state, letters, words or list(state.arguments), streams)
    if not is_name(name):
        await state.complain(f"getopts: `{name}': not a valid identifier", streams.stderr)
        return 1
    try:
        state.assign(name, found)
    except ReadonlyError as error:
        await state.report(str(error), streams)
        return status or _MISUSED
    return status


async def _next_option(
    state: ShellState, letters: str, words: list[str], streams: Redirects
) -> tuple[int, str]:
    """Find the next option among words; note its value, and where the search has come to.

    Returns:
        1 if there is no option more, and the letter that tells what was found.
    """
    told = re.match(r"\s*\+?\d{1,9}", state.look_up("OPTIND") or "", re.ASCII)
    index = max(1, int(told[0])) if told else 1
    quiet = letters.startswith(":")
    place = state.option_place
    state.variables.unset("OPTARG")
    word = words[index - 1] if 0 < index <= len(words) else ""
    if place >= len(word):
        place = 0  # these are other words than those of before
    if place == 0:
        if word == "--":
            state.assign("OPTIND", str(index + 1))
            return 1, "?"
        if len(word) < 2 or word[0] != "-":  # noqa: PLR2004 - a dash and a letter
            state.assign("OPTIND", str(index))
            return 1, "?"
        place = 1
    letter = word[place]
    place += 1
    ends = place >= len(word)
    at = letters.find(letter, 1 if quiet else 0)
    if letter == ":" or at < 0:
        found = "?"
        if quiet:
            state.assign("OPTARG", letter)
        else:
            await state.host.write(streams.stderr, f"{state.name}: illegal option -- {letter}\n")
    elif letters[at + 1 : at + 2] == ":":
        value = word[place:] if not ends else words[index] if index < len(words) else None
        index += 1 if ends and value is not None else 0
        ends = True
        found = await _take_option_value(state, letter, value, streams, quiet=quiet)
    else:
        found = letter
    state.assign("OPTIND", str(index + 1 if ends else index))
    state.option_place = 0 if ends else place
    return 0, found


async def _take_option_value(
    state: ShellState, letter: str, value: str | None, streams: Redirects, *, quiet: bool
) -> str:
    """Note the value of an option, or that it has none; return the letter that tells which."""
    if value is not None:
        state.assign("OPTARG", value)
        return letter
    if quiet:
        state.assign("OPTARG", letter)
    else:
        told = f"{state.name}: option requires an argument -- {letter}\n"
        await state.host.write(streams.stderr, told)
    return ":" if quiet else "?"


READING_BUILTINS: dict[str, Builtin] = {
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "getopts": _getopts,
}
