"""Whether a pending job may be looked at: holds, dependencies, begin times; then its queue."""

from typing import Final

from simctl.ctld.choose.dependencies import (
    Verdict,
    corresponding,
    earlier_namesakes,
    jobs_meant,
    verdict,
)
from simctl.ctld.controller import Controller
from simctl.ctld.state import queue
from simctl.ctld.state.records import Dependency, JobRecord
from simctl.wire.ids import NO_VAL
from simctl.wire.states import (
    PENDING_CONFIGURING,
    RUNNING_STOPPED,
    JobBase,
    JobFlag,
    Reason,
)


def settle(ctld: Controller, job: JobRecord, *, asks: bool = True) -> None:
    """Put a pending job where it belongs: aside with a reason, or into its queue.

    One that *asks* has a pass run; a job that was just tried need not.
    """
    if job.state.base is not JobBase.PENDING or job.state.flags & ~JobFlag.SPECIAL_EXIT:
        return
    now_us = ctld.now_us
    now = verdict(ctld, job, now_us)
    reason = obstacle(ctld, job, now)
    if reason:
        killed = reason == Reason.DEPENDENCY_NEVER and _is_killed(ctld, job)
        job.waits_for(Reason.DEPENDENCY if killed else reason)
        if killed:
            ctld.moments.never_eligible(ctld, job)
            return
        if job.queued:
            queue.take_from_queue(job)
            ctld.request_pass()
        due_us = job.begin_us if reason == Reason.BEGIN_TIME else now.due_us
        if due_us > now_us and reason in (Reason.BEGIN_TIME, Reason.DEPENDENCY):
            ctld.begin_at(due_us, job)
        return
    if not job.queued:
        if job.dependency is not None:
            unregister(ctld, job)
        job.become_eligible(now_us, _what_was_waited_for(ctld, job))
        queue.enqueue(ctld, job)
        if asks:
            ctld.request_pass()


def _what_was_waited_for(ctld: Controller, job: JobRecord) -> tuple[int, ...]:
    """Return the causes of what a job could not have started without: the ends of other jobs.

    Where one of several will do, it might have been another, and of a singleton's kind others.
    """
    dependency = job.dependency
    if dependency is None or dependency.any_will_do:
        return job.awaited_ends
    ends: list[int] = list(job.awaited_ends)
    for need in dependency.needs:
        exact = corresponding(need, job)
        if need.kind in _ENDS and (exact.array is None or need.kind != "afternotok"):
            ends += [ctld.subjects.known(other.job_id) for other in jobs_meant(exact)]
    return tuple(ends)


_ENDS: Final = ("afterany", "afterok", "afternotok", "aftercorr")


def _is_killed(ctld: Controller, job: JobRecord) -> bool:
    """Return whether a job ends whose dependency can never be met: as it asked, or all do."""
    asked = job.desc.kill_on_invalid_dep
    if asked != NO_VAL:
        return bool(asked)
    return ctld.site.conf.scheduler_parameters.kill_invalid_depend


def obstacle(ctld: Controller, job: JobRecord, dependency: Verdict) -> str:
    """Return why a job may not be looked at, or nothing."""
    if not job.priority:
        return job.hold_text or (Reason.HELD_USER if job.held_by_user else Reason.HELD_ADMIN)
    if job.lasting_reason:
        return job.lasting_reason
    array = job.array
    if array is not None and 0 < array.limit <= array.running:
        return Reason.ARRAY_TASK_LIMIT
    if dependency.never:
        return Reason.DEPENDENCY_NEVER
    if not dependency.met:
        return Reason.DEPENDENCY
    if job.begin_us > ctld.now_us:
        return Reason.BEGIN_TIME
    return ""


def changed(ctld: Controller, job: JobRecord) -> None:
    """Look again at the jobs that wait for *job*, which has started or ended."""
    # A task of an array may be meant by itself as well.
    keys = {job.job_id: None} | ({job.array.job_id: None} if job.array is not None else {})
    for key in keys:
        for other in list(ctld.dependents.get(key, ())):
            settle(ctld, other)
    if job.state.finished and not job.state.completing:
        twins = ctld.singletons.get((job.desc.uid, job.name))
        if twins is not None:
            for other in list(twins):
                settle(ctld, other)
        if job.job_id not in ctld.arrays and (job.staged_out or not job.burst_buffer):
            ctld.dependents.pop(job.job_id, None)


def depend(ctld: Controller, job: JobRecord, dependency: Dependency | None) -> None:
    """Have a job wait for other jobs than before."""
    unregister(ctld, job)
    job.depend_on(dependency)
    register(ctld, job)


def register(ctld: Controller, job: JobRecord) -> None:
    """Have a job told when what it waits for changes."""
    if job.dependency is None:
        return
    for need in job.dependency.needs:
        if need.kind == "afterburstbuffer" and ctld.bb is not None:
            ctld.bb.is_awaited = True
        if need.array is not None:
            ctld.dependents.setdefault(need.array.job_id, []).append(job)
        elif need.job is not None:
            ctld.dependents.setdefault(need.job.job_id, []).append(job)
        elif need.kind == "singleton":
            _count_namesakes(ctld, job)


