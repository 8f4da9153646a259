"""Steps: created with their credential, reported complete node by node, deleted once."""

import attrs

from simctl.ctld import authority
from simctl.ctld.checkpoints import checkpoint_times
from simctl.ctld.choose.step_layout import lay_out_step
from simctl.ctld.controller import Controller, Fatal
from simctl.ctld.reporting import bookkeeping
from simctl.ctld.state.records import JobRecord, StepRecord
from simctl.ctld.steps import step_limits, step_queue
from simctl.kernel.fabric import Envelope
from simctl.plugins.hooks import NULL, About, Handle, failed
from simctl.plugins.points.checkpoint import slurm_ckpt_alloc_job, slurm_ckpt_free_job
from simctl.plugins.points.switch import (
    switch_p_alloc_jobinfo,
    switch_p_build_jobinfo,
    switch_p_copy_jobinfo,
    switch_p_free_jobinfo,
    switch_p_job_step_complete,
    switch_p_pack_jobinfo,
)
from simctl.plugins.points.switch_besides import (
    switch_p_job_step_part_comp,
    switch_p_part_comp,
)
from simctl.wire.buf import Buf
from simctl.wire.errno import (
    ESLURM_ACCESS_DENIED,
    ESLURM_ALREADY_DONE,
    ESLURM_DISABLED,
    ESLURM_INTERCONNECT_FAILURE,
    ESLURM_INVALID_JOB_ID,
    ESLURM_JOB_PENDING,
    ESLURM_NODES_BUSY,
    ESLURM_PROLOG_RUNNING,
    SLURM_SUCCESS,
    SlurmError,
)
from simctl.wire.hostlist import compress
from simctl.wire.ids import NO_VAL, NO_VAL16, step_name
from simctl.wire.layout import StepLayout
from simctl.wire.messages import (
    RequestJobStepCreate,
    RequestStepComplete,
    ResponseJobStepCreate,
)
from simctl.wire.states import JobBase


async def job_step_create(
    ctld: Controller, envelope: Envelope, message: RequestJobStepCreate
) -> None:
    """Create a step: nodes, layout, credential built, checkpoint record, reply.

    Answers ESLURM_INVALID_JOB_ID, ESLURM_ALREADY_DONE, ESLURM_JOB_PENDING, ESLURM_DISABLED of a
    suspended job, ESLURM_PROLOG_RUNNING, ESLURM_NODES_BUSY (srun waits),
    ESLURM_INTERCONNECT_FAILURE if the credential cannot be built, or the errno of
    `lay_out_step`. In Slurm: `step_create()` of step_mgr.c.
    """
    job = ctld.jobs.get(message.job_id)
    refusal = _refusal(ctld, job, envelope)
    if job is not None and message.restart_cnt not in (NO_VAL, job.restart_cnt):
        # A script of a run that was given up, on a node that can be reached again.
        refusal = ESLURM_ALREADY_DONE
    if job is None or refusal:
        _refuse(ctld, envelope, message, refusal)
        return
    try:
        layout = lay_out_step(job, message, most_per_node=ctld.site.conf.max_tasks_per_node)
    except SlurmError as error:
        if error.errno == ESLURM_NODES_BUSY and not message.immediate:
            step_queue.wait(ctld, job, envelope.sender)
        _refuse(ctld, envelope, message, error.errno)
        return
    step_queue.leave(job, envelope.sender)
    step = await _create(ctld, job, message, layout, envelope)
    if step is None:
        _refuse(ctld, envelope, message, ESLURM_INTERCONNECT_FAILURE)
        return
    await _reply(ctld, envelope, step)


def _refuse(
    ctld: Controller, envelope: Envelope, message: RequestJobStepCreate, error_code: int
) -> None:
    if error_code == ESLURM_ACCESS_DENIED:
        ctld.tell_refusal(envelope, error_code)
    ctld.send(envelope.sender, ResponseJobStepCreate(job_id=message.job_id, error_code=error_code))


def _refusal(ctld: Controller, job: JobRecord | None, envelope: Envelope) -> int:
    """Return why a job may have no step now, or 0."""
    if job is None:
        return ESLURM_INVALID_JOB_ID
    if authority.uid_of(ctld, envelope) != job.desc.uid:
        # Not even root may: its tasks would not be the user's.
        return ESLURM_ACCESS_DENIED
    if job.state.finished or job.state.completing:
        return ESLURM_ALREADY_DONE
    if job.state.configuring:
        return ESLURM_PROLOG_RUNNING
    if job.state.base is JobBase.SUSPENDED:
        return ESLURM_DISABLED
    return ESLURM_JOB_PENDING if job.state.base is JobBase.PENDING else SLURM_SUCCESS


