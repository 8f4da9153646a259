"""The start of a job: nodes taken, RUNNING, and its first node or srun told."""

import attrs

from simctl.ctld import authority
from simctl.ctld.checkpoints import checkpoint_times
from simctl.ctld.choose.select import limit_in
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import arrays, completion, controller_scripts, eligible, limits, staging
from simctl.ctld.reporting import bookkeeping
from simctl.ctld.state.records import JobRecord, PartRecord
from simctl.plugins.hooks import NonsenseError, check_environment
from simctl.wire.conf.slurm_conf import can_checkpoint
from simctl.wire.ids import INFINITE, NO_VAL, SLURM_BATCH_SCRIPT
from simctl.wire.messages import RequestBatchJobLaunch, ResponseResourceAllocation
from simctl.wire.records import JobDesc
from simctl.wire.resources import Share
from simctl.wire.states import CONFIGURING, RUNNING, JobBase


async def start(
    ctld: Controller, job: JobRecord, part: PartRecord, shares: tuple[Share, ...]
) -> bool:
    """Start a job in a partition on *shares* of nodes that have the room.

    One whose burst buffer cannot be claimed does not start, and waits or is held.
    """
    nodes = tuple([ctld.nodes[share.index] for share in shares])
    job.take_nodes(part, nodes, shares, ctld.now_us)
    if job.awaited_ends:
        ctld.subjects.know(job.job_id, *job.awaited_ends)
    if ctld.bb is not None and not await staging.begin(ctld, job):
        return False
    # Time may have passed in a plugin.
    limit_min = limits.until_deadline_min(ctld, job, limit_in(job, part))
    job.begin_run(ctld.now_us, limit_min)
    bookkeeping.started(ctld, job)
    ctld.start_limit(job)
    if job.limit_us != INFINITE:
        limits.watch_warning(ctld, job)
    arrays.started(job)
    ctld.set_job(job, RUNNING)
    limits.watch_deadline(ctld, job)
    checkpoint_times.job_started(ctld, job)
    eligible.changed(ctld, job)
    occupy(ctld, job)
    await staging.started(ctld, job)
    conf = ctld.site.conf
    if conf.prolog_slurmctld or conf.prolog_flags or job.prolog_running:
        controller_scripts.configure(ctld, job)
    else:
        tell(ctld, job)
    return True


async def run_without_nodes(ctld: Controller, job: JobRecord) -> None:
    """Run a job that asks for no node: it begins, and as soon as nothing holds it back it is over.

    No script of it runs. As it never had nodes, its end cancels what its burst buffer still does.
    """
    job.begin_run(ctld.now_us, job.time_limit_min)
    job.looked_at(ctld.now_us, "Main")
    bookkeeping.started(ctld, job)
    ctld.set_job(job, RUNNING)
    eligible.changed(ctld, job)
    if ctld.bb is not None and await ctld.bb.begin(job):
        await completion.end_unlaunched(ctld, job, JobBase.FAILED)
    elif job.prolog_running:
        ctld.set_job(job, CONFIGURING)
    else:
        await completion.end_unlaunched(ctld, job, JobBase.COMPLETED)


def tell(ctld: Controller, job: JobRecord) -> None:
    """Have a job run: tell the first node its script, or srun its nodes."""
    if job.batch:
        _launch_batch(ctld, job)
    else:
        ctld.send(
            job.client,
            ResponseResourceAllocation(
                job_id=job.job_id,
                error_code=0,
                node_list=job.node_list,
                cpus_per_node=job.cpus,
                partition=job.part.name,
                environment=_environment(ctld, job),
                text=job.told,
            ),
        )


def occupy(ctld: Controller, job: JobRecord) -> None:
    """Give a job its shares of its nodes."""
    for node in job.nodes:
        share = job.shares[node.index]
        if share.gres:
            node.give_gpus(job, share)
        node.take(job, share)
        ctld.planned_nodes &= ~(1 << node.index)
        ctld.set_node(node, node.working_base(), node.flags)


def _launch_batch(ctld: Controller, job: JobRecord) -> None:
    # Noted before it is sent: a slurmctld that finds this in saved state launches it no more.
    job.launch(ctld.now_us)
    nodes = tuple([node.name for node in job.nodes])
    credential = authority.credential(
        ctld, job, SLURM_BATCH_SCRIPT, node_list=job.node_list, nodes=nodes, cores=job.cpus
    )
    sent = ctld.send(
        ctld.address(job.nodes[0]),
        RequestBatchJobLaunch(
            credential=credential,
            job_id=job.job_id,
            job_desc=_told_of(ctld, job),
            node_list=job.node_list,
            nodes=nodes,
            cpus_per_node=job.cpus,
            restart_cnt=job.restart_cnt,
            restarts=job.restarts,
            array_job_id=job.array.job_id if job.array is not None else 0,
            array_task_id=job.array_task if job.array is not None else NO_VAL,
            memory_per_node_mb=max(0, job.demand.memory_per_node_mb),
            memory_per_cpu_mb=job.demand.memory_per_cpu_mb,
            gpus=job.gpus.get(job.nodes[0].index, ()),
            restart_dir=job.restart_dir,
            ckpt_dir=job.ckpt_dir if can_checkpoint(ctld.site.conf) else "",
        ),
    )
    if not sent:
        job.launch_not_sent()


def _told_of(ctld: Controller, job: JobRecord) -> JobDesc:
    """Return a job's description, with what burst buffers add to its environment."""
    if not job.env_sup:
        return job.desc
    added = _environment(ctld, job)
    return attrs.evolve(job.desc, environment={**job.desc.environment, **added})


def _environment(ctld: Controller, job: JobRecord) -> dict[str, str]:
    """Return the variables that plugins add to a job's environment; none if they cannot be."""
    try:
        check_environment(job.env_sup)
    except NonsenseError as error:
        ctld.site.trace.complain(ctld.process, "env_sup", f"of job {job.job_id}: {error}")
        return {}
    return job.env_sup
