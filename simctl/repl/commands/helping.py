"""Help, and the way out."""

import textwrap

from simctl.repl.errors import CommandError
from simctl.repl.registry import COMMANDS, TOPICS, Command, command, lookup
from simctl.repl.session import Session

_WIDTH = 80


@command(
    "help",
    usage="help [TOPIC|COMMAND]",
    topic="session",
    example="help time",
    aliases=("?", "h"),
    words=lambda _session, _before: (*TOPICS, *COMMANDS),
)
def show_help(session: Session, rest: str) -> None:
    """Say what there is to type: by topic, or one command with an example."""
    if not rest:
        for topic, what in TOPICS.items():
            names = [each.name for each in COMMANDS.values() if each.topic == topic]
            session.say(f"{topic}: {what}")
            for line in textwrap.wrap(", ".join(names), _WIDTH - 4):
                session.say(f"    {line}")
        session.say("`help TOPIC` or `help COMMAND` says more.")
    elif rest in TOPICS:
        for each in COMMANDS.values():
            if each.topic == rest:
                _tell(session, each)
    else:
        found = lookup(rest)
        if found is None:
            raise CommandError(
                f"no help on {rest[:40]!r}; topics: {', '.join(TOPICS)}; or name a command"
            )
        _tell(session, found)


def _tell(session: Session, each: Command) -> None:
    session.say(each.usage)
    doc = " ".join(each.doc.split())
    for line in textwrap.wrap(doc, _WIDTH - 4):
        session.say(f"    {line}")
    also = f" (also: {', '.join(each.aliases)})" if each.aliases else ""
    session.say(f"    example: {each.example}{also}")


@command("quit", topic="session", example="quit", aliases=("exit", "q"))
def leave(session: Session, rest: str) -> None:
    """Leave the session; Ctrl-D does so as well."""
    if rest:
        raise CommandError("`quit` takes nothing")
    session.leave()
