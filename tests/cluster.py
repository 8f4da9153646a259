"""Run a scenario written in a test, and look at its trace."""

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.checking import tell
from simctl.plugin import SwitchPlugin
from simctl.scenario.load import read_scenario
from simctl.world import RunResult, World

TWO_NODES = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001, bob: 1002}
"""

STEP = 'timeline: [{at: 0s, as: alice, run: "srun -N2 -n4 --ntasks-per-node=2 sleep 10"}]\n'
BATCH = 'timeline: [{at: 0s, as: alice, run: sbatch --wrap "sleep 10"}]\n'


SIMCTL = (sys.executable, "-m", "simctl")
"""The command, by the interpreter of the tests."""


@attrs.frozen
class Ran:
    """A run: its world, its result, its events."""

    world: World
    result: RunResult
    events: list[Event]

    def all(self, name: str = "*", **fields: Any) -> list[Event]:
        """Return the events of a name (``*`` for any) whose fields are these; enter lines not."""
        return [
            event
            for event in self.events
            if name in ("*", event.name)
            and event.phase != "enter"
            and all(_field(event, key) == value for key, value in fields.items())
        ]

    def one(self, name: str, **fields: Any) -> Event:
        """Return the only event there is of these."""
        found = self.all(name, **fields)
        assert len(found) == 1, f"{len(found)} of {name} {fields}"
        return found[0]

    def names(self, **fields: Any) -> list[str]:
        """Return the names of the plugin calls with these fields, in order."""
        return [event.name for event in self.all(kind="plugin", **fields)]

    def first(self, name: str, **fields: Any) -> int:
        """Return the seq of the first of these."""
        return self.all(name, **fields)[0].seq

    def last(self, name: str, **fields: Any) -> int:
        """Return the seq of the last of these."""
        return self.all(name, **fields)[-1].seq

    def stderr(self, place: int = 0) -> str:
        """Return what a command of the timeline wrote to standard error."""
        return self.result.commands[place].stderr

    def job(self, job_id: int = 1) -> tuple[str, str, str]:
        """Return a job's state, exit code and reason at the end."""
        row = next(row for row in self.result.rows if row.job_id == job_id)
        return row.state, row.exit_code, row.reason

    def drained(self) -> list[str]:
        """Return the nodes that were drained."""
        return [
            event.args["node"]
            for event in self.all("node_state")
            if event.args is not UNSET and "DRAIN" in event.args["to"]
        ]


def _field(event: Event, key: str) -> Any:
    if not key.startswith("args_"):
        return getattr(event, key)
    return event.args.get(key[5:]) if event.args is not UNSET else UNSET


def run(
    text: str,
    *,
    cluster: str = TWO_NODES,
    model: str = "guide",
    schedule: str = "fifo",
    seed: int = 0,
    folder: Path | None = None,
    orderings: bool = True,
) -> Ran:
    """Run a scenario; plugins are looked for in *folder*. No built-in ordering may break.

    Without *orderings* they are not checked: for tests in which a deliberately wrong thing runs.
    """
    file = str(folder / "s.yaml") if folder is not None else "s.yaml"
    scenario = read_scenario(cluster + text, file=file)
    world = World(scenario, model=model, schedule=schedule, seed=seed, orderings=orderings)
    return watched(world)


def watched(world: World) -> Ran:
    """Run a world, keep its events, and assert that no built-in ordering is broken."""
    world.trace.add_sink(world.events.append)
    result = world.run()
    assert_ordered(result)
    if not result.stalled:
        assert_placed(world.events)
    return Ran(world, result, world.events)


def assert_ordered(result: RunResult) -> None:
    """Assert that no built-in ordering is broken."""
    told = ["\n".join(tell(breach)) for breach in result.orderings.broken]
    assert not told, "\n".join(told)


_FORKED = ("manager", "session", "task")
"""Roles of processes that may call a plugin before they do anything else."""


def assert_placed(events: Iterable[Event]) -> None:
    """Assert that whoever calls a plugin is known to do other things, in that role, as that user.

    What is forked is known as whoever forked it, until it becomes somebody else.
    """
    calling: dict[tuple[object, ...], str] = {}
    known: set[tuple[object, ...]] = set()
    for event in events:
        who = event.node, event.pid, event.role
        if event.kind == "plugin":
            calling.setdefault((*who, event.uid, event.euid), event.name)
        else:
            known.add((*who, event.uid, event.euid))
        if event.name == "fork" and event.args is not UNSET:
            child = event.node, event.args["child"]
            known |= {(*child, role, event.uid, event.euid) for role in _FORKED}
    strange = {who: name for who, name in calling.items() if who not in known}
    assert not strange, f"called by nobody that is known: {strange}"


def fault(pattern: str, timeline: str = STEP, kind: str = "fail", **more: Any) -> str:
    """Return a timeline with a fault in force from the start."""
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    return timeline.replace("[{", f'[{{at: 0s, fault: {{{kind}: "{pattern}"{extra}}}}}, {{', 1)


def with_plugin(folder: Path, *methods: Callable[..., Any], setup: str = "") -> str:
    """Write a switch plugin that has *methods* into *folder*; return the keys that name it."""
    body = "".join(
        textwrap.indent(textwrap.dedent(inspect.getsource(method)), "    ") for method in methods
    )
    (folder / "mine.py").write_text(
        "import threading\n"
        "from simctl.plugin import *\n"
        "from simctl.plugin import process, sleep, now\n"
        "class Mine(SwitchPlugin):\n"
        "    plugin_type = 'switch/mine'\n"
        "    plugin_name = 'a plugin of a test'\n"
        f"    def __init__(self):\n        self.calls = []\n        {setup or 'pass'}\n"
        + body
        + "\n"
    )
    return 'plugins: ["./mine.py:Mine"]\nslurm_conf: {SwitchType: switch/mine}\n'


def began(script: Event) -> int:
    """Return when a script began, in virtual microseconds."""
    return script.t0_us if isinstance(script.t0_us, int) else script.time_us


def took(script: Event) -> int:
    """Return how long a script ran, in virtual microseconds."""
    return script.time_us - began(script)


def entered(script: Event) -> int:
    """Return the seq of a script's enter line."""
    assert isinstance(script.enter, int)
    return script.enter


def pids(events: Iterable[Event]) -> set[int]:
    """Return the pids that events name."""
    return {int(str(event.pid)) for event in events}


__all__ = [
    "BATCH",
    "SIMCTL",
    "STEP",
    "TWO_NODES",
    "Ran",
    "SwitchPlugin",
    "assert_ordered",
    "assert_placed",
    "began",
    "entered",
    "fault",
    "pids",
    "run",
    "took",
    "watched",
    "with_plugin",
]
