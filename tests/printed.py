"""What real Slurm's commands printed, and how what ours print is held against it.

``tests/printed/SECTION/NAME.txt`` is a recorded command: its line, who ran it and its exit status,
then standard output and standard error. A test rebuilds the situation as a scenario and compares.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import attrs

from simctl.world import CommandResult

FOLDER = Path(__file__).parent / "printed"

_HEAD = re.compile(r"# user=(\w+) cwd=(\S+) rc=(\w+)\n--- stdout ---\n")

TIMES = {
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d": "TIME",
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\b": "TIME",
}
"""What is never compared: moments, as the commands write them."""


@attrs.frozen
class Printed:
    """A recorded command."""

    name: str
    line: str
    user: str
    exit: int
    stdout: str
    stderr: str


def read(name: str) -> Printed:
    """Return the recording ``SECTION/NAME``."""
    text = (FOLDER / f"{name}.txt").read_text()
    line, _, rest = text.removeprefix("$ ").partition("\n")
    head = _HEAD.match(rest)
    assert head is not None, f"{name}: not a recording"
    stdout, _, rest = rest[head.end() :].partition("--- stderr ---\n")
    stderr = rest.rpartition("--- end ---")[0]
    return Printed(name, line, head[1], int(head[3]), stdout, stderr)


def blurred(text: str, blur: Mapping[str, str]) -> str:
    """Return a text in which what may differ is replaced: regular expression, replacement."""
    for pattern, instead in {**blur, **TIMES}.items():
        text = re.sub(pattern, instead, text)
    return text


def assert_as_printed(
    name: str, result: CommandResult, blur: Mapping[str, str] | None = None
) -> None:
    """Hold a command's output and exit status against those of a recording."""
    recorded = read(name)
    wanted = (recorded.stdout, recorded.stderr)
    found = (result.stdout, result.stderr)
    for mine, others in zip(found, wanted, strict=True):
        assert blurred(mine, blur or {}) == blurred(others, blur or {})
    assert result.exit == recorded.exit


CLUSTER = """\
model: modern
start_time: 2026-11-20T23:14:07Z
slurm_conf:
  ClusterName: golden
  SelectType: select/cons_tres
  SelectTypeParameters: CR_Core_Memory
  DefMemPerCPU: 100
  GresTypes: gpu
  KillWait: 5
  ReturnToService: 2
  SlurmdTimeout: 60
  SchedulerParameters: bf_interval=2
nodes:
  - {name: "n[1-3]", cpus: 4, memory_mb: 4000}
  - {name: n4, cpus: 4, memory_mb: 4000, gres: "gpu:2"}
partitions:
  - {name: debug, nodes: "n[1-4]", default: true, max_time: "1:00:00", default_time: "10:00"}
  - {name: short, nodes: "n[1-2]", max_time: "5:00", max_nodes: 1, priority_tier: 10}
  - {name: long, nodes: "n[3-4]"}
users:
  alice: {uid: 2001, gid: 2001, account: proj1}
  bob: {uid: 2002, gid: 2002, account: proj2}
"""
"""The cluster of the recordings, as far as it is simulated."""
