"""*A before B in every group*: what expectations, built-in orderings and recordings ask alike.

Pure. `grouped` makes the groups, `out_of_order` finds the two events that break the order of one.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from msgspec import UNSET

from simctl.kernel.events import Event

Item = TypeVar("Item")
Group = TypeVar("Group", bound=Hashable)


def grouped(
    items: Iterable[Item], key: Callable[[Item], Group | None]
) -> defaultdict[Group, list[Item]]:
    """Sort items into groups, each in the order of its first item; those of key None into none."""
    found: defaultdict[Group, list[Item]] = defaultdict(list)
    for item in items:
        group = key(item)
        if group is not None:
            found[group].append(item)
    return found


def begin_seq(event: Event) -> int:
    """Return where in a run an event begins: at its enter line, if there is one."""
    return event.seq if event.enter is UNSET else event.enter


def begin_us(event: Event) -> int:
    """Return when an event began: a call that took time, before the moment of its line."""
    return event.time_us if event.t0_us is UNSET else event.t0_us


def ends_before(first: Event, second: Event) -> bool:
    """Return whether *first* ended before *second* began.

    A call that took time and in which nothing happened has one line, at its end: then only the
    clock tells what came before it.
    """
    if first.seq >= begin_seq(second):
        return False
    return second.enter is not UNSET or first.time_us <= begin_us(second)


def out_of_order(entries: Iterable[Sequence[Event]]) -> tuple[Event, Event] | None:
    """Return an event that had to end first, and the one that began too soon; None if all is well.

    All events of one entry have to end before any of the next begins. The events of an entry come
    as the run has them; an entry without events asks for nothing.
    """
    for earlier, later in pairwise(filter(None, entries)):
        early = [event for event in later if not ends_before(earlier[-1], event)]
        if early:
            second = min(early, key=begin_seq)
            return next(event for event in earlier if not ends_before(event, second)), second
    return None
