"""Run cases in several processes, or on a cluster; outcomes come in the order of the cases."""

import functools
import glob
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from simctl.files import noting
from simctl.runners.bundle import Bundle, check_travels, pack, paths_of_plugins
from simctl.runners.running import run
from simctl.runners.work import Chunk, LostError, Where, Work
from simctl.scenario.positions import ScenarioErrors, compose
from simctl.status import InputError
from simctl.testing.cases import Case, Outcome, Settings
from simctl.testing.finding import stem_of
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


def run_cases(cases: Cases, settings: Settings, where: Where) -> Iterator[Outcome]:
    """Run cases; yield their outcomes in the same order.

    Raises:
        InputError: A case has ended the worker that ran it, twice; or files cannot travel.
    """
    work = Work(
        make=functools.partial(_runner, cases, settings),
        chunks=[(number, number) for number in range(len(cases))],
        apart=True,
        name="test",
        bundle=functools.partial(_files, cases),
    )
    try:
        for chunk in run(work, where, lambda: None):
            yield chunk.outcome
    except LostError as error:
        why = error if where.dask else "a worker process was ended by what it ran, see above"
        raise InputError(f"test: {why}") from None


def _runner(cases: Cases, settings: Settings, folder: Path) -> CaseRunner:
    if folder != Path():
        # Files have travelled here; what is told of them is told by the same paths.
        os.chdir(folder)
    return CaseRunner(cases, settings)


def _files(cases: Cases) -> Bundle:
    """Return the files that cases need: scenarios, golden traces, plugins, what scenarios read.

    Raises:
        InputError: One is named by its whole path.
    """
    # No other call needs it here.
    from simctl.scenario.load import files_named, load_scenario  # noqa: PLC0415

    found: dict[Path, None] = {}
    for path in dict.fromkeys(case.path for case, _ in cases):
        if path.is_absolute():
            raise InputError(f"test --dask: {path}: name it by a path from here")
        found[path] = None
        found |= dict.fromkeys(path.parent.glob(f"{glob.escape(stem_of(path))}*.golden.jsonl"))
        references: tuple[str, ...] = ()
        named: list[str] = []
        # What is wrong with a scenario is told by the worker that runs it.
        with noting() as read, suppress(ScenarioErrors):
            references = load_scenario(path).files_of_code
            named = files_named(compose(path.read_text(encoding="utf-8-sig"), str(path)))
        check_travels(path.parent, (*references, *named), read)
        found |= dict.fromkeys([*paths_of_plugins(path.parent, references), *read])
    return pack(Path(), found)
