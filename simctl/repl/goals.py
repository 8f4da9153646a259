"""The goals for which a session lets time go on: each says where to stop, and why."""

import attrs

from simctl.kernel.events import Event
from simctl.kernel.pattern import Pattern
from simctl.kernel.trace import OpenCall
from simctl.repl.session import Goal, Session
from simctl.scenario.durations import format_moment


@attrs.define(kw_only=True)
class Steps(Goal):
    """Show a number of events."""

    left: int
    shows: bool = True
    idles: bool = True

    def event(self, session: Session, event: Event) -> str | None:
        """Stop at the last of them."""
        self.left -= 1
        return None if self.left else ""


@attrs.define(kw_only=True)
class Turns(Goal):
    """Take turns until the kernel has counted so many; dead ones do not count."""

    until: int
    since_seq: int
    shows: bool = True
    idles: bool = True

    def turn(self, session: Session) -> str | None:
        """Stop before the turn after the last of them."""
        if session.world.kernel.turns < self.until:
            return None
        return "no event" if session.world.trace.seq == self.since_seq else ""


@attrs.define(kw_only=True)
class NextOfJob(Goal):
    """Go on to the next event of a job."""

    job: int
    left: int = 1

    def event(self, session: Session, event: Event) -> str | None:
        """Stop at an event of the job, or of the array it belongs to."""
        if self.job not in (event.job, event.array_job):
            return None
        self.left -= 1
        session.show_event(event)
        return None if self.left else ""


@attrs.define(kw_only=True)
class CallEnds(Goal):
    """Go on until a plugin call has ended."""

    call: OpenCall

    def event(self, session: Session, event: Event) -> str | None:
        """Stop at the line of its end."""
        call = self.call
        if (
            event.kind == "plugin"
            and event.phase != "enter"
            and event.name == call.name
            and event.pid == call.who.pid
            and (not call.enter or event.enter == call.enter)
        ):
            session.show_event(event)
            return ""
        if call.who.exited:
            return f"pid {call.who.pid} has ended inside {call.name}"
        return None


@attrs.define(kw_only=True)
class UntilTime(Goal):
    """Let time pass up to a moment."""

    time_us: int
    since_seq: int
    idles: bool = True

    def turn(self, session: Session) -> str | None:
        """Stop where the next turn is due later, and let the rest of the time pass."""
        due_us = session.world.kernel.next_due_us
        if due_us is not None and due_us <= self.time_us:
            return None
        session.put_clock(self.time_us)
        events = session.world.trace.seq - self.since_seq
        return f"{format_moment(self.time_us)} now; {events or 'no'} event{'s' * (events != 1)}"


@attrs.define(kw_only=True)
class UntilEvent(Goal):
    """Go on to the first event that matches."""

    pattern: Pattern

    def event(self, session: Session, event: Event) -> str | None:
        """Stop at it."""
        if not self.pattern.matches(event):
            return None
        session.show_event(event)
        return ""


@attrs.define(kw_only=True)
class UntilEnded(Goal):
    """Go on until a command that was typed has ended."""

    label: str

    def turn(self, session: Session) -> str | None:
        """Stop once it has."""
        return "" if self.label not in session.running else None
