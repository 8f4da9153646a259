"""Break points and watches, and what is seen at a stop."""

import re

from simctl.repl import words
from simctl.repl.breaks import Break
from simctl.repl.commands.timing import job_id
from simctl.repl.errors import CommandError
from simctl.repl.registry import command
from simctl.repl.session import Session

_IF = re.compile(r"\s+if\s+")


def _add(session: Session, rest: str, *, once: bool) -> None:
    if not rest:
        raise CommandError("expected a pattern of events, such as `break switch_p_job_init`")
    text = " ".join(_IF.split(rest, maxsplit=1))
    session.pattern(text)
    _arm(session, text, once=once)


def _arm(session: Session, text: str, *, once: bool = False, watched: str = "") -> None:
    desk = session.desk
    desk.breaks_made += 1
    each = Break(number=desk.breaks_made, text=text, once=once, watched=watched)
    desk.breaks.append(each)
    session.arm()
    session.say(f"{each.number}: {each.told}")


@command(
    "break",
    usage="break PATTERN [if KEY=VALUE ...]",
    topic="stops",
    example="break switch_p_job_attach if job=1",
    aliases=("b",),
    words=words.pattern,
)
def break_at(session: Session, rest: str) -> None:
    """Stop at every event that matches; in a plugin call before the plugin runs."""
    _add(session, rest, once=False)


@command(
    "tbreak",
    usage="tbreak PATTERN [if KEY=VALUE ...]",
    topic="stops",
    example="tbreak job_state if state=RUNNING",
    aliases=("tb",),
    words=words.pattern,
)
def break_once(session: Session, rest: str) -> None:
    """Stop at the first event that matches, and then no more."""
    _add(session, rest, once=True)


_WATCHED = {"state": "job_state"}


@command(
    "watch",
    usage="watch job ID state | watch node NAME state",
    topic="stops",
    example="watch job 1 state",
    words=words.jobs,
)
def watch(session: Session, rest: str) -> None:
    """Stop whenever the state of a job or of a node changes."""
    match rest.split():
        case ["job", number, "state"]:
            text = f"job_state job={job_id(session, number)}"
        case ["node", name, "state"]:
            if name not in session.world.hosts:
                raise CommandError(f"there is no node {name[:40]!r}")
            text = f"node_state args.node={name}"
        case _:
            raise CommandError("expected `watch job 1 state` or `watch node n1 state`")
    _arm(session, text, watched=rest)


@command("delete", usage="delete [N ...]", topic="stops", example="delete 1", aliases=("d",))
def delete(session: Session, rest: str) -> None:
    """Forget break points and watches by number, or all."""
    breaks = session.desk.breaks
    numbers = {str(each.number) for each in breaks}
    for word in rest.split():
        if word not in numbers:
            raise CommandError(f"there is no break {word[:40]!r}; `info breaks` lists them")
    wanted = rest.split() or numbers
    session.desk.breaks = [each for each in breaks if str(each.number) not in wanted]
    session.arm()


@command("info", usage="info breaks", topic="stops", example="info breaks", aliases=("i",))
def info(session: Session, rest: str) -> None:
    """List break points and watches, and how often each was met."""
    if rest not in ("breaks", "break", "b", ""):
        raise CommandError("there is `info breaks`; `help looking` has more to look at")
    if not session.desk.breaks:
        session.say("no breaks")
    for each in session.desk.breaks:
        met = "" if not each.times else f", met {each.times} time{'s' * (each.times > 1)}"
        session.say(f"{each.number}: {each.told}{met}")
