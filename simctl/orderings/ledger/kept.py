"""Rules L1 to L5: what others were told is there when slurmctld starts again."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.ledger.book import (
    Asked,
    Start,
    asked,
    may_be_purged,
    may_have,
    over,
    starts,
    told,
)
from simctl.orderings.observed import Observed, arg, sending_of
from simctl.orderings.rules import KEPT, LEDGER, Finding, broken, rule
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.ids import SECOND

_SOURCE: Final = (
    "what a client was told has to hold: Slurm saves within 5 s, model guide before it answers; "
    "no recording has a slurmctld that dies"
)
_EXCEPTIONS: Final = (
    "a clean start; state files that were damaged or could not be written; in model modern what "
    "was told less than 6 s before slurmctld was killed or gave up, or before a plugin call that "
    "held its saves up until then"
)
_NEW: Final = "REQUEST_CREATE_PARTITION"
_FIELDS: Final = ("time_limit_min", "name", "partition", "nice", "comment")


def _is_step(key: Any) -> bool:
    return isinstance(key, str)


@rule(
    LEDGER + 1,
    "told-job-is-kept",
    says="a job that somebody was told of is there when slurmctld starts again",
    key="a job and a start of slurmctld",
    exceptions="a job that has been over for MinJobAge, or whose id was given again; "
    f"{_EXCEPTIONS}",
    source=_SOURCE,
)
def told_job_is_kept(run: Observed) -> Iterator[Finding]:
    """Look for each job among those that were read."""
    for start in starts(run):
        for job, each in told(run, start):
            if _is_step(job):
                continue
            forgotten = may_be_purged(run, job, start.death) or _is_another(run, each.event, start)
            if job in start.jobs or forgotten:
                yield KEPT
            else:
                what = f"it was {each.state}, and slurmctld knows nothing of it"
                yield broken(f"job {job}", what, each.by, start.death, start.rest)


def _is_another(run: Observed, change: Event, start: Start) -> bool:
    """Return whether the id of a changed job has been given to another, of which no client knew."""
    later = (
        e
        for e in run.job_states.get(int(str(change.job)), ())
        if change.seq < e.seq < start.death.seq
    )
    return any(arg(each, "from") is None for each in later)


@rule(
    LEDGER + 2,
    "told-state-is-kept",
    says="a job is, when slurmctld starts again, in the state that somebody was last told of, or "
    "in one that it had later",
    key="a job and a start of slurmctld",
    exceptions=_EXCEPTIONS,
    source=_SOURCE,
)
def told_state_is_kept(run: Observed) -> Iterator[Finding]:
    """Compare the state of each job with what was told of it."""
    for start in starts(run):
        for job, each in told(run, start):
            there = start.jobs.get(job)
            if there is None:
                continue
            state = str(arg(there, "state"))
            if state in each.later:
                yield KEPT
            else:
                what = f"it was {each.state}, and is {state}"
                yield broken(f"job {job}", what, each.event, each.by, start.death, there)


@rule(
    LEDGER + 3,
    "told-step-is-kept",
    says="a step that somebody was told of is there when slurmctld starts again, unless it is "
    "over; one of which somebody was told that it is over is not",
    key="a step and a start of slurmctld",
    exceptions=f"a step of a job that is not there; {_EXCEPTIONS}",
    source=_SOURCE,
)
def told_step_is_kept(run: Observed) -> Iterator[Finding]:
    """Look for each step among those of its job that were read."""
    for start in starts(run):
        for step, each in told(run, start):
            there = start.jobs.get(each.event.job) if _is_step(step) else None
            if there is None:
                continue
            may_be = {over(state) for state in each.later}
            is_there = step in arg(there, "steps")
            if (not is_there) in may_be:
                yield KEPT
            else:
                what = "slurmctld has it again" if is_there else "slurmctld knows nothing of it"
                yield broken(f"step {step}", what, each.event, each.by, start.death, there)


@rule(
    LEDGER + 4,
    "told-update-is-kept",
    says="what an update of a job has changed, and was answered, is so when slurmctld starts "
    "again: its time limit, name, partition, nice value, comment and priority (held or not)",
    key="a changed field of a job and a start of slurmctld",
    exceptions="a job whose state has changed since; the release of one that asks for burst "
    "buffers; a hold of one whose reservation has ended since (`reservation_over`); a task of an "
    f"array that was updated too; {_EXCEPTIONS}",
    source=_SOURCE,
)
def told_update_is_kept(run: Observed) -> Iterator[Finding]:
    """Compare what was read with what was asked for."""
    for start in starts(run):
        of_jobs: dict[Any, list[Asked]] = defaultdict(list)
        updates = asked(run, "REQUEST_UPDATE_JOB", start)
        for each in updates:
            if arg(each.receipt, "array_tasks") is None:
                of_jobs[each.receipt.job].append(each)
        for job, requests in of_jobs.items():
            there = start.jobs.get(job)
            if there is None or over(str(arg(there, "state"))) or _in_array(run, there, updates):
                continue
            for field in (*_FIELDS, "priority"):
                yield from _field(run, start, there, requests, field)


def _in_array(run: Observed, job: Event, updates: Sequence[Asked]) -> bool:
    """Return whether a job is a task, and its array was updated as well."""
    arrays = {each.array_job for each in run.job_states.get(int(str(job.job)), ())} - {UNSET}
    return any(each.receipt.job in arrays - {job.job} for each in updates)


def _field(
    run: Observed, start: Start, there: Event, requests: Sequence[Asked], field: str
) -> Iterator[Finding]:
    last, values = may_have(requests, field)
    if last is None:
        return
    changes = run.job_states.get(int(str(there.job)), ())
    if any(last.receipt.seq < each.seq < there.seq for each in changes):
        return
    if field == "priority" and values[0] and any(arg(each, "burst_buffer") for each in changes):
        # It is held, too, where its stage-in fails.
        return
    value = arg(there, field)
    if field == "priority" and value == 0 and _has_lost_reservation(run, last, there):
        return
    if any(_is_as_asked(field, each, value) for each in values):
        yield KEPT
    else:
        what = f"{field} was to be {values[0]}, and is {value}"
        answered = last.answered or last.receipt
        yield broken(f"job {there.job}", what, last.receipt, answered, start.death, there)


def _has_lost_reservation(run: Observed, last: Asked, there: Event) -> bool:
    """Return whether a job was held for the end of its reservation after a request."""
    return any(
        each.job == there.job and last.receipt.seq < each.seq < there.seq
        for each in run.by_name.get("reservation_over", ())
    )


def _is_as_asked(field: str, asked_for: Any, value: Any) -> bool:
    if field == "priority":
        return bool(value) == bool(asked_for)
    return bool(asked_for == value)


@rule(
    LEDGER + 5,
    "told-change-of-the-cluster-is-kept",
    says="a node that was drained, set DOWN or taken into service again, the state of a partition, "
    "and a reservation that was made or deleted are so when slurmctld starts again",
    key="a node, a partition or a reservation, and a start of slurmctld",
    exceptions=f"a reservation whose time may be over; {_EXCEPTIONS}",
    source=_SOURCE,
)
def told_change_is_kept(run: Observed) -> Iterator[Finding]:
    """Look at nodes, partitions and reservations that were changed."""
    for start in starts(run):
        yield from _nodes(run, start)
        yield from _partitions(run, start)
        yield from _reservations(run, start)


def _nodes(run: Observed, start: Start) -> Iterator[Finding]:
    of_nodes: dict[str, list[Asked]] = defaultdict(list)
    for each in asked(run, "REQUEST_UPDATE_NODE", start):
        for name in _names(arg(each.receipt, "node_names"), run):
            if arg(each.receipt, "state"):
                of_nodes[name].append(each)
    for name, requests in of_nodes.items():
        last, values = may_have(requests, "state")
        if last is None:
            continue
        is_now = arg(start.rest, "nodes").get(name, "")
        since = run.node_states.get(name, ())
        if any(last.receipt.seq < e.seq < start.rest.seq and _by_itself(run, e) for e in since):
            continue
        if any(_node_is(state, is_now) for state in values):
            yield KEPT
        else:
            what = f"it was to be {values[0]}, and is {is_now or 'in service'}"
            yield broken(f"node {name}", what, last.receipt, start.death, start.rest)


def _by_itself(run: Observed, change: Event) -> bool:
    """Return whether a node went into or out of service upon something else than a request."""
    was, is_now = str(arg(change, "from")), str(arg(change, "to"))
    if all(_node_is(state, was) == _node_is(state, is_now) for state in ("DOWN", "DRAIN")):
        return False
    request = run.request_of(change)
    return request is None or request.name != "REQUEST_UPDATE_NODE"


def _names(text: Any, run: Observed) -> Sequence[str]:
    try:
        return tuple(run.node_states) if str(text).upper() == "ALL" else expand(str(text))
    except HostlistError:
        return ()


def _node_is(asked_for: str, state: str) -> bool:
    if asked_for == "DOWN":
        return state.startswith("DOWN")
    return ("DRAIN" in state) == (asked_for == "DRAIN")


def _partitions(run: Observed, start: Start) -> Iterator[Finding]:
    there = arg(start.rest, "partitions")
    of_parts: dict[str, list[Asked]] = defaultdict(list)
    for name in ("REQUEST_UPDATE_PARTITION", _NEW):
        for each in asked(run, name, start):
            if arg(each.receipt, "state") or name == _NEW:
                of_parts[str(arg(each.receipt, "name"))].append(each)
    gone = {str(arg(e.receipt, "name")) for e in asked(run, "REQUEST_DELETE_PARTITION", start)}
    for name, requests in of_parts.items():
        if name in gone:
            continue
        requests.sort(key=lambda each: each.receipt.seq)
        last, values = may_have(requests, "state")
        if last is None:
            continue
        if name in there and (not values[0] or there[name] in values):
            yield KEPT
        else:
            what = f"it was to be {values[0] or 'there'}, and is {there.get(name, 'not there')}"
            yield broken(f"partition {name}", what, last.receipt, start.death, start.rest)


def _asked_us(run: Observed, request: Asked) -> int:
    """Return the full second in which a client has asked: `now` is that one."""
    sending = sending_of(run, request.receipt) or request.receipt
    return sending.time_us // SECOND * SECOND


def _reservations(run: Observed, start: Start) -> Iterator[Finding]:
    there = arg(start.rest, "reservations")
    last: dict[str, Asked] = {}
    for name in ("CREATE", "UPDATE", "DELETE"):
        for each in asked(run, f"REQUEST_{name}_RESERVATION", start):
            named = str(arg(each.answered or each.receipt, "name") or arg(each.receipt, "name"))
            if named not in last or last[named].receipt.seq < each.receipt.seq:
                last[named] = each
    for named, each in last.items():
        if each.answered is None:
            continue
        if each.receipt.name == "REQUEST_DELETE_RESERVATION":
            if named in there:
                what = "it was deleted, and is back"
                yield broken(f"reservation {named}", what, each.receipt, start.death, start.rest)
            else:
                yield KEPT
        elif each.receipt.name == "REQUEST_CREATE_RESERVATION":
            lasts_us = (arg(each.receipt, "end_s") - arg(each.receipt, "start_s")) * SECOND
            if named in there:
                yield KEPT
            elif start.death.time_us < _asked_us(run, each) + lasts_us:
                what = "slurmctld knows nothing of it"
                yield broken(f"reservation {named}", what, each.receipt, start.death, start.rest)
