"""The measures of a replay, by hand on small cases and by their laws on many."""

from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simctl.reports.measures import against
from simctl.scenario.replay_report import (
    ReplayJob,
    Spread,
    bounded_slowdown,
    format_report,
    measure,
    percentile,
)

S = 1_000_000


def job(submit: int, start: int, end: int, cpus: int = 1) -> ReplayJob:
    """Return a job with its times in seconds."""
    return ReplayJob(submit_us=submit * S, start_us=start * S, end_us=end * S, cpus=cpus, nodes=1)


def test_makespan_runs_from_the_first_submit_to_the_last_end() -> None:
    """Neither the order of the jobs nor the zero of the clock matters."""
    assert measure([job(105, 110, 190), job(100, 160, 170)], 4).makespan_s == 90


def test_utilisation_is_cpu_seconds_used_over_those_there_were() -> None:
    """Two jobs: 2 cpus for 10 s and 4 for 5 s, of 4 cpus for 20 s."""
    assert measure([job(0, 0, 10, cpus=2), job(0, 15, 20, cpus=4)], 4).utilisation == 0.5


def test_waits_count_from_submit_to_start() -> None:
    """Waits of 1, 2, .. 100 s: the nearest ranks are the numbers themselves."""
    wait = measure([job(0, n, n + 10) for n in range(100, 0, -1)], 1).wait_s
    assert wait == Spread(mean=50.5, p50=50, p90=90, p95=95, p99=99, max=100)


def test_slowdown_is_bounded_for_short_jobs() -> None:
    """A run below 10 s counts as 10 s, and no job is faster than in an empty cluster."""
    assert bounded_slowdown(job(0, 0, 1)) == 1
    assert bounded_slowdown(job(0, 9, 10)) == 1
    assert bounded_slowdown(job(0, 29, 30)) == 3
    assert bounded_slowdown(job(0, 60, 80)) == 4
    assert bounded_slowdown(job(0, 20, 20)) == 2


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([7], 1, 7), ([7], 99, 7), ([1, 2], 50, 1), ([1, 2], 51, 2), ([1, 2, 3], 50, 2)],
)
def test_percentiles_are_nearest_rank(values: list[float], percent: int, expected: float) -> None:
    """The least value that has the share of all at or below it."""
    assert percentile(values, percent) == expected


def test_no_jobs_measure_as_nothing_and_report_so() -> None:
    """An empty replay is no error."""
    measures = measure([], 8)
    assert (measures.jobs, measures.makespan_s, measures.utilisation) == (0, 0, 0)
    assert format_report(measures)[-1] == "no job ended: there is nothing to measure"


def test_a_makespan_of_zero_has_no_utilisation() -> None:
    """Jobs of no length submitted at one moment use nothing."""
    measures = measure([job(5, 5, 5), job(5, 5, 5)], 8)
    assert (measures.makespan_s, measures.utilisation, measures.bounded_slowdown.max) == (0, 0, 1)
    assert format_report(measures)[1] == "makespan     00:00:00 (0 s)"


def test_a_cluster_without_cpus_is_refused() -> None:
    """Utilisation would have no meaning."""
    with pytest.raises(ValueError, match="at least one cpu, got 0"):
        measure([], 0)


@pytest.mark.parametrize("times", [(5, 4, 6), (5, 6, 5)])
def test_times_out_of_order_are_refused(times: tuple[int, int, int]) -> None:
    """A start before the submit or an end before the start is a bug of the caller."""
    with pytest.raises(ValueError, match="out of order"):
        job(*times)


def test_the_report_shows_all_measures_in_columns() -> None:
    """A table a person can read: lengths as Slurm prints them, one row a measure."""
    assert format_report(measure([job(0, 0, 100), job(0, 100, 90_100)], 1)) == [
        "jobs         2",
        "makespan     1-01:01:40 (90100 s)",
        "utilisation  100.0%",
        "",
        "                      mean       p50       p90       p95       p99       max",
        "wait (s)              50.0       0.0     100.0     100.0     100.0     100.0",
        "bounded slowdown      1.00      1.00      1.00      1.00      1.00      1.00",
    ]


lengths = st.integers(0, 10**16)
jobs_strategy = st.lists(
    st.builds(
        lambda submit, wait, run, cpus: ReplayJob(
            submit_us=submit, start_us=submit + wait, end_us=submit + wait + run, cpus=cpus, nodes=1
        ),
        lengths,
        lengths,
        lengths,
        st.integers(1, 10**6),
    ),
    max_size=30,
)


@settings(derandomize=True, deadline=None)
@given(jobs=jobs_strategy, capacity=st.integers(1, 10**6))
def test_measures_keep_their_laws_and_fit_80_columns(jobs: list[ReplayJob], capacity: int) -> None:
    """Percentiles ascend to the maximum, slowdown is at least 1, however large the numbers."""
    measures = measure(jobs, capacity)
    for spread in (measures.wait_s, measures.bounded_slowdown):
        assert spread.p50 <= spread.p90 <= spread.p95 <= spread.p99 <= spread.max
        assert spread.mean <= spread.max * (1 + 1e-12)
    assert not jobs or measures.bounded_slowdown.p50 >= 1
    assert all(len(line) <= 80 for line in format_report(measures))


@settings(derandomize=True, deadline=None)
@given(jobs=jobs_strategy, capacity=st.integers(1, 10**6), data=st.data())
def test_measures_do_not_depend_on_the_order_of_jobs(
    jobs: list[ReplayJob], capacity: int, data: st.DataObject
) -> None:
    """The same jobs in another order give the same report, to the last digit."""
    assert measure(data.draw(st.permutations(jobs)), capacity) == measure(jobs, capacity)


@pytest.mark.parametrize(
    ("late_s", "how"),
    [
        (-60.000001, "sooner"),
        *((late_s, "alike") for late_s in (-60, 0, 60)),
        (60.000001, "later"),
    ],
)
def test_a_wait_is_as_long_as_recorded_within_a_minute(late_s: float, how: str) -> None:
    """Each job that started is one of the three; one that has not, or is not recorded, is none."""

    def row(job_id: int, start_us: int) -> Any:
        return SimpleNamespace(job_id=job_id, array_task_id=-1, submit_us=0, start_us=start_us)

    start_us = 100_000_000 + round(late_s * 1_000_000)
    rows = [row(1, start_us), row(2, -1), row(3, start_us)]
    counts = attrs.asdict(against(rows, {"1": 100_000_000, "2": 100_000_000}))
    assert counts == {"jobs": 1, "alike": 0, "sooner": 0, "later": 0, how: 1}
