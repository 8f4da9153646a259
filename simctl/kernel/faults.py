"""Rules that make a plugin call fail or raise instead of running, or hang before it runs."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

import attrs

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern
from simctl.kernel.trace import OpenCall, Trace
from simctl.wire.errno import SlurmError


class InjectedError(RuntimeError):
    """What a `raise` fault makes a plugin raise: an exception that no plugin means to raise."""


@attrs.define(kw_only=True, eq=False)
class CallFault:
    """One rule; `times` and `skip` count the calls that match, `rc` is what the call returns.

    With `raises` the call raises an exception instead of returning. With `hangs` it does not come
    back for `hangs_us`, or ever if that is None, and then runs as it would have.
    """

    pattern: Pattern
    text: str
    raises: bool = False
    hangs: bool = False
    hangs_us: int | None = None
    errno: int = 0
    rc: int = -1
    times: int = 1
    skip: int = 0

    @property
    def kind(self) -> str:
        """Return what it does to a call, as the form of its fault is called."""
        return "raise" if self.raises else "hang" if self.hangs else "fail"

    def strike(self) -> int:
        """Fail the call as the rule says."""
        if self.raises:
            self._raise()
        if self.rc == -1 and self.errno:
            raise SlurmError(self.errno, f"injected by {self.text}")
        return self.rc

    def _raise(self) -> NoReturn:
        raise InjectedError(f"injected by {self.text}")


class CallFaults:
    """The rules in force; those used up are dropped."""

    def __init__(self, trace: Trace) -> None:
        self.rules: list[CallFault] = []
        self.asked: Callable[[OpenCall], CallFault | None] | None = None
        """Asked at the beginning of every plugin call, before the rules."""
        self.struck: Counter[str] = Counter()
        """How many calls have met a rule, by what it does: ``fail``, ``raise`` or ``hang``."""
        self._trace = trace

    def add(self, rule: CallFault) -> None:
        """Put a rule in force from now on."""
        self.rules.append(rule)

    def may_hang(self, name: str) -> bool:
        """Return whether a call of this name may take time for a rule's sake."""
        return any(
            rule.hangs and (rule.pattern.any_name or rule.pattern.name == name)
            for rule in self.rules
        )

    def strike(self, call: OpenCall) -> CallFault | None:
        """Return what a plugin call that begins meets: an answer from outside, or a rule."""
        answer = self.asked(call) if self.asked is not None else None
        return answer if answer is not None else self.find(call)

    def find(self, call: OpenCall) -> CallFault | None:
        """Return the first rule that the call at hand matches, counted down."""
        call.who.table.kernel.touch("call faults")
        event: Event | None = None
        for rule in self.rules:
            if event is None:
                event = self._trace.prospect(call)
            if not rule.pattern.matches(event):
                continue
            if rule.skip:
                rule.skip -= 1
                continue
            self.struck[rule.kind] += 1
            rule.times -= 1
            if not rule.times:
                self.rules.remove(rule)
            return rule
        return None


def describe(rule: CallFault) -> dict[str, Any]:
    """Return a rule as the arguments of a fault event."""
    return {"fault": rule.text}
