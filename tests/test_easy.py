"""sched/backfill held against an EASY simulator that shares nothing with it."""

import math
import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.replaying import options
from simctl.ctld.state.job_rows import JobRow
from simctl.replay import scenario, submit_all
from simctl.scenario.swf import SwfJob, SwfLog
from simctl.wire.hostlist import expand
from simctl.world import RunResult, World
from tests.easy import EasyJob, EasyRun, easy_starts, run_easy

INTERVAL = 30_000
"""Of backfill, in milliseconds, as all times here."""
CONF = ["SchedulerParameters=batch_sched_delay=0,bf_resolution=1"]
FAST = ["SchedulerParameters=batch_sched_delay=0,bf_resolution=1,bf_interval=1"]
CLOSE = 0.98
"""Which share of jobs no second on a knife's edge sends another way."""


def swf_job(number: int, job: EasyJob) -> SwfJob:
    """Return a job of a log."""
    return SwfJob(
        number=number,
        submit_s=job.submit / 1000,
        run_s=job.run / 1000,
        processors=job.nodes,
        requested_s=job.limit // 1000,
        user_id=number % 3,
        group_id=1,
        queue=1,
        partition=1,
        status=1,
        line=number,
    )


def replay(jobs: list[EasyJob], nodes: int, conf: list[str] = CONF) -> RunResult:
    """Replay jobs with backfill, without latency and scheduler delays."""
    made = [swf_job(number, job) for number, job in enumerate(jobs, start=1)]
    log = SwfLog(path="log.swf", header={}, jobs=tuple(made), malformed=(), partial_lines=())
    given_options = options(nodes, scheduler="backfill", latency="0", conf=conf)
    world = World(scenario(log, made, given_options))
    submit_all(world, made, 1)
    return world.run()


