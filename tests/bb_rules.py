"""The ordering rules of burst buffers, as checks of any trace; `check` runs all of them.

Numbers in docstrings are those of the rules as they were checked against recordings of real Slurm.
A rule looks at a story and yields a sentence for each place where it is broken.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import UNSET

from simctl.kernel.events import Event
from tests.bb_story import (
    ENDING,
    FINAL,
    Asked,
    Item,
    Story,
    Terms,
    base,
    change,
    ends_a_run,
    ends_unrun,
    forgets,
    place,
    read,
    sends,
)

SLURM_USER: Final = 64030


def caller(story: Story) -> Iterator[str]:
    """37: every call is slurmctld's, as SlurmUser, between init and fini."""
    for event in story.events:
        if event.kind != "plugin" or not event.name.startswith("bb_p_"):
            continue
        who = (event.daemon, event.role, event.uid, event.euid)
        if who != ("slurmctld", "slurmctld", SLURM_USER, SLURM_USER):
            yield f"{event.name} ({event.seq}) was called by {who}"
    alive: dict[tuple[Any, Any], str] = {}
    for event in story.events:
        if event.kind != "plugin" or not str(event.plugin).startswith("burst_buffer/"):
            continue
        key = event.pid, event.plugin
        if event.name in ("init", "fini"):
            if event.phase != "enter":
                if alive.get(key, "") != ("" if event.name == "init" else "init"):
                    yield f"{event.name} ({event.seq}) of {event.plugin} is out of place"
                alive[key] = event.name
        elif alive.get(key, "init") != "init":
            yield f"{event.name} ({event.seq}) comes after fini"


def submission(story: Story) -> Iterator[str]:
    """24, 68: validate, an id, validate2, and then the questions; a refusal ends it."""
    for job, items in story.jobs.items():
        checks = [
            each for each in items if isinstance(each, Asked) and each.name == "job_validate2"
        ]
        others = [each for each in items if isinstance(each, Asked) and each not in checks]
        if len(checks) > 1:
            yield f"validate2 of job {job} was called {len(checks)} times"
        if checks and others and others[0].first < checks[0].first:
            yield f"{others[0].name} of job {job} comes before its validate2"
        refused = checks and checks[0].rc and not _is_task(items)
        if refused and others:
            yield f"{others[0].name} of job {job} follows, which validate2 has refused"
        if refused and not any(change(each) == ("PENDING", "FAILED") for each in items):
            yield f"job {job} goes on, which validate2 has refused"
    yield from _submissions(story)


def _is_task(items: Sequence[Item]) -> bool:
    return any(isinstance(each, Event) and each.array_task is not UNSET for each in items)


_TAIL: Final = {
    "guide": ("job_validate", "alloc", "job_validate2", "job_set_tres_cnt"),
    "modern": ("job_validate", "alloc", "job_validate2"),
}


def _submissions(story: Story) -> Iterator[str]:
    """Check the calls inside each submission of a batch job."""
    inside: list[str] | None = None
    for item in story.items:
        if isinstance(item, Event) and item.name == "REQUEST_SUBMIT_BATCH_JOB":
            if item.phase == "receive" and item.daemon == "slurmctld":
                inside = []
        elif inside is not None and sends(item, "RESPONSE_SUBMIT_BATCH_JOB"):
            wanted = _TAIL[story.terms.model]
            questions = inside[len(wanted) :]
            whole = inside[: len(wanted)] == list(wanted)
            asked = whole and all(each == "job_test_stage_in" for each in questions)
            good = asked or not inside or _is_refused(inside)
            if not good:
                yield f"a submission ({place(item)}) made the calls {inside}"
            inside = None
        elif inside is not None and isinstance(item, Asked):
            inside.append(item.name)
        elif inside is not None and isinstance(item, Event) and _of_slurmctld(item):
            short = {"slurm_ckpt_alloc_job": "alloc", "slurm_ckpt_free_job": "free"}
            inside.append(short.get(item.name, item.name))


def _of_slurmctld(item: Event) -> bool:
    return item.kind == "plugin" and item.daemon == "slurmctld"


def _is_refused(calls: list[str]) -> bool:
    """Tell whether calls break off where a submission may be refused."""
    return calls in (
        ["job_validate"],
        ["job_validate", "alloc", "free"],
        ["job_validate", "alloc", "job_validate2", "free"],
    )


