"""Rules about jobs that start while a burst buffer plugin is loaded."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event
from simctl.orderings.burst_buffer.story import (
    Asked,
    Item,
    Life,
    Story,
    base,
    broken,
    by_life,
    by_process,
    change,
    claims_at_once,
    ends_a_run,
    launches,
    place,
    runs,
    settle,
    story,
)
from simctl.orderings.controller_deaths import may_be_older
from simctl.orderings.observed import Observed
from simctl.orderings.rules import Broken as Wrong
from simctl.orderings.rules import Finding, rule

_GUIDE: Final = "burst buffer guide"


@rule(
    25,
    "stage-in-before-begin",
    says="test_stage_in answers 1, then begin is called of the PENDING job, then it is RUNNING",
    key="a begin, or a start of a job",
    exceptions=(
        "a job without nodes is RUNNING first; so is one that a restarted slurmctld claims anew; "
        "a task of an array may be asked about under the number of what is left of the array"
    ),
    source=f"{_GUIDE}; held in 18 groups of recordings of real Slurm",
    functions=("bb_p_job_test_stage_in", "bb_p_job_begin"),
)
def stage_in_before_begin(run: Observed) -> Iterator[Finding]:
    """Look at what was asked last before each begin, and at begin before each start."""
    found = story(run)
    before = _call_before(found)
    for life in found.lives:
        state = ""
        teller: Any = UNSET
        older = False
        last: Asked | None = None
        begun: Asked | None = None
        for index, item in enumerate(life.items):
            states = change(item)
            if isinstance(item, Asked):
                if item.pid != teller and base(state) != "RUNNING":
                    # Another slurmctld may have read it in an older state.
                    state = ""
                    older = may_be_older(run, item.pid, life.job)
                if item.name == "begin" and base(state) != "RUNNING" and not older:
                    yield settle(_claimed(life, item, state, last, before.get(item)))
                begun = item if item.name == "begin" else begun
                begun = None if item.name == "revoke_alloc" else begun
                last = item
            elif runs(item):
                yield settle(_started(life, index, begun))
                begun = None
            if states is not None:
                state, teller, older = states[1], item.pid, False


def _call_before(found: Story) -> dict[Asked, Asked]:
    """Return the call of its slurmctld that comes before each begin."""
    return {
        other: one
        for calls in by_process(found).values()
        for one, other in pairwise(calls)
        if other.name == "begin"
    }


def _claimed(
    life: Life, begin: Asked, state: str, last: Asked | None, before: Asked | None
) -> Iterator[Wrong]:
    shown: list[Item] = [each for each in (last, begin) if each is not None]
    if state and state != "PENDING":
        yield broken(life, f"begin was called while the job was {state}", *shown)
    for asked in (last, before):
        if asked is not None and (asked.name, asked.rc) == ("test_stage_in", 1):
            return
    what = "nothing" if last is None else f"{last.name} = {last.rc}"
    yield broken(life, f"begin follows {what} and no test_stage_in of 1", *shown)


def _started(life: Life, index: int, begun: Asked | None) -> Iterator[Wrong]:
    start = life.items[index]
    if begun is None and not claims_at_once(life.items[index + 1 :]):
        yield broken(life, "the job is RUNNING, and begin was not called", start)


@rule(
    26,
    "begin-once-a-run",
    says=(
        "one begin a run; a bad one is followed by no run; revoke_alloc only right after a good "
        "one; and nothing is staged out of a run that was revoked"
    ),
    key="a job",
    exceptions=(
        "a restarted slurmctld claims anew for jobs that were about to start; in model modern it "
        "does not mind if that fails"
    ),
    source=f"{_GUIDE}; held in 18 groups of recordings of real Slurm, of revoke_alloc in 1",
    functions=("bb_p_job_begin", "bb_p_job_revoke_alloc", "bb_p_job_start_stage_out"),
)
def begin_once_a_run(run: Observed) -> Iterator[Finding]:
    """Look at each job that was claimed or started."""
    yield from by_life(run, _attempts, lambda life: life.asked("begin", "revoke_alloc"))


def _attempts(found: Story, life: Life) -> Iterator[Wrong]:
    claimed: Asked | None = None
    revoked: Asked | None = None
    last: Asked | None = None
    for item in life.items:
        if isinstance(item, Event):
            if runs(item) and claimed is not None and claimed.rc:
                yield broken(life, "the job runs although begin failed", claimed, item)
            if ends_a_run(item):
                claimed = None
            continue
        if item.name == "begin":
            again = claimed is not None and not claimed.rc
            if claimed is not None and again and not found.restarted(place(claimed), place(item)):
                yield broken(life, "begin was called a second time for one run", claimed, item)
            claimed, revoked = item, None
        elif item.name == "revoke_alloc":
            if last is None or last.name != "begin" or last.rc:
                shown = [each for each in (last, item) if each is not None]
                yield broken(life, "revoke_alloc follows no good begin", *shown)
            claimed, revoked = None, item
        elif item.name == "start_stage_out" and revoked is not None:
            yield broken(life, "start_stage_out follows a start that was revoked", revoked, item)
        last = item


@rule(
    27,
    "no-launch-before-begin",
    says=(
        "when a script or a step of a job is launched, begin was good, the job is RUNNING, no "
        "longer CONFIGURING, and its last pre_run ended well"
    ),
    key="a launch of a script, or a step",
    exceptions="in model modern a restarted slurmctld does not mind if what it claims anew fails",
    source=f"{_GUIDE}; held in 28 groups of recordings of real Slurm",
    functions=("bb_p_job_begin",),
)
def no_launch_before_begin(run: Observed) -> Iterator[Finding]:
    """Look at what has happened to a job before each launch."""
    found = story(run)
    for life in found.lives:
        seen: dict[str, Any] = {}
        for item in life.items:
            states = change(item)
            if states is not None:
                seen["state"] = item
            elif isinstance(item, Asked):
                if item.name == "begin":
                    seen.pop("pre_run", None)
                    seen["begin"] = item
                elif item.name == "revoke_alloc":
                    seen.pop("begin", None)
            elif item.name == "dw_pre_run":
                seen["pre_run"] = item
            elif launches(item):
                yield settle(_launched(found, life, item, seen))


def _launched(found: Story, life: Life, item: Event, seen: dict[str, Any]) -> Iterator[Wrong]:
    what = "a script" if item.kind == "message" else f"step {item.step}"
    begin: Asked | None = seen.get("begin")
    pre_run: Event | None = seen.get("pre_run")
    changed: Event | None = seen.get("state")
    again = found.terms.model == "modern" and bool(found.restarted(0, place(item)))
    if begin is None:
        yield broken(life, f"{what} was launched before begin", item)
    elif begin.rc and not again:
        yield broken(life, f"{what} was launched although begin failed", begin, item)
    if changed is not None:
        state = (change(changed) or ("", ""))[1]
        if base(state) not in ("RUNNING", "SUSPENDED") or "CONFIGURING" in state:
            yield broken(life, f"{what} was launched while the job was {state}", changed, item)
    if pre_run is not None and pre_run.rc and not again:
        yield broken(life, f"{what} was launched although pre_run failed", pre_run, item)


@rule(
    63,
    "tres-counted-at-the-start",
    says="set_tres_cnt comes right after a job has become RUNNING, before it is CONFIGURING again",
    key="a start of a job",
    exceptions=(
        "a job without nodes takes nothing; slurmctld asks also when a job is submitted (model "
        "guide) and when it is loaded after a restart"
    ),
    source=f"{_GUIDE}; held in 17 groups of recordings of real Slurm",
    functions=("bb_p_job_set_tres_cnt",),
)
def tres_counted_at_the_start(run: Observed) -> Iterator[Finding]:
    """Look at what comes after each start."""
    found = story(run)
    for life in found.lives:
        for index, item in enumerate(life.items):
            if runs(item):
                yield settle(_counted(found, life, index))


def _counted(found: Story, life: Life, index: int) -> Iterator[Wrong]:
    start = life.items[index]
    for item in life.items[index + 1 :]:
        if isinstance(item, Asked) and item.name in ("set_tres_cnt", "begin"):
            return
        if isinstance(item, Asked):
            yield broken(life, f"{item.name} follows the start, not set_tres_cnt", start, item)
            return
        if change(item) is not None:
            to = (change(item) or ("", ""))[1]
            yield broken(life, f"the job is {to}, and set_tres_cnt was not called", start, item)
            return
    if found.whole(life):
        yield broken(life, "the job started, and set_tres_cnt was not called", start)
