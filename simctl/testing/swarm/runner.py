"""The runs of a swarm, in chunks, and what they come to all together."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs

from simctl.runners.work import Chunk
from simctl.scenario.positions import ScenarioErrors
from simctl.testing.explore.trial import Broken
from simctl.testing.swarm.make import draft
from simctl.testing.swarm.own import Own
from simctl.testing.swarm.trial import Told, run_text, tell

EVERY: Final = 16
"""One of so many runs is made twice, the second time after that many others."""


@attrs.frozen(kw_only=True)
class Plan:
    """What is to be run: all that workers need."""

    first_seed: int
    runs: int
    faults: tuple[str, ...]
    own: Own = attrs.field(factory=Own)

    @property
    def trials(self) -> int:
        """How many runs are made, those included that are made again."""
        return self.runs + -(-self.runs // EVERY)

    def seed_of(self, trial: int) -> tuple[int, bool]:
        """Return the seed of a trial, and whether it was run before."""
        block, place = divmod(trial, EVERY + 1)
        again = place == EVERY or block * EVERY + place >= self.runs
        return self.first_seed + block * EVERY + (0 if again else place), again


@attrs.frozen(kw_only=True)
class Find:
    """A run in which something was broken."""

    seed: int
    schedule: str
    broken: tuple[Broken, ...]


@attrs.define(kw_only=True)
class Sums:
    """What runs have come to, all together."""

    runs: int = 0
    jobs: int = 0
    events: int = 0
    turns: int = 0
    states: Counter[str] = attrs.field(factory=Counter)
    faults: Counter[str] = attrs.field(factory=Counter)
    calls: Counter[str] = attrs.field(factory=Counter)
    left_out: int = 0
    """How many clusters were not run, as the author's keys of slurm.conf contradict theirs."""
    why_left_out: str = ""

    def add(self, told: Told) -> None:
        """Take a run in."""
        self.runs += 1
        self.jobs += told.jobs
        self.events += told.events
        self.turns += told.turns
        self.states.update(told.states)
        self.faults.update(told.faults)
        self.calls.update(told.calls)

    def merge(self, other: "Sums") -> None:
        """Take other sums in."""
        self.why_left_out = self.why_left_out or other.why_left_out
        for name in ("runs", "jobs", "events", "turns", "left_out"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("states", "faults", "calls"):
            getattr(self, name).update(getattr(other, name))

    def as_json(self) -> dict[str, Any]:
        """Return them for `--json`."""
        return {
            "jobs": self.jobs,
            "events": self.events,
            "turns": self.turns,
            "states": dict(sorted(self.states.items())),
            "faults": dict(sorted(self.faults.items())),
            "plugin_calls": dict(sorted(self.calls.items())),
        }


@attrs.frozen(kw_only=True)
class SwarmChunk(Chunk):
    """What came of the runs of a chunk."""

    sums: Sums
    finds: tuple[Find, ...]
    digests: tuple[tuple[int, str], ...]
    """Seeds of runs that are made twice, and what stands for the bytes of their traces."""


def what_is_wrong(error: ScenarioErrors) -> str:
    """Return what is wrong with a cluster's scenario, in a line."""
    return "; ".join(f"{each.path}: {each.message}" for each in error.mistakes)


class SwarmRunner:
    """Makes the runs of a plan, one after another."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder

    def run_chunk(
        self, first: int, last: int, *, stop: bool, done: Callable[[], None]
    ) -> SwarmChunk:
        """Make the runs of a chunk; those that are made again count for their bytes alone."""
        plan, sums, finds = self._plan, Sums(), []
        digests: list[tuple[int, str]] = []
        for trial in range(first, last + 1):
            seed, again = plan.seed_of(trial)
            sampled = (seed - plan.first_seed) % EVERY == 0
            drawn = draft(seed, plan.faults, plan.own)
            try:
                tried = run_text(drawn.text(), drawn.schedule, self._folder)
            except ScenarioErrors as error:
                if not plan.own.conf:
                    raise
                if not again:
                    sums.left_out += 1
                    sums.why_left_out = sums.why_left_out or f"seed {seed}: {what_is_wrong(error)}"
                done()
                continue
            told = tell(tried, digest=sampled)
            if sampled:
                digests.append((seed, told.digest))
            if not again:
                sums.add(told)
                if told.broken:
                    finds.append(Find(seed=seed, schedule=drawn.schedule, broken=told.broken))
            done()
            if stop and finds:
                break
        return SwarmChunk(
            first=first,
            last=last,
            ended=stop and bool(finds),
            sums=sums,
            finds=tuple(finds),
            digests=tuple(digests),
        )
