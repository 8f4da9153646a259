"""Work of known length, for workers: this module is theirs, and imports little."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from simctl.runners.work import Chunk


@attrs.frozen
class Slow:
    """Takes its time over each trial, and says which it has been given."""

    folder: Path
    seconds: float = 0.05
    killed_at: int = -1
    times: int = 1

    def run_chunk(self, first: int, last: int, *, stop: bool, done: Callable[[], None]) -> Chunk:
        """Write down who runs a chunk, and be killed where that is due."""
        marks = [self.folder / f"killed-{number}" for number in range(self.times)]
        if first == self.killed_at and (free := [each for each in marks if not each.exists()]):
            free[0].touch()
            os.kill(os.getpid(), signal.SIGKILL)
        (self.folder / f"pid-{os.getppid()}").touch()
        time.sleep(self.seconds)
        done()
        return Chunk(first=first, last=last, ended=False)


def slow(folder: Path, _: Path, **more: Any) -> Slow:
    """Return what runs the trials of a worker."""
    return Slow(folder, **more)
