"""Rules about what slurmctld asks burst buffer plugins as it starts and before it schedules."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from simctl.kernel.events import Event
from simctl.kernel.orders import begin_us
from simctl.orderings.burst_buffer.story import (
    Asked,
    Item,
    Story,
    broken,
    by_process,
    event,
    settle,
    story,
)
from simctl.orderings.observed import Observed, arg
from simctl.orderings.rules import Broken as Wrong
from simctl.orderings.rules import Finding, rule

_GUIDE: Final = "burst buffer guide"
_EARLY: Final = ("set_tres_cnt", "get_system_size", "xlate_bb_2_tres_str")


@rule(
    32,
    "state-loaded-at-start",
    says="load_state(true) once a start, after jobs are loaded and before any other call",
    key="a slurmctld process",
    exceptions=(
        "set_tres_cnt, get_system_size and xlate_bb_2_tres_str may come earlier, and where jobs "
        "begin again first (model modern, or bb_load_first false) begin, and start_stage_out of "
        "the run that ends if it fails"
    ),
    source=f"{_GUIDE}; held in 89 groups of recordings of real Slurm",
    functions=("bb_p_load_state",),
)
def state_loaded_at_start(run: Observed) -> Iterator[Finding]:
    """Look at the first calls of each slurmctld."""
    found = story(run)
    early = _EARLY if _loads_first(found) else (*_EARLY, "begin", "start_stage_out")
    for pid, calls in by_process(found).items():
        yield settle(_loaded(f"slurmctld {pid}", calls, early))


def _loads_first(found: Story) -> bool:
    wanted = found.terms.conf.get("bb_load_first")
    return found.terms.model == "guide" if wanted is None else bool(wanted)


def _loaded(group: str, calls: list[Asked], early: tuple[str, ...]) -> Iterator[Wrong]:
    loaded: Asked | None = None
    for call in calls:
        if call.name == "load_state" and call.args.get("init_config"):
            if loaded is not None:
                yield broken(group, "load_state(true) was called a second time", loaded, call)
            loaded = call
        elif loaded is None and call.name not in early:
            yield broken(group, f"{call.name} was called before load_state(true)", call)


_ANSWERS: Final = {
    "REQUEST_SUBMIT_BATCH_JOB": "RESPONSE_SUBMIT_BATCH_JOB",
    "REQUEST_RESOURCE_ALLOCATION": "RESPONSE_RESOURCE_ALLOCATION",
    "REQUEST_CHECKPOINT": "RESPONSE_SLURM_RC",
    "MESSAGE_EPILOG_COMPLETE": "",
}
"""Requests in the course of which jobs may be tried, and what ends each."""


@attrs.define(eq=False)
class Pass:
    """Questions that slurmctld asks without a pause: a pass, or what is tried in a request."""

    loaded: Asked | None
    """The load_state that it began with, if it did."""

    inside: str
    """The request in the course of which jobs are tried; empty for the main loop and backfill."""

    calls: list[Asked] = attrs.field(factory=list)

    def __str__(self) -> str:
        """Return its name as a group of events."""
        first = self.loaded or self.calls[0]
        return f"the pass at {first.first.seq} of slurmctld {first.pid}"


def passes(run: Observed) -> Sequence[Pass]:
    """Tell the passes of a run apart: nothing that slurmctld does in one takes time by itself."""
    reader = _Reader()
    for item in story(run).items:
        reader.see(item)
    return reader.found


@attrs.define
class _Reader:
    """Goes through what slurmctld does, and notes where a pass begins and ends."""

    found: list[Pass] = attrs.field(factory=list)
    current: Pass | None = None
    inside: str = ""
    over_us: int = 0
    """When what it did last was over."""

    def see(self, item: Item) -> None:
        """Handle what comes next."""
        if isinstance(item, Event) and item.kind == "message":
            self._message(item)
        elif isinstance(item, Event) and _lets_go(item):
            if not (self._goes_on and item.time_us == self.over_us):
                self.current, self.inside, self.over_us = None, item.name, item.time_us
        elif isinstance(item, Asked) or item.kind == "plugin":
            if _start_us(item) > self.over_us:
                self.current, self.inside = None, ""
            self.over_us = event(item).time_us
            if isinstance(item, Asked):
                self._call(item)

    def _message(self, message: Event) -> None:
        inside = _inside(message, self.inside)
        if message.phase == "receive":
            self.current, self.over_us = None, message.time_us
        elif inside != self.inside:
            self.current = None
        self.inside = inside

    def _call(self, call: Asked) -> None:
        if call.name == "load_state":
            self._begin(call, "")
        elif call.name == "test_post_run":
            # If it lets go of a job that has left its nodes, the next may start there and then.
            if not self._goes_on:
                self.current, self.inside = None, call.name
        elif call.name in ("test_stage_in", "try_stage_in"):
            current = self.current or self._begin(None, self.inside)
            current.calls.append(call)

    def _begin(self, loaded: Asked | None, inside: str) -> Pass:
        self.current = Pass(loaded, inside)
        self.found.append(self.current)
        return self.current

    @property
    def _goes_on(self) -> bool:
        """Return whether a pass is under way, in which jobs without nodes may come and go."""
        calls = [] if self.current is None else self.current.calls
        return self.current is not None and all(each.name != "try_stage_in" for each in calls)


def _lets_go(item: Event) -> bool:
    """Return whether a job leaves a node, or is over: the next may start there and then."""
    if item.name not in ("job_state", "node_state"):
        return False
    return "COMPLETING" in (arg(item, "from") or "") and "COMPLETING" not in arg(item, "to")


def _start_us(item: Item) -> int:
    if isinstance(item, Asked):
        return item.start_us
    return begin_us(item)


def _inside(message: Event, inside: str) -> str:
    """Return the request that slurmctld is at."""
    if message.phase == "receive":
        return message.name if message.name in _ANSWERS else ""
    answers = message.name == _ANSWERS.get(inside)
    if answers and inside == "REQUEST_CHECKPOINT":
        answers = arg(message, "answers") == inside
    return "" if answers else inside


@rule(
    32,
    "state-loaded-before-passes",
    says="load_state(false) before every pass of the main loop and of backfill",
    key="a pass: questions of one slurmctld without a pause",
    exceptions=(
        "none before what is tried in the course of something else: a submission, a restart from "
        "images, and the end of a job's last epilog, or of what else keeps it COMPLETING"
    ),
    source=f"{_GUIDE}; held in 89 groups of recordings of real Slurm",
    functions=("bb_p_load_state", "bb_p_job_test_stage_in", "bb_p_job_try_stage_in"),
)
def state_loaded_before_passes(run: Observed) -> Iterator[Finding]:
    """Look at how each pass begins."""
    for each in run.once(passes):
        if each.calls and not each.inside:
            yield settle(_fresh(each))


def _fresh(found: Pass) -> Iterator[Wrong]:
    if found.loaded is None:
        first = found.calls[0]
        yield broken(found, f"it begins with {first.name}, not load_state", first)


@rule(
    33,
    "try-stage-in-after-waiting",
    says=(
        "try_stage_in ends a pass, once: one in which a test_stage_in was not answered 1, or one "
        "of backfill"
    ),
    key="a try_stage_in",
    exceptions="in the main loop a pass with waiting jobs need not end with one",
    source=f"{_GUIDE}; held in 49 groups of recordings of real Slurm",
    functions=("bb_p_job_try_stage_in", "bb_p_job_test_stage_in"),
)
def try_stage_in_after_waiting(run: Observed) -> Iterator[Finding]:
    """Look at the answers of the pass that each ends."""
    scheduler = run.terms.conf.get("scheduler_type", "sched/backfill")
    for each in run.once(passes):
        for place, call in enumerate(each.calls):
            if call.name == "try_stage_in":
                before = each.calls[:place]
                yield settle(_tried(each, before, call, scheduler == "sched/backfill"))


def _tried(found: Pass, before: Sequence[Asked], call: Asked, backfill: bool) -> Iterator[Wrong]:
    for other in before:
        if other.name == "try_stage_in":
            yield broken(found, "it has a second try_stage_in", other, call)
    # Backfill asks whether a job could start before it starts any; the main loop asks outright.
    plans = backfill and (not before or bool(before[0].args.get("test_only")))
    if not plans and all(other.rc == 1 for other in before):
        yield broken(found, "nobody waits for a burst buffer, and try_stage_in was called", call)


@rule(
    34,
    "est-start-after-minus-one",
    says="get_est_start is asked right after test_stage_in(test_only) was answered -1",
    key="a get_est_start",
    source=f"{_GUIDE}; held in 1 group of recordings of real Slurm",
    functions=("bb_p_job_get_est_start", "bb_p_job_test_stage_in"),
)
def est_start_after_minus_one(run: Observed) -> Iterator[Finding]:
    """Look at the question before each."""
    for calls in by_process(story(run)).values():
        for one, call in zip((None, *calls), calls, strict=False):
            if call.name == "get_est_start":
                yield settle(_estimated(one, call))


def _estimated(one: Asked | None, call: Asked) -> Iterator[Wrong]:
    group = f"get_est_start {call.first.seq} of job {call.job}"
    if one is None or (one.name, one.job) != ("test_stage_in", call.job):
        shown = (call,) if one is None else (one, call)
        yield broken(group, "it follows no test_stage_in of the job", *shown)
    elif not one.args.get("test_only") or one.rc != -1:
        asked = f"test_stage_in(test_only={one.args.get('test_only')}) = {one.rc}"
        yield broken(group, f"it follows {asked}", one, call)
