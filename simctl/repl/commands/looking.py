"""Looking at what happened, and at the plugin call at hand."""

from simctl.repl import words
from simctl.repl.errors import CommandError
from simctl.repl.inside import tell_call
from simctl.repl.registry import command
from simctl.repl.session import Session
from simctl.repl.showing import event_lines

_SHOWN = 40


@command(
    "trace",
    usage="trace [PATTERN]",
    topic="looking",
    example="trace job_state job=1",
    words=words.pattern,
)
def trace(session: Session, rest: str) -> None:
    """Show the events so far that match; of more than forty the last forty."""
    events = session.world.events
    if rest:
        pattern = session.pattern(rest)
        events = [event for event in events if pattern.matches(event)]
    if not events:
        session.say("no event matches" if rest else "no events yet")
    if len(events) > _SHOWN:
        session.say(f"... {len(events) - _SHOWN} before")
    for event in events[-_SHOWN:]:
        for line in event_lines(event, session.world, colours=session.front.colours):
            session.say(line)


@command("call", topic="stops", example="call")
def call(session: Session, rest: str) -> None:
    """Show the plugin call at hand: its process, its arguments, and what the plugin keeps.

    What it keeps in the process that this one is a fork of is shown beside, as well as the
    credential of the step, and the turns that are due.
    """
    if rest:
        raise CommandError("`call` takes nothing: it shows the call at hand")
    present = session.present_call()
    if present is None:
        raise CommandError("no plugin call is at hand; `break switch_p_job_init` stops in one")
    for line in tell_call(session.world, present):
        session.say(line)
