"""When a job's limits are looked at: warnings, time limits, deadlines. Moments, not decisions."""

from simctl.ctld.controller import Controller
from simctl.ctld.state.notices import DeadlineDue, WarningDue
from simctl.ctld.state.records import JobRecord
from simctl.ctld.state.recurring import PERIODIC_US, check_at_or_after
from simctl.wire.errno import ESLURM_INVALID_TIME_LIMIT, SLURM_SUCCESS
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.records import JobDesc
from simctl.wire.states import JobBase


def warning_due_us(limit_us: int, warn_time_s: int, now_us: int) -> int:
    """Return the check at which a job is warned. Pure.

    It is the first from which the limit is no further off than the warning time and the time
    between two checks, so that the warning never comes late.
    """
    early_us = limit_us - warn_time_s * SECOND - PERIODIC_US
    next_us = (now_us // PERIODIC_US + 1) * PERIODIC_US
    return max(check_at_or_after(early_us), next_us)


def refusal(desc: JobDesc, now_s: int) -> int:
    """Return why a job may not be submitted with its deadline, or 0. Pure.

    One that asks for no time limit will have what is left until its deadline.
    """
    if not desc.deadline_s:
        return SLURM_SUCCESS
    runs_s = 0 if desc.time_limit_min in (NO_VAL, INFINITE) else desc.time_limit_min * 60
    if max(now_s, desc.begin_s) + runs_s > desc.deadline_s:
        return ESLURM_INVALID_TIME_LIMIT
    return SLURM_SUCCESS


def last_start_us(deadline_us: int, time_limit_min: int) -> int:
    """Return the last moment at which a job may start and still keep its deadline. Pure."""
    if time_limit_min == INFINITE:
        return deadline_us
    return deadline_us - time_limit_min * 60 * SECOND


def needed_min(job: JobRecord) -> int:
    """Return the minutes a job needs before its deadline; INFINITE if it asks for no limit."""
    return INFINITE if job.desc.time_limit_min == NO_VAL else job.time_limit_min


def until_deadline_min(ctld: Controller, job: JobRecord, limit_min: int) -> int:
    """Return the time limit of a job that starts; if it asked for none, at most what is left."""
    if not job.desc.deadline_s or job.desc.time_limit_min != NO_VAL:
        return limit_min
    left_min = -((ctld.now_us - deadline_us(ctld, job)) // (60 * SECOND))
    return min(limit_min, max(1, left_min))


def deadline_us(ctld: Controller, job: JobRecord) -> int:
    """Return a job's deadline in virtual time."""
    return (job.desc.deadline_s - ctld.site.start_time_s) * SECOND


def watch_warning(ctld: Controller, job: JobRecord) -> None:
    """Have a running job warned before its time limit, if it asked for that and was not yet."""
    desc = job.desc
    if not desc.warn_signal or job.warned or job.limit_us == INFINITE:
        job.watch_warning(None)
        return
    due_us = warning_due_us(job.limit_us, desc.warn_time_s, ctld.now_us)
    job.watch_warning(ctld.mailbox.post_at(due_us, WarningDue(job)))


def watch_deadline(ctld: Controller, job: JobRecord) -> None:
    """Have a job's deadline looked at when it may matter.

    That is a second after its last chance to start, or, once it has started, the first check of
    limits from the deadline on.
    """
    if job.deadline_timer is not None:
        job.watch_deadline(None)
    if not job.desc.deadline_s or job.state.finished or job.state.completing:
        return
    end_us = deadline_us(ctld, job)
    if job.state.base is JobBase.PENDING:
        due_us = last_start_us(end_us, needed_min(job)) + SECOND
    else:
        due_us = check_at_or_after(end_us)
    job.watch_deadline(ctld.mailbox.post_at(max(due_us, ctld.now_us), DeadlineDue(job)))
