"""Tools about the machine and the time, and those that start other programs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from simctl.stepd.scripts import escapes
from simctl.stepd.scripts.host import Redirects
from simctl.stepd.scripts.regular import RegularMistake, regular
from simctl.stepd.scripts.tools.tool import Options, Tool, ToolMistake, joined
from simctl.stepd.signals import SIGKILL, SignalError, signal_number

_US = 1_000_000
_NOT_FOUND = 127
_NO_KEY = 2
_TIMED_OUT = 124
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LENGTH = re.compile(r"(\d{1,12}(?:\.\d{0,6})?|\.\d{1,6})([smhd]?)")
_MOST_NUMBERS = 2_000_000
_ADDRESS = "127.0.0.1"
"""That of every node, as SLURM_LAUNCH_NODE_IPADDR has it."""


async def seq(tool: Tool, options: Options) -> int:
    """Write numbers."""
    words = options.operands
    if not 1 <= len(words) <= 3:  # noqa: PLR2004 - first, step and last
        raise ToolMistake("seq: missing or extra operand")
    for word in words:
        if not re.fullmatch(r"-?(\d{1,15}(\.\d{0,9})?|\.\d{1,9})", word):
            raise ToolMistake(f"seq: invalid floating point argument: '{word}'")
    places = max((len(word.partition(".")[2]) for word in words[:-1]), default=0)
    scale = 10 ** max(len(word.partition(".")[2]) for word in words)
    first = round(float(words[0]) * scale) if len(words) > 1 else scale
    step = round(float(words[1]) * scale) if len(words) == 3 else scale  # noqa: PLR2004
    last = round(float(words[-1]) * scale)
    if not step:
        raise ToolMistake(f"seq: invalid Zero increment value: '{words[1]}'")
    count = max(0, (last - first) // step + 1)
    if count > _MOST_NUMBERS:
        raise ToolMistake(f"seq: more than {_MOST_NUMBERS} numbers")
    form = options.get("f") or f"%.{places}f"
    if not re.fullmatch(r"[^%]*%[-+ 0]*\d{0,3}(\.\d{1,2})?[gf][^%]*", form):
        raise ToolMistake(f"seq: format '{form}' has no or unknown % directive")
    values = (first + step * place for place in range(count))
    shown = [form % (value / scale) for value in values]
    if "w" in options:
        width = max((len(each) for each in shown), default=0)
        shown = [each.zfill(width) for each in shown]
    between = escapes.formatted(options.get("s", "\n"))
    for start in range(0, len(shown), 10_000):
        chunk = between.join(shown[start : start + 10_000])
        await tool.out(chunk + (between if start + 10_000 < len(shown) else "\n"))
    return 0


async def date(tool: Tool, options: Options) -> int:
    """Write the present moment, or another, as a format says."""
    moment = datetime.fromtimestamp(tool.host.now_us() // _US, UTC)
    if "d" in options:
        moment = _moment(options.get("d"), moment)
    form = "+%a %b %e %H:%M:%S UTC %Y"
    if options.operands:
        form = options.operands[0]
    elif "I" in options:
        form = {"": "+%F", "date": "+%F", "seconds": "+%FT%H:%M:%S+00:00"}.get(options.get("I"), "")
    elif "R" in options:
        form = "+%a, %d %b %Y %H:%M:%S +0000"
    if not form.startswith("+"):
        raise ToolMistake(f"date: '{form or options.get('I')}': not simulated; write +FORMAT")
    await tool.out(_shown(tool, form[1:], moment) + "\n")
    return 0


_KNOWN = "aAbBcCdDeFgGhHIjklmMnpPqrRsStTuUVwWxXyYzZ%N"


def _shown(tool: Tool, form: str, moment: datetime) -> str:
    def directive(found: re.Match[str]) -> str:
        flag, letter = found[1], found[2]
        text = _directive(tool, letter, moment)
        if flag == "-":
            return text.lstrip("0 ") or "0"
        if flag == "_":
            bare = text.lstrip("0") or "0"
            return bare.rjust(len(text))
        if flag == "3" and letter == "N":
            return text[:3]
        return text.upper() if flag == "^" else text

    return re.sub(r"%([-_^03]?)(.)", directive, form, flags=re.DOTALL)


def _directive(tool: Tool, letter: str, moment: datetime) -> str:  # noqa: PLR0912 - a table
    match letter:
        case "N":
            return f"{tool.host.now_us() % _US:06d}000"
        case "s":
            return str(int(moment.timestamp()))
        case "e":
            return f"{moment.day:2d}"
        case "k":
            return f"{moment.hour:2d}"
        case "l":
            return f"{(moment.hour - 1) % 12 + 1:2d}"
        case "P":
            return moment.strftime("%p").lower()
        case "q":
            return str((moment.month + 2) // 3)
        case "z":
            return "+0000"
        case "Z":
            return "UTC"
        case "n" | "t" | "%":
            return {"n": "\n", "t": "\t", "%": "%"}[letter]
        case "c":
            return f"{moment:%a %b} {moment.day:2d} {moment:%H:%M:%S %Y}"
        case "h":
            return f"{moment:%b}"
        case "r":
            return f"{moment:%I:%M:%S %p}"
    if letter not in _KNOWN:
        raise ToolMistake(f"date: %{letter} is not simulated")
    return moment.strftime(f"%{letter}")


_RELATIVE = re.compile(
    r"(.*?)(?:^|\s+|(?<=\d)(?=[-+]))(?:([-+]?)\s*(\d{1,9})\s*|(next|last)\s+)"
    r"(sec|second|min|minute|hour|day|week)s?(\s+ago)?",
    re.ASCII,
)
_TIME_OF_DAY = re.compile(r"(?:^|(.*)\s+)(\d{1,2}):(\d\d)(?::(\d\d))?", re.ASCII)
_DAYS = {"": 0, "now": 0, "today": 0, "tomorrow": 1, "yesterday": -1}
_SECONDS = {
    "sec": 1,
    "second": 1,
    "min": 60,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}


def _moment(text: str, now: datetime) -> datetime:
    """Return the moment that a text of -d names."""
    try:
        return _named_moment(text, now)
    except (ValueError, OverflowError):
        raise ToolMistake(f"date: '{text}': no moment that is simulated") from None


def _named_moment(text: str, now: datetime) -> datetime:
    """Return the moment of a text; a ValueError or OverflowError says that there is none."""
    rest, shift = text.strip(), timedelta()
    if not rest:
        return now.replace(hour=0, minute=0, second=0)
    if found := re.fullmatch(r"@(-?\d{1,12})", rest):
        return datetime.fromtimestamp(int(found[1]), UTC)
    while found := _RELATIVE.fullmatch(rest):
        rest, sign, number, named, unit, ago = found.groups()
        if sign and _TIME_OF_DAY.fullmatch(rest):
            # Behind a time of day a signed number is a time zone.
            raise ValueError(text)
        back = (sign == "-" or named == "last") != bool(ago)
        seconds = int(number or 1) * _SECONDS[unit]
        shift += timedelta(seconds=-seconds if back else seconds)
    if rest in _DAYS:
        return now + timedelta(days=_DAYS[rest]) + shift
    if found := _TIME_OF_DAY.fullmatch(rest):
        day, hour, minute, second = found.groups()
        if (day or "") in _DAYS:
            moment = now.replace(hour=int(hour), minute=int(minute), second=int(second or 0))
            return moment + timedelta(days=_DAYS[day or ""]) + shift
    return datetime.fromisoformat(rest.replace("/", "-")).replace(tzinfo=UTC) + shift


async def hostname(tool: Tool, options: Options) -> int:
    """Write the name of the node."""
    name = tool.host.facts()["HOSTNAME"]
    if "i" in options or "I" in options:
        await tool.out(f"{_ADDRESS}{' ' * ('I' in options)}\n")
        return 0
    await tool.out((name.partition(".")[0] if "s" in options else name) + "\n")
    return 0


async def nproc(tool: Tool, options: Options) -> int:
    """Write how many processors the step has."""
    cpus, ignored = tool.env.get("SLURM_CPUS_ON_NODE", "1"), options.get("i", "0")
    if not re.fullmatch(r"\d{1,9}", ignored):
        raise ToolMistake(f"nproc: invalid number: '{ignored}'")
    known = int(cpus) if re.fullmatch(r"\d{1,9}", cpus) else 1
    await tool.out(f"{max(1, known - int(ignored))}\n")
    return 0


async def whoami(tool: Tool, options: Options) -> int:
    """Write the user's name."""
    await tool.out(tool.host.facts()["USER"] + "\n")
    return 0


