"""The events of a finished run: found by pattern, and written as lines for people."""

import bisect
import heapq
import operator
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern, near, value_text
from simctl.kernel.procs import wait_status_text
from simctl.scenario.durations import format_moment
from simctl.scenario.holding.happens_before import HappensBefore

_BEFORE_GAP: Final = 6
_AFTER_GAP: Final = 4
_TELLING: Final = ("fault", "log", "script")
"""Kinds of which the arguments say most of what there is to say."""
_SEQ: Final = operator.attrgetter("seq")


class Recorded:
    """The events of a run, in the order of `seq`, found by name."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.by_name: dict[str, list[Event]] = {}
        for event in events:
            self.by_name.setdefault(event.name, []).append(event)

    def matches(self, pattern: Pattern) -> list[Event]:
        """Return the events that match, in their order."""
        names = pattern.names(self.by_name)
        found = heapq.merge(*(self.by_name[name] for name in names), key=_SEQ)
        return [event for event in found if pattern.matches(event)]

    @cached_property
    def happens_before(self) -> HappensBefore:
        """What every event needs.

        Raises:
            HalfATraceError: The events are a part of a run's.
        """
        return HappensBefore(self.events)

    def between(self, first_seq: int, last_seq: int) -> Sequence[Event]:
        """Return the events of a stretch of the run, both ends included."""
        start = bisect.bisect_left(self.events, first_seq, key=_SEQ)
        return self.events[start : bisect.bisect_right(self.events, last_seq, key=_SEQ)]

    def absent(self, pattern: Pattern) -> str:
        """Say, of a pattern that matches nothing, whether at least its NAME occurs."""
        if pattern.names(self.by_name):
            return f"events called {pattern.name} there are, but none matches the rest of it"
        hint = near(pattern.name, self.by_name)
        return f"no event of the run is called {pattern.name}{hint}"


def write_lines(events: Sequence[Event], marked: Sequence[Event] = ()) -> str:
    """Write events a line each, eliding the middle, with a mark at those it is about."""
    seqs = [event.seq for event in marked]
    lines = [f"{'>' if one.seq in seqs else ' '}{describe(one)}" for one in events]
    if len(lines) > _BEFORE_GAP + _AFTER_GAP:
        left_out = len(lines) - _BEFORE_GAP - _AFTER_GAP
        gap = f"        ... {left_out} more ..."
        kept = [
            line
            for line, event in zip(lines, events, strict=True)
            if event.seq in seqs and line not in (*lines[:_BEFORE_GAP], *lines[-_AFTER_GAP:])
        ]
        lines = [*lines[:_BEFORE_GAP], gap, *kept, *lines[-_AFTER_GAP:]]
    return "\n".join(lines)


def describe(event: Event) -> str:
    """Write an event as one line for people: when, where, who, what, about what, and its result."""
    node = "" if event.node is UNSET else event.node or "controller"
    who = "/".join(part for part in (_text(event.daemon), _text(event.role)) if part)
    process = [who, _named("pid", event.pid), _named("uid", event.uid)]
    what = [event.name, _text(event.phase)]
    about = [_named(key, getattr(event, key)) for key in ("job", "step", "task", "peer")]
    if event.kind == "plugin" and event.name in ("init", "fini"):
        about.insert(0, _text(event.plugin))
    ended = event.kind in ("process", "script") and type(event.rc) is int and event.rc
    how = f"({wait_status_text(event.rc)})" if ended else ""
    result = [_named("rc", event.rc), how, _named("errno", event.errno)]
    if event.kind == "state" and event.args is not UNSET:
        about.append(_text(event.args.get("node", UNSET)))
        about.append(f"{value_text(event.args.get('from'))} -> {value_text(event.args.get('to'))}")
    elif event.kind in _TELLING and event.args is not UNSET:
        about += [_named(key, value) for key, value in event.args.items()]
    words = " ".join(part for part in (node, *process, *what, *about, *result) if part)
    return f"{event.seq:>6} {format_moment(event.time_us):>12} {words}"


def _text(value: object) -> str:
    return "" if value is UNSET else value_text(value)


def _named(key: str, value: object) -> str:
    return "" if value is UNSET else f"{key}={value_text(value)}"
