"""Host lists: expanded, compressed, sorted."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.limits import HOSTS
from simctl.wire.hostlist import HostlistError, compress, expand, sort_unique

PREFIXES = st.sampled_from(["n", "node", "r1n", "a-", "n0x", "", "gpu.b", "n00"])
NUMBERED = st.tuples(PREFIXES, st.integers(0, 1200), st.integers(1, 5)).map(
    lambda part: f"{part[0]}{part[1]:0{part[2]}d}"
)
NAMES = NUMBERED | st.text(string.ascii_letters + string.digits + "-_.é", min_size=1, max_size=15)
LISTS = st.lists(NAMES | NUMBERED, max_size=30)


def read(text: str, *, tolerant: bool) -> tuple[str, ...] | HostlistError:
    """Return the names of a list, or the error that it is."""
    try:
        return expand(text, tolerant=tolerant)
    except HostlistError as error:
        return error


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ""),
        ("n1", "n1"),
        ("login", "login"),
        ("n[1-4]", "n1 n2 n3 n4"),
        ("n[3,1-2,1]", "n3 n1 n2 n1"),
        ("n1 n2\tn3\nn4,,n5", "n1 n2 n3 n4 n5"),
        (" ,n1, ", "n1"),
        ("n[01-03,7],gpu3,rack[1-2]n[1-2]", "n01 n02 n03 n7 gpu3 rack1n1 rack1n2 rack2n1 rack2n2"),
        ("a[0-1]b[2-3]", "a0b2 a0b3 a1b2 a1b3"),
        ("a[0-1]b[2-3]c[4-5]", "a0b2c4 a0b2c5 a1b2c4 a1b2c5 a0b3c4 a0b3c5 a1b3c4 a1b3c5"),
        ("n[007-010]", "n007 n008 n009 n010"),
        ("n[9-10]", "n9 n10"),
        ("n[098-101]", "n098 n099 n100 n101"),
        ("n[1-010]", "n1 n2 n3 n4 n5 n6 n7 n8 n9 n10"),
        ("[1-2]", "1 2"),
        ("n[5]", "n5"),
        ("n1,n1", "n1 n1"),
    ],
)
def test_expand_follows_slurms_grammar(text: str, names: str) -> None:
    """Order and duplicates are kept; padding has the width of a range's first number."""
    assert expand(text) == tuple(names.split())


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("", ""),
        ("n1", "n1"),
        ("login", "login"),
        ("n1 n2 n3 n7 n10 n09", "n[1-3,7,10,09]"),
        ("n3 n1 n2 n1", "n[3,1-2,1]"),
        ("node001 node002 node010 node100 node99", "node[001-002,010,100,99]"),
        ("r1n1 r1n2 r2n1 r2n2", "r1n[1-2],r2n[1-2]"),
        ("a-1 a-2 b", "a-[1-2],b"),
        ("n9 n10 n11", "n[9-11]"),
        ("n09 n10", "n[09-10]"),
        ("n099 n100 n1000", "n[099-100,1000]"),
        ("n999 n1000", "n[999-1000]"),
        ("n9 n010", "n[9,010]"),
        ("n1 a n2", "n1,a,n2"),
        ("a a", "a,a"),
        ("n1 n1", "n[1,1]"),
        ("n n1 n2", "n,n[1-2]"),
        ("n2 n1", "n[2,1]"),
        ("1 2", "[1-2]"),
        ("n1234567890123 n1234567890124", "n1234[567890123-567890124]"),
    ],
)
def test_compress_brackets_only_the_last_number(names: str, text: str) -> None:
    """Neighbours of one prefix share a bracket; numbers printed at two widths no range."""
    assert compress(names.split()) == text


@settings(derandomize=True, deadline=None)
@given(LISTS)
def test_expand_undoes_compress(names: list[str]) -> None:
    """A list that was compressed stands for the same names, in the same order."""
    assert expand(compress(names)) == tuple(names)


@settings(derandomize=True, deadline=None)
@given(LISTS)
def test_compressing_again_changes_nothing(names: list[str]) -> None:
    """The ranged string of a ranged string's names is that string."""
    text = compress(names)
    assert compress(expand(text)) == text


