"""A plugin call from the inside: who calls, with what, and what the plugin keeps where."""

import contextlib
import enum
import re
import reprlib
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from simctl.kernel.due import next_turns
from simctl.kernel.procs import Memory, Process
from simctl.kernel.trace import OpenCall
from simctl.repl.showing import WIDTH, call_head
from simctl.scenario.durations import format_moment

if TYPE_CHECKING:
    from simctl.world import World

_TURNS: Final = 5
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
"""Where an object lies in memory, which is elsewhere each time."""


class _Shown(reprlib.Repr):
    """Writes values briefly, whatever their own `repr` does."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = 60

    def repr_instance(self, x: Any, level: int) -> str:
        """Write an object as its class and what it keeps."""
        if isinstance(x, enum.Enum):
            return x.name
        if is_machinery(x):
            name = attributes(x).get("name", "")
            return f"<{type(x).__name__}{f' {name}' if isinstance(name, str) and name else ''}>"
        kept = attributes(x)
        if not kept and "__repr__" in {
            name for kind in type(x).__mro__[:-1] for name in vars(kind)
        }:
            return super().repr_instance(x, level)
        if not kept or level <= 0:
            return f"<{type(x).__name__}>"
        inner = ", ".join(f"{key}={self.repr1(value, level - 1)}" for key, value in kept.items())
        return f"{type(x).__name__}({inner})"


_SHOWN: Final = _Shown()
_MACHINERY: Final = ("simctl.kernel.", "simctl.api.", "simctl.ctld.", "simctl.stepd.", "trio.")


def is_machinery(value: Any) -> bool:
    """Return whether a value is simctl's own, such as a thread: no part of what a plugin keeps."""
    return f"{type(value).__module__}.".startswith(_MACHINERY)


def written(value: Any) -> str:
    """Write a value of a plugin's; one that cannot be written is told by its type."""
    try:
        return _ADDRESS.sub("", _SHOWN.repr(value))
    except Exception as error:  # noqa: BLE001 - a plugin's own code writes it
        return f"<{type(value).__name__}: {type(error).__name__} in its repr>"


def attributes(instance: Any) -> dict[str, Any]:
    """Return what an object keeps, without asking it."""
    found: dict[str, Any] = {}
    for kind in reversed(type(instance).__mro__):
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            try:
                found[name] = object.__getattribute__(instance, name)
            except AttributeError:
                continue
    with contextlib.suppress(AttributeError):
        found.update(object.__getattribute__(instance, "__dict__"))
    return {key: value for key, value in found.items() if not key.startswith("__")}


def tell_call(world: "World", call: OpenCall) -> Iterator[str]:
    """Say all there is to say about a call at hand."""
    who = call.who
    yield from call_head(call, world)
    subject = who.step if who.step is not UNSET else who.job
    names = {user.uid: user.name for user in world.site.users.values()}
    about = (
        "" if subject is UNSET else f", of {'step' if who.step is not UNSET else 'job'} {subject}"
    )
    child = f", child of {who.ppid}" if who.ppid != who.pid else ""
    yield (f"process: pid {who.pid}{child}, uid {who.uid} ({names.get(who.uid, '?')}){about}")
    parent = who.host.processes.get(who.ppid) if who.ppid != who.pid else None
    yield from _memory(who, parent)
    yield from _credential(who.memory)
    due = next_turns(world.kernel, _TURNS)
    yield "turns due:" if due else "no turn is due"
    for each in due:
        yield f"  {format_moment(each.due_us)} {each.who} {each.what}"


def _memory(who: Process, parent: Process | None) -> Iterator[str]:
    for name, instance in who.memory.instances.items():
        yield from _kept(f"{name} plugin keeps here", instance)
        if parent is None or name not in parent.memory.instances:
            continue
        if parent.memory is who.memory:
            yield f"  (shared with pid {parent.pid} until either of them calls the plugin)"
        else:
            yield from _kept(f"and in pid {parent.pid}, its parent", parent.memory.instances[name])


def _kept(head: str, instance: Any) -> Iterator[str]:
    kept = attributes(instance)
    if not kept:
        yield f"{head}: nothing"
        return
    yield f"{head}:"
    for key, value in kept.items():
        yield from textwrap.wrap(
            f"{key} = {written(value)}", WIDTH, initial_indent="  ", subsequent_indent="    "
        )


def _credential(memory: Memory) -> Iterator[str]:
    credential = memory.credential
    if credential is None or credential.value is None:
        return
    yield from _kept(
        f"credential {credential}, {type(credential.value).__name__}", credential.value
    )