def unregister(ctld: Controller, job: JobRecord) -> None:
    """Tell a job no more of what it waits for.

    What that is may be gone, as after a restart; then nothing else takes it from the lists.
    """
    for need in job.dependency.needs if job.dependency is not None else ():
        of = need.array if need.array is not None else need.job
        if of is None or job not in ctld.dependents.get(of.job_id, ()):
            continue
        ctld.dependents[of.job_id].remove(job)
        if not ctld.dependents[of.job_id]:
            del ctld.dependents[of.job_id]


def awaited_stage_outs(ctld: Controller) -> list[JobRecord]:
    """Return the jobs whose stage-out others wait for, and which is not known to be over."""
    found: dict[int, JobRecord] = {}
    for waiting in ctld.dependents.values():
        for job in waiting:
            for need in job.dependency.needs if job.dependency is not None else ():
                if need.kind == "afterburstbuffer":
                    found |= {each.job_id: each for each in jobs_meant(need)}
    return [job for job in found.values() if job.burst_buffer and not job.staged_out]


def _count_namesakes(ctld: Controller, job: JobRecord) -> None:
    """Count from now on every job of a job's name and user."""
    key = (job.desc.uid, job.name)
    if key not in ctld.singletons:
        ctld.singletons[key] = [
            other
            for other in ctld.jobs.values()
            if (other.desc.uid, other.name) == key
            and (other.state.completing or not other.state.finished)
        ]


def rename(ctld: Controller, job: JobRecord, name: str) -> None:
    """Give a job another name: singletons of the old one go by it no more, those of the new do."""
    before = list(ctld.singletons.get((job.desc.uid, job.name), ()))
    forget(ctld, job)
    job.rename(name)
    note_name(ctld, job)
    if job.dependency is not None and any(n.kind == "singleton" for n in job.dependency.needs):
        _count_namesakes(ctld, job)
    for other in before:
        if other is not job:
            settle(ctld, other)


def note_name(ctld: Controller, job: JobRecord) -> None:
    """Count a new job among those of its name and user, if a singleton has asked for them."""
    twins = ctld.singletons.get((job.desc.uid, job.name))
    if twins is not None and job not in twins:
        twins.append(job)


def forget(ctld: Controller, job: JobRecord) -> None:
    """Forget a job that is purged."""
    twins = ctld.singletons.get((job.desc.uid, job.name))
    if twins is not None and job in twins:
        twins.remove(job)
    if job.job_id not in ctld.arrays:
        # A job may have asked for it when it was over already.
        ctld.dependents.pop(job.job_id, None)
    unregister(ctld, job)


def is_stuck(ctld: Controller, job: JobRecord) -> bool:
    """Return whether a job waits for a person: held, unfit, suspended, or behind such a job."""
    seen: set[int] = set()
    todo = [job]
    while todo:
        each = todo.pop()
        if each.job_id in seen:
            continue
        seen.add(each.job_id)
        if _waits_for_person(each):
            return True
        if each.state.base is JobBase.PENDING and each.reason == Reason.DEPENDENCY:
            todo += _waited_for(ctld, each)
    return False


def _waits_for_person(job: JobRecord) -> bool:
    """Return whether a person has to change a job's own state, and not that of another job."""
    if job.state.base is JobBase.SUSPENDED or job.state == RUNNING_STOPPED:
        return True
    if job.state == PENDING_CONFIGURING or (job.queued and job.bb_answer < 0):
        # Its burst buffer has no space for it: another buffer has to go, or the job has to.
        return True
    if job.state.base is not JobBase.PENDING or job.state.flags & ~JobFlag.SPECIAL_EXIT:
        return False
    closed = not any(part.state.starts_jobs for part in job.parts)
    if closed or job.lasting_reason or not job.priority or job.reason == Reason.DEPENDENCY_NEVER:
        return True
    if job.reason == Reason.ARRAY_TASK_LIMIT and job.array is not None:
        running = [task for task in job.array.records.values() if task.nodes]
        return all(_waits_for_person(task) for task in running if not task.state.finished)
    return job.queued and _waits_for_stopped(job)


def _waited_for(ctld: Controller, job: JobRecord) -> list[JobRecord]:
    """Return the jobs that a job's dependency is about."""
    found: list[JobRecord] = []
    for need in job.dependency.needs if job.dependency is not None else ():
        found += earlier_namesakes(ctld, job) if need.kind == "singleton" else jobs_meant(need)
    return found


def _waits_for_stopped(job: JobRecord) -> bool:
    """Return whether nodes a job waits for are held by one that a user stopped with a signal."""
    return any(
        other.state == RUNNING_STOPPED
        for part in job.parts
        for node in part.nodes
        for other in node.jobs.values()
    )
