"""The picture in README: one step on one node, in its three kinds of processes.

`make docs` writes it.
"""

import sys
from pathlib import Path
from typing import Final

import simctl
from simctl.scenario.load import load_scenario
from simctl.view.reading import EVERYTHING, seen_of
from simctl.view.svg import to_svg
from simctl.world import World

_SCENARIO: Final = Path(simctl.__file__).parent / "scenarios" / "two_nodes.yaml"
_ROLES: Final = ("manager", "session", "task")


def picture() -> bytes:
    """Return the picture."""
    world = World(load_scenario(_SCENARIO))
    world.trace.add_sink(world.events.append)
    world.run()
    seen = seen_of(world.header(), world.events, EVERYTHING, "README")
    shown = [
        event
        for event in seen.events
        if event.step == "1.0"
        and event.node == "n1"
        and event.role in _ROLES
        and event.kind in ("plugin", "process")
    ]
    return to_svg(seen, shown, "A step on one node: who forks whom, and calls what as whom")


if __name__ == "__main__":
    sys.stdout.buffer.write(picture())
