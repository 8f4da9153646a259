"""Readers of the values of slurm.conf's keys: what YAML or a line gave, to what a field holds.

A reader raises `Refused` with every reason why a value cannot be taken.
"""

import difflib
import re
from collections.abc import Callable, Collection
from typing import Final

import attrs

from simctl.wire.ids import INFINITE

Reader = Callable[[object], object]

UINT16_MAX: Final = 0xFFFF
NOT_SIMULATED: Final = "not simulated yet"


class Refused(Exception):
    """A value cannot be taken, for the reasons given as arguments."""

    args: tuple[str, ...]


def quoted(value: object) -> str:
    """Return a value as it is shown in an error: a text in quotes."""
    return f'"{value}"' if isinstance(value, str) else str(value)


def text(value: object) -> str:
    """Read a text; a number, which YAML makes of digits, is one too."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        shown = "nothing" if value in (None, "") else quoted(value)
        message = f"expected a text, got {shown}"
        raise Refused(message)
    return str(value)


def optional_text(value: object) -> str:
    """Read a text that may be missing."""
    return "" if value is None or value == "" else text(value)


def host_name(text: str) -> str:
    """Return the host of a value of SlurmctldHost, without the address it may have."""
    return text.partition("(")[0].strip()


_CONTROLLERS: Final = 2


def controllers(value: object) -> tuple[str, ...]:
    """Read SlurmctldHost: the primary, and the backup if there is one, each with its address."""
    hosts = tuple(host_name(text(each)) for each in (value if isinstance(value, list) else [value]))
    if len(hosts) > _CONTROLLERS:
        raise Refused("one backup controller is simulated; name the primary and one other host")
    if not hosts or not all(hosts):
        raise Refused("expected the host of the primary, or a list of it and of the backup's")
    if len(set(hosts)) < len(hosts):
        raise Refused(f"{hosts[0]} cannot be both the primary and its backup")
    return hosts


def script(value: object) -> str:
    """Read the path of a script; "(null)" is how Slurm prints that there is none."""
    return "" if value is None or str(value).strip() in ("", "(null)") else text(value)


def number(lowest: int, highest: int) -> Callable[[object], int]:
    """Return a reader of whole numbers in a range."""

    def read(value: object) -> int:
        text = str(value).strip()
        whole = not isinstance(value, bool | float) and re.fullmatch(r"[0-9]+", text)
        if not whole or not lowest <= int(text) <= highest:
            shown = "nothing" if value in (None, "") else quoted(value)
            message = f"expected a whole number from {lowest} to {highest}, got {shown}"
            raise Refused(message)
        return int(text)

    return read


def flag(value: object) -> bool:
    """Read 0 or 1."""
    try:
        return number(0, 1)(value) == 1
    except Refused:
        message = f"expected 0 or 1, got {quoted(value)}"
        raise Refused(message) from None


def enforced(value: object) -> str:
    """Read EnforcePartLimits; YES is ANY, as in Slurm."""
    text = ("YES" if value else "NO") if isinstance(value, bool) else str(value).upper()
    if text in ("YES", "UP", "TRUE", "1", "ANY"):
        return "ANY"
    if text in ("NO", "DOWN", "FALSE", "0", "ALL"):
        return "ALL" if text == "ALL" else "NO"
    message = f"expected ALL, ANY or NO, got {quoted(value)}"
    raise Refused(message)


def over_time_limit(value: object) -> int:
    """Read a number of minutes, or INFINITE for UNLIMITED."""
    if str(value).upper() in {"UNLIMITED", "INFINITE"}:
        return INFINITE
    try:
        return number(0, UINT16_MAX - 1)(value)
    except Refused as error:
        message = f"{error.args[0]}; a number of minutes, or UNLIMITED"
        raise Refused(message) from None


_CODES: Final = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")

_LAST_CODE: Final = 255


@attrs.frozen
class ExitCodes:
    """Some exit codes, as RequeueExit lists them: ``1,5-8``."""

    text: str = ""
    codes: frozenset[int] = frozenset()

    def __str__(self) -> str:
        """Write the codes as slurm.conf does."""
        return self.text


def exit_codes(value: object) -> ExitCodes:
    """Read single exit codes and ranges of them that stand apart by commas."""
    text = "" if value is None else str(value).replace(" ", "")
    codes: set[int] = set()
    for part in filter(None, text.split(",")):
        match = _CODES.fullmatch(part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if high > _LAST_CODE or low > high:
            message = f'expected exit codes from 0 to {_LAST_CODE}, such as 1,5-8, got "{value}"'
            raise Refused(message)
        codes.update(range(low, high + 1))
    return ExitCodes(text, frozenset(codes))


def plugin_type(kind: str) -> Callable[[object], str]:
    """Return a reader of plugin types of one kind; whether the plugin exists shows at its load."""

    def read(value: object) -> str:
        text = optional_text(value)
        if not re.fullmatch(rf"{kind}/[A-Za-z0-9_.+-]+", text):
            hint = f"; did you mean {kind}/{text}?" if re.fullmatch(r"\w+", text) else ""
            shown = quoted(text) if text else "nothing"
            message = f"expected {kind}/NAME, such as {kind}/none, got {shown}{hint}"
            raise Refused(message)
        return text

    return read


def burst_buffer_types(value: object) -> tuple[str, ...]:
    """Read the plugins of a list; "none" and "(null)" are how Slurm says that there are none."""
    text = "" if value is None else str(value).strip()
    if text.casefold() in ("", "none", "(null)"):
        return ()
    found: list[str] = []
    for word in map(str.strip, text.split(",")):
        found.append(plugin_type("burst_buffer")(word))
        if found.count(word) > 1:
            raise Refused(f"{word} is given twice")
    return tuple(found)


def plugin_names(kind: str) -> Callable[[object], tuple[str, ...]]:
    """Return a reader of a list of plugins of one kind, named with it or without it."""

    def read(value: object) -> tuple[str, ...]:
        text = "" if value is None else str(value).strip()
        if text.casefold() in ("", "none", "(null)"):
            return ()
        found: list[str] = []
        for word in map(str.strip, text.split(",")):
            found.append(plugin_type(kind)(word if "/" in word else f"{kind}/{word}"))
            if found.count(found[-1]) > 1:
                raise Refused(f"{word} is given twice")
        return tuple(found)

    return read


ALWAYS_TRACKED: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")

TRACKED_KINDS: Final = ("fs", "gres", "ic", "license")


def tracked(value: object) -> tuple[str, ...]:
    """Read what is to be counted: burst buffers beside what always is."""
    found: list[str] = []
    for word in filter(None, map(str.strip, script(value).split(","))):
        folded = word.casefold()
        if folded in ALWAYS_TRACKED:
            continue
        kind, _, name = word.partition("/")
        if kind.casefold() == "bb" and name:
            found.append(f"bb/{name}")
        elif name and kind.casefold() in TRACKED_KINDS:
            raise Refused(f"{word} is known to Slurm but not simulated yet; bb/NAME is")
        else:
            hint = did_you_mean(word, {*ALWAYS_TRACKED, "bb/generic", "bb/datawarp"})
            raise Refused(f'"{word}" is nothing that AccountingStorageTRES counts{hint}')
    return tuple(dict.fromkeys(found))


def one_of(kind: str, built: tuple[str, ...], others: tuple[str, ...]) -> Callable[[object], str]:
    """Return a reader that takes some plugin types and tells Slurm's others from unknown ones."""
    are = f"{' and '.join(built)} {'is' if len(built) == 1 else 'are'}"

    def read(value: object) -> str:
        text = optional_text(value)
        if text in built:
            return text
        if text in others:
            message = f"{text} is known to Slurm but not simulated yet; {are}"
            raise Refused(message)
        known = (*built, *others)
        near = difflib.get_close_matches(text, (*known, *_short(known)), n=1)
        hint = f"; did you mean {_full(kind, near[0])}?" if near else ""
        shown = quoted(text) if text else "nothing"
        message = f"expected {' or '.join(built)}, got {shown}{hint}"
        raise Refused(message)

    return read


