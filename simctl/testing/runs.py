"""A run of a scenario, for tests to look at."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - see `_run`
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import trio

from simctl.kernel.events import Event
from simctl.kernel.schedules import ScheduleError
from simctl.orderings.checking import tell
from simctl.plugins.importing import forget_files
from simctl.plugins.registry import PluginError
from simctl.reports.text import repeat_command
from simctl.scenario.expectations import EXPECT
from simctl.scenario.holding.evidence import NO_EVIDENCE
from simctl.scenario.holding.expect import Result, check
from simctl.scenario.load import load_scenario, read_scenario, start
from simctl.scenario.model import LookingExpect, Scenario
from simctl.scenario.pattern_words import Known
from simctl.scenario.patterns import FUNCTIONS
from simctl.scenario.positions import ScenarioErrors, Unreadable, Value, compose
from simctl.scenario.timeline.timeline import COMMANDS
from simctl.scenario.why_failed import told_failures
from simctl.status import InputError
from simctl.testing.asserting import RunTrace
from simctl.testing.before import assert_before
from simctl.testing.frames import hide
from simctl.testing.golden import compare
from simctl.world import RunResult, World

__tracebackhide__ = hide


@attrs.frozen(kw_only=True)
class Surroundings:
    """Where a run belongs: what its paths start from, and what is asked of golden traces."""

    folder: Path = Path()
    path: str = ""
    """The scenario's file, as it is named to people."""

    rewrite: bool = False
    """Whether golden traces are written anew."""

    ignore: tuple[str, ...] = ()
    """What comparisons with golden traces leave out."""

    how_to_rewrite: str = "rewrite=True"
    made: "Callable[[Run], None] | None" = None
    """Is told of each run, if there is one to be told."""


@attrs.frozen
class Run:
    """What came of a run: jobs, events, what was expected, what plugins did wrong."""

    result: RunResult
    events: tuple[Event, ...] = attrs.field(repr=False)
    """Every event, in order, as docs/traces.md describes them."""

    users: Mapping[str, int]
    """Who there is, for `user=` in patterns."""

    nodes: tuple[str, ...] = ()
    header: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """The first line of the trace."""

    surroundings: Surroundings = attrs.field(factory=Surroundings, repr=False)

    @property
    def held(self) -> bool:
        """Return whether all that was expected came true, every ordering held, nothing stalled."""
        return self.result.held

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """The jobs, as `run --json` prints them."""
        return [row.as_json() for row in self.result.rows]

    @property
    def plugin_errors(self) -> list[str]:
        """What plugins raised, returned by mistake, or did not come back from."""
        return [f"{each.function}: {each.problem}" for each in self.result.complaints]

    @property
    def failures(self) -> list[str]:
        """What went wrong first with each job that did not complete, in lines for people."""
        reasons = {row.job_id: row.reason for row in self.result.rows}
        return told_failures(self.events, self.users, reasons)

    @property
    def repeat(self) -> str:
        """The command that repeats the run; nothing if its scenario is no file."""
        path = self.surroundings.path
        return repeat_command(self.result, path) if path else ""

    @cached_property
    def trace(self) -> RunTrace:
        """The events, to assert on."""
        return RunTrace(self.events, self.users, self.nodes, self.repeat)

    def matching(self, pattern: str) -> list[Event]:
        """Return the events that match a pattern such as ``switch_p_job_init node=n1``.

        A call that took time is one event, its end.

        Raises:
            InputError: The pattern cannot be read.
        """
        return self.trace.matching(pattern)

    def assert_held(self) -> None:
        """Raise AssertionError with everything that did not hold, if anything."""
        wrong = [_told(each) for each in self.result.expectations if not each.held]
        wrong += ["\n".join(tell(breach)) for breach in self.result.orderings.broken]
        wrong += [f"stalled: {line}" for line in self.result.stalled]
        wrong += [f"ended: {line}" for line in self.result.ran_out]
        self._fail(wrong, told=True)

    def assert_that(self, *expectations: str) -> None:
        """Raise AssertionError unless these hold; each is written as in a scenario's `expect:`.

        Such as ``{never: "switch_p_job_fini role=manager"}``.

        Raises:
            InputError: One cannot be read.
        """
        text = "".join(f"- {each}\n" for each in expectations)
        reading = start(text, "assert_that")
        reading.users = dict(self.users)
        reading.known = Known.of_run(
            self.events, functions=FUNCTIONS, commands=COMMANDS, nodes=self.nodes
        )
        try:
            wanted = EXPECT.read(Value(node=compose(text, "assert_that"), path="expect"), reading)
        except ScenarioErrors as error:
            raise InputError(str(error)) from None
        except Unreadable:
            wanted = ()
        if reading.mistakes:
            raise InputError("\n".join(str(each) for each in reading.mistakes))
        for each in wanted:
            if isinstance(each, LookingExpect):
                raise InputError(f"{each.text}: {NO_EVIDENCE}")
        results = check(wanted, self.events, self.jobs)
        self._fail([_told(each) for each in results if not each.held], told=True)

    def assert_before(
        self, first: str, second: str, *, proved: bool = False, within: str = "", each: str = ""
    ) -> None:
        """Raise AssertionError unless all that matches one pattern ends before another's matches.

        With *proved* causes have to force it under every schedule. `within` and `each` are those of
        a scenario's `order`.

        Raises:
            InputError: A pattern or the field cannot be read.
        """
        assert_before(
            self.events,
            first,
            second,
            proved=proved,
            within=within,
            each=each,
            users=self.users,
        )

    def assert_golden(
        self, path: str | Path, *, ignore: Iterable[str] = (), rewrite: bool | None = None
    ) -> None:
        """Raise AssertionError unless the trace is the one in a file.

        Args:
            path: The file, from the folder of the scenario or of the test on.
            ignore: What is not compared, beside what the tests' settings say: fields such as
                ``pid`` and ``args.child``, and patterns of events such as ``kind=log``.
            rewrite: Whether the file is written anew instead; without it the settings decide.

        Raises:
            InputError: The file is no trace, or what is to be ignored cannot be read.
        """
        around = self.surroundings
        found = compare(
            around.folder / path,
            self.header,
            self.events,
            ignore=(*around.ignore, *ignore),
            rewrite=around.rewrite if rewrite is None else rewrite,
        )
        if found.trouble:
            hint = f"if the run is as it should be: {around.how_to_rewrite} writes the trace anew"
            self._fail([f"not as {path}:", *found.trouble, hint])

    def _fail(self, wrong: list[str], *, told: bool = False) -> None:
        """Raise AssertionError if anything is wrong; *told* adds why jobs did not complete."""
        if wrong:
            failures = self.failures if told else []
            repeat = [f"to repeat: {self.repeat}"] if self.repeat else []
            raise AssertionError("\n".join([*wrong, *failures, *repeat]))


