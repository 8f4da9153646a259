"""Rules about the end of jobs in slurmctld: what comes first in the request that ends them."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.kernel.orders import grouped
from simctl.orderings.observed import Observed, arg
from simctl.orderings.rules import KEPT, Finding, broken, rule
from simctl.orderings.steps.steps import COMPLETE, EPILOG

_KILL: Final = "REQUEST_KILL_JOB"


@rule(
    75,
    "job-over-before-its-last-node",
    says="upon the last epilog of a job slurmctld completes the steps that are left, and the job "
    "is no longer COMPLETING, before the node is free of it",
    key="the end of a job, or of a step of it, upon its last epilog",
    exceptions="EpilogSlurmctld, or a burst buffer plugin, may keep the job; another job that ends "
    "on the node keeps the node",
    source="held in 137 ends of jobs in recordings of real Slurm 18.08",
    functions=(COMPLETE,),
)
def job_over_before_its_last_node(run: Observed) -> Iterator[Finding]:
    """Look at what slurmctld does upon each report of an epilog."""
    freed: dict[int, Event] = {}
    for name in run.node_states:
        for change in run.node_states[name]:
            if "COMPLETING" in str(arg(change, "from")) and "COMPLETING" not in str(
                arg(change, "to")
            ):
                request = run.request_of(change)
                if request is not None and request.name == EPILOG:
                    freed[request.seq] = change
    ends = [(run.request_of(end), end) for end in _ends(run)]
    last = {request.seq for request, _ in ends if request is not None}
    ends += [(run.request_of(call), call) for call in run.calls(COMPLETE)]
    for request, end in ends:
        if request is None or request.name != EPILOG or request.seq not in last:
            continue
        if end.job != request.job:
            # It was held up until another job had left its nodes.
            continue
        node = freed.get(request.seq)
        if node is not None and node.seq < end.seq:
            what = f"{arg(node, 'node')} was free of it before {end.name}"
            yield broken(f"end of job {request.job}", what, request, node, end)
        else:
            yield KEPT


def _ends(run: Observed) -> Iterator[Event]:
    """Return the changes with which jobs stop being COMPLETING."""
    for changes in run.job_states.values():
        for change in changes:
            before, after = str(arg(change, "from")), str(arg(change, "to"))
            if "COMPLETING" in before and "COMPLETING" not in after:
                yield change


@rule(
    76,
    "array-cancelled-from-its-rest",
    says="of a job array that is cancelled the tasks that wait together are ended first, so that "
    "none of them starts where others end",
    key="a request to cancel jobs of an array",
    source="held in 1 request of recordings of real Slurm 18.08",
)
def array_cancelled_from_its_rest(run: Observed) -> Iterator[Finding]:
    """Look at the jobs that each request ends, in order."""
    changes_of_tasks = [
        change
        for change in run.by_name.get("job_state", ())
        if str(arg(change, "to")).startswith("CANCELLED") and change.array_job is not UNSET
    ]
    for changes in grouped(changes_of_tasks, lambda change: _killed_by(run, change)).values():
        rest = next((each for each in changes if each.array_task is UNSET), None)
        if rest is not None and rest is not changes[0]:
            group = f"array {rest.array_job}"
            yield broken(group, "a task was ended before those that wait", changes[0], rest)
        else:
            yield KEPT


def _killed_by(run: Observed, change: Event) -> int | None:
    """Return the number of the request to cancel jobs upon which a job's state changed."""
    request = run.request_of(change)
    return request.seq if request is not None and request.name == _KILL else None