def _short(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.partition("/")[2] for name in names)


def _full(kind: str, name: str) -> str:
    return name if "/" in name else f"{kind}/{name}"


_SELECT_WORDS: Final = ("CR_CPU", "CR_CPU_MEMORY", "CR_CORE", "CR_CORE_MEMORY", "CR_MEMORY")

_SELECT_UNBUILT: Final = frozenset(
    """
    CR_SOCKET CR_SOCKET_MEMORY CR_BOARD CR_ONE_TASK_PER_CORE CR_CORE_DEFAULT_DIST_BLOCK CR_LLN
    CR_PACK_NODES OTHER_CONS_RES OTHER_CONS_TRES NHC_NO NHC_NO_STEPS NHC_ABSOLUTELY_NO
    """.split()
)


def select_parameters(value: object) -> str:
    """Read SelectTypeParameters: what is shared out; cores are cpus, with one thread each."""
    words = [word for word in optional_text(value).upper().split(",") if word]
    for word in words:
        if word not in _SELECT_WORDS:
            if word in _SELECT_UNBUILT:
                raise Refused(f"{word} is known to Slurm but not simulated yet")
            raise Refused(f'"{word}" is no word of SelectTypeParameters; {_and(_SELECT_WORDS)} are')
    if len(words) > 1:
        raise Refused(f"{' and '.join(words)} exclude each other")
    return "".join(words)


