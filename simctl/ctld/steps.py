"""Steps: created with their credential, reported complete node by node, deleted once."""

from typing import TYPE_CHECKING

from simctl.ctld.records import JobRecord, NodeRecord, StepRecord
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
from simctl.wire.buf import Buf
from simctl.wire.errno import (
    ESLURM_ACCESS_DENIED,
    ESLURM_ALREADY_DONE,
    ESLURM_INTERCONNECT_FAILURE,
    ESLURM_INVALID_JOB_ID,
    ESLURM_INVALID_NODE_COUNT,
    ESLURM_INVALID_NODE_NAME,
    ESLURM_JOB_PENDING,
    ESLURM_TOO_MANY_REQUESTED_CPUS,
    SLURM_SUCCESS,
    SlurmError,
)
from simctl.wire.hostlist import compress
from simctl.wire.ids import NO_VAL, step_name
from simctl.wire.layout import StepLayout, lay_out
from simctl.wire.messages import (
    RequestJobStepCreate,
    RequestStepComplete,
    ResponseJobStepCreate,
)
from simctl.wire.states import JobBase

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld


async def job_step_create(
    ctld: "Slurmctld", envelope: Envelope, message: RequestJobStepCreate
) -> None:
    """Create a step: nodes, layout, credential built, checkpoint record, reply."""
    job = ctld.jobs.get(message.job_id)
    refusal = _refusal(ctld, job, envelope)
    if job is not None and message.restart_cnt not in (NO_VAL, job.restart_cnt):
        # A script of a run that was given up, on a node that can be reached again.
        refusal = ESLURM_ALREADY_DONE
    if job is None or refusal:
        _refuse(ctld, envelope, message, refusal)
        return
    try:
        layout = lay_out_step(job, message)
    except SlurmError as error:
        _refuse(ctld, envelope, message, error.errno)
        return
    step = await _create(ctld, job, message, layout, envelope)
    if step is None:
        _refuse(ctld, envelope, message, ESLURM_INTERCONNECT_FAILURE)
        return
    await _reply(ctld, envelope, step)


def _refuse(
    ctld: "Slurmctld", envelope: Envelope, message: RequestJobStepCreate, error_code: int
) -> None:
    ctld.send(envelope.sender, ResponseJobStepCreate(job_id=message.job_id, error_code=error_code))


def _refusal(ctld: "Slurmctld", job: JobRecord | None, envelope: Envelope) -> int:
    """Return why a job may have no step now, or 0."""
    if job is None:
        return ESLURM_INVALID_JOB_ID
    sender = envelope.sender
    if sender is not None and sender.process.uid not in (job.desc.uid, 0):
        return ESLURM_ACCESS_DENIED
    if job.state.finished or job.state.completing:
        return ESLURM_ALREADY_DONE
    return ESLURM_JOB_PENDING if job.state.base is JobBase.PENDING else SLURM_SUCCESS


def step_nodes(job: JobRecord, request: RequestJobStepCreate) -> tuple[NodeRecord, ...]:
    """Return the nodes of a step: those asked for by name, then the job's first others. Pure.

    Raises:
        SlurmError: The job does not have them.
    """
    own = {node.name: node for node in job.nodes}
    if any(name not in own for name in request.nodes):
        raise SlurmError(ESLURM_INVALID_NODE_NAME)
    named = dict.fromkeys(own[name] for name in request.nodes)
    excluded = set(request.excluded)
    rest = [node for node in job.nodes if node.name not in excluded]
    if request.relative != NO_VAL:
        rest = [node for node in job.nodes[request.relative :] if node.name not in excluded]
    count = request.min_nodes or len(named)
    if not count:
        count = len(rest)
    chosen = list(dict.fromkeys((*named, *rest)))[: max(count, len(named))]
    if not chosen or len(chosen) < request.min_nodes:
        raise SlurmError(ESLURM_INVALID_NODE_COUNT)
    return tuple(sorted(chosen, key=lambda node: node.index))


def lay_out_step(job: JobRecord, request: RequestJobStepCreate) -> StepLayout:
    """Return where the tasks of a step run. Pure.

    Raises:
        SlurmError: The job lacks the nodes or the cpus.
    """
    nodes = step_nodes(job, request)
    num_tasks = request.num_tasks or len(nodes)
    if num_tasks < len(nodes):
        nodes = nodes[:num_tasks]
    cpus = tuple(node.cpus for node in nodes)
    need = max(1, request.cpus_per_task)
    if sum(count // need for count in cpus) < num_tasks:
        raise SlurmError(ESLURM_TOO_MANY_REQUESTED_CPUS)
    return lay_out(
        nodes=tuple(node.name for node in nodes),
        cpus_per_node=cpus,
        num_tasks=num_tasks,
        cpus_per_task=need,
        distribution=request.distribution,
        plane_size=request.plane_size,
        ntasks_per_node=request.ntasks_per_node,
    )


async def _create(
    ctld: "Slurmctld",
    job: JobRecord,
    request: RequestJobStepCreate,
    layout: StepLayout,
    envelope: Envelope,
) -> StepRecord | None:
    """Make the record of a step; None when its credential could not be built."""
    hooks = ctld.site.hooks
    who = ctld.process
    step_id = job.next_step_id
    name = step_name(job.job_id, step_id)
    about = About(job=job.job_id, step=name)
    node_list = job.node_list if len(layout.nodes) == len(job.nodes) else compress(layout.nodes)
    job.next_step_id += 1
    switch_job = await hooks.call(switch_p_alloc_jobinfo, who, about=about)
    if failed(switch_job):
        await ctld.die("switch_g_alloc_jobinfo failed")
    built = await hooks.call(
        switch_p_build_jobinfo,
        who,
        switch_job,
        node_list,
        layout.num_tasks,
        int(layout.cyclic),
        about=about,
    )
    if failed(built):
        # The half-made credential is completed and released as a whole one would be.
        await _release(ctld, switch_job, NULL, node_list, about)
        return None
    check_job = await hooks.call(slurm_ckpt_alloc_job, who, about=about)
    if failed(check_job):
        await ctld.die("checkpoint_alloc_jobinfo failed")
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
    )
    job.steps[step_id] = step
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


async def _reply(ctld: "Slurmctld", envelope: Envelope, step: StepRecord) -> None:
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
    ctld.send(
        envelope.sender,
        ResponseJobStepCreate(
            job_id=step.job.job_id,
            step_id=step.step_id,
            layout=step.layout,
            switch_job=buffer.data(),
        ),
    )
    if copied:
        await hooks.call(switch_p_free_jobinfo, who, credential, about=about)


async def step_complete(
    ctld: "Slurmctld", envelope: Envelope, message: RequestStepComplete
) -> None:
    """Take in that a step is over on a range of its nodes; the last one deletes the step."""
    job = ctld.jobs.get(message.job_id)
    step = job.steps.get(message.step_id) if job is not None else None
    if step is None:
        ctld.answer(envelope, ESLURM_INVALID_JOB_ID if job is None else ESLURM_ALREADY_DONE)
        return
    first, last = message.range_first, min(message.range_last, len(step.reported) - 1)
    step.reported[first : last + 1] = b"\1" * (last + 1 - first)
    if all(step.reported):
        await delete(ctld, step)
    ctld.answer(envelope, SLURM_SUCCESS)


async def delete(ctld: "Slurmctld", step: StepRecord) -> None:
    """Delete a step: its switch is told, then its records are released."""
    del step.job.steps[step.step_id]
    await _release(ctld, step.switch_job, step.check_job, step.node_list, step.about)
    ctld.site.trace.state(
        ctld.process,
        "step_state",
        before="RUNNING",
        after="COMPLETED",
        reason="None",
        job=step.about.job,
        step=step.about.step,
    )


async def _release(
    ctld: "Slurmctld", switch_job: Handle, check_job: Handle, node_list: str, about: About
) -> None:
    hooks = ctld.site.hooks
    who = ctld.process
    await hooks.call(switch_p_job_step_complete, who, switch_job, node_list, about=about)
    await hooks.call(switch_p_free_jobinfo, who, switch_job, about=about)
    await hooks.call(slurm_ckpt_free_job, who, check_job, about=about)
