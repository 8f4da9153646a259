"""A job as a plugin in slurmctld sees it: slurmctld's own record, live, by the guide's names."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from simctl.ctld.controller import Controller
from simctl.ctld.state import queue
from simctl.ctld.state.records import JobRecord
from simctl.plugin import JobRecord as JobPtr
from simctl.plugins.hooks import check_environment
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.states import JOB_CHANGES, JobBase, JobFlag


class LiveJob(JobPtr):
    """The record of a job, to be read and in part to be written; one a job."""

    __slots__ = ("_ctld", "_job")

    def __init__(self, ctld: Controller, job: JobRecord) -> None:
        self._ctld = ctld
        self._job = job


def live(ctld: Controller, job: JobRecord) -> LiveJob:
    """Return what plugins are handed of a job: the same object each time."""
    if job.view is None:
        job.view_as(LiveJob(ctld, job))
    view: LiveJob = job.view
    return view


def _clock(ctld: Controller, when_us: int) -> int:
    return ctld.site.start_time_s + when_us // SECOND if when_us >= 0 else 0


def _start_time(ctld: Controller, job: JobRecord) -> int:
    """Return when a job started, or is expected to: as backfill has planned it, if it has."""
    expected_us = job.planned_us if job.planned_us >= 0 else job.expected_us
    return _clock(ctld, job.start_us if job.start_us >= 0 else expected_us)


def _end_time(ctld: Controller, job: JobRecord) -> int:
    """Return when a job ended, or while it runs when its time limit ends it (0: never)."""
    runs = job.state.base is JobBase.RUNNING
    end_us = job.limit_us if runs else job.end_us
    return _clock(ctld, end_us) if end_us != INFINITE else 0


def stands_for_many(job: JobRecord) -> bool:
    """Return whether a record stands for tasks of an array that have yet to be split off."""
    array = job.array
    return array is not None and array.rest is job and len(array.waiting) > 1


def _max_nodes(_: Controller, job: JobRecord) -> int:
    return NO_VAL if job.demand.max_nodes == INFINITE else job.demand.max_nodes


_READ: Final[Mapping[str, Callable[[Controller, JobRecord], Any]]] = {
    "job_id": lambda _, job: job.job_id,
    "user_id": lambda _, job: job.desc.uid,
    "group_id": lambda _, job: job.desc.gid,
    "name": lambda _, job: job.name,
    "account": lambda _, job: job.desc.account,
    "partition": lambda _, job: job.part.name,
    "job_state": lambda _, job: str(job.state),
    "state_reason": lambda _, job: str(queue.reason_to_wait(job)),
    "state_desc": lambda _, job: job.state_desc,
    "priority": lambda _, job: job.priority,
    "nodes": lambda _, job: job.node_list if job.nodes else "",
    "min_nodes": lambda _, job: 0 if job.without_nodes else job.demand.min_nodes,
    "max_nodes": _max_nodes,
    "num_tasks": lambda _, job: job.demand.num_tasks,
    "time_limit_min": lambda _, job: job.time_limit_min,
    "submit_time": lambda ctld, job: _clock(ctld, job.submit_us),
    "start_time": _start_time,
    "end_time": _end_time,
    "begin_time": lambda ctld, job: _clock(ctld, job.begin_us),
    "restart_cnt": lambda _, job: job.restarts,
    "work_dir": lambda _, job: job.desc.work_dir,
    "script": lambda _, job: job.desc.script,
    "burst_buffer": lambda _, job: job.burst_buffer,
    "burst_buffer_state": lambda _, job: job.bb_state,
    "stage_out": lambda _, job: job.state.staging_out,
    "system_comment": lambda _, job: job.system_comment,
    "admin_comment": lambda _, job: job.admin_comment,
    "env_sup": lambda _, job: job.env_sup,
    "batch": lambda _, job: job.batch,
    "array_job_id": lambda _, job: job.array.job_id if job.array is not None else 0,
    "array_task_id": lambda _, job: job.array_task if job.array_task >= 0 else NO_VAL,
    "array_master": lambda _, job: stands_for_many(job),
    "exit_code": lambda _, job: job.exit_code,
    "check_job": lambda _, job: job.check_job.value,
    "ckpt_dir": lambda _, job: job.ckpt_dir,
    "ckpt_interval": lambda _, job: job.desc.ckpt_interval_min,
    "restart_dir": lambda _, job: job.restart_dir,
}


def _set_priority(ctld: Controller, job: JobRecord, value: int) -> None:
    """Hold a job, or give it another place in its queues, once no pass goes along them."""
    if job.queued and value and value != job.priority and ctld.bb is not None:
        ctld.bb.moved.append(job)
        ctld.request_pass()
    job.plugin_prioritizes(value)
    _told(ctld, job)


def _told(ctld: Controller, job: JobRecord) -> None:
    """Put a job aside that its plugin holds; what the plugin says is why.

    A job that is about to start has no place in the queue: what becomes of it follows from `begin`.
    """
    if job.state.base is not JobBase.PENDING or _is_claiming(ctld, job):
        return
    if not job.priority:
        job.plugin_holds()
    ctld.moments.told_by_plugin(ctld, job)


def _is_claiming(ctld: Controller, job: JobRecord) -> bool:
    return ctld.bb is not None and ctld.bb.claiming is job


def _set_reason(ctld: Controller, job: JobRecord, value: str) -> None:
    job.plugin_gives_reason(value)
    _told(ctld, job)


def _set_desc(ctld: Controller, job: JobRecord, value: str) -> None:
    job.plugin_describes(value)
    _told(ctld, job)


def _set_begin(ctld: Controller, job: JobRecord, value: int) -> None:
    job.begin_after(ctld.moment_us(value))
    if job.state.base is JobBase.PENDING and not _is_claiming(ctld, job):
        ctld.moments.told_by_plugin(ctld, job)


def _set_bb_state(ctld: Controller, job: JobRecord, value: str) -> None:
    before = job.bb_state
    if value == before:
        return
    job.buffer_is(value)
    ctld.changes += 1
    ctld.site.trace.state(
        ctld.process,
        "bb_state",
        before=before or None,
        after=value,
        reason=job.state_desc or str(job.reason),
        job=job.job_id,
    )


def _set_stage_out(ctld: Controller, job: JobRecord, value: bool) -> None:
    """Set the flag, or take it off once the job's nodes have let go of it."""
    state = job.state
    if value == state.staging_out:
        return
    if value:
        if state.having(JobFlag.STAGE_OUT) in JOB_CHANGES.get(state, ()):
            job.stage_out_goes_on()
            ctld.set_job(job, state.having(JobFlag.STAGE_OUT))
    elif state.completing:
        job.end_stage_out_early()
    else:
        ctld.set_job(job, state.lacking(JobFlag.STAGE_OUT))


