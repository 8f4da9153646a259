"""Make a synthetic workload log in the Standard Workload Format.

As a script: `python benchmarks/make_log.py JOBS NODES LOAD SEED > made.swf`.
"""

import argparse
import math
import sys
from itertools import accumulate
from random import Random
from typing import Final

_SERIAL_SHARE: Final = 0.25
_POWER_OF_TWO_SHARE: Final = 0.75
_MEDIAN_RUN_S: Final = 300
_RUN_SIGMA: Final = 1.6
_LONGEST_RUN_S: Final = 36 * 3600
_LIMIT_STEP_S: Final = 300
_USERS: Final = 40
_LOADS: Final = (0.001, 1000.0)


def make_log(jobs: int, *, nodes: int, load: float, seed: int, max_width: int = 32) -> list[str]:
    """Return the lines of a log; the same arguments give the same lines.

    Widths are log-uniform with many serial jobs and powers of two, run times log-normal, arrivals
    random in time at a constant rate. The arrivals are stretched so that the cpu-seconds asked for
    between the first and the last submit are *load* times what *nodes* of one cpu could give.

    Args:
        jobs: How many; at least 1.
        nodes: How many nodes of one cpu the load is reckoned for; no job is wider.
        load: From 0.001 to 1000; 1.0 keeps all nodes busy.
        seed: What the random choices start from.
        max_width: No job asks for more processors.

    Raises:
        ValueError: A number is out of bounds.
    """
    _refuse_nonsense(jobs, nodes, load, max_width)
    rng = Random(seed)
    widths = [_width(rng, min(nodes, max_width)) for _ in range(jobs)]
    runs = [_run_s(rng) for _ in range(jobs)]
    area = sum(width * run for width, run in zip(widths, runs, strict=True))
    submits = _submits(rng, jobs, span_s=area / (nodes * load))
    lines = [
        _line(rng, number, submit, run, width)
        for number, submit, run, width in zip(
            range(1, jobs + 1), submits, runs, widths, strict=True
        )
    ]
    note = (
        f"mean width {sum(widths) / jobs:.2f}, mean run time {sum(runs) / jobs:.0f} s, "
        f"load {load:g} of {nodes} nodes, seed {seed}"
    )
    return [*_header(jobs, nodes, note), *lines]


def _refuse_nonsense(jobs: int, nodes: int, load: float, max_width: int) -> None:
    """Refuse numbers that no log can be made of."""
    for name, value in (("jobs", jobs), ("nodes", nodes), ("max_width", max_width)):
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")
    least, most = _LOADS
    if not least <= load <= most:
        raise ValueError(f"load: expected a number from {least:g} to {most:g}, got {load}")


def _width(rng: Random, widest: int) -> int:
    """Return how many processors a job asks for, 1 to *widest*."""
    if rng.random() < _SERIAL_SHARE:
        return 1
    exponent = rng.random() * math.log2(widest)
    round_it = rng.random() < _POWER_OF_TWO_SHARE
    width = 2 ** round(exponent) if round_it else round(2**exponent)
    return min(width, widest)


def _run_s(rng: Random) -> int:
    """Return how long a job runs, in whole seconds from 1."""
    drawn = rng.lognormvariate(math.log(_MEDIAN_RUN_S), _RUN_SIGMA)
    return max(1, min(round(drawn), _LONGEST_RUN_S))


def _submits(rng: Random, jobs: int, *, span_s: float) -> list[int]:
    """Return ascending submit times from 0; the last is *span_s*."""
    gaps = [0.0, *(rng.expovariate(1.0) for _ in range(jobs - 1))]
    total = math.fsum(gaps) or 1.0
    return [round(reached * span_s / total) for reached in accumulate(gaps)]


def _line(rng: Random, number: int, submit: int, run: int, width: int) -> str:
    """Return a job's line; users ask for more time than they need, in steps of five minutes."""
    asked = run * (1 + 2 * rng.random())
    limit = math.ceil(asked / _LIMIT_STEP_S) * _LIMIT_STEP_S
    user = 1 + int(_USERS * rng.random() ** 2)  # a few users submit most of the jobs
    fields = (
        number,
        submit,
        -1,
        run,
        width,
        -1,
        -1,
        width,
        limit,
        -1,
        1,
        user,
        1,
        -1,
        1,
        1,
        -1,
        -1,
    )
    return " ".join(map(str, fields))


def _header(jobs: int, nodes: int, note: str) -> list[str]:
    """Return the comments a log begins with."""
    return [
        "; Version: 2.2",
        "; Computer: synthetic",
        f"; MaxJobs: {jobs}",
        f"; MaxRecords: {jobs}",
        f"; MaxNodes: {nodes}",
        f"; MaxProcs: {nodes}",
        f"; Note: {note}",
    ]


def main(argv: list[str] | None = None) -> int:
    """Print a log to stdout; *argv* is the command line's, unless given."""
    parser = argparse.ArgumentParser(description="Make a synthetic workload log.")
    parser.add_argument("jobs", metavar="JOBS", type=int, help="how many jobs")
    parser.add_argument("nodes", metavar="NODES", type=int, help="nodes of one cpu")
    parser.add_argument("load", metavar="LOAD", type=float, help="1.0 keeps all nodes busy")
    parser.add_argument("seed", metavar="SEED", type=int, help="where chance starts from")
    parser.add_argument("--max-width", type=int, default=32, help="widest job (default 32)")
    asked = parser.parse_args(argv)
    try:
        lines = make_log(
            asked.jobs,
            nodes=asked.nodes,
            load=asked.load,
            seed=asked.seed,
            max_width=asked.max_width,
        )
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
