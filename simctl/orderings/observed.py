"""A run as the rules see it: its events, found by name, process, step and job; made once a run."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event


@attrs.frozen(kw_only=True)
class Terms:
    """What the rules must know of a run beside its events."""

    model: str
    finished: bool = True
    """Whether it came to its end: neither stopped at a limit nor interrupted nor stalled."""

    conf: Mapping[str, Any] = attrs.field(factory=dict)
    """What of slurm.conf and of the scenario's options rules depend on, by the key's name."""


@attrs.define(eq=False, slots=False)
class Observed:
    """The events of a run, in the order of `seq`, and what is found in them."""

    events: Sequence[Event]
    terms: Terms

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[Event]]:
        """Events by name, enter lines among them."""
        found: dict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event.name].append(event)
        return found

    def calls(self, name: str) -> list[Event]:
        """Return the ends of the calls of a plugin function: one event a call that came back."""
        return [event for event in self.by_name.get(name, ()) if event.phase != "enter"]

    @cached_property
    def by_pid(self) -> Mapping[int, Sequence[Event]]:
        """Events by the process that acts."""
        found: dict[int, list[Event]] = defaultdict(list)
        for event in self.events:
            if event.pid is not UNSET:
                found[event.pid].append(event)
        return found

    @cached_property
    def parents(self) -> Mapping[int, int]:
        """The parent of each process that was forked in the run."""
        return {arg(event, "child"): int(str(event.pid)) for event in self.by_name.get("fork", ())}

    @cached_property
    def _managers(self) -> Mapping[int, int]:
        """The first process of each step daemon, by the pid of each of its processes."""
        found: dict[int, int] = {}
        for event in self.by_name.get("fork", ()):
            child, parent = arg(event, "child"), int(str(event.pid))
            found[child] = child if event.role == "slurmd" else found.get(parent, parent)
        return found

    def step_daemon(self, event: Event) -> int:
        """Return the pid of the slurmstepd to which the process of an event belongs."""
        pid = int(str(event.pid))
        return self._managers.get(pid, pid)


def begin(event: Event) -> int:
    """Return the seq at which a call began: that of its enter line, if it has one."""
    return event.seq if event.enter is UNSET else event.enter


def arg(event: Event, name: str) -> Any:
    """Return an argument of an event, or None."""
    return None if event.args is UNSET else event.args.get(name)
