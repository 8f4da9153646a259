"""How jobs come in: the checks of a request, the record, the first try to start."""

from typing import NoReturn

import attrs

from simctl.ctld import authority
from simctl.ctld.authority import asker_of
from simctl.ctld.choose import dependencies, reserved
from simctl.ctld.choose.dependency_text import parse_dependency
from simctl.ctld.choose.request import Request, read_request
from simctl.ctld.choose.select import fitting_parts
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import arrays, eligible, launch, limits, staging
from simctl.ctld.jobs.completion import finish
from simctl.ctld.port.job_submit import Ruling
from simctl.ctld.reporting import bookkeeping
from simctl.ctld.requests.meanwhile import answering
from simctl.ctld.scheduling import preempt, schedule
from simctl.ctld.state.records import JobArray, JobRecord, PartRecord
from simctl.kernel.fabric import Envelope, Mailbox
from simctl.plugins.hooks import NULL, About, Handle, failed
from simctl.plugins.points.checkpoint import slurm_ckpt_alloc_job, slurm_ckpt_free_job
from simctl.wire.errno import (
    EAGAIN,
    ESLURM_ALREADY_DONE,
    ESLURM_BURST_BUFFER_WAIT,
    ESLURM_CAN_NOT_START_IMMEDIATELY,
    ESLURM_DEPENDENCY,
    ESLURM_DUPLICATE_JOB_ID,
    ESLURM_FRAGMENTATION,
    ESLURM_INVALID_BURST_BUFFER_REQUEST,
    ESLURM_INVALID_JOB_ID,
    ESLURM_INVALID_NICE,
    ESLURM_INVALID_NODE_COUNT,
    ESLURM_JOB_HELD,
    ESLURM_JOB_PENDING,
    ESLURM_NODE_NOT_AVAIL,
    ESLURM_NODES_BUSY,
    ESLURM_NOT_TOP_PRIORITY,
    ESLURM_PATHNAME_TOO_LONG,
    ESLURM_PROLOG_RUNNING,
    ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE,
    ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE,
    ESLURM_TOO_MANY_REQUESTED_CPUS,
    ESLURM_USER_ID_MISSING,
    SLURM_ERROR,
    SLURM_SUCCESS,
    SlurmError,
)
from simctl.wire.ids import NO_VAL, SECOND
from simctl.wire.messages import (
    RequestJobPackAllocInfo,
    RequestJobReady,
    RequestResourceAllocation,
    RequestSubmitBatchJob,
    ResponseJobPackAllocation,
    ResponseResourceAllocation,
    ResponseSubmitBatchJob,
)
from simctl.wire.records import JobDesc
from simctl.wire.rights import DENIALS
from simctl.wire.states import FAILED, PENDING, JobBase, JobState, Reason


async def submit_batch_job(
    ctld: Controller, envelope: Envelope, message: RequestSubmitBatchJob
) -> None:
    """Take a batch job in; a scheduler pass starts it.

    Answers the errno with which the job is refused (`create`), or, with its id, why it waits:
    ESLURM_JOB_HELD, ESLURM_NODE_NOT_AVAIL. In Slurm: `job_allocate()` of job_mgr.c.
    """
    made = await create(ctld, envelope, message.job_desc, batch=True)
    if isinstance(made, Refusal):
        answer = ResponseSubmitBatchJob(job_id=0, error_code=made.error_code, text=made.text)
    else:
        await _settle(ctld, made)
        await staging.ask_at_submission(ctld, made)
        answer = ResponseSubmitBatchJob(
            job_id=made.job_id, error_code=_code_of(ctld, made), text=made.told
        )
    ctld.send(envelope.sender, answer)


def _code_of(ctld: Controller, job: JobRecord) -> int:
    """Return with which code a batch job is taken in: one that is held, or lacks nodes, has one."""
    if not job.priority:
        return ESLURM_JOB_HELD
    return ESLURM_NODE_NOT_AVAIL if _lacks_nodes(ctld, job) else SLURM_SUCCESS


def _lacks_nodes(ctld: Controller, job: JobRecord) -> bool:
    """Return whether nothing but nodes that are down, drained or silent keeps a job waiting."""
    if job.lasting_reason or job.desc.reservation or job.dependency is not None:
        return False
    parts = [part for part in job.parts if part.state.starts_jobs]
    lacking = all(schedule.lacks_nodes(ctld, job, part) for part in parts)
    return bool(parts) and lacking and job.begin_us <= ctld.now_us


