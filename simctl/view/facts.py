"""What a page says of a run in words: jobs and how they ended, and what functions are for."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.plugins.points import ALL, OPTIONAL
from simctl.scenario.durations import format_moment, format_us
from simctl.scenario.why_failed import WhyFailed
from simctl.story.telling import sentences
from simctl.view.reading import Seen

_WHY: Final = 300
_GOOD: Final = ("COMPLETED", "RUNNING", "PENDING", "SUSPENDED")


def facts_of(
    seen: Seen, broken: Sequence[Mapping[str, Any]], verdict: str, apart: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what a page knows of a run beside its events.

    Args:
        seen: The run, or a part of it.
        broken: What did not hold, as `findings` of the module beside returns it.
        verdict: A sentence about what held.
        apart: How the run differs from one in which all held.
    """
    users = seen.header.get("users", {})
    names = {uid: name for name, uid in reversed(users.items())}
    by_seq = {event.seq: event for event in seen.events}
    model = str(seen.header.get("model", "guide"))
    told = sentences(seen.events, users, model)
    called = {event.name for event in seen.events if event.kind == "plugin"}
    docs = {
        name: point.doc.splitlines()[0]
        for name, point in (ALL | OPTIONAL).items()
        if name in called
    }
    return {
        "header": seen.header,
        "about": _about(seen),
        "notes": list(_notes(seen)),
        "verdict": verdict,
        "tone": "fine" if seen.whole else "",
        "broken": list(broken),
        "jobs": _jobs(seen, names, by_seq),
        "told": {str(seq): text for seq, text in told.items()},
        "docs": docs,
        "apart": apart,
    }


def _about(seen: Seen) -> str:
    header, events = seen.header, seen.events
    nodes = {event.node for event in events if isinstance(event.node, str)} - {"login"}
    how = f"seed {header.get('seed')}, schedule {header.get('schedule')}"
    where = f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}"
    last_us = events[-1].time_us if events else 0
    return (
        f"A run of {header.get('scenario')} in model {header.get('model')} ({how}): "
        f"slurmctld and {where} in {format_us(last_us)} of virtual time."
    )


def _notes(seen: Seen) -> Sequence[str]:
    notes = [f"The trace is not whole: {note}." for note in seen.notes]
    if seen.selection.is_part:
        part = f"Only a part of the run is here: {seen.selection.told()}, and what led to it"
        notes.append(f"{part}; {len(seen.events):,} of {seen.total:,} events.")
    if kinds := seen.header.get("kinds"):
        notes.append(f"The trace was written with events of these kinds alone: {', '.join(kinds)}.")
    return notes


@attrs.define
class _Job:
    """What the events tell of a job."""

    first: Event
    last: Event
    array: str = ""
    started_us: int | None = None
    over_us: int | None = None
    states: list[str] = attrs.field(factory=list)


def _jobs(
    seen: Seen, names: Mapping[int, str], by_seq: Mapping[int, Event]
) -> list[dict[str, Any]]:
    jobs: dict[int, _Job] = {}
    for event in seen.events:
        if event.name != "job_state" or event.kind != "state" or event.job is UNSET:
            continue
        args = event.args if isinstance(event.args, dict) else {}
        job = jobs.setdefault(event.job, _Job(event, event))
        job.last = event
        if event.array_job is not UNSET:
            task = "" if event.array_task is UNSET else f"_{event.array_task}"
            job.array = f"{event.array_job}{task}"
        state = str(args.get("to"))
        base, before = _base(state), _base(str(args.get("from")))
        if base == "RUNNING" and before != "RUNNING":
            job.started_us = job.started_us if before == "SUSPENDED" else event.time_us
            job.over_us = None
        if base not in _GOOD[1:] and before in ("RUNNING", "PENDING", "SUSPENDED"):
            job.over_us = event.time_us
        job.states.append(state)
    found = WhyFailed(seen.events, seen.header.get("users", {}))
    return [_job_facts(number, job, found, names, by_seq) for number, job in sorted(jobs.items())]


def _base(state: str) -> str:
    return state.partition("|")[0]


def _job_facts(
    number: int,
    job: _Job,
    found: WhyFailed,
    names: Mapping[int, str],
    by_seq: Mapping[int, Event],
) -> dict[str, Any]:
    state = _base(job.states[-1])
    failure = found.of(number)
    why = None
    if failure is not None:
        text = failure.lines[0].partition(": ")[2]
        why = {"seq": failure.first.seq, "text": text if len(text) < _WHY else f"{text[:_WHY]}…"}
    uid = _owner(job.first, by_seq)
    return {
        "id": number,
        "label": job.array or str(number),
        "user": names.get(uid, f"uid {uid}") if uid is not None else "",
        "state": state,
        "tone": "fine" if state == "COMPLETED" else "" if state in _GOOD else "failed",
        "when": _when(job),
        "first": job.first.seq,
        "last": job.last.seq,
        "why": why,
    }


def _when(job: _Job) -> str:
    if job.started_us is None:
        return f"never started, submitted at {format_moment(job.first.time_us)}"
    if job.over_us is None:
        return f"from {format_moment(job.started_us)}"
    return f"{format_moment(job.started_us)} to {format_moment(job.over_us)}"


def _owner(first: Event, by_seq: Mapping[int, Event]) -> int | None:
    """Return who asked for a job: the process outside slurmctld that led to its record."""
    event: Event | None = first
    while event is not None:
        if event.daemon not in ("slurmctld", UNSET) and event.uid is not UNSET:
            return event.uid
        event = by_seq.get(event.cause) if event.cause is not UNSET else None
    return None
