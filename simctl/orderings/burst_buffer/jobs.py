"""Rules about what burst buffer plugins are asked of a job from its submission on."""

from collections.abc import Iterator
from typing import Final

from simctl.kernel.events import Event
from simctl.orderings.burst_buffer.story import (
    Asked,
    Life,
    Story,
    broken,
    by_life,
    change,
    place,
    settle,
    story,
)
from simctl.orderings.controller_deaths import may_be_older
from simctl.orderings.observed import Observed
from simctl.orderings.rules import BOTH, Finding, rule
from simctl.orderings.rules import Broken as Wrong

_GUIDE: Final = "burst buffer guide"
_NEVER: Final = ("test_stage_out", "test_post_run")


@rule(
    24,
    "validated-in-order",
    says="validate, then the job has an id, then validate2, then any other call about it",
    key="a job",
    exceptions=(
        "a task of an array has validate2 as it is split off, if at all, and no validate; who is "
        "refused has nothing more, and is FAILED; after a restart of slurmctld none of it again"
    ),
    source=f"{_GUIDE}; held in 50 groups of recordings of real Slurm",
    functions=("bb_p_job_validate", "bb_p_job_validate2", "bb_p_job_test_stage_in"),
)
def validated_in_order(run: Observed) -> Iterator[Finding]:
    """Look at the calls about each job that was submitted in the run."""
    found = story(run)
    before = _validated_before(found)
    for life in found.lives:
        if life.born is not None and life.asked():
            yield settle(_in_order(life, before))


def _validated_before(found: Story) -> dict[int, Asked]:
    """Return the validate of the submission in which a checkpoint record was made, by its place."""
    before: dict[int, Asked] = {}
    validated: Asked | None = None
    for item in found.items:
        if isinstance(item, Asked):
            validated = item if item.name == "validate" else validated
        elif item.kind == "message" and item.phase == "receive":
            validated = None
        elif item.name == "slurm_ckpt_alloc_job" and validated is not None:
            before[place(item)] = validated
    return before


def _in_order(life: Life, before: dict[int, Asked]) -> Iterator[Wrong]:
    checks = life.asked("validate2")
    others = [each for each in life.asked() if each not in checks]
    if len(checks) > 1:
        yield broken(life, f"validate2 was called {len(checks)} times", *checks)
    if checks and others and place(others[0]) < place(checks[0]):
        yield broken(life, f"{others[0].name} comes before validate2", others[0], checks[0])
    if life.is_task:
        return
    if not checks:
        yield broken(life, f"{others[0].name} was called, and validate2 never", others[0])
        return
    yield from _has_id(life, checks[0], before)
    if life.refused is not None:
        if others:
            yield broken(life, f"{others[0].name} follows a refusal", checks[0], others[0])
        if not any(change(each) == ("PENDING", "FAILED") for each in life.items):
            yield broken(life, "validate2 refused it, and it is not FAILED", checks[0])


def _has_id(life: Life, check: Asked, before: dict[int, Asked]) -> Iterator[Wrong]:
    """Check that the job's checkpoint record was made between the two checks of its request."""
    made = next(
        (
            each
            for each in life.items
            if isinstance(each, Event) and each.name == "slurm_ckpt_alloc_job"
        ),
        None,
    )
    if made is None or place(made) > place(check):
        yield broken(life, "validate2 was called before the job had an id", check)
        return
    validated = before.get(place(made))
    if validated is None:
        yield broken(life, "the job has an id, and validate was not called", made, check)
    elif validated.rc:
        yield broken(life, "the job has an id although validate refused it", validated, made)


