"""Work that is shared out: numbered trials in chunks, and where they are run.

What comes of work does not depend on where it is run, on how many workers there are, or on which is
faster: results are given in the order of the trials' numbers.
"""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import attrs

from simctl.numbers import WORKERS
from simctl.runners.bundle import Bundle
from simctl.status import InputError

CHUNK: Final = 8


@attrs.frozen(kw_only=True)
class Chunk:
    """Trials from one number to another, both included, that were run one after another."""

    first: int
    last: int
    ended: bool
    """Whether it ended early because of a find."""


ChunkT = TypeVar("ChunkT", bound=Chunk)
ChunkT_co = TypeVar("ChunkT_co", bound=Chunk, covariant=True)


class ChunkRunner(Protocol[ChunkT_co]):
    """A runner of trials; made anew in each worker."""

    def run_chunk(
        self, first: int, last: int, *, stop: bool, done: Callable[[], None]
    ) -> ChunkT_co:
        """Run the trials of a chunk; with *stop* not beyond the first find."""


@attrs.frozen(kw_only=True)
class Work(Generic[ChunkT]):
    """What is to be run: picklable, since it travels to processes and machines."""

    make: Callable[[Path], ChunkRunner[ChunkT]]
    """Returns what runs chunks, given the folder that its files start from; called by a worker."""

    chunks: list[tuple[int, int]]
    """The numbers of the first and last trial of each, in order."""

    stop: bool = False
    """Whether nothing is wanted beyond the chunk of the first find."""

    in_order: bool = True
    """Whether results are given in the order of their numbers; else as they come.

    Then what ends the processes that make it is told last, and keeps nothing else from being made.
    """

    apart: bool = False
    """Whether a single chunk goes to another process too: it may take one down."""

    name: str = "explore"
    """The command, for error messages."""

    folder: Path = Path()
    """The folder that files start from, on this machine."""

    bundle: Callable[[], Bundle] = Bundle
    """Returns the files that have to be there; asked for only where they are not at hand."""

    packages: tuple[str, ...] = ()
    """What has to be installed in the same version everywhere, besides what simctl itself needs."""


class WorkerError(RuntimeError):
    """A worker broke, which is a fault of simctl's."""


class LostError(InputError):
    """Trials ended the processes that made them; what was given before holds."""


@attrs.frozen(kw_only=True)
class Where:
    """Where work is run: in so many processes of this machine, or by the workers of a Dask."""

    workers: int = 1
    dask: str = ""
    """``tcp://HOST:PORT``, ``local``, ``local:N``, or the file of a scheduler; empty for none."""

    @property
    def told(self) -> str:
        """Return what `--json` says of it as `runner`."""
        return f"dask {self.dask}" if self.dask else f"local:{self.workers}"

    @property
    def words(self) -> str:
        """Return the option that asks for it again; nothing for what is usual."""
        return f"--dask {shlex.quote(self.dask)}" if self.dask else ""


def read_where(workers: int | None, dask: str | None) -> Where:
    """Return where the options --workers and --dask want work to be run.

    Raises:
        InputError: They contradict each other, or nothing stands behind --dask.
    """
    if dask is None:
        return Where(workers=workers or len(os.sched_getaffinity(0)))
    if workers is not None:
        raise InputError("--workers goes without --dask, which has workers of its own")
    count = dask.removeprefix("local:")
    if dask.startswith("local:") and not (count.isdecimal() and 0 < int(count) <= WORKERS.most):
        raise InputError(f"--dask {dask}: expected local:N with N from 1 to {WORKERS.most:.0f}")
    if not dask:
        raise InputError("--dask: name a scheduler, tcp://HOST:PORT, or say local or local:N")
    return Where(dask=dask)


def chunks_of(first: int, end: int) -> list[tuple[int, int]]:
    """Return chunks of the trials from a number on and before another."""
    return [(start, min(start + CHUNK, end) - 1) for start in range(first, end, CHUNK)]
