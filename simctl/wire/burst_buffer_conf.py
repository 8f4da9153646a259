"""burst_buffer.conf: its keys, what their values may be, and where the file lies."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from simctl.wire.conf import values as read
from simctl.wire.conf.readers import did_you_mean
from simctl.wire.ids import NO_VAL

BYTES: Final = "bytes"
NODES: Final = "nodes"
FLAGS: Final = (
    "DisablePersistent",
    "EnablePersistent",
    "EmulateCray",
    "PrivateData",
    "TeardownFailure",
    "SetExecHost",
)
"""Words of Flags, in the order of their bits."""

_SIZE: Final = re.compile(r"([0-9]{1,18})\s*([A-Za-z]*)")
_POWERS: Final = {letter: power for power, letter in enumerate("kmgtp", 1)}


def size(text: str) -> tuple[int, str]:
    """Read a size: a number and BYTES, or a number and NODES.

    ``k`` and ``kib`` are 1024 bytes, ``kb`` is 1000, and so on up to ``p``; ``n`` counts nodes.

    Raises:
        ValueError: The text is no size.
    """
    match = _SIZE.fullmatch(text)
    number, unit = (int(match[1]), match[2].casefold()) if match else (0, "?")
    if unit in ("", "b"):
        return number, BYTES
    if unit in ("n", "node", "nodes"):
        return number, NODES
    power = _POWERS.get(unit[0])
    if power is None or unit[1:] not in ("", "b", "ib"):
        raise ValueError(f'expected a size such as 512, 200G or 16N, got "{text}"')
    return number * (1000 if unit[1:] == "b" else 1024) ** power, BYTES


def flags(text: str) -> tuple[str, ...]:
    """Read the words of Flags, whatever their case."""
    known = {flag.casefold(): flag for flag in FLAGS}
    for word in read.words(text):
        if word.casefold() not in known:
            raise ValueError(f'"{word}" is none of Flags{did_you_mean(word, set(FLAGS))}')
    return tuple(known[word.casefold()] for word in read.words(text))


_SECONDS: Final = read.whole(0, NO_VAL - 1)
KEYS: Final[Mapping[str, Callable[[str], Any]]] = {
    "AllowUsers": read.words,
    "AltPool": str,
    "CreateBuffer": str,
    "DefaultPool": str,
    "DenyUsers": read.words,
    "DestroyBuffer": str,
    "Directive": str,
    "Flags": flags,
    "GetSysState": str,
    "GetSysStatus": str,
    "Granularity": size,
    "OtherTimeout": _SECONDS,
    "PollInterval": _SECONDS,
    "Pools": read.words,
    "StageInTimeout": _SECONDS,
    "StageOutTimeout": _SECONDS,
    "StartStageIn": str,
    "StartStageOut": str,
    "StopStageIn": str,
    "StopStageOut": str,
    "ValidateTimeout": _SECONDS,
}
"""The keys of burst_buffer.conf, and how each is read."""

NAMES: Final[Mapping[str, str]] = {key.casefold(): key for key in KEYS}
"""The keys as Slurm writes them, by what is compared of a key."""

FOLDER: Final = "/etc/slurm"
"""Where slurmctld's host has the file."""

_ESCAPED: Final = re.compile(r"[\\#]")


def file_name(plugin_name: str) -> str:
    """Return what the file of one plugin is called, or with no name, the file of all of them."""
    return f"burst_buffer_{plugin_name}.conf" if plugin_name else "burst_buffer.conf"


def check_writable(text: str) -> str:
    """Return a value that can stand in the file.

    Raises:
        ValueError: It cannot: nothing can be said in quotes with a quote or a line's end.
    """
    if not text or '"' in text or not text.isprintable():
        raise ValueError("expected a text on one line, without double quotes")
    return text


def write_conf(values: Mapping[str, str]) -> str:
    """Return the text of a file that says this."""
    return "".join(f"{key}={_written(value)}\n" for key, value in values.items())


def _written(value: str) -> str:
    quote = '"' if " " in value else ""
    return quote + _ESCAPED.sub(lambda found: f"\\{found[0]}", value) + quote
