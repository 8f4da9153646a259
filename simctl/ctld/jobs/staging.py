"""When a job's burst buffer decides: at submission, in scheduler passes, at its start and its end.

Every function here is harmless where no burst buffer plugin is configured. What is asked again and
again is asked on timers of `polls`.
"""

import attrs

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import asking, eligible
from simctl.ctld.port.burst_buffers import DONE
from simctl.ctld.reporting.job_view import stands_for_many
from simctl.ctld.state.records import JobRecord
from simctl.wire.errno import SLURM_SUCCESS
from simctl.wire.ids import SECOND
from simctl.wire.records import JobDesc, SubmittedJob
from simctl.wire.states import PENDING, PENDING_CONFIGURING, JobFlag, Reason

_HORIZON_US = 10 * 3600 * SECOND
"""How far ahead a job's expected start may lie for its data to be staged in."""

_CLEANING_US = 20 * SECOND
"""When a pass looks at a job whose claim was revoked."""


def gates(ctld: Controller) -> bool:
    """Return whether a job stays COMPLETING until test_post_run lets it go."""
    wanted = ctld.site.options.bb_post_run_gate
    return ctld.site.model == "guide" if wanted is None else wanted


# A job comes in.


async def validate(ctld: Controller, desc: JobDesc, uid: int) -> tuple[int, str, str]:
    """Check a submission; return an error number, what is said of it, and what was read."""
    bb = ctld.bb
    if bb is None:
        return SLURM_SUCCESS, "", desc.burst_buffer
    submitted = SubmittedJob(**attrs.asdict(desc, recurse=False))
    rc = await bb.validate(submitted, uid)
    return rc, bb.why, submitted.burst_buffer


async def admit(ctld: Controller, job: JobRecord) -> tuple[int, str]:
    """Check a job that has its id; return why it is refused and what is said of it, or 0."""
    bb = ctld.bb
    if bb is None:
        return SLURM_SUCCESS, ""
    rc = await bb.validate2(job)
    if rc:
        return rc, bb.why
    if ctld.site.model == "guide":
        job.asks_of_buffers(await bb.set_tres_cnt(job, locked=False))
    return SLURM_SUCCESS, ""


async def ask_at_submission(ctld: Controller, job: JobRecord) -> None:
    """Ask about a job that came in and cannot start yet; nothing is staged. A held one is left out.

    About a batch job that only waits for its turn, those ahead of it are asked as well.
    """
    bb = ctld.bb
    if bb is None or not job.priority:
        return
    if job.queued:
        await ask_those_ahead(ctld, job)
    if await bb.test_stage_in(job, test_only=True) != DONE and job.queued:
        job.waits_for_buffer()


async def may_start_now(ctld: Controller, job: JobRecord) -> bool:
    """Ask, for an srun or salloc that waits, whether the job may start; data may be staged in."""
    bb = ctld.bb
    if bb is None:
        return True
    first = await bb.test_stage_in(job, test_only=False)
    if await bb.test_stage_in(job, test_only=first != DONE) == DONE:
        return True
    job.waits_for_buffer()
    return False


async def ask_those_ahead(ctld: Controller, job: JobRecord) -> None:
    """Ask about jobs with a burst buffer that come before a new one, as many as a pass would."""
    bb = ctld.bb
    if bb is None:
        return
    left = ctld.site.conf.scheduler_parameters.default_queue_depth
    for other in list(ctld.jobs.values()):
        if other is job or not other.burst_buffer or other.part is not job.part:
            continue
        waits = other.queued or other.state == PENDING_CONFIGURING
        if waits and other.priority > job.priority and left > 0:
            left -= 1
            await bb.test_stage_in(other, test_only=True)


def waits_for_stage_in(job: JobRecord) -> bool:
    """Return whether a job could not start for its burst buffer when it was asked about last."""
    return job.bb_answer != DONE


# Scheduler passes.


