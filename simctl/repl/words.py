"""The words that may come next, for completion."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from simctl.kernel.pattern import FIELDS
from simctl.scenario.message_faults import rpc_names
from simctl.scenario.patterns import FUNCTIONS

if TYPE_CHECKING:
    from simctl.repl.session import Session

_EVENTS = ("job_state", "node_state", "step_state", "bb_state", "fork", "exec", "exit", "signal")


def nodes(session: "Session", _: list[str]) -> Iterable[str]:
    """Return the names of nodes."""
    return session.world.hosts


def hosts(session: "Session", _: list[str]) -> Iterable[str]:
    """Return the names of all hosts."""
    return (*session.world.hosts, "slurmctld", "login")


def rpcs(_: "Session", before: list[str]) -> Iterable[str]:
    """Return the names of messages, then what may be said of them."""
    return rpc_names() if not before else ("from=", "to=", "by=", "times=", "skip=", "chance=")


def users(session: "Session", _: list[str]) -> Iterable[str]:
    """Return the names of users."""
    return session.world.site.users


def jobs(session: "Session", before: list[str]) -> Iterable[str]:
    """Return `job`, and then the ids of jobs."""
    if before and before[-1] == "job":
        return [str(job_id) for job_id in session.world.ctld.jobs]
    return () if before else ("job",)


def pattern(session: "Session", before: list[str]) -> Iterable[str]:
    """Return the names of events, then the keys that may follow."""
    if before:
        return [f"{field}=" for field in FIELDS if field != "name"]
    seen = dict.fromkeys(event.name for event in session.world.events)
    return (*FUNCTIONS, *_EVENTS, *seen)