async def identity(tool: Tool, options: Options) -> int:
    """Write number or name of a user or of a user's group; each user has a group of that name."""
    facts = tool.host.facts()
    if "u" not in options and "g" not in options:
        raise ToolMistake("id: only -u, -g and -n are simulated")
    who = options.operands[0] if options.operands else facts["UID"]
    for name, uid, gid, _ in tool.host.users():
        if who in (name, str(uid)):
            number = uid if "u" in options else gid
            await tool.out(f"{name if 'n' in options else number}\n")
            return 0
    if options.operands:
        raise ToolMistake(f"id: '{who}': no such user")
    await tool.out((facts["USER"] if "n" in options else facts["UID"]) + "\n")
    return 0


async def getent(tool: Tool, options: Options) -> int:
    """Write what is known of users or of their groups: all, or those that are named."""
    if not options.operands:
        raise ToolMistake("getent: wrong number of arguments")
    database, *names = options.operands
    if database not in ("passwd", "group"):
        raise ToolMistake(
            f"getent: Unknown database: {database}; passwd and group are simulated", 1
        )
    lines: dict[str, str] = {}
    for name, uid, gid, home in tool.host.users():
        number = uid if database == "passwd" else gid
        rest = f"{uid}:{gid}::{home}:/bin/bash" if database == "passwd" else f"{gid}:"
        lines |= dict.fromkeys((name, str(number)), f"{name}:x:{rest}")
    wanted = names or list(dict.fromkeys(line.partition(":")[0] for line in lines.values()))
    found = [lines.get(each, "") for each in wanted]
    await tool.out("".join(f"{line}\n" for line in found if line))
    return 0 if all(found) else _NO_KEY


