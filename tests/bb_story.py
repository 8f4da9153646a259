"""A trace, read for the rules of burst buffers: calls put together, and each job's story."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, Final

import attrs
from msgspec import UNSET

from simctl.kernel.events import Event

FINAL: Final = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"),
    }
)
ENDING: Final = ("REQUEST_TERMINATE_JOB", "REQUEST_KILL_TIMELIMIT", "REQUEST_KILL_PREEMPTED")


@attrs.frozen(kw_only=True)
class Terms:
    """What the rules must know beside the trace."""

    model: str = "guide"
    gate: bool | None = None
    """bb_post_run_gate."""

    late_stage_out: bool = False
    """bb_stageout_after_epilog."""

    min_job_age_s: int = 300
    backfill: bool = True
    plain: Collection[int] = ()
    """Jobs known to have no burst buffer."""

    hurried: Collection[int] = ()
    """Jobs that somebody cancels with --hurry."""

    revoked: bool = True
    """Whether select_g_job_begin may be made to fail."""

    @property
    def gates(self) -> bool:
        """Tell whether test_post_run holds jobs COMPLETING."""
        return self.model == "guide" if self.gate is None else self.gate


@attrs.define
class Asked:
    """A function called: of every plugin in turn, with one result."""

    name: str
    first: int
    last: int
    job: Any
    time_us: int
    pid: int
    args: dict[str, Any]
    results: dict[str, Any]

    @property
    def rc(self) -> int:
        """Return what slurmctld makes of the plugins' results."""
        results = [each if type(each) is int else 0 for each in self.results.values()]
        if "_test_" in self.name:
            return min([1, *results])
        bad = [each for each in results if each]
        return bad[-1] if bad else 0


Item = Asked | Event


@attrs.define
class Story:
    """A trace, read: calls put together, and everything sorted by when it began."""

    items: list[Item]
    jobs: dict[int, list[Item]]
    events: Sequence[Event]
    terms: Terms

    def asked(self, *names: str) -> list[Asked]:
        """Return the calls of some functions, or of all."""
        found = (each for each in self.items if isinstance(each, Asked))
        return [each for each in found if not names or each.name in names]


def read(events: Sequence[Event], terms: Terms) -> Story:
    """Put the calls of several plugins together, and sort everything by its beginning."""
    entered = {event.seq: event for event in events if event.phase == "enter"}
    items: list[Item] = []
    open_group: Asked | None = None
    for event in events:
        if event.kind == "plugin" and event.name.startswith("bb_p_") and event.phase != "enter":
            first = event.enter if isinstance(event.enter, int) else event.seq
            name, plugin = event.name.removeprefix("bb_p_"), str(event.plugin)
            group = open_group
            if (
                group is not None
                and (group.name, group.job) == (name, event.job)
                and plugin not in group.results
                and name != "get_system_size"
            ):
                group.results[plugin] = event.rc
                group.last = event.seq
                continue
            at = entered[first].time_us if first in entered else event.time_us
            if isinstance(event.t0_us, int):
                at = event.t0_us
            args = event.args if event.args is not UNSET else {}
            open_group = Asked(
                name, first, event.seq, event.job, at, int(str(event.pid)), args, {plugin: event.rc}
            )
            items.append(open_group)
        elif event.phase != "enter" and event.kind in ("state", "message", "script", "plugin"):
            items.append(event)
    items.sort(key=place)
    jobs: dict[int, list[Item]] = defaultdict(list)
    for item in items:
        if isinstance(item.job, int):
            jobs[item.job].append(item)
    return Story(items, jobs, events, terms)


def place(item: Item) -> int:
    """Return when an item begins, as a number of the trace."""
    if isinstance(item, Asked):
        return item.first
    return item.enter if isinstance(item.enter, int) else item.seq


def change(item: Item) -> tuple[str, str] | None:
    """Return the states that a job goes from and to, if that is what an item is."""
    if isinstance(item, Event) and item.name == "job_state" and item.args is not UNSET:
        return item.args["from"] or "", item.args["to"]
    return None


def base(state: str) -> str:
    """Return a job's base state."""
    return state.partition("|")[0]


def sends(item: Item, *names: str) -> bool:
    """Tell whether slurmctld sends one of these messages."""
    return (
        isinstance(item, Event)
        and item.kind == "message"
        and item.phase == "send"
        and item.daemon == "slurmctld"
        and item.name in names
    )


def forgets(item: Item) -> bool:
    """Tell whether a job's record is given up."""
    return isinstance(item, Event) and item.name == "slurm_ckpt_free_job" and item.step is UNSET


def ends_a_run(item: Item) -> bool:
    """Tell whether a run of a job ends: by itself, by force, or because it is requeued."""
    states = change(item)
    if states is None or base(states[0]) not in ("RUNNING", "SUSPENDED"):
        return False
    return base(states[1]) in FINAL or base(states[1]) == "PENDING"


def ends_unrun(item: Item) -> bool:
    """Tell whether a job ends that has no nodes."""
    states = change(item)
    if states is None or "COMPLETING" in states[0]:
        return False
    return base(states[0]) == "PENDING" and base(states[1]) in FINAL
