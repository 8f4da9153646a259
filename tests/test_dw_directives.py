"""Directives of burst_buffer/datawarp: what lines ask for, and how wrong ones are refused."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simctl.plugin import SlurmError, errno
from simctl.plugins.burst_buffer.directives import (
    Request,
    Site,
    allowed,
    read_request,
    script_lines,
    text_lines,
    translate,
)
from simctl.plugins.burst_buffer.sizes import (
    GIB,
    megabytes,
    parse_size,
    round_up,
    show_size,
)

INVALID = errno.ESLURM_INVALID_BURST_BUFFER_REQUEST
PERMISSION = errno.ESLURM_BURST_BUFFER_PERMISSION
LIMIT = errno.ESLURM_BURST_BUFFER_LIMIT


def of_script(*lines: str) -> Request:
    """Return what a script of these lines asks for."""
    return read_request(script_lines("\n".join(("#!/bin/bash", *lines))))


def refusal(*lines: str, **site: Any) -> tuple[int, str]:
    """Return errno and text with which a script of these lines is refused."""
    with pytest.raises(SlurmError) as caught:
        allowed(of_script(*lines), Site(**site))
    return caught.value.errno, str(caught.value)


# Lines.


def test_directives_are_read_up_to_the_first_line_that_is_no_comment() -> None:
    """Blank lines and other comments do not end the head of a script; a command does."""
    request = of_script(
        "#SBATCH -N1",
        "",
        "# about this job",
        "#DW jobdw capacity=10GiB access_mode=striped type=scratch",
        "#DW stage_in type=file source=/a destination=$DW_JOB_STRIPED/a",
        "echo",
        "#DW jobdw capacity=5GiB",
    )
    assert request.size == 10 * GIB
    assert request.text.split("\n") == [
        "#DW jobdw capacity=10GiB access_mode=striped type=scratch",
        "#DW stage_in type=file source=/a destination=$DW_JOB_STRIPED/a",
    ]


def test_a_backslash_goes_on_in_the_next_line_of_the_same_prefix() -> None:
    """The two are one directive, which stands as one line in the job's burst_buffer."""
    request = of_script("#DW jobdw capacity=1GiB \\", "#DW pool=fast \\", "#DW type=cache")
    assert request.text == "#DW jobdw capacity=1GiB pool=fast type=cache"
    assert request.pool == "fast"


@pytest.mark.parametrize("after", [["#BB x"], ["echo"], []])
def test_a_continued_line_needs_its_continuation(after: list[str]) -> None:
    """Another prefix, a command and the script's end are none."""
    number, text = refusal("#DW jobdw capacity=1GiB \\", *after)
    assert number == INVALID
    assert text.startswith("line 2: #DW jobdw capacity=1GiB: the next line")


def test_a_script_without_directives_asks_for_nothing() -> None:
    """Nor do #BB lines that speak to another plugin."""
    assert of_script("#SBATCH -N1", "#BB size=10G", "true") == Request()


def test_everything_a_job_asks_for_is_summed_up() -> None:
    """Buffers, swap space, and what is made, used and destroyed."""
    request = of_script(
        "#BB create_persistent name=data capacity=100GB access=striped type=scratch pool=slow",
        "#BB destroy_persistent name=old hurry",
        "#DW jobdw capacity=10GiB",
        "#DW jobdw capacity=2GiB",
        "#DW swap 3GiB",
        "#DW persistentdw name=data",
    )
    assert request.size == 12 * GIB
    assert request.swap_gib == 3
    assert request.uses == ("data",)
    made = request.creates[0]
    assert (made.name, made.size, made.pool, made.access, made.kind) == (
        *("data", 100 * 10**9, "slow"),
        *("striped", "scratch"),
    )
    assert [(gone.name, gone.hurry) for gone in request.destroys] == [("old", True)]
    assert request.session


def test_persistent_buffers_alone_need_no_session() -> None:
    """The appliance sets nothing up for a job that only makes or destroys some."""
    assert not of_script("#BB create_persistent name=data capacity=1GiB").session


# Refusals.