async def _settle(ctld: Controller, job: JobRecord) -> None:
    """Put a new job where it belongs; tasks that wait each for another are split off at once."""
    if not dependencies.waits_for_tasks(job):
        eligible.settle(ctld, job)
        return
    assert job.array is not None
    for task in tuple(job.array.waiting):
        record = await arrays.split_off(ctld, job, task)
        if record is not job and record.burst_buffer:
            await staging.admit_task(ctld, record)
        eligible.settle(ctld, record)


async def resource_allocation(
    ctld: Controller, envelope: Envelope, message: RequestResourceAllocation
) -> None:
    """Accept a job whose srun waits for it, and try to start it at once.

    Answers as for a batch job; while it waits ESLURM_NODES_BUSY, ESLURM_NODE_NOT_AVAIL or
    ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE, and where it may not wait (--immediate) the errno
    of the pass. In Slurm: `job_allocate()` of job_mgr.c.
    """
    desc = message.job_desc
    job = await create(ctld, envelope, desc, batch=False)
    if isinstance(job, Refusal):
        _reply(ctld, envelope, job.job_id, job.error_code, job.text)
        return
    rc = await _try_now(ctld, job)
    if rc == SLURM_SUCCESS:
        if job.state.configuring:
            # The allocation follows its prologs, which may take longer than a client waits.
            _reply(ctld, envelope, job.job_id, ESLURM_NODES_BUSY, job.told)
        return
    if desc.immediate:
        job.refuse(ctld.now_us)
        ctld.set_job(job, FAILED)
        bookkeeping.run_ended(ctld, job, FAILED.base.name)
        await staging.ended(ctld, job)
        finish(ctld, job)
        _reply(ctld, envelope, job.job_id, rc)
        return
    # One that found no room just now need not be tried again; others may be passed by this one. A
    # pass knows more ways out: jobs that give way, and moments at which reservations do.
    settled = rc == ESLURM_NODES_BUSY and not preempt.is_on(ctld) and not ctld.reservations
    eligible.settle(ctld, job, asks=not settled)
    if staging.waits_for_stage_in(job) and job.queued:
        job.waits_for_buffer()
    ctld.request_backfill()
    why = ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE if job.lasting_reason else ESLURM_NODES_BUSY
    if job.priority and _lacks_nodes(ctld, job):
        why = ESLURM_NODE_NOT_AVAIL
    _reply(ctld, envelope, job.job_id, why, job.told)


def _reply(ctld: Controller, envelope: Envelope, job_id: int, rc: int, text: str = "") -> None:
    ctld.send(
        envelope.sender,
        ResponseResourceAllocation(job_id=job_id, error_code=rc, node_list="", text=text),
    )


async def _try_now(ctld: Controller, job: JobRecord) -> int:
    """Start a job inside its own request if it is first in line and its nodes are idle."""
    if await schedule.held_by_fragmentation(ctld):
        rc = ESLURM_FRAGMENTATION
    elif job.lasting_reason:
        return ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE
    else:
        rc = await _why_later(ctld, job)
    if rc:
        if not job.desc.immediate:
            await staging.ask_at_submission(ctld, job)
        return rc
    if ctld.bb is not None and not await staging.may_start_now(ctld, job):
        return ESLURM_BURST_BUFFER_WAIT
    for part in job.parts:
        if not part.state.starts_jobs or _is_behind(ctld, part):
            continue
        shares = schedule.find_nodes(ctld, job, part)
        if shares:
            good = await launch.start(ctld, job, part, shares)
            return SLURM_SUCCESS if good else ESLURM_INVALID_BURST_BUFFER_REQUEST
    if any(_is_behind(ctld, part) for part in job.parts):
        return ESLURM_NOT_TOP_PRIORITY
    job.waits_for(Reason.RESOURCES)
    return ESLURM_NODES_BUSY


async def _why_later(ctld: Controller, job: JobRecord) -> int:
    """Return why a job may not start inside its own request whatever nodes are idle, or 0."""
    if job.dependency is not None or not job.priority or job.begin_us > ctld.now_us:
        return ESLURM_DEPENDENCY
    if ctld.bb is not None:
        await staging.ask_those_ahead(ctld, job)
    if ctld.site.conf.scheduler_parameters.defer:
        return ESLURM_CAN_NOT_START_IMMEDIATELY
    open_parts = [part for part in job.parts if part.state.starts_jobs]
    if open_parts and all(_is_behind(ctld, part) for part in open_parts):
        return ESLURM_NOT_TOP_PRIORITY
    return SLURM_SUCCESS


