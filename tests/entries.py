"""Timelines as people type them, and what tests ask of the runs that come of them."""

import json
from typing import Any

from msgspec import UNSET

from simctl.kernel.events import Event
from tests.cluster import TWO_NODES, Ran, run

QUEUES = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions:
  - {name: debug, nodes: "n[1-2]", default: true}
  - {name: short, nodes: n1, max_time: 10m}
users: {alice: 1001, bob: 1002, op: {uid: 1003, admin: operator}}
"""
"""Two nodes in two partitions, and an operator."""


def entries(*lines: str, head: str = "", fault: str = "") -> str:
    """Return a scenario of lines ``TIME USER COMMAND``, with further keys of an entry after ``|``.

    A time without a unit is in seconds. A line in braces is an entry as a scenario has it. What
    stands in the scenario before the timeline is its *head*; *fault* is its first entry.
    """
    found = [f"  - {fault}\n"] if fault else []
    for each in lines:
        if each.startswith("{"):
            found.append(f"  - {each}\n")
            continue
        typed, _, more = each.partition(" | ")
        at, user, line = typed.split(" ", 2)
        when = f"{at}s" if at.isdecimal() else at
        keys = f"at: {when}, as: {user}, run: {json.dumps(line)}{', ' + more if more else ''}"
        found.append(f"  - {{{keys}}}\n")
    return f"{head}timeline:\n{''.join(found)}"


def typed(*lines: str, cluster: str = TWO_NODES, head: str = "", **how: Any) -> Ran:
    """Run such a scenario on a cluster."""
    return run(entries(*lines, head=head), cluster=cluster, **how)


def queued(*lines: str, fault: str = "") -> Ran:
    """Run such a scenario on two nodes in two partitions."""
    return run(entries(*lines, fault=fault), cluster=QUEUES)


def args(event: Event) -> dict[str, Any]:
    """Return the arguments of an event."""
    assert event.args is not UNSET
    return event.args


def states(ran: Ran, job: int = 1) -> list[str]:
    """Return the states that a job went through."""
    return [args(event)["to"] for event in ran.all("job_state", job=job)]


def started(ran: Ran, job: int) -> float:
    """Return when a job last started, in whole seconds of virtual time; -1 for never."""
    starts = [
        event.time_us for event in ran.all("job_state", job=job) if args(event)["to"] == "RUNNING"
    ]
    return starts[-1] // 1_000_000 if starts else -1


def starts(ran: Ran) -> dict[int, int]:
    """Return the second in which each job last started."""
    return {row.job_id: row.start_us // 1_000_000 for row in ran.result.rows if row.start_us >= 0}


def reasons(ran: Ran) -> dict[int, tuple[str, str]]:
    """Return state and reason of each job at the end."""
    return {row.job_id: (row.state, row.reason) for row in ran.result.rows}


def exits(ran: Ran) -> list[int]:
    """Return the exit statuses of the commands."""
    return [each.exit for each in ran.result.commands]


def wrong(ran: Ran) -> list[str]:
    """Return what did not hold of what entries expect."""
    return [f"{each.text}: {each.detail}" for each in ran.result.expectations if not each.held]
