"""Running work where it is to be run."""

from collections.abc import Callable, Iterator

from simctl.runners.local import Pool
from simctl.runners.work import ChunkT, Where, Work


def run(work: Work[ChunkT], where: Where, done: Callable[[], None]) -> Iterator[ChunkT]:
    """Run work; give what came of its chunks in their order, as far as it is wanted.

    *done* is called for each trial that was run.

    Raises:
        InputError: No worker is there to run it, or not as it should be.
        LostError: Some trials ended the processes that made them, twice.
    """
    if where.dask:
        # It takes half a second, and is an extra.
        from simctl.runners.dask_cluster import run_on_dask  # noqa: PLC0415

        yield from run_on_dask(work, where.dask, done)
    elif where.workers == 1 or len(work.chunks) <= (not work.apart):
        runner = work.make(work.folder)
        for first, last in work.chunks:
            result = runner.run_chunk(first, last, stop=work.stop, done=done)
            yield result
            if result.ended:
                return
    else:
        with Pool(work, min(where.workers, len(work.chunks))) as pool:
            yield from pool.run(work.chunks, done)
