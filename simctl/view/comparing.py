"""`simctl compare`: two runs in words: waits, slowdown, use, starts, and job by job."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import attrs

from simctl.scenario.durations import format_moment, format_us
from simctl.view.runs import LOG, JobRun, StoredRun, first_runs, percentile, use_of

_PARTS: Final = ((0.5, "median"), (0.9, "90 %"), (0.99, "99 %"))
_SHORT_US: Final = 10_000_000
"""Below this a job counts as so long in its slowdown, so that short ones do not outweigh all."""
_SECOND_US: Final = 1_000_000
_NAMED: Final = 5
_MINUTE_US: Final = 60 * _SECOND_US
_BOUNDS: Final = (
    *((0, "no wait"), (_MINUTE_US, "up to 1 min"), (10 * _MINUTE_US, "up to 10 min")),
    *((60 * _MINUTE_US, "up to 1 h"), (360 * _MINUTE_US, "up to 6 h")),
    *((1440 * _MINUTE_US, "up to 1 d"),),
)
"""Up to where a wait counts in a line of the distribution; waits below a second are none."""


@attrs.frozen(kw_only=True)
class Measures:
    """What is measured of a run; times in microseconds."""

    jobs: int
    started: int
    makespan_us: int
    use: float | None
    waits: tuple[int, ...]
    """Sorted."""
    slowdowns: tuple[float, ...]
    """Sorted: (wait + run) / run, of jobs that ended, a run below ten seconds taken as that."""

    def as_json(self) -> dict[str, Any]:
        """Return them for programs; null for what there is none of."""
        return {
            "jobs": self.jobs,
            "started": self.started,
            "makespan_us": self.makespan_us,
            "use": self.use,
            "wait_us": _spread(self.waits),
            "slowdown": _spread(self.slowdowns),
        }


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    names = {"median": 0.5, "p90": 0.9, "p99": 0.99}
    found = {name: percentile(values, part) for name, part in names.items()}
    return {"mean": sum(values) / len(values), **found, "max": values[-1]}


def measure(run: StoredRun) -> Measures:
    """Measure a run."""
    firsts = first_runs(run).values()
    waits = [wait for job in firsts if (wait := job.wait_us) is not None]
    slowdowns = [slow for job in firsts if (slow := _slowdown(job)) is not None]
    begin = min((job.submit_us for job in run.jobs), default=0)
    return Measures(
        jobs=len(firsts),
        started=len(waits),
        makespan_us=run.end_us - begin,
        use=use_of(run),
        waits=tuple(sorted(waits)),
        slowdowns=tuple(sorted(slowdowns)),
    )


def _slowdown(job: JobRun) -> float | None:
    if job.wait_us is None or job.ran_us is None:
        return None
    ran = max(job.ran_us, _SHORT_US)
    return max(1.0, (job.wait_us + job.ran_us) / ran)


@attrs.frozen(kw_only=True)
class Pair:
    """A job that is in both runs and started in both."""

    label: str
    ours: JobRun
    theirs: JobRun

    @property
    def gain_us(self) -> int:
        """How much less it waits in the second run."""
        return (self.ours.wait_us or 0) - (self.theirs.wait_us or 0)

    @property
    def later_us(self) -> int:
        """How much later it starts in the second run."""
        return (self.theirs.start_us or 0) - (self.ours.start_us or 0)


@attrs.frozen(kw_only=True)
class Comparison:
    """Two runs beside each other."""

    one: StoredRun
    other: StoredRun
    measures: tuple[Measures, Measures]
    pairs: tuple[Pair, ...]
    alone: tuple[tuple[str, ...], tuple[str, ...]]
    """Jobs that only one of them has, of each."""
    not_started: tuple[tuple[str, ...], tuple[str, ...]]
    """Jobs of both that started in the other alone."""
    alike_us: int = 0
    """Up to how far apart moments are taken as one: of what was recorded, within a minute."""


def compare(one: StoredRun, other: StoredRun) -> Comparison:
    """Put two runs beside each other, job by job by their numbers.

    One that a site has recorded gets the other's clock and, for its use, the other's cpus.
    """
    if LOG in (one.recorded, other.recorded):
        one, other = _by_names(one), _by_names(other)
    one, other = _beside(one, other), _beside(other, one)
    ours, theirs = first_runs(one), first_runs(other)
    both = [label for label in ours if label in theirs]
    never: tuple[list[str], list[str]] = ([], [])
    pairs = []
    for label in both:
        mine, others = ours[label], theirs[label]
        if mine.start_us is not None and others.start_us is not None:
            pairs.append(Pair(label=label, ours=mine, theirs=others))
        elif others.start_us is not None:
            never[0].append(label)
        elif mine.start_us is not None:
            never[1].append(label)
    return Comparison(
        one=one,
        other=other,
        measures=(measure(one), measure(other)),
        pairs=tuple(pairs),
        alone=(
            tuple(label for label in ours if label not in theirs),
            tuple(label for label in theirs if label not in ours),
        ),
        not_started=(tuple(never[0]), tuple(never[1])),
        alike_us=_MINUTE_US if one.recorded or other.recorded else 0,
    )


def _by_names(run: StoredRun) -> StoredRun:
    """Return a run with its jobs called as the replay of a log names them: by the log's numbers."""
    jobs = (attrs.evolve(job, label=job.name or job.label) for job in run.jobs)
    return attrs.evolve(run, jobs=tuple(jobs))


