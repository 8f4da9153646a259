"""Processes of the machine that run trials, so that a search uses every core.

Trials are given out in chunks, in the order of their numbers; what comes of a search does not
depend on how many workers there are, or on which is faster.
"""

import functools
import multiprocessing  # noqa: TID251 - stands outside the simulation
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait  # noqa: TID251 - as above
from typing import Any, Final, Generic, Protocol, TypeVar, cast

import attrs

from simctl.scenario.model import Scenario
from simctl.status import InputError
from simctl.testing.explore.coverage import Coverage
from simctl.testing.explore.plan import Plan
from simctl.testing.explore.trial import Broken, Ran, load_text, run_trial
from simctl.testing.orphans import end_with_parent, leaving_ctrl_c

CHUNK: Final = 8


@attrs.frozen(kw_only=True)
class Find:
    """A trial in which something was broken."""

    number: int
    broken: tuple[Broken, ...]
    token: str
    schedule: str


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
    """Somebody who runs trials; made anew in each worker."""

    def run_chunk(
        self, first: int, last: int, *, stop: bool, done: Callable[[], None]
    ) -> ChunkT_co:
        """Run the trials of a chunk; with *stop* not beyond the first find."""


@attrs.frozen(kw_only=True)
class ChunkResult(Chunk):
    """What came of the trials of a chunk."""

    finds: tuple[Find, ...]
    coverage: Any
    turns: int


class Runner:
    """Runs trials of a plan, one after another."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._loaded: tuple[int, Scenario | None] = (-1, None)

    def scenario(self, text: int) -> Scenario:
        """Return the scenario of a text; the last one is kept."""
        if self._loaded[0] != text:
            plan = self._plan
            self._loaded = (text, load_text(plan.texts[text], plan.file()))
        scenario = self._loaded[1]
        assert scenario is not None
        return scenario

    def run(self, number: int) -> Ran:
        """Run the trial of a number."""
        plan = self._plan
        scenario = self.scenario(plan.text_of(number))
        return run_trial(scenario, plan.schedule_of(number), plan.seed_of(number), plan.terms)

    def run_chunk(
        self, first: int, last: int, *, stop: bool, done: Callable[[], None]
    ) -> ChunkResult:
        """Run the trials of a chunk; with *stop* not beyond the first find."""
        finds: list[Find] = []
        coverage = Coverage()
        turns = 0
        number = first
        for number in range(first, last + 1):
            ran = self.run(number)
            turns += ran.turns
            coverage.add(ran.events)
            if ran.broken:
                schedule = self._plan.schedule_of(number).name
                finds.append(
                    Find(number=number, broken=ran.broken, token=ran.token, schedule=schedule)
                )
            done()
            if stop and finds:
                break
        return ChunkResult(
            first=first,
            last=number,
            finds=tuple(finds),
            coverage=coverage.packed(),
            turns=turns,
            ended=stop and bool(finds),
        )


def run_all(
    plan: Plan, *, workers: int, stop: bool, done: Callable[[], None]
) -> Iterator[ChunkResult]:
    """Run every trial of a plan; give the results in the order of their numbers.

    With *stop* nothing is given beyond the chunk of the first find, and nothing new is begun.
    """
    first = Runner(plan).run_chunk(0, 0, stop=stop, done=done)
    yield first
    if first.ended:
        return
    make = functools.partial(Runner, plan)
    yield from run_chunks(make, chunks_of(1, plan.trials), workers=workers, stop=stop, done=done)


def chunks_of(first: int, end: int) -> list[tuple[int, int]]:
    """Return chunks of the trials from a number on and before another."""
    return [(start, min(start + CHUNK, end) - 1) for start in range(first, end, CHUNK)]


def run_chunks(
    make: Callable[[], ChunkRunner[ChunkT]],
    chunks: list[tuple[int, int]],
    *,
    workers: int,
    stop: bool,
    done: Callable[[], None],
    name: str = "explore",
) -> Iterator[ChunkT]:
    """Run chunks of trials in several processes; give what came of them in their order.

    What *make* returns runs them; it is called in each worker, and so has to be picklable. *name*
    is that of the command, for an error message.
    """
    if workers == 1 or len(chunks) <= 1:
        runner = make()
        for start, last in chunks:
            result = runner.run_chunk(start, last, stop=stop, done=done)
            yield result
            if result.ended:
                return
        return
    with Pool(make, min(workers, len(chunks)), stop=stop, name=name) as pool:
        yield from pool.run(chunks, done)


class WorkerError(RuntimeError):
    """A worker broke, which is a fault of simctl's."""


