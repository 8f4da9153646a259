"""A plugin from the inside, in the words of Python's debugger: p, l, bt, up, down."""

import copy
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.due import who_is
from simctl.kernel.events import Event
from simctl.kernel.procs import Process
from simctl.repl.errors import CommandError
from simctl.repl.inside import written
from simctl.repl.registry import command
from simctl.repl.session import Session
from simctl.repl.showing import WIDTH, event_lines, folded

_CHAIN: Final = 12
_MOST_LINES: Final = 120
_NO_CALL: Final = "no plugin call is at hand; `break switch_p_job_init` stops in one"


def _here(session: Session) -> Process:
    """Return the process that is looked at: that of the call or event at hand, or one above.

    Raises:
        CommandError: None is at hand.
    """
    call = session.present_call()
    process: Process | None = call.who if call is not None else None
    if process is None and session.event is not None:
        process = _acting(session, session.event)
    if process is None:
        raise CommandError(_NO_CALL)
    for _ in range(session.above):
        process = process.host.processes.get(process.ppid, process)
    return process


def _acting(session: Session, event: Event) -> Process | None:
    hosts = [*session.world.hosts.values(), session.world.controller_host, session.world.login]
    for host in hosts:
        if event.pid is not UNSET and event.pid in host.processes:
            return host.processes[event.pid]
    return None


def _names(session: Session) -> dict[str, Any]:
    """Return what an expression may name: `self`, and the arguments of the call at hand."""
    process = _here(session)
    call = session.present_call()
    instances = process.memory.instances
    if call is None or call.who is not process:
        return {"self": next(iter(instances.values()))} if instances else {}
    kind = call.name.partition("_")[0]
    known_as = {"switch": "switch", "slurm": "checkpoint"}.get(kind, call.plugin)
    instance = instances.get(known_as, next(iter(instances.values()), None))
    return {"self": instance, **call.values}


@command("p", usage="p EXPRESSION", topic="stops", example="p self", aliases=("print",))
def show_value(session: Session, rest: str) -> None:
    """Evaluate a Python expression in the plugin: `self`, and the arguments by their names.

    It is done with copies: whatever it changes, the run goes on as it would have.
    """
    if not rest:
        raise CommandError("expected an expression: `p self`, `p env`")
    names = _names(session)
    try:
        names = copy.deepcopy(names)
        value = eval(compile(rest, "<p>", "eval"), {"__builtins__": __builtins__}, names)
    except Exception as error:
        known = ", ".join(names) or "none"
        text = f"{type(error).__name__}: {error}"
        raise CommandError(f"{text}; names here: {known}") from error
    for line in textwrap.wrap(written(value), WIDTH) or [""]:
        session.say(line)


@command("list", usage="list", topic="stops", example="list", aliases=("l",))
def list_source(session: Session, rest: str) -> None:
    """Show the source of the plugin function at hand."""
    call = session.present_call()
    if rest:
        raise CommandError("`list` takes nothing: it shows the function at hand")
    if call is None:
        raise CommandError(_NO_CALL)
    function = getattr(_names(session).get("self"), call.name, None)
    try:
        lines, first = inspect.getsourcelines(function)  # type: ignore[arg-type]
        file = inspect.getsourcefile(function)  # type: ignore[arg-type]
    except (OSError, TypeError) as error:
        raise CommandError(f"there is no source of {call.name}: {error}") from error
    session.say(f"{(file or '').rpartition('/')[2]}, line {first}")
    for number, line in enumerate(lines[:_MOST_LINES], start=first):
        session.say(f"{number:>5}  {line.rstrip()}")


@command("bt", topic="stops", example="bt", aliases=("w", "stack"))
def way_here(session: Session, rest: str) -> None:
    """Show what led here: each event is the cause of the one below it, the last stands lowest."""
    if rest:
        raise CommandError("`bt` takes nothing; `where job 1` draws a job's way")
    for event in _chain(session):
        for line in event_lines(event, session.world):
            session.say(line)
    call = session.present_call()
    if call is not None:
        session.say("\n".join(folded(f"here: {who_is(call.who)} calls {call.name}")))


def _chain(session: Session) -> Iterator[Event]:
    events = session.world.events
    call = session.present_call()
    if call is not None:
        cause: Any = int(call.cause)
    else:
        cause = session.event.seq if session.event is not None else 0
    found: list[Event] = []
    while cause is not UNSET and 0 < cause <= len(events) and len(found) < _CHAIN:
        found.append(events[cause - 1])
        cause = found[-1].cause
    if not found:
        raise CommandError("nothing led here: stop at an event or in a call first")
    return reversed(found)


@command("up", topic="stops", example="up")
def up(session: Session, rest: str) -> None:
    """Look at the process that forked this one: `p` is about its plugin then. `down` goes back."""
    process = _here(session)
    if process.host.processes.get(process.ppid) in (None, process):
        raise CommandError(f"{who_is(process)} has no parent that is still there")
    session.above += 1
    _tell_process(session)


@command("down", topic="stops", example="down")
def down(session: Session, rest: str) -> None:
    """Look at the process below again, after `up`."""
    if not session.above:
        raise CommandError("this is the process at hand; `up` looks at the one that forked it")
    session.above -= 1
    _tell_process(session)


def _tell_process(session: Session) -> None:
    process = _here(session)
    plugins = ", ".join(process.memory.instances) or "no plugin"
    role = "" if process.role == process.daemon else f" ({process.role})"
    session.say(f"{who_is(process)}{role}, pid {process.pid}: {plugins}")
