"""What is tried: which seeds, under which schedules, with which faults where."""

from pathlib import Path
from typing import Final

import attrs

from simctl.kernel.schedules import InTurn, Priorities, Schedule, SeededRandom
from simctl.testing.explore.trial import Terms

_USUAL_DEPTHS: Final = (2, 3, 4)


@attrs.frozen(kw_only=True)
class Plan:
    """A search: its scenario as texts, so that workers need nothing else."""

    path: str
    """The file that the texts stand in or could stand in: plugins are found from there."""
    texts: tuple[str, ...]
    """The scenario, or one text for each place of a fault."""
    first_seed: int
    seeds: int
    jitter_us: int
    length: int
    """How many choice points the first run had."""
    terms: Terms

    @property
    def trials(self) -> int:
        """How many runs there are to make."""
        return self.seeds * len(self.texts)

    def text_of(self, number: int) -> int:
        """Return which text the trial of a number runs: all seeds of one come together."""
        return number // self.seeds

    def seed_of(self, number: int) -> int:
        """Return the seed of the trial of a number."""
        return self.first_seed + number % self.seeds

    def schedule_of(self, number: int) -> Schedule:
        """Return the schedule of a trial: the first of each text is first come, first served."""
        place = number % self.seeds
        return InTurn() if not place else mixed(self.seed_of(number), self.jitter_us, self.length)

    def file(self) -> Path:
        """Return the scenario's file."""
        return Path(self.path)


def mixed(seed: int, jitter_us: int, length: int) -> Schedule:
    """Return the schedule of a seed: one of a dozen kinds, in turn.

    Random ones and such with priorities; with and without messages that are late, a little or much;
    with and without switches at plugin calls.
    """
    late = (0, max(1, jitter_us // 10), jitter_us)[seed // 4 % 3] if jitter_us else 0
    calls = seed // 2 % 2 == 1
    if seed % 2:
        depth = _USUAL_DEPTHS[seed // 12 % len(_USUAL_DEPTHS)]
        return Priorities(seed, depth=depth, length=length, jitter_us=late, calls=calls)
    return SeededRandom(seed, jitter_us=late, calls=calls)