async def _create(
    ctld: Controller,
    job: JobRecord,
    request: RequestJobStepCreate,
    layout: StepLayout,
    envelope: Envelope,
) -> StepRecord | None:
    """Make the record of a step; None when its credential could not be built."""
    hooks = ctld.site.hooks
    who = ctld.process
    step_id = job.next_step()
    name = step_name(job.job_id, step_id)
    about = About(job=job.job_id, step=name)
    node_list = job.node_list if len(layout.nodes) == len(job.nodes) else compress(layout.nodes)
    switch_job = await _credential(ctld, request, layout, node_list, about)
    if switch_job is None:
        return None
    check_job = await hooks.call(slurm_ckpt_alloc_job, who, about=about)
    if failed(check_job):
        raise Fatal("checkpoint_alloc_jobinfo failed")
    step = StepRecord(
        job=job,
        step_id=step_id,
        name=request.name,
        layout=layout,
        node_list=node_list,
        about=about,
        srun=envelope.sender,
        switch_job=switch_job,
        check_job=check_job,
        reported=bytearray(len(layout.nodes)),
        cpus_per_task=max(1, request.cpus_per_task),
        exact=request.exclusive or request.cpus_per_task > 1,
        no_kill=request.no_kill,
        overcommit=request.overcommit,
        start_us=ctld.now_us,
        submit_line=request.submit_line,
        suspended_before_us=job.suspended_us,
        ckpt_interval_min=request.ckpt_interval_min,
        ckpt_us=ctld.now_us,
        ckpt_dir=request.ckpt_dir,
    )
    await ctld.saves.note(step)
    job.add_step(step)
    step_limits.watch(ctld, step, request.time_limit_min)
    checkpoint_times.step_started(ctld, step)
    ctld.site.trace.state(
        who,
        "step_state",
        before=None,
        after="RUNNING",
        reason="None",
        job=job.job_id,
        step=name,
    )
    return step


async def _credential(
    ctld: Controller,
    request: RequestJobStepCreate,
    layout: StepLayout,
    node_list: str,
    about: About,
) -> Handle | None:
    """Have a step's credential built; None when it could not be."""
    hooks, who = ctld.site.hooks, ctld.process
    switch_job: Handle = await hooks.call(switch_p_alloc_jobinfo, who, about=about)
    if failed(switch_job):
        raise Fatal("switch_g_alloc_jobinfo failed")
    built = await hooks.call(
        switch_p_build_jobinfo,
        who,
        switch_job,
        node_list,
        layout.num_tasks,
        int(layout.cyclic),
        about=_with_layout(ctld, about, layout, request),
    )
    if failed(built):
        # The half-made credential is completed and released as a whole one would be.
        await _release(ctld, switch_job, NULL, node_list, about)
        return None
    return switch_job


def _with_layout(
    ctld: Controller, about: About, layout: StepLayout, request: RequestJobStepCreate
) -> About:
    """Add what real Slurm's build_jobinfo is given: the layout of the step."""
    if ctld.site.model == "guide":
        return about
    if not (ctld.site.trace.recording or ctld.site.hooks.wants_layout):
        return about
    return attrs.evolve(
        about,
        besides={
            "node_cnt": len(layout.nodes),
            "task_cnt": layout.num_tasks,
            "task_dist": layout.distribution.value,
            # What -m plane=4 says, or how many tasks a node is to have, as it was typed.
            "plane": request.plane_size or request.ntasks_per_node or NO_VAL16,
            "tasks": list(layout.tasks),
            "tids": [list(tids) for tids in layout.tids],
        },
    )


async def _reply(ctld: Controller, envelope: Envelope, step: StepRecord) -> None:
    """Answer with the step; in guide a copy of the credential is packed, then released."""
    hooks = ctld.site.hooks
    who = ctld.process
    about = step.about
    credential = step.switch_job
    buffer = Buf()
    copied = ctld.site.model == "guide"
    if copied:
        copy = await hooks.call(switch_p_copy_jobinfo, who, step.switch_job, about=about)
        credential = NULL if failed(copy) else copy
    await hooks.call(switch_p_pack_jobinfo, who, credential, buffer, about=about)
    step.pack_credential(hooks.packed(who, buffer))
    ctld.send(
        envelope.sender,
        ResponseJobStepCreate(
            job_id=step.job.job_id,
            step_id=step.step_id,
            restart_cnt=step.job.restart_cnt,
            layout=step.layout,
            switch_job=step.packed_job,
            credential=authority.credential(
                ctld,
                step.job,
                step.step_id,
                node_list=step.node_list,
                nodes=step.layout.nodes,
                cores=step.cpus,
            ),
        ),
    )
    if copied:
        await hooks.call(switch_p_free_jobinfo, who, credential, about=about)


