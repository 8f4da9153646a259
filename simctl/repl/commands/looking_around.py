"""Looking around: processes, the timeline, what changed, and what a plugin function is for."""

from collections.abc import Iterable

from msgspec import UNSET

from simctl.kernel.pattern import near
from simctl.repl import words
from simctl.repl.changes import tell_changes
from simctl.repl.errors import CommandError
from simctl.repl.explaining import EXPLAINED, NAMES, tell_point, tell_word
from simctl.repl.processes import hosts_of, tell_processes
from simctl.repl.registry import command
from simctl.repl.schedule import tell_timeline
from simctl.repl.session import Session
from simctl.repl.showing import folded


def _say_all(session: Session, lines: Iterable[str]) -> None:
    for line in lines:
        session.say("\n".join(folded(line)))


@command(
    "procs",
    usage="procs [HOST]",
    topic="looking",
    example="procs n1",
    aliases=("ps",),
    words=words.hosts,
)
def procs(session: Session, rest: str) -> None:
    """Draw the processes of a host as a tree: users, parts in a step, what each waits for.

    Without a host, those of all that have any.
    """
    hosts = hosts_of(session)
    if rest and rest not in hosts:
        raise CommandError(f"there is no host {rest[:40]!r}{near(rest[:40], list(hosts))}")
    wanted = [hosts[rest]] if rest else [host for host in hosts.values() if host.processes]
    for host in wanted:
        for line in tell_processes(session, host):
            session.say(line)


@command("timeline", topic="looking", example="timeline")
def timeline(session: Session, rest: str) -> None:
    """Show what was done so far, by the scenario and by hand, and what the scenario still has."""
    if rest:
        raise CommandError("`timeline` takes nothing; `trace PATTERN` shows what happened")
    _say_all(session, tell_timeline(session))


@command("changed", topic="looking", example="changed")
def changed(session: Session, rest: str) -> None:
    """Show what the last step changed: states, processes, and what plugins keep in memory."""
    if rest:
        raise CommandError("`changed` takes nothing: it tells of the last step, run or command")
    _say_all(session, tell_changes(session.world, session.before))


@command(
    "explain",
    usage="explain [FUNCTION|RPC|STATE|REASON|DAEMON|TERM]",
    topic="looking",
    example="explain switch_p_job_attach",
    words=lambda _session, before: () if before else EXPLAINED,
)
def explain(session: Session, rest: str) -> None:
    """Say what a plugin function is for: the guide, who calls it, orderings, its last call here.

    An RPC, a state, a reason, a daemon or a term of simctl's is said in a line. At a stop in a
    call, or at its event, or at that of a message or state, the word may be left out.
    """
    name = rest or _at_hand(session)
    if not name:
        raise CommandError("expected what: `explain switch_p_job_attach`, `explain COMPLETING`")
    if name in NAMES:
        _say_all(session, tell_point(session, name))
        return
    told = list(tell_word(session, name))
    if not told:
        raise CommandError(f"nothing is known of {name[:40]!r}{near(name[:40], EXPLAINED)}")
    _say_all(session, told)


def _at_hand(session: Session) -> str:
    """Return what the stop is about: the function, the message, or the new state."""
    call = session.present_call()
    if call is not None:
        return call.name
    event = session.event
    if event is None:
        return ""
    if event.kind == "state" and event.args is not UNSET:
        return str(event.args.get("to"))
    return event.name
