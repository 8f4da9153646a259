"""What each turn of a run touched: two turns that touch nothing in common may change places.

Kept for exhaustive search alone. A turn touches the unit of the process that takes it, and what its
process is known to reach beyond that: files, addresses, links, call faults. A unit is a command or
a step daemon with all that they have forked, or whatever else runs on a host.
What concerns the whole cluster, such as a fault, touches everything.
"""

from typing import Final

import attrs

EVERYTHING: Final = "everything"
_NUMBERS: Final = "numbers of processes"


@attrs.define
class Footprint:
    """What a turn wrote and what it only looked at, by name."""

    writes: set[str] = attrs.field(factory=set)
    reads: set[str] = attrs.field(factory=set)

    def meets(self, other: "Footprint") -> bool:
        """Return whether the order of two turns may matter."""
        if EVERYTHING in self.writes or EVERYTHING in other.writes:
            return True
        return not (
            self.writes.isdisjoint(other.writes)
            and self.writes.isdisjoint(other.reads)
            and self.reads.isdisjoint(other.writes)
        )


@attrs.frozen
class Step:
    """A turn that was taken, or dropped because it was dead."""

    name: int
    creator: int
    """Which step caused it; -1: none, it was there from the beginning."""
    moment: int
    footprint: Footprint
    units: frozenset[str]
    """Whose turn it was: what a timer that it set belongs to."""
    point: int
    """At which choice point it was taken; 0: there was no other."""


class Steps:
    """The steps of a run."""

    def __init__(self) -> None:
        self.taken: list[Step] = []
        self._by_turn = [-1]
        self.numbers_matter = False
        """Whether the number of a process was looked at."""
        self.orders_numbers = False
        """Whether the order in which processes are numbered counts as a difference."""

    def add(
        self,
        name: int,
        creator: int,
        moment: int,
        units: frozenset[str] | None,
        *,
        point: int,
        dead: bool,
    ) -> None:
        """Note that a turn is taken; one without an owner belongs to its cause."""
        cause = self._by_turn[creator]
        if units is None:
            units = self.taken[cause].units if cause >= 0 else frozenset()
        footprint = Footprint(writes=set(units))
        self.taken.append(Step(name, cause, moment, footprint, units, point))
        if not dead:
            self._by_turn.append(len(self.taken) - 1)

    def touch(self, what: str) -> None:
        """Note that the turn under way changes something."""
        if self.taken:
            self.taken[-1].footprint.writes.add(what)

    def number(self) -> None:
        """Note that the turn under way gives a process its number."""
        if self.orders_numbers:
            self.touch(_NUMBERS)

    def look_at_number(self) -> None:
        """Note that what follows may depend on the number of a process."""
        self.numbers_matter = True

    def look(self, what: str) -> None:
        """Note that the turn under way looks at something."""
        if self.taken:
            self.taken[-1].footprint.reads.add(what)
