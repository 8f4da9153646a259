"""What scontrol changes: jobs, held, released, requeued or altered, and the states of nodes."""

import attrs

from simctl.ctld import authority
from simctl.ctld.choose import dependencies
from simctl.ctld.choose.dependency_text import parse_dependency
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import arrays, completion, eligible, limits, staging
from simctl.ctld.jobs.admission import ask_anew
from simctl.ctld.nodes import reachability
from simctl.ctld.recovery import loss
from simctl.ctld.requests import update_request
from simctl.ctld.state import queue
from simctl.ctld.state.records import JobRecord, NodeRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.errno import (
    ESLURM_ACCESS_DENIED,
    ESLURM_ALREADY_DONE,
    ESLURM_BATCH_ONLY,
    ESLURM_CIRCULAR_DEPENDENCY,
    ESLURM_DISABLED,
    ESLURM_INVALID_JOB_ID,
    ESLURM_INVALID_NODE_NAME,
    ESLURM_INVALID_NODE_STATE,
    ESLURM_INVALID_PARTITION_NAME,
    ESLURM_JOB_HELD,
    ESLURM_JOB_PENDING,
    ESLURM_NOT_SUPPORTED,
    ESLURM_PRIO_RESET_FAIL,
    ESLURM_TRANSITION_STATE_NO_UPDATE,
    SLURM_SUCCESS,
    SlurmError,
)
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.messages import RequestJobRequeue, RequestUpdateJob, RequestUpdateNode
from simctl.wire.states import (
    PENDING,
    PENDING_SPECIAL_EXIT,
    JobBase,
    NodeBase,
    NodeFlag,
    Reason,
)

# Jobs.


async def update_job(ctld: Controller, envelope: Envelope, message: RequestUpdateJob) -> None:
    """Change a job: everything that was asked for, or nothing if one part is refused.

    Answers the errno of the first part that is refused: ESLURM_INVALID_JOB_ID,
    ESLURM_ALREADY_DONE, ESLURM_ACCESS_DENIED for what only operators may do, ESLURM_JOB_HELD,
    ESLURM_JOB_NOT_PENDING, ESLURM_DISABLED, ESLURM_CIRCULAR_DEPENDENCY, ESLURM_NOT_SUPPORTED,
    those of a wrong partition, reservation or time limit; or ESLURM_PRIO_RESET_FAIL to a user
    who has lowered a priority. In Slurm: `update_job()` of job_mgr.c.
    """
    uid = authority.uid_of(ctld, envelope)
    rc = _refusal(ctld, envelope, message.job_id)
    if not rc:
        rc = _unknown_task(ctld, message)
        known = dict.fromkeys(ctld.jobs)
        for job in await arrays.targets(ctld, message.job_id, message.array_tasks):
            if job.job_id not in known and job.burst_buffer:
                await staging.admit_task(ctld, job)
            asked = await _ruled(ctld, job, message, uid)
            rc = (asked if isinstance(asked, int) else _update(ctld, job, asked, uid)) or rc
        # Others may have waited for the job to run as long as it could, or behind it.
        ctld.request_pass()
    ctld.answer(envelope, rc)


async def _ruled(
    ctld: Controller, job: JobRecord, message: RequestUpdateJob, uid: int
) -> RequestUpdateJob | int:
    """Have job_submit plugins look at a change; return it as they leave it, or why it is refused.

    What they say to the user is logged: up to Slurm 22.05 no client hears of it.
    """
    if ctld.job_submit is None:
        return message
    ruling = await ctld.job_submit.modify(update_request.as_submission(message, job.desc), job, uid)
    asked, strange = update_request.changed(message, ruling.desc, ruling.changed)
    lines = [f"job_submit: {line}" for line in ruling.lines]
    lines += [f"job_modify has set {name}, which no update changes here" for name in strange]
    for line in lines:
        args = {"level": "error", "text": line}
        ctld.site.trace.note("log", "job_submit", ctld.process, args=args, job=job.job_id)
    return ruling.error_code or asked


