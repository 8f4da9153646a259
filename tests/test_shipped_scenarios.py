"""The shipped scenarios: each does what it says, under several schedules, and has a golden trace.

`pytest --rewrite-golden tests/test_shipped_scenarios.py` renews the traces; their diff is for
review. A golden trace holds the whole run, so any call that is moved, dropped, made twice, in
another process or as another user shows.
"""

import io
from pathlib import Path

import pytest

from simctl.kernel.trace import FileSink
from simctl.scenario.load import load_scenario
from simctl.world import RunResult, World

ROOT = Path(__file__).parent.parent
SCENARIOS = sorted((ROOT / "scenarios").rglob("*.yaml"))
GOLDEN = Path(__file__).parent / "golden"


def run(path: Path, *, schedule: str = "fifo", seed: int | None = None) -> tuple[RunResult, str]:
    """Run a scenario; return its result and its trace, without the header's version."""
    world = World(load_scenario(path), schedule=schedule, seed=seed)
    world.trace.add_sink(world.events.append)
    stream = io.BytesIO()
    header = world.header() | {"version": "-"}
    sink = FileSink(stream, header)
    world.trace.add_sink(sink)
    result = world.run()
    sink.flush()
    return result, stream.getvalue().decode()


def broken(result: RunResult) -> list[str]:
    """Return what did not hold, built-in orderings included."""
    rules = [f"{each.rule.name}: {each.first.what}" for each in result.orderings.broken]
    return [
        *rules,
        *(f"{each.text}: {each.detail}" for each in result.expectations if not each.held),
    ]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_does_what_it_says_and_matches_its_golden_trace(
    path: Path, request: pytest.FixtureRequest
) -> None:
    """First come, first served, a scenario always gives the trace that was reviewed."""
    result, trace = run(path)
    assert broken(result) == []
    assert result.stalled == ()
    golden = GOLDEN / f"{path.stem}.jsonl"
    if request.config.getoption("--rewrite-golden"):
        golden.write_text(trace)
    expected = golden.read_text().splitlines()
    for number, (line, wanted) in enumerate(
        zip(trace.splitlines(), expected, strict=False), start=1
    ):
        assert line == wanted, f"line {number} of {golden.name}"
    assert len(trace.splitlines()) == len(expected)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_holds_under_other_schedules(path: Path, seed: int) -> None:
    """What a scenario teaches does not hang on which of the turns due at one moment goes first."""
    result, _ = run(path, schedule="random", seed=seed)
    assert broken(result) == []
    assert result.stalled == ()


def test_starts_with_a_comment_that_says_what_it_shows() -> None:
    """A reader of the folder learns from the first line of each file what it is for."""
    for path in SCENARIOS:
        first = path.read_text().splitlines()[0]
        assert first.startswith("# "), path.name
        assert first.endswith("."), path.name
    assert len(SCENARIOS) >= 8
