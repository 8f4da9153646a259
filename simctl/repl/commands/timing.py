"""Letting time go on."""

import shlex

from msgspec import UNSET

from simctl.kernel.pattern import near
from simctl.repl import words
from simctl.repl.errors import CommandError
from simctl.repl.goals import (
    CallEnds,
    NextOfJob,
    Steps,
    Turns,
    UntilEvent,
    UntilTime,
)
from simctl.repl.registry import command
from simctl.repl.session import Goal, Session
from simctl.scenario.durations import DurationError, parse_duration_us
from simctl.scenario.pattern_words import JOB_FLAGS, JOB_STATES

MOST = 10_000_000
JOB_WORDS = 2


def count(text: str, what: str) -> int:
    """Read how often something is to be done; nothing stands for once.

    Raises:
        CommandError: It is no such number.
    """
    if not text:
        return 1
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:12]) <= MOST:
        raise CommandError(f"expected how many {what}, a whole number above 0, got {text[:40]!r}")
    return int(text)


def duration_us(text: str) -> int:
    """Read a length of time.

    Raises:
        CommandError: It is none.
    """
    try:
        return parse_duration_us(text)
    except DurationError as error:
        raise CommandError(str(error)) from error


def job_id(session: Session, text: str) -> int:
    """Read `job 1`, or `1`.

    Raises:
        CommandError: It names no job.
    """
    parts = text.split()
    number = parts[-1] if parts else ""
    if not number.isascii() or not number.isdecimal() or parts[:-1] not in ([], ["job"]):
        raise CommandError(f"expected a job such as `job 1`, got {text[:40]!r}")
    return int(number[:12])


def job_at_hand(session: Session, usage: str) -> int:
    """Return the job that is meant where none is named: of the stop, or the only one there is.

    Raises:
        CommandError: There is none, or there are several.
    """
    call = session.present_call()
    at_stop = session.event.job if session.event is not None else UNSET
    about = call.who.job if call is not None else at_stop
    if about is UNSET and call is not None and type(call.shown.get("job")) is int:
        about = call.shown["job"]
    if about is not UNSET:
        return int(about)
    jobs = list(session.world.ctld.jobs) or list(session.seen().jobs())
    if len(jobs) == 1:
        return jobs[0]
    there = f"which of {', '.join(map(str, jobs[-5:]))}?" if jobs else "there is none yet"
    raise CommandError(f"expected a job, such as `{usage}`: {there}")


def go(session: Session, goal: Goal) -> None:
    """Let time go on.

    Raises:
        CommandError: The run is over.
    """
    if session.over:
        raise CommandError(f"{session.over}; `back` leads to where it could still go on")
    session.goal = goal


@command("step", usage="step [N]", topic="time", example="step 3", aliases=("s",))
def step(session: Session, rest: str) -> None:
    """Go on to the next event of the trace, or the next N, and show each."""
    go(session, Steps(left=count(rest, "events")))


@command("turn", usage="turn [N]", topic="time", example="turn", aliases=("t",))
def turn(session: Session, rest: str) -> None:
    """Take one turn, or N: the thread that is next does all it does before it waits again.

    In the middle of a turn its rest is the first.
    """
    turns = session.world.kernel.turns - (session.kind != "turn")
    seq = session.world.trace.seq
    go(session, Turns(until=turns + count(rest, "turns"), since_seq=seq))


@command(
    "next",
    usage="next [job ID] [N]",
    topic="time",
    example="next job 1",
    aliases=("n",),
    words=words.jobs,
)
def next_of_job(session: Session, rest: str) -> None:
    """Go on to the next event of a job, or the Nth; without a job, of the one at hand."""
    parts = rest.split()
    if parts[:1] == ["job"] and len(parts) >= JOB_WORDS:
        number = job_id(session, " ".join(parts[:JOB_WORDS]))
        parts = parts[JOB_WORDS:]
    else:
        number = job_at_hand(session, "next job 1")
    go(session, NextOfJob(job=number, left=count(" ".join(parts), "events")))


@command("finish", topic="time", example="finish", aliases=("fin",))
def finish(session: Session, rest: str) -> None:
    """Go on until the plugin call at hand has ended."""
    if rest:
        raise CommandError("`finish` takes nothing: it ends the call at hand")
    call = session.present_call()
    if call is None:
        raise CommandError("no plugin call is at hand; `break switch_p_job_init` stops in one")
    go(session, CallEnds(call=call))


@command("run", usage="run TIME", topic="time", example="run 30s", aliases=("r",))
def run(session: Session, rest: str) -> None:
    """Let virtual time pass, such as 30s, 5m or 1:00:00."""
    if not rest:
        raise CommandError("expected for how long, such as `run 30s`; `continue` runs to a stop")
    time_us = session.world.kernel.now_us + duration_us(rest)
    go(session, UntilTime(time_us=time_us, since_seq=session.world.trace.seq))


@command(
    "until",
    usage="until PATTERN | until job ID STATE",
    topic="time",
    example="until job 1 RUNNING",
    aliases=("u",),
    words=words.until,
)
def until(session: Session, rest: str) -> None:
    """Go on to the first event that matches, or until a job is in a state."""
    parts = rest.split()
    if parts[:1] == ["job"]:
        if len(parts) != JOB_WORDS + 1:
            raise CommandError("expected a job and a state: `until job 1 RUNNING`")
        number = job_id(session, " ".join(parts[:JOB_WORDS]))
        state = parts[JOB_WORDS].upper()
        for part in state.split("|"):
            if part not in (*JOB_STATES, *JOB_FLAGS):
                hint = near(part, (*JOB_STATES, *JOB_FLAGS))
                raise CommandError(f"no state of a job is called {part!r}{hint}")
        rest = f"job_state job={number} state={shlex.quote(state)}"
        job = session.world.ctld.jobs.get(number)
        if job is not None and state in str(job.state).split("|"):
            session.say(f"job {number} is {job.state} already")
            return
    if not rest:
        raise CommandError("expected a pattern of events, such as `until job_state job=1`")
    go(session, UntilEvent(pattern=session.pattern(rest)))


@command("continue", topic="time", example="continue", aliases=("c",))
def go_on(session: Session, rest: str) -> None:
    """Go on to the next stop, or until nothing is left to do. Ctrl-C stops it."""
    if rest:
        raise CommandError("`continue` takes nothing; `until PATTERN` goes on to an event")
    go(session, Goal())
