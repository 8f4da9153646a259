"""Trials of a search, in chunks that may be run anywhere."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from simctl.files import noting
from simctl.runners.bundle import Bundle, check_travels, plugin_files
from simctl.runners.running import run
from simctl.runners.work import Chunk, Where, Work, chunks_of
from simctl.scenario.load import files_named
from simctl.scenario.model import Scenario
from simctl.scenario.positions import compose
from simctl.testing.explore.coverage import Coverage
from simctl.testing.explore.plan import Plan
from simctl.testing.explore.trial import Broken, Ran, load_text, run_trial


@attrs.frozen(kw_only=True)
class Find:
    """A trial in which something was broken."""

    number: int
    broken: tuple[Broken, ...]
    token: str
    schedule: str


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
    plan: Plan, *, where: Where, stop: bool, done: Callable[[], None]
) -> Iterator[ChunkResult]:
    """Run every trial of a plan; give the results in the order of their numbers.

    With *stop* nothing is given beyond the chunk of the first find, and nothing new is begun.
    """
    runner = Runner(plan)
    first = runner.run_chunk(0, 0, stop=stop, done=done)
    yield first
    if first.ended:
        return
    work = Work(
        make=functools.partial(_runner_in, plan),
        chunks=chunks_of(1, plan.trials),
        stop=stop,
        folder=plan.file().parent,
        bundle=functools.partial(_files, plan),
    )
    yield from run(work, where, done)


def _files(plan: Plan) -> Bundle:
    """Return the files that a plan's scenario needs."""
    with noting() as read:
        scenario = Runner(plan).scenario(0)
    folder, references = plan.file().parent, scenario.files_of_code
    check_travels(folder, (*references, *files_named(compose(plan.texts[0], plan.path))), read)
    return plugin_files(folder, references, read)


def _runner_in(plan: Plan, folder: Path) -> Runner:
    """Return what runs a plan whose files start from a folder."""
    return Runner(attrs.evolve(plan, path=str(folder / plan.file().name)))
