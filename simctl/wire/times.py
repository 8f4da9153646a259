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
_DAYS: Final = {"today": 0, "tomorrow": 1}
_BETWEEN: Final = re.compile(r"-|t|\s+")
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
    if (time := _time_of_day(word)) is not None:
        return _next(today + time, now)
    apart = _apart(word, today)
    return int((apart if apart is not None else _date(word, now)).timestamp())


def _time_of_day(word: str) -> timedelta | None:
    """Return how long after midnight a time of day is that has a name or is a clock's."""
    if word in _NAMED:
        return timedelta(hours=_NAMED[word])
    match = _CLOCK.fullmatch(word)
    return _clock(match) if match is not None else None


def _apart(word: str, today: datetime) -> datetime | None:
    """Return a time of day on a day, in either order, apart by a blank, ``-`` or ``t``."""
    for match in _BETWEEN.finditer(word):
        parts = (word[: match.start()], word[match.end() :])
        for day_word, time_word in (parts, parts[::-1]):
            day, time = _day(day_word, today), _time_of_day(time_word)
            if day is not None and time is not None:
                return day + time
    return None


def _day(word: str, today: datetime) -> datetime | None:
    """Return the midnight with which a day begins; None if it is no day."""
    if word in _DAYS:
        return today + timedelta(days=_DAYS[word])
    date_only = _ISO.fullmatch(word) or _SLASHES.fullmatch(word)
    if date_only is None or ":" in word:
        return None
    return _date(word, today)


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
