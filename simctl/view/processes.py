"""The processes of a run as rows, and its events in causal order, for pictures made here.

The page works the same out for itself, in assets/model.js: there a reader filters and folds.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event

NOBODY: Final = 0
"""Stands for the process of what no process does: faults, lines of the log."""

_HOSTS_FIRST: Final = ("simctl", "controller", "login")

BOOKKEEPING: Final = re.compile(
    r"(switch_p|slurm_ckpt|bb_p)_(alloc|free|pack|unpack|copy|state_pack)(_.*)?"
    r"|switch_p_no_frag|switch_p_libstate_(save|restore)|init|fini"
)
"""Calls that only make, pack, copy and free what other calls use; assets/model.js has the same."""


@attrs.define(kw_only=True)
class Process:
    """A process of a run."""

    pid: int
    host: str
    first: Event
    model: str
    program: str = ""
    script: str = ""
    step: str = ""
    task: int | None = None
    parent: int | None = None
    depth: int = 0

    @property
    def name(self) -> str:
        """Return what it is called, without its pid."""
        first = self.first
        if self.pid == NOBODY:
            return "faults and log"
        if first.role == "task":
            if self.step.endswith(".batch"):
                return f"batch script of job {first.job}"
            return f"task {self.task} of {self.step} {self.program}".strip()
        if first.daemon == "slurmstepd":
            part = f" {first.role}" if self.model == "guide" else ""
            return f"slurmstepd{part} {self.step}"
        if self.script:
            return f"script {self.script}"
        return f"{first.daemon} {self.step}" if first.daemon == "srun" else str(first.daemon)


def pid_of(event: Event) -> int:
    """Return the process of an event."""
    return NOBODY if event.pid is UNSET else event.pid


def host_of(event: Event) -> str:
    """Return the host of an event, as it is called in pictures."""
    if event.daemon is UNSET and event.pid is UNSET:
        return "simctl"
    return event.node if isinstance(event.node, str) else "controller"


def processes_of(events: Iterable[Event], model: str) -> list[Process]:
    """Return the processes of a run, each below the one that forked it, host by host."""
    found: dict[int, Process] = {}
    parents: dict[int, int] = {}
    for event in events:
        pid = pid_of(event)
        args = event.args if isinstance(event.args, dict) else {}
        process = found.get(pid)
        if process is None:
            process = Process(pid=pid, host=host_of(event), first=event, model=model)
            found[pid] = process
        if not process.step and event.step is not UNSET:
            process.step = event.step
        if event.kind == "script" and event.role == "script":
            process.script = process.script or event.name
        if process.task is None and event.task is not UNSET:
            process.task = event.task
        if event.kind == "process" and event.name == "exec":
            process.program = str(args.get("path", ""))
        if event.kind == "process" and event.name == "fork" and isinstance(args.get("child"), int):
            parents[args["child"]] = pid
    children: dict[int | None, list[Process]] = {}
    for process in found.values():
        parent = found.get(parents.get(process.pid, -1))
        if parent is not None and parent.host == process.host and parent is not process:
            process.parent = parent.pid
        children.setdefault(process.parent, []).append(process)
    rows: list[Process] = []
    # Not by recursion: a chain of forks may be long.
    todo = sorted(children.get(None, ()), key=lambda each: _place(each.host), reverse=True)
    while todo:
        process = todo.pop()
        rows.append(process)
        below = children.get(process.pid, ())
        for child in below:
            child.depth = process.depth + 1
        todo += reversed(below)
    return rows


def _place(host: str) -> tuple[object, ...]:
    if host in _HOSTS_FIRST:
        return (_HOSTS_FIRST.index(host),)
    parts = re.split(r"(\d+)", host)
    return (
        len(_HOSTS_FIRST),
        *((int(each), each) if each.isdecimal() else (0, each) for each in parts),
    )


def needs_of(event: Event) -> tuple[int, ...]:
    """Return the events without which one would not have come, by their numbers."""
    found = event.needs if event.needs is not UNSET else ()
    if not found and event.cause is not UNSET:
        found = (event.cause,)
    return found if event.enter is UNSET else (*found, event.enter)


def columns_of(events: Sequence[Event], shown: set[int]) -> dict[int, int]:
    """Return the column of each shown event: right of all that it needs, moment by moment.

    *events* are all there are, so that what is not shown still hands on what it needs.
    """
    columns: dict[int, int] = {}
    after: dict[int, int] = {}
    last: dict[int, int] = {}
    moment_us, start, end = -1, 0, 0
    for event in events:
        value = max((after.get(seq, -1) for seq in needs_of(event)), default=-1)
        if event.seq in shown:
            if event.time_us != moment_us:
                moment_us, start, last = event.time_us, end, {}
            value = max(start, value + 1, last.get(pid_of(event), -1) + 1)
            columns[event.seq] = last[pid_of(event)] = value
            end = max(end, value + 1)
        after[event.seq] = value
    return columns


def user_names(header: Mapping[str, object]) -> dict[int, str]:
    """Return the names of users by their uids."""
    users = header.get("users", {})
    return {uid: name for name, uid in reversed(users.items())} if isinstance(users, dict) else {}
