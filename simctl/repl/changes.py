"""What the last step changed: how things were before it, held against how they are now.

States stand in the trace, and are read from there. What plugins and processes keep in memory does
not: it is noted whenever a line is typed, of no more processes than one looks at.
"""

import enum
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.due import who_is
from simctl.kernel.events import Event
from simctl.kernel.pattern import value_text
from simctl.kernel.procs import Memory, Process
from simctl.repl.inside import attributes, is_machinery, written
from simctl.scenario.durations import format_moment, format_us

if TYPE_CHECKING:
    from simctl.world import World

_MOST_PROCESSES: Final = 64
_MOST_JOBS: Final = 500
_MOST_KEYS: Final = 500
_DEPTH: Final = 6
_LONGEST: Final = 300
_MOST_ENDS: Final = 20
_MOST_LINES: Final = 150
_TELLING: Final = frozenset({"state", "process", "plugin"})
_FIELDS: Final = {
    "reason": "reason",
    "priority": "priority",
    "time_limit_min": "time limit in minutes",
    "node_list": "nodes",
    "bb_state": "burst buffer",
    "bb_answer": "last answer of bb_p_job_test_stage_in",
}
"""Fields of a job's record that tell something and stand in no event of their own."""

Texts = Mapping[str, str]


@attrs.frozen(kw_only=True)
class Notes:
    """How things were."""

    seq: int
    time_us: int
    jobs: Mapping[int, Texts]
    kept: Mapping[int, Texts]
    """What plugins keep and the credential holds, by pid."""

    env: Mapping[int, Mapping[str, str]]


def take_notes(world: "World") -> Notes:
    """Note how things are."""
    kept: dict[int, Texts] = {}
    env: dict[int, Mapping[str, str]] = {}
    memories: dict[int, Texts] = {}
    for process in _processes(world):
        if len(kept) + len(env) >= _MOST_PROCESSES:
            break
        memory = process.memory
        if not memory.inert:
            known = memories.get(id(memory))
            if known is None:
                known = memories[id(memory)] = _kept(memory)
            kept[process.pid] = known
        if process.env:
            env[process.pid] = dict(process.env)
    jobs: dict[int, Texts] = {}
    for job in world.ctld.jobs.values():
        if job.state.finished and not job.state.completing:
            continue
        if len(jobs) >= _MOST_JOBS:
            break
        jobs[job.job_id] = {name: str(getattr(job, name)) for name in _FIELDS}
    return Notes(seq=world.trace.seq, time_us=world.kernel.now_us, jobs=jobs, kept=kept, env=env)


def _processes(world: "World") -> Iterator[Process]:
    yield world.ctld.process
    for host in world.hosts.values():
        yield from host.processes.values()


def _kept(memory: Memory) -> Texts:
    """Return what lies in a memory, a text for each part of it that has a name."""
    found: dict[str, str] = {}
    met: set[int] = set()
    for name, instance in memory.instances.items():
        _flatten(f"{name} plugin: ", instance, found, met)
    credential = memory.credential
    if credential is not None and credential.value is not None:
        _flatten("credential: ", credential.value, found, met)
    return found


def _flatten(head: str, value: Any, found: dict[str, str], met: set[int], depth: int = 0) -> None:
    """Take a value apart as far as it has parts with names, each part once."""
    if len(found) >= _MOST_KEYS:
        return
    inner: Mapping[str, Any] = {}
    if type(value) is dict:
        inner = {f"[{written(key)}]": each for key, each in list(value.items())[:_MOST_KEYS]}
    elif not isinstance(value, enum.Enum) and not is_machinery(value):
        dot = "." if head[-1] != " " else ""
        inner = {f"{dot}{key}": each for key, each in attributes(value).items()}
    if depth == _DEPTH or not inner:
        if type(value) is not dict or value:
            found[head] = written(value)
        return
    if id(value) in met:
        return
    met.add(id(value))
    for key, each in inner.items():
        _flatten(f"{head}{key}", each, found, met, depth + 1)


def tell_changes(world: "World", before: Notes | None) -> Iterator[str]:
    """Say what is another than before the last line that let something happen, if any did."""
    if before is None:
        yield "nothing has happened yet since the session began, or came back to here"
        return
    now = take_notes(world)
    events = world.events[before.seq :]
    count = len(events)
    # Of very many events few are of a kind that changes something by itself.
    events = [event for event in events if event.kind in _TELLING]
    passed = now.time_us - before.time_us
    yield (
        f"since {format_moment(before.time_us)}: {count or 'no'} event{'s' * (count != 1)}"
        f"{f', {format_us(passed)} of time' if passed else ''}"
    )
    lines = [
        *_states(events),
        *_jobs(before, now),
        *_environments(events),
        *_processes_changed(world, events),
        *_memory(world, before, now),
    ]
    yield from lines[:_MOST_LINES] or ["  nothing that can be seen is another than before"]
    if len(lines) > _MOST_LINES:
        yield f"  and {len(lines) - _MOST_LINES} more; `trace` has all events"