def _is_behind(ctld: Controller, part: PartRecord) -> bool:
    """Return whether a job waits for a partition's nodes that comes before a new one.

    Jobs that wait for their burst buffers keep no other from idle nodes.
    """
    return any(
        other.waiting
        and other.state.starts_jobs
        and other.tier >= part.tier
        and other.mask & part.mask
        and (ctld.bb is None or _any_ready(ctld, other))
        for other in ctld.partitions.values()
    )


def _any_ready(ctld: Controller, part: PartRecord) -> bool:
    """Return whether a job in a partition's queue waits for more than a burst buffer."""
    return any(
        job.queued and part in job.parts and not staging.waits_for_stage_in(job)
        for job in ctld.jobs.values()
    )


@attrs.frozen
class Refusal:
    """Why a job is not taken in; the text says more where there is more to say."""

    error_code: int
    text: str = ""
    job_id: int = 0
    """The id that it used up, if it had one already."""


def _refusal(ctld: Controller, desc: JobDesc, uid: int, request: Request, nice: int) -> int:
    """Return why a job is not taken in, or 0; *nice* is what its user asked for."""
    if uid not in (desc.uid, 0, ctld.process.uid):
        return ESLURM_USER_ID_MISSING
    if len(desc.script) > ctld.site.conf.scheduler_parameters.max_script_size:
        return ESLURM_PATHNAME_TOO_LONG
    if nice < 0 and not ctld.is_operator(uid):
        return ESLURM_INVALID_NICE
    now_s = ctld.site.start_time_s + ctld.now_us // SECOND
    refused = request.error_code or reserved.refusal(ctld, desc) or limits.refusal(desc, now_s)
    if not refused and len(ctld.jobs) >= ctld.site.conf.max_job_count:
        return EAGAIN
    return refused


async def create(
    ctld: Controller, envelope: Envelope, desc: JobDesc, *, batch: bool, kept: bool = True
) -> JobRecord | Refusal:
    """Make the record of a new job: checks, id, checkpoint record, PENDING.

    One that is not *kept* only says what the job would be like, and enters no table.
    """
    sender = envelope.sender
    uid = sender.process.uid if sender is not None else desc.uid
    try:
        return await _create(ctld, sender, desc, uid, batch=batch, kept=kept)
    except _RefusedError as error:
        if error.refusal.error_code in DENIALS:
            ctld.tell_refusal(envelope, error.refusal.error_code)
        return error.refusal


async def resubmit(ctld: Controller, desc: JobDesc) -> JobRecord | Refusal:
    """Take a batch job in again under the id that it had, as root does; it counts as a new one."""
    try:
        job = await _create(ctld, None, desc, 0, batch=True, kept=True, again=True)
    except _RefusedError as error:
        return error.refusal
    arrays.forget(ctld, job.job_id)
    job.resubmitted(ctld.last_runs.get(job.job_id, -1) + 1, desc.submit_host)
    await _settle(ctld, job)
    await staging.ask_at_submission(ctld, job)
    return job


async def _create(
    ctld: Controller,
    sender: Mailbox | None,
    desc: JobDesc,
    uid: int,
    *,
    batch: bool,
    kept: bool,
    again: bool = False,
) -> JobRecord:
    nice = desc.nice
    ruling = Ruling(desc=desc) if again else await _rule(ctld, desc, uid)
    desc = ruling.desc
    request = _read(ctld, ruling, uid, nice, kept=kept)
    burst_buffer = await _validate(ctld, desc, uid)
    array, job_id = _identify(ctld, desc, kept=kept, again=again)
    about = About(job=job_id)
    check_job = await _checkpoint_record(ctld, job_id) if kept else NULL
    try:
        dependency = parse_dependency(desc.dependency, ctld, job_id)
    except SlurmError as error:
        await _refuse(ctld, check_job, about, error.errno)
    job = JobRecord(
        job_id=job_id,
        desc=attrs.evolve(desc, partition=",".join(part.name for part in request.parts)),
        parts=request.parts,
        part=request.parts[0],
        state=PENDING,
        about=about,
        check_job=check_job,
        place=ctld.next_place(),
        submit_us=ctld.now_us,
        batch=batch,
        client=None if batch else sender,
        submit_host=sender.process.host.name if sender is not None else "",
        submit_pid=sender.process.pid if sender is not None else 0,
        requeue=bool(ctld.site.conf.job_requeue if desc.requeue == NO_VAL else desc.requeue),
        time_limit_min=request.time_limit_min,
        demand=request.demand,
        name=desc.name,
        priority=_priority(ctld, desc, 0 if "priority" in ruling.changed else uid),
        nice=desc.nice,
        dependency=dependency,
        array=array,
        held_by_user=True,
        told=ruling.text,
        burst_buffer=burst_buffer,
        begin_us=ctld.moment_us(desc.begin_s),
    )
    fitting = () if request.reason != Reason.NONE else fitting_parts(job)
    if request.reason == Reason.NONE and not fitting and ctld.site.conf.enforce_part_limits != "NO":
        await _refuse(ctld, check_job, about, ESLURM_TOO_MANY_REQUESTED_CPUS)
    job.fits(fitting, request.reason)
    if job.lasting_reason and job.priority:
        job.waits_for(job.lasting_reason)
    if kept:
        await _take_in(ctld, job)
    return job


