"""What job_submit plugins made of what a command asked for, by the causes in the trace."""

from collections.abc import Mapping
from typing import Any

import attrs

from simctl.kernel.events import Event
from simctl.kernel.trace import Trace
from simctl.scenario.model import RunEntry, Scenario
from simctl.wire.ids import NO_VAL

_CALLS = ("job_submit", "job_modify")


@attrs.define(eq=False)
class Submitted:
    """Follows causes from calls of plugins back to the commands that led to them."""

    _causes: dict[int, int] = attrs.field(factory=dict)
    _commands: dict[int, dict[str, str] | None] = attrs.field(factory=dict)

    def __call__(self, event: Event) -> None:
        """Look at an event of the trace."""
        if isinstance(event.cause, int):
            self._causes[event.seq] = event.cause
        if event.kind == "command" and event.phase == "enter":
            self._commands[event.seq] = None
        if event.kind == "plugin" and event.name in _CALLS and event.phase != "enter":
            args = event.args if isinstance(event.args, dict) else {}
            self._note(event.seq, args.get("changed", {}))

    def _note(self, seq: int, changed: Mapping[str, Any]) -> None:
        at: int | None = seq
        while at is not None and at not in self._commands:
            at = self._causes.get(at)
        if at is not None:
            found = self._commands[at] or {}
            found |= {name: shown(now) for name, (_, now) in changed.items() if name != "filled"}
            self._commands[at] = found

    def of(self, command: int) -> dict[str, str] | None:
        """Return the fields that were changed, as they are then, of what a command asked for.

        *command* is the event with which it began; None where no plugin was asked.
        """
        return self._commands.get(command)


def follow(scenario: Scenario, trace: Trace) -> Submitted | None:
    """Return what follows the commands of a scenario, if it asks what becomes of any."""
    runs = (each for each in scenario.timeline if isinstance(each, RunEntry))
    if all(each.checks.becomes is None for each in runs):
        return None
    found = Submitted()
    trace.add_sink(found)
    return found


def shown(value: Any) -> str:
    """Return a field's value as a scenario writes it: ``60``, ``unset``, ``gpu:2``, ``n1,n2``."""
    if isinstance(value, bool):
        return str(value).lower()
    if value == NO_VAL:
        return "unset"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{each}" for name, each in value.items())
    return str(value)