def _states(events: list[Event]) -> Iterator[str]:
    """Say which states are others, each once: from what to what."""
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for event in events:
        if event.kind != "state" or event.args is UNSET:
            continue
        what = event.name.removesuffix("_state")
        what = {"bb": "burst buffer of job"}.get(what, what)
        who = event.args.get("node") or (event.step if event.step is not UNSET else event.job)
        subject = f"{what} {value_text(who)}"
        first.setdefault(subject, value_text(event.args.get("from")))
        last[subject] = str(event.args.get("to"))
    for subject, to in last.items():
        if first[subject] == "null":
            yield f"  {subject} is new, {to}"
        elif first[subject] != to:
            yield f"  {subject}: {first[subject]} -> {to}"


def _jobs(before: Notes, now: Notes) -> Iterator[str]:
    for job_id, fields in now.jobs.items():
        old = before.jobs.get(job_id)
        if old is None:
            continue
        for name, value in fields.items():
            if old[name] != value:
                told = _FIELDS[name]
                yield f"  job {job_id}, {told}: {old[name] or 'none'} -> {value or 'none'}"


def _environments(events: list[Event]) -> Iterator[str]:
    """Say which variables plugins were given, and which they have put beside them."""
    before: dict[int, list[str]] = {}
    for event in events:
        if event.kind != "plugin" or event.args is UNSET:
            continue
        names = event.args.get("env")
        if not isinstance(names, list):
            continue
        if event.phase == "enter":
            before[event.seq] = names
            continue
        old = before.get(event.enter if event.enter is not UNSET else 0, [])
        new = [str(name) for name in names if name not in old]
        if new:
            who = f"task {event.task} of {event.step}" if event.task is not UNSET else event.step
            yield f"  {event.name}, env of {who}: {', '.join(new)}"


def _processes_changed(world: "World", events: list[Event]) -> Iterator[str]:
    """Say which processes have come and gone, and which changed their user or program.

    Those that have come and gone again are only counted.
    """
    there = {each.pid: each for host in _hosts(world) for each in host.values()}
    new: set[object] = set()
    ended: list[Event] = []
    passing = 0
    for event in events:
        if event.kind != "process" or event.pid is UNSET:
            continue
        args: dict[str, Any] = {} if event.args is UNSET else event.args
        if event.name == "fork":
            child = there.get(args.get("child", 0))
            new.add(args.get("child"))
            if child is not None:
                who = f"{who_is(child)}, {child.role}"
                yield f"  pid {child.pid} ({who}) is new, of pid {child.ppid}"
        elif event.name == "exit" and event.pid in new:
            passing += 1
        elif event.name == "exit":
            ended.append(event)
        elif event.pid in there:
            what = "runs" if event.name == "exec" else "has uid"
            yield f"  pid {event.pid} {what} {args.get('path', args.get('uid'))}"
    for event in ended[:_MOST_ENDS]:
        yield f"  pid {event.pid} has ended, status {value_text(event.rc)}"
    if len(ended) > _MOST_ENDS:
        yield f"  {len(ended) - _MOST_ENDS} more have ended"
    if passing:
        what = "process has" if passing == 1 else "processes have"
        yield f"  {passing} {what} come and gone"


def _hosts(world: "World") -> Iterator[Mapping[int, Process]]:
    yield world.ctld.process.host.processes
    yield world.login.processes
    for host in world.hosts.values():
        yield host.processes


def _memory(world: "World", before: Notes, now: Notes) -> Iterator[str]:
    """Say what plugins keep otherwise than before; a fork is held against its parent's."""
    # A daemon's parent is its host's first process, which no table holds.
    parents = {
        each.pid: each.ppid for each in _processes(world) if each.ppid in each.host.processes
    }
    for notes, old_notes, head in ((now.kept, before.kept, ""), (now.env, before.env, "env ")):
        for pid, texts in notes.items():
            old = old_notes.get(pid)
            if old is None:
                old = old_notes.get(parents.get(pid, 0))
                if old is None:
                    continue
            changes = list(_differences(old, texts, head))
            if changes:
                yield f"  in pid {pid}:"
                yield from changes


def _differences(old: Texts, new: Texts, head: str) -> Iterator[str]:
    for key, value in new.items():
        if key in old and old[key] != value:
            yield f"    {head}{key}: {old[key]} -> {value}"
    if max(len(old), len(new)) >= _MOST_KEYS:
        # There was more than was noted: what is missing need not have come or gone.
        return
    for whole, parts in _grouped(new, old).items():
        told = ", ".join(f"{part}={new[key]}" if part else new[key] for key, part in parts)
        yield f"    {head}{whole} is new: {_cut(told)}"
    for whole, parts in _grouped(old, new).items():
        begins = tuple(f"{key}{mark}" for key, _ in parts for mark in ".[")
        if not any(key.startswith(begins) for key in new):
            yield f"    {head}{whole} is gone"


def _grouped(texts: Texts, others: Texts) -> dict[str, list[tuple[str, str]]]:
    """Return the keys that only the first have, as parts of what is there or not as a whole."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key in texts:
        if key in others:
            continue
        whole, part = _parted(key)
        if part and any(other.startswith(whole) for other in others):
            whole, part = key, ""
        found.setdefault(whole, []).append((key, part))
    return found


def _parted(key: str) -> tuple[str, str]:
    """Part a name behind the entry of a dictionary that it belongs to, else behind the plugin."""
    place = key.find("].")
    if place >= 0:
        return key[: place + 1], key[place + 2 :]
    whole, colon, part = key.partition(": ")
    return (whole, part) if colon else (key, "")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