async def uname(tool: Tool, options: Options) -> int:
    """Write what system this is."""
    known = {
        "s": "Linux",
        "n": tool.host.facts()["HOSTNAME"],
        "m": "x86_64",
        "o": "GNU/Linux",
    }
    letters = [letter for letter in "snmo" if letter in options] or ["s"]
    await tool.out(" ".join(known[letter] for letter in letters) + "\n")
    return 0


async def which(tool: Tool, options: Options) -> int:
    """Write where programs are."""
    status = 0
    for name in options.operands:
        if not tool.host.has_program(name):
            status = 1
        elif "s" not in options:
            await tool.out((name if "/" in name else f"/usr/bin/{name}") + "\n")
    return status


async def printenv(tool: Tool, options: Options) -> int:
    """Write the environment, or single variables of it."""
    if not options.operands:
        await tool.out(joined([f"{name}={text}" for name, text in tool.env.items()]))
        return 0
    found = [tool.env[name] for name in options.operands if name in tool.env]
    await tool.out(joined(found))
    return 0 if len(found) == len(options.operands) else 1


async def env(tool: Tool, options: Options) -> int:
    """Write the environment, or run a program with another."""
    variables = {} if "i" in options else dict(tool.env)
    for name in options.all("u"):
        variables.pop(name, None)
    words = list(options.operands)
    while words and "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    if not words:
        await tool.out(joined([f"{name}={text}" for name, text in variables.items()]))
        return 0
    return await tool.host.run(tuple(words), variables, tool.redirects)


async def plainly(tool: Tool, options: Options) -> int:
    """Run a program: that it cannot be hung up, or runs nicely, changes nothing here."""
    words = tuple(options.operands)
    if not words:
        raise ToolMistake(f"{tool.name}: missing operand", 125)
    return await tool.host.run(words, tool.env, tool.redirects)


async def nohup(tool: Tool, options: Options) -> int:
    """Run a program that ignores SIGHUP."""
    tool.host.set_trap(1, "ignore")
    return await plainly(tool, options)


async def timeout(tool: Tool, options: Options) -> int:
    """Run a program, and signal it once its time is up."""
    if len(options.operands) < 2:  # noqa: PLR2004 - a length and a program
        raise ToolMistake("timeout: missing operand", 125)
    length_us = _length_us(options.operands[0])
    try:
        signal = signal_number(options.get("s", "TERM"))
    except SignalError as mistake:
        raise ToolMistake(f"timeout: {mistake}", 125) from None
    pid = tool.host.start(tuple(options.operands[1:]), tool.env, tool.redirects)
    began_us = tool.host.now_us()
    if not length_us:
        await tool.host.wait((pid,), interruptible=False)
        return tool.host.status(pid)
    if await tool.host.wait((pid,), interruptible=False, until_us=began_us + length_us):
        return tool.host.status(pid)
    tool.host.kill(pid, signal)
    if "k" in options:
        until_us = began_us + length_us + _length_us(options.get("k"))
        if not await tool.host.wait((pid,), interruptible=False, until_us=until_us):
            tool.host.kill(pid, SIGKILL)
            signal = SIGKILL
    await tool.host.wait((pid,), interruptible=False)
    if signal == SIGKILL:
        return 128 + SIGKILL
    return tool.host.status(pid) if "p" in options else _TIMED_OUT


