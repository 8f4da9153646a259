"""What came of a sweep, cell by cell: means with confidence intervals, as a table and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from simctl.reports.intervals import Interval, interval
from simctl.sweep.plan import Plan
from simctl.sweep.runs import MEASURES
from simctl.sweep.table import Table
from simctl.view.comparing import columns

_SHOWN: Final = (
    ("wait_mean_s", "wait (s)"),
    ("slowdown_mean", "slowdown"),
    ("utilisation", "utilisation"),
    ("makespan_s", "makespan (s)"),
)
_DIGITS: Final = 4
_LINES: Final = 60
_LABEL: Final = 30


@attrs.define
class CellSummary:
    """What came of the runs of a cell."""

    number: int
    labels: tuple[str, ...]
    runs: int = 0
    bad: int = 0
    """How many did not hold."""
    measures: dict[str, Interval] = attrs.field(factory=dict)


def summarize(plan: Plan, table: Table) -> list[CellSummary]:
    """Return the summary of each cell that has a run, in order."""
    found: dict[int, CellSummary] = {}
    values: dict[int, list[Sequence[float | None]]] = {}
    for number, status, *measures in table.measures():
        cell = found.setdefault(number, CellSummary(number, plan.cells[number].labels))
        cell.runs += 1
        cell.bad += status not in ("held", "until")
        values.setdefault(number, []).append(measures)
    for number, cell in found.items():
        for name, column in zip(MEASURES, zip(*values[number], strict=True), strict=True):
            known = [each for each in column if each is not None]
            if known:
                cell.measures[name] = interval(known)
    return list(found.values())


def lines_of(plan: Plan, cells: Sequence[CellSummary]) -> list[str]:
    """Return a summary as a table: each mean with the half width of its interval."""
    heads = [_head(name) for name in plan.parameters]
    rows = [[*heads, "runs", *(head for _, head in _SHOWN)]]
    for cell in cells[:_LINES]:
        runs = f"{cell.runs}" + (f" ({cell.bad} bad)" if cell.bad else "")
        measures = (cell.measures.get(name) for name, _ in _SHOWN)
        labels = (label[:_LABEL] for label in cell.labels)
        rows.append([*labels, runs, *(_shown(each) for each in measures)])
    lines = columns(rows, left=len(heads))
    if len(cells) > _LINES:
        lines.append(f"and {len(cells) - _LINES:,} more, in the table")
    return lines


def _head(name: str) -> str:
    return name.rpartition(".")[2][:_LABEL]


def _shown(found: Interval | None) -> str:
    if found is None:
        return "-"
    mean = number(found.mean)
    return mean if found.half is None else f"{mean} ± {number(found.half)}"


def number(value: float) -> str:
    """Write a measure for people, to four digits."""
    if abs(value) >= 10**_DIGITS:
        return f"{value:,.0f}"
    return f"{value:.{_DIGITS}g}"


def notes(plan: Plan, cells: Iterable[CellSummary]) -> list[str]:
    """Return what is to be known of a summary."""
    several = [cell for cell in cells if cell.runs > 1]
    measures = [each for cell in several for each in cell.measures.values()]
    if measures and all(each.least == each.most for each in measures):
        same = "All seeds of a cell came to the same: nothing in these runs depends on chance"
        return [f"{same} (durations with min and max, rates, and `schedule: random` do)."]
    if several:
        return ["± is the half width of the 95 % confidence interval of the mean over the seeds."]
    return []


def as_json(plan: Plan, cells: Iterable[CellSummary]) -> list[dict[str, Any]]:
    """Return a summary for programs."""
    return [
        {
            "cell": cell.number,
            "parameters": dict(zip(plan.parameters, cell.labels, strict=True)),
            "runs": cell.runs,
            "bad": cell.bad,
            "measures": {name: each.as_json() for name, each in cell.measures.items()},
        }
        for cell in cells
    ]
