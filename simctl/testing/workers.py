"""Run cases in several processes of the machine; their outcomes come in the order of the cases."""

import multiprocessing  # noqa: TID251 - stands outside the simulation
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor  # noqa: TID251 - as above
from concurrent.futures.process import BrokenProcessPool  # noqa: TID251 - as above

from simctl.status import InputError
from simctl.testing.cases import Case, Outcome, Settings, run_case
from simctl.testing.orphans import end_with_parent, leaving_ctrl_c


def run_cases(
    cases: Sequence[tuple[Case, bool]], settings: Settings, *, workers: int
) -> Iterator[Outcome]:
    """Run cases, each with whether its file was named; yield their outcomes in the same order.

    Raises:
        InputError: A worker has been ended by what it ran.
    """
    if workers == 1:
        for case, named in cases:
            yield run_case(case, settings, named=named)
        return
    context = multiprocessing.get_context("spawn")
    count = min(workers, len(cases))
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=end_with_parent)
    try:
        for future in _submit(pool, cases, settings):
            yield future.result()
    except BrokenProcessPool:
        raise InputError("test: a worker process was ended by what it ran, see above") from None
    finally:
        # Also of what nobody waits for any more.
        for process in multiprocessing.active_children():
            process.terminate()
        pool.shutdown(cancel_futures=True)


def _submit(
    pool: ProcessPoolExecutor, cases: Sequence[tuple[Case, bool]], settings: Settings
) -> list[Future[Outcome]]:
    """Give all cases to workers, which leave Ctrl-C to this process."""
    with leaving_ctrl_c():
        return [pool.submit(run_case, case, settings, named=named) for case, named in cases]
