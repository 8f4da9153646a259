"""Run one plugin class in trial clusters, each call looked at from close by."""

import time  # noqa: TID251 - a check is bounded on the wall clock
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.plugins.points import BY_CLASS, OPTIONAL
from simctl.plugins.registry import PluginError, Registry
from simctl.scenario.durations import format_us
from simctl.scenario.load import read_scenario
from simctl.scenario.model import Scenario
from simctl.testing.plugin_check.code import files_of
from simctl.testing.plugin_check.locks import LockWatch
from simctl.testing.plugin_check.mistakes import (
    BLOCKS,
    BREAKS,
    EARLY_ENVIRONMENT,
    HANGS,
    REAL_TIME,
    RULES,
    SHARED,
    STALLS,
    UNLOCKED,
    Mistake,
    place,
)
from simctl.testing.plugin_check.mistakes import place_in as _place_in
from simctl.testing.plugin_check.observe import SLEEPS_S, Observer
from simctl.testing.plugin_check.wall import sleeps_noted
from simctl.testing.plugin_check.watching import watched
from simctl.wire.ids import SECOND
from simctl.world import RunResult, World

MODELS: Final = ("guide", "modern")
BUDGET_S: Final = 120.0
"""After so many seconds of work no new trial is begun; a whole check takes some 25 at most."""

_LAST_S: Final = 400.0
"""After so many seconds on the wall clock neither, however little a busy machine has done."""

_BUSY_S: Final = 15.0
"""After so many seconds that calls of the plugin alone took on the wall clock neither."""

SLOW_US: Final = 1 * SECOND
"""What calls of a plugin may take of slurmctld's time for one job."""

CONF_KEYS: Final = {
    "switch": "SwitchType",
    "checkpoint": "CheckpointType",
    "burst_buffer": "BurstBufferType",
}


@attrs.frozen(kw_only=True, eq=False)
class Ran:
    """A run of a trial, and what it came to."""

    name: str
    model: str
    result: RunResult
    events: Sequence[Event]
    """The trace, where it was asked for."""

    world: World


class Waits:
    """Adds up how long calls of a plugin hold slurmctld, for each job."""

    def __init__(self) -> None:
        self._held_us: dict[Any, dict[str, int]] = {}

    def __call__(self, event: Event) -> None:
        """Look at an event of the trace."""
        if event.kind == "plugin" and event.daemon == "slurmctld" and event.t0_us is not UNSET:
            # What concerns no job is added to nothing.
            of = event.seq if event.job is UNSET else f"job {event.job}"
            by_name = self._held_us.setdefault(of, {})
            took_us = event.time_us - event.t0_us
            by_name[event.name] = by_name.get(event.name, 0) + took_us

    def told(self) -> list[tuple[str, str]]:
        """Return the function that held slurmctld longest, with what is to be said of it."""
        of, by_name = max(
            self._held_us.items(), key=lambda each: sum(each[1].values()), default=("", {"": 0})
        )
        held_us = sum(by_name.values())
        if held_us < SLOW_US:
            return []
        name = max(by_name, key=lambda each: by_name[each])
        for_what = f" for {of} alone" if isinstance(of, str) else " in one call"
        others = [f"{each} {format_us(us)}" for each, us in by_name.items() if each != name and us]
        besides = f" ({format_us(by_name[name])}, {', '.join(others)})" if others else ""
        return [(name, f"held slurmctld for {format_us(held_us)}{for_what}{besides}")]