def _length_us(text: str) -> int:
    found = _LENGTH.fullmatch(text)
    if not found:
        raise ToolMistake(f"timeout: invalid time interval '{text}'", 125)
    return round(float(found[1]) * _UNITS[found[2]] * _US)


async def xargs(tool: Tool, options: Options) -> int:
    """Run a program with what the input holds as its arguments."""
    text = await tool.text()
    items = _items(text, options)
    command = list(options.operands) or ["echo"]
    quiet = "r" in options
    place = options.get("I")
    if place:
        runs = [[word.replace(place, item) for word in command] for item in items]
    else:
        most = int(options.get("n")) if options.get("n").isdecimal() else 0
        if options.get("L").isdecimal():
            lines = [_items(line, options) for line in text.split("\n") if line.strip()]
            count = int(options.get("L"))
            groups = [
                [item for line in lines[at : at + count] for item in line]
                for at in range(0, len(lines), count)
            ]
        elif most:
            groups = [items[at : at + most] for at in range(0, len(items), most)]
        else:
            groups = [items] if items or not quiet else []
        if not groups and not quiet:
            groups = [[]]
        runs = [command + group for group in groups]
    beside = int(options.get("P", "1")) if options.get("P", "1").isdecimal() else 1
    return await _run_all(tool, runs, max(1, beside or len(runs)))


async def _run_all(tool: Tool, runs: list[list[str]], beside: int) -> int:
    """Run command lines, so many beside each other; tell as xargs does how they ended."""
    nothing = tool.host.open("/dev/null", "read")
    redirects = tool.redirects
    if not isinstance(nothing, str):
        redirects = Redirects(
            stdin=nothing, stdout=redirects.stdout, stderr=redirects.stderr, more=redirects.more
        )
    status = 0
    going: list[int] = []
    left = list(reversed(runs))
    while left or going:
        while left and len(going) < beside:
            going.append(tool.host.start(tuple(left.pop()), tool.env, redirects))
        pid = await tool.host.wait(tuple(going), interruptible=False)
        going.remove(pid)
        ended = tool.host.status(pid)
        if ended in (126, 127):
            return ended
        if ended == 255:  # noqa: PLR2004 - as its manual has it
            return 124
        if ended > 128:  # noqa: PLR2004 - a signal
            return 125
        status = 123 if ended else status
    return status


_ITEM = re.compile(r"(?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s'\"\\])+", re.DOTALL)
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"|\\(.)", re.DOTALL)


def _items(text: str, options: Options) -> list[str]:
    """Split the input of xargs into arguments."""
    if "0" in options:
        return text.split("\0")[: None if not text.endswith("\0") else -1]
    if "d" in options:
        delimiter = escapes.formatted(options.get("d"))[:1]
        return text.removesuffix(delimiter).split(delimiter) if text else []
    if "I" in options:
        lines = [line.lstrip(" \t") for line in text.split("\n") if line.strip()]
        return [_unquoted(line) for line in lines]
    bare = re.sub(r"(?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^'\"\\])", "", text, flags=re.DOTALL)
    if bare:
        raise ToolMistake("xargs: unmatched quote; by default quotes are special")
    return [_unquoted(found[0]) for found in _ITEM.finditer(text)]


def _unquoted(text: str) -> str:
    return _QUOTED.sub(lambda found: found[1] or found[2] or found[3] or "", text)


async def expr(tool: Tool, options: Options) -> int:
    """Compute an expression of words."""
    words = list(tool.argv[1:])
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        raise ToolMistake("expr: missing operand", 2)
    reader = _Expression(words)
    value = reader.choice()
    if reader.at < len(words):
        raise ToolMistake(f"expr: syntax error: unexpected argument '{words[reader.at]}'", 2)
    await tool.out(f"{value}\n")
    return 1 if value == "" or re.fullmatch("-?0+", value) else 0


_ORDERS = {"<": (-1,), "<=": (-1, 0), "=": (0,), "==": (0,), "!=": (-1, 1), ">=": (0, 1), ">": (1,)}
"""How the left operand of a comparison may stand to the right one: before, the same, behind."""


