"""Moments as people write them for what has been: a time of day is today's, ``now-2hours``. UTC."""

import re
from datetime import UTC, datetime
from typing import Final

from simctl.wire.times import parse_moment

_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
_FROM_NOW: Final = re.compile(r"now\s*([+-])\s*(\d+)\s*([a-z]*)")
_CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2})?([ap]m)?|midnight|noon|elevenses|fika|teatime")
_SHORT: Final = re.compile(r"(\d{2})(\d{2})(\d{2})?")
_DAY_S: Final = 86_400
_WEEK: Final = 7


def parse_past_moment(text: str, now_s: int) -> int:
    """Return a moment in seconds since the epoch; *now_s* is the present one.

    Raises:
        ValueError: It is no moment that Slurm's commands take, or there is no such day.
    """
    word = text.strip().lower()
    match = _FROM_NOW.fullmatch(word)
    if match is not None:
        shift_s = int(match[2]) * _unit_s(match[3])
        return now_s + (shift_s if match[1] == "+" else -shift_s)
    today_s = now_s - now_s % _DAY_S
    if word == "yesterday":
        return today_s - _DAY_S
    if _CLOCK.fullmatch(word):
        return today_s + parse_moment(word, now_s) % _DAY_S
    match = _SHORT.fullmatch(word)
    if match is not None:
        now = datetime.fromtimestamp(now_s, UTC)
        year = 2000 + int(match[3]) if match[3] else now.year
        return int(datetime(year, int(match[1]), int(match[2]), tzinfo=UTC).timestamp())
    return parse_moment(word, now_s)


def _unit_s(word: str) -> int:
    """Return how long a unit is, by any beginning of its name; seconds if there is none."""
    if not word:
        return 1
    for name, length_s in _UNITS.items():
        if f"{name}s".startswith(word):
            return length_s
    raise ValueError(word)


def show_moment(moment_s: int, style: str, now_s: int) -> str:
    """Return a moment as SLURM_TIME_FORMAT says: standard, relative, or a format of strftime."""
    when = datetime.fromtimestamp(moment_s, UTC)
    if style == "relative":
        return _relative(when, datetime.fromtimestamp(now_s, UTC))
    if style in ("", "standard"):
        return when.strftime("%Y-%m-%dT%H:%M:%S")
    return when.strftime(style)


def _relative(when: datetime, now: datetime) -> str:
    if when.year != now.year:
        # Slurm takes the last day of a year to be far from the first one of the next.
        return f"{when.day} {when:%b %Y}"
    days = (when.date() - now.date()).days
    if not days:
        return when.strftime("%H:%M:%S")
    if days in (-1, 1):
        return when.strftime("Tomorr %H:%M" if days == 1 else "Ystday %H:%M")
    if 1 < days < _WEEK:
        return when.strftime("%a %H:%M")
    return f"{when.day} {when:%b %H:%M}"
