"""Events and calls in lines of eighty columns, for a person who watches them happen."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from simctl.kernel.due import who_is
from simctl.kernel.events import Event
from simctl.kernel.pattern import value_text
from simctl.kernel.procs import wait_status_text
from simctl.kernel.trace import OpenCall
from simctl.scenario.durations import format_moment

if TYPE_CHECKING:
    from simctl.world import World

WIDTH: Final = 80
_INDENT: Final = " " * 19
COLOURS: Final = {
    "plugin": "1;36",
    "state": "32",
    "fault": "1;31",
    "log": "33",
    "script": "35",
    "command": "1",
}


def event_lines(event: Event, world: "World") -> list[str]:
    """Return an event as one line, or several where it is long."""
    head = f"{event.seq:>5} {format_moment(event.time_us):>12} "
    text = f"{_who(event)} {' '.join(filter(None, _what(event, world)))}"
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=_INDENT + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _who(event: Event) -> str:
    if event.kind == "fault":
        return "fault:"
    if event.daemon is UNSET:
        return "simctl"
    who = str(event.daemon if event.role in (UNSET, event.daemon) else event.role)
    if event.task is not UNSET and event.role == "task":
        who = f"task {event.task}"
    return f"{who}@{event.node}" if event.node is not UNSET and event.node else who


def _what(event: Event, world: "World") -> Iterator[str]:
    """Say what happened, and what it concerns."""
    args: dict[str, Any] = {} if event.args is UNSET else event.args
    if event.kind == "message":
        yield f"{'sends' if event.phase == 'send' else 'gets'} {event.name}"
        if event.peer is not UNSET and event.peer:
            yield f"{'to' if event.phase == 'send' else 'from'} {event.peer}"
        yield from _about(event)
    elif event.kind == "state":
        yield from _state(event, args)
    elif event.kind == "process":
        yield _process(event, args, world)
    elif event.kind == "command":
        yield str(args.get("line", event.name))
        yield "begins" if event.phase == "enter" else "ends"
        yield from _result(event)
    elif event.kind == "plugin":
        yield event.name
        if event.name in ("init", "fini") and event.plugin is not UNSET:
            yield event.plugin
        yield {"enter": "begins", "exit": "ends"}.get(str(event.phase), "")
        yield from _about(event)
        yield from _result(event)
    elif event.kind == "fault":
        yield from (str(value) for value in args.values())
    else:
        yield event.name
        yield {"enter": "begins", "exit": "ends"}.get(str(event.phase), "")
        yield from (f"{key}={value_text(value)}" for key, value in args.items())
        yield from _about(event)
        yield from _result(event)


def _state(event: Event, args: dict[str, Any]) -> Iterator[str]:
    what = event.name.removesuffix("_state")
    subject = args.get("node") or (event.step if event.step is not UNSET else event.job)
    yield what if subject is UNSET else f"{what} {value_text(subject)}"
    before = args.get("from")
    yield f"{value_text(before)} -> {args.get('to')}" if before else f"is {args.get('to')}"
    reason = args.get("reason")
    if reason and reason != "None":
        yield f"({reason})"


def _process(event: Event, args: dict[str, Any], world: "World") -> str:
    if event.name == "fork":
        return f"forks pid {args.get('child')}"
    if event.name == "become_user":
        uid = args.get("uid")
        names = [user.name for user in world.site.users.values() if user.uid == uid]
        return f"becomes {names[0] if names else uid}"
    if event.name == "exec":
        return f"executes {args.get('path')}"
    if event.name == "signal":
        return f"gets signal {args.get('signal')}"
    if type(event.rc) is not int:
        return "exits"
    how = wait_status_text(event.rc)
    return f"ends by {how}" if how.startswith("signal") else f"exits with {how}"


def _about(event: Event) -> Iterator[str]:
    if event.step is not UNSET:
        yield f"step {event.step}"
    elif event.job is not UNSET:
        yield f"job {event.job}"


def _result(event: Event) -> Iterator[str]:
    if event.kind == "script" and type(event.rc) is int:
        yield wait_status_text(event.rc)
    elif event.rc is not UNSET:
        yield f"rc={value_text(event.rc)}"
    if event.errno is not UNSET:
        yield f"errno={event.errno}"


def call_head(call: OpenCall, world: "World") -> list[str]:
    """Say which plugin call begins, in which process, as whom, with which arguments."""
    who = call.who
    users = {user.uid: user.name for user in world.site.users.values()}
    user = users.get(who.euid, str(who.euid))
    role = "" if who.role in (who.daemon, who.name) else f" ({who.role})"
    plugin = f" of {call.plugin}" if call.plugin else ""
    lines = [f"{who_is(who)}{role}, pid {who.pid}, as {user}, calls {call.name}{plugin}"]
    shown = [f"{key}={value_text(value)}" for key, value in call.shown.items() if value != UNSET]
    lines += textwrap.wrap(", ".join(shown), WIDTH, initial_indent="  ", subsequent_indent="  ")
    return lines


def folded(line: str) -> list[str]:
    """Break a line at eighty columns; what follows stands further in than its beginning."""
    inset = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line,
        WIDTH,
        subsequent_indent=inset,
        drop_whitespace=True,
        break_on_hyphens=False,
    ) or [""]
