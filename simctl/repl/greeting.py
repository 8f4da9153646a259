"""What a person is told as a session begins: the cluster, the files, and what to type first."""

import textwrap
from collections.abc import Iterator
from typing import Final

from simctl.scenario.model import Scenario
from simctl.wire.hostlist import compress

_WIDTH: Final = 80
_MOST: Final = 8


def greeting(scenario: Scenario, user: str) -> Iterator[str]:
    """Yield the lines of a greeting."""
    nodes = compress(node.name for node in scenario.nodes)
    parts = ", ".join(part.name for part in scenario.partitions)
    count = len(scenario.nodes)
    head = f"simctl: a cluster of {count} node{'s' * (count > 1)} ({nodes}), partition {parts}, "
    head += f"model {scenario.model}."
    if scenario.description and scenario.timeline:
        head += f" {scenario.description.splitlines()[0]}"
    yield from _folded(head)
    files = [name for name in scenario.files if not name.startswith("/")]
    if files:
        more = " ..." if files[_MOST:] else ""
        yield from _folded(f"Files of {user}: {', '.join(files[:_MOST])}{more} (`cat FILE`, `ls`).")
    scripts = [name for name in files if name.endswith(".sh")]
    if scenario.timeline:
        first = "`continue` runs the scenario, `step` goes on by an event"
    elif scripts:
        first = f"`sbatch {scripts[0]}` submits a job, `step` goes on by an event"
    else:
        first = "`srun sleep 5` runs a step, `step` goes on by an event"
    yield from _folded(f"{first}; `help` lists what there is to type, `quit` leaves.")


def _folded(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False)