@settings(derandomize=True, deadline=None)
@given(st.text("n1-,[] \t0x", max_size=12))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    """A user's typing slip is a HostlistError that points into the text, never another error."""
    for tolerant in (False, True):
        result = read(text, tolerant=tolerant)
        if isinstance(result, HostlistError):
            assert result.text == text
            assert 1 <= result.column <= len(text) + 1
        else:
            assert all(result)
            assert tolerant or expand(compress(result)) == result


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("n[3-1]", 3, "runs backwards; write 1-3"),
        ("a,n[1,3-1]", 7, "runs backwards"),
        ("n[1-", 2, "not closed"),
        ("n1,n[1,2", 5, "not closed"),
        ("n]", 2, "not opened"),
        ("n[]", 3, "number or a range"),
        ("n[1,,2]", 5, "number or a range"),
        ("n[a-b]", 3, "number or a range"),
        ("n[-3]", 3, "number or a range"),
        ("n[1-2-3]", 3, "number or a range"),
        ("n[1-]", 3, "number or a range"),
        ("n[1-2]x", 7, "may not follow"),
        ("n[1-2]x[3]y", 11, "may not follow"),
        ("n[1-2]]", 7, "not opened"),
        ("n[[1-2]]", 2, "not closed"),
        ("n[x[1-2]", 2, "not closed"),
        ("n]x[1-2]", 2, "not opened"),
        ("n[0-65536]", 3, "65537 hosts"),
        ("a[1-300]b[1-300]", 1, "90000 hosts"),
    ],
)
def test_errors_say_where_and_what(text: str, column: int, words: str) -> None:
    """A list that cannot be read is answered with the column and what would do."""
    with pytest.raises(HostlistError) as caught:
        expand(text)
    assert words in str(caught.value)
    assert caught.value.column == column
    assert text in str(caught.value)


def test_the_bad_range_is_kept_for_scontrol() -> None:
    """``scontrol show hostnames`` prints the range that cannot be read."""
    with pytest.raises(HostlistError) as caught:
        expand("n[3-1]", tolerant=True)
    assert caught.value.range_text == "3-1"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[1-", "n]"),
        ("n[1-,m", "n] m"),
        ("[7-", "7-"),
        ("[", ""),
        ("n[1-]", "n1"),
        ("n[2-3]", "n2 n3"),
    ],
)
def test_slurms_commands_tolerate_an_unclosed_bracket(text: str, names: str) -> None:
    """What is left of the bracket becomes a host; a range without an end is its first number."""
    assert expand(text, tolerant=True) == tuple(names.split())


@pytest.mark.parametrize("name", ["", "n[1]", "n 1", "a,b", "n]"])
def test_names_no_list_can_hold_are_refused(name: str) -> None:
    """Compressing such a name would give a list of other names."""
    with pytest.raises(HostlistError):
        compress(["n1", name])


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        ("n3 n1 n10 n2 a1", "a1 n1 n2 n3 n10"),
        ("n2 n1 n2 n1", "n1 n2"),
        ("n1 n", "n n1"),
        ("r10n1 r2n1 r1n1", "r1n1 r2n1 r10n1"),
        ("n010 n2 n10", "n2 n10 n010"),
        ("n010 n11", "n11 n010"),
        ("b a", "a b"),
    ],
)
def test_sorting_follows_prefix_width_and_number(names: str, ordered: str) -> None:
    """Slurm sorts numbers by value, within one width, and drops duplicates."""
    assert sort_unique(names.split()) == tuple(ordered.split())


@settings(derandomize=True, deadline=None)
@given(LISTS)
def test_sorting_keeps_every_name_once(names: list[str]) -> None:
    """Sorting again, or sorting another order, gives the same."""
    ordered = sort_unique(names)
    assert set(ordered) == set(names)
    assert len(ordered) == len(set(names))
    assert sort_unique(reversed(names)) == ordered


def test_large_lists_are_whole() -> None:
    """Ten thousand nodes are an ordinary cluster; the largest range is Slurm's."""
    names = expand("n[1-10000]")
    assert (len(names), names[0], names[-1]) == (10000, "n1", "n10000")
    assert compress(names) == "n[1-10000]"
    assert expand(",".join(names)) == names
    assert len(expand(f"n[1-{HOSTS}]")) == HOSTS
