"""The workers of a Dask cluster as runners: each gives its trials to a process of its own.

A run needs a main thread, for its watchdog, and may take its process down; a worker of Dask's calls
functions in other threads, and is to live. So it keeps a process, as a search on one machine does.
"""

import logging
import pickle
import tempfile
import threading  # noqa: TID251 - a worker of Dask's calls in threads
import time  # noqa: TID251 - how long a unit of work takes on the wall clock
import uuid  # noqa: TID251 - names runs that share a cluster
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Generic

import attrs

from simctl.runners.bundle import Bundle
from simctl.runners.local import Pool, leaving_ctrl_c
from simctl.runners.versions import about, differences
from simctl.runners.work import Chunk, ChunkT, LostError, Work, WorkerError
from simctl.status import InputError

try:
    distributed: Any = import_module("distributed")
except ImportError as error:
    raise InputError(
        "--dask needs the package distributed: pip install 'slurm-simctl[dask]'"
    ) from error

UNIT_S: Final = 2.0
"""How long a unit of work should take at least."""

UNIT_A_WORKER_S: Final = 0.005
"""How long for each worker there is: a unit costs the scheduler a quarter of that."""

CONNECT_S: Final = 10
WORKERS_S: Final = 60
"""How long a scheduler, and then its first worker, is waited for."""


@attrs.frozen
class Payload(Generic[ChunkT]):
    """What travels once: the work without its chunks, and its files."""

    work: Work[ChunkT]
    bundle: Bundle
    run: str
    """A name of the run alone: another of the same work has another."""


class OtherVersionError(RuntimeError):
    """A worker has another simctl, Python or package than the process that gives out work."""


# In a worker of Dask's.


class _Crew(threading.local):
    """The process that a thread of the worker has for trials, and of which run."""

    run: str = ""
    pool: Pool[Any] | None = None


_CREW: Final = _Crew()
_POOLS: Final[list[tuple[str, Pool[Any]]]] = []
"""Those of all threads of this process, each with its run."""

_OVER: Final[set[str]] = set()
"""Runs whose work is wanted no more."""


def run_unit(
    payload: Payload[ChunkT], chunks: list[tuple[int, int]], wanted: dict[str, str]
) -> tuple[list[ChunkT], float]:
    """Run a few chunks in a worker; return what came of them, and how many seconds that took.

    Raises:
        WorkerError: The run is over, or is over before they have ended: nobody waits for them.
    """
    found = about(payload.work.packages)
    if found != wanted:
        raise OtherVersionError(differences(wanted, found))
    if _CREW.run != payload.run or _CREW.pool is None:
        _let_go()
        work = attrs.evolve(payload.work, folder=payload.bundle.unpack())
        pool = Pool(work, 1)
        pool.__enter__()
        _CREW.run, _CREW.pool = payload.run, pool
        _POOLS.append((payload.run, pool))
    if payload.run in _OVER:
        _let_go()
        raise WorkerError("the run is over")
    started = time.perf_counter()
    try:
        results = list(_CREW.pool.run(chunks, lambda: None))
    except BaseException:
        _let_go()
        raise
    return results, time.perf_counter() - started


def _let_go() -> None:
    """End this thread's process."""
    pool, _CREW.pool, _CREW.run = _CREW.pool, None, ""
    if pool is not None:
        pool.__exit__()
        _POOLS[:] = [each for each in _POOLS if each[1] is not pool]


def end_run(run: str) -> None:
    """End the processes that threads of this worker have for a run: it is wanted no more.

    Those of other runs, which may be another user's, go on.
    """
    _OVER.add(run)
    for name, pool in list(_POOLS):
        if name == run:
            pool.__exit__()
            _POOLS.remove((name, pool))


def _hold(payload: Any) -> Any:
    """Return what travels, as a task: Dask makes it again where the worker that had it is lost."""
    return payload


# Where work is given out.


def run_on_dask(work: Work[ChunkT], address: str, done: Callable[[], None]) -> Iterator[ChunkT]:
    """Run work on a cluster; give what came of its chunks in their order.

    Raises:
        InputError: No scheduler answers, no worker comes, or one has other versions.
        LostError: Workers were killed at some trials, several times.
    """
    with ExitStack() as stack:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        client = _connect(address, stack)
        _check_versions(client, address, work.packages)
        yield from _Given(work, client, address).results(done)


def _connect(address: str, stack: ExitStack) -> Any:
    try:
        if address == "local" or address.startswith("local:"):
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="simctl-dask-"))
            count = address.partition(":")[2]
            with leaving_ctrl_c():
                cluster = distributed.LocalCluster(
                    n_workers=int(count) if count else None,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    local_directory=scratch,
                    silence_logs=logging.CRITICAL,
                )
            stack.callback(cluster.close, timeout=CONNECT_S)
            client = distributed.Client(cluster, timeout=CONNECT_S)
        elif "://" in address:
            client = distributed.Client(address, timeout=CONNECT_S)
        elif Path(address).is_file():
            client = distributed.Client(scheduler_file=address, timeout=CONNECT_S)
        else:
            raise InputError(
                f"--dask {address}: expected tcp://HOST:PORT, local, local:N, or the file that a "
                "scheduler was told to write"
            )
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"--dask {address}: no scheduler answers there within {CONNECT_S} s ({error})"
        ) from error
    stack.callback(_close, client)
    return client