def _and(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def names(value: object) -> tuple[str, ...]:
    """Read names that stand apart by commas."""
    return tuple(word.strip() for word in optional_text(value).split(",") if word.strip())


_PREEMPT_UNBUILT: Final = frozenset({"GANG", "WITHIN"})

PREEMPT_MODES: Final = ("OFF", "CANCEL", "CHECKPOINT", "REQUEUE", "SUSPEND")


def read_preempt_mode(value: object) -> str:
    """Read PreemptMode.

    Raises:
        ValueError: It is none, or not simulated.
    """
    text = optional_text(value).upper()
    if text in PREEMPT_MODES:
        return text
    if {word for word in text.split(",") if word} & _PREEMPT_UNBUILT:
        raise ValueError(f"{text} is known to Slurm but not simulated yet")
    raise ValueError(f"expected {', '.join(PREEMPT_MODES[:-1])} or SUSPEND, got {quoted(text)}")


def preempt_mode(value: object) -> str:
    """Read the cluster's PreemptMode; SUSPEND stands beside GANG, which lets jobs go on again."""
    words = {word.strip() for word in optional_text(value).upper().split(",")}
    if words == {"SUSPEND", "GANG"}:
        return "SUSPEND"
    if words == {"SUSPEND"}:
        raise Refused("SUSPEND needs GANG beside it, which resumes the jobs: SUSPEND,GANG")
    try:
        return read_preempt_mode(value)
    except ValueError as error:
        raise Refused(str(error)) from None


def did_you_mean(name: str, known: set[str]) -> str:
    """Return a hint at the name nearest to *name*, whatever its case, or nothing."""
    folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f"; did you mean {folded[near[0]]}?" if near else ""


def one_built_of(key: str, built: str, known: Collection[str]) -> Callable[[object], str]:
    """Return a reader of a list of words of *key* of which one is built, others known to Slurm."""

    def read(value: object) -> str:
        found = ""
        for word in filter(None, map(str.strip, script(value).split(","))):
            if word.casefold() == built.casefold():
                found = built
            elif word.casefold() in map(str.casefold, known):
                raise Refused(f"{word} is known to Slurm but not simulated yet; {built} is")
            elif word.casefold() != "none":
                hint = did_you_mean(word, {built, *known})
                raise Refused(f'"{word}" is no word of {key}{hint}')
        return found

    return read
