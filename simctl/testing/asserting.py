"""Assertions on the trace of a run, in the words of a scenario's `expect:`."""

import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.pattern import (
    EVERYTHING,
    FIELDS,
    Pattern,
    PatternError,
    field_reader,
    value_text,
)
from simctl.plugins.points.declare import Point
from simctl.scenario.holding.expect import Result, check
from simctl.scenario.holding.recorded import Recorded, write_lines
from simctl.scenario.model import (
    CountExpect,
    Expectation,
    NeverExpect,
    OrderEntry,
    OrderExpect,
)
from simctl.scenario.pattern_words import Known, checked
from simctl.scenario.patterns import FUNCTIONS
from simctl.scenario.timeline.timeline import COMMANDS
from simctl.status import InputError
from simctl.testing.frames import hide

__tracebackhide__ = hide


What = str | Point
"""Which events: a pattern such as ``switch_p_job_init node=n1``, or a lifecycle point."""

_MOST: Final = 1 << 62
_PROCESS: Final = ("daemon", "role", "user", "uid", "euid")


@attrs.frozen
class RunTrace:
    """The events of a run.

    Every method takes patterns as scenarios have them, or points of `simctl.testing.points`, and
    fields that narrow down which events count: ``step="1.0"``, ``node="n1"``, ``user="alice"``; an
    argument of a call is ``args={"nprocs": 4}``.
    """

    events: tuple[Event, ...] = attrs.field(repr=False)
    """Every event, in order, as docs/traces.md describes them."""

    users: Mapping[str, int]
    """Who there is, for `user`."""

    nodes: tuple[str, ...] = ()
    """The compute nodes, beside those that the events tell of."""

    repeat: str = ""
    """The command that repeats the run, if there is one."""

    def matching(self, what: What, **fields: Any) -> list[Event]:
        """Return the events that match; a call that took time is one event, its end.

        Raises:
            InputError: The pattern cannot be read, or a field is none.
        """
        wanted, within = self._pattern(what), self._within(fields, what)
        return [each for each in self.events if wanted.matches(each) and within.matches(each)]

    def assert_order(
        self,
        *whats: What,
        each: str = "",
        optional: bool = False,
        proved: bool = False,
        **fields: Any,
    ) -> None:
        """Raise AssertionError unless all matches of one end before any of the next begins.

        Args:
            whats: Two or more, in the order in which they must come.
            each: A field, such as ``node``, that makes groups, each in order by itself.
            optional: Whether a group may lack matches.
            proved: Whether causes have to force the order under every schedule.
            fields: Which events count.
        """
        if len(whats) < 2:  # noqa: PLR2004 - an order
            raise InputError("assert_order: an order has two entries at least")
        entries = tuple(
            OrderEntry(pattern=self._pattern(what), optional=optional) for what in whats
        )
        text = "order " + " < ".join(entry.pattern.text for entry in entries)
        self._expect(
            OrderExpect(
                text=text
                + _told(fields)
                + (f" each {each}" if each else "")
                + (" proved" if proved else ""),
                line=0,
                entries=entries,
                within=self._within(fields, *whats),
                each=_field(each),
                proved=proved,
            )
        )

    def assert_before(
        self, first: What, second: What, *, proved: bool = False, each: str = "", **fields: Any
    ) -> None:
        """Raise AssertionError unless all matches of one end before any of the other begins."""
        self.assert_order(first, second, proved=proved, each=each, **fields)

    def assert_never(self, what: What, **fields: Any) -> None:
        """Raise AssertionError if an event matches; show the first that does."""
        pattern = self._pattern(what, fields)
        self._expect(NeverExpect(text=f"never {pattern.text}", line=0, pattern=pattern))

    def assert_count(
        self,
        what: What,
        number: int | None = None,
        *,
        least: int = 0,
        most: int | None = None,
        **fields: Any,
    ) -> None:
        """Raise AssertionError unless *number* events match, or from *least* to *most*."""
        if (number is None) == (not least and most is None):
            raise InputError("assert_count: give a number, or least= or most= or both")
        if number is not None:
            said, least, most = f"is {number}", number, number
        else:
            said = " ".join([f"min {least}"] * bool(least) + [f"max {most}"] * (most is not None))
        pattern = self._pattern(what, fields)
        self._expect(
            CountExpect(
                text=f"count {pattern.text} {said}",
                line=0,
                pattern=pattern,
                least=least,
                most=_MOST if most is None else most,
            )
        )

    def assert_process(
        self, *whats: What, same: bool = False, each: str = "", **fields: Any
    ) -> None:
        """Raise AssertionError unless the events that match are those of a certain process.

        Args:
            whats: What is done there; each needs a match.
            same: Whether all of it must be done by one process (in each group).
            each: With *same*, a field such as ``node`` that makes groups, a process for each.
            fields: ``daemon``, ``role``, ``user``, ``uid`` and ``euid`` say what the process must
                be; all others say which events count.
        """
        claims = {key: value for key, value in fields.items() if key in _PROCESS}
        rest = {key: value for key, value in fields.items() if key not in _PROCESS}
        if not whats or not (claims or same):
            raise InputError(
                f"assert_process: name an event, and {', '.join(_PROCESS)} or same=True"
            )
        if each and not same:
            raise InputError("assert_process: each= goes with same=True")
        text = "process of " + " and ".join(_name(what) for what in whats) + _told(rest)
        text += ":" + _told(claims, "") + (" the same" if same else "")
        text += f" each {each}" if each else ""
        found = [self.matching(what, **rest) for what in whats]
        trouble = ""
        for what, events in zip(whats, found, strict=True):
            if not events:
                trouble = self._absent(what, rest)
        events = sorted((one for some in found for one in some), key=lambda event: event.seq)
        trouble = trouble or _otherwise(events, self._within(claims))
        if same:
            trouble = trouble or _several(events, _field(each))
        self._settle(Result(text=text, line=0, held=not trouble, detail=trouble))

    # How that is done.

    def _expect(self, expectation: Expectation) -> None:
        (result,) = check([expectation], self.events, ())
        self._settle(result)

    def _settle(self, result: Result) -> None:
        if not result.held:
            lines = [result.text, *(f"  {line}" for line in result.detail.splitlines())]
            lines += [f"to repeat: {self.repeat}"] if self.repeat else []
            raise AssertionError("\n".join(lines))

    def _absent(self, what: What, fields: Mapping[str, Any]) -> str:
        return f"nothing matches: {Recorded(self.events).absent(self._pattern(what, fields))}"

    def _pattern(self, what: What, fields: Mapping[str, Any] | None = None) -> Pattern:
        """Return the pattern of *what*, narrowed down by *fields*."""
        text = _name(what) + _told(fields or {}, "")
        try:
            return checked(Pattern.parse(text, self.users), self._known)
        except PatternError as error:
            raise InputError(f"pattern: {error}") from None

    def _within(self, fields: Mapping[str, Any], *whats: What) -> Pattern:
        """Return the filter that fields make; *whats* must have the arguments among them."""
        for what in whats if "args" in fields else ():
            self._pattern(_name(what).split()[0], {"args": fields["args"]})
        text = _told(fields, "").strip()
        if not text:
            return EVERYTHING
        try:
            return checked(Pattern.parse_filter(text, self.users), self._known)
        except PatternError as error:
            raise InputError(f"fields: {error}") from None

    @cached_property
    def _known(self) -> Known:
        """What words there are: what is never seen of others says nothing."""
        return Known.of_run(self.events, functions=FUNCTIONS, commands=COMMANDS, nodes=self.nodes)


