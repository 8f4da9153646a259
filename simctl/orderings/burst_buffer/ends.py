"""Rules about jobs that end while a burst buffer plugin is loaded."""

from collections.abc import Iterator
from typing import Final

from simctl.kernel.events import Event
from simctl.orderings.burst_buffer.story import (
    ENDING,
    FINAL,
    Asked,
    Item,
    Life,
    Story,
    base,
    broken,
    by_life,
    change,
    claims_at_once,
    ends_a_run,
    ends_unrun,
    forgets,
    place,
    runs,
    sends,
    settle,
    story,
)
from simctl.orderings.observed import Observed, arg
from simctl.orderings.rules import Broken as Wrong
from simctl.orderings.rules import Finding, rule

_GUIDE: Final = "burst buffer guide"
_EITHER: Final = ("start_stage_out", "cancel")
_SECOND: Final = 1_000_000


@rule(
    29,
    "stage-out-starts-as-a-run-ends",
    says=(
        "start_stage_out once for each run that ends, requeued ones too, before the nodes are told "
        "to terminate the job"
    ),
    key="an end of a run",
    exceptions=(
        "cancel instead for who is cancelled with --hurry, and for a job without nodes; with the "
        "option bb_stageout_after_epilog it starts once the nodes have let go"
    ),
    source=f"{_GUIDE}; held in 16 groups of recordings of real Slurm",
    functions=("bb_p_job_start_stage_out",),
)
def stage_out_starts_as_a_run_ends(run: Observed) -> Iterator[Finding]:
    """Look at what is called between the end of a run and the message to its nodes."""
    found = story(run)
    late = bool(found.terms.conf.get("bb_stageout_after_epilog"))
    for life in found.lives:
        for index, item in enumerate(life.items):
            if ends_a_run(item):
                yield settle(_staged_out(found, life, index, late=late))


def _staged_out(found: Story, life: Life, index: int, *, late: bool) -> Iterator[Wrong]:
    end = life.items[index]
    calls, stop = _calls_after(life, index, late=late)
    if stop is None and not found.whole(life):
        return
    names = [each.name for each in calls]
    if names == ["start_stage_out"] or (names == ["cancel"] and _may_cancel(found, life, index)):
        return
    what = f"the run was followed by {', '.join(names) or 'neither start_stage_out nor cancel'}"
    if stop is not None and sends(stop, *ENDING):
        what += " before its nodes were told"
    yield broken(life, what, end, *calls, *([] if stop is None else [stop]))


def _calls_after(life: Life, index: int, *, late: bool) -> tuple[list[Asked], Item | None]:
    """Return the calls that may come of an end, and what says that no more do."""
    calls: list[Asked] = []
    for item in life.items[index + 1 :]:
        if isinstance(item, Asked) and item.name in _EITHER:
            calls.append(item)
        elif _is_over(item) or (not late and sends(item, *ENDING)):
            return calls, item
    return calls, None


def _is_over(item: Item) -> bool:
    """Return whether a job has left its nodes: its record goes, it is tried anew, or is free."""
    before, after = change(item) or ("", "")
    let_go = "COMPLETING" in before and not ("COMPLETING" in after or "REQUEUE" in after)
    return forgets(item) or let_go or (isinstance(item, Asked) and item.name == "test_stage_in")


def _may_cancel(found: Story, life: Life, index: int) -> bool:
    """Return whether a run may end with cancel: in a hurry, or if it had no nodes."""
    return bool(found.hurried(life)) or _had_no_nodes(life, index)


def _had_no_nodes(life: Life, index: int) -> bool:
    """Return whether a run had no nodes: it was RUNNING before it was claimed."""
    start = max((place for place in range(index) if runs(life.items[place])), default=-1)
    return start >= 0 and claims_at_once(life.items[start + 1 :])


@rule(
    30,
    "stage-out-or-cancel",
    says="one start_stage_out or one cancel for each end of a job; cancel for one that never ran",
    key="a job",
    exceptions=(
        "neither for a job that was refused as it was submitted, by validate2 or because its "
        "checkpoint record could not be made; one more cancel for who is cancelled with --hurry "
        "while staging out"
    ),
    source=f"{_GUIDE}; held in 26 groups of recordings of real Slurm",
    functions=("bb_p_job_start_stage_out", "bb_p_job_cancel"),
)
def stage_out_or_cancel(run: Observed) -> Iterator[Finding]:
    """Count the ends of each job, and what is called of them."""
    yield from by_life(
        run,
        _one_each,
        lambda life: (
            life.asked(*_EITHER) or any(ends_a_run(each) or ends_unrun(each) for each in life.items)
        ),
    )


def _one_each(found: Story, life: Life) -> Iterator[Wrong]:
    """Check that nothing is staged out or cancelled without an end, nor an end left alone."""
    ends = [each for each in life.items if ends_a_run(each) or ends_unrun(each)]
    calls = life.asked(*_EITHER)
    for index, item in enumerate(life.items):
        if ends_unrun(item):
            yield from _unrun(found, life, index)
    wanted = 0 if _never_taken(life) else len(ends)
    allowed = wanted + len(found.hurried(life))
    told = f"the job ended {len(ends)} times, and there were {len(calls)} calls of the two"
    if len(calls) > allowed:
        yield broken(life, told, *ends, *calls)
    if len(calls) < wanted and found.whole(life):
        yield broken(life, told, *ends, *calls)


