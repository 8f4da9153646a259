"""What happens when a job is to be warned, or its deadline is there."""

from typing import Any

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import limits
from simctl.ctld.jobs.completion import clients, end_job
from simctl.ctld.jobs.pending import end_waiting
from simctl.ctld.jobs.signals import signal_job
from simctl.ctld.state import notices
from simctl.ctld.state.records import JobRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.messages import RequestKillJob, RequestKillTimelimit, SrunTimeout
from simctl.wire.states import DONE, JobBase, Reason


async def warning_due(ctld: Controller, _: Envelope, message: notices.WarningDue) -> None:
    """Send a job the signal it asked for before its limit, once: to its steps or to its script."""
    job = message.job
    if job.state.base is not JobBase.RUNNING:
        return
    job.warn()
    desc = job.desc
    signal_job(
        ctld,
        job,
        RequestKillJob(job_id=job.job_id, signal=desc.warn_signal, batch_only=desc.warn_batch),
    )


async def deadline_due(ctld: Controller, _: Envelope, message: notices.DeadlineDue) -> None:
    """End a job that can no longer keep its deadline; a suspended one once it is resumed."""
    job = message.job
    end_us = limits.deadline_us(ctld, job)
    if job.state.base is JobBase.PENDING:
        last_us = limits.last_start_us(end_us, limits.needed_min(job))
        if ctld.now_us < last_us + SECOND:
            limits.watch_deadline(ctld, job)
        elif not job.state.completing:
            over = DONE[JobBase.DEADLINE]
            await end_waiting(ctld, job, over, Reason.DEADLINE, exit_code=1)
    elif job.state.base is JobBase.RUNNING:
        for srun in clients(job):
            ctld.send(srun, SrunTimeout(job_id=job.job_id))
        await end_job(ctld, job, JobBase.DEADLINE, Reason.DEADLINE, request=RequestKillTimelimit)


async def limit_due(ctld: Controller, _: Envelope, message: Any) -> None:
    """Warn the sruns of a job at the check before its limit; end it at the first check after."""
    job: JobRecord = message.job
    if job.restart_cnt != message.run or job.state.base is not JobBase.RUNNING:
        return
    if job.deadline_timer is not None and ctld.now_us >= limits.deadline_us(ctld, job):
        # Its deadline is there as well, and ends it.
        return
    for srun in clients(job):
        ctld.send(srun, SrunTimeout(job_id=job.job_id))
    over_us = ctld.site.conf.over_time_limit_min * 60 * SECOND
    if job.limit_us != INFINITE and ctld.now_us >= job.limit_us + over_us:
        await end_job(ctld, job, JobBase.TIMEOUT, Reason.TIME_LIMIT, request=RequestKillTimelimit)
        return
    ctld.watch_limit(job)
