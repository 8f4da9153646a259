"""A machine for regular expressions that visits each of its states once at each place of a text.

Python's matcher tries all the ways in which an expression may fit, which are countless where a
repetition stands in another. This one takes longer for each step, and no more steps than the
expression has states times the text has characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import attrs

_STATES = 20_000
_STEPS = 2_000_000


class TooMuchError(ValueError):
    """Say that an expression would take too long, or is too long by itself."""


@attrs.frozen
class Char:
    """Any character that fits: in the words of Python's expressions."""

    text: str


@attrs.frozen
class Place:
    """A place between characters, in the words of Python's expressions."""

    text: str


@attrs.frozen
class Same:
    """What a group has fitted before."""

    group: int


@attrs.frozen
class Group:
    """An expression in parentheses, numbered from 1."""

    number: int
    node: Node


@attrs.frozen
class Sequence:
    """Expressions behind one another."""

    nodes: tuple[Node, ...]


@attrs.frozen
class Choice:
    """One of several expressions."""

    nodes: tuple[Node, ...]


@attrs.frozen
class Repeat:
    """An expression *least* to *most* times, or without an end."""

    node: Node
    least: int
    most: int | None


Node: TypeAlias = Char | Place | Same | Group | Sequence | Choice | Repeat


def python_of(node: Node) -> str:
    """Return an expression in Python's words."""
    match node:
        case Char(text) | Place(text):
            return text
        case Same(group):
            return f"(?:\\{group})"
        case Group(_, inner):
            return f"({python_of(inner)})"
        case Sequence(nodes):
            return "".join(map(python_of, nodes))
        case Choice(nodes):
            return "|".join(map(python_of, nodes))
    signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    most = "" if node.most is None else str(node.most)
    sign = signs.get((node.least, node.most)) or f"{{{node.least},{most}}}"
    once = python_of(node.node)
    return f"{once}{sign}" if isinstance(node.node, Char | Group) else f"(?:{once}){sign}"


def repetitions(node: Node) -> tuple[int, bool]:
    """Return how many repetitions an expression has, and whether one repeats what may vary."""
    match node:
        case Group(_, inner):
            return repetitions(inner)
        case Sequence(nodes) | Choice(nodes):
            found = [repetitions(each) for each in nodes]
            return sum(count for count, _ in found), any(nested for _, nested in found)
        case Repeat(inner, _, most):
            count, nested = repetitions(inner)
            varies = most != 1 and (count > 0 or _chooses(inner))
            return count + (most != 1), nested or varies
    return 0, False


def _chooses(node: Node) -> bool:
    match node:
        case Choice():
            return True
        case Group(_, inner) | Repeat(inner):
            return isinstance(node, Repeat) or _chooses(inner)
        case Sequence(nodes):
            return any(map(_chooses, nodes))
    return False


@attrs.frozen
class _Take:
    """Take one character that fits."""

    fits: Callable[[str, int], object]


@attrs.frozen
class _Stand:
    """Go on where the place fits."""

    fits: Callable[[str, int], object]


@attrs.frozen
class _Repeat:
    """Take what a group has taken."""

    group: int


@attrs.frozen
class _Save:
    """Note the place in a slot."""

    slot: int


@attrs.define
class _Split:
    """Go on in either way, in the first if both lead equally far."""

    ways: list[int]


_Step: TypeAlias = _Take | _Stand | _Repeat | _Save | _Split
_Slots: TypeAlias = tuple[int, ...]
_State: TypeAlias = tuple[int, int, _Slots]