class LostError(InputError):
    """Trials ended the processes that made them; what was given before holds."""


class Pool(Generic[ChunkT]):
    """A few workers, each with a pipe; gone when the `with` is left, however that happens.

    Where a worker is killed, another makes its trials again, once.
    """

    def __init__(
        self, make: Callable[[], ChunkRunner[ChunkT]], count: int, *, stop: bool, name: str
    ) -> None:
        self._make = make
        self._count = count
        self._stop = stop
        self._name = name
        self._workers: dict[Connection, Any] = {}
        self._given: dict[Connection, tuple[int, int]] = {}
        """What each worker is at."""
        self._lost: set[int] = set()
        """The first trials of chunks whose worker was killed."""

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
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        args = (theirs, self._make, self._stop, self._name)
        process = context.Process(target=_work, args=args, daemon=True)
        with leaving_ctrl_c():
            process.start()
        theirs.close()
        self._workers[ours] = process
        return ours

    def __exit__(self, *exc: object) -> None:
        """End the workers, whatever they are at."""
        self._end()

    def _end(self) -> None:
        for pipe in self._workers:
            pipe.close()
        for process in self._workers.values():
            process.terminate()
        for process in self._workers.values():
            process.join()
            process.close()

    def run(self, chunks: list[tuple[int, int]], done: Callable[[], None]) -> Iterator[ChunkT]:
        """Give out chunks, and give results in the order of the chunks.

        Raises:
            LostError: Two workers were killed at the chunk that comes next.
        """
        waiting = list(reversed(chunks))
        results: dict[int, ChunkT] = {}
        for pipe in self._workers:
            self._give(pipe, waiting)
        for first, last in chunks:
            while first not in results:
                if first in self._lost and all(first != at for at, _ in self._given.values()):
                    raise LostError(
                        f"two worker processes were killed at trials {first} to {last}, as where "
                        "memory runs out; what follows was not tried (fewer --workers need less)"
                    )
                ready = set(wait(list(self._workers)))
                for pipe in [each for each in self._workers if each in ready]:
                    try:
                        said = _receive(pipe)
                    except (EOFError, OSError):
                        self._replace(pipe)
                        continue
                    if said is None:
                        done()
                        continue
                    result = cast(ChunkT, said)
                    results[result.first] = result
                    if result.ended:
                        # What has a higher number does not count any more.
                        waiting = [each for each in waiting if each[0] < result.first]
                    self._give(pipe, waiting)
            result = results.pop(first)
            yield result
            if result.ended:
                return

    def _give(self, pipe: Connection, waiting: list[tuple[int, int]]) -> None:
        self._given.pop(pipe, None)
        if waiting:
            self._given[pipe] = waiting.pop()
            with suppress(OSError):  # it was killed, as its pipe will tell
                pipe.send(self._given[pipe])

    def _replace(self, pipe: Connection) -> None:
        """Have another worker go on where one was killed; the second time nobody does."""
        process = self._workers.pop(pipe)
        chunk = self._given.pop(pipe, None)
        pipe.close()
        process.join()
        how = f"signal {-process.exitcode}" if process.exitcode < 0 else f"{process.exitcode}"
        process.close()
        if chunk is None:
            return
        again = chunk[0] not in self._lost
        self._lost.add(chunk[0])
        sys.stderr.write(
            f"simctl: a worker process of `{self._name}` was ended ({how}) at trials {chunk[0]} to "
            f"{chunk[1]}{'; they are made again' if again else ''}\n"
        )
        if again:
            self._give(self._start(), [chunk])


def _receive(pipe: Connection) -> Chunk | None:
    """Return what a worker has to say; None: it has run another trial."""
    said = pipe.recv()
    if isinstance(said, BaseException):
        raise said
    if isinstance(said, str):
        raise WorkerError(said)
    assert said is None or isinstance(said, Chunk)
    return said


def _work(pipe: Connection, make: Callable[[], ChunkRunner[Chunk]], stop: bool, name: str) -> None:
    """Run chunks until the parent has gone, which closes the pipe."""
    end_with_parent()
    runner = make()
    try:
        while True:
            first, last = pipe.recv()
            pipe.send(runner.run_chunk(first, last, stop=stop, done=lambda: pipe.send(None)))
    except (EOFError, ConnectionError):
        return
    except Exception:  # noqa: BLE001 - the parent tells it
        pipe.send(f"a worker process of `{name}` broke:\n{traceback.format_exc()}")
