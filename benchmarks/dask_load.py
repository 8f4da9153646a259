"""What a Dask scheduler and simctl's own client have to do for many workers, with fake work.

`python -m benchmarks.dask_load 1000` starts a scheduler, a process in which as many threads as that
take units of work and only sleep, and gives out work as `explore` and the like do. It prints the
CPU time that scheduler and client took for each unit, which does not depend on the machine's load.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simctl.runners import dask_cluster
from simctl.runners.work import Chunk, Work

CHUNK_S = 0.1
"""How long a chunk of fake work takes."""
THREADS = 50
"""How many threads a fake worker of Dask's has: a thread stands for a worker."""


class Asleep:
    """Stands for the process that a worker gives its trials to."""

    def __init__(self, work: Work[Chunk], count: int) -> None:
        pass

    def __enter__(self) -> "Asleep":
        """Return itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Do nothing."""

    def run(self, chunks: list[tuple[int, int]], done: Callable[[], None]) -> Iterator[Chunk]:
        """Let the time pass that work would take."""
        time.sleep(CHUNK_S * len(chunks))
        for first, last in chunks:
            yield Chunk(first=first, last=last, ended=False)


async def _serve(address: str, workers: int) -> None:
    vars(dask_cluster)["Pool"] = Asleep
    start = dask_cluster.distributed.Worker
    count = -(-workers // THREADS)
    here = [
        await start(address, nthreads=min(workers, THREADS), dashboard=False) for _ in range(count)
    ]
    await asyncio.gather(*(each.finished() for each in here))


def _make(_: Path) -> Any:
    raise AssertionError


def measure(workers: int, seconds: float) -> None:
    """Give out work for some seconds; print what it took."""
    file = Path(f"/tmp/dask-load-{os.getpid()}.json")
    own = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    scheduler = _start("distributed.cli.dask_scheduler", *own)
    fakes: subprocess.Popen[bytes] | None = None
    try:
        while not file.exists():
            time.sleep(0.1)
        fakes = _start("benchmarks.dask_load", "--serve", str(file), str(workers))
        chunks = [(n, n) for n in range(int(workers * seconds / CHUNK_S))]
        work = Work(make=_make, chunks=chunks, in_order=False)
        units = _count_units()
        results = dask_cluster.run_on_dask(work, str(file), lambda: None)
        next(results)
        while len(list(Path(f"/proc/{fakes.pid}/task").iterdir())) < workers / 2:
            next(results)
        before = (_cpu_s(os.getpid()), _cpu_s(scheduler.pid), len(units))
        began = time.perf_counter()
        for _ in results:
            pass
        took_s = time.perf_counter() - began
        after = (_cpu_s(os.getpid()), _cpu_s(scheduler.pid), len(units))
        client_s, scheduler_s, count = (x - y for x, y in zip(after, before, strict=True))
        print(
            f"{workers} workers: {count:.0f} units in {took_s:.1f} s; a unit takes "
            f"{scheduler_s / count * 1e3:.2f} ms of the scheduler and "
            f"{client_s / count * 1e3:.2f} ms of the client; load {os.getloadavg()[0]:.1f}"
        )
    finally:
        for process in (fakes, scheduler):
            if process is not None:
                process.kill()
                process.wait()
        file.unlink(missing_ok=True)


def _start(module: str, *words: str) -> subprocess.Popen[bytes]:
    silent = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", module, *words], stdout=silent, stderr=silent)


def _count_units() -> list[None]:
    """Return a list that grows with each unit that comes back."""
    units: list[None] = []
    given = dask_cluster._Given._result

    def result(self: Any, future: Any, done: Callable[[], None]) -> Any:
        units.append(None)
        return given(self, future, done)

    dask_cluster._Given._result = result  # type: ignore[method-assign]
    return units


def _cpu_s(pid: int) -> float:
    """Return how long a process has had a CPU."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure, or be the process of the fake workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workers", type=int)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--serve", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        import json  # noqa: PLC0415

        asyncio.run(_serve(json.loads(Path(options.serve).read_text())["address"], options.workers))
    else:
        measure(options.workers, options.seconds)


if __name__ == "__main__":
    main()
