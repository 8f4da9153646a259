"""Schedules that follow what another run did, as far as it still applies."""

from collections import defaultdict
from collections.abc import Iterable

import attrs

from simctl.kernel.line import Line, Name
from simctl.kernel.schedules import InTurn, Replay
from simctl.kernel.threads import Thread
from simctl.kernel.token import Token
from simctl.scenario.durations import format_moment, format_us


@attrs.frozen(kw_only=True)
class Deviations:
    """How a run deviated from first come, first served, by the names of its turns and messages.

    By names, and not by numbers as in a token: so what is left of them still says something when
    some are taken away.
    """

    passed: tuple[tuple[Name, Name], ...] = ()
    """Who was first in line, and who went instead."""
    late: tuple[tuple[Name, int], ...] = ()
    calls: bool = False

    @classmethod
    def of(cls, line: Line, *, calls: bool) -> "Deviations":
        """Return what a run did."""
        return cls(passed=tuple(line.passed), late=tuple(line.late_names), calls=calls)

    @property
    def size(self) -> tuple[int, int, bool]:
        """Return what makes one of these smaller than another."""
        return len(self.passed), len(self.late), self.calls


class Followed(InTurn):
    """Deviate where these deviations apply, and be first come, first served elsewhere."""

    def __init__(self, deviations: Deviations) -> None:
        self.name = "followed"
        self.switches_at_calls = deviations.calls
        self._instead: dict[Name, list[Name]] = defaultdict(list)
        for first, instead in deviations.passed:
            self._instead[first].append(instead)
        self._late = dict(deviations.late)

    def choose(self, line: Line) -> int:
        """Take the first of those who once went instead of who is first in line now."""
        wanted = self._instead.get(line.name(line.due[0]))
        if not wanted:
            return 0
        places = {line.name(turn): place for place, turn in enumerate(line.due)}
        return next((places[name] for name in wanted if name in places), 0)

    def extra_us(self, line: Line) -> int:
        """Have a message be as late as it was."""
        return self._late.get(line.message_name(), 0) if self._late else 0


class OneOff(Followed):
    """Deviate at one choice point alone; messages are as late as they were.

    `seen` has each choice point's moment and how many turns were due there.
    """

    def __init__(self, deviations: Deviations, *, point: int = 0, place: int = 0) -> None:
        super().__init__(attrs.evolve(deviations, passed=()))
        self._at = (point, place)
        self.seen: list[tuple[int, int]] = []

    def choose(self, line: Line) -> int:
        """Take the first but at that choice point."""
        self.seen.append((line.due[0][0], len(line.due)))
        point, place = self._at
        return place if line.points == point and place < len(line.due) else 0


class Seen(Followed):
    """First come, first served; `sent` has when each message was sent, in microseconds."""

    def __init__(self) -> None:
        super().__init__(Deviations())
        self.sent: dict[Name, int] = {}

    def extra_us(self, line: Line) -> int:
        """Note the message."""
        self.sent[line.message_name()] = line.now_us
        return 0


class Told(Replay):
    """A token, followed exactly, with a sentence about each deviation."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.sentences: list[str] = []

    def choose(self, line: Line) -> int:
        """Take whom the token names, and say who that is."""
        place = super().choose(line)
        if place:
            others = list(dict.fromkeys(_describe(line, turn) for turn in line.due[:place]))
            self.sentences.append(
                f"{format_moment(line.due[0][0])}: {_describe(line, line.due[place])} goes before "
                f"{_joined(others)}"
            )
        return place

    def extra_us(self, line: Line) -> int:
        """Have a message be late, and say so."""
        extra_us = super().extra_us(line)
        if extra_us:
            rpc, to = line.sending
            now, extra = format_moment(line.now_us), format_us(extra_us)
            self.sentences.append(f"{now}: {rpc} to {to} takes {extra} longer")
        return extra_us


def _joined(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _describe(line: Line, turn: object) -> str:
    """Say in a few words what a turn does."""
    assert isinstance(turn, tuple)
    _, _, act, first, _ = turn
    if isinstance(first, Thread):
        return f"{first.name} (pid {getattr(first.owner, 'pid', 0)})"
    if isinstance(first, list) and first:
        message = first[0].message
        name = getattr(message, "rpc", "a notice")
        return f"{name} to {getattr(act.__self__, 'name', 'somebody')}"
    label = getattr(first, "label", "")
    return str(label) if label else "a timer"
