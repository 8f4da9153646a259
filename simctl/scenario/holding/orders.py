"""Return whether the events of a run came in an order, in each of its groups."""

import itertools
import operator
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_seq, out_of_order
from simctl.kernel.pattern import field_reader, value_text
from simctl.scenario.holding.happens_before import HalfATraceError
from simctl.scenario.holding.races import free_because
from simctl.scenario.holding.recorded import Recorded, describe, write_lines
from simctl.scenario.model import OrderExpect

_SEQ: Final = operator.attrgetter("seq")


@attrs.frozen
class Trouble:
    """How a run breaks an order, in several lines, and the events that show it."""

    text: str
    events: tuple[Event, ...] = ()


@attrs.frozen(kw_only=True)
class _Group:
    """The matches of each entry of an order that share the value of its field."""

    name: str
    """Such as `node=n1`, or empty if there is one group only."""
    matches: tuple[list[Event], ...]

    @property
    def first_seq(self) -> int:
        return min(found[0].seq for found in self.matches if found)

    def where(self) -> str:
        return f"in {self.name}: " if self.name else ""


def _groups(expectation: OrderExpect, run: Recorded) -> list[_Group]:
    """Sort the matches into groups, in the order in which the groups first appear."""
    read = field_reader(expectation.each) if expectation.each else None
    groups: dict[str, _Group] = {}
    for index, entry in enumerate(expectation.entries):
        for event in run.matches(entry.pattern):
            value = read(event) if read is not None else ""
            if value is UNSET or not expectation.within.matches(event):
                continue
            name = f"{expectation.each}={value_text(value)}" if read is not None else ""
            if name not in groups:
                empty: tuple[list[Event], ...] = tuple([] for _ in expectation.entries)
                groups[name] = _Group(name=name, matches=empty)
            groups[name].matches[index].append(event)
    return sorted(groups.values(), key=lambda group: group.first_seq)


def order_trouble(expectation: OrderExpect, run: Recorded) -> Trouble | None:
    """Say how a run breaks an order; None if it holds."""
    groups = _groups(expectation, run)
    if not groups:
        nothing = _nothing_matched(expectation, run)
        return Trouble(nothing) if nothing else None
    troubles = [trouble for group in groups if (trouble := _group_trouble(expectation, group, run))]
    if not troubles:
        return None
    if not troubles[1:]:
        return troubles[0]
    more = f"{len(troubles) - 1} more of {len(groups)} groups are broken"
    return Trouble(f"{troubles[0].text}\n{more}", troubles[0].events)


def _nothing_matched(expectation: OrderExpect, run: Recorded) -> str:
    needed = [entry for entry in expectation.entries if not entry.optional]
    if not needed:
        return ""
    within = expectation.within
    if any(run.matches(entry.pattern) for entry in expectation.entries):
        parts = [f"within {within.text}"] if within.conditions else []
        parts += [f"with a field {expectation.each}"] if expectation.each else []
        return f"nothing matched {' and '.join(parts)}, though something does without that"
    return f"nothing matched: {run.absent(needed[0].pattern)}"


def _group_trouble(expectation: OrderExpect, group: _Group, run: Recorded) -> Trouble | None:
    """Return what is wrong in one group: an entry without a match, or two the wrong way round."""
    for entry, found in zip(expectation.entries, group.matches, strict=True):
        if not found and not entry.optional:
            others = sorted((one for some in group.matches for one in some), key=_SEQ)
            return Trouble(
                f"{group.where()}nothing matches `{entry.pattern.text}`, while these entries have "
                f"matches:\n{write_lines(others)}\nsay `optional: true` if it may be missing",
                tuple(others[-1:]),
            )
    pair = out_of_order(group.matches)
    if pair is not None:
        return _wrong_way(expectation, group, *pair, run)
    return _unproved(group, run) if expectation.proved else None


def _unproved(group: _Group, run: Recorded) -> Trouble | None:
    """Name the first two that came in order and need not have; None if causes force them all."""
    try:
        relation = run.happens_before
    except HalfATraceError as error:
        return Trouble(f"{group.where()}{error}")
    for earlier, later in itertools.pairwise(filter(None, group.matches)):
        pair = relation.free_pair(earlier, later)
        if pair is None:
            continue
        first, second = pair
        return Trouble(
            f"{group.where()}{first.name} (seq {first.seq}) came before {second.name} "
            f"(seq {second.seq}), but nothing forces it:\n{write_lines(pair, pair)}\n"
            f"{free_because(relation, first, second)}",
            pair,
        )
    return None


def _wrong_way(
    expectation: OrderExpect, group: _Group, first: Event, second: Event, run: Recorded
) -> Trouble:
    if first is second:
        what = f"{first.name} (seq {first.seq}) matches two entries, and cannot precede itself"
        told = f"{group.where()}{what}:\n{describe(first)}\nmake the patterns narrower"
        return Trouble(told, (first,))
    start = min(begin_seq(second), first.seq)
    stretch = run.between(start, max(first.seq, second.seq))
    read = field_reader(expectation.each) if expectation.each else None
    shown = [
        event
        for event in stretch
        if event is first
        or event is second
        or (
            expectation.within.matches(event)
            and (read is None or f"{expectation.each}={value_text(read(event))}" == group.name)
        )
    ]
    return Trouble(
        f"{group.where()}{second.name} (seq {second.seq}) began before {first.name} "
        f"(seq {first.seq}) ended:\n{write_lines(shown, (first, second))}\n"
        "if both orders are right, narrow it with `within:` or `each:`",
        (first, second),
    )
