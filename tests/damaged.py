"""Runs whose events are damaged, to see which built-in orderings notice, and what they say."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern
from simctl.orderings.checking import check_orderings
from tests.cluster import Ran

Damage = Callable[[list[Event]], list[Event]]


def told(ran: Ran, *damages: Damage) -> dict[str, str]:
    """Return what is wrong with a run that was damaged, by the name of the rule that tells it."""
    events = ran.events
    for damage in damages:
        events = _renumbered(damage(list(events)))
    report = check_orderings(events, ran.world.terms())
    return {each.rule.name: each.first.what for each in report.broken}


def dropped(pattern: str, nth: int = 0) -> Damage:
    """Leave an event out, of a call both of its lines; *nth* of those that match, -1 the last."""

    def damage(events: list[Event]) -> list[Event]:
        gone = _lines(events, pattern, nth)
        return [each for each in events if each not in gone]

    return damage


def without(*patterns: str) -> Damage:
    """Leave out every event of some patterns."""

    def damage(events: list[Event]) -> list[Event]:
        found = [_parsed(each) for each in patterns]
        return [each for each in events if not any(gone.matches(each) for gone in found)]

    return damage


def doubled(pattern: str, nth: int = 0) -> Damage:
    """Have an event happen twice in a row."""

    def damage(events: list[Event]) -> list[Event]:
        lines = _lines(events, pattern, nth)
        at = events.index(lines[-1]) + 1
        last = max(each.seq for each in events)
        # Its copy gets numbers of its own, so that its end knows its beginning.
        shift = last + 1 - lines[0].seq
        again = [
            msgspec.structs.replace(
                each,
                seq=each.seq + shift,
                enter=UNSET if each.enter is UNSET else each.enter + shift,
            )
            for each in lines
        ]
        return [*events[:at], *again, *events[at:]]

    return damage


def moved(pattern: str, *, before: str = "", after: str = "", nth: int = 0, to: int = 0) -> Damage:
    """Have an event happen at another place: before one of a pattern, after one, or at the end."""

    def damage(events: list[Event]) -> list[Event]:
        lines = _lines(events, pattern, nth)
        rest = [each for each in events if each not in lines]
        at = len(rest)
        if before:
            at = rest.index(_lines(rest, before, to)[0])
        elif after:
            at = rest.index(_lines(rest, after, to)[-1]) + 1
        return [*rest[:at], *lines, *rest[at:]]

    return damage


def changed(pattern: str, nth: int = 0, **fields: Any) -> Damage:
    """Have an event tell something else; ``args_NAME`` changes an argument, None takes it away."""

    def damage(events: list[Event]) -> list[Event]:
        lines = _lines(events, pattern, nth)
        return [_other(each, fields) if each in lines else each for each in events]

    return damage


def together(*damages: Damage) -> Damage:
    """Do one damage after the other."""

    def damage(events: list[Event]) -> list[Event]:
        for each in damages:
            events = each(list(events))
        return events

    return damage


def copied(pattern: str, nth: int = 0, **fields: Any) -> Damage:
    """Have something else happen after an event as well: a copy of it that differs in fields."""
    return together(doubled(pattern, nth), changed(pattern, nth + 1 if nth >= 0 else nth, **fields))


def everywhere(pattern: str, **fields: Any) -> Damage:
    """Have every event of a pattern tell something else, as :func:`changed` does."""

    def damage(events: list[Event]) -> list[Event]:
        found = _parsed(pattern)
        return [_other(each, fields) if found.matches(each) else each for each in events]

    return damage


def _other(event: Event, fields: dict[str, Any]) -> Event:
    args = {} if event.args is UNSET else dict(event.args)
    args.update({key[5:]: value for key, value in fields.items() if key.startswith("args_")})
    plain = {key: value for key, value in fields.items() if not key.startswith("args_")}
    if event.phase == "enter" and "phase" not in plain:
        plain.pop("rc", None)
    return msgspec.structs.replace(event, args=args or UNSET, **plain)


def _lines(events: list[Event], pattern: str, nth: int) -> list[Event]:
    """Return the lines of the call, or the one line, that matches."""
    found = _parsed(pattern)
    event = [each for each in events if found.matches(each)][nth]
    return [each for each in events if each is event or each.seq == event.enter]


def _parsed(pattern: str) -> Pattern:
    return Pattern.parse(pattern, {"alice": 1001, "bob": 1002})


def _renumbered(events: list[Event]) -> list[Event]:
    """Number events anew in the order in which they stand."""
    numbers = {each.seq: number for number, each in enumerate(events, 1)}
    return [
        msgspec.structs.replace(
            each,
            seq=number,
            enter=UNSET if each.enter is UNSET else numbers.get(each.enter, UNSET),
            cause=UNSET if each.cause is UNSET else numbers.get(each.cause, UNSET),
        )
        for number, each in enumerate(events, 1)
    ]


__all__ = [
    "Damage",
    "changed",
    "copied",
    "doubled",
    "dropped",
    "everywhere",
    "moved",
    "together",
    "told",
    "without",
]
