"""Formats of -o and -O: fields, widths, what is cut, what is copied, what is no field."""

import pytest

from simctl.commands.columns.formats import (
    Column,
    checked_time,
    date_line,
    moment,
    padded_time,
    read_all,
    read_letters,
    read_names,
    run_time,
    with_unit,
)

COLUMNS: dict[str, Column[str]] = {
    "i": Column("i - JOBID", lambda row: row),
    "M": Column("M - TIME", lambda row: row, cut=False),
    "R": Column("R - REASON", lambda row: row, cut=False, cut_heading=False),
}


@pytest.mark.parametrize(
    ("text", "heading", "line"),
    [
        ("%i", "JOBID", "abcdef"),
        ("%8i|", "JOBID   |", "abcdef  |"),
        ("%.8i|", "   JOBID|", "  abcdef|"),
        ("%4i|", "JOBI|", "abcd|"),
        ("%.4i|", "JOBI|", "abcd|"),
        ("%.4M|", "TIME|", "abcdef|"),
        ("%.3M|", "TIM|", "abcdef|"),
        ("%4M|", "TIME|", "abcd|"),
        ("%.4R|", "REASON|", "abcdef|"),
        ("before %i, %i", "before JOBID, JOBID", "before abcdef, abcdef"),
        ("%%i", "JOBID", "abcdef"),
        ("no field", "no field", "no field"),
        ("%0i", "JOBID", "abcdef"),
    ],
)
def test_fields_by_letter(text: str, heading: str, line: str) -> None:
    """Cut at the right; at the left of what is too short stand blanks after a point."""
    layout = read_letters(text, COLUMNS)
    assert (layout.heading(), layout.line("abcdef")) == (heading, line)
    assert layout.unknown == ()


@pytest.mark.parametrize(
    ("text", "unknown", "shown"),
    [
        ("%q %i", ("q",), "%q JOBID"),
        ("%1", ("",), "%1"),
        ("%-5i", ("-",), "%-5i"),
        ("%#i", ("#",), "%#i"),
        ("%.7x|%i", ("x",), "%.7x|JOBID"),
    ],
)
def test_what_is_no_field_is_named_and_shown_as_it_was_written(
    text: str, unknown: tuple[str, ...], shown: str
) -> None:
    """In the header and in every line."""
    layout = read_letters(text, COLUMNS)
    assert (layout.unknown, layout.heading()) == (unknown, shown)


def test_a_field_may_be_as_wide_as_its_longest_text() -> None:
    """But not narrower than nine."""
    layout = read_letters("%#i|%.#i|", COLUMNS, fits=True)
    short, long = layout.fitted(["ab"]), layout.fitted(["ab", "abcdefghijkl"])
    assert short.line("ab") == "ab       |       ab|"
    assert long.line("ab") == "ab          |          ab|"


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("jobid", "JOBID               "),
        ("JobID,TIME", "JOBID               TIME                "),
        ("jobid:7,time:.6", "JOBID    TIME"),
        ("jobid:,time:", "JOBIDTIME"),
        ("jobid:|,time:.6;", "JOBID|  TIME;"),
        ("jobid:3", "JOB"),
    ],
)
def test_fields_by_name(text: str, heading: str) -> None:
    """Twenty wide, unless a colon says otherwise."""
    layout = read_names(text, {"jobid": COLUMNS["i"], "time": COLUMNS["M"]})
    assert (layout.heading(), layout.unknown) == (heading, ())


def test_names_of_no_field() -> None:
    """They have no place in the lines."""
    layout = read_names("foo,jobid:,bar:5|", {"jobid": COLUMNS["i"]})
    assert (layout.heading(), layout.unknown) == ("JOBID|", ("foo", "bar"))


def test_all_fields() -> None:
    """Small letters first, bars between; sinfo has a blank after capital ones."""
    assert read_all(COLUMNS).heading() == "JOBID|TIME|REASON"
    assert read_all(COLUMNS, blank=True).heading() == "JOBID|TIME |REASON "


@pytest.mark.parametrize(
    ("seconds", "short", "padded"),
    [
        (0, "0:00", "00:00:00"),
        (425, "7:05", "00:07:05"),
        (3600, "1:00:00", "01:00:00"),
        (93784, "1-02:03:04", "1-02:03:04"),
    ],
)
def test_times(seconds: int, short: str, padded: str) -> None:
    """As squeue prints them, and as scontrol does."""
    assert (run_time(seconds), padded_time(seconds)) == (short, padded)


def test_times_out_of_bounds_are_invalid() -> None:
    """Those below nothing, and those above a year."""
    year = 365 * 24 * 3600
    assert [checked_time(each) for each in (-1, year, year + 1)] == [
        *("INVALID", "365-00:00:00", "INVALID")
    ]


def test_moments_and_dates() -> None:
    """In UTC."""
    assert (moment(0), moment(0, none="Unknown"), moment(1_795_217_219)) == (
        *("N/A", "Unknown"),
        "2026-11-20T23:26:59",
    )
    assert date_line(1_793_923_199) == "Thu Nov  5 23:59:59 2026"


@pytest.mark.parametrize(
    ("count", "unit", "text"),
    [
        (100, "M", "100M"),
        (4096, "M", "4G"),
        (1500, "M", "1500M"),
        (1 << 20, "M", "1T"),
        (0, "M", "0"),
        (1024, "", "1K"),
    ],
)
def test_units(count: int, unit: str, text: str) -> None:
    """The largest unit that comes out even."""
    assert with_unit(count, unit) == text
