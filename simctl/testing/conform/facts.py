"""What processes owe each other: the first of these acts comes before the second.

A fact counts for a group (a job, a step, a step on a node) where the recording keeps it; the run
has to keep it there, too. So orders that the recording only happened to have are not in this list,
and an order that a recording does not show is not asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

import attrs

from simctl.kernel.orders import grouped
from simctl.testing.conform.acts import Act, Story

Select = Callable[[Act], bool]
Key = Callable[[Act], Any]
End = Literal["first", "last"]


@attrs.frozen(kw_only=True)
class Fact:
    """One act that comes before another, in each group."""

    text: str
    before: Select
    after: Select
    key: Key
    ends: tuple[End, End] = ("first", "first")
    """Which of the earlier acts comes before which of the later."""


def named(*names: str, at: str = "") -> Select:
    """Select acts of these names, in strands that begin as is said."""
    return lambda act: act.name in names and act.strand.startswith(at)


def state(text: str) -> Select:
    """Select changes of a job into a state."""
    return lambda act: act.name == "job_state" and text in act.key.split(" > ")[-1]


def job_key(act: Act) -> Any:
    """Group acts by job."""
    return act.job


def step_key(act: Act) -> Any:
    """Group acts by step."""
    return act.step or None


def job_on_node(act: Act) -> Any:
    """Group acts by job and node."""
    return (act.job, act.node) if act.job is not None and act.node else None


def step_on_node(act: Act) -> Any:
    """Group acts by step and node."""
    return (act.step, act.node) if act.step and act.node else None


def _is_batch_start(act: Act) -> bool:
    return act.name == "init" and act.step.endswith(".batch")


def _is_over(act: Act) -> bool:
    return (
        act.name == "job_state"
        and "COMPLETING >" in act.key
        and "COMPLETING" not in (act.key.split(" > ")[-1])
    )


FACTS: Final = (
    Fact(
        text="a step is complete for the switch once a node has reported it over",
        before=named("REQUEST_STEP_COMPLETE received"),
        after=named("switch_p_job_step_complete"),
        key=step_key,
    ),
    Fact(
        text="srun launches a step once its credential is built",
        before=named("switch_p_build_jobinfo"),
        after=named("REQUEST_LAUNCH_TASKS"),
        key=step_key,
    ),
    Fact(
        text="a step daemon starts when slurmd has the launch",
        before=named("REQUEST_LAUNCH_TASKS received"),
        after=named("init", at="stepd"),
        key=step_on_node,
    ),
    Fact(
        text="a batch script's daemon starts when the job is launched",
        before=named("REQUEST_BATCH_JOB_LAUNCH"),
        after=_is_batch_start,
        key=job_key,
    ),
    Fact(
        text="a job is RUNNING before it has a step",
        before=state("RUNNING"),
        after=named("switch_p_build_jobinfo"),
        key=job_key,
    ),
    Fact(
        text="a job is RUNNING before its script is launched",
        before=state("RUNNING"),
        after=named("REQUEST_BATCH_JOB_LAUNCH"),
        key=job_key,
    ),
    Fact(
        text="the prolog of a job is over before a step daemon of it starts on the node",
        before=named("prolog"),
        after=named("init", at="stepd"),
        key=job_on_node,
    ),
    Fact(
        text="all tasks of a node are forked before the first is attached",
        before=named("fork"),
        after=named("switch_p_job_attach"),
        key=step_on_node,
        ends=("last", "first"),
    ),
    Fact(
        text="all tasks of a node are over before job_fini",
        before=named("task ended"),
        after=named("switch_p_job_fini"),
        key=step_on_node,
        ends=("last", "last"),
    ),
    Fact(
        text="a job's nodes are told to end it when its state says so",
        before=state("COMPLETING"),
        after=named("REQUEST_TERMINATE_JOB", "REQUEST_KILL_TIMELIMIT"),
        key=job_key,
    ),
    Fact(
        text="the epilog begins when the node is told that the job is over",
        before=named("REQUEST_TERMINATE_JOB received", "REQUEST_KILL_TIMELIMIT received"),
        after=named("epilog begins"),
        key=job_on_node,
    ),
    Fact(
        text="the epilog begins when the switch is done with the job's steps on the node",
        before=named("switch_p_job_postfini"),
        after=named("epilog begins"),
        key=job_on_node,
        ends=("last", "last"),
    ),
    Fact(
        text="a node reports the job gone when the epilog is over",
        before=named("epilog"),
        after=named("MESSAGE_EPILOG_COMPLETE"),
        key=job_on_node,
    ),
    Fact(
        text="a job is over when its last node has reported it gone",
        before=named("MESSAGE_EPILOG_COMPLETE received"),
        after=_is_over,
        key=job_key,
        ends=("last", "last"),
    ),
    Fact(
        text="the switch is told that a step is complete before its job's nodes have let it go",
        before=named("switch_p_job_step_complete"),
        after=_is_over,
        key=job_key,
        ends=("last", "last"),
    ),
    Fact(
        text="a job's buffer is claimed before the job is RUNNING",
        before=named("bb_p_job_begin"),
        after=state("RUNNING"),
        key=job_key,
    ),
    Fact(
        text="stage-out begins before the nodes are told that the job is over",
        before=named("bb_p_job_start_stage_out"),
        after=named("REQUEST_TERMINATE_JOB", "REQUEST_KILL_TIMELIMIT"),
        key=job_key,
    ),
    Fact(
        text="the size of a buffer is asked for once it has been set up",
        before=named("dw_setup"),
        after=named("dw_real_size"),
        key=job_key,
    ),
    Fact(
        text="the script is launched when the buffer's pre_run is over",
        before=named("dw_pre_run"),
        after=named("REQUEST_BATCH_JOB_LAUNCH"),
        key=job_key,
    ),
)


@attrs.frozen(kw_only=True)
class Broken:
    """A fact that the recording keeps and the run does not."""

    fact: Fact
    group: Any
    theirs: tuple[Act, Act]
    ours: tuple[Act | None, Act | None]


def broken_facts(ours: Story, theirs: Story) -> Iterator[Broken]:
    """Return the facts that the recording keeps and the run does not, group by group."""
    for fact in FACTS:
        mine, others = _groups(fact, ours), _groups(fact, theirs)
        for group, pair in others.items():
            before, after = pair
            if before is None or after is None or before.place > after.place:
                continue
            here = mine.get(group, (None, None))
            if here[1] is None:
                # What is missing is told where its strand is compared.
                continue
            if here[0] is None or here[0].place > here[1].place:
                yield Broken(fact=fact, group=group, theirs=(before, after), ours=here)


def kept_facts(ours: Story, theirs: Story) -> int:
    """Return in how many groups facts are looked at."""
    count = 0
    for fact in FACTS:
        mine, others = _groups(fact, ours), _groups(fact, theirs)
        count += sum(None not in pair and group in mine for group, pair in others.items())
    return count


def _groups(fact: Fact, story: Story) -> dict[Any, tuple[Act | None, Act | None]]:
    """Return the two acts of each group, None for one that the group lacks."""
    before = grouped(filter(fact.before, story.acts), fact.key)
    after = grouped(filter(fact.after, story.acts), fact.key)
    return {
        group: (_end(before.get(group), fact.ends[0]), _end(after.get(group), fact.ends[1]))
        for group in before | after
    }


def _end(acts: Sequence[Act] | None, end: End) -> Act | None:
    return acts[0 if end == "first" else -1] if acts else None
