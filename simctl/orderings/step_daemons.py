"""Rules about what a step daemon and its processes do on one node."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from simctl.kernel.events import Event
from simctl.orderings.observed import Observed, begin
from simctl.orderings.rules import KEPT, Broken, Finding, rule

JOB_FUNCTIONS: Final = tuple(
    f"switch_p_job_{each}" for each in ("preinit", "init", "attach", "fini", "postfini")
)


@rule(
    3,
    "job-functions-in-order",
    says="preinit, init, every attach, fini, postfini; each but attach at most once",
    key="a slurmstepd process with its children",
    exceptions="a later one may be missing, never out of order",
    source="switch guide; held in 164 step daemons of recordings of real Slurm",
    functions=JOB_FUNCTIONS,
)
def job_functions_in_order(run: Observed) -> Iterator[Finding]:
    """Look at each step daemon: the calls of its processes end before those of the next begin."""
    daemons: dict[int, list[list[Event]]] = defaultdict(lambda: [[] for _ in JOB_FUNCTIONS])
    for place, name in enumerate(JOB_FUNCTIONS):
        for call in run.calls(name):
            daemons[run.step_daemon(call)][place].append(call)
    for pid, calls in daemons.items():
        yield _in_order(f"slurmstepd {pid}", calls)


def _in_order(group: str, calls: list[list[Event]]) -> Finding:
    for place, found in enumerate(calls):
        if len(found) > 1 and place != JOB_FUNCTIONS.index("switch_p_job_attach"):
            return Broken(
                group=group, what=f"{found[0].name} was called twice", events=(found[0], found[1])
            )
    for earlier, later in pairwise([found for found in calls if found]):
        for call in later:
            if begin(call) < earlier[-1].seq:
                what = f"{call.name} began before {earlier[-1].name} ended"
                return Broken(group=group, what=what, events=(call, earlier[-1]))
    return KEPT