def _unknown_task(ctld: Controller, message: RequestUpdateJob | RequestJobRequeue) -> int:
    """Return the error of naming a task that there is not, or 0; those there are change anyway."""
    lacking = arrays.lacks(ctld, message.job_id, message.array_tasks)
    return ESLURM_INVALID_JOB_ID if lacking else SLURM_SUCCESS


def _refusal(ctld: Controller, envelope: Envelope, job_id: int) -> int:
    """Return why a user may not change a job or array, or 0."""
    array = ctld.arrays.get(job_id)
    job = array.first if array is not None else ctld.jobs.get(job_id)
    if job is None:
        return ESLURM_INVALID_JOB_ID
    return authority.refusal(ctld, envelope, job.desc.uid)


def _update(ctld: Controller, job: JobRecord, message: RequestUpdateJob, uid: int) -> int:
    if job.state.finished:
        # Of an array, what is over is left as it is.
        return SLURM_SUCCESS if job.array is not None else ESLURM_ALREADY_DONE
    rc = _check(ctld, job, message, uid)
    if rc:
        return rc
    before = job.priority
    _apply(ctld, job, message, uid)
    if 0 < job.priority < before and message.priority == job.priority:
        # What a user lowers is lowered, and the user is told that it need not last.
        return SLURM_SUCCESS if ctld.is_operator(uid) else ESLURM_PRIO_RESET_FAIL
    return SLURM_SUCCESS


def _check(ctld: Controller, job: JobRecord, message: RequestUpdateJob, uid: int) -> int:
    """Return why a change is refused, or 0. Pure."""
    operator = ctld.is_operator(uid)
    pending = job.state.base is JobBase.PENDING
    rc = _priority_refusal(job, message.priority, operator=operator)
    if rc:
        return rc
    raises_nice = message.nice is not None and message.nice < 0
    shares = message.exclusive is not None and pending
    delays = message.deadline_s is not None and pending
    if (raises_nice or shares or delays) and not operator:
        return ESLURM_ACCESS_DENIED
    limit = message.time_limit_min
    raised = limit != NO_VAL and limit > job.time_limit_min and not operator
    if raised and not (pending and limit <= job.part.max_time_min):
        return ESLURM_ACCESS_DENIED
    refused = update_request.refusal(ctld, job, message, uid)
    if refused:
        return refused
    if message.array_limit != NO_VAL and job.array is None:
        return ESLURM_NOT_SUPPORTED
    if (message.begin_s is not None or message.dependency is not None) and not pending:
        return ESLURM_DISABLED
    if message.dependency is not None:
        try:
            dependency = parse_dependency(message.dependency, ctld, job.job_id)
        except SlurmError as error:
            return error.errno
        if dependencies.closes_circle(job, dependency):
            return ESLURM_CIRCULAR_DEPENDENCY
    return SLURM_SUCCESS


def _priority_refusal(job: JobRecord, priority: int, *, operator: bool) -> int:
    """Return why a priority may not be given to a job, or 0. Pure.

    A user who is no operator may lower it, and release what its owner holds.
    """
    if priority in (NO_VAL, job.priority):
        return SLURM_SUCCESS
    if not job.priority:
        if priority != INFINITE:
            return ESLURM_JOB_HELD
        owners = job.held_by_user or job.hold_text == Reason.RESERVATION_DELETED
        return SLURM_SUCCESS if operator or owners else ESLURM_ACCESS_DENIED
    lowered = priority == INFINITE or priority < job.priority
    return SLURM_SUCCESS if operator or lowered else ESLURM_ACCESS_DENIED


