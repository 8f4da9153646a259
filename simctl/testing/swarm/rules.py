"""What must hold of a cluster at rest, beside the built-in orderings; the rules are in `rest_*`."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.procs import SIGKILL
from simctl.world import RunResult, World


@attrs.define(eq=False, slots=False)
class AtRest:
    """A run that has come to rest: its world, and its events by what the rules ask for."""

    world: World
    result: RunResult | None = None
    """None while the daemons are still there."""

    @property
    def events(self) -> list[Event]:
        """Return what has happened."""
        return self.world.events

    @cached_property
    def failed(self) -> Counter[tuple[str, str]]:
        """Count plugin calls that have failed, for a fault or by themselves, by name and role.

        Scripts that have failed count under their names, whatever their role.
        """
        found: Counter[tuple[str, str]] = Counter()
        for event in self.events:
            if event.phase == "enter":
                continue
            rc = event.rc
            if event.kind == "plugin" and type(rc) is int and rc < 0:
                found[event.name, str(event.role)] += 1
            elif event.kind == "script" and rc not in (0, UNSET):
                found[event.name, "script"] += 1
        return found

    def has_failed(self, *names: str) -> bool:
        """Return whether any call or script of these names has failed, in whatever process."""
        return any(name in names for name, _ in self.failed)

    @cached_property
    def deeds(self) -> frozenset[str]:
        """Return the faults that happened, each with whom it was to strike."""
        return frozenset(
            " ".join(str(event.args["fault"]).split()[:2])
            for event in self.events
            if event.name == "fault" and event.args is not UNSET
        )

    @cached_property
    def faults(self) -> frozenset[str]:
        """Return which forms of faults struck, such as ``crash`` and ``cut``."""
        return frozenset(
            str(event.args["fault"]).split()[0]
            for event in self.events
            if event.kind == "fault" and event.args is not UNSET and "fault" in event.args
        )

    @property
    def lost(self) -> frozenset[int]:
        """Return the jobs that a slurmctld has lost, as model modern and damaged files allow.

        One that was started clean has lost them all.
        """
        trace = self.world.trace
        clean = any("cannot recover" in each for each in trace.fatalities)
        return frozenset((*trace.lost_jobs, *(self.began if clean else ())))

    @property
    def forgets(self) -> bool:
        """Return whether a slurmctld may have gone on from files older than what it had done."""
        damaged = "corrupt" in self.faults or "disk slurmctld" in self.deeds
        return damaged or (self.world.model == "modern" and "crash slurmctld" in self.deeds)

    @cached_property
    def began(self) -> Counter[int]:
        """Count how often a job of an id has begun: after the last id the first follows."""
        return Counter(
            event.job
            for event in self.events
            if event.name == "job_state"
            and isinstance(event.job, int)
            and event.args is not UNSET
            and event.args["from"] is None
        )

    @cached_property
    def killed(self) -> frozenset[str]:
        """Return the nodes on which a step daemon was killed, with what it had yet to put away.

        A node that crashes forgets what was left on it; whom it kills could put nothing away.
        """
        killed: set[str] = set()
        down: set[str] = set()
        for event in self.events:
            node = str(event.node)
            if crashed := _crashed(event):
                killed.discard(crashed)
                down.add(crashed)
            elif event.name != "exit":
                down.discard(node)
            elif event.daemon == "slurmstepd" and event.rc == SIGKILL and node not in down:
                killed.add(node)
        return frozenset(killed)

    @cached_property
    def crashed(self) -> frozenset[str]:
        """Return the nodes that crashed."""
        return frozenset(filter(None, map(_crashed, self.events)))


def _crashed(event: Event) -> str:
    """Return whom a fault lets crash; empty for any other event."""
    if event.name != "fault" or event.args is UNSET:
        return ""
    form, *whom = str(event.args["fault"]).split()
    return whom[0] if form == "crash" else ""


Check = Callable[[AtRest], Iterator[str]]


@attrs.frozen(kw_only=True)
class Rule:
    """A rule: what it says, and what finds where it is broken."""

    name: str
    says: str
    exceptions: str
    """What excuses a breach; what a trace shows, and never that some fault is there."""
    check: Check
    ended: bool
    """Whether it looks once the daemons have stopped, and not while they rest."""


RULES: Final[list[Rule]] = []


def rule(
    name: str, *, says: str, exceptions: str = "none", ended: bool = False
) -> Callable[[Check], Check]:
    """Declare a generator that yields a sentence for each breach as a rule."""

    def declare(check: Check) -> Check:
        RULES.append(Rule(name=name, says=says, exceptions=exceptions, check=check, ended=ended))
        return check

    return declare
