"""A run of a scenario, for tests to look at."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern, PatternError
from simctl.orderings.checking import tell
from simctl.plugins.registry import PluginError
from simctl.scenario.expect import Result, check
from simctl.scenario.load import load_scenario, read_scenario
from simctl.scenario.model import Scenario
from simctl.scenario.positions import ScenarioErrors
from simctl.status import InputError
from simctl.testing.before import assert_before
from simctl.world import RunResult, ScheduleError, World


@attrs.frozen
class Run:
    """What came of a run: jobs, events, what was expected, what plugins did wrong."""

    result: RunResult
    events: tuple[Event, ...]
    """Every event, in order, as docs/traces.md describes them."""

    users: Mapping[str, int]
    """Who there is, for `user=` in patterns."""

    @property
    def held(self) -> bool:
        """Tell whether all that was expected came true, every ordering held, nothing stalled."""
        return self.result.held

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """The jobs, as `run --json` prints them."""
        return [row.as_json() for row in self.result.rows]

    @property
    def plugin_errors(self) -> list[str]:
        """What plugins raised, returned by mistake, or did not come back from."""
        return [f"{each.function}: {each.problem}" for each in self.result.complaints]

    def matching(self, pattern: str) -> list[Event]:
        """Return the events that match a pattern such as ``switch_p_job_init node=n1``.

        A call that took time is one event, its end.

        Raises:
            InputError: The pattern cannot be read.
        """
        try:
            wanted = Pattern.parse(pattern, self.users)
        except PatternError as error:
            raise InputError(f"pattern: {error}") from error
        return [event for event in self.events if wanted.matches(event)]

    def assert_held(self) -> None:
        """Raise AssertionError with everything that did not hold, if anything."""
        wrong = [_told(each) for each in self.result.expectations if not each.held]
        wrong += ["\n".join(tell(breach)) for breach in self.result.orderings.broken]
        wrong += [f"stalled: {line}" for line in self.result.stalled]
        if wrong:
            raise AssertionError("\n".join(wrong))

    def assert_that(self, *expectations: str) -> None:
        """Raise AssertionError unless these hold; each is written as in a scenario's `expect:`.

        Such as ``{never: "switch_p_job_fini role=manager"}``.

        Raises:
            InputError: One cannot be read.
        """
        users = ", ".join(f"{name}: {uid}" for name, uid in self.users.items() if uid)
        text = f"{_NO_CLUSTER}users: {{{users}}}\nexpect:\n" + "".join(
            f"  - {each}\n" for each in expectations
        )
        try:
            scenario = read_scenario(text, file="assert_that")
        except ScenarioErrors as error:
            raise InputError("\n".join(str(each) for each in error.mistakes)) from error
        results = check(scenario.expect, self.events, self.jobs)
        wrong = [_told(each) for each in results if not each.held]
        if wrong:
            raise AssertionError("\n".join(wrong))

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


_NO_CLUSTER = "nodes: [{name: n1}]\npartitions: [{name: p, nodes: n1, default: true}]\n"


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
    if model not in ("", "guide", "modern"):
        raise InputError(f"model: expected guide or modern, got {model!r}")
    try:
        world = World(
            _load(scenario, folder),
            seed=seed,
            schedule=schedule,
            model=model,
            orderings=orderings,
        )
        world.trace.add_sink(world.events.append)
        result = world.run()
    except ScenarioErrors as error:
        raise InputError("\n".join(str(each) for each in error.mistakes)) from error
    except (PluginError, ScheduleError) as error:
        raise InputError(str(error)) from error
    users = {user.name: user.uid for user in world.scenario.users}
    return Run(result, tuple(world.events), users)


def _load(scenario: str | Path, folder: Path) -> Scenario:
    if isinstance(scenario, str) and "\n" in scenario:
        return read_scenario(scenario, file=str(folder / "scenario.yaml"))
    return load_scenario(Path(scenario))
