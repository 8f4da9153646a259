"""Order between subjects in one thread: what slurmctld does in one turn, it does in an order.

A turn is what slurmctld does without a message between; part_comp is the last of what an epilog
leads to. Two acts that stand in one turn on both sides keep their order, whatever jobs, steps and
nodes they are about.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import attrs

from simctl.testing.conform.acts import OF_NO_JOB, Act, Story
from simctl.testing.conform.alignment import Pair

_PAUSE_S: Final = 0.02
"""A pause within which one turn goes on: slurmctld does not wait for anything in it."""

_PURGE: Final = frozenset({"slurm_ckpt_free_job", "bb_p_job_test_stage_out"})
"""Calls with which old jobs are forgotten, in any order."""


@attrs.frozen(kw_only=True)
class Swapped:
    """Two acts of one turn whose order the run turns round, as the recording has them."""

    before: Act
    after: Act
    ours: Act


def swapped(ours: Sequence[Act], theirs: Sequence[Act], pairs: Iterable[Pair]) -> Iterator[Swapped]:
    """Return where the run does in another order what is one turn on both sides.

    *ours* and *theirs* are all the acts of either side, in the order of their files.
    """
    mine_of = {id(other): mine for mine, other in pairs if mine is not None and other is not None}
    turns = _turns(ours)
    for turn in _acts_by_turn(theirs):
        matched = [(other, mine_of[id(other)]) for other in turn if id(other) in mine_of]
        for (before, mine), (after, mine_next) in pairwise(matched):
            same = turns.get(id(mine)) == turns.get(id(mine_next)) is not None
            if same and mine.strand != mine_next.strand and mine.place > mine_next.place:
                yield Swapped(before=before, after=after, ours=mine_next)


def _acts_by_turn(acts: Sequence[Act]) -> list[list[Act]]:
    found: dict[int, list[Act]] = {}
    turns = _turns(acts)
    for act in acts:
        if id(act) in turns:
            found.setdefault(turns[id(act)], []).append(act)
    return list(found.values())


def _turns(acts: Sequence[Act]) -> dict[int, int]:
    """Return the turn of each act of slurmctld's main threads, by the act."""
    found: dict[int, int] = {}
    turn, last_s = 0, 0.0
    for act in acts:
        if not _is_of_slurmctld(act):
            continue
        ends = act.kind == "message" or act.name in OF_NO_JOB
        if ends or act.when_s - last_s > _PAUSE_S:
            turn += 1
        last_s = act.when_s
        if not ends and act.name not in _PURGE:
            found[id(act)] = turn
    return found


def _is_of_slurmctld(act: Act) -> bool:
    """Return whether slurmctld does it itself: the appliance's programs are others'."""
    by_message = act.kind == "message" and act.user == "SlurmUser"
    return by_message or act.strand.startswith(("slurmctld", "node "))


def in_file_order(story: Story) -> list[Act]:
    """Return the acts in the order of their file."""
    return sorted(story.acts, key=lambda act: act.place)