def start(story: Story) -> Iterator[str]:
    """25, 26, 63: test_stage_in says 1, begin, RUNNING, set_tres_cnt; each once a start."""
    for job, items in story.jobs.items():
        state, last, begun = "", None, None
        for item in items:
            states = change(item)
            if states is not None:
                if base(states[0]) == "PENDING" and base(states[1]) == "RUNNING":
                    if begun is None and not _begins_after(items, item):
                        yield f"job {job} runs ({place(item)}) without begin"
                    if begun is not None and begun.rc:
                        yield f"job {job} runs ({place(item)}) although begin failed"
                    begun = None
                    yield from _counted(story, job, items, item)
                state = states[1]
            elif isinstance(item, Asked):
                if item.name == "job_begin":
                    yield from _before_begin(story, job, item, state, last)
                    begun = item if base(state) == "PENDING" else None
                elif item.name == "job_revoke_alloc":
                    if last is None or last.name != "job_begin" or last.rc:
                        yield f"revoke of job {job} ({item.first}) follows no good begin"
                    begun = None
                last = item


def _begins_after(items: Sequence[Item], run: Item) -> bool:
    """Tell whether it is a job without nodes: RUNNING comes first, and begin at once."""
    later = [each for each in items if place(each) > place(run)]
    return bool(later) and isinstance(later[0], Asked) and later[0].name == "job_begin"


def _before_begin(
    story: Story, job: int, begin: Asked, state: str, last: Asked | None
) -> Iterator[str]:
    if base(state) == "RUNNING":
        # A job without nodes, or one that was about to start when slurmctld was started again.
        return
    if state != "PENDING":
        yield f"begin of job {job} ({begin.first}) finds it {state}"
    if last is None or (last.name, last.rc) != ("job_test_stage_in", 1):
        head = [each for each in story.asked() if each.last < begin.first]
        if not head or (head[-1].name, head[-1].rc) != ("job_test_stage_in", 1):
            yield f"begin of job {job} ({begin.first}) does not follow a test_stage_in of 1"


def _counted(story: Story, job: int, items: Sequence[Item], run: Item) -> Iterator[str]:
    """Check that set_tres_cnt is the next thing after RUNNING."""
    later = [each for each in items if place(each) > place(run)]
    nearest = next((each for each in later if isinstance(each, Asked) or change(each)), None)
    if isinstance(nearest, Asked) and nearest.name in ("job_set_tres_cnt", "job_begin"):
        return
    yield f"set_tres_cnt of job {job} does not follow its start ({place(run)})"


def launch(story: Story) -> Iterator[str]:
    """27: nothing of a job is launched while it is CONFIGURING, or before begin.

    In model modern a restarted slurmctld ignores that a claim which it makes anew fails.
    """
    for job, items in story.jobs.items():
        state, begun = "", False
        for item in items:
            states = change(item)
            if states is not None:
                state = states[1]
            elif isinstance(item, Asked) and item.name == "job_begin":
                again = base(state) == "RUNNING" and story.terms.model == "modern"
                begun = not item.rc or again
            elif _launches(item) and (base(state) not in ("RUNNING", "SUSPENDED") or not begun):
                yield f"job {job} is launched ({place(item)}) while it is {state}, begun: {begun}"
            elif _launches(item) and "CONFIGURING" in state:
                yield f"job {job} is launched ({place(item)}) while it is {state}"


def _launches(item: Item) -> bool:
    if sends(item, "REQUEST_BATCH_JOB_LAUNCH"):
        return True
    return isinstance(item, Event) and item.name == "switch_p_build_jobinfo"


_DATAWARP: Final = (
    *("dw_job_process", "dw_create_persistent", "dw_setup", "dw_data_in", "dw_paths"),
    *("dw_pre_run", "dw_post_run", "dw_data_out", "dw_teardown"),
)
_GENERIC: Final = ("start_stage_in", "start_stage_out")
_NEEDS: Final = {"dw_data_in": "dw_setup", "dw_data_out": "dw_post_run", "dw_pre_run": "dw_paths"}


