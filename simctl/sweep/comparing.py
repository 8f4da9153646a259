"""`simctl compare` of tables of sweeps: runs of one seed beside each other, and what differs."""

import html
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import attrs

from simctl.kernel.pattern import near
from simctl.reports.intervals import Interval, interval
from simctl.status import OK, InputError
from simctl.sweep.runs import MEASURES
from simctl.sweep.summary import number
from simctl.sweep.table import check_head, is_sweep
from simctl.view.comparing import columns, waits_of
from simctl.view.page import PAGE, check_output, write, write_page

_WORDS: Final = {
    "wait_mean_s": ("mean wait", " s"),
    "slowdown_mean": ("mean slowdown", ""),
    "utilisation": ("utilisation", ""),
    "makespan_s": ("makespan", " s"),
}
"""Measures that sentences are about."""


_DIGITS: Final = 9
"""Behind the point: what is beyond them in a difference is rounding."""


@attrs.frozen(kw_only=True)
class Side:
    """Some cells of a table."""

    path: str
    chosen: Mapping[str, str]
    """Values of parameters that were asked for."""
    cells: Mapping[int, Mapping[str, str]]
    """Values of parameters, by cell."""
    runs: Mapping[tuple[int, int], tuple[float | None, ...]]
    """Measures by cell and seed, of runs in which jobs ended."""

    @property
    def told(self) -> str:
        """Return what it is, in words."""
        words = [f"{name} {value}" for name, value in self.chosen.items()]
        return ", ".join([self.path, *words])


@attrs.frozen(kw_only=True)
class Group:
    """The pairs of runs of two cells: one of each side, with the same seed."""

    values: Mapping[str, str]
    """The parameters that both cells have alike."""
    cells: tuple[int, int]
    seeds: tuple[int, ...]
    alone: tuple[int, int]
    """How many runs of each have no partner."""
    measures: Mapping[str, tuple[Interval, Interval, Interval, tuple[float, ...]]]
    """Of each measure: that of A, that of B, the difference, and each pair's."""
    jobs: "Jobs | None"


@attrs.frozen(kw_only=True)
class Jobs:
    """Jobs of all pairs, job by job."""

    both: int
    sooner: int
    later: int
    alone: int
    waits: tuple[tuple[int, ...], tuple[int, ...]]
    """Of each side, sorted, in microseconds."""


def compare_sweeps(
    one: str,
    other: str | None,
    *,
    choices: tuple[Sequence[str], Sequence[str]],
    page: str | None,
    as_object: bool,
    force: bool,
) -> int:
    """Print how the runs of two sweeps differ, or of two parts of one; return the exit status.

    Raises:
        InputError: A table cannot be read, or it is not clear what is beside what.
    """
    if other is None and not any(choices):
        raise InputError(
            "compare: name a second file, or two parts of this table: --one NAME=VALUE and --other "
            "NAME=VALUE"
        )
    if page is not None:
        check_output(page, PAGE, "--html", force=force)
    sides = (_side(one, choices[0], "--one"), _side(other or one, choices[1], "--other"))
    groups = list(_groups(*sides))
    lines = list(_lines(sides, groups))
    if page is not None:
        write(page, PAGE, _page(sides, lines, groups), "--html", force=force)
    if as_object:
        print(json.dumps(_as_json(sides, groups), indent=1))
    else:
        print("\n".join(lines))
    return OK


# Reading.


def _side(path: str, choices: Sequence[str], option: str) -> Side:
    if not is_sweep(path):
        raise InputError(
            f"{path}: no table of a sweep, as the other is; a run stands beside a run, and a sweep "
            "beside a sweep"
        )
    check_head(path)
    try:
        with closing(sqlite3.connect(f"file:{_uri(path)}?mode=ro", uri=True)) as file:
            rows = file.execute("SELECT * FROM cells ORDER BY cell")
            names = [each[0] for each in rows.description[1:]]
            cells = {cell: dict(zip(names, values, strict=True)) for cell, *values in rows}
            chosen = dict(_chosen(each, names, cells, option) for each in choices)
            cells = {
                cell: values for cell, values in cells.items() if chosen.items() <= values.items()
            }
            found = file.execute(f"SELECT cell, seed, {', '.join(MEASURES)} FROM runs WHERE jobs")
            runs = {(cell, seed): tuple(values) for cell, seed, *values in found if cell in cells}
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot read it: {error}") from error
    return Side(path=path, chosen=chosen, cells=cells, runs=runs)


