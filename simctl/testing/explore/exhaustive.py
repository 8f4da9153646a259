"""`simctl explore --exhaustive`: every schedule of a small scenario that may differ from others."""

import hashlib
import json
import re
import time  # noqa: TID251 - how long the search may take, on the wall clock
from collections.abc import Iterator
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.footprint import Steps
from simctl.scenario.model import FaultEntry, OrderExpect, Scenario, When
from simctl.testing.explore.reduction import RedundantError, Tree
from simctl.testing.explore.trial import Ran, Terms, run_trial
from simctl.world import RunResult, World


@attrs.define(kw_only=True)
class Tally:
    """What a search has come to so far."""

    schedules: int = 0
    """Runs that went to their end: schedules of which no two are the same but for free swaps."""
    cut: int = 0
    """Runs that were broken off because they would have repeated another."""
    orders: int = 1
    """How many orders of turns the first run alone had, had nothing been known of them."""
    outcomes: dict[str, int] = attrs.field(factory=dict)
    """How often each outcome came, by its digest."""
    complete: bool = False
    why: str = ""
    """Why the search was cut short."""

    def begin_again(self) -> None:
        """Forget the runs that were made."""
        self.schedules = self.cut = 0
        self.orders = 1
        self.outcomes.clear()

    def as_json(self) -> dict[str, Any]:
        """Return what `explore --json` says of it."""
        return {
            "complete": self.complete,
            "cut_short_by": self.why or None,
            "schedules": self.schedules,
            "repeats_broken_off": self.cut,
            "orders_of_first_run": str(self.orders),
            "outcomes": self.outcomes,
        }


_PID: Final = re.compile(r" \(pid \d+\)")


class Watcher:
    """Tells what the events of a run touch: processes, and what the scenario watches for."""

    def __init__(self, world: World, scenario: Scenario, steps: Steps) -> None:
        self._steps = steps
        self._whens = [
            (f"when {place}", entry.moment.pattern)
            for place, entry in enumerate(scenario.timeline)
            if isinstance(entry.moment, When)
        ]
        self._orders = [each for each in scenario.expect if isinstance(each, OrderExpect)]
        self._units = world.procs.units
        world.procs.divides = _divides(scenario)
        if any(
            spec.runs_max_us > spec.runs_min_us
            for program in scenario.programs.values()
            for spec in program
        ):
            world.site.programs.drawn = lambda: steps.touch("chance")
        world.disk.watch = self._file
        world.trace.add_sink(self)

    def _file(self, path: str, changed: bool) -> None:
        (self._steps.touch if changed else self._steps.look)(f"file {path}")

    def __call__(self, event: Event) -> None:
        """Note what an event touches."""
        touch = self._steps.touch
        if event.daemon is not UNSET:
            unit = self._units.get(event.pid) if isinstance(event.pid, int) else None
            node = event.node if isinstance(event.node, str) else "slurmctld"
            touch(unit or f"host {node}")
        for name, pattern in self._whens:
            if pattern.matches(event):
                touch(name)
        for place, order in enumerate(self._orders):
            if any(entry.pattern.matches(event) for entry in order.entries):
                group = getattr(event, order.each, "") if order.each else ""
                touch(f"order {place} {group}")


def _divides(scenario: Scenario) -> bool:
    """Return whether what runs on one host is known to meet in messages and files alone.

    Checkpoints reach from one process into another, and a rule that makes calls fail is looked at
    wherever plugins are called.
    """
    return (
        scenario.slurm_conf.checkpoint_type == "checkpoint/none"
        and not scenario.options.real_scripts
        and not any(isinstance(entry, FaultEntry) for entry in scenario.timeline)
    )


_NUMBERS_SHOWN: Final = ("$$", "$!", "$PPID", "_PID", "_pid", "listpids")
"""What gives the number of a process away where no call of a plugin's does."""


class Exhaustive:
    """Runs a scenario under one schedule after another."""

    def __init__(
        self, scenario: Scenario, seed: int, terms: Terms, *, calls: bool, reduces: bool = True
    ) -> None:
        self.tally = Tally()
        self._scenario = scenario
        self._seed = seed
        self._terms = terms
        self._calls = calls
        self._reduces = reduces
        self._tree = Tree(reduces=reduces)
        said = repr(scenario)
        self._orders_numbers = any(each in said for each in _NUMBERS_SHOWN)

    def runs(self, *, limit: int, seconds: float | None) -> Iterator[Ran]:
        """Give every run that went to its end, until there is no other or no more may be made."""
        started = time.monotonic()
        tally = self.tally
        more = True
        while more:
            if tally.schedules >= limit:
                tally.why = f"--limit {limit}"
                return
            if seconds is not None and time.monotonic() - started > seconds:
                tally.why = f"--seconds {seconds:g}"
                return
            ran, steps = self._run()
            if steps.numbers_matter and not self._orders_numbers:
                # What was skipped as the same but for numbers may have been different after all.
                self._orders_numbers = True
                self._tree = Tree(reduces=self._reduces)
                tally.begin_again()
                continue
            if ran is not None:
                self._count(ran)
                yield ran
            else:
                tally.cut += 1
            more = self._tree.advance(steps.taken)
        tally.complete = True

    def _run(self) -> tuple[Ran | None, Steps]:
        schedule = self._tree.schedule(calls=self._calls)
        steps = Steps()
        steps.orders_numbers = self._orders_numbers

        def prepare(world: World) -> None:
            assert world.kernel.line is not None
            world.kernel.line.steps = steps
            Watcher(world, self._scenario, steps)

        try:
            ran = run_trial(self._scenario, schedule, self._seed, self._terms, prepare=prepare)
            schedule.settle(ran.line)
        except RedundantError:
            return None, steps
        return ran, steps

    def _count(self, ran: Ran) -> None:
        tally = self.tally
        if not tally.schedules:
            for width in ran.line.widths:
                tally.orders *= width
        tally.schedules += 1
        digest = outcome(ran)
        tally.outcomes[digest] = tally.outcomes.get(digest, 0) + 1


def outcome(ran: Ran) -> str:
    """Return a digest of what came of a run: jobs, commands, what held; not of times of events."""
    if ran.result is None:
        text = json.dumps([attrs.asdict(each) for each in ran.broken])
    else:
        text = json.dumps(_outcome_of(ran.result))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _outcome_of(result: RunResult) -> dict[str, Any]:
    said = result.as_json()
    # Lists in which the first to come is the first told, which is not a difference by itself.
    unordered = ("commands", "plugin_errors", "fatal")
    lists = {key: sorted(_PID.sub("", json.dumps(each)) for each in said[key]) for key in unordered}
    return lists | {
        "stalled": said["stalled"],
        "jobs": said["jobs"],
        "held": [[each.text, each.held] for each in result.expectations],
        "orderings": [each.rule.name for each in result.orderings.broken],
    }
