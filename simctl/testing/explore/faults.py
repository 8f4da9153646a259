"""Faults placed at every plugin call of a run, one text of the scenario for each place."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern
from simctl.scenario.model import FaultEntry, Scenario
from simctl.testing.explore.scenario_file import Change, edited, entry_text, quoted, sequence

_KEYS = ("job", "step", "node", "role", "task")


@attrs.frozen(kw_only=True)
class Placement:
    """A fault at a place: which, where, and the scenario with it there."""

    fault: str
    where: str
    text: str


@attrs.frozen(kw_only=True)
class Call:
    """A plugin call of a run: a pattern, and how many others match it before this one.

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
        ended.sort(key=_begin)
    by_name: dict[str, list[Event]] = defaultdict(list)
    found = []
    for event in ended:
        words = [event.name]
        for key in _KEYS:
            value = getattr(event, key)
            if value is not UNSET and value is not None:
                words.append(f"{key}={value}")
        text = " ".join(words)
        matches = Pattern.parse(text).matches
        earlier = by_name[event.name]
        skip = sum(matches(each) for each in earlier)
        found.append(Call(pattern=text, skip=skip, strikes=_strikes(event)))
        earlier.append(event)
    return found


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


def _begin(event: Event) -> int:
    return event.seq if event.enter is UNSET else event.enter
