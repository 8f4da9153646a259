"""What a slurmctld that was killed excuses: the stories that it broke off, and those it forgot.

One that gives up, at a fatal error, ends like one that is killed. A rule that follows a job or step
from one request to the next cannot hold over such a death. In model guide it is excused of the jobs
that slurmctld was at in its last moment. In model modern slurmctld loses what it has not saved, and
it is excused of the jobs that it did anything about after its last save; in both a state file that
was damaged costs the jobs that were there before it was read.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.observed import Observed
from simctl.orderings.rules import LEDGER, Broken

CONTINUED: Final = frozenset(
    {
        *(12, 13, 14, 16, 17, 18, 22, 44, 46, 48, 49, 56, 57, 58, 64, 67, 68),
        *(24, 25, 26, 27, 28, 29, 30, 31, 63, 66),
    }
)
"""The rules that follow one job or step over all that slurmctld does about it."""

_KILLED: Final = 9
_PACK: Final = "slurm_ckpt_pack_job"
_PACKS: Final = (_PACK, "switch_p_pack_jobinfo")
_SUBMISSION: Final = 68


@attrs.frozen
class Death:
    """A slurmctld that was killed or gave up, and the jobs it was at."""

    event: Event
    since_us: int
    """When its last moment began, or the call that it died in."""

    jobs: frozenset[Any]
    unsaved: frozenset[Any]
    """The jobs that it did anything about after its last save."""

    def struck(self, found: Broken) -> bool:
        """Return whether it happened in the middle of what a rule has found broken."""
        events = found.events
        if min(event.seq for event in events) > self.event.seq:
            return False
        if any(each.pid == self.event.pid and each.time_us >= self.since_us for each in events):
            return True
        return bool(_jobs_of(events) & self.jobs)


def _jobs_of(events: Iterable[Event]) -> frozenset[Any]:
    """Return the jobs and arrays that events are about."""
    return frozenset(job for each in events for job in (each.job, each.array_job)) - {UNSET}


def deaths(run: Observed) -> list[Death]:
    """Return the slurmctlds of a run that were killed or gave up."""
    return list(_deaths(run))


def _deaths(run: Observed) -> Iterator[Death]:
    for pid in run.pids("slurmctld"):
        end = run.exits.get(pid)
        if end is not None and _breaks_off(run.by_pid[pid], end):
            last = _last_moment(run.by_pid[pid], end)
            since_us = min(event.time_us for event in last)
            yield Death(end, since_us, _jobs_of(last), _jobs_of(_unsaved(run.by_pid[pid])))


def _breaks_off(events: list[Event], end: Event) -> bool:
    """Return whether a slurmctld was killed or gave up; not before it had taken anything up."""
    if end.rc == _KILLED:
        return True
    return bool(end.rc) and any(each.kind == "message" for each in events)


def _last_moment(events: list[Event], end: Event) -> list[Event]:
    """Return what a slurmctld did in the moment of its death, and since its last call began."""
    call = next((event for event in reversed(events) if event.kind == "plugin"), end)
    # Of a call that it did not come back from there is no more than where it began.
    since_us, found = (call if call.phase == "enter" else end).time_us, []
    for event in reversed(events):
        if event.time_us < since_us:
            break
        if event.t0_us is not UNSET:
            since_us = min(since_us, event.t0_us)
        found.append(event)
    return found


def _unsaved(events: list[Event]) -> list[Event]:
    """Return what a slurmctld of model modern did after its last save, as a trace shows it.

    In a save each job is packed; it has ended once slurmctld is seen to go on.
    """
    goes_on = False
    for place in range(len(events) - 1, -1, -1):
        goes_on = goes_on or events[place].kind == "message"
        if goes_on and events[place].name == _PACK:
            return [each for each in events[place:] if each.name not in _PACKS]
    return events


def may_be_older(run: Observed, pid: int, job: Any) -> bool:
    """Return whether a slurmctld may have read an older record of a job than the one before it had.

    In model guide of what it was at in its last moment, in which no message had yet left it.
    """
    first = run.by_pid[pid][0].seq
    before = [death for death in run.once(deaths) if death.event.seq < first]
    forgets = run.terms.model == "modern"
    if any(job in (death.jobs | death.unsaved if forgets else death.jobs) for death in before):
        return True
    return any(
        each.pid == pid or (each.name == "state_save" and each.seq < first)
        for each in run.once(_damages)
    )


def controllers_started_clean(run: Observed) -> dict[int, Event]:
    """Return the slurmctlds that a fault has started clean, by pid."""
    # One that is there already is started by none of them: the last one before it has started it.
    faults = [
        fault
        for fault in run.by_name.get("fault", ())
        if fault.args is not UNSET
        and str(fault.args.get("fault")).startswith(("start slurmctld", "restart slurmctld"))
    ]
    found: dict[int, Event] = {}
    before = 0
    for pid in sorted(run.pids("slurmctld"), key=lambda pid: run.by_pid[pid][0].seq):
        first = run.by_pid[pid][0].seq
        started = [fault for fault in faults if before < fault.seq < first][-1:]
        if started and started[0].args["fault"] == "start slurmctld clean":  # type: ignore[index]
            found[pid] = started[0]
        before = first
    return found


def is_excused(run: Observed, number: int, found: Broken) -> bool:
    """Return whether a rule is broken where a slurmctld that was killed has broken a story off."""
    if number > LEDGER:
        # These are about what a death may cost, and say themselves what it may not.
        return False
    jobs = _jobs_of(found.events)
    if jobs & run.once(_lost):
        # Its id is given away again, maybe to another user's job.
        return True
    if number not in CONTINUED:
        return False
    dead, damaged = run.once(deaths), run.once(_damages)
    if not dead and not damaged and not run.terms.goes_on:
        return False
    if run.terms.goes_on and jobs - run.once(_made_here):
        return True
    came = run.once(_first_of_jobs)
    since = min((came[job] for job in jobs if job in came), default=0)
    if any(event.seq > since for event in damaged):
        return True
    later = [death for death in dead if death.event.seq > since]
    clean = run.once(controllers_started_clean)
    if later and clean:
        return True
    if run.terms.model == "modern" and any(not jobs or jobs & each.unsaved for each in later):
        return True
    before = min(event.seq for event in found.events)
    if number == _SUBMISSION and any(before < death.event.seq for death in dead):
        # The id of a job that no client has heard of is given away again.
        return True
    return any(death.struck(found) for death in dead)


def _lost(run: Observed) -> frozenset[Any]:
    """Return the jobs that a slurmctld has told that it lost."""
    return frozenset(
        job
        for event in run.by_name.get("jobs_lost", ())
        if event.args is not UNSET
        for job in event.args["jobs"]
    )


def _damages(run: Observed) -> list[Event]:
    """Return where a slurmctld found a state file damaged, or could not write it.

    What it lacks is known to no client.
    """
    return [
        event
        for name in ("incomplete_state", "state_save")
        for event in run.by_name.get(name, ())
        if event.args is not UNSET and "file" in event.args
    ]


def _made_here(run: Observed) -> frozenset[Any]:
    """Return the jobs that came in in this run."""
    return frozenset(
        event.job
        for event in run.by_name.get("job_state", ())
        if event.args is not UNSET and event.args.get("from") is None
    )


def _first_of_jobs(run: Observed) -> dict[Any, int]:
    """Return the first event about each job."""
    found: dict[Any, int] = {}
    for event in run.events:
        if event.job is not UNSET:
            found.setdefault(event.job, event.seq)
    return found