def _apply(ctld: Controller, job: JobRecord, message: RequestUpdateJob, uid: int) -> None:
    _set_priority(ctld, job, message, uid)
    if message.name is not None:
        eligible.rename(ctld, job, message.name)
    if message.requeue != NO_VAL:
        job.allow_requeue(bool(message.requeue))
    if message.time_limit_min != NO_VAL:
        _set_time_limit(ctld, job, message.time_limit_min)
    if message.dependency is not None:
        eligible.depend(ctld, job, parse_dependency(message.dependency, ctld, job.job_id))
    if message.begin_s is not None:
        job.begin_after(ctld.moment_us(message.begin_s))
    if message.comment is not None:
        job.amend(attrs.evolve(job.desc, comment=message.comment))
    if message.deadline_s is not None:
        job.amend(attrs.evolve(job.desc, deadline_s=message.deadline_s))
        limits.watch_deadline(ctld, job)
    if message.array_limit != NO_VAL and job.array is not None:
        job.array.limit_to(message.array_limit)
    changes = update_request.changes_of(message)
    if changes:
        # It is as if the request came in now.
        job.amend(attrs.evolve(job.desc, **changes))
        ask_anew(ctld, job)
    eligible.settle(ctld, job)


def _set_priority(ctld: Controller, job: JobRecord, message: RequestUpdateJob, uid: int) -> None:
    before = job.priority
    if message.nice is not None:
        job.be_nice(message.nice)
    operator = ctld.is_operator(uid)
    if message.priority == 0 and (before or operator):
        # What its owner holds, and what an operator holds in the owner's name, the owner releases.
        # An operator's hold stays an operator's when the owner asks for one as well.
        job.hold("", by_user=message.hold_by_user or not operator)
    elif message.priority == INFINITE:
        job.release(job.priority or ctld.next_priority(job.nice))
        if job.state == PENDING_SPECIAL_EXIT:
            ctld.set_job(job, PENDING)
    elif message.priority not in (NO_VAL, 0):
        job.prioritize(message.priority)
    if job.priority != before and job.queued:
        # It takes its place anew, if it keeps one.
        queue.take_from_queue(job)


def _set_time_limit(ctld: Controller, job: JobRecord, minutes: int) -> None:
    job.limit_to(minutes)
    limits.watch_deadline(ctld, job)
    if job.state.base is not JobBase.RUNNING:
        return
    ctld.start_limit(job)
    limits.watch_warning(ctld, job)


async def job_requeue(ctld: Controller, envelope: Envelope, message: RequestJobRequeue) -> None:
    """Send a running batch job back into the queue, or the running tasks of an array.

    Answers ESLURM_INVALID_JOB_ID, ESLURM_ACCESS_DENIED to a client that says a launch failed,
    ESLURM_BATCH_ONLY, ESLURM_DISABLED (--no-requeue), ESLURM_TRANSITION_STATE_NO_UPDATE while
    it is COMPLETING, ESLURM_ALREADY_DONE, ESLURM_JOB_PENDING, or ESLURM_INVALID_PARTITION_NAME
    if its partitions are gone. In Slurm: `job_requeue()` of job_mgr.c.
    """
    rc = _refusal(ctld, envelope, message.job_id)
    if not rc and message.launch_failed and not authority.is_daemon(ctld, envelope):
        rc = ESLURM_ACCESS_DENIED
    if not rc:
        unknown = _unknown_task(ctld, message)
        rcs = [
            await _requeue(ctld, job, message)
            for job in await arrays.targets(ctld, message.job_id, message.array_tasks)
        ]
        rc = unknown or min(rcs, default=SLURM_SUCCESS)
    ctld.answer(envelope, rc)


