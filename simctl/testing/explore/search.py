"""A search: what it starts from, how it goes on, and what it has come to."""

import shlex
from collections.abc import Sequence
from typing import Any, Final

import attrs

from simctl.kernel.events import Event
from simctl.kernel.schedules import InTurn
from simctl.runners.work import LostError
from simctl.scenario.model import Scenario
from simctl.status import InputError
from simctl.testing.explore.coverage import Coverage
from simctl.testing.explore.exhaustive import Exhaustive, Tally
from simctl.testing.explore.faults import Placement
from simctl.testing.explore.found import Report, Target, pursue
from simctl.testing.explore.options import Options
from simctl.testing.explore.plan import Plan
from simctl.testing.explore.progress import Progress
from simctl.testing.explore.reduction import UnstableError
from simctl.testing.explore.report import by_placement
from simctl.testing.explore.trial import Ran, Terms, load_text, run_trial
from simctl.testing.explore.workers import Find, Runner, run_all

_TURNS_AT_LEAST: Final = 100_000
_TURNS_TIMES: Final = 50
_JITTER_TIMES: Final = 40
_JITTER_WITHOUT_LATENCY_US: Final = 4_000


@attrs.define(kw_only=True)
class Search:
    """A search under way: what it starts from, and what it has come to."""

    options: Options
    text: str
    scenario: Scenario
    terms: Terms
    target: Target
    coverage: Coverage = attrs.field(factory=Coverage)
    placements: tuple[Placement, ...] = ()
    """Where faults were placed; a text of the plan for each."""
    finds: list[Find] = attrs.field(factory=list)
    found: Ran | None = None
    """The run of the first find, where only that knows how to repeat it."""
    tally: Tally | None = None
    """What an exhaustive search has come to."""
    report: Report | None = None
    runs: int = 0
    turns: int = 0
    wall_s: float = 0.0
    interrupted: bool = False
    lost: LostError | None = None
    """Why schedules were not tried."""

    @property
    def first_seed(self) -> int:
        """Return the seed of the first run."""
        seed = self.options.first_seed
        return self.scenario.seed if seed is None else seed

    @property
    def what(self) -> str:
        """Return what is counted."""
        return "runs" if self.placements else "schedules"

    def events_of(self, text: str) -> Sequence[Event]:
        """Return the events of a scenario's first run."""
        scenario = load_text(text, self.options.path)
        return run_trial(scenario, InTurn(), self.first_seed, self.terms).events

    def placement_of(self, find: Find) -> Placement:
        """Return the fault that was placed in the run of a find."""
        return self.placements[find.number // self.options.seeds]

    def again(self, row: str) -> str:
        """Return the command that searches again with the fault of one row alone."""
        words = self.options.words.partition(" --only ")[0]
        return f"simctl explore {words} --only {shlex.quote(row)}"

    def as_json(self, found: Report | None) -> dict[str, Any]:
        """Return the object that `explore --json` prints, with the first find."""
        return {
            "scenario": self.scenario.path_name,
            "model": self.terms.model,
            "first_seed": self.first_seed,
            "seeds": 1 if self.options.exhaustive else self.options.seeds,
            "schedules": self.runs,
            "turns": self.turns,
            "interrupted": self.interrupted,
            "broken": len(self.finds),
            "placements": self._placements_as_json(),
            "exhaustive": self.tally.as_json() if self.tally is not None else None,
            "found": found.as_json() if found is not None else None,
            "covered": self.coverage.as_json(),
            "wall_s": round(self.wall_s, 3),
            "runner": self.options.where.told,
        }

    def _placements_as_json(self) -> Any:
        if not self.options.faults:
            return None
        by_place = by_placement(self.finds, self.options.seeds)
        return {
            "tried": len(self.placements),
            "broken": [
                {
                    "fault": self.placements[place].fault,
                    "where": self.placements[place].where,
                    "schedules": len(finds),
                    "repeat": self.again(self.placements[place].row),
                    "broken": [attrs.asdict(each) for each in finds[0].broken],
                }
                for place, finds in by_place.items()
            ],
        }

    def try_all(self, plan: Plan, progress: Progress) -> None:
        """Run every trial of a plan, or all up to the first find."""
        stop = not self.options.keep_going and not self.placements
        where = self.options.where
        for result in run_all(plan, where=where, stop=stop, done=progress.count):
            self.coverage.merge(result.coverage)
            self.runs += result.last - result.first + 1
            self.turns += result.turns
            self.finds += result.finds
            progress.broken = len(self.finds)
        # What workers have run beyond the first find counts for nothing.
        progress.runs = self.runs

    def exhaust(self, progress: Progress) -> None:
        """Run every schedule that may differ from others, or all up to the first find.

        Raises:
            InputError: One schedule did not always lead to one run.
        """
        try:
            self._exhaust(progress)
        except UnstableError:
            raise InputError(
                "--exhaustive: the same schedule led to different runs; a plugin looks at the real "
                "clock, at random numbers or at what an earlier run left"
            ) from None

    def _exhaust(self, progress: Progress) -> None:
        options = self.options
        every = Exhaustive(self.scenario, self.first_seed, self.terms, calls=options.calls)
        self.tally = every.tally
        for ran in every.runs(limit=options.limit, seconds=options.seconds):
            self.coverage.add(ran.events)
            self.runs += 1
            self.turns += ran.turns
            if ran.broken:
                self.finds.append(
                    Find(
                        number=self.runs - 1,
                        broken=ran.broken,
                        token=ran.token,
                        schedule="an exhaustive search",
                    )
                )
                progress.broken = len(self.finds)
                self.found = self.found or ran
                if not options.keep_going:
                    every.tally.why = "a find"
                    progress.count()
                    return
            progress.count()

    def pursue(self, plan: Plan, progress: Progress) -> None:
        """Make the first find small."""
        find = self.finds[0]
        seed = self.first_seed if self.options.exhaustive else plan.seed_of(find.number)
        calls = self.options.calls
        text = self.text
        ran = self.found
        if ran is None:
            ran = Runner(plan).run(find.number)
            calls = plan.schedule_of(find.number).switches_at_calls
            text = plan.texts[plan.text_of(find.number)]
        if (find.broken, find.token) != (ran.broken, ran.token):
            self.report = Report(
                broken=find.broken, seed=seed, schedule=find.schedule, token=find.token
            )
            return
        self.report = pursue(
            text,
            plan.file(),
            ran,
            seed=seed,
            schedule=find.schedule,
            calls=calls,
            terms=plan.terms,
            target=self.target,
            progress=progress,
            placed=1 if self.placements else 0,
        )
