"""Lengths of time: what may be written, what it means, and that writing and reading agree."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.scenario.durations import MAX_US, DurationError, format_us, parse_duration_us

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("0s", 0),
        ("30s", 30 * SECOND),
        ("1.5s", 1_500_000),
        ("5m", 300 * SECOND),
        ("2h", 7200 * SECOND),
        ("1d", 86400 * SECOND),
        ("100us", 100),
        ("5ms", 5000),
        ("0.5ms", 500),
        ("1h30m", 5400 * SECOND),
        ("5 s", 5 * SECOND),
        (" 5s ", 5 * SECOND),
        ("10:00", 600 * SECOND),
        ("90:00", 5400 * SECOND),
        ("1:00:00", 3600 * SECOND),
        ("100:00:00", 360_000 * SECOND),
        ("1-00:00:00", 86400 * SECOND),
        ("1-12", 129_600 * SECOND),
        ("1-12:30", 131_400 * SECOND),
        ("0:00:01.5", 1_500_000),
        ("5:30.5", 330_500_000),
        ("30", 30 * SECOND),
        ("0.5", 500_000),
        (".5", 500_000),
        (0, 0),
        (30, 30 * SECOND),
        (0.1, 100_000),
        (1e-05, 10),
    ],
)
def test_each_form_means_its_length(text: str | float, us: int) -> None:
    """A unit, a clock or a bare number of seconds; decimals are exact."""
    assert parse_duration_us(text) == us


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "s", "-", "five", "5 parsecs", "5S", "1m1h", "1s1s", "5s x", "1e3", "1_000"),
        *("-5s", "-1", "-1:00:00", "0.1us", "0.0000001", "1:60", "1:60:00", "1:00:60", "1-24"),
        *("1-00:60:00", "1:2:3:4", "1.5:00", "1.5-00", "--5s", "\u0665s", "inf", "nan", "9" * 60),
        *("1000000d", "1::2", ":30", "30:"),
        *(-1, -0.5, float("inf"), float("nan"), True, 1e20),
    ],
)
def test_everything_else_is_refused(value: str | float) -> None:
    """What cannot be a length of time is an error with a reason, never a guess."""
    with pytest.raises(DurationError) as caught:
        parse_duration_us(value)
    assert str(caught.value)


def test_an_unknown_unit_is_told_the_known_ones() -> None:
    """The message says what would do."""
    with pytest.raises(DurationError, match="use one of d, h, m, s, ms, us"):
        parse_duration_us("5min")


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0s"),
        (100, "100us"),
        (1500, "1500us"),
        (5000, "5ms"),
        (1_500_000, "1.5s"),
        (59_999_999, "59.999999s"),
        (300 * SECOND, "0:05:00"),
        (3600 * SECOND, "1:00:00"),
        (93_600 * SECOND, "1-02:00:00"),
        (-5000, "-5ms"),
    ],
)
def test_lengths_are_written_short(us: int, text: str) -> None:
    """The largest part that is there decides the form."""
    assert format_us(us) == text


@settings(derandomize=True, deadline=None)
@given(st.integers(min_value=0, max_value=MAX_US))
def test_what_is_written_reads_back_as_the_same_length(us: int) -> None:
    """No digit is lost in either direction."""
    assert parse_duration_us(format_us(us)) == us


@settings(derandomize=True, deadline=None)
@given(st.text(alphabet="0123456789:-.dhmsu ", max_size=12))
def test_any_text_is_a_length_or_an_error(text: str) -> None:
    """Nothing but DurationError comes out of a bad text."""
    with contextlib.suppress(DurationError):
        assert 0 <= parse_duration_us(text) <= MAX_US
