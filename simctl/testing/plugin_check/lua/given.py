"""Runs of an author's own: `plugins check FILE.lua --scenario S`."""

from collections.abc import Sequence

import attrs

from simctl.kernel.events import Event
from simctl.scenario.model import Scenario
from simctl.status import InputError
from simctl.world import RunResult, World

_KEYS = {
    "job_submit": "JobSubmitPlugins",
    "burst_buffer": "BurstBufferType",
    "cli_filter": "CliFilterPlugins",
}


@attrs.frozen(kw_only=True)
class GivenRun:
    """One run of a scenario with the script in it."""

    name: str
    lua: str
    slurm: str
    events: tuple[Event, ...]
    result: RunResult

    @property
    def broken(self) -> tuple[str, ...]:
        """Return the expectations that did not hold."""
        return tuple(
            f"{self.name}: {each.text}" for each in self.result.expectations if not each.held
        )


def run_given(given: Sequence[Scenario], kind: str, text: str) -> tuple[GivenRun, ...]:
    """Run each scenario with a script's text in place of its own.

    Raises:
        InputError: One does not use scripts of this kind.
    """
    found = []
    for scenario in given:
        conf = scenario.slurm_conf
        used = (*conf.burst_buffer_types, *conf.job_submit_types, *conf.cli_filter_types)
        if f"{kind}/lua" not in used:
            raise InputError(
                f"--scenario {scenario.path_name}: its {_KEYS[kind]} does not name {kind}/lua, "
                "which is to be checked"
            )
        own = attrs.evolve(scenario, lua_scripts={**scenario.lua_scripts, f"{kind}.lua": text})
        world = World(own, orderings=False)
        world.trace.add_sink(world.events.append)
        result = world.run()
        found.append(
            GivenRun(
                name=scenario.path_name,
                lua=scenario.lua.version,
                slurm=scenario.lua.slurm,
                events=tuple(world.events),
                result=result,
            )
        )
    return tuple(found)
