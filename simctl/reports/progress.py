"""The live line of a run on a terminal: jobs, virtual time, rate, and what remains."""

import sys
import threading
import time
from collections import deque
from types import TracebackType
from typing import Final

import attrs

from simctl.console import live_line, write_controls
from simctl.scenario.durations import format_moment
from simctl.world import World

_EVERY_S: Final = 0.2
_WIDTH: Final = 79
_LOOKED_BACK: Final = 150
"""Of how many lines the rate is taken: those of half a minute."""

_RATE_FROM_S: Final = 2.0
"""No estimate is made of less."""


@attrs.frozen(kw_only=True)
class Reached:
    """How far a run was at a moment of the wall clock."""

    wall_s: float
    time_us: int
    jobs: int
    turns: int


class Progress:
    """Writes one line to standard error while a run lasts, if that is a terminal.

    A thread reads the world's counters; the simulation knows nothing of it.
    """

    def __init__(self, world: World, *, quiet: bool) -> None:
        self._world = world
        self._stop = threading.Event()
        self._shown = not quiet and sys.stderr.isatty()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._seen: deque[Reached] = deque(maxlen=_LOOKED_BACK)
        self._line = live_line(self._clear)

    def __enter__(self) -> None:
        if self._shown:
            self._seen.append(self._reached())
            self._line.__enter__()
            self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._line.__exit__(kind, error, trace)
            self._clear()

    def _clear(self) -> None:
        """Take the line away, and write no more."""
        if not self._stop.is_set():
            self._stop.set()
            self._thread.join()
            write_controls(sys.stderr, "\r\x1b[K")
            sys.stderr.flush()

    def _reached(self) -> Reached:
        world = self._world
        return Reached(
            wall_s=time.perf_counter(),
            time_us=world.kernel.now_us,
            jobs=world.ctld.runs_ended,
            turns=world.kernel.turns,
        )

    def _write(self) -> None:
        world = self._world
        while not self._stop.wait(_EVERY_S):
            self._seen.append(self._reached())
            known = len(world.ctld.jobs)
            text = line(self._seen[0], self._seen[-1], total=world.jobs_to_come, known=known)
            write_controls(sys.stderr, f"\r\x1b[K{text}")
            sys.stderr.flush()


def line(then: Reached, now: Reached, *, total: int, known: int) -> str:
    """Return what is said of a run, from how far it was a while ago and how far it is.

    Args:
        then: Where it was.
        now: Where it is.
        total: How many jobs there will be; 0 if that is not known.
        known: How many the controller has.
    """
    wall_s = now.wall_s - then.wall_s
    done = f"{now.jobs:,}/{total:,} jobs" if total else f"{now.jobs:,} jobs done"
    time_us = now.time_us // 1_000_000 * 1_000_000
    parts = [f"{done}, {known:,} known", f"at {format_moment(time_us)}"]
    ended = now.jobs - then.jobs
    if wall_s and total and ended:
        parts.append(f"{ended / wall_s:,.0f} jobs/s")
        if wall_s >= _RATE_FROM_S:
            parts.append(f"{_shown((total - now.jobs) * wall_s / ended)} left")
    elif wall_s:
        parts.append(f"{(now.turns - then.turns) / wall_s:,.0f} turns/s")
    return ", ".join(parts)[:_WIDTH]


def _shown(seconds: float) -> str:
    """Return a length of time as an estimate is told."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
