"""A cluster that a test changes before it runs."""

from collections.abc import Callable
from pathlib import Path

import attrs

from simctl.files import read_text
from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern, PatternError
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.scenario.load import read_values, start
from simctl.scenario.model import Entry
from simctl.scenario.pattern_words import Known, checked
from simctl.scenario.patterns import FUNCTIONS
from simctl.scenario.positions import Unreadable, Value, compose
from simctl.scenario.timeline.message_faults import rpc_names
from simctl.scenario.timeline.timeline import COMMANDS, TIMELINE
from simctl.status import InputError
from simctl.testing.frames import hide
from simctl.testing.runs import Run, Surroundings, is_text, make_world, run_world
from simctl.world import World

__tracebackhide__ = hide


class Cluster:
    """A cluster of a scenario, ready to run once; what is added happens besides its timeline."""

    def __init__(
        self,
        scenario: str | Path,
        *,
        model: str = "",
        schedule: str = "fifo",
        seed: int | None = None,
        orderings: bool = True,
        surroundings: Surroundings,
    ) -> None:
        folder = surroundings.folder
        self.world: World = make_world(
            scenario,
            model=model,
            schedule=schedule,
            seed=seed,
            folder=folder,
            orderings=orderings,
        )
        """The cluster itself: its disk, its hosts, its daemons, and what crashes and cuts them."""

        self._surroundings = surroundings
        given = is_text(scenario)
        path = folder / "scenario.yaml" if given else folder / scenario
        self._file = str(path)
        self._text = str(scenario) if given else read_text(path)
        self._added: list[str] = []

    def add(self, *entries: str) -> None:
        """Add entries to the timeline, each written as in a scenario.

        Such as ``{at: 5s, as: alice, run: scancel 1}``.

        Raises:
            InputError: One cannot be read.
        """
        # Read together with what was added before: their places give them different names.
        added = [*self._added, *entries]
        found = self._read(added)
        timeline = self.world.scenario.timeline
        kept = timeline[: len(timeline) - len(self._added)]
        self.world.scenario = attrs.evolve(self.world.scenario, timeline=(*kept, *found))
        self._added = added

    def _read(self, entries: list[str]) -> tuple[Entry, ...]:
        """Read entries as the scenario would, whose users, nodes and files they may name."""
        reading = start(self._text, self._file)
        read_values(self._text, reading)
        reading.file = "added"
        text = "".join(f"- {each}\n" for each in entries)
        try:
            found: tuple[Entry, ...] = TIMELINE.read(
                Value(node=compose(text, "added"), path="added"), reading
            )
        except (Unreadable, ValueError) as error:
            raise InputError(str(error)) from None
        if reading.mistakes:
            raise InputError("\n".join(str(each) for each in reading.mistakes))
        return found

    def at(self, moment: str, act: Callable[[], object]) -> None:
        """Have *act* called at a moment of virtual time, such as ``5s``.

        Raises:
            InputError: The moment cannot be read.
        """
        try:
            due_us = parse_duration_us(moment)
        except DurationError as error:
            raise InputError(f"at: {error}") from None

        def happen(_: None) -> None:
            act()

        def arrange() -> None:
            self.world.kernel.call_at(due_us, happen, None)

        self.world.background.append(arrange)

    def on(self, pattern: str, act: Callable[[Event], object], *, each: bool = False) -> None:
        """Have *act* called with the first event that matches, or with each.

        It is called after the event is recorded and before its process does anything more.

        Raises:
            InputError: The pattern cannot be read.
        """
        try:
            wanted = checked(Pattern.parse(pattern, self.world.scenario.uids()), self._known())
        except PatternError as error:
            raise InputError(f"on: {error}") from None
        armed = True

        def look(event: Event) -> None:
            nonlocal armed
            if armed and wanted.matches(event):
                armed = each
                act(event)

        self.world.trace.add_sink(look)

    def _known(self) -> Known:
        return Known(
            names=(*FUNCTIONS, *COMMANDS, *rpc_names()),
            commands=COMMANDS,
            nodes=self.world.hosts,
            plugins=self.world.scenario.slurm_conf.plugin_types,
        )

    def run(self) -> Run:
        """Run it to its end, and return what came of it."""
        return run_world(self.world, self._surroundings)
