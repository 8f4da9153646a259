"""The shapes of single words: numbers, texts, choices, lengths of time."""

import re
from typing import Final

from simctl import __version__
from simctl.kernel.pattern import near
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.scenario.positions import Reading, Value
from simctl.scenario.shapes import Scalar
from simctl.wire.burst_buffer_conf import BYTES
from simctl.wire.burst_buffer_conf import size as read_size


def whole(expected: str, *, least: int, most: int = 2**63 - 1) -> Scalar[int]:
    """Return the shape of a whole number in decimal digits."""

    def convert(value: Value, reading: Reading) -> int:
        text = value.scalar
        if value.quoted and _WHOLE.fullmatch(text):
            raise ValueError(f'expected {expected}, got the text "{text}"; leave out the quotes')
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise ValueError
        return int(text)

    return Scalar(
        expected=expected,
        convert=convert,
        json={"type": "integer", "minimum": least, "maximum": most},
    )


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")


def _needed_version(value: Value, _: Reading) -> str:
    if not _VERSION.fullmatch(value.scalar):
        raise ValueError
    if _parts(value.scalar) > _parts(__version__):
        raise ValueError(
            f"the scenario is for simctl {value.scalar} or newer, and this is {__version__}: "
            "install a newer slurm-simctl"
        )
    return value.scalar


def _parts(version: str) -> tuple[int, ...]:
    """Return a version as it is compared: 0.2 is 0.2.0."""
    numbers = tuple(map(int, version.split(".")))
    return (*numbers, 0, 0)[:3]


_VERSION: Final = re.compile(r"[0-9]{1,6}\.[0-9]{1,6}(\.[0-9]{1,6})?")

SIMCTL_VERSION: Final = Scalar(
    expected="a version of simctl such as 0.2 or 0.2.1",
    convert=_needed_version,
    json={"type": ["string", "number"], "pattern": _VERSION.pattern},
)
"""The version of simctl that a scenario needs at least."""


def text(expected: str, *, empty: bool = False) -> Scalar[str]:
    """Return the shape of a text; numbers and words are taken as they are written."""

    def convert(value: Value, reading: Reading) -> str:
        if not value.scalar and not empty:
            raise ValueError
        return value.scalar

    return Scalar(
        expected=expected, convert=convert, json={"type": ["string", "number", "boolean"]}
    )


def size(expected: str, *, least: int) -> Scalar[int]:
    """Return the shape of a number of bytes."""

    def convert(value: Value, _: Reading) -> int:
        number, unit = read_size(value.scalar)
        if unit != BYTES:
            raise ValueError(f"expected {expected} in bytes, got a number of nodes")
        if number < least:
            raise ValueError
        return number

    return Scalar(expected=expected, convert=convert, json={"type": ["integer", "string"]})


def choice(*names: str) -> Scalar[str]:
    """Return the shape of one word out of a few."""

    def convert(value: Value, reading: Reading) -> str:
        if value.scalar not in names:
            raise ValueError(f"{expected}, got {value.shown()}{near(value.scalar, names)}")
        return value.scalar

    expected = f"expected {' or '.join(names)}"
    return Scalar(expected=" or ".join(names), convert=convert, json={"enum": list(names)})


def _read_boolean(value: Value, reading: Reading) -> bool:
    if value.quoted or value.scalar.lower() not in _BOOLEANS:
        raise ValueError
    return _BOOLEANS[value.scalar.lower()]


_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False}
BOOLEAN: Final = Scalar(expected="true or false", convert=_read_boolean, json={"type": "boolean"})


def _read_duration(value: Value, reading: Reading) -> int:
    try:
        return parse_duration_us(value.scalar)
    except DurationError as error:
        raise ValueError(str(error)) from error


DURATION: Final = Scalar(
    expected="a length of time such as 30s",
    convert=_read_duration,
    json={"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]},
)
