"""Moments as people write them for --begin: relative to now, times of day, dates. UTC."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_UNITS: Final = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
}
_FROM_NOW: Final = re.compile(r"now(?:\+(\d+)(?:(second|minute|hour|day|week)s?)?)?")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?(am|pm)?")
_ISO: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:t(\d{2}):(\d{2})(?::(\d{2}))?)?")
_SLASHES: Final = re.compile(r"(\d{1,2})/(\d{1,2})(?:/(\d{2}))?(?:-(\d{1,2}):(\d{2}))?")
_NAMED: Final = {"midnight": 0, "noon": 12, "elevenses": 11, "fika": 15, "teatime": 16}
_HALF_DAY: Final = 12


def parse_moment(text: str, now_s: int) -> int:
    """Return a moment in seconds since the epoch; *now_s* is the present one.

    Raises:
        ValueError: It is no moment that Slurm's commands take, or there is no such day.
    """
    word = text.strip().lower()
    now = datetime.fromtimestamp(now_s, UTC)
    match = _FROM_NOW.fullmatch(word)
    if match is not None:
        return now_s + int(match[1] or 0) * _UNITS[match[2] or "second"]
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if word == "today":
        return int(today.timestamp())
    if word == "tomorrow":
        return int((today + timedelta(days=1)).timestamp())
    if word in _NAMED:
        return _next(today.replace(hour=_NAMED[word]), now)
    match = _CLOCK.fullmatch(word)
    if match is not None:
        return _next(today + _clock(match), now)
    return int(_date(word, now).timestamp())


def _next(moment: datetime, now: datetime) -> int:
    """Return a time of day: today's, or tomorrow's when that is over."""
    return int((moment if moment > now else moment + timedelta(days=1)).timestamp())


def _clock(match: re.Match[str]) -> timedelta:
    """Return how long after midnight a time of day is."""
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if match[4]:
        if not 1 <= hour <= _HALF_DAY:
            raise ValueError(match[0])
        hour = hour % _HALF_DAY + (_HALF_DAY if match[4] == "pm" else 0)
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004 - a clock
        raise ValueError(match[0])
    return timedelta(hours=hour, minutes=minute, seconds=second)


def _date(word: str, now: datetime) -> datetime:
    match = _ISO.fullmatch(word)
    if match is not None:
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    match = _SLASHES.fullmatch(word)
    if match is not None:
        month, day, century, hour, minute = (int(part or 0) for part in match.groups())
        year = 2000 + century if match[3] else now.year
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    raise ValueError(word)
