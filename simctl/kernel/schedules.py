"""Which of the turns that are due at one moment goes first, and how late messages are.

First come, first served is the queue's own order, not a choice. All other schedules choose: they
see every process's turns by themselves (no two share one), may have messages take longer than their
link's latency, and may have others go first whenever a process is about to call a plugin.
"""

import random
import re
from typing import Any, Final, Protocol

from simctl.kernel.line import Line
from simctl.kernel.token import Token, TokenError, is_token

DEPTH: Final = 3
"""How many things have to come in one order for `pct` to find it, unless it is told."""

LENGTH: Final = 500
"""At how many choice points `pct` may change its mind, unless it is told."""

FORMS: Final = (
    "fifo, random, pct, or a token that `simctl explore` printed; random and pct may be followed "
    "by ,jitter=200us ,calls and pct by ,depth=3 ,length=500"
)
_LENGTH_US: Final = re.compile(r"(\d{1,12})(us|ms|s)")
_UNITS_US: Final = {"us": 1, "ms": 1_000, "s": 1_000_000}
_STEPS: Final = 4
_BITS: Final = 32


class ScheduleError(ValueError):
    """A schedule is asked for that there is not, or a token that does not fit the run."""


class Schedule(Protocol):
    """Which of the turns due at one moment goes first."""

    @property
    def name(self) -> str:
        """Return what `--schedule` calls it."""

    @property
    def chooses(self) -> bool:
        """Return whether it is asked which turn goes first; else the first that came does."""

    @property
    def joins_deliveries(self) -> bool:
        """Return whether messages that reach a mailbox at one moment are handled in one turn."""

    @property
    def separates_processes(self) -> bool:
        """Return whether each task of a step daemon has turns of its own."""

    @property
    def switches_at_calls(self) -> bool:
        """Return whether other turns may come between a process and its next plugin call."""

    def choose(self, line: Line) -> int:
        """Return the place in `line.due` of the turn that goes first; there are at least two."""

    def extra_us(self, line: Line) -> int:
        """Return how much longer than its link's latency the message being sent takes."""

    def check(self, line: Line) -> str:
        """Return what is to be said of a run that went to its end; nothing if all is well.

        Raises:
            ScheduleError: The run was not the one that the schedule is for.
        """


class Fifo:
    """First come, first served, whatever the seed.

    Messages that reach one mailbox at one moment are handled in one turn, in the order sent, which
    costs a wide step one turn for all its replies; and what the processes of one step daemon do in
    a row is one turn.
    """

    name: Final = "fifo"
    chooses: Final = False
    joins_deliveries: Final = True
    separates_processes: Final = False
    switches_at_calls: Final = False

    def choose(self, _: Line) -> int:
        """Take the first; nothing is chosen."""
        return 0

    def extra_us(self, _: Line) -> int:
        """Keep to the latency."""
        return 0

    def check(self, _: Line) -> str:
        """Fit every run."""
        return ""


class InTurn:
    """First come, first served, with a turn for each message and process: what tokens deviate from.

    The base of all schedules that choose.
    """

    name: str = "fifo, one by one"
    chooses: Final = True
    joins_deliveries: Final = False
    separates_processes: Final = True
    switches_at_calls: bool = False

    def choose(self, _: Line) -> int:
        """Take the first."""
        return 0

    def extra_us(self, _: Line) -> int:
        """Keep to the latency."""
        return 0

    def check(self, _: Line) -> str:
        """Fit every run."""
        return ""