async def step_complete(ctld: Controller, envelope: Envelope, message: RequestStepComplete) -> None:
    """Note that a step is over on a range of its nodes; the last one deletes the step.

    Answers ESLURM_INVALID_JOB_ID, or ESLURM_JOB_PENDING if its job waits again. In Slurm:
    `step_partial_comp()` of step_mgr.c.
    """
    job = ctld.jobs.get(message.job_id)
    if job is not None and (denied := authority.refusal(ctld, envelope, job.desc.uid)):
        ctld.answer(envelope, denied)
        return
    step = job.steps.get(message.step_id) if job is not None else None
    if job is None:
        ctld.answer(envelope, ESLURM_INVALID_JOB_ID)
        return
    if step is None:
        waits = job.state.base is JobBase.PENDING and not job.state.completing
        ctld.answer(envelope, ESLURM_JOB_PENDING if waits else ESLURM_INVALID_JOB_ID)
        return
    first, last = message.range_first, min(message.range_last, len(step.reported) - 1)
    if step.report(first, last, message.step_rc, ctld.process.cause):
        ctld.site.trace.join(ctld.process, *step.reports)
        await delete(ctld, step)
    else:
        await partly_over(ctld, step, compress(step.layout.nodes[first : last + 1]))
    ctld.answer(envelope, SLURM_SUCCESS)


async def epilog_complete(ctld: Controller, job: JobRecord, node_name: str) -> None:
    """Let the switch know that a job has left a node, if it wants to know of single nodes.

    Steps that were not reported over on that node are so then.
    """
    if not await _wants_parts(ctld, About(job=job.job_id)):
        return
    for step in list(job.steps.values()):
        nodes = step.layout.nodes
        if node_name not in nodes or step.reported[nodes.index(node_name)]:
            continue
        over = step.end_on(node_name)
        await _partly_complete(ctld, step, node_name)
        if over:
            await delete(ctld, step)


async def partly_over(ctld: Controller, step: StepRecord, node_list: str) -> None:
    """Tell the switch, if it wants to know of single nodes, that a step is over on some."""
    if await _wants_parts(ctld, step.about):
        await _partly_complete(ctld, step, node_list)


async def _wants_parts(ctld: Controller, about: About) -> bool:
    wanted = await ctld.site.hooks.call_besides(switch_p_part_comp, ctld.process, about=about)
    return wanted is True


async def _partly_complete(ctld: Controller, step: StepRecord, node_list: str) -> None:
    await ctld.site.hooks.call_besides(
        switch_p_job_step_part_comp, ctld.process, step.switch_job, node_list, about=step.about
    )


async def delete(ctld: Controller, step: StepRecord) -> None:
    """Delete a step: its switch is told, its records are released, and who waits may ask again."""
    step.job.drop_step(step)
    if ctld.periodic:
        checkpoint_times.forget(ctld, step.job.job_id, step.step_id)
    bookkeeping.step_ended(ctld, step)
    await _release(ctld, step.switch_job, step.check_job, step.node_list, step.about)
    _gone(ctld, step)


async def lose(ctld: Controller, step: StepRecord) -> None:
    """Drop a step whose saved state cannot be read: its switch is told nothing."""
    step.job.drop_step(step)
    if ctld.periodic:
        checkpoint_times.forget(ctld, step.job.job_id, step.step_id)
    bookkeeping.step_ended(ctld, step)
    hooks, who, about = ctld.site.hooks, ctld.process, step.about
    await hooks.call(switch_p_free_jobinfo, who, step.switch_job, about=about)
    await hooks.call(slurm_ckpt_free_job, who, step.check_job, about=about)
    _gone(ctld, step)


def _gone(ctld: Controller, step: StepRecord) -> None:
    """Tell in the trace that a step is no more; who waits for it may ask again."""
    ctld.site.trace.state(
        ctld.process,
        "step_state",
        before="RUNNING",
        after="COMPLETED",
        reason="None",
        job=step.about.job,
        step=step.about.step,
    )
    step_queue.wake(ctld, step.job)


async def _release(
    ctld: Controller, switch_job: Handle, check_job: Handle, node_list: str, about: About
) -> None:
    hooks = ctld.site.hooks
    who = ctld.process
    await hooks.call(switch_p_job_step_complete, who, switch_job, node_list, about=about)
    await hooks.call(switch_p_free_jobinfo, who, switch_job, about=about)
    await hooks.call(slurm_ckpt_free_job, who, check_job, about=about)