def _close(client: Any) -> None:
    with suppress(Exception):  # the cluster may be gone
        client.close(timeout=CONNECT_S)


def _check_versions(client: Any, address: str, packages: tuple[str, ...]) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError as error:
        raise InputError(
            f"--dask {address}: the scheduler has no worker, and none came within {WORKERS_S} s"
        ) from error
    wanted = about(packages)
    for worker, found in client.run(_about_or_why, packages, on_error="return").items():
        if found != wanted:
            why = differences(wanted, found) if isinstance(found, dict) else str(found)
            raise InputError(f"--dask {address}: worker {worker}: {why}")


def _about_or_why(packages: tuple[str, ...]) -> dict[str, str]:
    return about(packages)


class _Given(Generic[ChunkT]):
    """Work that is given out to a cluster."""

    def __init__(self, work: Work[ChunkT], client: Any, address: str) -> None:
        self._work = work
        self._client = client
        self._address = address
        self._waiting = list(work.chunks)
        self._alone: list[tuple[int, int]] = []
        """Chunks to be made in units of their own: one of them was lost with its worker."""
        self._size = 1
        """How many chunks the next unit has."""
        self._threads = 1
        """How many units the cluster runs at a time, as far as is known."""
        self._out: dict[Any, list[tuple[int, int]]] = {}
        """What was given out, by its future."""
        bundle = work.bundle()
        rest = attrs.evolve(work, chunks=[], folder=Path(), bundle=Bundle)
        self._run = uuid.uuid4().hex
        try:
            pickle.dumps(rest)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise WorkerError(f"work cannot travel: {error}") from error
        with warnings.catch_warnings():
            # It is large where logs or a tree travel, and does so once.
            warnings.filterwarnings("ignore", "Sending large graph")
            self._payload = client.submit(
                _hold, Payload(rest, bundle, self._run), key=f"simctl-{self._run}", pure=False
            )

    def results(self, done: Callable[[], None]) -> Iterator[ChunkT]:
        """Give results in the order of the chunks, or as they come, while more are wanted."""
        try:
            yield from self._in_order(done) if self._work.in_order else self._as_they_come(done)
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel([*self._out, self._payload], force=True)
                self._client.run(end_run, self._run, on_error="ignore")

    def _in_order(self, done: Callable[[], None]) -> Iterator[ChunkT]:
        found: dict[int, ChunkT] = {}
        for first, _ in self._work.chunks:
            while first not in found:
                self._give_out()
                for future in self._ended():
                    for result in self._result(future, done):
                        found[result.first] = result
                        if result.ended:
                            # What has a higher number does not count any more.
                            self._waiting = [
                                each for each in self._waiting if each[0] < result.first
                            ]
            result = found.pop(first)
            yield result
            if result.ended:
                return

    def _as_they_come(self, done: Callable[[], None]) -> Iterator[ChunkT]:
        lost: LostError | None = None
        self._give_out()
        while self._out:
            for future in self._ended():
                unit = self._out[future]
                try:
                    yield from self._result(future, done)
                except LostError as error:
                    if len(unit) == 1:
                        lost = error
                    else:
                        # One of them did it; the others are to be made.
                        self._alone += unit
            self._give_out()
        if lost is not None:
            raise lost

    def _give_out(self) -> None:
        """Have each thread of the cluster at work, and one unit more waiting for it."""
        self._threads = max(1, sum(self._client.nthreads().values()))
        most = 2 * self._threads
        while (self._waiting or self._alone) and len(self._out) < most:
            if self._waiting:
                unit, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
            else:
                unit = [self._alone.pop(0)]
            future = self._client.submit(
                run_unit, self._payload, unit, about(self._work.packages), pure=False
            )
            self._out[future] = unit

    def _ended(self) -> list[Any]:
        """Return the units that have ended, once one has."""
        while True:
            if self._client.status not in ("running", "connecting"):
                raise LostError(f"--dask {self._address}: the scheduler has gone away")
            with suppress(TimeoutError):
                distributed.wait(list(self._out), timeout=1, return_when="FIRST_COMPLETED")
            ended = [future for future in self._out if future.done()]
            if ended:
                return ended

    def _result(self, future: Any, done: Callable[[], None]) -> list[ChunkT]:
        """Return what came of the chunks of a unit.

        Raises:
            InputError, LostError: Nothing did, and why.
        """
        unit = self._out.pop(future)
        trials = f"trials {unit[0][0]} to {unit[-1][1]}"
        try:
            results, took_s = future.result()
        except distributed.KilledWorker as error:
            raise LostError(
                f"--dask {self._address}: workers were killed at {trials}, several times, as where "
                "memory runs out; what follows was not tried"
            ) from error
        except OtherVersionError as error:
            raise InputError(f"--dask {self._address}: a worker that came late: {error}") from error
        except distributed.client.FutureCancelledError as error:
            raise LostError(
                f"--dask {self._address}: the scheduler has dropped {trials}; was it restarted?"
            ) from error
        wanted_s = max(UNIT_S, self._threads * UNIT_A_WORKER_S)
        fits = max(1, int(wanted_s / max(took_s / len(unit), 1e-6)))
        self._size = max(1, min(fits, 4 * len(unit), 512))
        checked: list[ChunkT] = results
        assert all(isinstance(each, Chunk) for each in checked)
        for result in checked:
            for _ in range(result.last - result.first + 1):
                done()
        return checked
