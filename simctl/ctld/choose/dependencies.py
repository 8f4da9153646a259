"""What has become of the jobs that a job waits for."""

from typing import Final

import attrs

from simctl.ctld.choose.dependency_text import words_of
from simctl.ctld.state.records import Dependency, JobArray, JobRecord, Need
from simctl.ctld.state.tables import State
from simctl.wire.states import JobBase


@attrs.frozen
class Verdict:
    """What has become of a dependency; `due_us` is when to look again, if time alone decides."""

    met: bool = False
    never: bool = False
    due_us: int = -1


_MET: Final = Verdict(met=True)


_NEVER: Final = Verdict(never=True)


_WAIT: Final = Verdict()


def look_at(need: Need, now_us: int) -> Verdict:
    """Return whether one need is met, will be, or never can be. Pure."""
    if need.array is not None:
        return _of_array(need, need.array, now_us)
    other = need.job
    if other is None:
        return _MET
    state = other.state
    if need.kind == "after":
        started_us = other.start_us if other.start_us >= 0 else other.end_us
        if started_us < 0:
            return _WAIT
        due_us = started_us + need.delay_us
        return _MET if due_us <= now_us else Verdict(due_us=due_us)
    if not state.finished or state.completing:
        return _WAIT
    if need.kind == "afterburstbuffer":
        return _MET if other.staged_out or not other.burst_buffer else _WAIT
    good = state.base is JobBase.COMPLETED
    if need.kind == "afterany" or good == (need.kind != "afternotok"):
        return _MET
    return _NEVER


def _of_array(need: Need, array: JobArray, now_us: int) -> Verdict:
    """Tell what has become of an array: of one task, of every task, or for afternotok of any."""
    if array.rest is not None and (need.task < 0 or need.task in array.waiting):
        return _WAIT
    found = [look_at(attrs.evolve(need, job=job, array=None), now_us) for job in jobs_meant(need)]
    if need.task >= 0:
        return found[0] if found else _MET
    if any(not each.met and not each.never for each in found):
        return Verdict(due_us=max(each.due_us for each in found))
    if need.kind == "afternotok":
        return _MET if any(each.met for each in found) else _NEVER
    return _NEVER if any(each.never for each in found) else _MET


def verdict(state: State, job: JobRecord, now_us: int) -> Verdict:
    """Tell what has become of a job's dependency."""
    if job.dependency is None:
        return _MET
    found = [
        _singleton(state, job)
        if need.kind == "singleton"
        else look_at(corresponding(need, job), now_us)
        for need in job.dependency.needs
    ]
    if not found:
        return _MET
    if job.dependency.any_will_do:
        met = any(each.met for each in found)
        never = all(each.never for each in found)
    else:
        met = all(each.met for each in found)
        never = any(each.never for each in found)
    due = [each.due_us for each in found if each.due_us >= 0]
    return Verdict(met=met, never=never and not met, due_us=min(due, default=-1))


def told(state: State, job: JobRecord, now_us: int) -> str:
    """Return what is left of a job's dependency, as ``afterok:7(unfulfilled)``."""
    dependency = job.dependency
    if dependency is None:
        return ""
    left = []
    for need in dependency.needs:
        now = (
            _singleton(state, job)
            if need.kind == "singleton"
            else look_at(corresponding(need, job), now_us)
        )
        if not now.met:
            left.append(f"{words_of(need)}({'failed' if now.never else 'unfulfilled'})")
    return ("?" if dependency.any_will_do else ",").join(left)


def corresponding(need: Need, job: JobRecord) -> Need:
    """Return a need, of an array only the task that bears a job's own number where it is meant."""
    if need.kind != "aftercorr" or need.array is None or need.task >= 0:
        return need
    other = need.array.records.get(job.array_task)
    return need if other is None else attrs.evolve(need, job=other, array=None)


def waits_for_tasks(job: JobRecord) -> bool:
    """Return whether the tasks of a job array wait each for a task of another."""
    needs = job.dependency.needs if job.dependency is not None else ()
    return job.array is not None and any(need.kind == "aftercorr" for need in needs)


def _singleton(state: State, job: JobRecord) -> Verdict:
    """Wait for every earlier job of the same name and user."""
    return _WAIT if earlier_namesakes(state, job) else _MET


def earlier_namesakes(state: State, job: JobRecord) -> list[JobRecord]:
    """Return the jobs of the same name and user that are not over, and were there first."""
    twins = state.singletons.get((job.desc.uid, job.name), ())
    return [
        other
        for other in twins
        if other.job_id < job.job_id and not (other.state.finished and not other.state.completing)
    ]


def closes_circle(job: JobRecord, dependency: Dependency | None) -> bool:
    """Return whether a job would wait for itself, by way of others. Pure.

    What a job waits for that is no longer pending is not followed, and a singleton waits for no id.
    """
    seen: set[int] = set()
    todo = [dependency] if dependency is not None else []
    while todo:
        for need in todo.pop().needs:
            for other in jobs_meant(need):
                if other is job:
                    return True
                if other.job_id in seen or other.state.base is not JobBase.PENDING:
                    continue
                seen.add(other.job_id)
                if other.dependency is not None:
                    todo.append(other.dependency)
    return False


def jobs_meant(need: Need) -> list[JobRecord]:
    """Return the records of the jobs that a need is about.

    Tasks that were ended before any of them had a record of its own are one: the array's.
    """
    array = need.array
    if array is None:
        return [need.job] if need.job is not None else []
    if need.task in array.records:
        return [array.records[need.task]]
    whole = array.rest if array.rest is not None else array.first
    left = [whole] if whole is not None and whole.array_task < 0 else []
    return left if need.task >= 0 else [*array.records.values(), *left]
