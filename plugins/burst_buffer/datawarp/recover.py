"""What burst_buffer/datawarp makes of the buffers it finds as slurmctld starts.

The appliance says what exists, slurmctld which jobs there are, and the state file how far each one
was. Buffers of jobs that have not started are taken down: they stage in anew a minute later.
Persistent buffers stay, and so do those of jobs that run.
"""

from collections.abc import Callable, Iterable
from typing import Final

from simctl.plugin import JobRecord, slurmctld
from simctl.plugins.burst_buffer.datawarp.answers import Session
from simctl.plugins.burst_buffer.datawarp.stages import Stages
from simctl.plugins.burst_buffer.datawarp.state import Saved, SavedJob
from simctl.plugins.burst_buffer.directives import Request
from simctl.plugins.burst_buffer.records import Alloc, BbJob, BbState, Books

_WAIT_S: Final = 60
"""How long a job waits whose buffer was taken down."""

FindJob = Callable[[JobRecord], BbJob | None]
"""Returns what a job wants of burst buffers, entering it; None if nothing."""


def recover(
    books: Books,
    stages: Stages,
    sessions: Iterable[Session],
    saved: Saved,
    find: FindJob,
    *,
    late: bool,
) -> None:
    """Enter the buffers that exist, and do with each what its job's state calls for.

    *late* tells that slurmctld is up for long, and has claimed its jobs' buffers in vain.
    """
    there = []
    for session in sessions:
        if not session.token.isdecimal():
            books.allocs[session.token] = _named(books, session, saved)
        else:
            there.append(session)
    for job in slurmctld.jobs():
        _take_in(stages, job, saved.jobs.get(job.job_id), find, late=late)
    for session in there:
        job_id = int(session.token)
        alloc = _of_job(books, session, saved.jobs.get(job_id), job_id)
        books.allocs[session.token] = alloc
        _decide(books, stages, alloc, saved.jobs.get(job_id), find)


def _named(books: Books, session: Session, saved: Saved) -> Alloc:
    known = saved.named.get(session.token)
    if known is not None:
        return known
    return Alloc(
        name=session.token,
        user_id=session.owner,
        size=session.size,
        pool=session.pool or books.default_pool,
        create_time=session.created,
    )


def _of_job(books: Books, session: Session, known: SavedJob | None, job_id: int) -> Alloc:
    job = slurmctld.find_job(job_id)
    known = known or SavedJob()
    return Alloc(
        name=session.token,
        job_id=job_id,
        user_id=session.owner,
        size=session.size or known.size,
        pool=session.pool or known.pool or books.default_pool,
        create_time=known.create_time or session.created,
        account=job.account if job is not None else "",
        partition=job.partition if job is not None else "",
    )


def _take_in(
    stages: Stages, job: JobRecord, known: SavedJob | None, find: FindJob, *, late: bool
) -> None:
    """Enter what is known of a job that is there still; who runs has its buffer mounted."""
    base, *flags = job.job_state.split("|")
    if not job.burst_buffer or base not in ("PENDING", "RUNNING", "SUSPENDED"):
        return
    bb = find(job)
    if bb is None:
        return
    if known is not None:
        bb.retry_cnt = known.retry_cnt
        bb.made = set(known.made)
    if base == "PENDING":
        if ": teardown: " in job.state_desc:
            job.state_reason, job.state_desc = "None", ""
        stages.set_state(bb, BbState.PENDING)
    elif "CONFIGURING" in flags and late and slurmctld.model == "guide":
        stages.set_state(bb, BbState.PRE_RUN)
        stages.pre_run(bb, job)
    elif "CONFIGURING" in flags:
        # slurmctld claims it once more.
        stages.set_state(bb, BbState.STAGED_IN)
    else:
        stages.set_state(bb, BbState.RUNNING)


def _decide(
    books: Books, stages: Stages, alloc: Alloc, known: SavedJob | None, find: FindJob
) -> None:
    """Do with a job's buffer what its job's state calls for."""
    job = slurmctld.find_job(alloc.job_id)
    if job is None:
        _abandon(books, stages, alloc)
        return
    base = job.job_state.partition("|")[0]
    if base in ("RUNNING", "SUSPENDED"):
        alloc.state = BbState.STAGED_IN
        return
    was = known.state if known is not None else BbState.PENDING
    resumes = slurmctld.model == "guide"
    if resumes and known is not None and BbState.RUNNING <= was < BbState.TEARDOWN:
        _stage_out_again(stages, alloc, known, find(job))
    elif base == "PENDING":
        _start_over(stages, job, find(job))
    elif resumes:
        # The job is over, and its buffer was about to go.
        bb = find(job)
        if bb is not None:
            stages.tear_down(bb, hurry=known is not None and known.hurry)
    # Real Slurm leaves the buffer of a finished job where it is.


def _abandon(books: Books, stages: Stages, alloc: Alloc) -> None:
    """Take a buffer down whose job slurmctld does not know."""
    bb = BbJob(job_id=alloc.job_id, user_id=alloc.user_id, request=Request(), size=alloc.size)
    books.jobs[alloc.job_id] = bb
    stages.tear_down(bb, hurry=False)


def _start_over(stages: Stages, job: JobRecord, bb: BbJob | None) -> None:
    """Take down the buffer of a job that has not started; it begins anew in a minute."""
    job.begin_time = max(job.begin_time, slurmctld.time() + _WAIT_S)
    if bb is not None:
        stages.tear_down(bb, hurry=True)


def _stage_out_again(stages: Stages, alloc: Alloc, known: SavedJob, bb: BbJob | None) -> None:
    """Go on with a stage-out that slurmctld's end cut short: from post_run on."""
    if bb is None:
        return
    alloc.state = BbState.STAGED_IN
    bb.failed = known.failed
    if known.failed:
        stages.set_state(bb, BbState.STAGING_OUT)
    else:
        stages.stage_out(bb)
