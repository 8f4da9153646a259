"""Feed a cluster with very many jobs, and see that memory stays as it is.

As a script: `python -m benchmarks.soak --jobs 1000000 --nodes 2000`. It prints a line at each tenth
of the way and fails if memory grows in the second half of it.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Final

from simctl.cli import make_parser
from simctl.ctld.state.job_rows import JobRow
from simctl.replay import Tally, scenario, submit_all
from simctl.running import make_world, run_world
from simctl.scenario.swf import SwfJob, SwfLog
from simctl.world import World

BYTES_A_JOB: Final = 200
"""Growth at most, of which the measures of a job take 40."""

_TENTHS: Final = 10


def made_jobs(count: int, nodes: int, seed: int = 0) -> Iterator[SwfJob]:
    """Yield jobs that keep eight of ten nodes busy, one at a time, in the order they come."""
    dice = Random(seed)
    submit_s = 0.0
    mean_run_s, mean_width = 300.0, 1.25
    for number in range(1, count + 1):
        submit_s += dice.expovariate(0.8 * nodes / (mean_run_s * mean_width))
        run_s = float(round(dice.expovariate(1 / mean_run_s), 1))
        yield SwfJob(
            number=number,
            submit_s=round(submit_s, 3),
            run_s=run_s,
            processors=2 if dice.random() < mean_width - 1 else 1,
            requested_s=7200,
            user_id=dice.randrange(40),
            group_id=1,
            queue=1,
            partition=1,
            status=1,
            line=number,
        )


def memory() -> int:
    """Return how many bytes of memory this process has at present."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no file of a folder
        return int(file.read().split()[1]) * 4096


class Watch:
    """Prints how far a run is, and remembers how much memory it had."""

    def __init__(self, world: World, count: int) -> None:
        self.tally = Tally()
        self.samples: list[tuple[int, int]] = []
        self._world = world
        self._every = max(1, count // _TENTHS)
        self._began_s = time.perf_counter()
        self._worked_s = time.process_time()
        print(f"{'jobs':>9} {'memory MB':>9} {'events':>11} {'events/s cpu':>12} {'wall s':>7}")

    def take(self, row: JobRow) -> None:
        """Take the row of a job that has ended."""
        self.tally.take(row)
        jobs = len(self.tally)
        if jobs % self._every == 0:
            self.samples.append((jobs, memory()))
            self._tell(jobs)

    def _tell(self, jobs: int) -> None:
        events = self._world.trace.seq
        rate = events / (time.process_time() - self._worked_s)
        wall_s = time.perf_counter() - self._began_s
        size_mb = self.samples[-1][1] / 1e6
        print(f"{jobs:9} {size_mb:9.0f} {events:11} {rate:12,.0f} {wall_s:7.0f}", flush=True)


def growth(samples: list[tuple[int, int]]) -> float:
    """Return by how many bytes memory grew a job, by least squares, over the second half."""
    kept = samples[len(samples) // 2 :]
    mean_jobs = sum(jobs for jobs, _ in kept) / len(kept)
    mean_size = sum(size for _, size in kept) / len(kept)
    above = sum((jobs - mean_jobs) * (size - mean_size) for jobs, size in kept)
    return above / sum((jobs - mean_jobs) ** 2 for jobs, _ in kept)


def soak(count: int, nodes: int, trace: str) -> bool:
    """Run so many jobs; tell whether all completed and memory stayed flat."""
    words = ["run", "--swf", "made", "--nodes", str(nodes), "--no-orderings"]
    given = make_parser().parse_args([*words, *(("--trace", trace) if trace else ())])
    log = SwfLog(path="soak", header={}, jobs=(), malformed=(), partial_lines=())
    world = make_world(scenario(log, (), given), given)
    world.ctld.books.keep = False
    world.jobs_to_come = count
    watch = Watch(world, count)
    world.ctld.take_row = watch.take
    submit_all(world, made_jobs(count, nodes), 1)
    result = run_world(world, given)
    print(watch.tally.states())
    slope = growth(watch.samples)
    flat = slope < BYTES_A_JOB
    print(f"memory grows by {slope:.0f} bytes a job: {'flat' if flat else 'NOT FLAT'}")
    return flat and result.held and len(watch.tally) == count


def main() -> int:
    """Read the command line, and soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--trace", default="", metavar="FILE", help="write the trace as well")
    given = parser.parse_args()
    if given.jobs < 2 * _TENTHS:
        parser.error(f"--jobs: at least {2 * _TENTHS}")
    return 0 if soak(given.jobs, given.nodes, given.trace) else 1


if __name__ == "__main__":
    sys.exit(main())
