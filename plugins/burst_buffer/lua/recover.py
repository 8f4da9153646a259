"""What burst_buffer/lua does with the buffers of its state file as slurmctld starts."""

from collections.abc import Callable
from typing import Final

from simctl.plugin import JobRecord, slurmctld
from simctl.plugins.burst_buffer.lua import files
from simctl.plugins.burst_buffer.lua.books import BbJob, Books
from simctl.plugins.burst_buffer.lua.directives import Request
from simctl.plugins.burst_buffer.lua.stages import Stages, base
from simctl.plugins.burst_buffer.records import BbState

_WAIT_S: Final = 60
"""How long a job waits whose buffer was taken down."""

FindJob = Callable[[JobRecord], BbJob | None]


def recover(books: Books, stages: Stages, find: FindJob) -> None:
    """Go on with each buffer as its job's state calls for; those of no job are taken down.

    A buffer of a job that waits is taken down, and its stage-in begins anew in a minute.
    """
    saved = files.load()
    for job in slurmctld.jobs():
        if base(job) in ("PENDING", "RUNNING", "SUSPENDED") and job.burst_buffer:
            bb = find(job)
            if bb is not None and job.job_id not in saved:
                # It had no buffer when the state was saved last.
                waits = base(job) == "PENDING"
                stages.set_state(bb, BbState.PENDING if waits else BbState.RUNNING)
    for job_id, (state, retry_cnt) in saved.items():
        job = slurmctld.find_job(job_id)
        if job is None:
            bb = BbJob(job_id=job_id, user_id=0, request=Request())
            books.jobs[job_id] = bb
            files.restore(bb, state, retry_cnt)
            stages.tear_down(bb, hurry=False)
            continue
        bb = find(job)
        if bb is not None:
            files.restore(bb, state, retry_cnt)
            bb.create_time = slurmctld.time()
            _go_on(stages, job, bb)


def _go_on(stages: Stages, job: JobRecord, bb: BbJob) -> None:
    if bb.state in (BbState.PENDING, BbState.COMPLETE):
        bb.charged = False
    elif base(job) == "PENDING" and bb.state < BbState.POST_RUN:
        job.begin_time = max(job.begin_time, slurmctld.time() + _WAIT_S)
        stages.tear_down(bb, hurry=True)
    elif bb.state is BbState.PRE_RUN:
        # slurmctld begins it once more.
        stages.set_state(bb, BbState.STAGED_IN)
    elif bb.state in (BbState.POST_RUN, BbState.STAGING_OUT):
        stages.stage_out(bb)
    elif bb.state is BbState.TEARDOWN:
        stages.tear_down(bb, hurry=False)
    else:
        stages.set_state(bb, BbState.RUNNING)
