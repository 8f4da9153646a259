"""The live line of a run on a terminal: virtual time, jobs, rate."""

import sys
import threading
import time
from types import TracebackType

from simctl.scenario.durations import format_us
from simctl.world import World

_EVERY_S = 0.2


class Progress:
    """Writes one line to standard error while a run lasts, if that is a terminal.

    A thread reads the world's counters; the simulation knows nothing of it.
    """

    def __init__(self, world: World, *, quiet: bool) -> None:
        self._world = world
        self._stop = threading.Event()
        self._shown = not quiet and sys.stderr.isatty()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._started = 0.0

    def __enter__(self) -> None:
        if self._shown:
            self._started = time.perf_counter()
            self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._stop.set()
            self._thread.join()
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _write(self) -> None:
        world = self._world
        while not self._stop.wait(_EVERY_S):
            done = len(world.ctld.ended_rows)
            known = len(world.ctld.jobs)
            wall_s = time.perf_counter() - self._started
            rate = world.kernel.turns / wall_s if wall_s else 0.0
            time_us = world.kernel.now_us // 1_000_000 * 1_000_000
            line = (
                f"{format_us(time_us)} of virtual time, {done} jobs done, "
                f"{known} in the controller, {rate:,.0f} turns/s"
            )
            sys.stderr.write(f"\r\x1b[K{line[:79]}")
            sys.stderr.flush()