def _beside(run: StoredRun, other: StoredRun) -> StoredRun:
    """Return a recorded run as it stands beside another; a simulated one as it is."""
    if not run.recorded or other.recorded:
        return run
    theirs = first_runs(other)
    both = ((job, theirs[job.label]) for job in run.jobs if job.label in theirs)
    by_us = next((known.submit_us - job.submit_us for job, known in both), 0)
    jobs = tuple(job.moved(by_us) for job in run.jobs)
    return attrs.evolve(run, cpus=run.cpus or other.cpus, jobs=jobs)


def as_json(found: Comparison) -> dict[str, Any]:
    """Return a comparison for programs."""
    gains = [pair.gain_us for pair in found.pairs]
    return {
        "runs": [
            {"file": run.name, "complete": run.whole, **measures.as_json()}
            for run, measures in zip((found.one, found.other), found.measures, strict=True)
        ],
        "jobs": {
            "both": len(found.pairs),
            "wait_less_in_b": sum(gain > found.alike_us for gain in gains),
            "wait_more_in_b": sum(gain < -found.alike_us for gain in gains),
            "wait_the_same": sum(abs(gain) <= found.alike_us for gain in gains),
            "start_the_same": sum(abs(pair.later_us) <= found.alike_us for pair in found.pairs),
            "only_in_a": list(found.alone[0]),
            "only_in_b": list(found.alone[1]),
            "never_started_in_a": list(found.not_started[0]),
            "never_started_in_b": list(found.not_started[1]),
        },
    }


# In words.


def told(found: Comparison) -> list[str]:
    """Return a comparison as lines for people."""
    lines = [f"A: {_run(found.one)}", f"B: {_run(found.other)}", ""]
    lines += _table(found)
    lines += [
        "",
        *waits_of(*(each.waits for each in found.measures)),
        "",
        *_waits(found),
        *_starts(found),
        *_lacking(found),
    ]
    return lines


def _run(run: StoredRun) -> str:
    facts = run.facts
    if run.recorded:
        return f"{run.name} (recorded: {run.recorded})"
    words = [f"{facts.get('scenario')}, seed {facts.get('seed')}, schedule {facts.get('schedule')}"]
    words.append(f"model {facts.get('model')}")
    if not run.whole:
        words.append("NOT COMPLETE: the run was cut short")
    return f"{run.name} ({', '.join(words)})"


def _table(found: Comparison) -> list[str]:
    a, b = found.measures
    rows: list[tuple[str, str, str, str]] = [("", "A", "B", "B - A")]

    def row(name: str, one: float | None, other: float | None, say: Callable[[float], str]) -> None:
        if one is None or other is None:
            shown = ["-" if each is None else say(each) for each in (one, other)]
            rows.append((name, shown[0], shown[1], "-"))
            return
        gap = other - one
        sign = "-" if gap < 0 else "+" if gap > 0 else ""
        rows.append((name, say(one), say(other), f"{sign}{say(abs(gap))}"))

    row("jobs", a.jobs, b.jobs, lambda each: f"{each:.0f}")
    row("started", a.started, b.started, lambda each: f"{each:.0f}")
    row("from first submit to last end", a.makespan_us, b.makespan_us, _seconds)
    row("cpus in use", a.use, b.use, lambda each: f"{each * 100:.1f} %")
    for what, ours, theirs, say in (
        ("wait", a.waits, b.waits, _seconds),
        ("slowdown", a.slowdowns, b.slowdowns, lambda each: f"{each:.2f}"),
    ):
        row(f"{what}, mean", _mean(ours), _mean(theirs), say)
        for part, name in _PARTS:
            row(f"{what}, {name}", _part(ours, part), _part(theirs, part), say)
        row(f"{what}, longest", _part(ours, 1.0), _part(theirs, 1.0), say)
    return columns(rows)


