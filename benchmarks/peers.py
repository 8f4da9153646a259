"""Run jobs in simpy, a bare lifecycle each, beside simctl: ``make bench-peers``.

simpy is a general library for simulations by events. What it runs here has no daemons, plugins,
processes, files, states or trace: a job waits for nodes in order of arrival, its script is
launched, a task on each node runs, and the nodes are given back. It says what the plainest model of
the same jobs costs, and so what all that simctl does beside it costs.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from benchmarks.run import read_generated, replay
from simctl.scenario.swf import SwfJob

_SIMPY = "simpy==4.1.2"
_MESSAGE_S = 0.0001


def fetch(folder: str) -> Any:
    """Return simpy, fetched into a folder; None where it cannot be fetched."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--target", folder, _SIMPY], check=False, timeout=300).returncode:
        return None
    sys.path.insert(0, folder)
    return import_module("simpy")


def in_simpy(simpy: Any, jobs: list[SwfJob], nodes: int) -> tuple[int, float]:
    """Run jobs on nodes; return how many of them ended, and the seconds it took."""
    started = time.perf_counter()
    env = simpy.Environment()
    free = simpy.Container(env, capacity=nodes, init=nodes)
    ended = 0

    def task(seconds: float) -> Iterator[Any]:
        yield env.timeout(_MESSAGE_S)
        yield env.timeout(seconds)
        yield env.timeout(_MESSAGE_S)

    def job(each: SwfJob) -> Iterator[Any]:
        nonlocal ended
        yield env.timeout(max(each.submit_s, 0))
        yield free.get(each.processors)
        yield env.timeout(_MESSAGE_S)
        yield env.all_of([env.process(task(each.run_s or 0)) for _ in range(each.processors)])
        yield env.timeout(_MESSAGE_S)
        yield free.put(each.processors)
        ended += 1

    for each in jobs:
        env.process(job(each))
    env.run()
    return ended, time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--nodes", type=int, default=256)
    given = parser.parse_args()
    jobs = read_generated(given.jobs, given.nodes)
    width = sum(job.processors for job in jobs) / len(jobs)
    print(f"{len(jobs)} jobs of mean width {width:.1f} on {given.nodes} nodes")
    result, wall_s = replay(jobs, given.nodes)
    rate, events = len(jobs) / wall_s, result.counts["events"]
    print(f"simctl: {wall_s:.2f} s, {rate:.0f} jobs/s, {events} events")
    with tempfile.TemporaryDirectory() as folder:
        simpy = fetch(folder)
        if simpy is None:
            print(f"{_SIMPY}: pip cannot fetch it here; not measured")
            return
        ended, bare_s = in_simpy(simpy, jobs, given.nodes)
    assert ended == len(jobs)
    print(f"simpy, a bare lifecycle: {bare_s:.2f} s, {ended / bare_s:.0f} jobs/s")
    print(f"simctl takes {wall_s / bare_s:.0f} times as long")


if __name__ == "__main__":
    main()
