"""Processes of this machine that run chunks of trials."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait  # noqa: TID251 - outside the simulation
from typing import Final, Generic, cast

import attrs

from simctl.runners.work import Chunk, ChunkT, LostError, Work, WorkerError

_MAIN: Final = (
    "import sys; pipe, life, *sys.path = sys.argv[1:]; "
    "from simctl.runners.child import main; main(int(pipe), int(life))"
)
"""What a worker runs: not `multiprocessing`, for a worker of Dask's may have no children by it."""


@attrs.frozen(kw_only=True)
class _Worker:
    process: subprocess.Popen[bytes]
    life_fd: int
    """Closed, by whatever end of this process, it ends the worker."""

    def end(self) -> None:
        """End the process, whatever it is at."""
        self.process.terminate()
        self.process.wait()
        os.close(self.life_fd)


class Pool(Generic[ChunkT]):
    """A few workers, each with a pipe; gone when the `with` is left, however that happens.

    Where a worker is killed, another makes its trials again, once.
    """

    def __init__(self, work: Work[ChunkT], count: int) -> None:
        self._work = work
        self._count = count
        self._workers: dict[Connection, _Worker] = {}
        self._given: dict[Connection, tuple[int, int]] = {}
        """What each worker is at."""
        self._lost: set[int] = set()
        """The first trials of chunks that have not come, and whose worker was killed."""

        self._ended = False
        """Whether its workers were ended, which a thread that runs chunks then hears of."""

    def __enter__(self) -> "Pool[ChunkT]":
        """Start the workers; Ctrl-C is their parent's business."""
        try:
            for _ in range(self._count):
                self._start()
        except BaseException:
            self._end()
            raise
        return self

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        life, life_fd = os.pipe()
        words = [str(theirs.fileno()), str(life), *sys.path]
        with theirs, leaving_ctrl_c():
            process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *words],
                pass_fds=(theirs.fileno(), life),
                stdin=subprocess.DEVNULL,
            )
        os.close(life)
        pipe = Connection(ours.detach())
        self._workers[pipe] = _Worker(process=process, life_fd=life_fd)
        work = self._work
        with suppress(OSError):  # it was killed, as its pipe will tell
            pipe.send((work.make, work.folder, work.stop, work.name))
        return pipe

    def __exit__(self, *exc: object) -> None:
        """End the workers, whatever they are at."""
        self._end()

    def _end(self) -> None:
        self._ended = True
        workers = []
        # Each is taken out in one step: two threads may end them at once.
        with suppress(KeyError):
            while True:
                workers.append(self._workers.popitem())
        for pipe, worker in workers:
            pipe.close()
            worker.process.terminate()
        for _, worker in workers:
            worker.end()

    def run(self, chunks: list[tuple[int, int]], done: Callable[[], None]) -> Iterator[ChunkT]:
        """Give out chunks, and give results in the order of the chunks, or as they come.

        Raises:
            LostError: Two workers were killed at one chunk.
            WorkerError: The workers were ended, by another thread.
        """
        self._check_not_ended()
        waiting = list(reversed(chunks))
        for pipe in self._workers:
            self._give(pipe, waiting)
        if self._work.in_order:
            yield from self._in_order(chunks, waiting, done)
            return
        while self._given:
            yield from self._next(waiting, done)
        for first, last in chunks:
            if self._is_lost(first):
                raise _lost(first, last, "the others were made")

    def _in_order(
        self,
        chunks: list[tuple[int, int]],
        waiting: list[tuple[int, int]],
        done: Callable[[], None],
    ) -> Iterator[ChunkT]:
        results: dict[int, ChunkT] = {}
        for first, last in chunks:
            while first not in results:
                if self._is_lost(first):
                    raise _lost(first, last, "what follows was not tried")
                for result in self._next(waiting, done):
                    results[result.first] = result
            result = results.pop(first)
            yield result
            if result.ended:
                return

    def _next(self, waiting: list[tuple[int, int]], done: Callable[[], None]) -> Iterator[ChunkT]:
        """Give the results that have come, once a worker has said something."""
        pipes = list(self._workers)
        self._check_not_ended()
        try:
            ready = set(wait(pipes))
        except OSError:
            self._check_not_ended()
            raise
        for pipe in [each for each in pipes if each in ready]:
            try:
                said = _receive(pipe)
            except (EOFError, OSError):
                self._replace(pipe, waiting)
                continue
            if said is None:
                done()
                continue
            result = cast(ChunkT, said)
            self._lost.discard(result.first)
            if result.ended:
                # What has a higher number does not count any more.
                waiting[:] = [each for each in waiting if each[0] < result.first]
            self._give(pipe, waiting)
            yield result

    def _check_not_ended(self) -> None:
        if self._ended:
            raise WorkerError(_ENDED)

    def _is_lost(self, first: int) -> bool:
        """Return whether a chunk's worker was killed twice: no worker is at it any more."""
        return first in self._lost and all(first != at for at, _ in self._given.values())

    def _give(self, pipe: Connection, waiting: list[tuple[int, int]]) -> None:
        self._given.pop(pipe, None)
        if waiting:
            self._given[pipe] = waiting.pop()
            with suppress(OSError):  # it was killed, as its pipe will tell
                pipe.send(self._given[pipe])

    def _replace(self, pipe: Connection, waiting: list[tuple[int, int]]) -> None:
        """Have another worker go on where one was killed; the second time none does."""
        worker = self._workers.pop(pipe, None)
        if worker is None:
            raise WorkerError(_ENDED)
        chunk = self._given.pop(pipe, None)
        pipe.close()
        status = worker.process.wait()
        os.close(worker.life_fd)
        how = f"signal {-status}" if status < 0 else f"{status}"
        if chunk is None:
            return
        again = chunk[0] not in self._lost
        self._lost.add(chunk[0])
        sys.stderr.write(
            f"simctl: a worker process of `{self._work.name}` was ended ({how}) at trials "
            f"{chunk[0]} to {chunk[1]}{'; they are made again' if again else ''}\n"
        )
        if again:
            self._give(self._start(), [chunk])
        elif not self._work.in_order:
            self._give(self._start(), waiting)


_ENDED: Final = "the worker processes were ended"


def _lost(first: int, last: int, others: str) -> LostError:
    return LostError(
        f"two worker processes were killed at trials {first} to {last}, as where memory runs out; "
        f"{others} (fewer --workers need less)"
    )


def _receive(pipe: Connection) -> Chunk | None:
    """Return what a worker has to say; None: it has run another trial."""
    said = pipe.recv()
    if isinstance(said, BaseException):
        raise said
    if isinstance(said, str):
        raise WorkerError(said)
    assert said is None or isinstance(said, Chunk)
    return said


@contextmanager
def leaving_ctrl_c() -> Iterator[None]:
    """Have processes that are started inside leave Ctrl-C to this one: they inherit its mask.

    For this process it waits until they have started.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
