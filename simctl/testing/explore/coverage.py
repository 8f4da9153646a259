"""Which plugin calls were seen to come in both orders, and which in one only."""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event

MOST: Final = 2_000
"""How many calls of a run are compared, each with each; later ones are counted alone."""

Pair = tuple[str, str]


class Coverage:
    """The orders of plugin calls over any number of runs.

    A call is known by its function, job, step, node and task, and by its number among the calls for
    which these are the same. One call comes before another if it ended before the other began.
    """

    def __init__(self) -> None:
        self._labels: dict[str, int] = {}
        self._functions: list[str] = []
        self._before: list[int] = []
        """For each call, a bit for each of those that were seen to come before it."""
        self.left_out = 0
        """The most calls of a run that were not compared."""

    def add(self, events: Iterable[Event]) -> None:
        """Take a run in."""
        ended = left_out = 0
        times: dict[str, int] = {}
        begun: dict[int, int] = {}
        for event in events:
            if event.kind != "plugin":
                continue
            if event.phase == "enter":
                begun[event.seq] = ended
                continue
            label = _label(event)
            times[label] = nth = times.get(label, 0) + 1
            number = self._number(f"{label} #{nth}" if nth > 1 else label, event.name)
            if number is None:
                left_out += 1
                continue
            enter = event.enter
            self._before[number] |= ended if enter is UNSET else begun.get(enter, ended)
            ended |= 1 << number
        self.left_out = max(self.left_out, left_out)

    def _number(self, label: str, function: str) -> int | None:
        number = self._labels.get(label)
        if number is None and len(self._labels) < MOST:
            number = self._labels[label] = len(self._labels)
            self._functions.append(function)
            self._before.append(0)
        return number

    def packed(self) -> tuple[list[tuple[str, str, int]], int]:
        """Return all of it, to be sent to another process and merged there."""
        calls = zip(self._labels, self._functions, self._before, strict=True)
        return list(calls), self.left_out

    def merge(self, packed: tuple[list[tuple[str, str, int]], int]) -> None:
        """Add what another has seen."""
        calls, left_out = packed
        self.left_out = max(self.left_out, left_out)
        numbers = [self._number(label, function) for label, function, _ in calls]
        for number, (_, _, before) in zip(numbers, calls, strict=True):
            if number is not None:
                found = (numbers[place] for place in _bits(before))
                self._before[number] |= _mask(each for each in found if each is not None)

    def pairs(self) -> tuple[int, int, dict[Pair, list[int]]]:
        """Count pairs of calls: seen in both orders, seen at all; and both by pair of functions."""
        after = [0] * len(self._before)
        for number, before in enumerate(self._before):
            for other in _bits(before):
                after[other] |= 1 << number
        both = seen = 0
        functions: dict[Pair, list[int]] = {}
        for number, before in enumerate(self._before):
            name = self._functions[number]
            for other in _bits((before | after[number]) >> (number + 1)):
                swapped = (before & after[number]) >> (number + 1 + other) & 1
                seen += 1
                both += swapped
                pair = sorted((name, self._functions[number + 1 + other]))
                counts = functions.setdefault((pair[0], pair[1]), [0, 0])
                counts[0] += swapped
                counts[1] += 1
        return both, seen, functions

    def as_json(self) -> dict[str, Any]:
        """Return what `explore --json` says of it."""
        both, seen, functions = self.pairs()
        return {
            "pairs": seen,
            "both_orders": both,
            "calls_left_out": self.left_out,
            "functions": [
                {"pair": list(pair), "both_orders": swapped, "pairs": count}
                for pair, (swapped, count) in sorted(functions.items())
            ],
        }


def _label(event: Event) -> str:
    words = [event.name]
    for key, value in (("job", event.job), ("step", event.step), ("node", event.node)):
        if value is not UNSET and value is not None:
            words.append(f"{key}={value}")
    if event.task is not UNSET:
        words.append(f"task={event.task}")
    elif event.role is not UNSET:
        words.append(f"role={event.role}")
    return " ".join(words)


def _bits(mask: int) -> Iterable[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _mask(numbers: Iterable[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask
