"""How jobs come in: the checks of a request, the record, the first try to start."""

from typing import TYPE_CHECKING

import attrs

from simctl.ctld import arrays, eligible, launch, limits, schedule
from simctl.ctld.completion import finish
from simctl.ctld.records import JobRecord, NodeRecord, PartRecord, cpus_needed
from simctl.ctld.select import could_hold, tasks_on
from simctl.kernel.fabric import Envelope
from simctl.plugins.hooks import NULL, About, failed
from simctl.plugins.points.checkpoint import slurm_ckpt_alloc_job, slurm_ckpt_free_job
from simctl.wire.errno import (
    EAGAIN,
    ESLURM_DUPLICATE_JOB_ID,
    ESLURM_FRAGMENTATION,
    ESLURM_INVALID_JOB_ID,
    ESLURM_INVALID_NICE,
    ESLURM_INVALID_NODE_COUNT,
    ESLURM_INVALID_NODE_NAME,
    ESLURM_INVALID_PARTITION_NAME,
    ESLURM_JOB_HELD,
    ESLURM_JOB_PENDING,
    ESLURM_NODES_BUSY,
    ESLURM_NOT_TOP_PRIORITY,
    ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE,
    ESLURM_USER_ID_MISSING,
    SLURM_ERROR,
    SLURM_SUCCESS,
    SlurmError,
)
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.messages import (
    RequestJobReady,
    RequestResourceAllocation,
    RequestSubmitBatchJob,
    ResponseResourceAllocation,
    ResponseSubmitBatchJob,
)
from simctl.wire.records import JobDesc
from simctl.wire.states import FAILED, PENDING, JobBase, Reason

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld


@attrs.frozen(kw_only=True)
class Request:
    """What a job description comes to: limits filled in, or the error that refuses it.

    `reason` says why the job can only wait, as far as the request itself tells.
    """

    error_code: int = SLURM_SUCCESS
    part: PartRecord | None = None
    min_nodes: int = 1
    max_nodes: int = INFINITE
    num_tasks: int = 1
    time_limit_min: int = INFINITE
    reason: str = Reason.NONE


def read_request(
    desc: JobDesc, parts: dict[str, PartRecord], nodes: dict[str, NodeRecord]
) -> Request:
    """Check a job description against the cluster and fill in what it leaves open. Pure."""
    part = _partition(desc, parts)
    if part is None:
        return Request(error_code=ESLURM_INVALID_PARTITION_NAME)
    if any(name not in nodes for name in (*desc.nodes, *desc.excluded)):
        return Request(error_code=ESLURM_INVALID_NODE_NAME)
    if any(nodes[name] not in part.nodes for name in desc.nodes) or set(desc.nodes) & set(
        desc.excluded
    ):
        return Request(error_code=ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE)
    min_nodes = max(1 if desc.min_nodes == NO_VAL else desc.min_nodes, len(set(desc.nodes)))
    max_nodes = INFINITE if desc.max_nodes == NO_VAL else desc.max_nodes
    if max_nodes < min_nodes:
        return Request(error_code=ESLURM_INVALID_NODE_COUNT)
    num_tasks = _num_tasks(desc, min_nodes)
    widest = part.widest_cpus
    if not tasks_on(widest, cpus_needed(desc), NO_VAL) or (
        desc.ntasks_per_node != NO_VAL and desc.ntasks_per_node * cpus_needed(desc) > widest
    ):
        return Request(error_code=ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE)
    limit = part.default_time_min if desc.time_limit_min == NO_VAL else desc.time_limit_min
    request = Request(
        part=part,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        num_tasks=num_tasks,
        time_limit_min=limit,
    )
    return attrs.evolve(request, reason=_lasting_reason(request, desc, part))


def _partition(desc: JobDesc, parts: dict[str, PartRecord]) -> PartRecord | None:
    if desc.partition:
        return parts.get(desc.partition)
    return next((part for part in parts.values() if part.default), None)


def _num_tasks(desc: JobDesc, min_nodes: int) -> int:
    if desc.num_tasks != NO_VAL:
        return desc.num_tasks
    return min_nodes * (1 if desc.ntasks_per_node == NO_VAL else desc.ntasks_per_node)


def _lasting_reason(request: Request, desc: JobDesc, part: PartRecord) -> str:
    """Return why a job could never start in its partition as it is, or None's text."""
    if request.time_limit_min > part.max_time_min and desc.time_limit_min != NO_VAL:
        return Reason.PARTITION_TIME_LIMIT
    if request.min_nodes > min(len(part.nodes), part.max_nodes):
        return Reason.PARTITION_NODE_LIMIT
    if request.max_nodes < part.min_nodes:
        return Reason.PARTITION_NODE_LIMIT
    return Reason.NONE


async def submit_batch_job(
    ctld: "Slurmctld", envelope: Envelope, message: RequestSubmitBatchJob
) -> None:
    """Take a batch job in; a scheduler pass starts it."""
    job, rc = await _create(ctld, envelope, message.job_desc, batch=True)
    if job is not None:
        await _settle(ctld, job)
        rc = SLURM_SUCCESS if job.priority else ESLURM_JOB_HELD
    ctld.send(
        envelope.sender,
        ResponseSubmitBatchJob(job_id=job.job_id if job is not None else 0, error_code=rc),
    )


async def _settle(ctld: "Slurmctld", job: JobRecord) -> None:
    """Put a new job where it belongs; tasks that wait each for another are split off at once."""
    if not eligible.waits_for_tasks(job):
        eligible.settle(ctld, job)
        return
    assert job.array is not None
    for task in tuple(job.array.waiting):
        eligible.settle(ctld, await arrays.split_off(ctld, job, task))


async def resource_allocation(
    ctld: "Slurmctld", envelope: Envelope, message: RequestResourceAllocation
) -> None:
    """Take in a job whose srun waits for it, and try to start it at once."""
    desc = message.job_desc
    job, rc = await _create(ctld, envelope, desc, batch=False)
    if job is None:
        _reply(ctld, envelope, 0, rc)
        return
    rc = await _try_now(ctld, job)
    if rc == SLURM_SUCCESS:
        return
    if desc.immediate:
        job.reason = Reason.BAD_CONSTRAINTS
        job.end_us = job.start_us = ctld.now_us
        ctld.set_job(job, FAILED)
        finish(ctld, job)
        _reply(ctld, envelope, job.job_id, rc)
        return
    eligible.settle(ctld, job, asks=False)
    _reply(ctld, envelope, job.job_id, ESLURM_NODES_BUSY)


def _reply(ctld: "Slurmctld", envelope: Envelope, job_id: int, rc: int) -> None:
    ctld.send(
        envelope.sender, ResponseResourceAllocation(job_id=job_id, error_code=rc, node_list="")
    )


async def _try_now(ctld: "Slurmctld", job: JobRecord) -> int:
    """Start a job inside its own request if it is first in line and its nodes are idle."""
    if await schedule.held_by_fragmentation(ctld):
        return ESLURM_FRAGMENTATION
    if job.lasting_reason:
        return ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE
    if job.part.waiting:
        return ESLURM_NOT_TOP_PRIORITY
    nodes = schedule.find_nodes(ctld, job)
    if not nodes:
        job.reason = Reason.RESOURCES
        return ESLURM_NODES_BUSY
    launch.start(ctld, job, nodes)
    return SLURM_SUCCESS


async def _create(
    ctld: "Slurmctld", envelope: Envelope, desc: JobDesc, *, batch: bool
) -> tuple[JobRecord | None, int]:
    """Make the record of a new job: checks, id, checkpoint record, PENDING."""
    sender = envelope.sender
    uid = sender.process.uid if sender is not None else desc.uid
    if uid not in (desc.uid, 0, ctld.process.uid):
        return None, ESLURM_USER_ID_MISSING
    if desc.nice < 0 and not ctld.is_operator(uid):
        return None, ESLURM_INVALID_NICE
    request = read_request(desc, ctld.partitions, ctld.nodes_by_name)
    if request.part is None:
        return None, request.error_code
    limit = _time_limit(request, desc)
    no_room = EAGAIN if len(ctld.jobs) >= ctld.site.conf.max_job_count else SLURM_SUCCESS
    rc = no_room or limits.refusal(desc, limit, ctld.site.start_time_s + ctld.now_us // SECOND)
    if rc:
        return None, rc
    try:
        array = arrays.read_array(desc.array)
    except SlurmError as error:
        return None, error.errno
    job_id = _next_id(ctld, desc)
    if not job_id:
        return None, ESLURM_DUPLICATE_JOB_ID
    if array is not None:
        arrays.name(ctld, array, job_id)
    about = About(job=job_id)
    check_job = await ctld.site.hooks.call(slurm_ckpt_alloc_job, ctld.process, about=about)
    if failed(check_job):
        nothing = NULL
        await ctld.site.hooks.call(slurm_ckpt_free_job, ctld.process, nothing, about=about)
        return None, SLURM_ERROR
    try:
        dependency = eligible.parse_dependency(desc.dependency, ctld, job_id)
    except SlurmError as error:
        await ctld.site.hooks.call(slurm_ckpt_free_job, ctld.process, check_job, about=about)
        return None, error.errno
    job = JobRecord(
        job_id=job_id,
        desc=attrs.evolve(desc, partition=request.part.name),
        part=request.part,
        state=PENDING,
        about=about,
        check_job=check_job,
        submit_us=ctld.now_us,
        batch=batch,
        client=None if batch else sender,
        requeue=bool(ctld.site.conf.job_requeue if desc.requeue == NO_VAL else desc.requeue),
        time_limit_min=limit,
        min_nodes=request.min_nodes,
        max_nodes=min(request.max_nodes, request.part.max_nodes),
        num_tasks=request.num_tasks,
        name=desc.name,
        priority=_priority(ctld, desc, uid),
        nice=desc.nice,
        dependency=dependency,
        array=array,
        held_by_user=True,
        begin_us=max(-1, (desc.begin_s - ctld.site.start_time_s) * SECOND) if desc.begin_s else -1,
    )
    if request.reason != Reason.NONE:
        job.lasting_reason = job.reason = request.reason
    elif not could_hold(job):
        job.lasting_reason = job.reason = Reason.PARTITION_CONFIG
    ctld.jobs[job_id] = job
    limits.watch_deadline(ctld, job)
    arrays.register(ctld, job)
    eligible.note_name(ctld, job)
    eligible.register(ctld, job)
    if dependency is not None or not job.priority or job.begin_us > ctld.now_us:
        job.reason = eligible.obstacle(ctld, job, eligible.verdict(ctld, job)) or job.reason
    ctld.site.trace.state(
        ctld.process,
        "job_state",
        before=None,
        after=str(PENDING),
        reason=job.reason,
        job=job_id,
    )
    return job, SLURM_SUCCESS


def _time_limit(request: Request, desc: JobDesc) -> int:
    """Return a new job's limit in minutes; one that was not asked for keeps to the partition's."""
    if request.part is None or desc.time_limit_min != NO_VAL:
        return request.time_limit_min
    return min(request.time_limit_min, request.part.max_time_min)


def _priority(ctld: "Slurmctld", desc: JobDesc, uid: int) -> int:
    """Return the priority of a new job: lower than that of every job before, less its nice.

    Only operators may ask for one; 0, which holds the job, may be asked for by anybody.
    """
    if desc.priority == 0:
        return 0
    if desc.priority != NO_VAL and ctld.is_operator(uid):
        return desc.priority
    return ctld.next_priority(desc.nice)


def _next_id(ctld: "Slurmctld", desc: JobDesc) -> int:
    """Return the id of a new job: the one asked for, or the next free one; 0 if it is taken."""
    if desc.job_id != NO_VAL:
        taken = desc.job_id in ctld.jobs or desc.job_id in ctld.ended_rows
        return 0 if taken else desc.job_id
    return ctld.next_id()


async def job_ready(ctld: "Slurmctld", envelope: Envelope, message: RequestJobReady) -> None:
    """Answer whether steps of a job may start: none of its nodes has to boot here."""
    job = ctld.jobs.get(message.job_id)
    if job is None:
        rc = ESLURM_INVALID_JOB_ID
    else:
        rc = ESLURM_JOB_PENDING if job.state.base is JobBase.PENDING else SLURM_SUCCESS
    ctld.answer(envelope, rc)