class Bench:
    """Runs one plugin class; collects what was wrong in all its runs."""

    def __init__(
        self,
        kind: type[Any],
        origin: str,
        *,
        models: tuple[str, ...] = MODELS,
        watchdog_s: float = 2.0,
        given: tuple[Scenario, ...] = (),
    ) -> None:
        self.kind = watched(kind)
        self.origin = origin
        self.models = models
        self.watchdog_s = watchdog_s
        self.given = given
        """Scenarios of the author's own."""

        self.files = files_of(kind)
        """The files of its code."""

        self.plugin_class, _, _ = kind.plugin_type.partition("/")
        self.conf_key = CONF_KEYS[self.plugin_class]
        names = _functions(kind, self.plugin_class)
        self.observers = {model: Observer(self.kind, names) for model in models}
        self.trials = 0
        self.own_broken: list[str] = []
        """Expectations of the author's own scenarios that did not hold: no mistakes of a rule."""

        self._ends_s = time.process_time() + BUDGET_S
        self._ends_at_last_s = time.monotonic() + _LAST_S
        self._over = False
        self._cut = False
        self._asleep: set[tuple[str, str]] = set()
        self._found: list[tuple[str, Mistake]] = []

    @property
    def over(self) -> bool:
        """Return whether there is no sense in another run: something hangs, or time is up."""
        return self._over or self._late or self._busy_s > _BUSY_S

    @property
    def _late(self) -> bool:
        return time.process_time() > self._ends_s or time.monotonic() > self._ends_at_last_s

    @property
    def cut(self) -> str:
        """Return why trials were left out for want of time, "" where none were."""
        if not self._cut:
            return ""
        return (
            f"time was up after {self.trials} trial clusters; "
            "--model guide, then --model modern, take half as long each"
        )

    @property
    def _busy_s(self) -> float:
        """Return how long calls of the plugin took on the wall clock."""
        return sum(sum(each.busy_s.values()) for each in self.observers.values())

    @staticmethod
    def clock_s() -> float:
        """Return the time on the wall clock, by which what a check may take is bounded."""
        return time.monotonic()

    def run(
        self,
        name: str,
        text: str | Scenario,
        *,
        model: str,
        events: bool = False,
        seed: int | None = None,
        schedule: str = "fifo",
        quiet: bool = False,
        until_us: int | None = None,
        files: frozenset[str] = frozenset(),
        prepare: Callable[[World], None] | None = None,
    ) -> Ran | None:
        """Run a scenario with the plugin in it.

        Args:
            name: What the situation is called in the report.
            text: The scenario; its `slurm_conf` names the plugin where it is to be used.
            model: Which of the models; the text's own does not count.
            events: Whether to keep the trace.
            seed: Instead of the scenario's.
            schedule: As for `simctl run`.
            quiet: Whether stalls are the caller's to judge.
            until_us: When the run ends at the latest, in virtual time.
            files: The plugin's source, by which its threads are followed line by line; empty to
                let them be.
            prepare: Called with the world before it runs.

        Returns:
            The run, or None where there is no sense in another.
        """
        if self.over:
            self._cut = self._cut or self._late
            return None
        self.trials += 1
        observer = self.observers[model]
        scenario = text if isinstance(text, Scenario) else read_scenario(text, file=name)
        world = self._world(scenario, model=model, seed=seed, schedule=schedule, until_us=until_us)
        if world is None:
            return None
        took = Waits()
        world.trace.add_sink(took)
        if events:
            world.trace.add_sink(world.events.append)
        world.site.hooks.observers = [observer]
        observer.new_run(name)
        if prepare is not None:
            prepare(world)
        asleep = partial(self._note_thread_asleep, model)
        locks = LockWatch(world, files) if files else nullcontext()
        try:
            with sleeps_noted(self.kind, observer.note_sleep, asleep), locks:
                result = world.run()
        except PluginError as error:
            self._blame_open(world, BREAKS, str(error), model)
            self._over = True
            return None
        if isinstance(locks, LockWatch):
            self._blame_unlocked(locks, model)
        for function, held in took.told():
            self.blame(BLOCKS, function, held, model=model)
        self._blame_complaints(result, observer, model)
        if not quiet:
            for line in result.stalled:
                self._blame_open(world, STALLS, f"in '{name}' the cluster stalled: {line}", model)
        return Ran(name=name, model=model, result=result, events=world.events, world=world)

    def _world(self, scenario: Scenario, *, model: str, **how: Any) -> World | None:
        """Return a cluster with the plugin in it, None if that cannot be loaded: that is blamed."""
        # The plugin at hand is what is checked, whatever else of its type may be there.
        registry = Registry(installed=False)
        registry.put(self.kind, self.origin, instead=True)
        try:
            return World(
                scenario,
                registry=registry,
                model=model,
                watchdog_s=self.watchdog_s,
                orderings=False,
                **how,
            )
        except PluginError as error:
            self.blame(BREAKS, "plugin", str(error), model=model)
            self._over = True
            return None

    def _blame_unlocked(self, locks: LockWatch, model: str) -> None:
        for each in locks.found:
            what = f"it changes {each.what} in a thread, without slurmctld's lock"
            self.blame(UNLOCKED, each.thread, what, model=model, where=each.where)

    def _blame_complaints(self, result: RunResult, observer: Observer, model: str) -> None:
        """Blame what the run complains of; after a call that hung there is no further trial."""
        for complaint in result.complaints:
            hung = "of wall time" in complaint.problem
            if complaint.function not in observer.tallies:
                rule = HANGS if hung else BREAKS
                if complaint.function == "process().env":
                    rule = EARLY_ENVIRONMENT
                what = complaint.problem
                self.blame(rule, complaint.function, what, model=model, times=complaint.times)
            self._over = self._over or hung

    def _note_thread_asleep(self, model: str, seconds: float, function: str, where: str) -> None:
        """Note that a thread of the plugin has slept on the wall clock."""
        if seconds >= SLEEPS_S and (model, where) not in self._asleep:
            self._asleep.add((model, where))
            what = f"blocks on the wall clock in a thread: {seconds:g} s, and the daemon with it"
            self.blame(REAL_TIME, function, what, model=model, where=where)

    def blame(
        self,
        rule: str,
        function: str,
        what: str,
        *,
        model: str = "",
        where: str = "",
        times: int = 1,
        sometimes: bool = False,
        cost: str = "",
        remedy: str = "",
        alone: frozenset[str] = frozenset(),
        despite: frozenset[str] = frozenset(),
    ) -> None:
        """Note a mistake; *cost* and *remedy* are the rule's, where they are not given."""
        known = RULES[rule]
        mistake = Mistake(
            rule=rule,
            function=function,
            what=what,
            where=where or _place_in(what) or place(self.kind, function),
            cost=cost or known.cost,
            remedy=remedy or known.remedy,
            times=times,
            sometimes=sometimes,
            alone=alone,
            despite=despite,
        )
        self._found.append((model, mistake))

    def found(self) -> list[Mistake]:
        """Return all mistakes of all runs, those of both models joined."""
        if self._busy_s > _BUSY_S:
            busy = [
                (s, name) for each in self.observers.values() for name, s in each.busy_s.items()
            ]
            busy_s, function = max(busy)
            what = f"its calls took {busy_s:.0f} s on the wall clock: the check has left off"
            self.blame(REAL_TIME, function, what)
        for model, observer in self.observers.items():
            for tally in observer.tallies.values():
                for (rule, what), times in tally.problems.items():
                    at_times = RULES[rule].rank == 0 and times < tally.calls
                    self.blame(rule, tally.name, what, model=model, times=times, sometimes=at_times)
                tally.problems.clear()
        joined: dict[tuple[str, str], tuple[Mistake, dict[str, int]]] = {}
        for model, each in self._found:
            # What several functions do to one shared table is one mistake.
            by = each.what if each.rule == SHARED else each.function
            _, times_by_model = joined.setdefault((each.rule, by), (each, {}))
            times_by_model[model] = times_by_model.get(model, 0) + each.times
        return [
            attrs.evolve(
                each,
                times=sum(by_model.values()),
                models=() if "" in by_model or len(by_model) == len(self.models) else (*by_model,),
            )
            for each, by_model in joined.values()
        ]

    def _blame_open(self, world: World, rule: str, text: str, model: str) -> None:
        """Blame the function that was under way, if one was."""
        open_calls = [call.name for call in world.site.hooks.under_way]
        self.blame(rule, open_calls[0] if open_calls else "plugin", text, model=model)


def _functions(kind: type[Any], plugin_class: str) -> list[str]:
    own = [name for name in ("init", "fini") if hasattr(kind, name)]
    besides = [
        point.name
        for point in OPTIONAL.values()
        if point.plugin_class == plugin_class and hasattr(kind, point.name)
    ]
    return [*own[:1], *(point.name for point in BY_CLASS[plugin_class]), *besides, *own[1:]]
