"""What the calls of a run show of a switch plugin's mistakes."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

import attrs

from simctl.plugins.compiled.classes import Pointer
from simctl.plugins.hooks import Handle
from simctl.testing.plugin_check.canon import leaves
from simctl.testing.plugin_check.mistakes import NO_ROUND_TRIP
from simctl.testing.plugin_check.observe import Call
from simctl.testing.plugin_check.switch.compare import differences, values_by_field, values_in_rows
from simctl.testing.plugin_check.switch.lab import Lab
from simctl.testing.plugin_check.switch.rules import COPIES, EARLY, LOST, RANK, TWICE

Found = tuple[str, str, str]
"""Rule, function, and what was seen."""

_SOME: Final = 3


def _some(values: Any) -> str:
    ordered = sorted(values, key=lambda each: (isinstance(each, str), each))
    return ", ".join(str(each) for each in ordered[:_SOME]) + (
        ", ..." if len(ordered) > _SOME else ""
    )


# Copies, and what is packed.


def copies(calls: Sequence[Call]) -> Iterator[Found]:
    """Hold each copy against its original."""
    for call in calls:
        if call.function != "switch_p_copy_jobinfo" or call.failed or call.values[0] is None:
            continue
        made = call.result.value if isinstance(call.result, Handle) else None
        if made is None:
            yield COPIES, call.function, "returns no copy: srun gets an empty credential"
        elif made is call.values[0]:
            if isinstance(made, Pointer) or deepcopy(made) is not made:
                yield COPIES, call.function, "returns the credential itself, and no copy of it"
        else:
            for field in differences(call.left, call.made):
                yield COPIES, call.function, f"the copy differs from the credential in {field}"
        if call.shares:
            what = (
                f"the copy shares {call.shares.lstrip('.')} with the credential: one object in both"
            )
            yield COPIES, call.function, what


def packing(calls: Sequence[Call]) -> Iterator[Found]:
    """Hold what is unpacked against what was packed."""
    for thing in ("jobinfo", "node_info"):
        pack, unpack = f"switch_p_pack_{thing}", f"switch_p_unpack_{thing}"
        packed: dict[bytes, Any] = {}
        for call in calls:
            if call.failed or not call.values or call.values[0] is None:
                continue
            if call.function == pack:
                packed[call.packed] = call.given
            elif call.function == unpack and call.packed in packed:
                unread = call.values[1].remaining
                if unread:
                    yield NO_ROUND_TRIP, unpack, f"left {unread} of {len(call.packed)} bytes unread"
                for field in differences(packed[call.packed], call.left):
                    yield (
                        NO_ROUND_TRIP,
                        unpack,
                        f"does not bring back {field} of what {pack} was given",
                    )


# What is handed out.


@attrs.define(eq=False)
class _Live:
    build: Call
    number: int
    values: dict[tuple[Any, ...], set[Any]]

    @property
    def nodes(self) -> str:
        return str(self.build.values[1])


_BUILD: Final = "switch_p_build_jobinfo"
_COMPLETE: Final = "switch_p_job_step_complete"
_RESTS: Final = frozenset({_BUILD, "init", "fini", "switch_p_libstate_save"})


def lives(calls: Sequence[Call], lab: Lab) -> Iterator[Found]:
    """Look for what two steps were given that lived at one time, and for why that came."""
    ours = [call for call in calls if call.role == "slurmctld"]
    live: list[_Live] = []
    for number, call in enumerate(ours):
        if call.function == _COMPLETE:
            _end(live, call)
        elif call.function == _BUILD and not call.failed:
            this = _Live(call, number, values_by_field(call.left))
            for other in live:
                for field in sorted(lab.exclusive, key=str):
                    both = this.values.get(field, set()) & other.values.get(field, set())
                    if both and _meet(this, other, field, lab):
                        yield _why(ours, other, this, both, lab)
            live.append(this)


def _end(live: list[_Live], call: Call) -> None:
    """Take the step that has ended off the list; where none is it, nothing is known any more."""
    itself = [each for each in live if each.build.values[0] is call.values[0]]
    equal = [each for each in live if not differences(each.build.left, call.given)]
    if itself or equal:
        live.remove((itself or equal)[0])
        return
    if call.given not in (None, {}, []):
        nodes = str(call.values[1])
        live[:] = [each for each in live if each.nodes != nodes]


def _meet(one: _Live, other: _Live, field: tuple[Any, ...], lab: Lab) -> bool:
    """Return whether two steps would get into each other's way: in the fabric, or on their node."""
    if field in lab.everywhere:
        return True
    return one.nodes == other.nodes and "," not in one.nodes and "[" not in one.nodes