async def before_pass(ctld: Controller) -> None:
    """Have the plugins load their state before a pass of the main loop or of backfill."""
    if ctld.bb is not None:
        tell_cleaning(ctld)
        await ctld.bb.load_state(init_config=False)
        await look_at_dependencies(ctld)


async def may_start(ctld: Controller, job: JobRecord) -> bool:
    """Ask in a main pass whether a job may be given nodes; data may be staged in."""
    bb = ctld.bb
    if bb is None:
        return True
    answer = await bb.test_stage_in(job, test_only=False)
    if not job.queued:
        # The plugin has held it.
        return False
    if answer == DONE:
        return True
    job.waits_for_buffer()
    if job.expected_us < 0 or ctld.site.model == "guide":
        bb.waiting_in_pass += 1
    if job.expected_us < 0:
        job.expect(ctld.now_us)
    return False


async def after_pass(ctld: Controller) -> None:
    """Have space given to the job that is expected to start soonest, if any waits for it."""
    bb = ctld.bb
    if bb is None:
        return
    waiting, bb.waiting_in_pass = bb.waiting_in_pass, 0
    if waiting:
        await bb.try_stage_in()
    asking.watch_waiting(ctld)


async def may_backfill(ctld: Controller, job: JobRecord) -> tuple[bool, int]:
    """Ask, while backfill plans, whether a job may start, and if not, from when on."""
    bb = ctld.bb
    if bb is None:
        return True, ctld.now_us
    answer = await bb.test_stage_in(job, test_only=True)
    if answer == DONE:
        return True, ctld.now_us
    job.waits_for_buffer()
    if answer == 0:
        return False, ctld.now_us
    return False, await bb.est_start_us(job)


async def confirm(ctld: Controller, job: JobRecord) -> bool:
    """Ask about a job that backfill is about to start, as the choice of nodes does."""
    bb = ctld.bb
    if bb is None:
        return True
    if await bb.test_stage_in(job, test_only=False) == DONE:
        return job.queued
    job.waits_for_buffer()
    return False


async def after_backfill(ctld: Controller) -> None:
    """Have space given to the job that is expected to start soonest."""
    if ctld.bb is not None:
        await ctld.bb.try_stage_in()
        asking.watch_waiting(ctld)


def candidates(ctld: Controller) -> list[JobRecord]:
    """Return the jobs whose data may be staged in, the one that is to start soonest first."""
    latest_us = ctld.now_us + _HORIZON_US
    found = [
        job
        for job in ctld.jobs.values()
        if job.queued
        and job.burst_buffer
        and 0 <= job.expected_us <= latest_us
        and not stands_for_many(job)
    ]
    return sorted(found, key=lambda job: (job.expected_us, -job.priority, job.job_id))


def tasks_ahead(ctld: Controller, job: JobRecord) -> int:
    """Return how many more tasks of an array are to be split off before they can start.

    The last keeps the record that they share.
    """
    array = job.array
    if ctld.bb is None or array is None or array.rest is not job or not job.burst_buffer:
        return 0
    there = sum(1 for task in array.records.values() if task.queued)
    most = ctld.site.conf.scheduler_parameters.bb_array_stage_cnt
    return max(0, min(len(array.waiting) - 1, most - there))


async def admit_task(ctld: Controller, task: JobRecord) -> None:
    """Check a task that has been split off; it stays unless the plugin holds it itself."""
    if ctld.bb is not None:
        await ctld.bb.validate2(task)


# A job starts.


async def begin(ctld: Controller, job: JobRecord) -> bool:
    """Claim the burst buffer of a job that has been given nodes; one that cannot is held."""
    bb = ctld.bb
    if bb is None:
        return True
    job.claim_buffer()
    ctld.subjects.know_buffer(job.job_id)
    if await bb.begin(job):
        job.lose_nodes()
        job.hold(job.state_desc, by_user=False)
        eligible.settle(ctld, job)
        return False
    if not ctld.site.hooks.strikes(ctld.process, "select_g_job_begin", job=job.job_id):
        return True
    await bb.revoke_alloc(job)
    job.lose_claim()
    if job.state.configuring and ctld.site.model == "guide":
        ctld.set_job(job, PENDING)
    # Its nodes were lost though they seemed free: the next pass in line is soon enough.
    eligible.settle(ctld, job, asks=False)
    asking.watch_waiting(ctld)
    job.waits_for(Reason.RESOURCES)
    if job.state.configuring:
        # The flag that the plugin has set stays, and no pass looks at the job again.
        ctld.pass_at(ctld.now_us + _CLEANING_US)
    return False


