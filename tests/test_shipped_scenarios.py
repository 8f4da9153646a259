"""The shipped scenarios: each does what it says, under several schedules, and has a golden trace.

`pytest --rewrite-golden tests/test_shipped_scenarios.py` renews the traces; their diff is for
review. A golden trace holds the whole run, so any call that is moved, dropped, made twice, in
another process or as another user shows.
"""

import json
from pathlib import Path

import pytest

from simctl.plugins.points import ALL
from simctl.testing import run_scenario
from simctl.testing.golden import compare

ROOT = Path(__file__).parent.parent
EVERY = sorted((ROOT / "scenarios").rglob("*.yaml"))
SCENARIOS = [path for path in EVERY if path.parent.name != "faulty"]
"""Those in scenarios/faulty are there to be broken: tests of `simctl explore` run them."""

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_does_what_it_says_and_matches_its_golden_trace(
    path: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """First come, first served, a scenario always gives the trace that was reviewed."""
    run = run_scenario(path)
    run.assert_held()
    golden = GOLDEN / f"{path.stem}.jsonl"
    run.assert_golden(golden, rewrite=request.config.getoption("--rewrite-golden"))
    # Equal events are equal bytes as well: keys in their order, none that could be left out.
    compare(tmp_path / "anew.jsonl", run.header, run.events, rewrite=True)
    assert (tmp_path / "anew.jsonl").read_bytes() == golden.read_bytes()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_holds_under_other_schedules(path: Path, seed: int) -> None:
    """What a scenario teaches does not hang on which of the turns due at one moment goes first."""
    run_scenario(path, schedule="random", seed=seed).assert_held()


def test_every_function_that_a_cluster_calls_is_called_by_some_scenario() -> None:
    """Whoever looks for one finds a scenario that shows when it is called."""
    called = {
        event["name"]
        for path in SCENARIOS
        for event in map(json.loads, (GOLDEN / f"{path.stem}.jsonl").read_text().splitlines())
        if event.get("kind") == "plugin"
    }
    assert {point.name for point in ALL.values() if not point.later} - called == set()


def test_starts_with_a_comment_that_says_what_it_shows() -> None:
    """A reader of the folder learns from the first line of each file what it is for."""
    for path in EVERY:
        first = path.read_text().splitlines()[0]
        assert first.startswith("# "), path.name
        assert first.endswith("."), path.name
    assert len(SCENARIOS) >= 8
