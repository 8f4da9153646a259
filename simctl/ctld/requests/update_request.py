"""Which parts of a pending job's request scontrol changes, and what stands against it."""

from typing import Any, Final

import attrs
import msgspec

from simctl.ctld.authority import asker_of
from simctl.ctld.choose import reserved
from simctl.ctld.choose.request import admission_refusal, named_partitions
from simctl.ctld.controller import Controller
from simctl.ctld.jobs.admission import read_anew
from simctl.ctld.state.records import JobRecord
from simctl.wire.errno import (
    ESLURM_DISABLED,
    ESLURM_INVALID_PARTITION_NAME,
    ESLURM_JOB_NOT_PENDING,
    ESLURM_NOT_SUPPORTED,
    SLURM_SUCCESS,
)
from simctl.wire.ids import NO_VAL
from simctl.wire.messages import RequestUpdateJob
from simctl.wire.records import JobDesc
from simctl.wire.states import JobBase

_NUMBERS: Final = ("num_tasks", "cpus_per_task", "min_cpus_per_node")
_OTHERS: Final = (
    "account",
    "excluded",
    "exclusive",
    "gres",
    "nodes",
    "reservation",
    "std_out",
    "work_dir",
)


def changes_of(message: RequestUpdateJob) -> dict[str, Any]:
    """Return the fields of a job description that an update sets. Pure."""
    changes = {name: getattr(message, name) for name in _NUMBERS}
    changes = {name: value for name, value in changes.items() if value != NO_VAL}
    if message.partition is not None:
        # As a submission has it.
        changes["partition"] = ",".join(named_partitions(message.partition))
    if message.min_nodes != NO_VAL:
        most = message.min_nodes if message.max_nodes == NO_VAL else message.max_nodes
        changes |= {"min_nodes": message.min_nodes, "max_nodes": most}
    if message.memory_per_node_mb != NO_VAL:
        changes |= {"memory_per_node_mb": message.memory_per_node_mb, "memory_per_cpu_mb": NO_VAL}
    elif message.memory_per_cpu_mb != NO_VAL:
        changes |= {"memory_per_cpu_mb": message.memory_per_cpu_mb, "memory_per_node_mb": NO_VAL}
    if message.exclusive is not None:
        changes["oversubscribe"] = not message.exclusive
    others = {name: getattr(message, name) for name in _OTHERS}
    return changes | {name: value for name, value in others.items() if value is not None}


_SHARED: Final = tuple(
    field.name
    for field in attrs.fields(JobDesc)
    if field.name in RequestUpdateJob.__struct_fields__ and field.name != "job_id"
)
"""What an update names as a submission does."""


def as_submission(message: RequestUpdateJob, desc: JobDesc) -> JobDesc:
    """Return an update as a submission in which what stays is NO_VAL or empty. Pure."""
    given = {name: getattr(message, name) for name in _SHARED}
    given = {name: value for name, value in given.items() if value is not None}
    return JobDesc(
        **{"name": "", **given}, uid=desc.uid, gid=desc.gid, user=desc.user, qos="", submit_host=""
    )


def changed(
    message: RequestUpdateJob, desc: JobDesc, names: tuple[str, ...]
) -> tuple[RequestUpdateJob, tuple[str, ...]]:
    """Return an update with what plugins have set, and the names that no update has. Pure."""
    ours = {name: getattr(desc, name) for name in names if name in _SHARED}
    strange = tuple(name for name in names if name not in _SHARED)
    return msgspec.structs.replace(message, **ours), strange


def refusal(ctld: Controller, job: JobRecord, message: RequestUpdateJob, uid: int) -> int:
    """Return why a user may not change a job's request so, or 0. Pure."""
    changes = changes_of(message)
    if not changes:
        return SLURM_SUCCESS
    if message.partition is not None and (
        not (names := named_partitions(message.partition))
        or any(name not in ctld.partitions for name in names)
    ):
        return ESLURM_INVALID_PARTITION_NAME
    if job.state.base is not JobBase.PENDING:
        if "min_nodes" in changes:
            return ESLURM_NOT_SUPPORTED
        return ESLURM_DISABLED if "partition" in changes else ESLURM_JOB_NOT_PENDING
    desc = attrs.evolve(job.desc, **changes)
    denied = _admission_refusal(ctld, job, desc, uid)
    if denied or changes.keys() <= {"partition", "min_nodes", "max_nodes"}:
        # What does not fit waits for a day on which it does.
        return denied
    return reserved.refusal(ctld, desc) or read_anew(ctld, desc).error_code


def _admission_refusal(ctld: Controller, job: JobRecord, desc: JobDesc, uid: int) -> int:
    """Return why a partition does not take a job that a user moves there, or 0.

    All partitions that the job would wait for have to take it, unlike those of a submission. A
    partition that it waits for already is not asked again unless the job's account changes.
    """
    asker = asker_of(ctld, uid, desc)
    known = job.desc.partition.split(",") if desc.account == job.desc.account else ()
    names = [name for name in desc.partition.split(",") if name not in known]
    refusals = (admission_refusal(ctld.partitions[name], asker) for name in names)
    return next(filter(None, refusals), SLURM_SUCCESS)
