"""A reference scheduler: strict first come, first served, on whole nodes.

It shares nothing with the simulator, so that replays can be held against it.
"""

import heapq
from collections.abc import Sequence

import attrs


@attrs.frozen(kw_only=True)
class FcfsJob:
    """A job to be run; times are whole numbers of any one unit."""

    submit: int
    run: int
    processors: int


@attrs.frozen(kw_only=True)
class FcfsRun:
    """When a job ran, and on how many nodes."""

    start: int
    end: int
    nodes: int


def nodes_needed(processors: int, cpus_per_node: int) -> int:
    """Return how many whole nodes hold *processors*."""
    return -(-processors // cpus_per_node)


def run_fcfs(jobs: Sequence[FcfsJob], *, nodes: int, cpus_per_node: int = 1) -> list[FcfsRun]:
    """Return when each of *jobs* runs, in the order they are given.

    They queue by submit time, equal ones as given. The head of the queue blocks all behind it. At
    one moment ends free their nodes before anything starts.

    Raises:
        ValueError: A job is wider than the cluster, or asks for no processor.
    """
    runs: dict[int, FcfsRun] = {}
    free, now = nodes, 0
    ends: list[tuple[int, int]] = []  # (when, nodes given back)
    for index in sorted(range(len(jobs)), key=lambda index: (jobs[index].submit, index)):
        job = jobs[index]
        need = nodes_needed(job.processors, cpus_per_node)
        if not 1 <= need <= nodes:
            raise ValueError(f"job {index} needs {need} nodes of {nodes}: it can never start")
        now = max(now, job.submit)
        while ends and (ends[0][0] <= now or free < need):
            ended, given_back = heapq.heappop(ends)
            now = max(now, ended)
            free += given_back
        free -= need
        heapq.heappush(ends, (now + job.run, need))
        runs[index] = FcfsRun(start=now, end=now + job.run, nodes=need)
    return [runs[index] for index in range(len(jobs))]
