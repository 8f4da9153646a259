"""The clusters that burst buffer plugins are tried in, and what is kept of a run of one."""

import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any, Final

import attrs

from simctl.kernel.events import Event
from simctl.kernel.procs import RunsAs
from simctl.plugins.registry import Registry
from simctl.scenario.load import read_scenario
from simctl.testing.plugin_check.locks import LockWatch, Unlocked
from simctl.wire.ids import SECOND
from simctl.world import RunResult, World

NODES: Final = 3
_CONF: Final = {
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
    files: Mapping[str, str] = {}
    conf: Mapping[str, Any] = {}
    """Keys of burst_buffer.conf."""

    appliance: Mapping[str, Any] = {}

    def scenario(
        self,
        timeline: Iterable[Mapping[str, Any]],
        scripts: Mapping[str, str],
        *,
        model: str = "guide",
        options: Mapping[str, Any] = {},
    ) -> str:
        """Return the scenario of a cluster in which *timeline* happens."""
        name = self.plugin_type.partition("/")[2]
        return json.dumps(
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
                "burst_buffer_conf": {**_CONF, **self.conf},
                "burst_buffer": {
                    "pools": {"wlm_pool": {"capacity": "100GiB", "granularity": "1GiB"}},
                    "bandwidth": "2GiB",
                    "data": {"/lus/in": "10GiB", "/lus/out": "10GiB"},
                    **self.appliance,
                },
                "programs": {
                    "./app": {"runs": "30s"},
                    "./stays": {"runs": "forever"},
                    "./fails": {"runs": "5s", "exit": 3},
                    **self.programs,
                },
                "files": {**FILES, **self.files, **scripts},
                "timeline": list(timeline),
            }
        )


@attrs.define(kw_only=True)
class Run:
    """One run of a cluster: how it ended, all that happened, and the plugin's lines that ran."""

    world: World
    result: RunResult
    events: list[Event]
    lines: frozenset[tuple[str, int]]
    unlocked: list[Unlocked]
    """What the plugin's threads changed without slurmctld's lock."""


def run_cluster(
    kind: type[Any],
    text: str,
    *,
    name: str,
    watchdog_s: float = 2.0,
    until_s: float | None = None,
    observer: Any = None,
    files: frozenset[str] = frozenset(),
    locks: frozenset[str] = frozenset(),
    body: Callable[[World], Awaitable[None]] | None = None,
) -> Run:
    """Run a cluster in which *kind* is the plugin of its type.

    Args:
        kind: The plugin.
        text: The scenario.
        name: What the trial is called.
        watchdog_s: How long a call may run on the wall clock.
        until_s: When the run ends at the latest, in virtual time.
        observer: Who looks at the plugin's calls from close by.
        files: The plugin's source; which lines of it run is noted.
        locks: The plugin's source, where its threads are to be followed.
        body: What is done beside the timeline, a second after the start.

    Raises:
        PluginError: The plugin cannot be used at all.
    """
    registry = Registry(installed=False)
    registry.put(kind, name, instead=True)
    world = World(
        read_scenario(text, file=f"trial: {name}"),
        registry=registry,
        watchdog_s=watchdog_s,
        until_us=None if until_s is None else round(until_s * SECOND),
    )
    events: list[Event] = []
    world.trace.add_sink(events.append)
    world.site.hooks.observer = observer
    if body is not None:
        _start(world, body)
    lines: set[tuple[str, int]] = set()
    follows = LockWatch(world, locks)
    with follows if locks else nullcontext(), _Traced(files, lines):
        result = world.run()
    return Run(
        world=world,
        result=result,
        events=events,
        lines=frozenset(lines),
        unlocked=follows.found,
    )


def _start(world: World, body: Callable[[World], Awaitable[None]]) -> None:
    process = world.procs.add(
        world.ctld.process.host, ppid=1, daemon="simctl", role="driver", uid=0, runs_as=RunsAs.ROOT
    )

    async def run() -> None:
        await body(world)
        process.exit(0)

    process.start(run, "simctl plugins check", due_us=SECOND)


class _Traced:
    """Notes which lines of some files run."""

    def __init__(self, files: frozenset[str], lines: set[tuple[str, int]]) -> None:
        self._files = files
        self._lines = lines
        self._before: Any = None

    def __enter__(self) -> None:
        if self._files:
            self._before = sys.gettrace()
            sys.settrace(self._called)

    def __exit__(self, *exc: object) -> None:
        if self._files:
            sys.settrace(self._before)

    def _called(self, frame: Any, event: str, _: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            self._lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


__all__ = ["FILES", "NODES", "Run", "Setting", "run_cluster"]
