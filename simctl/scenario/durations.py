"""Lengths of time as people write them, in whole microseconds."""

import math
import re
from decimal import Decimal
from typing import Final

UNITS_US: Final = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
MAX_US: Final = 100_000 * UNITS_US["d"]
"""Longest length accepted: about 270 years, so that sums of a few still fit 64 bits."""

MAX_LENGTH: Final = 40
"""Most characters of a length of time, so that no number in it is absurd."""

FORMS: Final = "write it as 30s, 5m, 2h, 1d, 5ms, 100us, 1:00:00, 1-00:00:00 or a number of seconds"

_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_UNIT_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) *([a-zA-Z]+) *")
_CLOCK: Final = re.compile(r"(?:[0-9]+-)?[0-9]+(?::[0-9]+){0,2}(?:\.[0-9]+)?")
_SIXTY: Final = 60
_DAY_HOURS: Final = 24
_CLOCK_PARTS: Final = 3


class DurationError(ValueError):
    """A length of time that cannot be read; the message says what would do."""


def parse_duration_us(value: str | int | float) -> int:
    """Read a length of time.

    A number without a unit counts seconds. Units may follow each other, longest first: `1h30m`.
    With colons it is a clock: `10:00` is ten minutes, `1:00:00` an hour, `1-12` a day and a half.

    Returns:
        Microseconds, zero or more.

    Raises:
        DurationError: not a length of time, negative, or finer than a microsecond.
    """
    us = _read_number(value) if isinstance(value, int | float) else _read_text(value.strip())
    if us < 0:
        raise DurationError(f"expected a length of time of zero or more, got {value!r}")
    if us > MAX_US:
        raise DurationError(f"{value!r} is longer than 100000 days, the longest length of time")
    if us != us.to_integral_value():
        raise DurationError(
            f"{value!r} is finer than a microsecond (us), the smallest step of time"
        )
    return int(us)


def _read_number(value: float) -> Decimal:
    if isinstance(value, bool) or not math.isfinite(value):
        raise DurationError(f"expected a length of time, got {str(value).lower()}: {FORMS}")
    return Decimal(str(value)) * UNITS_US["s"]


def _read_text(text: str) -> Decimal:
    if text.startswith("-") and text[1:2] not in {"", "-"}:
        return -_read_text(text[1:])
    if len(text) > MAX_LENGTH:
        raise DurationError(f"expected a length of time, got {len(text)} characters: {FORMS}")
    if _NUMBER.fullmatch(text):
        return Decimal(text) * UNITS_US["s"]
    return _read_clock(text) if _CLOCK.fullmatch(text) else _read_units(text)


def _read_units(text: str) -> Decimal:
    total, position, last_unit_us = Decimal(0), 0, MAX_US
    while part := _UNIT_PART.match(text, position):
        number, unit = part.groups()
        if unit not in UNITS_US:
            raise DurationError(f"unknown unit {unit!r} in {text!r}: use one of {_units()}")
        if UNITS_US[unit] >= last_unit_us:
            raise DurationError(
                f"the units of {text!r} must go from longest to shortest, each once"
            )
        last_unit_us = UNITS_US[unit]
        total += Decimal(number) * last_unit_us
        position = part.end()
    if position == 0 or position < len(text):
        raise DurationError(f"expected a length of time, got {text!r}: {FORMS}")
    return total


def _units() -> str:
    return ", ".join(UNITS_US)


def _read_clock(text: str) -> Decimal:
    """Read `D-HH[:MM[:SS]]`, `HH:MM:SS` or `MM:SS`; the first number of a clock is unbounded."""
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    while len(parts) < _CLOCK_PARTS:
        parts = [*parts, "0"] if dash else ["0", *parts]
    hours, minutes, seconds = parts
    if "." in hours + minutes:
        raise DurationError(f"{text!r}: only the seconds of a clock may have decimals")
    if Decimal(seconds) >= _SIXTY:
        raise DurationError(f"{text!r}: seconds go from 0 to 59 behind a colon")
    if int(minutes) >= _SIXTY and (dash or int(hours)):
        raise DurationError(f"{text!r}: minutes go from 0 to 59 behind hours")
    if dash and int(hours) >= _DAY_HOURS:
        raise DurationError(f"{text!r}: hours go from 0 to 23 behind days")
    whole_minutes = (int(days or 0) * _DAY_HOURS + int(hours)) * _SIXTY + int(minutes)
    return Decimal(whole_minutes) * UNITS_US["m"] + Decimal(seconds) * UNITS_US["s"]


def format_us(us: int) -> str:
    """Write a length of time for people, exactly: `parse_duration_us` reads it back.

    Below a second as `100us` or `5ms`, below a minute as `1.5s`, then `0:05:00` and `1-02:00:00`.
    """
    if us < 0:
        return f"-{format_us(-us)}"
    if us == 0:
        return "0s"
    if us < UNITS_US["s"]:
        return f"{us // UNITS_US['ms']}ms" if us % UNITS_US["ms"] == 0 else f"{us}us"
    seconds, fraction_us = divmod(us, UNITS_US["s"])
    fraction = f".{fraction_us:06}".rstrip("0") if fraction_us else ""
    if us < UNITS_US["m"]:
        return f"{seconds}{fraction}s"
    return format_moment(us)


def format_moment(us: int) -> str:
    """Write a moment of virtual time as a clock, exactly: `0:00:30.0004`, `1-02:00:00`."""
    seconds, fraction_us = divmod(us, UNITS_US["s"])
    fraction = f".{fraction_us:06}".rstrip("0") if fraction_us else ""
    minutes, seconds = divmod(seconds, _SIXTY)
    hours, minutes = divmod(minutes, _SIXTY)
    days, hours = divmod(hours, _DAY_HOURS)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{seconds:02}{fraction}"
    return f"{hours}:{minutes:02}:{seconds:02}{fraction}"
