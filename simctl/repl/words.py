"""The words that may come next, for completion."""

from collections.abc import Iterable

from simctl.kernel.pattern import FIELDS
from simctl.repl.session import Session
from simctl.scenario.pattern_words import JOB_FLAGS, JOB_STATES
from simctl.scenario.patterns import FUNCTIONS
from simctl.scenario.timeline.message_faults import rpc_names
from simctl.wire.ids import step_name

_EVENTS = ("job_state", "node_state", "step_state", "bb_state", "fork", "exec", "exit", "signal")


def nodes(session: Session, _: list[str]) -> Iterable[str]:
    """Return the names of nodes."""
    return session.world.hosts


def struck(session: Session, before: list[str]) -> Iterable[str]:
    """Return who can be crashed: nodes, their slurmds, step daemons and tasks that there are."""
    spools = [(name, slurmd.spool) for name, slurmd in session.world.daemons.slurmds.items()]
    steps = [(step_name(*key), name) for name, spool in spools for key in spool.sockets]
    if before == ["stepd"]:
        return [f"{step}@{node}" for step, node in steps]
    if before == ["task"]:
        tasks = [
            (step_name(*key), task)
            for _, spool in spools
            for key, socket in spool.sockets.items()
            if socket.daemon is not None
            for task in socket.daemon.tasks.tasks
        ]
        return [f"{step}.{task.rank}" for step, task in tasks if not task.ended]
    if before:
        return ()
    return (*session.world.hosts, *slurmds(session, before), *(("stepd", "task") if steps else ()))


def slurmds(session: Session, _: list[str]) -> Iterable[str]:
    """Return the addresses of slurmds."""
    return [f"slurmd@{name}" for name in session.world.hosts]


def started(session: Session, before: list[str]) -> Iterable[str]:
    """Return who can be started."""
    return ("clean",) if before else (*session.world.hosts, *slurmds(session, before))


def restarted(session: Session, before: list[str]) -> Iterable[str]:
    """Return who can stop and start again."""
    return ("for",) if before else ("slurmctld", *slurmds(session, before))


def hosts(session: Session, _: list[str]) -> Iterable[str]:
    """Return the names of all hosts."""
    return (*session.world.hosts, "slurmctld", "login")


def rpcs(_: Session, before: list[str]) -> Iterable[str]:
    """Return the names of messages, then what may be said of them."""
    return rpc_names() if not before else ("from=", "to=", "by=", "times=", "skip=", "chance=")


def users(session: Session, _: list[str]) -> Iterable[str]:
    """Return the names of users."""
    return session.world.site.users


def files(session: Session, before: list[str]) -> Iterable[str]:
    """Return the files of the user who types."""
    user = session.world.site.users[session.desk.user]
    return () if before else session.world.disk.names("login", user.home)


def programs(session: Session, before: list[str]) -> Iterable[str]:
    """Return what can be run in a step: programs that are described, and the user's files."""
    if any(not word.startswith("-") for word in before):
        return ()
    scripts = [f"./{name}" for name in files(session, [])]
    return (*session.scenario.programs, *scripts, "sleep", "true", "false")


def job_ids(session: Session, _: list[str]) -> Iterable[str]:
    """Return the ids of jobs."""
    return [str(job_id) for job_id in session.world.ctld.jobs]


def until(session: Session, before: list[str]) -> Iterable[str]:
    """Return `job`, its id and a state, or the words of a pattern."""
    if before[:1] != ["job"]:
        return pattern(session, before) if before else ("job", *pattern(session, before))
    if len(before) == 1:
        return job_ids(session, before)
    return (*JOB_STATES, *JOB_FLAGS) if before[2:] == [] else ()


def scontrol(session: Session, before: list[str]) -> Iterable[str]:
    """Return what scontrol does, then what it does that to."""
    if not before:
        return ("show", "hold", "release", "requeue", "update", "suspend", "resume", "reconfigure")
    if before == ["show"]:
        return ("job", "node", "partition", "step", "config", "burstbuffer", "reservation")
    if before == ["show", "node"]:
        return session.world.hosts
    return job_ids(session, before)


def jobs(session: Session, before: list[str]) -> Iterable[str]:
    """Return `job`, and then the ids of jobs."""
    if before and before[-1] == "job":
        return [str(job_id) for job_id in session.world.ctld.jobs]
    return () if before else ("job",)


def pattern(session: Session, before: list[str]) -> Iterable[str]:
    """Return the names of events, then the keys that may follow."""
    if before:
        return [f"{field}=" for field in FIELDS if field != "name"]
    seen = dict.fromkeys(event.name for event in session.world.events)
    return (*FUNCTIONS, *_EVENTS, *seen)