_WRITE: Final[Mapping[str, Callable[[Controller, JobRecord, Any], None]]] = {
    "priority": _set_priority,
    "state_reason": _set_reason,
    "state_desc": _set_desc,
    "system_comment": lambda _, job, value: job.plugin_comments(value),
    "admin_comment": lambda _, job, value: job.plugin_comments(value, admin=True),
    "begin_time": _set_begin,
    "burst_buffer": lambda _, job, value: job.ask_buffer(value),
    "burst_buffer_state": _set_bb_state,
    "stage_out": _set_stage_out,
    "env_sup": lambda _, job, value: job.plugin_adds(value),
    "restart_dir": lambda _, job, value: job.restart_from(value),
}


_LATEST_S: Final = 253402300799
"""The last second of the year 9999: no clock here shows a later one."""

_NUMBERS: Final = {"priority": INFINITE, "begin_time": _LATEST_S}
"""The greatest number that a field takes."""


def _checked(name: str, value: Any) -> Any:
    """Return what a plugin sets, if it is of the kind that the field holds."""
    if name == "stage_out":
        return bool(value)
    if name in _NUMBERS:
        if not isinstance(value, int) or not 0 <= value <= _NUMBERS[name]:
            raise ValueError(f"{name} of a job is a whole number from 0 to {_NUMBERS[name]}")
        return int(value)
    if name == "env_sup":
        check_environment(value)
        return value
    if not isinstance(value, str):
        raise TypeError(f"{name} of a job is a text, not {type(value).__name__}")
    value.encode()
    return value


def _property(name: str) -> Any:
    read, write = _READ[name], _WRITE.get(name)

    def get(view: LiveJob) -> Any:
        return read(view._ctld, view._job)

    def put(view: LiveJob, value: Any) -> None:
        if write is None:
            raise AttributeError(
                f"{name} of a job is slurmctld's own; a plugin may set {', '.join(_WRITE)}"
            )
        write(view._ctld, view._job, _checked(name, value))

    return property(get, put)


for _field in attrs.fields(JobPtr):
    setattr(LiveJob, _field.name, _property(_field.name))

__all__ = ["LiveJob", "live"]