def scripts(story: Story) -> Iterator[str]:
    """28, 71: what plugins run of a job comes in its order, and inside the right calls.

    A slurmctld that starts again may take up a stage-out from its beginning, or claim once more.
    """
    starts = [each.first for each in story.asked("load_state") if each.args.get("init_config")]
    for job, items in story.jobs.items():
        found = [each for each in items if isinstance(each, Event) and each.kind == "script"]
        found = [each for each in found if "--hurry" not in _argv(each)]
        for names, renewed in ((_DATAWARP, "dw_setup"), (_GENERIC, "start_stage_in")):
            ran = [each for each in found if each.name in names]
            for one, other in pairwise(ran):
                backwards = names.index(other.name) < names.index(one.name)
                again = other.name in (renewed, "dw_create_persistent")
                again = again or any(place(one) < start < place(other) for start in starts)
                if backwards and not again:
                    yield f"of job {job} {other.name} ({other.seq}) follows {one.name}"
        seen: set[str] = set()
        for script in found:
            needed = _NEEDS.get(script.name)
            if needed is not None and needed not in seen:
                yield f"of job {job} {script.name} ({script.seq}) ran without {needed}"
            seen.add(script.name)
            inside = {"dw_paths": "job_begin", "dw_job_process": "job_validate2"}.get(script.name)
            if inside is not None and not any(
                isinstance(each, Asked)
                and each.name == inside
                and each.first < place(script) < each.last
                for each in items
            ):
                yield f"of job {job} {script.name} ({script.seq}) ran outside {inside}"


def _argv(script: Event) -> Sequence[str]:
    argv: Sequence[str] = () if script.args is UNSET else script.args.get("argv", ())
    return argv


def ending(story: Story) -> Iterator[str]:
    """29, 30: each end has one start_stage_out or one cancel, before the nodes are told."""
    for job, items in story.jobs.items():
        for index, item in enumerate(items):
            if ends_a_run(item):
                yield from _end_of_run(story, job, items, index)
            elif ends_unrun(item):
                yield from _end_unrun(job, items, index)
        yield from _superfluous(story, job, items)


def _calls_until(items: Sequence[Item], index: int, stops: Callable[[Item], bool]) -> list[str]:
    names = []
    for item in items[index + 1 :]:
        if stops(item):
            break
        if isinstance(item, Asked) and item.name in ("job_start_stage_out", "job_cancel"):
            names.append(item.name)
    return names


def _end_of_run(story: Story, job: int, items: Sequence[Item], index: int) -> Iterator[str]:
    def over(item: Item) -> bool:
        before, after = change(item) or ("", "")
        let_go = "COMPLETING" in before and not ("COMPLETING" in after or "REQUEUE" in after)
        asked = isinstance(item, Asked) and item.name == "job_test_stage_in"
        return forgets(item) or asked or let_go

    def told(item: Item) -> bool:
        # Where all nodes are gone nobody is told.
        return sends(item, *ENDING) or over(item)

    calls = _calls_until(items, index, over if story.terms.late_stage_out else told)
    allowed = [["job_start_stage_out"]]
    if job in story.terms.hurried or not any(sends(each, *ENDING) for each in items):
        allowed.append(["job_cancel"])
    if calls not in allowed:
        yield f"the end of job {job} ({place(items[index])}) was followed by {calls}"


def _end_unrun(job: int, items: Sequence[Item], index: int) -> Iterator[str]:
    calls = _calls_until(items, index, forgets)
    checks = [each for each in items if isinstance(each, Asked) and each.name == "job_validate2"]
    refused = any(each.rc for each in checks) and not _is_task(items)
    if calls != ([] if refused else ["job_cancel"]):
        yield f"job {job} ended unrun ({place(items[index])}), then came {calls}"


def _superfluous(story: Story, job: int, items: Sequence[Item]) -> Iterator[str]:
    """Check that nothing is staged out or cancelled without an end."""
    ends = sum(ends_a_run(each) or ends_unrun(each) for each in items)
    calls = [
        each
        for each in items
        if isinstance(each, Asked) and each.name in ("job_start_stage_out", "job_cancel")
    ]
    if job not in story.terms.hurried and len(calls) > ends:
        yield f"job {job} ended {ends} times and had {[each.name for each in calls]}"


def purge(story: Story) -> Iterator[str]:
    """31: a record goes right after a test_stage_out of 1, old enough and not COMPLETING."""
    for job, items in story.jobs.items():
        last, state, end_us = None, "", 0
        for item in items:
            states = change(item)
            if states is not None:
                if base(states[1]) in FINAL and base(states[0]) not in FINAL:
                    end_us = item.time_us
                state = states[1]
            elif isinstance(item, Asked):
                last = item
            elif forgets(item) and base(state) in FINAL and state != "FAILED":
                if "COMPLETING" in state:
                    yield f"the record of job {job} goes ({place(item)}) while it is {state}"
                if item.time_us < end_us + story.terms.min_job_age_s * 1_000_000:
                    yield f"the record of job {job} goes too early ({place(item)})"
                asked = last is not None and last.name == "job_test_stage_out"
                if asked and last is not None and last.rc != 1:
                    yield f"the record of job {job} goes ({place(item)}) after {last.rc}"
                if not asked and any(_stages(each) for each in items):
                    yield f"the record of job {job} goes ({place(item)}) unasked"


