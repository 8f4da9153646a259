"""The recordings of real Slurm, each beside the scenario that does the same: run and compared.

`python -m tests.conformance_runs` writes the table in docs/conformance.md anew, and `python -m
tests.conformance_runs NAME` prints what differs in one.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from simctl.kernel.events import Event
from simctl.scenario.load import load_scenario
from simctl.testing.conform.accepted import Accepted, Sorted, read_accepted, sort_out
from simctl.testing.conform.command import compare_events, report
from simctl.testing.conform.compare import Comparison
from simctl.testing.conform.real import read_real
from simctl.world import RunResult, World

FOLDER: Final = Path(__file__).parent / "conformance"
PAGE: Final = Path(__file__).parent.parent / "docs" / "conformance.md"
NAMES: Final = sorted(path.parent.name for path in FOLDER.glob("*/scenario.yaml"))
_BEGIN: Final = "<!-- written by python -m tests.conformance_runs -->"
_END: Final = "<!-- until here -->"


@attrs.frozen(kw_only=True)
class Held:
    """One scenario, run and held against its recording."""

    name: str
    result: RunResult
    events: list[Event]
    comparison: Comparison
    found: Sorted
    title: str


def recording_of(name: str) -> Path:
    """Return the file of a recording."""
    return FOLDER / name / "recording.json.gz"


def accepted_of(name: str) -> list[Accepted]:
    """Return the differences that are accepted of a recording."""
    path = FOLDER / name / "accepted.yaml"
    return read_accepted(path, name) if path.exists() else []


@cache
def held(name: str) -> Held:
    """Run the scenario of a recording and compare the two."""
    path = FOLDER / name / "scenario.yaml"
    world = World(load_scenario(path))
    world.trace.add_sink(world.events.append)
    result = world.run()
    comparison = compare_events(world.events, read_real(recording_of(name)))
    return Held(
        name=name,
        result=result,
        events=world.events,
        comparison=comparison,
        found=sort_out(comparison.differences, accepted_of(name)),
        title=path.read_text().splitlines()[0].lstrip("# "),
    )


def table(names: Sequence[str] = NAMES) -> str:
    """Return the table of docs/conformance.md, and the accepted differences behind it."""
    lines = [
        "| recording | plugin calls | other acts | orders | accepted | unexplained |",
        "|---|---|---|---|---|---|",
    ]
    totals = Counter[str]()
    reasons: dict[tuple[str, str], list[str]] = {}
    for name in names:
        one = held(name)
        counts = {
            "calls": one.comparison.calls,
            "acts": one.comparison.acts - one.comparison.calls,
            "facts": one.comparison.facts,
            "explained": len(one.found.explained),
            "left": len(one.found.left),
        }
        totals.update(counts)
        lines.append(f"| {name}: {one.title} | {' | '.join(map(str, counts.values()))} |")
        for _, entry in one.found.explained:
            known = reasons.setdefault((entry.case, entry.reason), [])
            if name not in known:
                known.append(name)
    numbers = " | ".join(
        f"**{totals[each]}**" for each in ("calls", "acts", "facts", "explained", "left")
    )
    lines.append(f"| **{len(names)} recordings** | {numbers} |")
    if reasons:
        lines += ["", "| why | which | in |", "|---|---|---|"]
        lines += [
            f"| {case} | {reason} | {', '.join(known)} |"
            for (case, reason), known in sorted(reasons.items())
        ]
    return "\n".join(lines)


def page_with_table(page: str) -> str:
    """Return the page with its table as runs have it now."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{table()}\n\n{_END}{after}"


def main(words: Sequence[str]) -> None:
    """Write the table, or print what differs in the recordings that are named."""
    if not words:
        PAGE.write_text(page_with_table(PAGE.read_text()))
    for name in words:
        one = held(name)
        print("\n".join((name, *report(one.comparison, one.found))))


if __name__ == "__main__":
    main(sys.argv[1:])
