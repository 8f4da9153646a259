"""Workers of explore and swarm that are killed: nothing that was found is lost with them."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from simctl.runners.running import run
from simctl.runners.work import Chunk, LostError, Where, Work, chunks_of


@attrs.frozen
class Killed:
    """Runs nothing; at some trials it kills its process, a number of times each."""

    folder: Path
    at: tuple[int, ...]
    times: int

    def __call__(self, _: Path) -> "Killed":
        """Return what runs the trials of a worker."""
        return self

    def run_chunk(self, first: int, last: int, *, stop: bool, done: Callable[[], None]) -> Chunk:
        """Return an empty result, or be killed."""
        marks = [self.folder / f"{first}.{number}" for number in range(self.times)]
        if first in self.at and (free := [each for each in marks if not each.exists()]):
            free[0].touch()
            os.kill(os.getpid(), signal.SIGKILL)
        done()
        return Chunk(first=first, last=last, ended=False)


def test_trials_of_a_killed_worker_are_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By another one, which is told; each result comes once, in its place."""
    make, chunks = Killed(tmp_path, (24,), 1), chunks_of(0, 40)
    work = Work(make=make, chunks=chunks, name="swarm")
    found = run(work, Where(workers=2), lambda: None)
    assert [(each.first, each.last) for each in found] == chunks
    told = sorted(capsys.readouterr().err.splitlines())
    assert told == [
        "simctl: a worker process of `swarm` was ended (signal 9) at trials 24 to 31; they are "
        "made again",
    ]


def test_trials_that_end_every_worker_are_told(tmp_path: Path) -> None:
    """What came before them is given; they are not tried a third time."""
    make, chunks = Killed(tmp_path, (16,), 2), chunks_of(0, 40)
    found: list[int] = []
    results = run(Work(make=make, chunks=chunks), Where(workers=2), lambda: None)
    with pytest.raises(LostError, match="at trials 16 to 23"):
        found.extend(each.first for each in results)
    assert found == [0, 8]
    assert len(list(tmp_path.iterdir())) == 2