def _stages(item: Item) -> bool:
    """Tell whether it shows that a job has a burst buffer."""
    return isinstance(item, Event) and item.name == "bb_state"


def passes(story: Story) -> Iterator[str]:
    """32, 33, 34: what is loaded before passes, and what is asked in them."""
    starts: dict[int, int] = defaultdict(int)
    waited = fresh = False
    before: Asked | None = None
    for call in story.asked():
        if call.name == "load_state":
            waited, fresh = False, True
            starts[call.pid] += bool(call.args["init_config"])
            if call.args["init_config"] and starts[call.pid] > 1:
                yield f"load_state(true) ({call.first}) is one too many"
        elif not starts[call.pid] and call.name not in _BEFORE_LOADING:
            yield f"{call.name} ({call.first}) comes before load_state(true)"
        if call.name == "job_test_stage_in":
            waited = waited or call.rc != 1
        elif call.name == "job_try_stage_in":
            if not (waited or story.terms.backfill) or not fresh:
                yield f"try_stage_in ({call.first}) is called in a pass in which nobody waits"
        elif call.name == "job_get_est_start":
            told = before is not None and (before.name, before.job, before.rc) == (
                *("job_test_stage_in", call.job),
                -1,
            )
            if before is None or not told or not before.args["test_only"]:
                yield f"est_start of job {call.job} ({call.first}) follows no test_only of -1"
        before = call


_BEFORE_LOADING: Final = (
    *("job_set_tres_cnt", "get_system_size", "job_begin", "xlate_bb_2_tres_str"),
)


def unasked(story: Story) -> Iterator[str]:
    """57: nobody asks about the stage-out of a job without burst buffer, nor plans its data."""
    never = ("job_test_stage_out", "job_test_post_run", "job_get_est_start", "job_revoke_alloc")
    for call in story.asked():
        if call.job in story.terms.plain and call.name in never[: 3 + (not story.terms.revoked)]:
            yield f"{call.name} ({call.first}) of job {call.job}, which has no burst buffer"
        if call.name == "job_test_post_run" and not story.terms.gates:
            yield f"{call.name} ({call.first}) is called"


def stage_out_flag(story: Story) -> Iterator[str]:
    """66: STAGE_OUT is set inside start_stage_out alone, and stays while COMPLETING.

    After a restart the plugin may have been deaf to the call, and takes it up once it can.
    """
    starts = [each.first for each in story.asked("load_state") if each.args.get("init_config")]
    second = starts[1] if len(starts) > 1 else len(story.events) + 1
    for job, items in story.jobs.items():
        inside = [
            range(each.first, each.last)
            for each in items
            if isinstance(each, Asked) and each.name == "job_start_stage_out"
        ]
        for item in items:
            states = change(item)
            if states is None:
                continue
            was, now = "STAGE_OUT" in states[0], "STAGE_OUT" in states[1]
            late = place(item) > second
            if now and not was and not late and not any(place(item) in each for each in inside):
                yield f"job {job} is given STAGE_OUT ({place(item)}) outside start_stage_out"
            if was and not now and "COMPLETING" in states[0] and base(states[1]) != "PENDING":
                yield f"job {job} loses STAGE_OUT ({place(item)}) while it is COMPLETING"


RULES: Final[tuple[Callable[[Story], Iterator[str]], ...]] = (
    *(caller, submission, start, launch, scripts, ending, purge, passes, unasked, stage_out_flag),
)


def broken(events: Sequence[Event], terms: Terms) -> list[str]:
    """Return a sentence for each place where a rule is broken."""
    story = read(events, terms)
    return [f"{rule.__name__}: {each}" for rule in RULES for each in rule(story)]


def check(events: Sequence[Event], **terms: Any) -> None:
    """Check a trace against every rule; *terms* are those of `Terms`.

    Raises:
        AssertionError: A rule is broken; all that are are told.
    """
    found = broken(events, Terms(**terms))
    assert not found, "\n".join(found)
