"""How long it takes where a limit, a wait or a program decides: on both sides about the same time.

The recorded machine was busy, and what runs by the clock comes at another moment of it. So times
agree that differ by no more than a factor and some seconds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from simctl.testing.conform.acts import Act, Story, starts_run
from simctl.testing.conform.alignment import Pair
from simctl.testing.conform.facts import (
    Key,
    Select,
    job_key,
    job_on_node,
    named,
    state,
    step_on_node,
)

FACTOR: Final = 2.0
SLACK_S: Final = 1.5
WHOLE_FACTOR: Final = 3.0
WHOLE_SLACK_S: Final = 4.0
"""For a whole run, whose scenario need not keep every pause of the recording."""


@attrs.frozen(kw_only=True)
class Wait:
    """A time between two acts of a group: from the first of the one to the last of the other.

    With `once` to the first of the other that follows.
    """

    text: str
    begin: Select
    end: Select
    key: Key
    once: bool = False


def _ended_by_itself(act: Act) -> bool:
    return act.name == "task ended" and act.key == "status=0"


def _forked(act: Act) -> bool:
    return act.name == "fork"


def _node(act: Act) -> Any:
    return act.node if act.name == "node_state" else None


def _goes(before: str, after: str) -> Select:
    def select(act: Act) -> bool:
        first, _, last = act.key.partition(" > ")
        return act.name.endswith("_state") and before in first and after in last

    return select


_TOLD: Final = named("REQUEST_TERMINATE_JOB received", "REQUEST_KILL_TIMELIMIT received")

WAITS: Final = (
    Wait(
        text="KillWait: how long tasks live on once slurmd is told that their job is over",
        begin=_TOLD,
        end=named("task ended"),
        key=job_on_node,
    ),
    Wait(
        text="tree wait: how long a step daemon waits for those below it",
        begin=named("switch_p_job_postfini"),
        end=named("REQUEST_STEP_COMPLETE", at="stepd"),
        key=step_on_node,
    ),
    Wait(
        text="how long a job is COMPLETING",
        begin=_goes("", "COMPLETING"),
        end=_goes("COMPLETING", ""),
        key=job_key,
    ),
    Wait(
        text="how long a task runs that ends by itself",
        begin=_forked,
        end=_ended_by_itself,
        key=step_on_node,
    ),
    Wait(
        text="the time limit of a job",
        begin=state("RUNNING"),
        end=_goes("RUNNING", "TIMEOUT"),
        key=job_key,
    ),
    Wait(
        text="stage-in",
        begin=named("dw_setup"),
        end=named("dw_real_size"),
        key=job_key,
    ),
    Wait(
        text="stage-out",
        begin=named("bb_p_job_start_stage_out"),
        end=named("dw_teardown"),
        key=job_key,
        once=True,
    ),
    Wait(
        text="pre_run, until the script is launched",
        begin=named("dw_pre_run"),
        end=named("REQUEST_BATCH_JOB_LAUNCH"),
        key=job_key,
    ),
    Wait(
        text="how long a step daemon takes to suspend its tasks",
        begin=named("switch_p_job_step_pre_suspend"),
        end=named("switch_p_job_step_post_suspend"),
        key=step_on_node,
    ),
    Wait(
        text="how long a prolog runs",
        begin=named("prolog begins"),
        end=named("prolog"),
        key=job_on_node,
    ),
    Wait(
        text="how long an epilog runs",
        begin=named("epilog begins"),
        end=named("epilog"),
        key=job_on_node,
    ),
    Wait(
        text="how long a node that does not answer is not DOWN",
        begin=_goes("", "NO_RESPOND"),
        end=_goes("NO_RESPOND", "DOWN"),
        key=_node,
    ),
    Wait(
        text="until a job that was requeued runs again",
        begin=_goes("REQUEUE", "PENDING"),
        end=_goes("PENDING", "RUNNING"),
        key=job_key,
    ),
)


@attrs.frozen(kw_only=True)
class OtherTime:
    """A time that is another on the two sides."""

    text: str
    group: str
    ours: Act
    theirs: Act
    """The acts with which it ends."""


def other_times(ours: Story, theirs: Story, pairs: Iterable[Pair]) -> Iterator[OtherTime]:
    """Return the waits that take another time, and the whole if it does."""
    for wait in WAITS:
        mine, others = _measured(wait, ours), _measured(wait, theirs)
        for group, (begin, end) in others.items():
            if group not in mine:
                continue
            first, last = mine[group]
            times = last.when_s - first.when_s, end.when_s - begin.when_s
            if unlike(*times, FACTOR, SLACK_S):
                subject = group[0] if isinstance(group[0], tuple) else (group[0],)
                name = " on ".join(map(str, subject))
                yield OtherTime(text=_text(wait.text, *times), group=name, ours=last, theirs=end)
    yield from _whole([pair for pair in pairs if _counts(pair)])


def unlike(mine_s: float, other_s: float, factor: float, slack_s: float) -> bool:
    """Return whether two times are more than a factor and some seconds apart."""
    low, high = sorted((mine_s, other_s))
    return high > factor * max(low, 0.0) + slack_s


def _measured(wait: Wait, story: Story) -> dict[Any, tuple[Act, Act]]:
    """Return the two acts of a wait, in each run of each group's job."""
    begins: dict[Any, Act] = {}
    found: dict[Any, tuple[Act, Act]] = {}
    runs = Counter[int | None]()
    for act in story.acts:
        key = wait.key(act)
        ended = key, runs[act.job]
        runs[act.job] += starts_run(act)
        begun = key, runs[act.job]
        if key is None:
            continue
        if wait.begin(act):
            begins.setdefault(begun, act)
        if wait.end(act) and ended in begins and not (wait.once and ended in found):
            found[ended] = begins[ended], act
    return found


_WHENEVER: Final = frozenset(
    {
        *("slurm_ckpt_free_job", "bb_p_job_test_stage_out"),
        *("switch_p_libstate_save", "switch_p_node_fini", "fini"),
    }
)
"""What comes when old jobs are forgotten, or when a watching command has seen enough."""


def _counts(pair: Pair) -> bool:
    """Return whether a pair is of what happens in its own time."""
    return None not in pair and not any(act and act.name in _WHENEVER for act in pair)


def _whole(pairs: list[Pair]) -> Iterator[OtherTime]:
    """Return that all that is in both takes another time."""
    sides = [[act for pair in pairs if (act := pair[side]) is not None] for side in (0, 1)]
    if not pairs:
        return
    lasts = [max(acts, key=_when_s) for acts in sides]
    times = [
        last.when_s - min(acts, key=_when_s).when_s for acts, last in zip(sides, lasts, strict=True)
    ]
    if unlike(times[0], times[1], WHOLE_FACTOR, WHOLE_SLACK_S):
        yield OtherTime(
            text=_text("the whole", times[0], times[1]),
            group="the whole",
            ours=lasts[0],
            theirs=lasts[1],
        )


def _when_s(act: Act) -> float:
    return act.when_s


def _text(what: str, mine_s: float, other_s: float) -> str:
    return f"{what}: {mine_s:.1f} s, recorded {other_s:.1f} s"