@pytest.mark.parametrize(
    ("line", "number", "problem"),
    [
        ("#DW jobdw", INVALID, "it lacks capacity=SIZE"),
        ("#DW jobdw capacity=", INVALID, "it lacks capacity=SIZE"),
        ("#DW jobdw capacity=0", INVALID, "capacity is 0"),
        ("#DW jobdw capacity=ten", INVALID, 'expected a size such as 10GiB, got "ten"'),
        ("#DW jobdw capacity=4N", INVALID, '"4N" counts nodes; give bytes, such as 10GiB'),
        ("#DW jobdw capacity=-1GiB", LIMIT, 'a size cannot be below zero: "-1GiB"'),
        ("#DW jobdw capacity=8192PiB", LIMIT, '"8192PiB" is more than there can be'),
        ("#DW swap", INVALID, "expected one size, such as 2GiB"),
        ("#DW swap 100MiB", INVALID, "expected a size in whole GiB"),
        ("#DW swap 1GiB 2GiB", INVALID, "expected one size, such as 2GiB"),
        ("#DW persistentdw", INVALID, "it lacks name=NAME"),
        ("#DW persistentdw name=1a", INVALID, "a persistent buffer's name does not begin with"),
        ("#BB create_persistent name=a", INVALID, "it lacks capacity=SIZE"),
        ("#BB create_persistent capacity=1G", INVALID, "it lacks name=NAME"),
        ("#BB destroy_persistent", INVALID, "it lacks name=NAME"),
        ("#BB destroy_persistent name=7", INVALID, "a persistent buffer's name does not begin"),
        ("#DW create_persistent name=a capacity=1G", PERMISSION, "persistent buffers are for #BB"),
        ("#DW destroy_persistent name=a", PERMISSION, "persistent buffers are for #BB destroy"),
        ("#DW stage_in source=/a", INVALID, "no line asks for a burst buffer"),
        ("#DW", INVALID, "expected one of jobdw, stage_in, stage_out, swap, persistentdw"),
        ("#DW jobwd capacity=1G", INVALID, "expected one of jobdw"),
        ("#BB jobdw capacity=1G", INVALID, "expected one of create_persistent, destroy_persis"),
    ],
)
def test_a_wrong_line_is_refused_by_its_number_and_text(
    line: str, number: int, problem: str
) -> None:
    """The script's first line is 1."""
    assert refusal("# head", line)[0] == number
    assert refusal("# head", line)[1].startswith(f"line 3: {line}: {problem}")


JOBDW = "#DW jobdw capacity=1GiB"
MAKES = "#BB create_persistent name=a capacity=1GiB"


@pytest.mark.parametrize(
    ("line", "site", "number", "problem"),
    [
        (JOBDW, {"root": True}, PERMISSION, "root has no burst buffers"),
        (JOBDW, {"welcome": False}, PERMISSION, "burst_buffer.conf lets this user have none"),
        (JOBDW, {"zero_nodes": True}, INVALID, "a job of 0 nodes has no buffer of its own"),
        (MAKES, {"persistent": False}, PERMISSION, "only operators may"),
        ("#BB destroy_persistent name=a", {"persistent": False}, PERMISSION, "only operators"),
        ("#DW swap 1GiB", {}, INVALID, "swap is for each node"),
        (f"{JOBDW} pool=x", {"pools": ("a", "b")}, INVALID, "there is no pool x; known: a, b"),
        (f"{MAKES} pool=x", {"pools": ()}, INVALID, "there is no pool x; known: none"),
    ],
)
def test_what_a_site_does_not_allow_is_refused(
    line: str, site: dict[str, Any], number: int, problem: str
) -> None:
    """Who may, on how many nodes, from which pools."""
    found = refusal(line, **site)
    assert found[0] == number
    assert found[1].startswith(f"line 2: {line}: {problem}")


def test_any_pool_will_do_while_none_is_known() -> None:
    """An appliance that does not answer tells no pools; a job waits for it."""
    allowed(of_script(f"{JOBDW} pool=x"), Site(pools=None))


def test_a_job_of_0_nodes_may_make_persistent_buffers() -> None:
    """That is what such jobs are for."""
    allowed(of_script(MAKES), Site(zero_nodes=True))


def test_a_jobs_space_is_in_one_pool() -> None:
    """Its buffer and its swap space are set up by one call."""
    number, text = refusal(f"{JOBDW} pool=a", "#DW swap 1GiB pool=b", max_nodes=1)
    assert number == INVALID
    assert "the job's space is in pool a; it is all in one" in text


