"""Read whom a fault strikes: a node, a daemon, a task."""

import re
from typing import Final

from simctl.kernel.pattern import near
from simctl.scenario.faults import (
    ControllerTarget,
    NodeTarget,
    SlurmdTarget,
    StepdTarget,
    Target,
    TaskTarget,
)
from simctl.scenario.positions import Reading, Value
from simctl.scenario.shapes import Scalar
from simctl.wire.hosts import CONTROLLER
from simctl.wire.ids import SLURM_BATCH_SCRIPT

_STEP: Final = r"([0-9]{1,10})\.([0-9]{1,10}|batch)"
_SLURMD: Final = re.compile(r"slurmd@(\S+)")
_STEPD: Final = re.compile(rf"stepd +{_STEP}@(\S+)")
_TASK: Final = re.compile(rf"task +{_STEP}\.([0-9]{{1,10}})")
_SHAPED: Final = re.compile(r"(slurmd|stepd|task)\b")
_EXAMPLES: Final = {
    NodeTarget: "a node such as n1",
    ControllerTarget: CONTROLLER,
    SlurmdTarget: "slurmd@n1",
    StepdTarget: "stepd 1.0@n1",
    TaskTarget: "task 1.0.3",
}


def targets(*kinds: type[Target]) -> Scalar[Target]:
    """Return the shape of a target of some kinds."""
    *most, last = [_EXAMPLES[kind] for kind in kinds]
    expected = f"{', '.join(most)} or {last}" if most else last

    def convert(value: Value, reading: Reading) -> Target:
        target = _read(value.scalar.strip(), reading, expected)
        if isinstance(target, ControllerTarget) and target.__class__ not in kinds:
            raise ValueError(f"that of {CONTROLLER} is known but not simulated yet")
        if not isinstance(target, kinds):
            raise ValueError(f"expected {expected}, got {target}")  # noqa: TRY004 - told as others
        return target

    return Scalar(expected=expected, convert=convert, json={"type": "string", "minLength": 1})


def _read(text: str, reading: Reading, expected: str) -> Target:
    if text in reading.nodes:
        return NodeTarget(text)
    if text == CONTROLLER:
        return ControllerTarget()
    if reading.backup and text == reading.backup:
        return ControllerTarget(text)
    if found := _SLURMD.fullmatch(text):
        return SlurmdTarget(_node(found[1], reading))
    if found := _STEPD.fullmatch(text):
        return StepdTarget(int(found[1]), _step(found[2]), _node(found[3], reading))
    if found := _TASK.fullmatch(text):
        return TaskTarget(int(found[1]), _step(found[2]), int(found[3]))
    if _SHAPED.match(text):
        raise ValueError(f"expected {expected}, got {text!r}")
    return NodeTarget(_node(text, reading))


def _step(text: str) -> int:
    return SLURM_BATCH_SCRIPT if text == "batch" else int(text)


def _node(name: str, reading: Reading) -> str:
    if name in reading.nodes or "nodes" in reading.unsure:
        return name
    if "[" in name or "," in name:
        raise ValueError(f"{name!r} is several nodes; write a fault for each")
    raise ValueError(f"no node {name!r}{near(name, list(reading.nodes))}")