@attrs.define
class Machine:
    """A program for one expression; whoever comes to its end has fitted it."""

    flags: int
    groups: int = 0
    refers: bool = False
    steps: list[_Step] = attrs.field(factory=list)

    def add(self, node: Node) -> None:
        """Append the steps of an expression."""
        if len(self.steps) > _STATES:
            raise TooMuchError("a regular expression whose repetitions are too many")
        match node:
            case Char(text):
                self.steps.append(_Take(re.compile(text, self.flags).match))
            case Place(text):
                self.steps.append(_Stand(re.compile(text).match))
            case Same(group):
                self.refers = True
                self.steps.append(_Repeat(group))
            case Group(number, inner):
                self.groups = max(self.groups, number)
                self.steps.append(_Save(2 * number))
                self.add(inner)
                self.steps.append(_Save(2 * number + 1))
            case Sequence(nodes):
                for each in nodes:
                    self.add(each)
            case Choice(nodes):
                self._add_choice(nodes)
            case Repeat():
                self._add_repeat(node)

    def _add_choice(self, nodes: tuple[Node, ...]) -> None:
        ends: list[_Split] = []
        for each in nodes[:-1]:
            split = _Split([len(self.steps) + 1])
            self.steps.append(split)
            self.add(each)
            ends.append(_Split([]))
            self.steps.append(ends[-1])
            split.ways.append(len(self.steps))
        self.add(nodes[-1])
        for end in ends:
            end.ways.append(len(self.steps))

    def _add_repeat(self, node: Repeat) -> None:
        for _ in range(node.least):
            self.add(node.node)
        if node.most is None:
            start = len(self.steps)
            split = _Split([start + 1])
            self.steps.append(split)
            self.add(node.node)
            self.steps.append(_Split([start]))
            split.ways.append(len(self.steps))
            return
        splits: list[_Split] = []
        for _ in range(node.most - node.least):
            splits.append(_Split([len(self.steps) + 1]))
            self.steps.append(splits[-1])
            self.add(node.node)
        for split in splits:
            split.ways.append(len(self.steps))

    def search(self, text: str, start: int) -> list[tuple[int, int]] | None:
        """Return where the expression and its groups fit first, and there longest.

        A group that fits nothing has (-1, -1).

        Raises:
            TooMuchError: It takes too many steps.
        """
        seen: set[object] = set()
        for place in range(start, len(text) + 1):
            end, slots = self._from(text, place, seen)
            if end >= 0:
                spans = list(zip(slots[2::2], slots[3::2], strict=True))
                return [(place, end), *(each if each[1] >= 0 else (-1, -1) for each in spans)]
        return None

    def _from(self, text: str, start: int, seen: set[object]) -> tuple[int, _Slots]:
        """Return the furthest end of a fit that begins at *start*, or -1, and its slots."""
        best: tuple[int, _Slots] = (-1, ())
        waiting = [(0, start, (-1,) * (2 * self.groups + 2))]
        while waiting:
            step, at, slots = waiting.pop()
            state = (step, at, slots) if self.refers else (step, at)
            if state in seen:
                continue
            seen.add(state)
            if len(seen) > _STEPS:
                raise TooMuchError("a regular expression that takes too long over this text")
            if step == len(self.steps):
                if at > best[0]:
                    best = at, slots
                continue
            waiting += self._next(step, text, at, slots)
        return best

    def _next(self, step: int, text: str, at: int, slots: _Slots) -> list[_State]:
        """Return where a step leads, the way that is tried first at the end."""
        match self.steps[step]:
            case _Take(fits):
                return [(step + 1, at + 1, slots)] if at < len(text) and fits(text, at) else []
            case _Stand(fits):
                return [(step + 1, at, slots)] if fits(text, at) else []
            case _Save(slot):
                return [(step + 1, at, (*slots[:slot], at, *slots[slot + 1 :]))]
            case _Split(ways):
                return [(way, at, slots) for way in reversed(ways)]
            case _Repeat(group):
                start, end = slots[2 * group : 2 * group + 2]
                if end >= 0 and text.startswith(text[start:end], at):
                    return [(step + 1, at + end - start, slots)]
        return []


@lru_cache(maxsize=128)
def machine_of(node: Node, flags: int) -> Machine:
    """Return the machine of an expression.

    Raises:
        TooMuchError: Its repetitions make it too long.
    """
    machine = Machine(flags)
    machine.add(node)
    return machine