# The text of --bb.


@pytest.mark.parametrize(
    ("spec", "lines"),
    [
        (
            "capacity=5GiB access=striped type=scratch",
            "#DW jobdw capacity=5GiB access_mode=striped type=scratch",
        ),
        ("pool=fast capacity=5GiB", "#DW jobdw capacity=5GiB pool=fast"),
        ("swap=2GiB", "#DW swap 2GiB"),
        (
            "swap=2GiB capacity=1GiB pool=a",
            "#DW jobdw capacity=1GiB pool=a\n#DW swap 2GiB pool=a",
        ),
    ],
)
def test_a_text_of_bb_stands_for_directives(spec: str, lines: str) -> None:
    """They are those that a script would have."""
    assert translate(spec) == lines
    assert read_request(text_lines(lines)).text == lines


@pytest.mark.parametrize("spec", ["capacity", "capacity=", "size=1G", "type=scratch", "garbage"])
def test_a_text_of_bb_that_asks_for_nothing_is_refused(spec: str) -> None:
    """So is one with a word that is none of its own."""
    with pytest.raises(SlurmError, match=re.escape(f"--bb={spec}: ")) as caught:
        translate(spec)
    assert caught.value.errno == INVALID


# Any text.

WORDS = st.sampled_from(
    [
        *("#DW", "#BB", "jobdw", "swap", "persistentdw", "stage_in", "stage_out", "\\", "\n"),
        *("create_persistent", "destroy_persistent", "capacity=", "1GiB", "-3", "9" * 40, "name="),
        *("name=a", "capacity=1GiB", "pool=a", "pool=b", " ", "hurry", "=", "#", "4N", "\u2003"),
    ]
)
TEXTS = st.one_of(st.text(), st.lists(WORDS).map("".join), st.lists(WORDS).map(" ".join))


def refused(read: Callable[[], Request]) -> SlurmError | None:
    """Return what a text is refused with; None if it is read."""
    try:
        read()
    except SlurmError as error:
        return error
    return None


@given(text=TEXTS)
def test_any_script_is_read_or_refused(text: str) -> None:
    """Nothing but SlurmError comes of it, and what was read reads the same again."""
    error = refused(lambda: read_request(script_lines(text)))
    if error is not None:
        assert error.errno in (INVALID, PERMISSION, LIMIT)
        assert re.match(r"line \d+: #", str(error), re.DOTALL)
        return
    request = read_request(script_lines(text))
    again = read_request(text_lines(request.text))
    assert (again.text, again.size, again.uses) == (request.text, request.size, request.uses)


@given(text=TEXTS)
def test_any_text_of_bb_is_read_or_refused(text: str) -> None:
    """What it stands for are directives that say what is wrong with them."""
    error = refused(lambda: read_request(text_lines(translate(text))))
    assert error is None or error.errno in (INVALID, PERMISSION, LIMIT)


# Sizes.


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("7b", 7),
        ("1k", 1024),
        ("2KB", 2000),
        ("3MiB", 3 << 20),
        ("10GiB", 10 * GIB),
        ("1g", GIB),
        ("1TB", 10**12),
        ("1p", 1 << 50),
    ],
)
def test_sizes_have_units(text: str, size: int) -> None:
    """Of 1024 or 1000, whatever their case; without one they are bytes."""
    assert parse_size(text) == size


@given(size=st.integers(min_value=0, max_value=(1 << 63) - 1))
def test_a_size_that_is_shown_reads_the_same(size: int) -> None:
    """The largest unit that divides it loses nothing."""
    assert parse_size(show_size(size)) == size


@given(size=st.integers(0, 1 << 60), granularity=st.integers(1, 1 << 40))
def test_a_size_is_rounded_up_to_the_granularity(size: int, granularity: int) -> None:
    """By less than one granule."""
    rounded = round_up(size, granularity)
    assert rounded % granularity == 0
    assert 0 <= rounded - size < granularity


def test_megabytes_are_rounded_up() -> None:
    """A buffer of one byte counts."""
    assert [megabytes(size) for size in (0, 1, 1 << 20, GIB)] == [0, 1, 1, 1024]