def _never_taken(life: Life) -> bool:
    """Return whether its submission was refused, so that the plugin has nothing of it to end."""
    return life.refused is not None or life.failed_at_once


def _unrun(found: Story, life: Life, index: int) -> Iterator[Wrong]:
    end = life.items[index]
    calls = [each for each in life.items[index:] if isinstance(each, Asked)]
    names = [each.name for each in calls if each.name in _EITHER]
    if _never_taken(life):
        return
    if names[:1] == ["start_stage_out"]:
        yield broken(life, "start_stage_out of a job that never ran", end, *calls)
    if not names and found.whole(life):
        yield broken(life, "it ended before it ran, and cancel was not called", end)


@rule(
    31,
    "purge-after-stage-out",
    says=(
        "the record of a job with a burst buffer goes right after a test_stage_out of 1, when it "
        "is older than MinJobAge, not COMPLETING, and has no steps"
    ),
    key="a job whose record goes",
    exceptions=(
        "a job without burst buffer is not asked about; a refused one goes at once; of one that is "
        "cancelled before its nodes have let go of a run after which it goes back into the queue, "
        "MinJobAge counts from the end of that run, as in real Slurm"
    ),
    source=f"{_GUIDE}; held in 34 groups of recordings of real Slurm",
    functions=("bb_p_job_test_stage_out",),
)
def purge_after_stage_out(run: Observed) -> Iterator[Finding]:
    """Look at each job's end, and at what was asked last before its record goes."""
    yield from by_life(
        run,
        _purged,
        lambda life: forgets(life.items[-1]) and any(_ends(each) for each in life.items),
    )


def _ends(item: Item) -> bool:
    states = change(item)
    return states is not None and base(states[1]) in FINAL and base(states[0]) not in FINAL


def _purged(found: Story, life: Life) -> Iterator[Wrong]:
    gone = life.items[-1]
    end = next(each for each in reversed(life.items) if _ends(each))
    if life.refused is not None or not isinstance(end, Event) or not isinstance(gone, Event):
        return
    if end.time_us == gone.time_us and _never_was(life):
        return
    last_change = next(each for each in reversed(life.items) if change(each))
    state = (change(last_change) or ("", ""))[1]
    if base(state) not in FINAL or "COMPLETING" in state:
        yield broken(life, f"its record goes while it is {state}", last_change, gone)
    end = _end_of_run(life, end)
    age = int(found.terms.conf.get("min_job_age_s", 0))
    if gone.time_us < end.time_us + age * _SECOND:
        seconds = (gone.time_us - end.time_us) / _SECOND
        what = f"its record goes {seconds:g} s after its end, sooner than MinJobAge={age}"
        yield broken(life, what, end, gone)
    calls = life.asked()
    asked = calls[-1] if calls and calls[-1].name == "test_stage_out" else None
    if asked is not None and asked.rc != 1:
        yield broken(life, f"its record goes after a test_stage_out of {asked.rc}", asked, gone)
    if asked is None and life.has_buffer:
        yield broken(life, "its record goes, and test_stage_out was not called", end, gone)
    yield from _steps_left(life, gone)


def _end_of_run(life: Life, end: Event) -> Event:
    """Return the end that a job's age counts from: of its last run, if that had not let go yet."""
    if "COMPLETING" not in (change(end) or ("", ""))[0]:
        return end
    before = life.items[: life.items.index(end)]
    run = next((each for each in reversed(before) if ends_a_run(each)), end)
    return run if isinstance(run, Event) else end


def _never_was(life: Life) -> bool:
    """Return whether a submission failed before a client could see the job."""
    return not life.asked() or life.items[0] is life.items[-1]


def _steps_left(life: Life, gone: Item) -> Iterator[Wrong]:
    there: dict[object, Event] = {}
    for item in life.items:
        if isinstance(item, Event) and item.name == "step_state":
            there.pop(item.step, None)
            if arg(item, "to") == "RUNNING":
                there[item.step] = item
    for step in there.values():
        yield broken(life, f"its record goes while step {step.step} is there", step, gone)


@rule(
    66,
    "stage-out-flag",
    says="STAGE_OUT is set inside start_stage_out of the job alone, and stays while COMPLETING",
    key="a job",
    exceptions=(
        "a requeue takes it off at once; after a restart of slurmctld a plugin may take a "
        "stage-out up by itself"
    ),
    source=f"{_GUIDE}; held in 25 groups of recordings of real Slurm",
    functions=("bb_p_job_start_stage_out",),
)
def stage_out_flag(run: Observed) -> Iterator[Finding]:
    """Look at each change of a job's state that sets the flag or takes it off."""
    yield from by_life(run, _flagged, lambda life: any(_flags(each) for each in life.items))


def _flags(item: Item) -> bool:
    before, after = change(item) or ("", "")
    return ("STAGE_OUT" in before) != ("STAGE_OUT" in after)


def _flagged(found: Story, life: Life) -> Iterator[Wrong]:
    inside = [(place(each), each.over_seq) for each in life.asked("start_stage_out")]
    for item in life.items:
        if not _flags(item):
            continue
        before, after = change(item) or ("", "")
        at = place(item)
        if "STAGE_OUT" in after:
            called = any(first < at < last for first, last in inside)
            if not called and not found.restarted(0, at):
                yield broken(life, "it is given STAGE_OUT outside start_stage_out", item)
        elif "COMPLETING" in before and base(after) != "PENDING":
            yield broken(life, "it loses STAGE_OUT while it is COMPLETING", item)