class _Expression:
    """Reads the words of expr."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.at = 0
        self.depth = 0

    def _take(self, *wanted: str) -> str:
        if self.at < len(self.words) and self.words[self.at] in wanted:
            self.at += 1
            return self.words[self.at - 1]
        return ""

    @staticmethod
    def _null(value: str) -> bool:
        return value == "" or re.fullmatch("-?0+", value) is not None

    def choice(self) -> str:
        """Read values joined by ``|``."""
        value = self.both()
        while self._take("|"):
            right = self.both()
            if self._null(value):
                value = right if not self._null(right) else "0"
        return value

    def both(self) -> str:
        """Read values joined by ``&``."""
        value = self.compared()
        while self._take("&"):
            right = self.compared()
            value = "0" if self._null(value) or self._null(right) else value
        return value

    def compared(self) -> str:
        """Read comparisons: of numbers where both are, else of texts."""
        value = self.summed()
        while sign := self._take("<", "<=", "=", "==", "!=", ">=", ">"):
            right = self.summed()
            if _is_whole(value) and _is_whole(right):
                order = (int(value) > int(right)) - (int(value) < int(right))
            else:
                order = (value > right) - (value < right)
            value = "1" if order in _ORDERS[sign] else "0"
        return value

    def summed(self) -> str:
        """Read sums."""
        value = self.multiplied()
        while sign := self._take("+", "-"):
            right = self.multiplied()
            left_number, right_number = _whole(value), _whole(right)
            value = str(left_number + right_number if sign == "+" else left_number - right_number)
        return value

    def multiplied(self) -> str:
        """Read products."""
        value = self.matched()
        while sign := self._take("*", "/", "%"):
            right = self.matched()
            left_number, right_number = _whole(value), _whole(right)
            if sign != "*" and not right_number:
                raise ToolMistake("expr: division by zero", 2)
            if sign == "*":
                value = str(left_number * right_number)
            else:
                quotient = abs(left_number) // abs(right_number)
                quotient *= 1 if (left_number < 0) == (right_number < 0) else -1
                value = str(quotient if sign == "/" else left_number - right_number * quotient)
        return value

    def matched(self) -> str:
        """Read matches, ``text : expression``."""
        value = self.single()
        while self._take(":"):
            value = _match(value, self.single())
        return value

    def single(self) -> str:
        """Read one value."""
        self.depth += 1
        if self.at >= len(self.words) or self.depth > 100:  # noqa: PLR2004 - nobody nests so deep
            raise ToolMistake("expr: syntax error: missing argument", 2)
        word = self.words[self.at]
        self.at += 1
        try:
            match word:
                case "(":
                    value = self.choice()
                    if not self._take(")"):
                        raise ToolMistake("expr: syntax error: expecting ')'", 2)
                    return value
                case "length" if self.at < len(self.words):
                    return str(len(self.single()))
                case "substr" if self.at < len(self.words):
                    text, first, length = self.single(), self.single(), self.single()
                    if not (_is_whole(first) and _is_whole(length)) or int(first) < 1:
                        return ""
                    return text[int(first) - 1 : int(first) - 1 + max(0, int(length))]
                case "index" if self.at < len(self.words):
                    text, chars = self.single(), self.single()
                    places = [place for place, char in enumerate(text, start=1) if char in chars]
                    return str(places[0] if places else 0)
                case "match" if self.at < len(self.words):
                    return _match(self.single(), self.single())
                case "+" if self.at < len(self.words):
                    self.at += 1
                    return self.words[self.at - 1]
        finally:
            self.depth -= 1
        return word


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,1000}", text) is not None


def _whole(text: str) -> int:
    if not _is_whole(text):
        raise ToolMistake("expr: non-integer argument", 2)
    return int(text)


def _match(text: str, expression: str) -> str:
    try:
        found = regular(f"^{expression.removeprefix('^')}", extended=False).search(text)
    except RegularMistake as mistake:
        raise ToolMistake(f"expr: {mistake}", 2) from None
    has_group = "\\(" in expression
    if found is None:
        return "" if has_group else "0"
    return found.texts[1] if has_group else str(found.end)


async def yes(tool: Tool, options: Options) -> int:
    """Write a line until nobody reads it."""
    line = " ".join(options.operands or ("y",)) + "\n"
    while True:
        await tool.out(line * 512)
