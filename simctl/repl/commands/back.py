"""Going back."""

from simctl.repl import words
from simctl.repl.commands.timing import count
from simctl.repl.errors import CommandError
from simctl.repl.registry import command
from simctl.repl.session import Session


@command(
    "back",
    usage="back [N] | back to PATTERN",
    topic="back",
    example="back 10",
    words=lambda session, before: (
        words.pattern(session, before[1:]) if before[:1] == ["to"] else ("to",)
    ),
)
def back(session: Session, rest: str) -> None:
    """Go back by one event, by N, or to the last event before this one that matches.

    What was typed there and later is forgotten; break points are kept.
    """
    seq = session.world.trace.seq
    word, _, text = rest.partition(" ")
    if word != "to":
        target = seq - count(rest, "events")
    else:
        pattern = session.pattern(text) if text else None
        if pattern is None:
            raise CommandError("expected a pattern of events: `back to job_state job=1`")
        found = (
            event.seq
            for event in reversed(session.world.events)
            if event.seq < seq and pattern.matches(event)
        )
        target = next(found, 0)
        if not target:
            raise CommandError("no event before this one matches")
    if seq <= session.first_seq and not session.desk.acts:
        raise CommandError("this is the beginning")
    session.go_back(max(target, session.first_seq))
