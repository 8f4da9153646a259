"""Make the scenario of a seed small, as long as the same thing stays broken in it."""

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import attrs

from simctl.plugins.registry import PluginError
from simctl.scenario.positions import ScenarioErrors
from simctl.testing.explore.trial import Broken
from simctl.testing.swarm.draft import Draft
from simctl.testing.swarm.trial import Tried, run_text

MOST_RUNS: Final = 400
_MOST_S: Final = 90.0

_ENDED_BY_THE_TAIL: Final = (
    *("jobs-end:", "records-go:", "buffers-free:", "accounted-once:"),
    *("processes-gone:", "commands-end:", "daemons-stop:"),
)
"""Rules that a job breaks which waits for what never comes, but for the end of the scenario."""

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Small:
    """A find made small."""

    draft: Draft
    tried: Tried
    runs: int


class Shrinker:
    """Looks for the smallest scenario in which the same is broken as in a given one."""

    def __init__(self, broken: Broken, *, told: Callable[[int, int], None]) -> None:
        self._broken = broken
        self._told = told
        self._until = time.perf_counter() + _MOST_S
        self._runs = 0
        self._tried: Tried | None = None
        self._controlled = False

    def shrink(self, draft: Draft) -> Small | None:
        """Take away what can be spared; None if the draft does not break as it did."""
        if not self._holds(draft):
            return None
        self._controlled = self._tried is not None and self._tried.controlled
        for change in (self._schedule, self._happenings, self._tail, self._conf, self._head):
            draft = change(draft)
        # What a key of slurm.conf made necessary may go with it.
        draft = self._happenings(draft)
        assert self._tried is not None
        return Small(draft=draft, tried=self._tried, runs=self._runs)

    def _schedule(self, draft: Draft) -> Draft:
        names = ("fifo", draft.schedule.partition(",")[0])
        return self._first(draft, [attrs.evolve(draft, schedule=name) for name in names])

    def _happenings(self, draft: Draft) -> Draft:
        def with_these(kept: Sequence[str]) -> Draft:
            return attrs.evolve(draft, happenings=tuple(kept))

        return with_these(self._fewer(draft.happenings, with_these))

    def _tail(self, draft: Draft) -> Draft:
        if self._broken.text.startswith(_ENDED_BY_THE_TAIL):
            # A job that is not cancelled would break it, whatever did in the first place.
            return draft
        return self._first(draft, [attrs.evolve(draft, tail=())])

    def _conf(self, draft: Draft) -> Draft:
        def with_these(kept: Sequence[tuple[str, str]]) -> Draft:
            return attrs.evolve(draft, conf=dict(kept))

        return with_these(self._fewer(tuple(draft.conf.items()), with_these))

    def _head(self, draft: Draft) -> Draft:
        def with_these(kept: Sequence[str]) -> Draft:
            return attrs.evolve(draft, head=tuple(kept))

        return with_these(self._fewer(draft.head, with_these))

    def _first(self, draft: Draft, others: list[Draft]) -> Draft:
        return next((each for each in others if each != draft and self._holds(each)), draft)

    def _fewer(self, items: Sequence[T], make: Callable[[Sequence[T]], Draft]) -> Sequence[T]:
        """Take away halves, quarters and so on, the last ones first."""
        size = len(items)
        while size:
            end = len(items)
            while end > 0:
                fewer = [*items[: max(0, end - size)], *items[end:]]
                if self._holds(make(fewer)):
                    items = fewer
                end -= size
            size //= 2
        return items

    def _holds(self, draft: Draft) -> bool:
        """Return whether the same is broken in another draft; if so, that run is kept."""
        if self._runs >= MOST_RUNS or time.perf_counter() > self._until:
            return False
        self._runs += 1
        try:
            tried = run_text(draft.text(), draft.schedule)
        except (ScenarioErrors, PluginError):
            return False
        if self._broken not in tried.broken:
            return False
        if self._broken.kind == "stall" and tried.controlled < self._controlled:
            # A command that waits for a slurmctld that is not started again shows something else.
            return False
        self._tried = tried
        self._told(self._runs, len(draft.happenings))
        return True
