"""No code of the product goes through a set in the order of its hashes."""

from pathlib import Path

import pytest

from tests.unsorted import product, unsorted

ROOT = Path(__file__).parents[1]

NO_MATTER = {
    ("simctl/ctld/saved/saved_records.py", "form.as_is"): "fields are given by name",
    ("simctl/ctld/saved/state_reading.py", "form.as_is"): "fields are given by name",
    ("simctl/ctld/saved/state_reading.py", "DEMAND.as_is"): "fields are given by name",
    ("simctl/ctld/saved/state_writing.py", "JOB.as_is"): "compared in one process only",
    ("simctl/scenario/holding/happens_before.py", "found"): "there is one, and a set is made",
    ("simctl/testing/conform/rules.py", "jobs"): "there is one",
    ("simctl/wire/arrays.py", "steps"): "there is one",
}
"""Where the order of a set comes through, and why nobody sees it."""


def test_nothing_goes_through_a_set_unsorted() -> None:
    """Sort it, or keep the names in a dict; what is listed above is still there."""
    found = list(unsorted(product(ROOT)))
    assert [each for each in found if (each.file, each.text) not in NO_MATTER] == []
    assert {(each.file, each.text) for each in found} == set(NO_MATTER)


def found_in(text: str) -> list[str]:
    """Return what is gone through unsorted in a module."""
    return [each.text for each in unsorted({"m.py": text})]


RECORD = """
class Record:
    names: set[str]
    @property
    def others(self) -> frozenset[str]: ...
def known() -> set[str]: ...
"""


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("for x in record.names: send(x)", "record.names"),
        ("for x in record.others - gone: send(x)", "record.others - gone"),
        ("for x in {'a', 'b'}: send(x)", "{'a', 'b'}"),
        ("for x in known(): send(x)", "known()"),
        ("for x in one.keys() & other.keys(): send(x)", "one.keys() & other.keys()"),
        ("[send(x) for x in record.names]", "record.names"),
        ("{x: 1 for x in set(y)}", "set(y)"),
        ("send(x for x in record.names)", "record.names"),
        ("found = list(record.names)", "record.names"),
        ("first = next(iter(record.names))", "record.names"),
        ("any_of = record.names.pop()", "record.names"),
        ("text = ', '.join(record.names)", "record.names"),
        ("table = dict.fromkeys(record.names)", "record.names"),
        ("send(*record.names)", "record.names"),
        ("all_of = [*record.names, 1]", "record.names"),
        ("mine = set(y) | {1}\nfor x in mine: send(x)", "mine"),
        ("mine: set[str] = made()\nfor x in mine: send(x)", "mine"),
        ("def f(mine: set[str]):\n    return [x for x in mine]", "mine"),
        ("mine = set()\ndef f():\n    for x in mine: send(x)", "mine"),
        ("for n, x in enumerate(record.names): send(x)", "record.names"),
        ("for x in (a if b else record.names): send(x)", "a if b else record.names"),
        ("[x for x in sorted(y) for z in record.names]", "record.names"),
    ],
)
def test_an_order_of_hashes_is_found(line: str, what: str) -> None:
    """However it comes through."""
    assert found_in(f"{RECORD}{line}\n") == [what]


@pytest.mark.parametrize(
    "line",
    [
        "for x in sorted(record.names): send(x)",
        "for x in sorted(x for x in record.names if x): send(x)",
        "found = {x.name for x in record.names}",
        "found = any(x for x in record.names)",
        "found = len(record.names) + sum(x for x in record.names)",
        "found = max(record.names, default=0)",
        "found = {*record.names, 'a'}",
        "found = frozenset((*record.names, 'a'))",
        "found = x in (*record.names, 'a')",
        "record.names.update(x for x in record.others)",
        "mine = dict.fromkeys(y)\nfor x in mine: send(x)",
        "mine = set(y)\nmine = sorted(mine)\nfor x in mine: send(x)",
        "def f(mine: dict[str, set[str]]):\n    for x in mine: send(x)",
        "list_of = y.pop()",
    ],
)
def test_what_shows_no_order_is_left_alone(line: str) -> None:
    """What sorts, counts, asks or makes another set."""
    assert found_in(f"{RECORD}{line}\n") == []
