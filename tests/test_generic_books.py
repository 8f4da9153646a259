"""Pure parts of burst_buffer/generic: requests, answers of GetSysState, books, who gives way."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simctl.plugins.burst_buffer.generic.request import comments, request_text, requested
from simctl.plugins.burst_buffer.generic.state import Listed, read_listing
from simctl.plugins.burst_buffer.space import (
    Alloc,
    BbState,
    Books,
    Fit,
    parse_size,
    round_up,
    to_give_way,
)

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("size=10G", 10 * GIB),
        ("size=1", GIB),
        ("Size=1k", GIB),
        ("size=1025MiB", 2 * GIB),
        ("size=2GB", 2 * GIB),
        ("size=3n", 3 * GIB),
        ("type=x size=4G,access=striped", 4 * GIB),
        ("size=0", 0),
        ("oversize=4G", 0),
        ("capacity=4G", 0),
        ("", 0),
        ("size=1G\nsize=2G", GIB),
    ],
)
def test_a_size_is_rounded_up_to_whole_granules(text: str, size: int) -> None:
    """The first `size=` counts; a node is a granule; without one there is no request."""
    assert requested(text, (GIB, "bytes")) == size


def test_where_granules_are_nodes_so_are_sizes() -> None:
    """Granularity=4N gives out four at a time."""
    assert requested("size=5n", (4, "nodes")) == 8


@pytest.mark.parametrize("text", ["size=", "size=ten", "size=1Q", "size=1.5G", "size=G"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """The message names it."""
    with pytest.raises(ValueError, match="expected a size"):
        requested(text, (1, "bytes"))


def test_a_negative_size_exceeds_a_limit() -> None:
    """It is told apart, for it has an error of its own."""
    with pytest.raises(OverflowError, match="-5G"):
        requested("size=-5G", (1, "bytes"))


@given(st.text(max_size=40))
def test_any_text_is_a_request_or_refused(text: str) -> None:
    """Nothing else can come of it."""
    with suppress(ValueError, OverflowError):
        assert requested(f"size={text}", (7, "bytes")) % 7 == 0


@given(st.integers(0, 10**15), st.integers(0, 10**9))
def test_rounding_adds_less_than_a_granule(size: int, granule: int) -> None:
    """And nothing to what is whole already."""
    rounded = round_up(size, (granule, "bytes"))
    assert 0 <= rounded - size < max(1, granule)
    assert rounded % max(1, granule) == 0


SCRIPT = """\
#!/bin/sh
#BB size=10G
# anything
#BB stage_in source=/a destination=b

#BB too late
srun ./app
"""


def test_the_comments_that_lead_a_script_end_at_the_first_other_line() -> None:
    """An empty line is one; the line of `#!` is none of them."""
    found = ["#BB size=10G", "# anything", "#BB stage_in source=/a destination=b"]
    assert comments(SCRIPT) == found
    assert comments("srun ./app\n#BB size=1G\n") == []
    assert comments("#BB size=1G") == ["#BB size=1G"]


def test_what_the_script_asks_for_comes_behind_what_was_typed() -> None:
    """The lines are whole; nothing is there twice."""
    lines = "#BB size=10G\n#BB stage_in source=/a destination=b"
    assert request_text("", SCRIPT) == lines
    assert request_text("size=5G", SCRIPT) == f"size=5G\n{lines}"
    assert request_text(lines, SCRIPT) == lines
    assert request_text("size=5G", "") == "size=5G"


LISTING = """\
# a store
TotalSize=100G
UserID=1001 JobID=5 State=staged-in Size=10G
UserID=alice Name=keep State=allocated Size=7
UserID=1001 JobID=6 Size=1k
ENOENT=7
what is this
UserID=1 JobID=x State=staged-in Size=1
UserID=1 JobID=9 State=lost Size=1
UserID=1 State=staged-in Size=1
"""


def test_the_store_tells_how_large_it_is_and_who_has_what() -> None:
    """Lines that mean nothing are kept, to be told."""
    found = read_listing(LISTING)
    assert found.total == 100 * GIB
    assert found.buffers == [
        Listed(user="1001", job_id=5, state=BbState.STAGED_IN, size=10 * GIB),
        Listed(user="alice", name="keep", state=BbState.ALLOCATED, size=7),
        Listed(user="1001", job_id=6, state=BbState.ALLOCATED, size=1024),
    ]
    assert found.gone == ["7"]
    assert len(found.unread) == 4


@given(st.text(max_size=200))
def test_any_answer_can_be_read(text: str) -> None:
    """A script may write what it likes."""
    found = read_listing(text)
    assert found.total is None or found.total >= 0


def test_a_node_of_the_store_is_a_granule() -> None:
    """Also where the store speaks of itself."""
    assert parse_size("16n", (GIB, "bytes")) == 16 * GIB


def _books(total: int, *sizes: int) -> Books:
    books = Books(total=total)
    for job_id, size in enumerate(sizes, 1):
        books.add(Alloc(job_id=job_id, user_id=job_id % 2, size=size, state=BbState.RUNNING))
    return books


@pytest.mark.parametrize(
    ("size", "fit"), [(4, Fit.NOW), (5, Fit.LATER), (10, Fit.LATER), (11, Fit.NEVER)]
)
def test_a_request_fits_now_or_later_or_never(size: int, fit: Fit) -> None:
    """Never, if it is larger than all there is."""
    assert _books(10, 1, 2, 3).fit(size) == fit


def test_the_books_know_who_uses_how_much() -> None:
    """By user; users with nothing are left out."""
    assert list(_books(10, 1, 2, 3, 0).uses()) == [(0, 2), (1, 4)]


@given(
    st.integers(0, 100),
    st.lists(st.integers(0, 50), max_size=10),
    st.lists(st.integers(0, 120), max_size=10),
)
def test_what_fits_never_exceeds_the_space(total: int, taken: list[int], more: list[int]) -> None:
    """However many are taken in whom the books let in."""
    books = Books(total=total)
    for job_id, size in enumerate([*taken, *more], 1):
        if books.fit(size) == Fit.NOW:
            assert books.lacking(size) == 0
            books.add(Alloc(job_id=job_id, size=size))
        assert books.used <= total


def _staging(*pairs: tuple[int, int]) -> list[tuple[int, Alloc]]:
    return [(when, Alloc(job_id=job, size=size)) for job, (when, size) in enumerate(pairs, 1)]


@pytest.mark.parametrize(
    ("start", "lacking", "chosen"),
    [
        (100, 5, [3]),
        (100, 6, [3, 2]),
        (100, 10, [3, 2]),
        (100, 11, []),
        (0, 1, []),
        (300, 5, [3]),
        (300, 6, []),
    ],
)
def test_who_starts_last_gives_way_first(start: int, lacking: int, chosen: list[int]) -> None:
    """Nobody does who starts no later than the candidate, nor where it would not be enough."""
    found = to_give_way(_staging((50, 5), (200, 5), (0, 5)), start, lacking)
    assert [alloc.job_id for alloc in found] == chosen
