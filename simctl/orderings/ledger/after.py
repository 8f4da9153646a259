"""Rules L10 and L11: slurmctld goes on with what it says it does, and what is over runs nowhere."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.ledger.book import over, starts
from simctl.orderings.observed import Observed, arg, by
from simctl.orderings.rules import KEPT, LEDGER, Finding, broken, rule
from simctl.wire.errno import ESLURM_INVALID_JOB_ID

_DENIED: Final = (ESLURM_INVALID_JOB_ID, "ESLURM_INVALID_JOB_ID")
_OF_JOBS: Final = frozenset(
    {"REQUEST_UPDATE_JOB", "REQUEST_COMPLETE_JOB_ALLOCATION", "REQUEST_JOB_STEP_CREATE"}
)
"""Requests that are denied for a job that slurmctld does not know, and for that alone.

Those that may be about a task of an array do not say so in the trace, but for updates.
"""


@rule(
    LEDGER + 10,
    "restored-job-is-there",
    says="a job that slurmctld says it goes on with is there: its next state follows on the one "
    "that was read, and nobody is told that there is no such job",
    key="a job and a start of slurmctld",
    exceptions="a job that may have been forgotten since, being over, and whose id is given again",
    source="the other rules of the ledger look at what slurmctld says when it starts",
)
def restored_job_is_there(run: Observed) -> Iterator[Finding]:
    """Look at what becomes of each job that was read, in the life of who read it."""
    denials = run.once(_denials)
    for start in starts(run):
        for job, there in start.jobs.items():
            state = str(arg(there, "state"))
            changes = [e for e in run.job_states.get(job, ()) if e.pid == start.pid]
            first = next(iter(changes), None)
            anew = first is not None and arg(first, "from") is None and over(state)
            if first is not None and arg(first, "from") != state and not anew:
                what = f"it was {state} when it was read, and then {arg(first, 'from')}"
                yield broken(f"job {job}", what, there, first)
                continue
            denied = next((e for e in denials.get(job, ()) if e.pid == start.pid), None)
            if denied is None or _may_be_gone(changes, state, denied):
                yield KEPT
            else:
                what = f"slurmctld read it as {state}, and says that there is no such job"
                yield broken(f"job {job}", what, there, denied)


def _may_be_gone(changes: Sequence[Event], state: str, denied: Event) -> bool:
    """Return whether a job was over by the time at which it was denied, and may be purged."""
    before = [each for each in changes if each.seq < denied.seq]
    return over(str(arg(before[-1], "to")) if before else state)


def _denials(run: Observed) -> Mapping[Any, Sequence[Event]]:
    """Return the answers of slurmctld that there is no such job, by job."""
    found: dict[Any, list[Event]] = defaultdict(list)
    for event in run.sent("RESPONSE_SLURM_RC"):
        asked = arg(event, "answers")
        if event.role != "slurmctld" or asked not in _OF_JOBS:
            continue
        if event.step is not UNSET or arg(event, "return_code") not in _DENIED:
            continue
        request = run.request_of(event)
        if request is not None and arg(request, "array_tasks") is None:
            found[event.job].append(event)
    return found


@rule(
    LEDGER + 11,
    "over-runs-nowhere",
    says="when a job is over or waits anew, and no node of its has yet to report, none of its "
    "tasks runs",
    key="a run of a job",
    exceptions="runs in which anything else was struck than slurmctld, or a node was DOWN",
    source="slurmctld waits for every node of a job before it says that the job is over",
)
def over_runs_nowhere(run: Observed) -> Iterator[Finding]:
    """Hold the end of each task against the moment at which its job was over."""
    tasks = {} if run.once(_others_struck) else run.once(_tasks)
    for job, changes in run.job_states.items():
        for change in changes:
            if _is_gone(str(arg(change, "from")), str(arg(change, "to"))):
                yield _nothing_runs(run, job, tasks.get(job, ()), change)


def _is_gone(before: str, after: str) -> bool:
    """Return whether every node of a run that is over has reported by a change of its job."""
    if over(after):
        return "COMPLETING" not in after
    return before == "PENDING|COMPLETING" and after == "PENDING"


_HARMLESS: Final = ("crash slurmctld", "start slurmctld", "stop slurmctld", "restart slurmctld")


def _others_struck(run: Observed) -> bool:
    """Return whether anything else failed than a slurmctld that dies and starts."""
    return any("DOWN" in str(arg(e, "to")) for e in run.by_name.get("node_state", ())) or any(
        event.kind == "fault" and not str(arg(event, "fault")).startswith(_HARMLESS)
        for event in run.events
    )


def _tasks(run: Observed) -> Mapping[Any, Sequence[Event]]:
    """Return what tasks of steps have executed, by job: an event for each."""
    executed = run.by_name.get("exec", ())
    return by((e for e in executed if e.role == "task" and e.step is not UNSET), "job")


def _nothing_runs(run: Observed, job: Any, tasks: Sequence[Event], change: Event) -> Finding:
    for task in tasks:
        if task.seq > change.seq:
            continue
        end = run.exits.get(int(str(task.pid)))
        if end is not None and end.time_us <= change.time_us:
            continue
        what = f"its run was over, and task {task.pid} on {task.node} ran on"
        return broken(f"job {job}", what, task, change, *(() if end is None else (end,)))
    return KEPT