def _why(ours: list[Call], first: _Live, second: _Live, both: set[Any], lab: Lab) -> Found:
    given = f"{_some(both)} was given to a step while another that has it still runs"
    for call in reversed(ours[first.number + 1 : second.number]):
        if call.function not in _RESTS and _gives_back(first.build, call, lab):
            return EARLY, call.function, f"gives back what a live step has: {given}"
    restarted = any(
        call.pid != first.build.pid for call in ours[first.number + 1 : second.number + 1]
    )
    if restarted and not lab.twice:
        return LOST, "", f"after a restart of slurmctld {given}"
    return TWICE, _BUILD, given


def _gives_back(build: Call, call: Call, lab: Lab) -> bool:
    """Return whether a call undoes some of what a build has done."""
    if call.pid != build.pid:
        return False
    for name in build.kept_after:
        lost, added = _moved(build.kept_before.get(name), build.kept_after[name])
        left, back = _moved(call.kept_before.get(name), call.kept_after.get(name))
        if added & left or (lost & back and f"self.{name}" in lab.returning):
            return True
    return False


def _moved(before: Any, after: Any) -> tuple[set[Any], set[Any]]:
    """Return the parts that something has lost and got; of a number, its bits."""
    if before == after:
        return set(), set()
    if type(before) is int and type(after) is int:
        gone, new = before & ~after, after & ~before
        return _bits(gone), _bits(new)
    was, now = leaves(before), leaves(after)
    lost: set[Any] = set(was - now)
    more: set[Any] = set(now - was)
    numbers = {path[:-1]: path[-1] for path in sorted(lost, key=repr) if type(path[-1]) is int}
    for path in [each for each in sorted(more, key=repr) if each[-2:-1] not in (("[]",), ("{}",))]:
        key, number = path[:-1], path[-1]
        old = numbers.get(key)
        if old is not None and type(number) is int:
            # A number that is the value of a key: what has changed are bits of it.
            lost = lost - {(*key, old)} | {(*key, "bit", bit) for bit in _bits(old & ~number)}
            more = more - {path} | {(*key, "bit", bit) for bit in _bits(number & ~old)}
    return lost, more


def _bits(number: int) -> set[int]:
    return {bit for bit in range(min(number.bit_length(), 4096)) if number >> bit & 1}


def ranks(calls: Sequence[Call]) -> Iterator[Found]:
    """Look for tasks that got what is another task's."""
    steps: dict[str, list[Call]] = {}
    for call in calls:
        if call.function == "switch_p_job_attach" and not call.failed:
            steps.setdefault(call.step, []).append(call)
    for tasks in steps.values():
        given = {call.values[6]: call for call in tasks}
        count = tasks[0].values[5]
        if len(given) < count or count < 2:  # noqa: PLR2004 - one task has no other
            continue
        for name in sorted({name for call in tasks for name in call.added}):
            by_rank = [given[rank].added.get(name) for rank in range(count)]
            slots = next(
                (
                    values
                    for values in (
                        *values_by_field(given[0].given).values(),
                        *values_in_rows(given[0].given),
                    )
                    if len(values) == count and {str(each) for each in values} >= set(by_rank)
                ),
                None,
            )
            if slots is not None and len(set(by_rank)) < count:
                one = next(rank for rank in range(count) if by_rank.count(by_rank[rank]) > 1)
                other = by_rank.index(by_rank[one], one + 1)
                what = (
                    f"gives ranks {one} and {other} the same {name}={by_rank[one]}, though the "
                    f"credential has {count} different ones for the {count} tasks"
                )
                yield RANK, "switch_p_job_attach", what


@attrs.define(eq=False)
class _OnNode:
    """What the tasks of a step were given on one node."""

    shape: tuple[Any, ...]
    ranks: set[int] = attrs.field(factory=set)
    given: dict[str, set[str]] = attrs.field(factory=dict)


def overlaps(calls: Sequence[Call]) -> Iterator[Found]:
    """Look for numbers that tasks of two live steps of one shape have in part in common on a node.

    All in common may be a setting, or count from 0 in each step; only some are what both took.
    """
    live: dict[tuple[str, str], _OnNode] = {}
    for call in calls:
        key = (call.host, call.step)
        if call.function == "switch_p_job_postfini":
            mine = live.pop(key, None)
            for (host, _), other in live.items() if mine else ():
                if host == call.host and mine is not None:
                    yield from _in_part(mine, other)
        elif call.function == "switch_p_job_attach" and not call.failed:
            _, _, nodeid, _, nnodes, nprocs, rank = call.values
            tasks = live.setdefault(key, _OnNode((nodeid, nnodes, nprocs)))
            tasks.ranks.add(rank)
            for name, value in call.added.items():
                tasks.given.setdefault(name, set()).add(value)


def _in_part(one: _OnNode, other: _OnNode) -> Iterator[Found]:
    if one.shape != other.shape or one.ranks != other.ranks:
        return
    for name, values in one.given.items():
        others = other.given.get(name, set())
        both = values & others
        in_part = both and both != values and len(values) == len(others) == len(one.ranks)
        if in_part and all(each.isdigit() for each in values | others):
            what = f"{name}={min(both)} was given to tasks of two live steps on one node"
            yield TWICE, _BUILD, what