@rule(
    24,
    "no-validate2-of-what-is-not-submitted",
    says="validate2 is not called when somebody only asks when a job would start (--test-only)",
    key="a REQUEST_JOB_WILL_RUN that slurmctld answers",
    source=f"{_GUIDE}; in no recording of real Slurm",
    functions=("bb_p_job_validate2",),
)
def no_validate2_of_what_is_not_submitted(run: Observed) -> Iterator[Finding]:
    """Look between each such request and its answer."""
    request: Event | None = None
    wrong: list[Asked] = []
    for item in story(run).items:
        if isinstance(item, Asked):
            if item.name == "validate2":
                wrong.append(item)
        elif item.name == "REQUEST_JOB_WILL_RUN" and item.phase == "receive":
            request, wrong = item, []
        elif item.name == "RESPONSE_JOB_WILL_RUN" and item.phase == "send" and request is not None:
            what = "validate2 was called"
            group = f"REQUEST_JOB_WILL_RUN {request.seq}"
            yield settle(broken(group, what, request, each) for each in wrong)
            request = None


@rule(
    57,
    "jobs-without-burst-buffer",
    says=(
        "with a plugin loaded it is asked about every job: validate2 of one without burst buffer "
        "too, but never test_stage_out or test_post_run"
    ),
    key="a job without burst buffer",
    exceptions=(
        "a task of an array need not have validate2; get_est_start may follow an answer of -1, and "
        "revoke_alloc a start that was undone"
    ),
    source=f"{_GUIDE}; held in 6 groups of recordings of real Slurm, all of one job",
    functions=("bb_p_job_validate2", "bb_p_job_test_stage_out", "bb_p_job_test_post_run"),
)
def jobs_without_burst_buffer(run: Observed) -> Iterator[Finding]:
    """Look at the calls about jobs that were submitted in the run and asked for nothing."""
    yield from by_life(run, _plain, lambda life: life.has_none and not life.is_task)


def _plain(found: Story, life: Life) -> Iterator[Wrong]:
    for call in life.asked(*_NEVER):
        yield broken(life, f"{call.name} was asked about it", call)
    there = len(life.items) > 1 and change(life.items[-1]) != ("PENDING", "FAILED")
    if not life.asked("validate2") and there and found.whole(life) and not life.failed_at_once:
        yield broken(life, "validate2 was not called", life.items[0])


@rule(
    57,
    "post-run-asked-where-it-gates",
    says=(
        "test_post_run is asked only where it holds nodes back: in model guide, or with the option "
        "bb_post_run_gate; and only of a job that is COMPLETING"
    ),
    key="a test_post_run",
    exceptions=(
        "a slurmctld that took a job from an older state goes by that, which the trace shows where "
        "it next changes it"
    ),
    source=f"{_GUIDE}; recordings of real Slurm have none",
    functions=("bb_p_job_test_post_run",),
    models=BOTH,
)
def post_run_asked_where_it_gates(run: Observed) -> Iterator[Finding]:
    """Look at each time it is asked."""
    found = story(run)
    option = found.terms.conf.get("bb_post_run_gate")
    gates = found.terms.model == "guide" if option is None else bool(option)
    for life in found.lives:
        for index, item in enumerate(life.items):
            if isinstance(item, Asked) and item.name == "test_post_run":
                old = may_be_older(run, item.pid, life.job)
                yield settle(_gated(life, item, _state_at(life, index, old=old), gates=gates))


def _state_at(life: Life, index: int, *, old: bool) -> str:
    """Return the state that a job has at one of its items, for the slurmctld that does it.

    One that may have read an *old* state does not know of the changes that others have made.
    """
    pid = life.items[index].pid
    changes = [(at, each) for at, each in enumerate(life.items) if change(each) is not None]
    before = [each for at, each in changes if at < index]
    if old:
        before = [each for each in before if each.pid == pid]
        after = next((each for at, each in changes if at > index and each.pid == pid), None)
        if not before and after is not None:
            return (change(after) or ("", ""))[0]
    return (change(before[-1]) or ("", ""))[1] if before else ""


def _gated(life: Life, call: Asked, state: str, *, gates: bool) -> Iterator[Wrong]:
    if not gates:
        yield broken(life, "test_post_run was asked, and holds nothing back here", call)
    elif state and "COMPLETING" not in state:
        yield broken(life, f"test_post_run was asked while the job was {state}", call)
