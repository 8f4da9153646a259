"""The turns that are due, in words: who goes on, and with what."""

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from simctl.kernel.fabric import Envelope, Mailbox
from simctl.kernel.procs import Process
from simctl.kernel.threads import Action, Thread
from simctl.kernel.turns import Kernel

_LOOKED_AT: Final = 256


@attrs.frozen(kw_only=True)
class DueTurn:
    """A turn that is going to be taken: when, whose it is, and what it does."""

    due_us: int
    who: str
    what: str
    rank: int
    """Its place among the turns that are due at its moment, from 1."""
    number: int
    """The number that the kernel knows it by."""


def next_turns(kernel: Kernel, most: int = 1) -> list[DueTurn]:
    """Return the next turns that will do something, in their order."""
    found: list[DueTurn] = []
    due_us, rank = -1, 0
    for entry in kernel.queued(max(most, 1) + _LOOKED_AT):
        told = _told(entry[2], entry[3], entry[4])
        if told is None:
            continue
        rank = rank + 1 if entry[0] == due_us else 1
        due_us = entry[0]
        found.append(DueTurn(due_us=due_us, who=told[0], what=told[1], rank=rank, number=entry[1]))
        if len(found) == most:
            break
    return found


def pick_turn(kernel: Kernel, rank: int) -> DueTurn | None:
    """Have one of the turns that are due next go first; None where there are fewer."""
    found = next_turns(kernel, rank)
    if len(found) < rank or found[-1].due_us != found[0].due_us:
        return None
    kernel.pick(found[-1].number)
    return found[-1]


def due_processes(kernel: Kernel, most: int) -> Iterator[tuple[Process, int]]:
    """Return processes that go on by themselves, and when, first come first, of so many turns."""
    for due_us, _, act, first, second in kernel.queued(most):
        if _told(act, first, second) is None:
            continue
        who = first.owner if isinstance(first, Thread) else getattr(first, "process", first)
        if isinstance(who, Process) and not who.exited:
            yield who, due_us


def _told(act: Action, first: Any, second: Any) -> tuple[str, str] | None:
    """Return who acts in a turn and what happens; None where the turn is dead."""
    name = getattr(act, "__name__", "")
    if isinstance(first, Thread):
        return _thread_turn(name, first, second)
    if name == "_land":
        mailbox: Mailbox = getattr(act, "__self__")  # noqa: B009 - a bound method, says its name
        return mailbox.name, f"gets {', '.join(_message(each) for each in first)}"
    if name == "_fire":
        _, function, timer = second
        return _timer(function, first) if timer.live else None
    who = "slurmctld" if ".ctld." in getattr(second, "__module__", "") else "timer"
    return who, _time_to(second) or _words(second)


def _thread_turn(name: str, thread: Thread, second: Any) -> tuple[str, str] | None:
    if thread.finished:
        return None
    who = who_is(thread.owner)
    if name == "_start":
        return None if thread.killed else (who, f"begins {thread.name}")
    if name == "_kill":
        return who, "is killed"
    generation = second[0] if isinstance(second, tuple) else second
    if generation != thread.generation:
        return None
    if name == "_expire" and thread.waits_for != "time to pass":
        return who, f"waits no longer for {thread.waits_for}"
    return who, f"goes on, which waited for {thread.waits_for}"


def who_is(owner: Any) -> str:
    """Return a process in a few words: its program, and where it runs."""
    if not isinstance(owner, Process):
        return "nobody"
    host = owner.host.name
    return owner.name if owner.name == host else f"{owner.name}@{host}"


def _message(envelope: Envelope) -> str:
    message = envelope.message
    return str(getattr(message, "rpc", "")) or _spaced(type(message).__name__)


def _timer(function: Any, argument: Any) -> tuple[str, str]:
    if isinstance(argument, Envelope):
        mailbox = getattr(function, "__self__", None)
        return str(getattr(mailbox, "name", "timer")), _finds(argument.message)
    if isinstance(argument, Process):
        return who_is(argument), _words(function)
    if isinstance(label := getattr(argument, "label", None), str):
        return "timeline", f"goes on with {label}"
    owner = getattr(function, "__self__", None)
    process = getattr(owner, "process", None)
    return who_is(process) if isinstance(process, Process) else "timer", _words(function)


def _finds(message: Any) -> str:
    """Return what a daemon tells itself: its timers say what it is time for."""
    said = _time_to(type(message))
    return said or f"is told {getattr(message, 'rpc', '') or _spaced(type(message).__name__)}"


def _time_to(what: Any) -> str:
    first = (getattr(what, "__doc__", None) or "").splitlines()[:1]
    if first and first[0].startswith("Time "):
        return f"finds it {first[0].rstrip('.')[:1].lower()}{first[0].rstrip('.')[1:]}"
    return ""


def _words(function: Any) -> str:
    name = getattr(function, "__name__", "") or type(function).__name__
    if name == "<lambda>":
        return "the timeline goes on"
    return name.strip("_").replace("_", " ")


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
