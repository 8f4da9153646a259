"""Pictures of a slurmctld: its tables, records and timers, to hold one against the next.

A run whose slurmctld dies at a moment, and is started again in that moment, takes two pictures: of
the one that died, and of the next as soon as it has read its state files. Nothing has happened in
between, so that whatever differs was forgotten or made up.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any

import attrs
import pytest

from simctl import world  # noqa: F401 - the parts of slurmctld are imported by way of it
from simctl.ctld.checkpoints import checkpoint_times
from simctl.ctld.daemon import Slurmctld
from simctl.ctld.recovery import restart
from simctl.ctld.state import notices, recurring
from simctl.ctld.state.notices import (
    BeginDue,
    CheckpointsDue,
    GraceDue,
    LimitDue,
    PurgeDue,
    ReservationDue,
)
from simctl.ctld.state.records import JobArray, JobRecord, NodeRecord, PartRecord, StepRecord
from simctl.ctld.steps.step_limits import StepLimitDue
from simctl.faults.injector import FaultInjector
from simctl.kernel.fabric import Mailbox
from simctl.kernel.turns import Timer
from simctl.wire.states import JobBase, JobFlag, NodeBase, NodeFlag
from tests.cluster import Ran, run

Picture = dict[str, Any]
"""What a slurmctld has, by a path such as ``jobs/1/steps/0/limit_us``."""

Damage = Callable[[pytest.MonkeyPatch], None]
"""What makes slurmctld forget something at a start."""

TIMERS = (
    *(BeginDue, CheckpointsDue, GraceDue, LimitDue, PurgeDue, ReservationDue, StepLimitDue),
    *(notices.DeadlineDue, notices.WarningDue),
)
"""What slurmctld has to do at a moment that its records decide, and no start of its own."""

NOT_KEPT: Mapping[str, str] = {
    "jobs/*/check_job": "a handle of the process, unpacked after the records",
    "jobs/*/view": "what plugins see is made when they ask",
    "jobs/*/awaited_ends": "causes in the trace are those of one slurmctld",
    "jobs/*/left": "causes in the trace are those of one slurmctld",
    "jobs/*/prologs_us": "when *this* slurmctld told nodes of prologs",
    "jobs/*/steps/*/check_job": "a handle of the process, unpacked after the records",
    "jobs/*/steps/*/switch_job": "a handle of the process, unpacked after the records",
    "jobs/*/steps/*/view": "what plugins see is made when they ask",
    "jobs/*/steps/*/reports": "causes in the trace are those of one slurmctld",
    "jobs/*/steps/*/limit_timer": "compared among the timers, where a suspended job has none",
    "jobs/*/epilog_running": "EpilogSlurmctld is a child of slurmctld, and gone with it",
    "jobs/*/queue_number": "numbers are given anew; the queues are compared",
    "last_queue_number": "numbers are given anew; the queues are compared",
    "nodes/*/last_response_us": "who has not been heard of by a new slurmctld is not silent yet",
    "partitions/*/examined_to": "no pass of this slurmctld has looked at anybody",
}
"""Fields that a new slurmctld has otherwise, and why."""

_PACKED_LATE = ("packed_job", "packed_record")
"""What model modern has plugins pack for a save, and guide as soon as it has changed."""

_TABLES = (
    *("jobs", "arrays", "nodes", "partitions", "reservations", "running", "completing"),
    *("suspended", "preempted", "periodic", "dependents", "singletons", "awaited"),
    *("outlasting", "last_runs", "leftovers", "next_job_id", "last_place", "last_queue_number"),
    *("last_priority", "last_reservation", "usable_nodes", "idle_nodes", "serviceable_nodes"),
)

OF_ONE_LIFE = frozenset(
    """site process mailbox disk books before subjects ended_rows take_row runs_ended nodes_by_name
    boundary_us backfill_is_due planned_nodes periodic_timer relieves at_end unheard began_us
    last_pass_us last_full_us pass_is_due late_pass ping_timer pinging_until_us looks
    nodes_asked_us unsent bb periodic_us changes polls lock_holder saves encoded moments _conf
    _clean _follows
    _relieved_by _handlers job_submit""".split()
)
"""What of a slurmctld is of that process: its own pace, what it has sent, what it is made of."""


def picture(ctld: Slurmctld) -> Picture:
    """Return what a slurmctld has, in plain values."""
    unsaid = set(vars(ctld)) - set(_TABLES) - OF_ONE_LIFE
    assert not unsaid, f"say in tests/restored.py of which kind these are: {sorted(unsaid)}"
    found: Picture = {}
    for name in _TABLES:
        table = getattr(ctld, name)
        if name == "nodes":
            table = {node.name: node for node in table}
        if name in ("jobs", "arrays", "nodes", "partitions", "reservations"):
            for key, record in table.items():
                _record(found, f"{name}/{key}", record)
            found[f"{name} there are"] = list(table)
        elif name == "leftovers":
            found[name] = {key: list(runs) for key, runs in sorted(table.items()) if runs}
        elif name == "awaited":
            boxes = {key: [_plain(each.sender) for each in value] for key, value in table.items()}
            found[name] = {key: value for key, value in sorted(boxes.items()) if value}
        elif name in ("dependents", "singletons"):
            asked = [key for key in table if _is_asked_for(ctld, key)]
            found[name] = {
                key: [_plain(job) for job in table[key] if not job.state.finished] for key in asked
            }
        elif name == "periodic":
            found[name] = _plain({key: each for key, each in table.items() if _goes_on(each)})
        else:
            found[name] = _plain(table)
    found["timers"] = sorted(timers(ctld))
    return found


def _is_asked_for(ctld: Slurmctld, key: Any) -> bool:
    """Return whether somebody waits for a job, array or name that may still change."""
    if not isinstance(key, tuple):
        return key in ctld.jobs or key in ctld.arrays
    asking = [job for job in ctld.jobs.values() if (job.desc.uid, job.name) == key]
    needs = [need for job in asking if job.dependency for need in job.dependency.needs]
    return any(need.kind == "singleton" for need in needs)


def _goes_on(record: JobRecord | StepRecord) -> bool:
    job = record if isinstance(record, JobRecord) else record.job
    return job.state.base in (JobBase.RUNNING, JobBase.SUSPENDED) and not job.state.completing


def _record(found: Picture, path: str, record: Any) -> None:
    for field in attrs.fields(type(record)):
        value = getattr(record, field.name)
        if isinstance(record, PartRecord) and field.name in ("queue", "reserved_queue"):
            value = [
                (rank, job.job_id)
                for rank, number, job in sorted(value, key=_first_two)
                if job.queued and job.queue_number == number and job.priority == -rank
            ]
        if isinstance(record, JobRecord) and field.name == "steps":
            found[f"{path}/steps there are"] = list(value)
            for key, step in value.items():
                _record(found, f"{path}/steps/{key}", step)
        elif isinstance(record, NodeRecord) and field.name == "jobs":
            found[f"{path}/jobs"] = sorted(value)
        elif isinstance(record, StepRecord) and field.name == "job":
            found[f"{path}/job"] = value.job_id
        else:
            found[f"{path}/{field.name}"] = _plain(value)


def _first_two(entry: tuple[int, int, Any]) -> tuple[int, int]:
    return entry[:2]


def _plain(value: Any) -> Any:
    """Return a value whose records are named, not gone into, and whose sets are sorted."""
    match value:
        case JobRecord():
            return "job", value.job_id, value.array_task, str(value.state)
        case StepRecord():
            return "step", value.job.job_id, value.step_id
        case JobArray():
            return "array", value.job_id
        case NodeRecord() | PartRecord():
            return value.name
        case Mailbox():
            return (value.process.pid, value.name) if value.open else None
        case Timer():
            return "set" if value.live else None
        case Enum():
            return value
        case dict():
            return {
                key if isinstance(key, tuple) else _plain(key): _plain(value[key]) for key in value
            }
        case set() | frozenset():
            return sorted(_plain(each) for each in value)
        case list() | tuple() | deque() | bytearray():
            return [_plain(each) for each in value]
        case _ if attrs.has(type(value)):
            fields = attrs.fields(type(value))
            return {each.name: _plain(getattr(value, each.name)) for each in fields}
        case _:
            return value


def timers(ctld: Slurmctld) -> Iterator[tuple[int, str, str]]:
    """Yield what of :data:`TIMERS` a slurmctld has to do, and when: each once."""
    kernel = ctld.site.kernel
    told = set()
    for due_us, _, _, first, second in kernel.queued(1 << 20):
        notices: list[Any] = []
        if isinstance(second, tuple) and isinstance(second[-1], Timer) and second[-1].live:
            if getattr(second[1], "__self__", None) is ctld.mailbox:
                notices = [first.message]
        elif first is kernel and callable(second):
            # A reservation's timer keeps nothing alive, and has its notice in its closure.
            inside = [cell.cell_contents for cell in second.__closure__ or ()]
            if ctld in inside:
                notices = [ReservationDue(each) for each in inside if hasattr(each, "admits")]
        for notice in notices:
            if isinstance(notice, TIMERS) and _counts(ctld, notice):
                at_us = _in_effect(ctld, notice, due_us)
                told.add((at_us, type(notice).__name__, _whose(notice)))
    yield from told


def _counts(ctld: Slurmctld, notice: Any) -> bool:
    """Return whether a timer will find what it was set for."""
    if isinstance(notice, GraceDue | LimitDue):
        return ctld.jobs.get(notice.job.job_id) is notice.job and (
            notice.job.restart_cnt == notice.run
        )
    if isinstance(notice, StepLimitDue):
        step = notice.step
        alive = step.job.steps.get(step.step_id) is step and not step.timed_out
        return alive and step.job.state.base is not JobBase.SUSPENDED
    if isinstance(notice, ReservationDue):
        return ctld.reservations.get(notice.record.name) is notice.record
    return not isinstance(notice, CheckpointsDue) or bool(_checkpointed(ctld))


def _checkpointed(ctld: Slurmctld) -> list[JobRecord | StepRecord]:
    """Return what runs, and is checkpointed every so often."""
    found = [each for each in ctld.periodic.values() if _goes_on(each)]
    jobs = [each if isinstance(each, JobRecord) else each.job for each in found]
    return [
        each for each, job in zip(found, jobs, strict=True) if job.state.base is JobBase.RUNNING
    ]


def _in_effect(ctld: Slurmctld, notice: Any, due_us: int) -> int:
    """Return when a timer leads to something: checkpoints may wait for what is over since."""
    if not isinstance(notice, CheckpointsDue):
        return due_us
    coming = min(checkpoint_times.due_us(each) for each in _checkpointed(ctld))
    return max(due_us, recurring.check_at_or_after(coming))


def _whose(notice: Any) -> str:
    for name in ("job", "step", "record"):
        if (found := getattr(notice, name, None)) is not None:
            return str(found.name if name == "record" else _plain(found)[1:3])
    return ""


def expected(old: Picture, model: str) -> Picture:
    """Return what the next slurmctld should have that is not told that the last one had stopped.

    It may have died before it told nodes of a job's end, and tells all of them again. In model
    modern a node without a job is UNKNOWN until it registers.
    """
    new = copy.deepcopy(old)
    for path in old:
        job = path.removesuffix("/completing_nodes")
        if path == job or not old[f"{job}/state"]["flags"] & JobFlag.COMPLETING:
            continue
        up = [name for name in old[f"{job}/nodes"] if old[f"nodes/{name}/base"] != NodeBase.DOWN]
        for name in sorted({*up} - {*old[path]}):
            new[f"nodes/{name}/completing"] += 1
            new[f"nodes/{name}/flags"] |= NodeFlag.COMPLETING
        new[path] = sorted(up)
    for name in old["nodes there are"]:
        node = f"nodes/{name}"
        alone = model == "modern" and not old[f"{node}/jobs"]
        if alone and old[f"{node}/base"] >= NodeBase.IDLE:
            new[f"{node}/base"] = NodeBase.UNKNOWN
        if new[f"{node}/base"] == NodeBase.UNKNOWN or new[f"{node}/flags"]:
            bit = 1 << old[f"{node}/index"]
            new["usable_nodes"] &= ~bit
            new["idle_nodes"] &= ~bit
    return new


def differences(old: Picture, new: Picture, model: str) -> dict[str, tuple[Any, Any]]:
    """Return what differs that should not, by its path: what should be, and what is."""
    found = {}
    old = expected(old, model)
    for path in sorted({*old, *new}):
        was, now = old.get(path, "nothing"), new.get(path, "nothing")
        if model == "modern" and path.endswith(_PACKED_LATE):
            continue
        if was != now and _rule_of(path) not in NOT_KEPT:
            found[path] = was, now
    return found


def _rule_of(path: str) -> str:
    """Return a path with ``*`` for the names and ids in it."""
    words = path.split("/")
    return "/".join("*" if place % 2 else word for place, word in enumerate(words))


@contextmanager
def pictures(damage: Damage | None = None) -> Iterator[list[tuple[Picture, Picture]]]:
    """Take a picture of each slurmctld that is crashed, and of the one after it.

    A *damage* is in force while that makes its tables of what it has read.
    """
    taken: list[tuple[Picture, Picture]] = []
    died: list[Picture] = []
    with pytest.MonkeyPatch.context() as patch:
        crash, rebuild = FaultInjector.crash_controller, restart.rebuild

        def crash_controller(self: FaultInjector, *, saved: bool = False) -> None:
            died.append(picture(self._daemons.ctld))
            crash(self, saved=saved)

        def rebuild_and_look(ctld: Slurmctld) -> None:
            with pytest.MonkeyPatch.context() as damaged:
                if damage is not None:
                    damage(damaged)
                rebuild(ctld)
            taken.append((died[-1], picture(ctld)))

        patch.setattr(FaultInjector, "crash_controller", crash_controller)
        patch.setattr(restart, "rebuild", rebuild_and_look)
        yield taken


def crashed_at(
    text: str, moment_us: int, damage: Damage | None = None, **how: Any
) -> tuple[Ran, list[tuple[Picture, Picture]]]:
    """Run a scenario whose slurmctld dies at a moment and is started in it; return both pictures.

    The timeline comes last in the text.
    """
    saved = f"{{at: {moment_us}us, fault: {{crash: slurmctld, saved: true}}}}"
    again = f"{{at: {moment_us}us, fault: {{start: slurmctld}}}}"
    with pictures(damage) as taken:
        ran = run(f"{text}  - {saved}\n  - {again}\n", **how)
    return ran, taken


def moments(ran: Ran) -> list[int]:
    """Return the moments just after those at which slurmctld did anything."""
    return sorted({each.time_us + 1 for each in ran.events if each.daemon == "slurmctld"})


__all__ = ["NOT_KEPT", "Picture", "crashed_at", "differences", "moments", "picture", "pictures"]
