"""Rules L6 to L9: ids, runs and ends that are there once, whatever slurmctld forgets."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.controller_deaths import controllers_started_clean
from simctl.orderings.ledger.book import UNSAVED_US, may_be_purged, over
from simctl.orderings.observed import Observed, arg, by, sending_of
from simctl.orderings.rules import KEPT, LEDGER, Finding, broken, rule

_SOURCE: Final = "what a client was told has to hold; no recording has a slurmctld that dies"
_EXCEPTIONS: Final = (
    "the first was made by a slurmctld that was killed or gave up, and nobody was told of it, or, "
    "in model modern, less than 6 s earlier; a clean start, or damaged state files, in between"
)
_ANSWERS: Final = ("RESPONSE_SUBMIT_BATCH_JOB", "RESPONSE_RESOURCE_ALLOCATION")


def _lost_between(run: Observed, first: Event, second: Event) -> bool:
    """Return whether slurmctld may have forgotten the first by the time of the second.

    In model guide nothing is forgotten that a client was told of.
    """
    for damage in ("incomplete_state", "state_save"):
        if any(
            arg(each, "file") is not None and each.seq < second.seq
            for each in run.by_name.get(damage, ())
        ):
            return True
    if any(first.seq < each.seq for each in run.once(controllers_started_clean).values()):
        return True
    for pid in run.pids("slurmctld"):
        end = run.exits.get(pid)
        if end is None or not end.rc or not first.seq < end.seq < second.seq:
            continue
        modern = run.terms.model == "modern"
        if modern and first.time_us > end.time_us - UNSAVED_US:
            return True
    return False


@rule(
    LEDGER + 6,
    "job-id-given-once",
    says="no two clients are told of one job id as theirs",
    key="a job id",
    exceptions=_EXCEPTIONS,
    source=_SOURCE,
)
def job_id_given_once(run: Observed) -> Iterator[Finding]:
    """Compare who has got an id with who got it before."""
    answers = [
        event
        for name in _ANSWERS
        for event in run.received(name)
        if event.job and event.role != "slurmctld"
    ]
    for events in by(answers, "job").values():
        yield _once(run, events, f"job {events[0].job}", "another client has it too")


@rule(
    LEDGER + 7,
    "step-id-given-once",
    says="no two steps of one run of a job are told one step id",
    key="a step id",
    exceptions=f"the job began anew in between; {_EXCEPTIONS}",
    source=_SOURCE,
)
def step_id_given_once(run: Observed) -> Iterator[Finding]:
    """Compare the sruns that were told of one step."""
    answers = [
        event
        for event in run.received("RESPONSE_JOB_STEP_CREATE")
        if event.step is not UNSET and not arg(event, "error_code")
    ]
    for events in by(answers, "step").values():
        yield _once(run, events, f"step {events[0].step}", "another srun has it too")


def _once(run: Observed, events: Sequence[Event], group: str, what: str) -> Finding:
    for first, second in pairwise(events):
        if first.pid == second.pid:
            continue
        # A step id is of one run of its job; a job id is given again once the job is forgotten.
        is_free = _began_anew if first.step is not UNSET else _is_forgotten
        if is_free(run, first, second):
            continue
        if not _lost_between(run, sending_of(run, first) or first, second):
            return broken(group, what, first, second)
    return KEPT


def _is_forgotten(run: Observed, first: Event, second: Event) -> bool:
    """Return whether the job of the first was purged before the id was given to the second."""
    made = [
        each
        for each in run.job_states.get(int(str(first.job)), ())
        if first.seq < each.seq < second.seq and arg(each, "from") is None
    ]
    return bool(made) and may_be_purged(run, first.job, made[0])


def _began_anew(run: Observed, first: Event, second: Event) -> bool:
    """Return whether a job went back into the queue between two events."""
    return any(
        first.seq < each.seq < second.seq and str(arg(each, "to")).startswith("PENDING")
        for each in run.job_states.get(int(str(first.job)), ())
    )


@rule(
    LEDGER + 8,
    "run-begins-once",
    says="a batch script of one run of a job is started once: it runs again only as another run, "
    "after a requeue",
    key="a job and how often it was requeued",
    exceptions=_EXCEPTIONS,
    source=_SOURCE,
)
def run_begins_once(run: Observed) -> Iterator[Finding]:
    """Count the step daemons of batch scripts that have executed anything."""
    launches = by(run.received("REQUEST_BATCH_JOB_LAUNCH"), "job", "node")
    begun: dict[Any, tuple[Event, Event]] = {}
    for daemon in run.daemons.values() if launches else ():
        first = next((each for each in daemon.events if each.name == "exec"), None)
        if not daemon.batch or first is None:
            continue
        told = [e for e in launches[daemon.job, daemon.node] if e.seq < daemon.events[0].seq]
        if not told:
            continue
        key = daemon.job, arg(told[-1], "restart_cnt")
        sending, before = begun.setdefault(key, (sending_of(run, told[-1]) or told[-1], first))
        if before is first:
            yield KEPT
        elif not _began_anew(run, before, first) and not _lost_between(run, sending, first):
            yield broken(f"job {daemon.job}", "its script runs twice", before, first)


@rule(
    LEDGER + 9,
    "run-ends-once",
    says="a run of a job ends once",
    key="a job",
    exceptions=f"the job went back into the queue in between; nobody was told of the first end "
    f"before slurmctld died; {_EXCEPTIONS}",
    source=_SOURCE,
)
def run_ends_once(run: Observed) -> Iterator[Finding]:
    """Look for an end of what has ended, with nothing that began in between."""
    for job, changes in run.job_states.items():
        ends = [
            each
            for each in changes
            if over(str(arg(each, "to"))) and not over(str(arg(each, "from")))
        ]
        for first, second in pairwise(ends):
            if _began_anew(run, first, second) or _lost_between(run, first, second):
                continue
            if _was_told(run, first, second):
                yield broken(f"job {job}", "it has ended before", first, second)
        if ends:
            yield KEPT


def _was_told(run: Observed, end: Event, second: Event) -> bool:
    """Return whether a client or node got a message about a job that left after its end."""
    for event in run.events:
        if event.seq >= second.seq:
            break
        if event.job != end.job or event.phase != "receive" or event.role == "slurmctld":
            continue
        sending = sending_of(run, event)
        if sending is not None and sending.pid == end.pid and sending.seq > end.seq:
            return True
    return False
