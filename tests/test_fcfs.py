"""The reference scheduler, held against its rules and against counting one tick after another."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fcfs import FcfsJob, FcfsRun, nodes_needed, run_fcfs

NODES = 5

jobs_strategy = st.lists(
    st.builds(
        lambda submit, run, processors: FcfsJob(submit=submit, run=run, processors=processors),
        st.integers(0, 15),
        st.integers(0, 8),
        st.integers(1, 2 * NODES),
    ),
    max_size=12,
)


def in_queue_order(jobs: list[FcfsJob]) -> list[int]:
    """Return the places of *jobs* in the order in which they queue."""
    return sorted(range(len(jobs)), key=lambda place: jobs[place].submit)


def nodes_busy(runs: list[FcfsRun], tick: int) -> int:
    """Return how many nodes are taken in the unit of time that begins at *tick*."""
    return sum(run.nodes for run in runs if run.start <= tick < run.end)


def count_ticks(jobs: list[FcfsJob], nodes: int) -> list[tuple[int, int]]:
    """Run single-cpu *nodes* one tick after another: ends first, then starts from the head."""
    queue = in_queue_order(jobs)
    spans = [(0, 0)] * len(jobs)
    running: list[int] = []
    tick = 0
    while queue:
        running = [place for place in running if spans[place][1] > tick]
        free = nodes - sum(jobs[place].processors for place in running)
        head = queue[0]
        if jobs[head].submit <= tick and jobs[head].processors <= free:
            spans[head] = (tick, tick + jobs[head].run)
            running.append(queue.pop(0))
        else:
            tick += 1
    return spans


def test_the_head_of_the_queue_blocks_jobs_that_would_fit() -> None:
    """Strict first come, first served: no backfill past a wide job."""
    wide_in_front = [
        FcfsJob(submit=0, run=10, processors=3),
        FcfsJob(submit=1, run=5, processors=4),
        FcfsJob(submit=2, run=1, processors=1),
    ]
    assert [(run.start, run.end) for run in run_fcfs(wide_in_front, nodes=4)] == [
        (0, 10),
        (10, 15),
        (15, 16),
    ]


def test_jobs_take_whole_nodes() -> None:
    """Five processors on nodes of four are two nodes, and the rest of the second is lost."""
    jobs = [FcfsJob(submit=0, run=10, processors=5), FcfsJob(submit=0, run=1, processors=1)]
    assert run_fcfs(jobs, nodes=2, cpus_per_node=4) == [
        FcfsRun(start=0, end=10, nodes=2),
        FcfsRun(start=10, end=11, nodes=1),
    ]


def test_a_job_of_no_length_gives_its_nodes_back_at_once() -> None:
    """At one moment ends come before starts, its own end included."""
    jobs = [FcfsJob(submit=3, run=0, processors=2), FcfsJob(submit=3, run=4, processors=2)]
    assert [run.start for run in run_fcfs(jobs, nodes=2)] == [3, 3]


def test_runs_stand_in_the_order_the_jobs_were_given() -> None:
    """Whatever order they queue in."""
    jobs = [FcfsJob(submit=9, run=1, processors=1), FcfsJob(submit=0, run=1, processors=1)]
    assert [run.start for run in run_fcfs(jobs, nodes=1)] == [9, 0]


@pytest.mark.parametrize("processors", [0, 9])
def test_a_job_that_can_never_start_is_refused(processors: int) -> None:
    """Nine processors need three nodes of four cpus."""
    with pytest.raises(ValueError, match="can never start"):
        run_fcfs([FcfsJob(submit=0, run=1, processors=processors)], nodes=2, cpus_per_node=4)


@settings(derandomize=True, deadline=None)
@given(jobs=jobs_strategy)
def test_nodes_are_never_oversubscribed(jobs: list[FcfsJob]) -> None:
    """At no tick are more nodes taken than there are."""
    runs = run_fcfs(jobs, nodes=NODES, cpus_per_node=2)
    assert all(nodes_busy(runs, run.start) <= NODES for run in runs)
    for job, run in zip(jobs, runs, strict=True):
        assert run.nodes == nodes_needed(job.processors, 2)
        assert (run.end - run.start, run.start >= job.submit) == (job.run, True)


@settings(derandomize=True, deadline=None)
@given(jobs=jobs_strategy)
def test_jobs_start_in_the_order_of_submission(jobs: list[FcfsJob]) -> None:
    """Equal submit times start in the order given."""
    runs = run_fcfs(jobs, nodes=NODES, cpus_per_node=2)
    starts = [runs[place].start for place in in_queue_order(jobs)]
    assert starts == sorted(starts)


@settings(derandomize=True, deadline=None)
@given(jobs=jobs_strategy)
def test_the_head_starts_as_soon_as_enough_nodes_are_free(jobs: list[FcfsJob]) -> None:
    """At each tick between its turn and its start, the jobs before it leave it too few nodes."""
    runs = run_fcfs(jobs, nodes=NODES, cpus_per_node=2)
    before: list[FcfsRun] = []
    for place in in_queue_order(jobs):
        run = runs[place]
        turn = max(jobs[place].submit, before[-1].start if before else 0)
        for tick in range(turn, run.start):
            assert nodes_busy(before, tick) + run.nodes > NODES
        before.append(run)


@settings(derandomize=True, deadline=None)
@given(jobs=jobs_strategy)
def test_events_agree_with_counting_ticks(jobs: list[FcfsJob]) -> None:
    """Jumping from event to event gives what brute force gives."""
    runs = run_fcfs(jobs, nodes=2 * NODES)
    assert [(run.start, run.end) for run in runs] == count_ticks(jobs, 2 * NODES)
