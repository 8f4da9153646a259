"""Runs of model modern make the plugin calls that recordings of real Slurm 18.08 show."""

import attrs
import pytest

from tests.conformance_printed import compared, differences, printed_of
from tests.conformance_runs import NAMES, PAGE, held, page_with_table


@pytest.mark.parametrize("name", NAMES)
def test_a_run_makes_the_calls_of_its_recording(name: str) -> None:
    """Each difference is accepted with a reason, and each acceptance is needed."""
    one = held(name)
    assert [each.line() for each in one.found.left] == []
    assert [(entry.kind, entry.what) for entry in one.found.stale] == []
    assert one.comparison.calls > 0
    assert [check.detail for check in one.result.expectations if not check.held] == []
    assert not one.result.complaints


def test_the_page_has_the_table() -> None:
    """Renew it with `python -m tests.conformance_runs`."""
    page = PAGE.read_text()
    assert page == page_with_table(page)


@pytest.mark.parametrize("name", [name for name in NAMES if printed_of(name)])
def test_commands_print_what_real_slurm_printed(name: str) -> None:
    """Field by field, where both print the field; times, paths and priorities apart."""
    results = held(name).result.commands
    told = [line for each in printed_of(name) for line in differences(each, results)]
    assert told == []


def test_what_is_printed_is_really_compared() -> None:
    """Some thousand fields are; a job's state, a node's, a line too many or too few are found."""
    names = [name for name in NAMES if printed_of(name)]
    counts = [compared(each, held(n).result.commands) for n in names for each in printed_of(n)]
    assert sum(counts) > 1000
    name = "s14_prolog_fail"
    results = held(name).result.commands
    for old, new, text in (
        ("Restarts=1", "Restarts=0", "Restarts=1, recorded 0"),
        ("    drained ", "       idle ", "STATE=drained, recorded idle"),
        ("Prolog error         slurm", "Prolog error         root ", "USER=slurm, recorded root"),
        ("                13 ", "                14 ", "JOBID=14 is not told of"),
    ):
        damaged = [
            attrs.evolve(each, text=each.text.replace(old, new)) for each in printed_of(name)
        ]
        told = [line for each in damaged for line in differences(each, results)]
        assert any(text in line for line in told), told
