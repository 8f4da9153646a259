"""Who was told what by slurmctld, and what each slurmctld that starts goes on with."""

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.controller_deaths import controllers_started_clean
from simctl.orderings.observed import Observed, arg, sending_of
from simctl.wire.errno import ESLURM_INVALID_JOB_ID
from simctl.wire.ids import INFINITE, SECOND

UNSAVED_US: Final = 6_000_000
"""How long before its death slurmctld of model modern may have last saved: 5 s, and the save."""

MIN_JOB_AGE_S: Final = 300
_RC: Final = "RESPONSE_SLURM_RC"
_ENDS: Final = (
    *("CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"),
    *("BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
)


@attrs.frozen(kw_only=True)
class Start:
    """A slurmctld that goes on with what another has left."""

    pid: int
    books_seq: int
    """Since when slurmctlds know of each other: the last clean start, or 0."""

    since_seq: int
    """When the slurmctld before it began; 0 for the first."""

    death: Event
    """The exit of the one before it."""

    sure_us: int
    """Until when that one has saved whatever it had done."""

    jobs: Mapping[Any, Event]
    """What it has read of each job."""

    rest: Event
    """What it has read of nodes, partitions and reservations."""


@attrs.frozen(kw_only=True)
class Told:
    """A change of a record that others were told of, and what came of it later."""

    event: Event
    """The change."""

    by: Event
    """The message that told of it, as it arrived."""

    state: str
    later: frozenset[str]
    """The states that it had afterwards, and that no client need have been told of."""


@attrs.frozen(kw_only=True)
class Asked:
    """A request to change something, in the order in which slurmctld took them in."""

    receipt: Event
    answered: Event | None
    """The answer that it was done, as it arrived, where that has to be kept."""


def ended_us(run: Observed, job: Any, before: Event) -> int | None:
    """Return since when a job was over at an event, or None."""
    since_us = None
    for change in run.job_states.get(job, ()):
        if change.seq >= before.seq:
            break
        if not over(str(arg(change, "to"))):
            since_us = None
        elif since_us is None:
            since_us = change.time_us
    return since_us


def may_be_purged(run: Observed, job: Any, at: Event) -> bool:
    """Return whether a job was over for so long that slurmctld forgets it."""
    age_us = int(run.terms.conf.get("min_job_age_s", MIN_JOB_AGE_S)) * SECOND
    since_us = ended_us(run, job, at)
    return since_us is not None and at.time_us >= since_us + age_us


def over(state: str) -> bool:
    """Return whether a job or step will do nothing more in a state."""
    return state.partition("|")[0] in _ENDS


def starts(run: Observed) -> Sequence[Start]:
    """Return each slurmctld that has read what another of the run has left.

    None where it is not known what was there: behind damaged files, and files that could not be
    written. After a clean start the books begin anew.
    """
    return run.once(_starts)


def _starts(run: Observed) -> list[Start]:
    rests = [each for each in run.by_name.get("restored", ()) if each.job is UNSET]
    if not rests:
        return []
    clean = run.once(controllers_started_clean)
    since = books = 0
    found: list[Start] = []
    damaged = min((each.seq for each in _damages(run)), default=None)
    before: Event | None = None
    for pid in run.pids("slurmctld"):
        began = run.by_pid[pid][0].seq
        rest = next((each for each in rests if each.pid == pid), None)
        if pid in clean:
            since = books = began
        elif rest is not None:
            if before is not None and (damaged is None or rest.seq < damaged):
                found.append(_start(run, books, since, before, rest))
            since = began
        before = run.exits.get(pid, before)
    return found


def _start(run: Observed, books: int, since: int, death: Event, rest: Event) -> Start:
    stopped = not death.rc or run.terms.model == "guide" or not _saves(run)
    jobs = {
        each.job: each
        for each in run.by_name["restored"]
        if each.pid == rest.pid and each.job is not UNSET
    }
    return Start(
        pid=int(str(rest.pid)),
        books_seq=books,
        since_seq=since,
        death=death,
        sure_us=death.time_us if stopped else _saved_us(run, death),
        jobs=jobs,
        rest=rest,
    )


def _saved_us(run: Observed, death: Event) -> int:
    """Return until when slurmctld has certainly saved: no save is made during a plugin call."""
    free_us = death.time_us
    for began_us, ended_us in sorted(_held(run, death), key=lambda each: each[1], reverse=True):
        if ended_us >= free_us:
            free_us = min(free_us, began_us)
    return free_us - UNSAVED_US


def _held(run: Observed, death: Event) -> Iterator[tuple[int, int]]:
    """Give the times of those plugin calls of a slurmctld that took any."""
    own = [each for each in run.by_pid[int(str(death.pid))] if each.kind == "plugin"]
    ends = {each.enter: each.time_us for each in own if each.enter is not UNSET}
    for each in own:
        if each.phase == "enter":
            ended_us = ends.get(each.seq, death.time_us)
            if ended_us > each.time_us:
                yield each.time_us, ended_us


def _saves(run: Observed) -> bool:
    """Return whether slurmctld saves while it runs; else it dies as if it had just done so."""
    return all(arg(each, "file") is not None for each in run.by_name.get("state_save", ()))


def _damages(run: Observed) -> Iterator[Event]:
    for name in ("incomplete_state", "state_save"):
        for event in run.by_name.get(name, ()):
            if arg(event, "file") is not None:
                yield event


_UNKNOWN: Final = (ESLURM_INVALID_JOB_ID, "ESLURM_INVALID_JOB_ID")


def _arrived(run: Observed) -> Mapping[Any, Sequence[tuple[Event, Event]]]:
    """Return what slurmctld sent about each job or step and others got: sendings, receipts."""
    found: dict[Any, list[tuple[Event, Event]]] = defaultdict(list)
    for event in run.events:
        if event.phase != "receive" or event.role == "slurmctld" or event.job is UNSET:
            continue
        if arg(event, "return_code") in _UNKNOWN:
            # Who is told that there is no such job is told nothing of it.
            continue
        sending = sending_of(run, event)
        if sending is not None and sending.role == "slurmctld":
            found[event.job].append((sending, event))
            if event.step is not UNSET:
                found[event.step].append((sending, event))
    for pairs in found.values():
        pairs.sort(key=lambda pair: pair[0].seq)
    return found


def _changes(run: Observed) -> Mapping[Any, Sequence[Event]]:
    found: dict[Any, list[Event]] = defaultdict(list)
    events: Iterable[Event] = (
        *run.by_name.get("job_state", ()),
        *run.by_name.get("step_state", ()),
        *(each for each in run.by_name.get("restored", ()) if each.job is not UNSET),
    )
    for event in sorted(events, key=lambda each: each.seq):
        found[event.step if event.name == "step_state" else event.job].append(event)
        for step in arg(event, "steps") or ():
            found[step].append(event)
    return found


def told(run: Observed, start: Start) -> Iterator[tuple[Any, Told]]:
    """Give what others were told of each job and step, last, in a state that has to be kept."""
    arrived = run.once(_arrived)
    for key, events in run.once(_changes).items():
        known = [each for each in events if start.since_seq <= each.seq < start.death.seq]
        if not known:
            continue
        found = _told(known, arrived.get(key, ()), start, str(key))
        if found is not None:
            yield key, found


def _told(
    known: Sequence[Event], arrived: Sequence[tuple[Event, Event]], start: Start, key: str
) -> Told | None:
    seqs = [each.seq for each in known]
    place, by = -1, known[0]
    if known[0].name == "restored":
        # It was read from files in which it still stands.
        place = 0
    for sending, receipt in arrived:
        if sending.seq > start.death.seq or sending.time_us > start.sure_us:
            break
        last = bisect.bisect_left(seqs, sending.seq) - 1
        if last > place:
            place, by = last, receipt
    if place < 0:
        return None
    later = frozenset(_state(each, key) for each in known[place:])
    return Told(event=known[place], by=by, state=_state(known[place], key), later=later)


def _state(event: Event, key: str) -> str:
    if event.name != "restored":
        return str(arg(event, "to"))
    return "RUNNING" if key in arg(event, "steps") else str(arg(event, "state"))


def asked(run: Observed, name: str, start: Start) -> Sequence[Asked]:
    """Return the requests of a name that slurmctlds took in, and which of them were answered."""
    answers: dict[int, tuple[Event, Event]] = {}
    for event in (*run.received(_RC), *run.received(name.replace("REQUEST", "RESPONSE"))):
        if event.role == "slurmctld" or arg(event, "return_code") or arg(event, "error_code"):
            continue
        sending = sending_of(run, event)
        request = run.request_of(sending) if sending is not None else None
        if sending is not None and request is not None:
            answers[request.seq] = sending, event
    found = []
    for receipt in run.received(name):
        if start.books_seq <= receipt.seq < start.death.seq and receipt.role == "slurmctld":
            sending, answered = answers.get(receipt.seq, (None, None))
            kept = sending is not None and _is_sure(run, sending)
            found.append(Asked(receipt=receipt, answered=answered if kept else None))
    return found


def _is_sure(run: Observed, sending: Event) -> bool:
    """Return whether what slurmctld said outlasts its own death."""
    own = next((each for each in starts(run) if each.death.seq > sending.seq), None)
    return own is None or sending.time_us <= own.sure_us


def may_have(requests: Sequence[Asked], key: str) -> tuple[Asked | None, list[Any]]:
    """Return the last request that was answered and has to be kept, and what may be there of it.

    What was asked for later may be there, whether it was answered or not.
    """
    about = [each for each in requests if _sets(each, key) is not None]
    last = next(
        (each for each in reversed(about) if each.answered is not None),
        None,
    )
    if last is None:
        return None, []
    return last, [_sets(each, key) for each in about[about.index(last) :]]


def _sets(request: Asked, key: str) -> Any:
    """Return what a request sets a field to, or None; who gives a priority takes the nice value."""
    if key == "nice" and arg(request.receipt, "priority") not in (None, 0, INFINITE):
        return 0
    return arg(request.receipt, key)
