"""Runs of model modern make the plugin calls that recordings of real Slurm 18.08 show."""

import pytest

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