def _read(ctld: Controller, ruling: Ruling, uid: int, nice: int, *, kept: bool) -> Request:
    """Return what a submission comes to, unless it is refused; *nice* is what the user asked for.

    What no node could ever hold is refused once the job has its id.
    """
    desc = ruling.desc
    request = read_request(
        desc, asker_of(ctld, uid, desc), ctld.partitions, ctld.nodes_by_name, ctld.site.conf
    )
    error_code = _refusal(ctld, desc, uid, request, nice)
    if not error_code:
        return request
    late = kept and error_code == ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE and request.text
    text = "\n".join(filter(None, (ruling.text, request.text)))
    raise _RefusedError(error_code, text, ctld.next_id() if late else 0)


async def _refuse(ctld: Controller, check_job: Handle, about: About, error_code: int) -> NoReturn:
    """Refuse a job that has its checkpoint record already."""
    await ctld.site.hooks.call(slurm_ckpt_free_job, ctld.process, check_job, about=about)
    raise _RefusedError(error_code)


async def _rule(ctld: Controller, desc: JobDesc, uid: int) -> Ruling:
    """Have job_submit plugins look at a submission; they do not see what only operators may ask."""
    plugins = ctld.job_submit
    if plugins is None:
        return Ruling(desc=desc)
    if desc.priority not in (0, NO_VAL) and not ctld.is_operator(uid):
        desc = attrs.evolve(desc, priority=NO_VAL)
    with answering(ctld):
        ruling = await plugins.submit(desc, uid)
    if ruling.error_code:
        raise _RefusedError(ruling.error_code, ruling.text)
    return ruling


class _RefusedError(Exception):
    """A job is not taken in."""

    def __init__(self, error_code: int, text: str = "", job_id: int = 0) -> None:
        super().__init__(error_code)
        self.refusal = Refusal(error_code, text, job_id)


async def _validate(ctld: Controller, desc: JobDesc, uid: int) -> str:
    """Have burst buffer plugins check a request; return what they have read of it."""
    error_code, text, burst_buffer = await staging.validate(ctld, desc, uid)
    if error_code:
        raise _RefusedError(error_code, text)
    if not desc.min_nodes and not burst_buffer:
        raise _RefusedError(ESLURM_INVALID_NODE_COUNT)
    return burst_buffer


def _identify(
    ctld: Controller, desc: JobDesc, *, kept: bool, again: bool
) -> tuple[JobArray | None, int]:
    """Return a new job's array, if it is one, and its id."""
    try:
        array = arrays.read_array(desc.array)
    except SlurmError as error:
        raise _RefusedError(error.errno) from None
    job_id = _next_id(ctld, desc, again=again)
    if not job_id:
        raise _RefusedError(EAGAIN if desc.job_id == NO_VAL else ESLURM_DUPLICATE_JOB_ID)
    if not kept:
        array = None
    if array is not None:
        arrays.name(ctld, array, job_id)
    return array, job_id


async def _checkpoint_record(ctld: Controller, job_id: int) -> Handle:
    about = About(job=job_id)
    check_job = await ctld.site.hooks.call(slurm_ckpt_alloc_job, ctld.process, about=about)
    if failed(check_job):
        _announce(ctld, job_id)
        _announce(ctld, job_id, before=PENDING, after=FAILED)
        await ctld.site.hooks.call(slurm_ckpt_free_job, ctld.process, NULL, about=about)
        raise _RefusedError(SLURM_ERROR)
    found: Handle = check_job
    return found