def columns(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return rows of cells as lines; the first *left* columns begin at the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in rows
    ]


def waits_of(ours: Sequence[int], theirs: Sequence[int]) -> list[str]:
    """Return how many jobs waited how long on each side, as lines; waits are sorted."""
    rows = [("jobs that waited", "A", "B")]
    counts = (_counted(ours), _counted(theirs))
    names = [*(name for _, name in _BOUNDS), "longer"]
    for name, one, other in zip(names, *counts, strict=True):
        if one or other:
            rows.append((name, f"{one:,}", f"{other:,}"))
    return columns(rows)


def _counted(waits: Sequence[int]) -> list[int]:
    """Return how many sorted waits lie between each bound and the one before."""
    ends = [bisect_left(waits, _SECOND_US)]
    ends += [bisect_right(waits, bound) for bound, _ in _BOUNDS[1:]]
    ends = [*(max(end, ends[0]) for end in ends), len(waits)]
    return [end - before for before, end in pairwise((0, *ends))]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _part(values: Sequence[float], part: float) -> float | None:
    return percentile(values, part) if values else None


def _seconds(us: float) -> str:
    """Write a time to the second, and shorter ones as they are."""
    return format_us(round(us / _SECOND_US) * _SECOND_US if us >= _SHORT_US else round(us))


def _waits(found: Comparison) -> list[str]:
    if not found.pairs:
        return ["No job started in both runs, so there is nothing to compare job by job."]
    gains = sorted(found.pairs, key=lambda pair: pair.gain_us)
    less = sum(pair.gain_us > found.alike_us for pair in gains)
    more = sum(pair.gain_us < -found.alike_us for pair in gains)
    same = len(gains) - less - more
    counts = f"{less:,} wait less in B, {more:,} wait more, and {same:,} wait as long"
    within = ", within a minute" if found.alike_us else ""
    lines = [f"Of {len(gains):,} jobs that started in both, {counts}{within}."]
    best = [pair for pair in reversed(gains) if pair.gain_us > found.alike_us][:_NAMED]
    worst = [pair for pair in gains if pair.gain_us < -found.alike_us][:_NAMED]
    lines += [f"  less: {_pair(pair)}" for pair in best]
    lines += [f"  more: {_pair(pair)}" for pair in worst]
    return lines


def _pair(pair: Pair) -> str:
    name = f" {pair.ours.name}" if pair.ours.name not in ("", pair.label) else ""
    waits = [_seconds(job.wait_us or 0) for job in (pair.ours, pair.theirs)]
    return f"job {pair.label}{name} of {pair.ours.user} waits {waits[1]} instead of {waits[0]}"


def _starts(found: Comparison) -> list[str]:
    apart = [pair for pair in found.pairs if abs(pair.later_us) > found.alike_us]
    if not found.pairs:
        return []
    if not apart:
        places = [pair for pair in found.pairs if pair.ours.nodes != pair.theirs.nodes]
        where = f", {len(places):,} of them on other nodes" if places else " on the same nodes"
        if found.alike_us:
            where = ", within a minute"
        return [f"All of them start at the same moments{where}."]
    first = min(apart, key=lambda pair: min(pair.ours.start_us or 0, pair.theirs.start_us or 0))
    starts = [format_moment(job.start_us or 0) for job in (first.ours, first.theirs)]
    where = f"job {first.label}: at {starts[0]} in A, at {starts[1]} in B"
    alike = len(found.pairs) - len(apart)
    within = ", within a minute" if found.alike_us else ""
    return [f"{alike:,} start at the same moment{within}. The first that does not is {where}."]


def _lacking(found: Comparison) -> list[str]:
    lines = []
    for name, labels in zip("AB", found.alone, strict=True):
        if labels:
            lines.append(f"Only {name} has {_labels(labels)}.")
    for name, labels in zip("AB", found.not_started, strict=True):
        if labels:
            lines.append(f"Never started in {name}: {_labels(labels)}.")
    return lines


def _labels(labels: Sequence[str]) -> str:
    more = len(labels) - _NAMED
    shown = ", ".join(labels[:_NAMED])
    return f"job{'s' if len(labels) > 1 else ''} {shown}{f' and {more:,} more' if more > 0 else ''}"
