"""Faults placed at every plugin call of a run, or every event: a text of the scenario for each."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_seq
from simctl.scenario.model import FaultEntry, Scenario
from simctl.status import InputError
from simctl.testing.explore.scenario_file import Change, edited, entry_text, quoted, sequence

_KEYS: Final = ("job", "step", "node", "role", "task")
_KEYS_OF_EVENTS: Final = (*_KEYS, "phase", "peer")

_WILD: Final = re.compile(r"[*?\[\]]")
"""What stands for others in a pattern."""

CONTROLLER_DIES: Final = "crash slurmctld"
"""How the fault is told that has slurmctld die and start again."""

_DIED: Final = "exit role=slurmctld rc=9"
_NEVER: Final = f"{{when: {quoted(_DIED)}, fault: {{crash: slurmctld}}}}"
"""A crash that never comes, so that slurmctld is ready for one."""


@attrs.frozen(kw_only=True)
class Placement:
    """A fault at a place: which, where, and the scenario with it there."""

    fault: str
    where: str
    text: str

    @property
    def row(self) -> str:
        """Return it as it is told, and named by `--only`."""
        return f"{self.fault} {self.where}"


def chosen(placed: Sequence[Placement], only: str) -> tuple[Placement, ...]:
    """Return the placements that *only* names: by their whole row, or else by a part of it.

    Raises:
        InputError: None is named so.
    """
    found = [each for each in placed if each.row == only]
    found = found or [each for each in placed if only in each.row]
    if not found:
        shown = f"; the first of {len(placed):,} is `{placed[0].row}`" if placed else ""
        raise InputError(f"--only: no place of a fault is {only!r}{shown}")
    return tuple(found)


@attrs.frozen(kw_only=True)
class Call:
    """A plugin call or another event of a run: a pattern, and how many match it before this one.

    `strikes` are the single daemons and tasks that the call concerns.
    """

    pattern: str
    skip: int
    strikes: tuple[str, ...] = ()

    def told(self) -> str:
        """Return it in a few words."""
        return f"{self.pattern} #{self.skip + 1}" if self.skip else self.pattern


def placements(
    text: str, scenario: Scenario, run: Callable[[str], Sequence[Event]]
) -> Iterator[Placement]:
    """Give every place of every fault; *run* gives the events of a scenario's first run."""
    faults = [
        (place, entry)
        for place, entry in enumerate(scenario.timeline)
        if isinstance(entry, FaultEntry)
    ]
    for place, entry in faults:
        kept = sequence(scenario.timeline, without=place)
        without = edited(text, Change(kept=kept))
        fault = entry_text(text, place)["fault"]
        for call in calls(run(without)):
            added = (f"{{when: {quoted(call.pattern)}{_skip(call)}, fault: {fault}}}",)
            placed = edited(text, Change(kept=kept, added=added))
            yield Placement(fault=entry.text, where=f"after {call.told()}", text=placed)
    if not faults:
        yield from _invented(text, scenario, run(text))
        yield from (death() for death in deaths(text, scenario, run))


def _invented(text: str, scenario: Scenario, events: Sequence[Event]) -> Iterator[Placement]:
    """Give faults to a scenario that has none: calls fail, nodes and single daemons crash.

    Of daemons and tasks those crash that the call is about. Another slurmd starts at once where one
    has died: without it this would be a node that is lost, which is tried besides.
    """
    kept = sequence(scenario.timeline)
    for call in calls(events, as_they_begin=True):
        fault = f"{{fail: {quoted(call.pattern)}{_skip(call)}}}"
        added = (f"{{at: 0s, fault: {fault}}}",)
        placed = edited(text, Change(kept=kept, added=added))
        yield Placement(fault="fail", where=call.told(), text=placed)
    for node in scenario.nodes:
        for call in calls(events):
            when = f"when: {quoted(call.pattern)}{_skip(call)}"
            added = (f"{{{when}, fault: {{crash: {quoted(node.name)}}}}}",)
            placed = edited(text, Change(kept=kept, added=added))
            yield Placement(fault=f"crash {node.name}", where=f"after {call.told()}", text=placed)
    for call in calls(events):
        for target in call.strikes:
            when = f"when: {quoted(call.pattern)}{_skip(call)}"
            crash = f"{{{when}, fault: {{crash: {quoted(target)}}}}}"
            placed = edited(text, Change(kept=kept, added=(crash, *_started_again(target))))
            yield Placement(fault=f"crash {target}", where=f"after {call.told()}", text=placed)


