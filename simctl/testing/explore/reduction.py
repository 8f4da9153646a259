"""Partial-order reduction: of schedules that only swap turns with nothing in common, one is run.

Dynamic, as runs show what their turns touch. Two steps of one moment that touch the same thing, and
of which neither led to the other, are a race: the step at which they could have come the other way
round gets a turn to be tried there (source sets). Turns tried already sleep until something they
touch is touched; a run in which only sleepers are left repeats one that was made (sleep sets).
Turns of different moments never change places.
"""

from collections.abc import Sequence

import attrs

from simctl.kernel.footprint import Footprint, Step
from simctl.kernel.line import Line, Name
from simctl.kernel.schedules import InTurn


class RedundantError(Exception):
    """The run under way would only repeat others."""


class UnstableError(Exception):
    """The same choices led to another run."""


@attrs.define(eq=False)
class Node:
    """A choice point of the run under way: what could go first, what did, what is to be tried."""

    names: list[Name]
    chosen: Name
    asleep: dict[Name, Footprint]
    """Turns that need not be tried here, with what they touch."""
    wanted: dict[Name, None] = attrs.field(factory=dict)
    done: dict[Name, Footprint] = attrs.field(factory=dict)

    def next(self) -> Name | None:
        """Return a turn that is still to be tried first, if there is one."""
        known = (self.done, self.asleep)
        return next((name for name in self.wanted if not any(name in each for each in known)), None)


class Guided(InTurn):
    """A schedule that repeats the choices of a path, and goes on from its end."""

    def __init__(self, path: list[Node], *, reduces: bool, calls: bool) -> None:
        self.name = "exhaustive"
        self.switches_at_calls = calls
        self._path = path
        self._reduces = reduces
        self._depth = 0
        self._looked = 0
        self._asleep: dict[Name, Footprint] = {}

    def choose(self, line: Line) -> int:
        """Take the next of the path; beyond it, the first that does not sleep."""
        names = [line.name(turn) for turn in line.due]
        self.settle(line)
        if self._depth == len(self._path):
            awake = [name for name in names if name not in self._asleep]
            if not awake:
                raise RedundantError
            node = Node(names, awake[0], dict(self._asleep))
            node.wanted = dict.fromkeys([awake[0]] if self._reduces else names)
            self._path.append(node)
        node = self._path[self._depth]
        if node.names != names:
            raise UnstableError
        self._depth += 1
        if self._reduces:
            self._asleep = {**node.asleep, **node.done}
        return names.index(node.chosen)

    def settle(self, line: Line) -> None:
        """Wake the threads that are touched by the steps since the last choice."""
        assert line.steps is not None
        steps = line.steps.taken
        for step in steps[self._looked :]:
            if not self._asleep:
                break
            if step.name in self._asleep:
                raise RedundantError
            self._asleep = {
                name: footprint
                for name, footprint in self._asleep.items()
                if not footprint.meets(step.footprint)
            }
        self._looked = len(steps)


class Tree:
    """The schedules of a scenario, run one by one until all that differ have been."""

    def __init__(self, *, reduces: bool = True) -> None:
        self._path: list[Node] = []
        self._reduces = reduces

    def schedule(self, *, calls: bool) -> Guided:
        """Return the schedule of the next run."""
        return Guided(self._path, reduces=self._reduces, calls=calls)

    def advance(self, steps: Sequence[Step]) -> bool:
        """Learn from a run; return whether there is another to make."""
        by_point = {step.point: step for step in steps if step.point}
        if self._reduces:
            for race in races(steps):
                self._want(race)
        while self._path:
            node = self._path[-1]
            step = by_point.get(len(self._path))
            if step is not None:
                node.done[node.chosen] = step.footprint
            else:
                node.done[node.chosen] = Footprint()
            following = node.next()
            if following is not None:
                node.chosen = following
                return True
            self._path.pop()
        return False

    def _want(self, race: "Race") -> None:
        """Have one of the turns that lead to the other order be tried where that can be."""
        if not race.point or race.point > len(self._path):
            return
        node = self._path[race.point - 1]
        if any(name in node.wanted for name in race.first):
            return
        there = [name for name in race.first if name in node.names]
        # Should none be due there after all, everything is tried.
        for name in there[:1] or node.names:
            node.wanted.setdefault(name)


@attrs.frozen
class Race:
    """Two steps that could have come the other way round: where, and what could then go first."""

    point: int
    first: tuple[Name, ...]


def races(steps: Sequence[Step]) -> list[Race]:
    """Return the races of a run."""
    found: list[Race] = []
    start = 0
    for end in range(1, len(steps) + 1):
        if end == len(steps) or steps[end].moment != steps[start].moment:
            if end - start > 1:
                found += _races_of_moment(steps, start, end)
            start = end
    return found


def _races_of_moment(steps: Sequence[Step], start: int, end: int) -> list[Race]:
    """Return the races among the steps of one moment."""
    before: list[int] = []
    """For each step, a bit for each earlier one that it has to follow."""
    found = []
    for place in range(end - start):
        step = steps[start + place]
        meets = [
            earlier
            for earlier in range(place)
            if step.footprint.meets(steps[start + earlier].footprint)
        ]
        follows = 0
        creator = step.creator - start
        if creator >= 0:
            follows = before[creator] | 1 << creator
        for earlier in reversed(meets):
            if follows >> earlier & 1:
                continue
            # Nothing in between leads from the one to the other.
            follows |= before[earlier] | 1 << earlier
            point = steps[start + earlier].point
            if point:
                first = _initials(steps, start, earlier, place, before)
                found.append(Race(point, first))
        before.append(follows)
    return found


def _initials(
    steps: Sequence[Step], start: int, one: int, other: int, before: Sequence[int]
) -> tuple[Name, ...]:
    """Return the turns that may go first where *other* is to come before *one*."""
    beside = [place for place in range(one + 1, other) if not before[place] >> one & 1]
    mask = sum(1 << place for place in beside)
    first = [place for place in beside if not before[place] & mask]
    # What the last needs of those in between has to come before it.
    last = steps[start + other]
    needed = 0
    creator = last.creator - start
    if creator >= 0:
        needed = before[creator] | 1 << creator
    meets = any(last.footprint.meets(steps[start + place].footprint) for place in beside)
    if not needed & mask and not meets:
        first.append(other)
    return tuple(steps[start + place].name for place in first)
