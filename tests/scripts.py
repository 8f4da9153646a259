"""Run scripts as slurmctld's burst buffer plugins do, without a plugin."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs

from simctl.api.slurmctld import ScriptResult
from simctl.ctld.reporting.bb_scripts import Failures, run_script, start_script
from simctl.kernel.threads import Body, Thread
from simctl.scenario.load import read_scenario
from simctl.world import World
from tests.cluster import TWO_NODES, Ran, watched


@attrs.define
class Caller:
    """Runs scripts in a thread of slurmctld's."""

    world: World
    results: list[ScriptResult] = attrs.field(factory=list)
    failures: Failures = attrs.field(factory=Failures)

    @property
    def now_s(self) -> float:
        """Virtual time in seconds."""
        return self.world.kernel.now_us / 1_000_000

    async def run(
        self,
        path: str,
        *argv: str,
        name: str = "",
        job: int = 0,
        timeout: float | None = None,  # noqa: ASYNC109 - virtual time
    ) -> ScriptResult:
        """Run a script; what comes of it is kept as well."""
        result = await run_script(
            self.world.site,
            self.world.ctld.process,
            path,
            argv,
            name=name or path.rpartition("/")[2],
            job_id=job,
            timeout=timeout,
            env={},
            failures=self.failures,
        )
        self.results.append(result)
        return result

    def start(self, path: str, *argv: str, name: str = "", job: int = 0) -> None:
        """Start a script that nobody waits for."""
        start_script(
            self.world.site,
            self.world.ctld.process,
            path,
            argv,
            name=name or path.rpartition("/")[2],
            job_id=job,
            env={},
        )

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.world.kernel.sleep_us(round(seconds * 1_000_000))

    def spawn(self, body: Body, *, lingers: bool = False) -> Thread:
        """Start another thread of slurmctld's."""
        return self.world.ctld.process.start(body, "thread", lingers=lingers)


def ran_scripts(
    text: str,
    *bodies: Callable[[Caller], Awaitable[Any]],
    lingers: bool = True,
    folder: Path | None = None,
    real: bool = False,
    model: str = "guide",
    schedule: str = "fifo",
    seed: int = 0,
) -> tuple[Caller, Ran]:
    """Run a scenario in which threads of slurmctld's do what *bodies* say, from its start on."""
    file = str(folder / "s.yaml") if folder is not None else "s.yaml"
    options = "options: {real_scripts: true}\n" if real else ""
    scenario = read_scenario(TWO_NODES + options + text, file=file)
    world = World(scenario, model=model, schedule=schedule, seed=seed)
    caller = Caller(world)

    async def act(body: Callable[[Caller], Awaitable[Any]]) -> None:
        await body(caller)

    def begin() -> None:
        for body in bodies:
            caller.spawn(lambda body=body: act(body), lingers=lingers)  # type: ignore[misc]

    world.background.append(begin)
    return caller, watched(world)


__all__ = ["Caller", "ran_scripts"]