def _uri(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _chosen(
    text: str, names: Sequence[str], cells: Mapping[int, Mapping[str, str]], option: str
) -> tuple[str, str]:
    """Return a parameter and its value; the last part of a path will do for it."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"{option} {text!r}: expected NAME=VALUE")
    fits = [each for each in names if each == name] or [
        each for each in names if each.rpartition(".")[2].casefold() == name.casefold()
    ]
    if len(fits) != 1:
        hint = near(name, names) or f"; there are {', '.join(names) or 'none'}"
        raise InputError(f"{option} {text!r}: the table has no parameter {name}{hint}")
    values = list(dict.fromkeys(each[fits[0]] for each in cells.values()))
    if value not in values:
        raise InputError(f"{option} {text!r}: {name} has the values {', '.join(values)}")
    return fits[0], value


def _groups(one: Side, other: Side) -> Iterator[Group]:
    """Give the cells of one side that stand beside one of the other."""
    names = [
        name
        for name in next(iter(one.cells.values()), {})
        if name in next(iter(other.cells.values()), {})
        and name not in one.chosen
        and name not in other.chosen
    ]
    ours, theirs = (
        _by_values(side, names, option) for side, option in ((one, "--one"), (other, "--other"))
    )
    both = [values for values in ours if values in theirs]
    if not both:
        raise InputError("compare: the two have no cell with the same values of parameters")
    for values in both:
        yield _group(
            dict(zip(names, values, strict=True)), one, other, ours[values], theirs[values]
        )


def _by_values(side: Side, names: Sequence[str], option: str) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for cell, values in side.cells.items():
        key = tuple(values[name] for name in names)
        if key in found:
            first = side.cells[found[key]]
            differ = ", ".join(name for name in values if values[name] != first[name])
            raise InputError(
                f"compare: {side.path} has several cells that would stand beside one of the other "
                f"side: they differ in {differ}; choose with {option} NAME=VALUE"
            )
        found[key] = cell
    return found


def _group(values: dict[str, str], one: Side, other: Side, a: int, b: int) -> Group:
    ours = {seed for cell, seed in one.runs if cell == a}
    theirs = {seed for cell, seed in other.runs if cell == b}
    seeds = tuple(sorted(ours & theirs))
    measures = {}
    for place, name in enumerate(MEASURES):
        pairs = [
            (x, y)
            for seed in seeds
            if (x := one.runs[a, seed][place]) is not None
            and (y := other.runs[b, seed][place]) is not None
        ]
        if pairs:
            gaps = tuple(round(y - x, _DIGITS) for x, y in pairs)
            sides = (interval([x for x, _ in pairs]), interval([y for _, y in pairs]))
            measures[name] = (*sides, interval(gaps), gaps)
    return Group(
        values=values,
        cells=(a, b),
        seeds=seeds,
        alone=(len(ours - theirs), len(theirs - ours)),
        measures=measures,
        jobs=_jobs((one.path, a), (other.path, b), seeds),
    )


def _jobs(one: tuple[str, int], other: tuple[str, int], seeds: Sequence[int]) -> Jobs | None:
    """Return the jobs of all pairs side by side; None where a table has none."""
    both = sooner = later = alone = 0
    waits: tuple[list[int], list[int]] = ([], [])
    with (
        closing(sqlite3.connect(f"file:{_uri(one[0])}?mode=ro", uri=True)) as ours,
        closing(sqlite3.connect(f"file:{_uri(other[0])}?mode=ro", uri=True)) as theirs,
    ):
        for seed in seeds:
            sides = (_of_run(ours, one[1], seed), _of_run(theirs, other[1], seed))
            for side, gathered in zip(sides, waits, strict=True):
                gathered.extend(start - submit for submit, start in side.values())
            for job in sorted(sides[0].keys() & sides[1].keys()):
                gap = sides[1][job][1] - sides[0][job][1]
                both, sooner, later = both + 1, sooner + (gap < 0), later + (gap > 0)
            alone += len(sides[0].keys() ^ sides[1].keys())
    if not both and not alone:
        return None
    return Jobs(
        both=both,
        sooner=sooner,
        later=later,
        alone=alone,
        waits=(tuple(sorted(waits[0])), tuple(sorted(waits[1]))),
    )


def _of_run(file: sqlite3.Connection, cell: int, seed: int) -> dict[str, tuple[int, int]]:
    """Return submission and start of the jobs of a run that started, first runs of each."""
    found: dict[str, tuple[int, int]] = {}
    rows = file.execute(
        "SELECT job, name, submit_us, start_us FROM jobs WHERE cell = ? AND seed = ? "
        "AND start_us IS NOT NULL ORDER BY number",
        (cell, seed),
    )
    for job, name, submit, start in rows:
        # The replay of a log names jobs by the log's numbers; ids depend on which are left out.
        found.setdefault(name if name.startswith("swf") else job, (submit, start))
    return found


# In words.


def _lines(sides: tuple[Side, Side], groups: Sequence[Group]) -> Iterator[str]:
    yield f"A: {sides[0].told}"
    yield f"B: {sides[1].told}"
    for group in groups:
        yield ""
        values = ", ".join(f"{name} {value}" for name, value in group.values.items())
        yield f"{f'{values}: ' * bool(values)}{_counted(len(group.seeds), 'pair')} of runs" + (
            f", {group.alone[0]} of A and {group.alone[1]} of B without a partner"
            if any(group.alone)
            else ""
        )
        yield from (
            _sentence(name, group.measures[name][2]) for name in _WORDS if name in group.measures
        )
        if group.measures:
            yield ""
            yield from _table(group)
        if group.jobs is not None:
            yield ""
            yield from _of_jobs(group.jobs)
    if any(len(group.seeds) > 1 for group in groups):
        yield ""
        yield "± is the half width of the 95 % confidence interval of the mean difference of pairs."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _sentence(name: str, gap: Interval) -> str:
    what, unit = _WORDS[name]
    how = "higher" if gap.mean > 0 else "lower"
    size = f"{number(abs(gap.mean))}{unit}"
    if gap.least == gap.most == 0:
        return f"The {what} is the same in every pair."
    if gap.half is None:
        return f"The {what} is {how} in B by {size}; one pair says nothing about chance."
    if abs(gap.mean) <= gap.half:
        return f"The {what} is {how} in B by {size} ± {number(gap.half)}: that may be chance."
    return f"The {what} is {how} in B by {size} ± {number(gap.half)}."


def _table(group: Group) -> list[str]:
    rows = [["", "A", "B", "B - A", "±", "pairs lower in B", "higher"]]
    for name, (ours, theirs, gap, gaps) in group.measures.items():
        half = "-" if gap.half is None else number(gap.half)
        counts = (sum(each < 0 for each in gaps), sum(each > 0 for each in gaps))
        figures = (number(each.mean) for each in (ours, theirs, gap))
        rows.append([name, *figures, half, *map(str, counts)])
    return columns(rows)


def _of_jobs(jobs: Jobs) -> Iterator[str]:
    same = jobs.both - jobs.sooner - jobs.later
    alone = f"; {jobs.alone:,} started in one alone" if jobs.alone else ""
    yield (
        f"Of {jobs.both:,} jobs that started in both runs of a pair {jobs.sooner:,} start sooner "
        f"in B, {jobs.later:,} later, and {same:,} at the same moment{alone}."
    )
    yield ""
    yield from waits_of(*jobs.waits)


def _as_json(sides: tuple[Side, Side], groups: Sequence[Group]) -> dict[str, Any]:
    return {
        "tables": [{"file": each.path, "chosen": dict(each.chosen)} for each in sides],
        "cells": [
            {
                "parameters": dict(group.values),
                "pairs": len(group.seeds),
                "alone": list(group.alone),
                "measures": {
                    name: {"a": ours.mean, "b": theirs.mean, "difference": gap.as_json()}
                    for name, (ours, theirs, gap, _) in group.measures.items()
                },
                "jobs": None
                if group.jobs is None
                else {
                    "both": group.jobs.both,
                    "sooner_in_b": group.jobs.sooner,
                    "later_in_b": group.jobs.later,
                    "alone": group.jobs.alone,
                },
            }
            for group in groups
        ],
    }


# As a page.

_WIDTH: Final = 560
_ROW: Final = 26
_LEFT: Final = 170


def _page(sides: tuple[Side, Side], lines: Sequence[str], groups: Sequence[Group]) -> bytes:
    title = " and ".join(dict.fromkeys(side.path for side in sides))
    parts = [f"<pre>{html.escape(chr(10).join(lines))}</pre>"]
    for group in groups:
        values = ", ".join(f"{name} {value}" for name, value in group.values.items())
        head = f"B - A, a dot for each pair of runs{f' with {values}' * bool(values)}"
        parts.append(f"<h2>{html.escape(head)}</h2>{_picture(group)}")
    return write_page(title, {}, scripts=(), template="words.html", live="\n".join(parts))


def _picture(group: Group) -> str:
    """Return the differences of each measure as a row of dots around none, with their interval."""
    rows = []
    for place, (name, (_, _, gap, gaps)) in enumerate(group.measures.items()):
        y = _ROW * place + _ROW / 2
        most = max(*map(abs, gaps), abs(gap.mean) + (gap.half or 0)) or 1.0

        def at(value: float, most: float = most) -> str:
            return f"{_LEFT + _WIDTH / 2 * (1 + value / most):.1f}"

        half = gap.half or 0
        ends = (at(gap.mean - half), at(gap.mean + half))
        rows.append(f'<text x="0" y="{y + 4}" stroke="none">{html.escape(name)}</text>')
        rows.append(f'<line x1="{ends[0]}" x2="{ends[1]}" y1="{y}" y2="{y}" stroke-width="5" />')
        rows += (f'<circle cx="{at(each)}" cy="{y}" r="3" />' for each in gaps)
        rows.append(
            f'<text x="{_LEFT + _WIDTH + 12}" y="{y + 4}" stroke="none">±{number(most)}</text>'
        )
    height = _ROW * len(group.measures)
    middle = _LEFT + _WIDTH / 2
    return (
        f'<svg viewBox="0 0 {_LEFT + _WIDTH + 90} {height}" font-size="12" stroke="#4878a8" '
        f'><line x1="{middle}" x2="{middle}" y1="0" '
        f'y2="{height}" stroke="#999" />{"".join(rows)}</svg>'
    )
