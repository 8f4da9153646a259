"""Looking at what happened, and at the plugin call at hand."""

import re
from itertools import islice

from simctl.kernel.pattern import EVERYTHING
from simctl.repl import words
from simctl.repl.commands.timing import count
from simctl.repl.errors import CommandError
from simctl.repl.inside import tell_call
from simctl.repl.registry import command
from simctl.repl.session import Session
from simctl.repl.showing import COLOURS, event_lines

_SHOWN = 40
_JOB = re.compile(r"\bjob ([0-9]+)\b")


@command(
    "trace",
    usage="trace [last N] [PATTERN|job ID]",
    topic="looking",
    example="trace job_state job=1",
    words=lambda session, before: (
        words.pattern(session, before) if before else ("last", *words.pattern(session, before))
    ),
)
def trace(session: Session, rest: str) -> None:
    """Show the events so far that match; of more than forty, or than N, the last."""
    most = _SHOWN
    word, _, after = rest.partition(" ")
    if word == "last":
        number, _, rest = after.strip().partition(" ")
        if not number:
            raise CommandError("expected how many events: `trace last 20`")
        most, rest = count(number, "events"), rest.strip()
    pattern = session.pattern(_with_name(rest)) if rest else EVERYTHING
    found = islice(filter(pattern.matches, reversed(session.seen().candidates(pattern))), most + 1)
    events = list(found)[::-1]
    if not events:
        session.say("no event matches" if rest else "no events yet")
    if len(events) > most:
        session.say("... more before")
    for event in events[-most:]:
        for line in event_lines(event, session.world):
            session.say(line, COLOURS.get(event.kind, ""))


def _with_name(text: str) -> str:
    """Return a pattern of any name where only keys are asked for, or only a job."""
    text = _JOB.sub(r"job=\1", text)
    return f"* {text}" if "=" in text.partition(" ")[0] else text


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