def _name(what: What) -> str:
    return what.name if isinstance(what, Point) else what


def _told(fields: Mapping[str, Any], before: str = " within") -> str:
    """Write fields as patterns have them."""
    words = []
    for key, value in fields.items():
        if key == "args" and isinstance(value, Mapping):
            words += [f"args.{name}={_quoted(one)}" for name, one in value.items()]
        elif key in FIELDS and key != "name":
            words.append(f"{key}={_quoted(value)}")
        else:
            raise InputError(
                f"no field {key!r}; fields: {', '.join(FIELDS)}, and args={{NAME: VALUE}}"
            )
    return f"{before} {' '.join(words)}" if words else ""


def _quoted(value: object) -> str:
    text = value_text(value)
    # A * stays what it is in patterns: anything.
    return "*".join(shlex.quote(part) if part else "" for part in text.split("*")) or "''"


def _field(name: str) -> str:
    if name:
        try:
            field_reader(name)
        except ValueError as error:
            raise InputError(f"each: {error}") from None
    return name


def _otherwise(events: Sequence[Event], wanted: Pattern) -> str:
    """Say which of the events another process than the wanted one has made."""
    wrong = [event for event in events if not wanted.matches(event)]
    if not wrong:
        return ""
    return f"{len(wrong)} of {len(events)} otherwise:\n{write_lines(wrong)}"


def _several(events: Sequence[Event], each: str) -> str:
    """Say in which group more than one process has made the events."""
    read = field_reader(each) if each else None
    groups: dict[str, list[Event]] = {}
    for event in events:
        value = read(event) if read is not None else ""
        if value is not UNSET:
            groups.setdefault(f"{each}={value_text(value)}" if each else "", []).append(event)
    for name, group in groups.items():
        pids = dict.fromkeys(event.pid for event in group)
        if len(pids) > 1:
            where = f"in {name}: " if name else ""
            told = ", ".join(str(pid) for pid in pids)
            return f"{where}{len(pids)} processes, pids {told}:\n{write_lines(group)}"
    return "" if groups else f"no event has a field {each}"


__all__ = ["RunTrace", "What"]
