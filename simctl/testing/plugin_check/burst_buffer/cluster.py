"""The clusters that burst buffer plugins are tried in, and what is kept of a run of one."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from simctl.kernel.events import Event
from simctl.plugins.registry import Registry
from simctl.scenario.load import read_scenario
from simctl.scenario.model import Scenario
from simctl.testing.plugin_check.watched import LinesRun, beside
from simctl.wire.ids import SECOND
from simctl.world import RunResult, World

NODES: Final = 3
_WATCHDOG_S: Final = 2.0
_CONF: Final = {
    "Flags": "EnablePersistent",
    "GetSysState": "/opt/cray/dw_wlm/default/bin/dw_wlm_cli",
    "StartStageIn": "/usr/bb/start_in",
    "StopStageIn": "/usr/bb/stop_in",
    "StartStageOut": "/usr/bb/start_out",
    "StopStageOut": "/usr/bb/stop_out",
}
_DATA: Final = "forty-two\n"
FILES: Final = {"in.dat": _DATA, "out.dat": _DATA, "data/in.dat": _DATA}


@attrs.frozen(kw_only=True)
class Setting:
    """What is around a plugin under trial besides its own configuration."""

    plugin_type: str
    programs: Mapping[str, Any] = {}
    """Programs that the plugin runs, as scenarios describe them."""

    given: Scenario | None = None
    """A scenario of the author's: its programs, files, burst_buffer.conf and appliance are here."""

    def describes(self, path: str) -> bool:
        """Return whether a program that the plugin runs is described here."""
        return path in self.programs or (self.given is not None and path in self.given.programs)

    def lacking(self, path: str) -> "Setting":
        """Return what is around it without a description of one program."""
        given = self.given
        if given is not None:
            programs = {name: each for name, each in given.programs.items() if name != path}
            given = attrs.evolve(given, programs=programs)
        own = {name: each for name, each in self.programs.items() if name != path}
        return attrs.evolve(self, programs=own, given=given)

    def scenario(
        self,
        timeline: Iterable[Mapping[str, Any]],
        scripts: Mapping[str, str],
        *,
        model: str = "guide",
        options: Mapping[str, Any] = {},
    ) -> Scenario:
        """Return the scenario of a cluster in which *timeline* happens."""
        name = self.plugin_type.partition("/")[2]
        text = json.dumps(
            {
                "model": model,
                "options": dict(options),
                "slurm_conf": {
                    "BurstBufferType": self.plugin_type,
                    "AccountingStorageTRES": f"bb/{name}",
                    "MinJobAge": "10",
                },
                "nodes": [{"name": f"n[1-{NODES}]", "cpus": 4}],
                "partitions": [
                    {"name": "debug", "nodes": f"n[1-{NODES}]", "default": True, "max_time": "1h"}
                ],
                "users": {"alice": 1001, "bob": 1002, "op": {"uid": 1003, "admin": "operator"}},
                "burst_buffer_conf": _CONF,
                "burst_buffer": {
                    "pools": {"wlm_pool": {"capacity": "100GiB", "granularity": "1GiB"}},
                    "bandwidth": "2GiB",
                    "data": {"/lus/in": "10GiB", "/lus/out": "10GiB"},
                },
                "programs": {
                    "./app": {"runs": "30s"},
                    "./long": {"runs": "30m"},
                    "./stays": {"runs": "forever"},
                    "./fails": {"runs": "5s", "exit": 3},
                    **self.programs,
                },
                "files": {**FILES, **scripts},
                "timeline": list(timeline),
            }
        )
        made = read_scenario(text, file="a trial of `plugins check`")
        return made if self.given is None else _beside(made, self.given)


def _beside(made: Scenario, given: Scenario) -> Scenario:
    """Return a scenario with what surrounds the plugin in an author's own."""
    return attrs.evolve(
        made,
        programs={**made.programs, **given.programs},
        files={**given.files, **made.files},
        burst_buffer_conf=given.burst_buffer_conf or made.burst_buffer_conf,
        burst_buffer=given.burst_buffer,
    )


@attrs.define(kw_only=True)
class Life:
    """A run of a cluster that is not judged yet."""

    result: RunResult
    events: list[Event]
    lines: frozenset[tuple[str, int]]
    """Which lines of the plugin ran."""

    def ways(self, job: int) -> list[str]:
        """Return the states that a job went through."""
        return [
            str(event.args["to"])
            for event in self.events
            if event.name == "job_state" and event.job == job and isinstance(event.args, dict)
        ]


def run_cluster(
    kind: type[Any],
    scenario: Scenario,
    *,
    name: str,
    files: frozenset[str],
    until_s: float,
    observer: Any = None,
    body: Callable[[World], Awaitable[None]] | None = None,
) -> Life:
    """Run a cluster in which *kind* is the plugin of its type; what goes wrong is not blamed.

    Raises:
        PluginError: The plugin cannot be used at all.
    """
    registry = Registry(installed=False)
    registry.put(kind, name, instead=True)
    world = World(
        scenario,
        registry=registry,
        watchdog_s=_WATCHDOG_S,
        until_us=round(until_s * SECOND),
    )
    events: list[Event] = []
    world.trace.add_sink(events.append)
    world.site.hooks.observers = [] if observer is None else [observer]
    if body is not None:
        beside(world, body)
    with LinesRun(files) as noted:
        result = world.run()
    return Life(result=result, events=events, lines=frozenset(noted.lines))


__all__ = ["FILES", "NODES", "Life", "Setting", "run_cluster"]
