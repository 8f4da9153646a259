"""Looking at a job: where it is in its life, and what it waits for."""

from collections.abc import Iterator

from simctl.repl import words
from simctl.repl.commands.timing import job_at_hand, job_id
from simctl.repl.errors import CommandError
from simctl.repl.foresight import Foreseen, foresee
from simctl.repl.life import coloured, tell_life
from simctl.repl.registry import command
from simctl.repl.session import Session
from simctl.repl.showing import folded
from simctl.repl.waiting import tell_why
from simctl.scenario.why_failed import NoSuchJobError, WhyFailed


def _wanted(session: Session, rest: str, usage: str) -> int:
    """Read which job is meant.

    Raises:
        CommandError: There is none of that number, or never was.
    """
    number = job_id(session, rest) if rest else job_at_hand(session, usage)
    if number not in session.world.ctld.jobs and not session.seen().of_job(number):
        known = ", ".join(map(str, list(session.world.ctld.jobs)[-5:]))
        there = f"slurmctld has {known}" if known else "slurmctld has none"
        raise CommandError(f"there is no job {number}; {there}")
    return number


@command(
    "where",
    usage="where [job ID]",
    topic="looking",
    example="where job 1",
    words=words.jobs,
)
def where(session: Session, rest: str) -> None:
    """Draw a job's place in its life: what is done, where it is now, and what is ahead.

    Without a job it is about the one at hand, or the only one.
    What is ahead is what a copy of the session sees happen if nobody types anything, for 3,000
    events at most.
    """
    number = _wanted(session, rest, "where job 1")
    job = session.world.ctld.jobs.get(number)
    model = session.world.model
    if job is None:
        head = f"job {number}, model {model}: over"
        foreseen: Foreseen | None = Foreseen(events=[])
    else:
        head = f"job {number} ({job.name}), model {model}: {job.state}"
        head += f" on {job.node_list}" if job.nodes else ""
        foreseen = foresee(session, number)
    if foreseen is None:
        return
    lines = tell_life(session, session.seen().of_job(number), foreseen, head, is_over=job is None)
    for line, colour in coloured(lines):
        session.say(line, colour)


@command("why", usage="why [job ID]", topic="looking", example="why job 1", words=words.jobs)
def why(session: Session, rest: str) -> None:
    """Say what a job waits for and since when, what it does until when, or why it failed."""
    number = _wanted(session, rest, "why job 1")
    job = session.world.ctld.jobs.get(number)
    if job is None:
        session.say(f"job {number} is over, and slurmctld has forgotten it; `where job {number}`")
    for line in (*(tell_why(session, job) if job is not None else ()), *_failed(session, number)):
        session.say("\n".join(folded(line)))


def _failed(session: Session, number: int) -> Iterator[str]:
    """Say what went wrong first with a job that is over and did not complete."""
    users = {name: user.uid for name, user in session.world.site.users.items()}
    try:
        found = WhyFailed(session.world.events, users).of(number)
    except NoSuchJobError:  # nothing of it is in the session's events
        return
    if found is not None and found.over:
        yield from (f"  {line}" for line in found.lines)
