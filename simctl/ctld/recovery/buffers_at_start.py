"""Burst buffers as slurmctld starts: plugins loaded, their state read, claims made anew."""

from simctl.ctld.controller import Controller, Fatal
from simctl.ctld.jobs import completion, prologs
from simctl.ctld.jobs.staging import gates
from simctl.ctld.port.burst_buffers import BurstBuffers
from simctl.ctld.scheduling import reservations
from simctl.ctld.state.records import JobRecord
from simctl.plugins.points.burst_buffer import bb_p_job_test_post_run
from simctl.wire.states import JobBase


def loads_first(ctld: Controller) -> bool:
    """Return whether the state is loaded before jobs that were about to start begin again."""
    wanted = ctld.site.options.bb_load_first
    return ctld.site.model == "guide" if wanted is None else wanted


async def set_up(ctld: Controller, *, again: bool) -> str:
    """Load the plugins and their state, once jobs are there; return what is fatal, or nothing.

    With *again*, jobs that were about to start claim their burst buffers anew.
    """
    bb = ctld.bb
    if bb is None:
        return ""
    problem = await bb.load()
    if problem:
        return problem
    if gates(ctld):
        ctld.site.hooks.permit(bb_p_job_test_post_run)
    first = loads_first(ctld)
    if first:
        await _load(bb)
    if again:
        for job in list(ctld.jobs.values()):
            await _recover(ctld, bb, job)
    if ctld.site.model == "guide" or _counts_tres(ctld, bb):
        await measure(ctld, bb)
    if again:
        for reservation in ctld.reservations.values():
            await reservations.translate(ctld, reservation)
    if not first:
        await _load(bb)
    return ""


async def _load(bb: BurstBuffers) -> None:
    await bb.load_state(init_config=True)


def _counts_tres(ctld: Controller, bb: BurstBuffers) -> bool:
    """Return whether accounting is to count the space of burst buffers."""
    return any(name in ctld.site.conf.accounting_storage_tres for name in bb.tres_names)


async def measure(ctld: Controller, bb: BurstBuffers) -> None:
    """Find the size of each burst buffer, and in model guide of all together."""
    await bb.measure()
    if ctld.site.model == "guide":
        bb.total_mb = await bb.system_size()


async def count_as_read(ctld: Controller, job: JobRecord) -> None:
    """Have counted what a job asks for that is over and never ran, as it is read back.

    Model modern alone: Slurm counts that, for any caller; of its run there is nothing. The
    first such job has the plugins loaded.
    """
    bb = ctld.bb
    if bb is None or ctld.site.model == "guide" or not never_ran(job):
        return
    if problem := await bb.load():
        raise Fatal(problem)
    await bb.set_tres_cnt(job, locked=True)


def never_ran(job: JobRecord) -> bool:
    """Return whether a job is over, and had no nodes."""
    return job.state.finished and not job.state.staging_out and not job.node_list


async def _recover(ctld: Controller, bb: BurstBuffers, job: JobRecord) -> None:
    """Take a job in after a restart: its counts, and its claim if it was about to be launched."""
    job.drop_launch_holds()
    if never_ran(job) and ctld.site.model == "modern":
        return
    over = job.state.finished and not job.state.staging_out
    if job.tres and (over or job.state.base is JobBase.RUNNING):
        job.takes_of_buffers(await bb.set_tres_cnt(job, locked=False))
    if job.state.base is JobBase.RUNNING and job.state.configuring:
        await _begin_again(ctld, bb, job)


async def _begin_again(ctld: Controller, bb: BurstBuffers, job: JobRecord) -> None:
    """Claim anew the burst buffer of a job that was about to be launched.

    In model guide one that cannot be claimed sends the job back into the queue; in model modern
    that is ignored, and the job is launched.
    """
    if await bb.begin(job) and ctld.site.model == "guide":
        await completion.requeue(ctld, job, unlaunched=True)
    else:
        prologs.launch_if_ready(ctld, job)
