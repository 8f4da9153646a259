"""What a submission comes to: partitions, demand and limits, or why it is refused. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from simctl.ctld.state.records import NodeRecord, PartRecord
from simctl.wire.bitmap import mask_of
from simctl.wire.conf.slurm_conf import SlurmConf
from simctl.wire.errno import (
    ESLURM_ACCESS_DENIED,
    ESLURM_BAD_TASK_COUNT,
    ESLURM_INVALID_ACCOUNT,
    ESLURM_INVALID_FEATURE,
    ESLURM_INVALID_LICENSES,
    ESLURM_INVALID_NODE_COUNT,
    ESLURM_INVALID_NODE_NAME,
    ESLURM_INVALID_PARTITION_NAME,
    ESLURM_INVALID_TIME_LIMIT,
    ESLURM_PARTITION_NOT_AVAIL,
    ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE,
    SLURM_SUCCESS,
)
from simctl.wire.features import Constraint, ConstraintError
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.records import JobDesc
from simctl.wire.resources import ALL_MEMORY, Demand, tasks_in
from simctl.wire.states import Reason

TOO_FEW_CPUS = "CPU count per node can not be satisfied"
ANY_NODE = Demand(min_nodes=1, max_nodes=INFINITE, num_tasks=1)
TOO_LITTLE_MEMORY = "Memory specification can not be satisfied"
TOO_LITTLE_DISK = "Temporary disk specification can not be satisfied"
"""Nodes have none that jobs may ask for."""


@attrs.frozen(kw_only=True)
class Request:
    """What a job description comes to: limits filled in, or the error that refuses it.

    `reason` says why the job can only wait, as far as the request itself tells; `text` explains a
    refusal to the user.
    """

    error_code: int = SLURM_SUCCESS
    text: str = ""
    parts: tuple[PartRecord, ...] = ()
    demand: Demand = ANY_NODE
    time_limit_min: int = INFINITE
    reason: str = Reason.NONE


@attrs.frozen
class Asker:
    """Who submits, as partitions see it."""

    account: str
    privileged: bool = False
    """Whether it is root or SlurmUser."""


def read_request(
    desc: JobDesc,
    asker: Asker,
    parts: Mapping[str, PartRecord],
    nodes: Mapping[str, NodeRecord],
    conf: SlurmConf,
    *,
    inside: bool = False,
) -> Request:
    """Check a job description against the cluster and fill in what it leaves open.

    A job that is *inside* already need not be taken in by its partitions.
    """
    asked = _partitions(desc, parts)
    if asked is None:
        unknown = next((name for name in named_partitions(desc.partition) if name not in parts), "")
        told = f"invalid partition specified: {unknown}" if unknown else ""
        return Request(error_code=ESLURM_INVALID_PARTITION_NAME, text=told)
    refusals = [0 if inside else admission_refusal(part, asker) for part in asked]
    open_to = [part for part, refused in zip(asked, refusals, strict=True) if not refused]
    if not open_to:
        return Request(error_code=refusals[0])
    if any(name not in nodes for name in (*desc.nodes, *desc.excluded)):
        return Request(error_code=ESLURM_INVALID_NODE_NAME)
    error_code = _unknown(desc, nodes)
    if error_code:
        return Request(error_code=error_code)
    required = mask_of(nodes[name].index for name in desc.nodes)
    lacking = _lacking(desc, nodes)
    excluded = mask_of(nodes[name].index for name in desc.excluded) | lacking
    there = [part for part in open_to if not required & ~part.mask]
    if not there or required & excluded:
        return Request(error_code=ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE)
    demand = _demand(desc, there[0], conf, required, excluded)
    if demand.max_nodes < demand.min_nodes:
        return Request(error_code=ESLURM_INVALID_NODE_COUNT)
    if demand.overcommit and demand.num_tasks > conf.max_tasks_per_node * len(there[0].nodes):
        return Request(error_code=ESLURM_BAD_TASK_COUNT)
    if desc.tmp_disk_mb:
        return Request(error_code=ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, text=TOO_LITTLE_DISK)
    able = [node for part in there for node in part.nodes if not lacking >> node.index & 1]
    text = _too_much(demand, able) if able else ""
    if text is not None:
        return Request(error_code=ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, text=text)
    return _with_limits(desc, demand, there, enforce=conf.enforce_part_limits)


def _unknown(desc: JobDesc, nodes: Mapping[str, NodeRecord]) -> int:
    """Return why features or licenses cannot be had; no license is ever configured."""
    if desc.licenses:
        return ESLURM_INVALID_LICENSES
    try:
        names = Constraint(desc.features).names if desc.features else ()
    except ConstraintError:
        return ESLURM_INVALID_FEATURE
    if not names:
        return SLURM_SUCCESS
    known = {name for node in nodes.values() for name in node.features}
    return ESLURM_INVALID_FEATURE if set(names) - known else SLURM_SUCCESS


def _lacking(desc: JobDesc, nodes: Mapping[str, NodeRecord]) -> int:
    """Return the nodes whose features are not what a job asks for."""
    if not desc.features:
        return 0
    constraint = Constraint(desc.features)
    return mask_of(node.index for node in nodes.values() if not constraint.admits(node.features))


def _partitions(desc: JobDesc, parts: Mapping[str, PartRecord]) -> Sequence[PartRecord] | None:
    """Return the partitions that are asked for, or the default one; None if one is not there."""
    if not desc.partition:
        return [part for part in parts.values() if part.default] or None
    names = named_partitions(desc.partition)
    if not names or any(name not in parts for name in names):
        return None
    return [parts[name] for name in names]


def named_partitions(text: str) -> list[str]:
    """Return the partitions that a text names, each once."""
    return list(dict.fromkeys(filter(None, text.split(","))))


def admission_refusal(part: PartRecord, asker: Asker) -> int:
    """Return why a partition takes no jobs, or none of this user and account, or 0. Pure."""
    if not part.state.takes_jobs:
        return ESLURM_PARTITION_NOT_AVAIL
    if part.root_only and not asker.privileged:
        return ESLURM_ACCESS_DENIED
    if part.allow_accounts:
        return SLURM_SUCCESS if asker.account in part.allow_accounts else ESLURM_INVALID_ACCOUNT
    return ESLURM_INVALID_ACCOUNT if asker.account in part.deny_accounts else SLURM_SUCCESS


def _demand(
    desc: JobDesc, part: PartRecord, conf: SlurmConf, required: int, excluded: int
) -> Demand:
    min_nodes = max(1 if desc.min_nodes == NO_VAL else desc.min_nodes, required.bit_count())
    per_node = 0 if desc.ntasks_per_node == NO_VAL else desc.ntasks_per_node
    memory_per_node_mb, memory_per_cpu_mb = _memory(desc, part, conf)
    return Demand(
        min_nodes=min_nodes,
        # A job without nodes is one with a burst buffer alone; the submission sees to that.
        max_nodes=desc.max_nodes if desc.max_nodes != NO_VAL and desc.min_nodes else INFINITE,
        num_tasks=min_nodes * max(1, per_node) if desc.num_tasks == NO_VAL else desc.num_tasks,
        cpus_per_task=1 if desc.cpus_per_task == NO_VAL else desc.cpus_per_task,
        ntasks_per_node=per_node,
        cpus_per_node=0 if desc.min_cpus_per_node == NO_VAL else desc.min_cpus_per_node,
        memory_per_node_mb=memory_per_node_mb,
        memory_per_cpu_mb=memory_per_cpu_mb,
        uses_memory=conf.shares_memory or not conf.select_type_parameters,
        gres=desc.gres,
        whole=desc.exclusive or conf.select_type == "select/linear",
        overcommit=desc.overcommit,
        required=required,
        excluded=excluded,
    )


def _memory(desc: JobDesc, part: PartRecord, conf: SlurmConf) -> tuple[int, int]:
    """Return the memory of a job for each node and for each cpu, of which one is 0.

    Where slurm.conf makes memory something to be shared out, a job that asks for none and has no
    default takes all that its nodes have, as one that asks for 0 does.
    """
    if desc.memory_per_node_mb != NO_VAL:
        return desc.memory_per_node_mb or ALL_MEMORY, 0
    if desc.memory_per_cpu_mb != NO_VAL:
        return (ALL_MEMORY, 0) if not desc.memory_per_cpu_mb else (0, desc.memory_per_cpu_mb)
    for per_cpu, per_node in (
        (part.def_mem_per_cpu_mb, part.def_mem_per_node_mb),
        (conf.def_mem_per_cpu_mb, conf.def_mem_per_node_mb),
    ):
        if per_cpu or per_node:
            return (0, per_cpu) if per_cpu else (per_node, 0)
    return (ALL_MEMORY if conf.shares_memory else 0), 0


def _too_much(demand: Demand, nodes: Sequence[NodeRecord]) -> str | None:
    """Return what to say of a job that no node could take a task of; None if one could."""
    each = attrs.evolve(demand, ntasks_per_node=0)
    at_once = demand.at_once
    if any(tasks_in(each, node.total) >= at_once for node in nodes):
        return None
    wide = attrs.evolve(each, memory_per_node_mb=0, memory_per_cpu_mb=0, gres={})
    if not any(tasks_in(wide, node.total) >= at_once for node in nodes):
        return TOO_FEW_CPUS
    free = attrs.evolve(each, gres={})
    if not any(tasks_in(free, node.total) >= at_once for node in nodes):
        return TOO_LITTLE_MEMORY
    return ""


def _with_limits(
    desc: JobDesc, demand: Demand, there: Sequence[PartRecord], *, enforce: str
) -> Request:
    """Keep the partitions whose limits the job respects; if there is none, it can only wait.

    EnforcePartLimits may refuse one that exceeds the limits of ANY, or of ALL that it names.
    """
    reasons = [_lasting_reason(desc, demand, part) for part in there]
    kept = [part for part, reason in zip(there, reasons, strict=True) if reason == Reason.NONE]
    exceeded = [reason for reason in reasons if reason != Reason.NONE]
    if exceeded and (enforce == "ALL" or (enforce == "ANY" and not kept)):
        return Request(error_code=_EXCEEDED[exceeded[0]])
    parts = tuple(kept or there)
    limit = desc.time_limit_min
    if limit == NO_VAL:
        limit = min(parts[0].default_time_min, parts[0].max_time_min)
    if desc.time_min_min > limit:
        return Request(error_code=ESLURM_INVALID_TIME_LIMIT)
    return Request(
        parts=parts,
        demand=demand,
        time_limit_min=limit,
        reason=Reason.NONE if kept else reasons[0],
    )


_EXCEEDED: Final[Mapping[str, int]] = {
    Reason.PARTITION_TIME_LIMIT: ESLURM_INVALID_TIME_LIMIT,
    Reason.PARTITION_NODE_LIMIT: ESLURM_INVALID_NODE_COUNT,
}


def _lasting_reason(desc: JobDesc, demand: Demand, part: PartRecord) -> str:
    """Return why a job could never start in a partition as it is, or None's text."""
    if desc.time_limit_min != NO_VAL and desc.time_limit_min > part.max_time_min:
        return Reason.PARTITION_TIME_LIMIT
    if demand.min_nodes > min(len(part.nodes), part.max_nodes):
        return Reason.PARTITION_NODE_LIMIT
    if demand.max_nodes < part.min_nodes:
        return Reason.PARTITION_NODE_LIMIT
    return Reason.NONE