async def _take_in(ctld: Controller, job: JobRecord) -> None:
    """Enter a job in the tables, unless its burst buffer plugin refuses it."""
    ctld.jobs[job.job_id] = job
    if ctld.bb is not None:
        _announce(ctld, job.job_id, job.reason, burst_buffer=job.burst_buffer)
        error_code, text = await staging.admit(ctld, job)
        if error_code:
            await _drop(ctld, job)
            raise _RefusedError(error_code, text)
        ctld.wait_for(job)
    await ctld.saves.note(job)
    bookkeeping.came(ctld, job)
    limits.watch_deadline(ctld, job)
    arrays.register(ctld, job)
    eligible.note_name(ctld, job)
    eligible.register(ctld, job)
    if job.dependency is not None or not job.priority or job.begin_us > ctld.now_us:
        verdict = dependencies.verdict(ctld, job, ctld.now_us)
        if reason := eligible.obstacle(ctld, job, verdict):
            job.waits_for(reason)
    if ctld.bb is None:
        _announce(ctld, job.job_id, job.reason)


def _announce(
    ctld: Controller,
    job_id: int,
    reason: str = Reason.NONE,
    *,
    before: JobState | None = None,
    after: JobState = PENDING,
    burst_buffer: str = "",
) -> None:
    """Say in the trace that there is a new job, or that it never became one."""
    more = {"burst_buffer": burst_buffer} if burst_buffer else {}
    ctld.site.trace.state(
        ctld.process,
        "job_state",
        before=None if before is None else str(before),
        after=str(after),
        reason=reason,
        job=job_id,
        **more,
    )


async def _drop(ctld: Controller, job: JobRecord) -> None:
    """Forget a job that its burst buffer plugin refuses: no client sees it, and its id is gone."""
    ctld.set_job(job, FAILED)
    await ctld.site.hooks.call(slurm_ckpt_free_job, ctld.process, job.check_job, about=job.about)
    del ctld.jobs[job.job_id]


def _priority(ctld: Controller, desc: JobDesc, uid: int) -> int:
    """Return the priority of a new job: lower than that of every job before, less its nice.

    Only operators may ask for one; 0, which holds the job, any user may ask for.
    """
    if desc.priority == 0:
        return 0
    if desc.priority != NO_VAL and ctld.is_operator(uid):
        return desc.priority
    return ctld.next_priority(desc.nice)


def _next_id(ctld: Controller, desc: JobDesc, *, again: bool) -> int:
    """Return the id of a new job: the one asked for, or the next free one; 0 if it is taken.

    A job that comes *again* may have its own.
    """
    if desc.job_id != NO_VAL:
        taken = desc.job_id in ctld.jobs or (desc.job_id in ctld.ended_rows and not again)
        return 0 if taken else desc.job_id
    return ctld.next_id()


async def allocation_info(
    ctld: Controller, envelope: Envelope, message: RequestJobPackAllocInfo
) -> None:
    """Answer srun, which asks in a job whether it has nodes.

    Errors: ESLURM_INVALID_JOB_ID, ESLURM_ACCESS_DENIED, ESLURM_JOB_PENDING, and
    ESLURM_ALREADY_DONE once the job is over, also while its nodes let go of it.
    """
    job = ctld.jobs.get(message.job_id)
    if job is None:
        rc = ESLURM_INVALID_JOB_ID
    elif denied := authority.refusal(ctld, envelope, job.desc.uid):
        rc = denied
        ctld.tell_refusal(envelope, rc)
    elif job.state.finished:
        rc = ESLURM_ALREADY_DONE
    else:
        rc = ESLURM_JOB_PENDING if job.state.base is JobBase.PENDING else SLURM_SUCCESS
    node_list = job.node_list if job is not None and not rc else ""
    answer = ResponseJobPackAllocation(job_id=message.job_id, node_list=node_list, error_code=rc)
    ctld.send(envelope.sender, answer)


async def job_ready(ctld: Controller, envelope: Envelope, message: RequestJobReady) -> None:
    """Answer whether steps of a job may start: not before its PrologSlurmctld has ended.

    Answers ESLURM_INVALID_JOB_ID, ESLURM_PROLOG_RUNNING or ESLURM_JOB_PENDING.
    """
    job = ctld.jobs.get(message.job_id)
    if job is None:
        rc = ESLURM_INVALID_JOB_ID
    elif job.state.configuring:
        rc = ESLURM_PROLOG_RUNNING
    else:
        rc = ESLURM_JOB_PENDING if job.state.base is JobBase.PENDING else SLURM_SUCCESS
    ctld.answer(envelope, rc)
