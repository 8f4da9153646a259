"""Races, lost in one run and won in another: what they decide is taken out of both sides."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import attrs

from simctl.testing.conform.acts import Act, Story
from simctl.testing.conform.alignment import align

Both = tuple[Story, Story]


# Threads of slurmctld and its plugins.


def threads_apart(ours: Story, theirs: Story) -> Both:
    """Put into strands of their own what other threads do beside those a strand is about."""
    return ours.having(map(_apart, ours.acts)), theirs.having(map(_apart, theirs.acts))


def _apart(act: Act) -> Act:
    if act.name == "dw_real_size":
        return attrs.evolve(act, strand=f"{act.strand} size")
    loads = act.name == "bb_p_load_state" or act.key.startswith("burst_buffer/")
    if act.strand == "slurmctld" and loads:
        return attrs.evolve(act, strand="slurmctld burst buffers")
    return act


# Questions that are asked by the clock.

_POLL: Final = "bb_p_job_test_stage_in"


def polls_between(ours: Story, theirs: Story) -> Both:
    """Leave out answers that change nothing where only one side has had a pass just then."""
    spare: set[int] = set()
    mine, others = ours.strands(), theirs.strands()
    for strand in sorted(mine.keys() & others.keys()):
        asked: tuple[set[Any], set[Any]] = set(), set()
        for pair in align(mine[strand], others[strand]):
            for side, act in enumerate(pair):
                if act is None or act.name != _POLL:
                    continue
                how = act.args.get("test_only")
                if None in pair and act.result != 1 and all(how in each for each in asked):
                    spare.add(id(act))
                asked[side].add(how)
    return (
        ours.having(act for act in ours.acts if id(act) not in spare),
        theirs.having(act for act in theirs.acts if id(act) not in spare),
    )


# Tasks that end at about the same time.

_TOGETHER_S: Final = 0.5
_EXIT: Final = "MESSAGE_TASK_EXIT"
_COMPLETE: Final = "REQUEST_STEP_COMPLETE"


def exits_apart(ours: Story, theirs: Story) -> Both:
    """Tell of each task by itself where those that ended together are told of in other groups."""
    mine, others = ours.strands(), theirs.strands()
    close = {
        strand
        for strand in mine.keys() & others.keys()
        if strand.startswith("stepd[")
        and _groups(mine[strand]) != _groups(others[strand])
        and _spread_s(theirs, others[strand][0]) < _TOGETHER_S
    }
    return _one_by_one(ours, close), _one_by_one(theirs, close)


def _groups(acts: Iterable[Act]) -> list[str]:
    """Return which tasks are told of at once, and what comes between."""
    return [act.key if act.name == _EXIT else act.name for act in acts]


def _spread_s(story: Story, of: Act) -> float:
    ends = [
        act.when_s
        for act in story.acts
        if act.name == "task ended" and (act.step, act.node) == (of.step, of.node)
    ]
    return max(ends, default=0.0) - min(ends, default=0.0)


def _one_by_one(story: Story, strands: set[str]) -> Story:
    """Return it with the ends of tasks told one by one, before the step daemon reports its end."""
    if not strands:
        return story
    held: dict[str, list[Act]] = {}
    last = {act.strand: act for act in story.acts}
    acts: list[Act] = []
    for act in story.acts:
        waiting = held.setdefault(act.strand, [])
        if act.strand in strands and act.name == _EXIT:
            ranks = act.key.removeprefix("tasks=").split(",")
            waiting += [attrs.evolve(act, key=f"tasks={rank}") for rank in ranks]
            act_now: list[Act] = []
        else:
            act_now = [act]
        if waiting and (act.name == _COMPLETE or act is last[act.strand]):
            acts += sorted(waiting, key=lambda each: int(each.key.removeprefix("tasks=")))
            waiting.clear()
        acts += act_now
    return story.having(acts)


# Nodes: who is done with them, whether they may be used, and jobs that share them.


def node_records(ours: Story, theirs: Story) -> Both:
    """Compare a node's jobs and its health apart, and of shared nodes when they had jobs at all.

    Only where the states of the two sides differ.
    """
    mine, others = ours.strands(), theirs.strands()
    shared = {f"node {node}" for node in _shared(ours) | _shared(theirs)}
    unlike = {
        strand
        for strand in mine.keys() | others.keys()
        if strand.startswith("node ")
        and [act.what for act in mine.get(strand, ())]
        != [act.what for act in others.get(strand, ())]
    }
    return _apart_by(ours, unlike, shared), _apart_by(theirs, unlike, shared)


def _apart_by(story: Story, unlike: set[str], shared: set[str]) -> Story:
    if not unlike:
        return story
    acts: list[Act] = []
    completing: set[str] = set()
    for act in story.acts:
        if act.strand not in unlike:
            acts.append(act)
            continue
        acts += _seen_as(act, _health, f"{act.strand} health")
        if act.strand not in shared:
            acts += _seen_as(act, _business, act.strand)
            continue
        acts += _seen_as(act, _occupied, act.strand)
        after = act.key.split(" > ")[1]
        if _occupied(after) == "free":
            completing.discard(act.strand)
        elif "COMPLETING" in after and act.strand not in completing:
            completing.add(act.strand)
            acts.append(attrs.evolve(act, key="a job is COMPLETING"))
    return story.having(acts)


def _seen_as(act: Act, aspect: Callable[[str], str], strand: str) -> list[Act]:
    before, after = map(aspect, act.key.split(" > "))
    if before == after or not before or not after:
        return []
    return [attrs.evolve(act, strand=strand, key=f"{before} > {after}")]


def _health(state: str) -> str:
    base, *flags = state.split("|")
    known = "up" if base in ("IDLE", "ALLOCATED") else base
    return "|".join((known, *(flag for flag in flags if flag != "COMPLETING")))


def _business(state: str) -> str:
    """Return whether it has jobs; nothing of a node that is not up."""
    base, *flags = state.split("|")
    if base not in ("IDLE", "ALLOCATED"):
        return ""
    return "|".join((base, *(flag for flag in flags if flag == "COMPLETING")))


def _occupied(state: str) -> str:
    """Return whether it has jobs in any way; nothing of a node that is not up."""
    return {"IDLE": "free", "": ""}.get(_business(state), "in use")


def _shared(story: Story) -> set[str]:
    """Return the nodes on which two jobs are at the same time: until their epilogs are over."""
    there: dict[str, set[int]] = {}
    shared: set[str] = set()
    for act in story.acts:
        if act.job is None or not act.strand.startswith(("slurmd@", "stepd[", "task")):
            continue
        jobs = there.setdefault(act.node, set())
        if act.name == "MESSAGE_EPILOG_COMPLETE":
            jobs.discard(act.job)
        else:
            jobs.add(act.job)
        if len(jobs) > 1:
            shared.add(act.node)
    return shared


# Nodes that do not answer for a moment.


def blinks(ours: Story, theirs: Story) -> Both:
    """Leave out that a node does not answer, where it does again before it is DOWN."""
    return _without_blinks(ours), _without_blinks(theirs)


def _without_blinks(story: Story) -> Story:
    spare: set[int] = set()
    for strand, acts in story.strands().items():
        if strand.startswith("node "):
            for act, following in pairwise(acts):
                state = act.key.split(" > ")[0]
                blink = f"{state}|NO_RESPOND"
                if act.key == f"{state} > {blink}" and following.key == f"{blink} > {state}":
                    spare |= {id(act), id(following)}
    return story.having(act for act in story.acts if id(act) not in spare)


# The program that stood in for the appliance.

_OF_A_BUFFER: Final = frozenset({"dw_real_size", "dw_teardown"})


def stand_in(ours: Story, theirs: Story) -> Both:
    """Leave out what it said of buffers that are not there, and how its scripts were killed."""
    ours = ours.having(_without_answers(ours.acts))
    theirs = theirs.having(_without_answers(theirs.acts))
    mine, others = ours.strands(), theirs.strands()
    endless: set[int] = set()
    spare: set[int] = set()
    for strand in sorted(mine.keys() & others.keys()):
        if not strand.startswith("appliance"):
            continue
        killed = False
        for pair in align(mine[strand], others[strand]):
            if None not in pair and any(act and act.result is None for act in pair):
                endless.update(map(id, pair))
                killed = True
        if killed:
            # The thread that waited for it may come to ask for the size, or not.
            size = f"{strand} size"
            for pair in align(mine.get(size, ()), others.get(size, ())):
                spare.update(id(act) for act in pair if None in pair)
    return (
        ours.having(_unended(ours.acts, endless, spare)),
        theirs.having(_unended(theirs.acts, endless, spare)),
    )


def _without_answers(acts: Sequence[Act]) -> Iterator[Act]:
    there: set[Any] = set()
    for act in acts:
        if act.name in _OF_A_BUFFER and act.job not in there:
            yield attrs.evolve(act, result="none of a buffer that is not there")
            continue
        if act.name == "dw_setup" and act.result == 0:
            there.add(act.job)
        elif act.name == "dw_teardown":
            there.discard(act.job)
        yield act


def _unended(acts: Sequence[Act], endless: set[int], spare: set[int]) -> Iterator[Act]:
    for act in acts:
        if id(act) not in spare:
            yield attrs.evolve(act, result=None) if id(act) in endless else act


__all__ = ["blinks", "exits_apart", "node_records", "polls_between", "stand_in", "threads_apart"]