def easy_job(submit: int, run: int, odd: int, more: int, nodes: int) -> EasyJob:
    """Return a job to which nothing ever happens in the moment in which backfill looks.

    Submissions are two seconds past those moments, and every run moves the end of a job on by at
    most one second from them, so that up to 27 jobs one after another never meet one.
    """
    run = INTERVAL * run + odd
    limit_min = -(-run // 60_000) + more
    return EasyJob(submit=INTERVAL * submit + 2000, run=run, limit=60_000 * limit_min, nodes=nodes)


LOADS = st.lists(
    st.builds(
        easy_job,
        st.integers(0, 12),
        st.integers(0, 20),
        st.integers(1, 1000),
        st.integers(0, 3),
        st.integers(1, 6),
    ),
    min_size=2,
    max_size=16,
).map(lambda jobs: sorted(jobs, key=lambda job: job.submit))


@settings(derandomize=True, deadline=None, max_examples=40)
@given(jobs=LOADS)
def test_backfill_agrees_with_a_small_easy_simulator(jobs: list[EasyJob]) -> None:
    """Every start and end, and every node."""
    first = jobs[0].submit - 2000
    jobs = [EasyJob(submit=j.submit - first, run=j.run, limit=j.limit, nodes=j.nodes) for j in jobs]
    # A replay begins with the first submission; one more job keeps that at second 0.
    jobs = [EasyJob(submit=0, run=1, limit=60_000, nodes=1), *jobs]
    wanted = run_easy(jobs, nodes=6, interval=INTERVAL)
    # Of jobs that end at one moment the controller hears one after another.
    moments = [run.end for run in wanted] + list({job.submit for job in jobs})
    assume(len(set(moments)) == len(moments))
    found = [
        (row.start_us, row.end_us, tuple(int(name[1:]) - 1 for name in expand(row.nodes)))
        for row in replay(jobs, 6).rows
    ]
    assert found == [(run.start * 1000, run.end * 1000, run.nodes) for run in wanted]


def test_by_hand() -> None:
    """The third job is over before the head begins, and the fourth would be in its way."""
    jobs = [
        EasyJob(submit=0, run=600, limit=600, nodes=2),
        EasyJob(submit=1, run=600, limit=600, nodes=4),
        EasyJob(submit=2, run=300, limit=300, nodes=2),
        EasyJob(submit=3, run=900, limit=900, nodes=2),
    ]
    runs = run_easy(jobs, nodes=4, interval=30)
    assert [(run.start, run.nodes) for run in runs] == [
        (0, (0, 1)),
        (600, (0, 1, 2, 3)),
        (30, (2, 3)),
        (1200, (0, 1)),
    ]


def test_what_is_idle_is_left_to_those_behind_the_head() -> None:
    """Three of the four nodes that the head needs come free in time; a long job has the others."""
    jobs = [
        EasyJob(submit=0, run=9_001, limit=60_000, nodes=2),
        EasyJob(submit=1_000, run=600_000, limit=600_000, nodes=3),
        EasyJob(submit=12_000, run=600_000, limit=600_000, nodes=4),
        EasyJob(submit=13_000, run=900_000, limit=900_000, nodes=2),
    ]
    wanted = [(0, (0, 1)), (1_000, (2, 3, 4)), (601_000, (0, 2, 3, 4)), (30_000, (1, 5))]
    runs = run_easy(jobs, nodes=6, interval=INTERVAL)
    assert [(run.start, run.nodes) for run in runs] == wanted
    found = [
        (row.start_us // 1000, tuple(int(name[1:]) - 1 for name in expand(row.nodes)))
        for row in replay(jobs, 6).rows
    ]
    assert found == wanted


def workload(seed: int) -> list[EasyJob]:
    """Return 200 jobs for 64 nodes that ask for up to three times as long as they run.

    No two things happen in one millisecond, nor any in the moment in which backfill looks.
    """
    chance = random.Random(f"easy:{seed}")
    jobs, now = [], 0
    for number in range(200):
        run = int(math.exp(chance.uniform(math.log(60), math.log(3600))))
        limit = -(-int(run * chance.uniform(1, 3)) // 60) * 60
        at = now * 1000 + 2 * number % 1000 if number else 0
        nodes = 2 ** chance.randrange(6)
        run_ms = run * 1000 - 2 * chance.randrange(400) - 1
        jobs.append(EasyJob(submit=at, run=run_ms, limit=limit * 1000, nodes=nodes))
        now += int(chance.expovariate(1 / 180)) + 1
    return jobs


def starts(rows: Sequence[JobRow]) -> list[int]:
    """Return when jobs started, in milliseconds."""
    return [round(row.start_us / 1000) for row in rows]


@pytest.mark.parametrize("seed", range(2))
def test_two_hundred_jobs_start_when_the_reference_starts_them(seed: int) -> None:
    """Both look behind the head every 30 s: no start differs."""
    jobs = workload(seed)
    wanted = [run.start for run in run_easy(jobs, nodes=64, interval=INTERVAL)]
    assert sum(start > job.submit for start, job in zip(wanted, jobs, strict=True)) > 50
    assert starts(replay(jobs, 64).rows) == wanted


def test_at_a_fast_pace_nearly_all_start_when_event_driven_easy_starts_them() -> None:
    """What is left is the pace: where a limit ends just as the head begins, a second decides."""
    close = total = 0
    for seed in range(3):
        jobs = workload(seed)
        found = starts(replay(jobs, 64, FAST).rows)
        late = [one - other for one, other in zip(found, easy_starts(jobs, nodes=64), strict=True)]
        close += sum(abs(each) < 5_000 for each in late)
        total += len(late)
    assert close / total > CLOSE


def spans(runs: list[EasyRun]) -> list[tuple[int, int]]:
    """Return from when to when jobs run."""
    return [(run.start, run.end) for run in runs]


@pytest.mark.parametrize("interval", [1000, INTERVAL])
@settings(derandomize=True, deadline=None)
@given(jobs=LOADS)
def test_easy_shares_no_node(interval: int, jobs: list[EasyJob]) -> None:
    """The reference itself: a node runs one job at a time, and nobody starts before it comes."""
    runs = run_easy(jobs, nodes=6, interval=interval)
    for node in range(6):
        here = sorted(
            span for run, span in zip(runs, spans(runs), strict=True) if node in run.nodes
        )
        assert all(one[1] <= other[0] for one, other in pairwise(here))
    assert all(run.start >= job.submit for job, run in zip(jobs, runs, strict=True))
