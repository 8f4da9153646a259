"""How the order of events in one run differs from that in another, both beside each other."""

import bisect
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

from simctl.kernel.events import Event
from simctl.kernel.pattern import value_text
from simctl.scenario.durations import format_moment

_LOOKED_AT: Final = 400
"""How many events before the end of what broke are compared."""
_SHOWN: Final = 14
_TELLING: Final = ("plugin", "message", "state", "script", "command", "fault")


def apart_of(
    here: Sequence[Event],
    there: Sequence[Event],
    seqs: Iterable[int],
    name: str,
    sentences: Sequence[str] = (),
) -> dict[str, Any] | None:
    """Return what is told of how a run differs from another, as pages hold it.

    Args:
        here: The events of the run.
        there: Those of a run in which all held.
        seqs: The events that show what broke; it is looked for differences up to the last of them.
        name: What the other run is called.
        sentences: How the schedules differ, if that is known.

    Returns:
        None if nothing differs.
    """
    last = max(seqs, default=here[-1].seq if here else 0)
    broken = set(seqs)
    ours = [(key, event) for key, event in _named(here) if event.seq <= last][-_LOOKED_AT:]
    theirs = dict(_named(there))
    places = {key: place for place, key in enumerate(theirs)}
    common = [(key, places[key]) for key, _ in ours if key in places]
    kept = _longest_rising([place for _, place in common])
    moved = {key for number, (key, _) in enumerate(common) if number not in kept}
    alone = {key for key, _ in ours if key not in places}
    if not moved and not alone and not sentences:
        return None
    marked = moved | alone | {key for key, event in ours if event.seq in broken}
    chosen = _with_neighbours([key for key, _ in ours], marked)
    shown = [(key, event) for key, event in ours if key in chosen][-_SHOWN:]
    keys = {key for key, _ in shown}
    others = [(key, event) for key, event in theirs.items() if key in keys]
    return {
        "name": name,
        "told": _told(len(moved), len(alone), len(common)),
        "sentences": list(sentences),
        "here": [_line(event, only=key in moved | alone, seq=event.seq) for key, event in shown],
        "there": [_line(event, only=key in moved, seq=0) for key, event in others],
    }


def _named(events: Sequence[Event]) -> list[tuple[Hashable, Event]]:
    """Return the events that say something, each with a name that it has in other runs as well."""
    counts: Counter[Hashable] = Counter()
    found: list[tuple[Hashable, Event]] = []
    for event in events:
        if event.kind in _TELLING and event.phase not in ("enter", "send"):
            who = (event.daemon, event.node, event.role, event.job, event.step, event.task)
            state = value_text(event.args) if event.kind == "state" else ""
            name = (event.kind, event.name, event.phase, event.peer, state, *who)
            counts[name] += 1
            found.append(((name, counts[name]), event))
    return found


def _longest_rising(places: Sequence[int]) -> set[int]:
    """Return which numbers of a sequence make its longest rising part: they did not move."""
    ends: list[int] = []
    numbers: list[int] = []
    before: list[int] = []
    for number, place in enumerate(places):
        at = bisect.bisect_left(ends, place)
        before.append(numbers[at - 1] if at else -1)
        ends[at : at + 1] = [place]
        numbers[at : at + 1] = [number]
    kept: set[int] = set()
    number = numbers[-1] if numbers else -1
    while number >= 0:
        kept.add(number)
        number = before[number]
    return kept


def _with_neighbours(keys: Sequence[Hashable], marked: set[Hashable]) -> set[Hashable]:
    chosen = set(marked)
    for number, key in enumerate(keys):
        if key in marked:
            chosen.update(keys[max(0, number - 1) : number + 2])
    return chosen


def _told(moved: int, alone: int, common: int) -> str:
    parts = []
    if moved:
        parts.append(f"{moved} of {common} events came in another order")
    if alone:
        parts.append(f"{alone} came in this run alone")
    return f"{' and '.join(parts) or 'The events came in the same order'}; they are marked."


def _line(event: Event, *, only: bool, seq: int) -> dict[str, Any]:
    where = event.node if isinstance(event.node, str) else "controller"
    about = [value_text(each) for each in (event.step, event.task) if isinstance(each, str | int)]
    state = ""
    if event.kind == "state" and isinstance(event.args, dict):
        state = f" {value_text(event.args.get('to'))}"
    role = event.role if isinstance(event.role, str) else ""
    text = f"{format_moment(event.time_us)} {where} {role}: {event.name}{state} {'.'.join(about)}"
    return {"text": text.strip(), "only": only, "seq": seq}