class _Drawn(InTurn):
    """What schedules from a seed have in common: how late messages are."""

    def __init__(self, name: str, seed: int, *, jitter_us: int = 0, calls: bool = False) -> None:
        words = [name]
        if jitter_us:
            words.append(f"jitter={jitter_us}us")
        if calls:
            words.append("calls")
        self.name = ",".join(words)
        self.switches_at_calls = calls
        self.jitter_us = jitter_us
        self._random = random.Random(f"schedule:{seed}")
        self._jitter = random.Random(f"jitter:{seed}")

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 on; the same one on every version of Python."""
        return self._random.getrandbits(_BITS) * bound >> _BITS

    def extra_us(self, _: Line) -> int:
        """Let half of the messages be late, by quarters of the jitter: so some stay together."""
        if not self.jitter_us:
            return 0
        step = self._jitter.getrandbits(3)
        return max(0, step - _STEPS + 1) * self.jitter_us // _STEPS


class SeededRandom(_Drawn):
    """Any of the turns due at one moment, drawn from a seed; a turn a message."""

    def __init__(self, seed: int, *, jitter_us: int = 0, calls: bool = False) -> None:
        super().__init__("random", seed, jitter_us=jitter_us, calls=calls)

    def choose(self, line: Line) -> int:
        """Draw one."""
        return self.below(len(line.due))


class Priorities(_Drawn):
    """Processes have priorities drawn from a seed, and the highest that can goes first.

    At a few choice points, drawn beforehand, the first in line falls behind all others. An
    order that hangs on *depth* things coming in one order is found with a chance that falls with
    the power of the depth, and not with the number of turns: see probabilistic concurrency testing.
    A message has the priority of its sender, a timer that of who set it.
    """

    def __init__(
        self,
        seed: int,
        *,
        depth: int = DEPTH,
        length: int = LENGTH,
        jitter_us: int = 0,
        calls: bool = False,
    ) -> None:
        besides = "".join(
            f",{word}={value}"
            for word, value, usual in (("depth", depth, DEPTH), ("length", length, LENGTH))
            if value != usual
        )
        super().__init__(f"pct{besides}", seed, jitter_us=jitter_us, calls=calls)
        self._changes = [1 + self.below(length) for _ in range(depth - 1)]
        self._priorities: dict[Any, int] = {}
        self._lowest = 0

    def choose(self, line: Line) -> int:
        """Take the process of the highest priority; at a change it falls behind first."""
        lanes = [line.lane(turn) for turn in line.due]
        for lane in lanes:
            if lane not in self._priorities:
                self._priorities[lane] = self._random.getrandbits(_BITS)
        for _ in range(self._changes.count(line.points)):
            self._lowest -= 1
            self._priorities[lanes[self._highest(lanes)]] = self._lowest
        return self._highest(lanes)

    def _highest(self, lanes: list[Any]) -> int:
        priorities = self._priorities
        return max(range(len(lanes)), key=lambda place: (priorities[lanes[place]], -place))


class Replay(InTurn):
    """What a token says, exactly; a run that it does not fit is stopped."""

    def __init__(self, token: Token) -> None:
        self.name = token.text()
        self.switches_at_calls = token.calls
        self._token = token
        self._choices = dict(token.choices)
        self._late = dict(token.late)

    def choose(self, line: Line) -> int:
        """Take whom the token names at this choice point, else the first."""
        place = self._choices.pop(line.points, 0)
        if place >= len(line.due):
            raise ScheduleError(
                f"schedule token {self.name}: it does not fit this run: at choice point "
                f"{line.points} it takes turn {place} of those due, counted from 0, and there are "
                f"{len(line.due)}; {_OF_ANOTHER}"
            )
        return place

    def extra_us(self, line: Line) -> int:
        """Have the message be as late as the token says."""
        return self._late.pop(line.messages, 0)

    def check(self, line: Line) -> str:
        """Hold the run against the one that the token was taken from."""
        if self._choices:
            raise ScheduleError(
                f"schedule token {self.name}: it does not fit this run, which had {line.points} "
                f"choice points and not the {min(self._choices)} it speaks of; {_OF_ANOTHER}"
            )
        if self._late:
            raise ScheduleError(
                f"schedule token {self.name}: it does not fit this run, which sent "
                f"{line.messages} messages between hosts and not the {min(self._late)} it speaks "
                f"of; {_OF_ANOTHER}"
            )
        if line.fingerprint() & Token.MASK != self._token.run:
            return (
                "the schedule token was followed, but this is not the run that it was taken from: "
                "the scenario, its seed, its model, a plugin or simctl is another by now"
            )
        return ""


_OF_ANOTHER: Final = "it was taken from a run of another scenario, seed, model or plugin"


def token_of(line: Line, *, calls: bool) -> Token:
    """Return the token that repeats what was chosen in a run."""
    return Token(
        calls=calls,
        choices=tuple((point, place) for _, point, place in line.taken),
        late=tuple(line.late),
        run=line.fingerprint() & Token.MASK,
    )


def make_schedule(text: str, seed: int) -> Schedule:
    """Return the schedule that a text names.

    Raises:
        ScheduleError: There is none of this name, or the token is damaged.
    """
    if text == "fifo":
        return Fifo()
    if is_token(text):
        try:
            return Replay(Token.parse(text))
        except TokenError as error:
            raise ScheduleError(f"schedule token {text!r}: {error}") from error
    name, *words = text.split(",")
    if name not in ("random", "pct"):
        if words and name == "fifo":
            raise ScheduleError("the schedule fifo takes no settings; random and pct do")
        raise ScheduleError(f"there is no schedule {text!r}; there are {FORMS}")
    settings = _settings(name, words)
    return SeededRandom(seed, **settings) if name == "random" else Priorities(seed, **settings)


def _settings(name: str, words: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        known = {"calls": "", "jitter": "_us"} | (
            {"depth": "", "length": ""} if name == "pct" else {}
        )
        if key not in known:
            raise ScheduleError(
                f"--schedule {name}: there is no setting {key!r}; there are {FORMS}"
            )
        if key + known[key] in settings:
            raise ScheduleError(f"--schedule {name}: {key} is given twice")
        settings[key + known[key]] = _value(name, key, value if equals else None)
    return settings


def _value(name: str, key: str, value: str | None) -> int | bool:
    if key == "calls":
        if value is not None:
            raise ScheduleError(f"--schedule {name}: calls takes no value")
        return True
    if key == "jitter":
        match = _LENGTH_US.fullmatch(value or "")
        if match is None:
            raise ScheduleError(
                f"--schedule {name}: jitter={value or ''}: expected a time such as 200us or 5ms"
            )
        return int(match[1]) * _UNITS_US[match[2]]
    if not (value or "").isdecimal() or not 0 < int(value or "") < 1 << _BITS:
        raise ScheduleError(
            f"--schedule {name}: {key}={value or ''}: expected a whole number above 0"
        )
    return int(value or "")