def tell_cleaning(ctld: Controller) -> None:
    """Tell of jobs whose claim was revoked that they are taken for being cleaned up."""
    for job in ctld.jobs.values():
        if job.state == PENDING_CONFIGURING and job.reason == Reason.RESOURCES:
            job.clean_up()


async def started(ctld: Controller, job: JobRecord) -> None:
    """Enter what a job takes of burst buffers, once it is RUNNING."""
    bb = ctld.bb
    if bb is not None:
        job.takes_of_buffers(await bb.set_tres_cnt(job, locked=True))


# A job ends.


async def ended(ctld: Controller, job: JobRecord) -> None:
    """Start the stage-out of a run that is over, or end it all where nothing is to be kept."""
    bb = ctld.bb
    if bb is None:
        return
    asking.stirred(ctld)
    wanted = bool(job.nodes) and not job.hurry
    later = wanted and ctld.site.options.bb_stageout_after_epilog
    job.end_buffer_run(stage_out_due=later)
    if not wanted:
        await bb.cancel(job)
    elif not later:
        await bb.start_stage_out(job)


async def late_stage_out(ctld: Controller, job: JobRecord) -> None:
    """Start the stage-out of a job that has left its nodes, where the scenario wants it so late."""
    if ctld.bb is not None and job.stage_out_due:
        job.start_late_stage_out()
        await ctld.bb.start_stage_out(job)


async def flush(ctld: Controller) -> None:
    """Tell the plugins of jobs that ended while they waited."""
    bb = ctld.bb
    while bb is not None and bb.owed:
        await bb.cancel(bb.owed.pop(0))


async def holds_completing(ctld: Controller, job: JobRecord) -> bool:
    """Return whether a job that its nodes have let go of stays COMPLETING for its burst buffer."""
    bb = ctld.bb
    if bb is None or not gates(ctld) or not job.state.completing:
        return False
    if await bb.test_post_run(job):
        bb.gated.pop(job.job_id, None)
        return False
    bb.gated[job.job_id] = job
    asking.watch_gated(ctld)
    return True


def settle_stage_out(ctld: Controller, job: JobRecord) -> None:
    """Take the flag off a job that is over, if the stage-out ended before its nodes were free."""
    if job.stage_out_over and job.state.staging_out:
        job.stage_out_goes_on()
        ctld.set_job(job, job.state.lacking(JobFlag.STAGE_OUT))


async def may_purge(ctld: Controller, job: JobRecord) -> bool:
    """Ask whether a job that is old enough may be forgotten; if not, it is asked about again."""
    bb = ctld.bb
    if bb is None:
        return True
    if await bb.test_stage_out(job) == DONE:
        bb.kept.pop(job.job_id, None)
        return True
    bb.kept[job.job_id] = job
    asking.watch_kept(ctld)
    return False


async def look_at_dependencies(ctld: Controller) -> None:
    """Ask about the jobs that are over and whose stage-out others wait for."""
    bb = ctld.bb
    if bb is None or not bb.is_awaited:
        return
    bb.is_awaited = False
    for job in eligible.awaited_stage_outs(ctld):
        if not job.state.finished or job.state.completing:
            continue
        if await bb.test_stage_out(job) == DONE:
            job.end_stage_out()
            eligible.changed(ctld, job)
        else:
            bb.is_awaited = True
            asking.watch_kept(ctld)
    bb.is_awaited = bool(eligible.awaited_stage_outs(ctld))
