"""Time limits as ``--time`` and MaxTime are written, and as squeue prints them."""

import re
from typing import Final

from simctl.wire.ids import INFINITE, NO_VAL

_DAYS_AND_TIME: Final = re.compile(r"([0-9]+)-([0-9]+)(?::([0-9]+))?(?::([0-9]+))?")


_TIME: Final = re.compile(r"([0-9]+)(?::([0-9]+))?(?::([0-9]+))?")


_TIME_FORMS: Final = (
    "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,"
    " days-hours:minutes:seconds or UNLIMITED"
)


def parse_time_limit(text: str) -> int:
    """Return a time limit in seconds, as ``--time`` and MaxTime are written.

    No part has an upper bound of its own: ``90:00`` is an hour and a half.

    Returns:
        Seconds, or INFINITE for ``UNLIMITED``, ``INFINITE`` and ``-1``.

    Raises:
        ValueError: The text has none of Slurm's forms, or the time does not fit 32 bits.
    """
    stripped = text.strip()
    if stripped.upper() in {"UNLIMITED", "INFINITE", "-1"}:
        return INFINITE
    seconds = _limit_seconds(stripped)
    if seconds is None:
        msg = f'expected {_TIME_FORMS}, got "{text}"'
        raise ValueError(msg)
    if seconds >= NO_VAL:
        msg = f'"{text}" is too long a time; write UNLIMITED for no limit'
        raise ValueError(msg)
    return seconds


def _limit_seconds(text: str) -> int | None:
    """Return the seconds that *text* spells, or None when it has no form of Slurm's."""
    match = _DAYS_AND_TIME.fullmatch(text)
    if match is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    parts = [int(part) for part in match.groups() if part is not None]
    if len(parts) == 1:
        return parts[0] * 60
    total = 0
    for part in parts:
        total = total * 60 + part
    return total


def parse_time_limit_min(text: str) -> int:
    """Return a time limit in whole minutes, seconds rounded up; INFINITE for no limit.

    Raises:
        ValueError: As `parse_time_limit`.
    """
    seconds = parse_time_limit(text)
    return INFINITE if seconds == INFINITE else -(-seconds // 60)


def format_time_limit_min(minutes: int, *, padded: bool = False) -> str:
    """Return a time limit as squeue prints it, ``10:00`` or ``1-02:00:00``.

    Args:
        minutes: The limit, or INFINITE.
        padded: Print hours always, as scontrol does: ``00:10:00``.
    """
    if minutes == INFINITE:
        return "UNLIMITED"
    days, rest = divmod(minutes, 24 * 60)
    hours, mins = divmod(rest, 60)
    if days:
        return f"{days}-{hours:02}:{mins:02}:00"
    if padded:
        return f"{hours:02}:{mins:02}:00"
    return f"{hours}:{mins:02}:00" if hours else f"{mins}:00"
