"""Measure how a replayed workload fared: how long jobs waited and how full the cluster was."""

import math
from collections.abc import Sequence
from typing import Final

import attrs

from simctl.wire.ids import SECOND

SLOWDOWN_BOUND_US: Final = 10 * SECOND
"""Jobs shorter than this count as this long, lest a job of a second decide the mean slowdown."""

_COLUMNS: Final = ("mean", "p50", "p90", "p95", "p99", "max")
_NUMBER_WIDTH: Final = 9


@attrs.frozen(kw_only=True)
class ReplayJob:
    """A job that has ended; times in virtual microseconds.

    Attributes:
        submit_us: When it was submitted.
        start_us: When it began to run.
        end_us: When it ended.
        cpus: What it had allocated, which with whole nodes is more than it asked for.
        nodes: How many nodes it had.
    """

    submit_us: int
    start_us: int
    end_us: int
    cpus: int
    nodes: int

    def __attrs_post_init__(self) -> None:
        """Refuse a job that starts before it is submitted, or ends before it starts."""
        if not self.submit_us <= self.start_us <= self.end_us:
            raise ValueError(f"a job's times are out of order: {self}")


@attrs.frozen(kw_only=True)
class Spread:
    """The mean of a measure and its percentiles by nearest rank; all 0 where there are no jobs."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


@attrs.frozen(kw_only=True)
class ReplayMeasures:
    """What a replay is judged by.

    Attributes:
        jobs: How many were measured.
        makespan_s: Seconds from the first submit to the last end.
        utilisation: Cpu-seconds allocated, over those the cluster had in the makespan; 0 to 1.
        wait_s: Seconds from submit to start.
        bounded_slowdown: Time in the system over run time, runs below 10 s counted as 10 s;
            at least 1.
    """

    jobs: int
    makespan_s: float
    utilisation: float
    wait_s: Spread
    bounded_slowdown: Spread


def measure(jobs: Sequence[ReplayJob], capacity_cpus: int) -> ReplayMeasures:
    """Measure *jobs* on a cluster of *capacity_cpus*.

    No jobs, or a makespan of zero, give a utilisation of 0.

    Raises:
        ValueError: The cluster has no cpu.
    """
    if capacity_cpus < 1:
        raise ValueError(f"a cluster needs at least one cpu, got {capacity_cpus}")
    makespan_us = _makespan_us(jobs)
    used = sum(job.cpus * (job.end_us - job.start_us) for job in jobs)
    return ReplayMeasures(
        jobs=len(jobs),
        makespan_s=makespan_us / SECOND,
        utilisation=used / (capacity_cpus * makespan_us) if makespan_us else 0.0,
        wait_s=_spread([(job.start_us - job.submit_us) / SECOND for job in jobs]),
        bounded_slowdown=_spread([bounded_slowdown(job) for job in jobs]),
    )


def bounded_slowdown(job: ReplayJob) -> float:
    """Return how many times longer the job took than it would have in an empty cluster."""
    run_us = max(job.end_us - job.start_us, SLOWDOWN_BOUND_US)
    return max(1.0, (job.end_us - job.submit_us) / run_us)


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the nearest-rank percentile: the least value with *percent* % at or below it.

    It is always one of the values, never a mean of two.

    Args:
        ordered: At least one value, ascending.
        percent: 1 to 100.
    """
    rank = -(-percent * len(ordered) // 100)  # rounded up, in whole numbers
    return ordered[rank - 1]


def format_report(measures: ReplayMeasures) -> list[str]:
    """Return the measures as lines of at most 80 columns."""
    lines = [f"jobs         {measures.jobs}"]
    if not measures.jobs:
        return [*lines, "no job ended: there is nothing to measure"]
    clock = _clock(measures.makespan_s)
    return [
        *lines,
        f"makespan     {clock} ({measures.makespan_s:.0f} s)",
        f"utilisation  {measures.utilisation:.1%}",
        "",
        _row("", _COLUMNS),
        _row("wait (s)", _cells(measures.wait_s, decimals=1)),
        _row("bounded slowdown", _cells(measures.bounded_slowdown, decimals=2)),
    ]


def format_waits(label: str, waits_s: Sequence[float]) -> str:
    """Return one more line of the table: waits in seconds."""
    return _row(f"{label} (s)", _cells(_spread(waits_s), decimals=1))


def _makespan_us(jobs: Sequence[ReplayJob]) -> int:
    """Return the time from the first submit to the last end."""
    if not jobs:
        return 0
    return max(job.end_us for job in jobs) - min(job.submit_us for job in jobs)


def _spread(values: Sequence[float]) -> Spread:
    """Return mean and percentiles of *values*."""
    ordered = sorted(values) or [0.0]
    return Spread(
        mean=math.fsum(ordered) / len(ordered),
        p50=percentile(ordered, 50),
        p90=percentile(ordered, 90),
        p95=percentile(ordered, 95),
        p99=percentile(ordered, 99),
        max=ordered[-1],
    )


def _cells(spread: Spread, *, decimals: int) -> tuple[str, ...]:
    """Return the numbers of *spread* in the order of the columns."""
    return tuple(_number(getattr(spread, column), decimals) for column in _COLUMNS)


def _number(value: float, decimals: int) -> str:
    """Return *value* with *decimals*, or in powers of ten where that is wider than its column."""
    text = f"{value:.{decimals}f}"
    return text if len(text) <= _NUMBER_WIDTH else f"{value:.3e}"


def _row(label: str, cells: Sequence[str]) -> str:
    """Return a line of the table."""
    return f"{label:<16}" + "".join(f" {cell:>{_NUMBER_WIDTH}}" for cell in cells)


def _clock(seconds: float) -> str:
    """Return a length of time as Slurm prints it: `days-hours:minutes:seconds`."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    prefix = f"{days}-" if days else ""
    return f"{prefix}{hour:02}:{minute:02}:{second:02}"