def deaths(
    text: str, scenario: Scenario, run: Callable[[str], Sequence[Event]]
) -> Sequence[Callable[[], Placement]]:
    """Return what has slurmctld die after each event of a run, and start again at once.

    What it saves meanwhile belongs to the events: in a run in which it cannot die it does not save.
    """
    kept = sequence(scenario.timeline)
    again = f"{{when: {quoted(_DIED)}, fault: {{start: slurmctld}}}}"

    def death(event: Call) -> Placement:
        when = f"when: {quoted(event.pattern)}{_skip(event)}"
        crash = f"{{{when}, fault: {{crash: slurmctld}}}}"
        placed = edited(text, Change(kept=kept, added=(crash, again)))
        return Placement(fault=CONTROLLER_DIES, where=f"after {event.told()}", text=placed)

    events = run(edited(text, Change(kept=kept, added=(_NEVER, again))))
    return [partial(death, event) for event in places(events)]


def _started_again(target: str) -> tuple[str, ...]:
    """Return the entry that starts another slurmd in the place of one that has crashed."""
    kind, _, node = target.partition("@")
    if kind != "slurmd":
        return ()
    when = quoted(f"exit role=slurmd node={node} rc=9")
    return (f"{{when: {when}, fault: {{start: {quoted(target)}}}}}",)


def _skip(call: Call) -> str:
    return f", skip: {call.skip}" if call.skip else ""


def calls(events: Sequence[Event], *, as_they_begin: bool = False) -> list[Call]:
    """Return the plugin calls of a run, in the order in which they end, or begin."""
    ended = [event for event in events if event.kind == "plugin" and event.phase != "enter"]
    if as_they_begin:
        ended.sort(key=begin_seq)
    return _placed(ended, _KEYS)


def places(events: Sequence[Event]) -> list[Call]:
    """Return the events of a run, in their order."""
    return _placed(events, _KEYS_OF_EVENTS)


def _placed(events: Sequence[Event], keys: Sequence[str]) -> list[Call]:
    """Return events as patterns that match them, each with how many it matches before."""
    named = [(event, _named(event, keys)) for event in events if not _WILD.search(event.name)]
    kinds: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for event, values in named:
        kinds[event.name].add(tuple(values))
    seen: Counter[tuple[Any, ...]] = Counter()
    found = []
    for event, values in named:
        words = [f"{key}={shlex.quote(value)}" for key, value in values.items()]
        skip = seen[event.name, *values.items()]
        pattern = " ".join([shlex.quote(event.name), *words])
        found.append(Call(pattern=pattern, skip=skip, strikes=_strikes(event)))
        for kind in kinds[event.name]:
            # A pattern without a phase matches no enter line.
            if set(kind) <= set(values) and ("phase" in kind or event.phase != "enter"):
                seen[event.name, *((key, values[key]) for key in kind)] += 1
    return found


def _named(event: Event, keys: Sequence[str]) -> dict[str, str]:
    """Return the values of an event that a pattern can name."""
    values = ((key, getattr(event, key)) for key in keys)
    return {
        key: str(value)
        for key, value in values
        if value is not UNSET and value is not None and not _WILD.search(str(value))
    }


def _strikes(event: Event) -> tuple[str, ...]:
    """Return the daemons and the task that can die upon a call, as a scenario names them."""
    if event.role not in ("slurmd", "manager", "session", "task"):
        return ()
    slurmd = f"slurmd@{event.node}"
    if event.role == "slurmd":
        return (slurmd,)
    stepd = f"stepd {event.step}@{event.node}"
    task = (f"task {event.step}.{event.task}",) if event.role == "task" else ()
    return (slurmd, stepd, *task)
