"""Hold a run against every rule that applies to its model, and tell what came of it."""

import gc
import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import Any

import attrs

from simctl import orderings
from simctl.kernel.events import Event
from simctl.orderings.controller_deaths import is_excused
from simctl.orderings.observed import Observed, Terms
from simctl.orderings.rules import AUTHORITY, RULES, Broken, Kept, Rule
from simctl.scenario.holding.recorded import Recorded, write_lines


@attrs.frozen(kw_only=True)
class Breach:
    """A rule that a run broke, and where first."""

    rule: Rule
    first: Broken
    times: int
    """In how many groups it is broken."""

    slice: str
    """The lines of the trace between the events that show it."""


@attrs.frozen(kw_only=True)
class Report:
    """What came of checking a run."""

    checked: int
    """Rules that looked at one group at least."""

    groups: int
    broken: tuple[Breach, ...]
    skipped: str = ""
    """Why nothing was checked, if nothing was."""

    @property
    def summary(self) -> str:
        """Return what the end of a run says of it, in one line."""
        if self.skipped:
            return f"not checked ({self.skipped})"
        held = self.checked - len(self.broken)
        broken = f", {len(self.broken)} broken" if self.broken else ""
        return f"{_counted(held, 'rule')} held on {_counted(self.groups, 'group')}{broken}"

    def as_json(self) -> dict[str, Any]:
        """Return what `run --json` says of it."""
        return {
            "checked": self.checked,
            "groups": self.groups,
            **({"skipped": self.skipped} if self.skipped else {}),
            "broken": [
                {
                    "rule": each.rule.name,
                    "number": each.rule.number if each.rule.number < AUTHORITY else each.rule.label,
                    "says": each.rule.says,
                    "group": each.first.group,
                    "what": each.first.what,
                    "groups": each.times,
                    "seqs": [event.seq for event in each.first.events],
                }
                for each in self.broken
            ],
        }


def not_checked(why: str) -> Report:
    """Return the report of a run that was not held against the rules, and why."""
    return Report(checked=0, groups=0, broken=(), skipped=why)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def tell(breach: Breach) -> list[str]:
    """Return a broken rule as lines for people: which, where, what, and the trace between."""
    rule = breach.rule
    more = f" (and in {_counted(breach.times - 1, 'more group')})" if breach.times > 1 else ""
    return [
        f"ordering {rule.label} {rule.name}: {rule.says}",
        f"in {breach.first.group}{more}: {breach.first.what}:",
        *breach.slice.splitlines(),
    ]


@cache
def declared() -> Sequence[Rule]:
    """Return every rule that a module of this package declares, in the order of their numbers."""
    for module in pkgutil.walk_packages(orderings.__path__, f"{orderings.__name__}."):
        importlib.import_module(module.name)
    return sorted(RULES, key=lambda each: (each.number, each.name))


def check_orderings(events: Sequence[Event], terms: Terms) -> Report:
    """Hold the events of a run against every rule of its model."""
    # Nothing that is made here can be collected before the end: looking for it takes longer.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _check(events, terms)
    finally:
        if collects:
            gc.enable()


def _check(events: Sequence[Event], terms: Terms) -> Report:
    run = Observed(events, terms)
    checked = groups = 0
    broken: list[Breach] = []
    for rule in declared():
        if terms.model not in rule.models or rule.check is None:
            continue
        wrong: list[Broken] = []
        looked = False
        for each in rule.check(run):
            looked = True
            if isinstance(each, Kept):
                groups += each.groups
            else:
                groups += 1
                if not is_excused(run, rule.number, each):
                    wrong.append(each)
        checked += looked
        if wrong:
            first = min(wrong, key=lambda each: each.events[0].seq)
            broken.append(
                Breach(rule=rule, first=first, times=len(wrong), slice=_slice(events, first))
            )
    return Report(checked=checked, groups=groups, broken=tuple(broken))


def _slice(events: Sequence[Event], broken: Broken) -> str:
    seqs = sorted(event.seq for event in broken.events)
    return write_lines(Recorded(events).between(seqs[0], seqs[-1]), broken.events)