async def _requeue(ctld: Controller, job: JobRecord, message: RequestJobRequeue) -> int:
    if not job.batch:
        return ESLURM_BATCH_ONLY
    if message.restart_cnt not in (NO_VAL, job.restart_cnt):
        return ESLURM_ALREADY_DONE
    if message.incomplete and job.state.base not in (JobBase.RUNNING, JobBase.SUSPENDED):
        return SLURM_SUCCESS
    if not job.requeue:
        return ESLURM_DISABLED
    if job.state.completing:
        return ESLURM_TRANSITION_STATE_NO_UPDATE
    unsplit = job.array is not None and job.array_task < 0
    if job.state.finished and (job.burst_buffer or message.launch_failed or unsplit):
        # Its buffer is gone, or about to go; tasks that never had a record are forgotten.
        return ESLURM_ALREADY_DONE
    if job.state.base is JobBase.PENDING:
        return ESLURM_JOB_PENDING
    if not any(part.name in ctld.partitions for part in job.parts):
        # They were deleted, which nothing stops once the job is over.
        return ESLURM_INVALID_PARTITION_NAME
    if message.hold:
        text = completion.REQUEUED_HELD
        if message.launch_failed:
            text = completion.LAUNCH_FAILED_HELD
        completion.hold_requeued(job, text, special_exit=message.special_exit)
    if job.state.finished:
        completion.run_again(ctld, job)
        return SLURM_SUCCESS
    await completion.requeue(ctld, job)
    return SLURM_SUCCESS


# Nodes.


async def update_node(ctld: Controller, envelope: Envelope, message: RequestUpdateNode) -> None:
    """Drain nodes, set them down, or take them into service again; or say why they are not.

    Answers ESLURM_INVALID_NODE_NAME, or ESLURM_INVALID_NODE_STATE where the change is none. In
    Slurm: `update_node()` of node_mgr.c.
    """
    try:
        every = tuple(node.name for node in ctld.nodes)
        names = every if message.node_names.upper() == "ALL" else expand(message.node_names)
    except HostlistError:
        names = ()
    records = [ctld.nodes_by_name.get(name) for name in names]
    found = [node for node in records if node is not None]
    if not found or len(found) < len(records):
        rc = ESLURM_INVALID_NODE_NAME
    else:
        rc = SLURM_SUCCESS
        for node in found:
            if message.features is not None:
                node.offer(message.features)
            rc = await _set_node(ctld, node, message, authority.uid_of(ctld, envelope)) or rc
    ctld.answer(envelope, rc)


async def _set_node(
    ctld: Controller, node: NodeRecord, message: RequestUpdateNode, uid: int
) -> int:
    if message.state == "DRAIN":
        ctld.note_reason(node, message.reason, uid)
        ctld.set_node(node, node.base, node.flags | NodeFlag.DRAIN)
    elif message.state == "DOWN":
        ctld.note_reason(node, message.reason, uid)
        await loss.take_down(ctld, node)
    elif message.state in ("RESUME", "IDLE", "UNDRAIN"):
        drained = bool(node.flags & NodeFlag.DRAIN)
        if message.state == "UNDRAIN" and not drained:
            return ESLURM_INVALID_NODE_STATE
        if message.state == "IDLE" and not drained and node.base is not NodeBase.DOWN:
            return SLURM_SUCCESS
        return _resume(ctld, node)
    elif not message.state:
        if message.reason:
            ctld.note_reason(node, message.reason, uid)
    else:
        return ESLURM_INVALID_NODE_STATE
    return SLURM_SUCCESS


def _resume(ctld: Controller, node: NodeRecord) -> int:
    """Let jobs start on a node again; one that is neither drained nor down has nothing to undo."""
    if node.base is not NodeBase.DOWN and not node.flags & NodeFlag.DRAIN:
        return ESLURM_INVALID_NODE_STATE
    node.in_service()
    base = node.base
    if base is NodeBase.DOWN:
        # One that still does not answer is found out by the next pings.
        base = NodeBase.IDLE
    ctld.set_node(node, base, node.flags & ~NodeFlag.DRAIN)
    if node.flags & NodeFlag.NO_RESPOND or not reachability.answers(ctld, node):
        reachability.watch_unreachable(ctld)
    ctld.request_pass()
    return SLURM_SUCCESS
