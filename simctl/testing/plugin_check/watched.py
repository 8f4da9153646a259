"""Run a trial on a bench with one more observer: that of the plugin class."""

import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import attrs

from simctl.kernel.events import Event
from simctl.kernel.procs import RunsAs
from simctl.plugins.hooks import Observer
from simctl.scenario.model import Scenario
from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.observe import rule_of
from simctl.wire.ids import SECOND
from simctl.world import RunResult, World


@attrs.define(kw_only=True)
class Run:
    """One run of a cluster: how it ended, and all that happened."""

    world: World
    result: RunResult
    events: list[Event]

    def states(self, job: int) -> list[tuple[float, str]]:
        """Return the states that a job went through, each with its moment in seconds."""
        return [
            (event.time_us / SECOND, str(event.args["to"]))
            for event in self.events
            if event.name == "job_state" and event.job == job and isinstance(event.args, dict)
        ]


def script_of(event: Event) -> tuple[str, tuple[str, ...]]:
    """Return the path and the arguments of an event that is a script's."""
    if not isinstance(event.args, dict):
        return "", ()
    return str(event.args["path"]), tuple(map(str, event.args["argv"]))


def run_watched(
    bench: Bench,
    name: str,
    text: str | Scenario,
    *,
    model: str,
    watch: Observer,
    files: frozenset[str],
    until_s: float,
    light: bool = False,
    body: Callable[[World], Awaitable[None]] | None = None,
) -> Run | None:
    """Run a cluster on a bench.

    Args:
        bench: Where mistakes are noted.
        name: What the situation is called.
        text: The scenario.
        model: Which of the models.
        watch: Who looks at the calls besides.
        files: The plugin's source, by which its threads are followed; empty to let them be.
        until_s: When the run ends at the latest, in virtual time.
        light: Whether the bench's own observer looks away, as it has seen the like: what breaks is
            told all the same.
        body: What is done beside the timeline.

    Returns:
        The run, or None where there is no sense in another.
    """

    def prepare(world: World) -> None:
        hooks = world.site.hooks
        hooks.observers = [*(() if light else hooks.observers), watch]
        if body is not None:
            beside(world, body)

    ran = bench.run(
        name,
        text,
        model=model,
        events=True,
        quiet=True,
        until_us=round(until_s * SECOND),
        files=files,
        prepare=prepare,
    )
    if ran is None:
        return None
    if light:
        for broken in ran.result.complaints:
            if broken.function in bench.observers[model].tallies:
                rule_name = rule_of(broken.problem)
                what, times = broken.problem, broken.times
                bench.blame(rule_name, broken.function, what, model=model, times=times)
    return Run(world=ran.world, result=ran.result, events=list(ran.events))


def beside(world: World, body: Callable[[World], Awaitable[None]]) -> None:
    """Do something in a process of the check's own, from a second after the start on."""
    process = world.procs.add(
        world.ctld.process.host, ppid=1, daemon="simctl", role="driver", uid=0, runs_as=RunsAs.ROOT
    )

    async def run() -> None:
        await body(world)
        process.exit(0)

    process.start(run, "simctl plugins check", due_us=SECOND)


class LinesRun:
    """Notes which lines of some files run, as a context manager."""

    def __init__(self, files: frozenset[str]) -> None:
        self._files = files
        self._before: Any = None
        self.lines: set[tuple[str, int]] = set()

    def __enter__(self) -> "LinesRun":
        """Begin to note."""
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *exc: object) -> None:
        """Leave off."""
        sys.settrace(self._before)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


__all__ = ["LinesRun", "Run", "beside", "run_watched", "script_of"]
