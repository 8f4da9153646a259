"""Make a find small: fewest deviations first, then fewest late messages, then fewest entries.

Delta debugging: halves, quarters and so on are taken away as long as the same thing stays broken.
The first *placed* entries of the timeline are faults that the search has put there.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import attrs

from simctl.kernel.line import Name
from simctl.kernel.schedules import Schedule
from simctl.scenario.model import Scenario
from simctl.testing.explore.followed import Deviations, Followed, OneOff, Seen
from simctl.testing.explore.trial import Broken, Ran, Terms, run_trial

MOST_RUNS: Final = 1_500
"""After how many runs a find is taken to be small enough."""

_MOST_SINGLES: Final = 200
"""How many schedules with one deviation are tried."""

_MOST_LATE: Final = 80
"""How many messages are tried as the only late one, each time that is tried."""

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Small:
    """A find made small: which entries of the timeline are left, and what the schedule does."""

    scenario: Scenario
    entries: tuple[int, ...]
    """The entries of the timeline that are left, by their places in the original."""
    deviations: Deviations
    ran: Ran
    runs: int
    """How many runs it took."""


class Shrinker:
    """Looks for the smallest run in which the same thing is broken as in a given one."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        broken: tuple[Broken, ...],
        terms: Terms,
        *,
        placed: int = 0,
        told: Callable[[int, tuple[int, int, bool]], None],
    ) -> None:
        self._scenario = scenario
        self._seed = seed
        self._broken = broken[0]
        self._known = frozenset(broken)
        self._terms = terms
        self._placed = placed
        self._told = told
        self.runs = 0
        self._entries: tuple[int, ...] = tuple(range(len(scenario.timeline)))
        self._best = Deviations()
        self._ran: Ran | None = None

    def shrink(self, deviations: Deviations) -> Small | None:
        """Make a find small; None if the deviations do not lead to it."""
        if not self._holds(deviations, self._entries):
            return None
        self._fewer_deviations()
        if self._fewer_entries():
            self._fewer_deviations()
        assert self._ran is not None
        return Small(
            scenario=self._with(self._entries),
            entries=self._entries,
            deviations=self._best,
            ran=self._ran,
            runs=self.runs,
        )

    def _fewer_deviations(self) -> None:
        self._holds(Deviations(), self._entries)
        self._holds(attrs.evolve(self._best, late=()), self._entries)
        self._holds(attrs.evolve(self._best, calls=False), self._entries)
        if len(self._best.late) > 1:
            self._single_late([name for name, _ in self._best.late])
        self._reduce(
            lambda: self._best.passed, lambda kept: attrs.evolve(self._best, passed=tuple(kept))
        )
        self._reduce(
            lambda: self._best.late, lambda kept: attrs.evolve(self._best, late=tuple(kept))
        )
        if len(self._best.late) > 1:
            seen = Seen()
            self._run(seen, self._entries)
            self._single_late(self._near(seen))
        if self._best.calls:
            self._holds(attrs.evolve(self._best, calls=False), self._entries)
        if len(self._best.passed) > 1:
            self._single()

    def _single_late(self, names: Iterable[Name]) -> None:
        """Look for one message that does, as late as the latest is."""
        longest_us = max(late_us for _, late_us in self._best.late)
        for name in list(dict.fromkeys(names))[:_MOST_LATE]:
            for calls in dict.fromkeys((False, self._best.calls)):
                one = Deviations(late=((name, longest_us),), calls=calls)
                if self._holds(one, self._entries):
                    return

    def _near(self, seen: Seen) -> list[Name]:
        """Return the messages of a plain run, those first that are sent near one that is late."""
        moments = [seen.sent[name] for name, _ in self._best.late if name in seen.sent]

        def distance(name: Name) -> int:
            return min((abs(seen.sent[name] - moment) for moment in moments), default=0)

        return sorted(seen.sent, key=distance)

    def _single(self) -> None:
        """Look for one deviation that does, at about the time at which there are several."""
        assert self._ran is not None
        moments = [moment for moment, _, _ in self._ran.line.taken]
        earliest = min(moments) - max((late_us for _, late_us in self._best.late), default=0)
        base = attrs.evolve(self._best, passed=())
        for each in dict.fromkeys((attrs.evolve(base, late=()), base)):
            if self._single_beside(each, earliest, max(moments)):
                return

    def _single_beside(self, base: Deviations, earliest_us: int, latest_us: int) -> bool:
        """Try one deviation beside those of *base*: the next in line, then those behind."""
        most = min(MOST_RUNS, self.runs + _MOST_SINGLES)
        plain = OneOff(base)
        self._run(plain, self._entries)
        tries = sorted(
            (place, point)
            for point, (moment, width) in enumerate(plain.seen, start=1)
            for place in range(1, width)
            if earliest_us <= moment <= latest_us
        )
        for place, point in tries[: max(0, most - self.runs)]:
            ran = self._run(OneOff(base, point=point, place=place), self._entries)
            if self._same(ran.broken):
                self._keep(ran, calls=base.calls)
                return True
        return False

    def _reduce(
        self, items: Callable[[], Sequence[T]], kept: Callable[[list[T]], Deviations]
    ) -> None:
        """Take away as many deviations of one kind as can be spared."""
        size = len(items())
        while size:
            place = 0
            while place < len(items()):
                present = items()
                fewer = [*present[:place], *present[place + size :]]
                if not self._holds(kept(fewer), self._entries):
                    place += size
            size //= 2

    def _fewer_entries(self) -> bool:
        """Take away entries of the timeline, the last ones first; return whether any could go."""
        before = self._entries
        size = len(before)
        while size:
            end = len(self._entries)
            while end > 0:
                fewer = (*self._entries[: max(0, end - size)], *self._entries[end:])
                if self._says_something(fewer):
                    self._holds(self._best, fewer)
                end -= size
            size //= 2
        return self._entries != before

    def _says_something(self, entries: tuple[int, ...]) -> bool:
        """Return whether it is the schedule, or the fault that was placed, that breaks it.

        Without a command an expectation about its job is broken in any case: that is no find.
        Where nothing was needed to break the scenario there is nothing to compare with.
        """
        if not self._placed and self._best.size == Deviations().size:
            return True
        rest = tuple(place for place in entries if place >= self._placed)
        plain = self._run(Followed(Deviations()), rest)
        return self._broken not in plain.broken

    def _with(self, entries: tuple[int, ...]) -> Scenario:
        timeline = self._scenario.timeline
        return attrs.evolve(self._scenario, timeline=tuple(timeline[place] for place in entries))

    def _same(self, broken: tuple[Broken, ...]) -> bool:
        """Return whether the thing looked for is broken in the same way, and nothing beside it.

        An expectation is broken as well where nothing is left that it speaks of: that says nothing.
        """
        if not self._known.issuperset(broken):
            return False
        return any(each == self._broken and each.way == self._broken.way for each in broken)

    def _holds(self, deviations: Deviations, entries: tuple[int, ...]) -> bool:
        """Return whether the same is broken with less; if so, go on from there."""
        if self._ran is not None:
            if self.runs >= MOST_RUNS:
                return False
            if (deviations, entries) == (self._best, self._entries):
                return False
        ran = self._run(Followed(deviations), entries)
        if not self._same(ran.broken):
            return False
        found = Deviations.of(ran.line, calls=deviations.calls)
        if self._ran is not None and (len(entries), *found.size) > (
            len(self._entries),
            *self._best.size,
        ):
            return False
        self._entries = entries
        self._keep(ran, calls=deviations.calls)
        return True

    def _run(self, schedule: Schedule, entries: tuple[int, ...]) -> Ran:
        self.runs += 1
        return run_trial(self._with(entries), schedule, self._seed, self._terms)

    def _keep(self, ran: Ran, *, calls: bool) -> None:
        self._ran, self._best = ran, Deviations.of(ran.line, calls=calls)
        self._told(self.runs, self._best.size)
