"""Run cases in several processes of the machine; their outcomes come in the order of the cases."""

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from simctl.runners.running import run
from simctl.runners.work import Chunk, LostError, Where, Work
from simctl.status import InputError
from simctl.testing.cases import Case, Outcome, Settings
from simctl.testing.judging import run_case

Cases = Sequence[tuple[Case, bool]]
"""Cases, each with whether its file was named."""


@attrs.frozen(kw_only=True)
class CaseChunk(Chunk):
    """What came of one case."""

    outcome: Outcome


@attrs.frozen
class CaseRunner:
    """Runs cases by their numbers."""

    cases: Cases
    settings: Settings

    def run_chunk(
        self, first: int, last: int, *, stop: bool, done: Callable[[], None]
    ) -> CaseChunk:
        """Run the one case of a chunk."""
        case, named = self.cases[first]
        outcome = run_case(case, self.settings, named=named)
        done()
        return CaseChunk(first=first, last=last, ended=False, outcome=outcome)


def run_cases(cases: Cases, settings: Settings, *, workers: int) -> Iterator[Outcome]:
    """Run cases; yield their outcomes in the same order.

    Raises:
        InputError: A case has ended the worker that ran it, twice.
    """
    work = Work(
        make=functools.partial(_runner, cases, settings),
        chunks=[(number, number) for number in range(len(cases))],
        apart=True,
        name="test",
    )
    try:
        for chunk in run(work, Where(workers=workers), lambda: None):
            yield chunk.outcome
    except LostError:
        raise InputError("test: a worker process was ended by what it ran, see above") from None


def _runner(cases: Cases, settings: Settings, _: Path) -> CaseRunner:
    return CaseRunner(cases, settings)