def _told(result: Result) -> str:
    return "\n".join([result.text, *(f"  {line}" for line in result.detail.splitlines())])


def run(
    scenario: str | Path,
    *,
    model: str,
    schedule: str,
    seed: int | None,
    folder: Path,
    orderings: bool,
) -> Run:
    """Run a scenario; see `simctl.testing.run_scenario`."""
    world = make_world(
        scenario, model=model, schedule=schedule, seed=seed, folder=folder, orderings=orderings
    )
    path = "" if is_text(scenario) else str(scenario)
    return run_world(world, Surroundings(folder=folder, path=path))


def make_world(
    scenario: str | Path,
    *,
    model: str = "",
    schedule: str = "fifo",
    seed: int | None = None,
    folder: Path = Path(),
    orderings: bool = True,
    values: bool = False,
) -> World:
    """Return the cluster of a scenario, which keeps its events.

    Plugins' files are imported anew: tests are to have the same result in any order.

    Raises:
        InputError: The scenario, a plugin, or how it is to be run is wrong; with every mistake.
    """
    if model not in ("", "guide", "modern"):
        raise InputError(f"model: expected guide or modern, got {model!r}")
    forget_files()
    try:
        world = World(
            _load(scenario, folder),
            seed=seed,
            schedule=schedule,
            model=model,
            orderings=orderings,
            values=values,
        )
    except ScenarioErrors as error:
        raise InputError("\n".join(str(each) for each in error.mistakes), placed=True) from None
    except (PluginError, ScheduleError) as error:
        raise InputError(str(error)) from None
    world.trace.add_sink(world.events.append)
    return world


def run_world(world: World, surroundings: Surroundings) -> Run:
    """Run a cluster that keeps its events.

    Raises:
        InputError: A plugin does what no run can go on with.
        KeyboardInterrupt: Ctrl-C has ended the run.
    """
    try:
        result = _run(world)
    except PluginError as error:
        raise InputError(str(error)) from None
    if result.interrupted:
        raise KeyboardInterrupt
    run = Run(
        result,
        tuple(world.events),
        world.scenario.uids(),
        tuple(world.hosts),
        world.header(),
        surroundings,
    )
    if surroundings.made is not None:
        surroundings.made(run)
    return run


def _run(world: World) -> RunResult:
    """Run a cluster; inside of trio, as in an async test, in a thread: it has a loop of its own."""
    if not trio.lowlevel.in_trio_run():  # noqa: TID251 - asks, and waits for nothing
        return world.run()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(world.run).result()


def is_text(scenario: str | Path) -> bool:
    """Return whether a scenario is given by its text, and not by the path of its file."""
    return isinstance(scenario, str) and "\n" in scenario


def _load(scenario: str | Path, folder: Path) -> Scenario:
    if is_text(scenario):
        return read_scenario(str(scenario), file=str(folder / "scenario.yaml"))
    return load_scenario(folder / scenario)
