"""The messages of a job as a sequence diagram, in the language of Mermaid."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.outputs import Kind
from simctl.scenario.durations import format_us
from simctl.view.processes import BOOKKEEPING, pid_of, processes_of, user_names
from simctl.view.reading import Seen

MERMAID: Final = Kind("diagram", (b"sequenceDiagram",))

_GAP_US: Final = 1_000_000
"""After how long without anything the diagram says how much time has passed."""


def to_mermaid(seen: Seen) -> str:
    """Return a sequence diagram: who sends what to whom, who forks whom, who calls what as whom.

    Calls that only keep records are left out.
    """
    return "\n".join(_lines(seen)) + "\n"


def _lines(seen: Seen) -> Iterator[str]:
    model = str(seen.header.get("model", "guide"))
    names = user_names(seen.header)
    rows = processes_of(seen.events, model)
    sent = {event.seq: event for event in seen.events if event.phase == "send"}
    pids = {pid_of(event) for event in seen.events}
    told = [event for event in seen.events if _is_told(event, sent, pids)]
    used = {pid_of(event) for event in told}
    used |= {_sender(event, sent) for event in told if event.phase == "receive"}
    used |= {_child(event) for event in told if event.name == "fork"}
    yield "sequenceDiagram"
    for row in rows:
        if row.pid in used:
            where = "" if row.host in ("controller", "login", "simctl") else f" on {row.host}"
            yield f"    participant p{row.pid} as {_text(row.name + where)}"
    there = [row.pid for row in rows if row.pid in used]
    last_us = told[0].time_us if told else 0
    for event in told:
        if event.time_us - last_us >= _GAP_US:
            passed = format_us(event.time_us - last_us)
            yield f"    Note over p{there[0]},p{there[-1]}: {passed} later"
        last_us = event.time_us
        pid = pid_of(event)
        if event.phase == "receive":
            yield f"    p{_sender(event, sent)}->>p{pid}: {_text(event.name)}"
        elif event.name == "fork":
            yield f"    p{pid}--)p{_child(event)}: fork"
        elif event.kind == "plugin":
            user = names.get(event.euid, f"uid {event.euid}") if event.euid is not UNSET else "?"
            failed = f" fails with {event.errno}" if event.errno is not UNSET else ""
            yield f"    Note over p{pid}: {_text(f'{event.name} as {user}{failed}')}"
        elif event.kind == "command":
            line = event.args.get("line", "") if isinstance(event.args, dict) else ""
            yield f"    Note over p{pid}: {_text(str(line))}"
        else:
            state = event.args.get("to") if isinstance(event.args, dict) else ""
            yield f"    Note over p{pid}: {_text(f'job {event.job} is {state}')}"


def _is_told(event: Event, sent: dict[int, Event], pids: set[int]) -> bool:
    if event.kind == "message":
        return event.phase == "receive" and event.cause in sent
    if event.kind == "plugin":
        return event.phase != "enter" and not BOOKKEEPING.fullmatch(event.name)
    if event.kind == "command":
        return event.phase == "enter"
    if event.name == "fork":
        return _child(event) in pids
    return event.name == "job_state"


def _sender(event: Event, sent: dict[int, Event]) -> int:
    assert event.cause is not UNSET
    return pid_of(sent[event.cause])


def _child(event: Event) -> int:
    child = event.args.get("child") if isinstance(event.args, dict) else None
    return child if isinstance(child, int) else -1


def _text(text: str) -> str:
    """Write a text so that nothing in it means anything in a diagram."""
    return re.sub(r"[^\w .,:/=@()|+*\[\]-]", lambda found: f"#{ord(found.group())};", text)
