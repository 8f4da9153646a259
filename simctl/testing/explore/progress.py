"""The live line of a search on a terminal, and its last word anywhere else."""

import sys
import time  # noqa: TID251 - how fast the search is, on the wall clock
from typing import Final

from simctl.console import write_controls

_EVERY_S: Final = 0.1
_COLUMNS: Final = 79


class Progress:
    """Counts runs; writes to standard error how many, and how many a second."""

    def __init__(self, *, what: str, total: int, quiet: bool) -> None:
        self.runs = 0
        self.broken = 0
        self._what = what
        self._total = total
        self._quiet = quiet
        self._live = not quiet and sys.stderr.isatty()
        self._started = time.perf_counter()
        self._written = 0.0

    @property
    def wall_s(self) -> float:
        """Return for how long the search has gone on."""
        return time.perf_counter() - self._started

    def count(self) -> None:
        """Note that a run has ended."""
        self.runs += 1
        self.show(self._counted())

    def show(self, line: str) -> None:
        """Write the live line, if there is one and the last was long enough ago."""
        now = time.perf_counter()
        if self._live and now - self._written > _EVERY_S:
            self._written = now
            write_controls(sys.stderr, f"\r\x1b[K{line[:_COLUMNS]}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the live line away."""
        if self._live:
            write_controls(sys.stderr, "\r\x1b[K")
            sys.stderr.flush()

    def finish(self) -> None:
        """Take the live line away, and say how much was done in what time."""
        self.clear()
        if not self._quiet:
            print(f"simctl: {self._counted()} in {self.wall_s:.1f} s", file=sys.stderr)

    def _counted(self) -> str:
        of = f" of {self._total:,}" if self._total else ""
        rate = self.runs / max(self.wall_s, 1e-6)
        broken = f", {self.broken} broken" if self.broken else ""
        return f"{self.runs:,}{of} {self._what} ({rate:,.0f}/s){broken}"
