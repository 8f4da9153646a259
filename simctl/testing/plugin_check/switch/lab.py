"""Call a switch plugin's slurmctld functions step by step: what it keeps before and after is seen.

Runs of whole clusters come to the same calls, but never at rest and never often enough.
"""

import json
from collections import Counter
from typing import Any, Final

import attrs

from simctl.api.reach import reach_of
from simctl.kernel.procs import Process
from simctl.plugins.hooks import Handle, failed
from simctl.testing.plugin_check.bench import Bench
from simctl.testing.plugin_check.canon import attributes, leaves, plain
from simctl.testing.plugin_check.drive import Driver
from simctl.testing.plugin_check.observe import shared_state
from simctl.testing.plugin_check.switch.compare import (
    differences,
    exclusive_fields,
    values_by_field,
)
from simctl.wire.buf import Buf

NODES: Final = "n[1-2]"
_HELD_AT_MOST: Final = 400
_CYCLES_AT_MOST: Final = 1500
_TASKS: Final = 8
_LOOP_S: Final = 1.5

Leaves = Counter[tuple[Any, ...]]


@attrs.define
class Lab:
    """What was learnt of a plugin in slurmctld alone."""

    exclusive: set[tuple[Any, ...]] = attrs.field(factory=set)
    """Fields of a credential that no two live steps of one shape have in common."""

    everywhere: set[tuple[Any, ...]] = attrs.field(factory=set)
    """Those of which that holds for steps on different nodes, too."""

    logs: set[str] = attrs.field(factory=set)
    """What grows as a log does."""

    returning: set[str] = attrs.field(factory=set)
    """What changes with a step and is as before after it."""

    growing: dict[str, int] = attrs.field(factory=dict)
    """What each step makes larger (or, below 0, smaller) for good, by how much."""

    claims: dict[str, int] = attrs.field(factory=dict)
    """What build_jobinfo makes larger or smaller, by how much."""

    early: str = ""
    """What gets back what a step has, when a copy of its credential is freed."""

    runs_out: int = 0
    """After how many steps, one after another, build_jobinfo failed; 0 if it never did."""

    half: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    """What a failed build has left: parts that are gone, parts that are too many."""

    half_failed: int = 0

    unequal: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    """Numbers that a build changes by so much, and the end of its step by something else."""

    others: str = ""
    """What gets back another step's part, when a step is over."""

    not_carried: dict[str, None] = attrs.field(factory=dict)
    """Fields of a credential that do not come back when it is unpacked, as many steps live."""

    lost: str = ""
    """What was given again after a restart, while a step still had it."""

    twice: str = ""
    """What was given to two steps that are alive, while ever more were built."""


def kept(who: Process) -> dict[str, Any]:
    """Return what the plugin keeps in a process: on itself, in its class and module, in files."""
    instance = who.memory.instances.get("switch")
    found = {f"self.{name}": value for name, value in attributes(instance).items()}
    found |= shared_state(type(instance))
    folders: dict[str, set[str]] = {}
    for path, data in reach_of(who).disk.contents(who.host.name).items():
        found[f"the file {path}"] = _read(bytes(data))
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, set()).add(name)
    # A plugin may keep a file for each part that is taken: then the folder is its table.
    found |= {f"the files in {folder}": frozenset(names) for folder, names in folders.items()}
    return found


def _read(data: bytes) -> Any:
    """Return what a file holds: JSON, lines, or bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    try:
        return plain(json.loads(text))
    except (ValueError, RecursionError):
        return text.splitlines()


def is_log(before: Any, after: Any) -> bool:
    """Return whether something has only grown at the ends of lists, as a log does."""
    more = leaves(after) - leaves(before)
    return all(len(path) > 1 and path[-2] == "[]" for path in more)


def alike(one: Any, other: Any) -> bool:
    """Return whether two things are equal, whatever the order of lists in them."""
    if one == other:
        return True
    both = isinstance(one, _COLLECTIONS) and isinstance(other, _COLLECTIONS)
    return both and _parts(one) == _parts(other)


def _parts(value: Any) -> Leaves:
    """Return the parts of something: an entry of a dict that is 0, None or empty is like none."""
    return Counter(
        {
            path: count
            for path, count in leaves(value).items()
            if count and (len(path) < 2 or path[-2] == "[]" or path[-1] or path[-1] == "")  # noqa: PLR2004 - a key and its value
        }
    )


def sizes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return what changed in collections, by attribute: parts gone, and parts added."""
    found = {}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old == new or not isinstance(old, _COLLECTIONS) or not isinstance(new, _COLLECTIONS):
            continue
        was, now = _parts(old), _parts(new)
        gone, more = was - now, now - was
        if gone or more:
            found[name] = (gone.total(), more.total())
    return found


_COLLECTIONS: Final = (dict, list, frozenset, tuple)


async def work(bench: Bench, driver: Driver, lab: Lab, shape: tuple[str, int, int]) -> None:
    """Go through what slurmctld does for steps, and note what the plugin keeps at rest."""
    who = await driver.process("slurmctld")
    if who is None:
        return
    if not await _pairs(driver, who, lab, shape):
        return
    await driver.end(who)
    # What is kept in memory begins anew with each process; files go on.
    who = await driver.process("slurmctld")
    if who is not None:
        await _cycles(driver, who, lab, ("n1", 2, 0))
        await _gap(driver, who, lab)
        await driver.end(who)
    who = await driver.process("slurmctld")
    if who is not None:
        with driver.hooks.unobserved():
            await _many(bench, driver, who, lab, shape[0])
        await driver.end(who)
    for tasks in (3, 5):
        await _exhaust(bench, driver, lab, shape[0], tasks)
    await _exhaust(bench, driver, lab, shape[0], 4, full="n2")
    await _restart(driver, lab, shape)


async def build(
    driver: Driver, who: Process, nodes: str, tasks: int, cyclic: int = 0
) -> tuple[Handle, bool]:
    """Make and build a credential; also tell whether that succeeded."""
    made = await driver.made("switch_p_alloc_jobinfo", who)
    result = await driver.call("switch_p_build_jobinfo", who, made, nodes, tasks, cyclic)
    return made, not failed(result)


async def complete(driver: Driver, who: Process, held: Handle, nodes: str) -> None:
    """End a step, as slurmctld does."""
    await driver.call("switch_p_job_step_complete", who, held, nodes)
    await driver.call("switch_p_free_jobinfo", who, held)


async def _pairs(driver: Driver, who: Process, lab: Lab, shape: tuple[str, int, int]) -> bool:
    """Build two steps of one shape in a row: what differs wholly is each step's own."""
    nodes, tasks, cyclic = shape
    one, fine = await build(driver, who, nodes, tasks, cyclic)
    other, also = await build(driver, who, nodes, tasks, cyclic)
    if fine and also:
        lab.exclusive |= set(exclusive_fields(plain(one.value), plain(other.value)))
    await complete(driver, who, one, nodes)
    await complete(driver, who, other, nodes)
    await _one_of_two(driver, who, lab, shape)
    here, _ = await build(driver, who, "n1", 2)
    there, _ = await build(driver, who, "n2", 2)
    apart = exclusive_fields(plain(here.value), plain(there.value))
    lab.everywhere |= set(apart) & lab.exclusive
    await complete(driver, who, here, "n1")
    await complete(driver, who, there, "n2")
    return fine and also


async def _one_of_two(driver: Driver, who: Process, lab: Lab, shape: tuple[str, int, int]) -> None:
    """End one of two steps on the same nodes: what the other one has is to stay with it."""
    one, fine = await build(driver, who, *shape)
    before = kept(who)
    other, also = await build(driver, who, *shape)
    between = kept(who)
    await complete(driver, who, other, shape[0])
    if fine and also:
        whole = kept(who)
        for name, (gone, more) in sizes(before, whole).items():
            taken, back = sizes(before, between).get(name), sizes(between, whole).get(name)
            if taken and back and (more - gone) * (taken[1] - taken[0]) < 0:
                lab.others = name
    await complete(driver, who, one, shape[0])


async def _restart(driver: Driver, lab: Lab, shape: tuple[str, int, int]) -> None:
    """Start anew from what was saved with a step alive: the next one gets nothing of what it has.

    A plugin may keep in files what is taken, or find it in the steps' own credentials.
    """
    who = await driver.process("slurmctld")
    if who is None:
        return
    live, fine = await build(driver, who, *shape)
    had = values_by_field(plain(live.value))
    packed = Buf()
    await driver.call("switch_p_pack_jobinfo", who, live, packed)
    await driver.call("switch_p_libstate_save", who, driver.state_folder)
    await driver.end(who)
    who = await driver.process("slurmctld")
    if who is None:
        return
    await driver.call("switch_p_libstate_restore", who, driver.state_folder)
    there = await driver.made("switch_p_alloc_jobinfo", who, to_unpack_into=True)
    await driver.call("switch_p_unpack_jobinfo", who, there, Buf(packed.data()))
    other, also = await build(driver, who, *shape)
    given = values_by_field(plain(other.value))
    for field in sorted(lab.exclusive, key=str) if fine and also else ():
        both = given.get(field, set()) & had.get(field, set())
        if both and not lab.lost:
            lab.lost = f"{min(both, key=str)} was given to a step while another has it"
    await complete(driver, who, other, shape[0])
    await complete(driver, who, there, shape[0])
    await driver.end(who)


async def _gap(driver: Driver, who: Process, lab: Lab) -> None:
    """Build a step that is larger than the one that has just left a gap before a live one."""
    small, _ = await build(driver, who, "n1", 2)
    live, _ = await build(driver, who, "n1", 2)
    await complete(driver, who, small, "n1")
    before = kept(who)
    large, fine = await build(driver, who, "n1", 3)
    await complete(driver, who, large, "n1")
    after = kept(who)
    rests = sorted(lab.returning)
    changed = [name for name in rests if not alike(before.get(name), after.get(name))]
    if fine and changed and not lab.others and not lab.growing and not lab.unequal:
        lab.twice = f"{changed[0]} has less of a live step after a larger one has come and gone"
    await complete(driver, who, live, "n1")


async def _cycles(driver: Driver, who: Process, lab: Lab, shape: tuple[str, int, int]) -> None:
    """Run steps one after another, with all that slurmctld does for them."""
    nodes, tasks, cyclic = shape
    rests = [kept(who)]
    moved: set[str] = set()
    for number in range(3):
        before = kept(who)
        held, _ = await build(driver, who, nodes, tasks, cyclic)
        after = kept(who)
        for name, (gone, more) in sizes(before, after).items():
            lab.claims[name] = more - gone
        if number:
            # What a first step makes or sets once is not what each one takes.
            moved |= {name for name in after if after[name] != before.get(name)}
        copied = await driver.call("switch_p_copy_jobinfo", who, held)
        for each in (copied if isinstance(copied, Handle) else held, held):
            await driver.call("switch_p_pack_jobinfo", who, each, Buf())
        if isinstance(copied, Handle):
            whole = kept(who)
            await driver.call("switch_p_free_jobinfo", who, copied)
            for name, (gone, more) in sizes(whole, kept(who)).items():
                if (more - gone) * lab.claims.get(name, 0) < 0:
                    lab.early = name
        await complete(driver, who, held, nodes)
        rests.append(kept(who))
        if number:
            lab.unequal |= _unequal(before, after, rests[-1])
    _, first, second, third = rests
    lab.returning |= {
        name
        for name in moved
        if alike(first.get(name), second.get(name)) and alike(second.get(name), third.get(name))
    }
    for name in first:
        early, late = sizes(first, second).get(name), sizes(second, third).get(name)
        if early and late:
            net = (early[1] - early[0], late[1] - late[0])
            if net[0] * net[1] > 0:
                lab.growing[name] = net[1]
                if lab.claims.get(name, 0) >= 0 and is_log(second[name], third[name]):
                    lab.logs.add(name)


def _unequal(
    before: dict[str, Any], after: dict[str, Any], rest: dict[str, Any]
) -> dict[str, tuple[int, int]]:
    """Return the numbers that went up and then down, or down and up, by another amount."""
    first, second, third = (_numbers(each, ()) for each in (before, after, rest))
    found = {}
    for path, was in second.items():
        taken, back = was - first.get(path, 0), third.get(path, 0) - was
        if taken * back < 0 and taken + back:
            found[str(path[0])] = (taken, back)
    return found


def _numbers(value: Any, path: tuple[Any, ...]) -> dict[tuple[Any, ...], int]:
    if type(value) is int:
        return {path: value}
    if type(value) is tuple:
        return _numbers(value[1], path)
    if type(value) is not dict:
        return {}
    found: dict[tuple[Any, ...], int] = {}
    for key, part in value.items():
        found |= _numbers(part, (*path, key))
    return found


async def _many(bench: Bench, driver: Driver, who: Process, lab: Lab, nodes: str) -> None:
    """Run very many steps one after another: with nothing held, none may be refused."""
    ends_s = bench.clock_s() + _LOOP_S
    for number in range(1, _CYCLES_AT_MOST + 1):
        held, fine = await build(driver, who, nodes, _TASKS)
        await complete(driver, who, held, nodes)
        if not fine:
            # One that is too large for it even at first is no step that it has run out for.
            lab.runs_out = number if number > 1 else 0
            break
        if bench.clock_s() > ends_s:
            break


async def _exhaust(
    bench: Bench, driver: Driver, lab: Lab, nodes: str, tasks: int, full: str = ""
) -> None:
    """Build steps until one fails; end that one and all others, and look what is left.

    Where *full* is one of the nodes, that one is filled with other steps first.
    """
    who = await driver.process("slurmctld")
    if who is None:
        return
    # What is made at the first step is there before.
    first, _ = await build(driver, who, nodes, tasks)
    await complete(driver, who, first, nodes)
    with driver.hooks.unobserved():
        await _fill(bench, driver, who, lab, nodes, tasks, full)
    await driver.end(who)


async def _fill(
    bench: Bench, driver: Driver, who: Process, lab: Lab, nodes: str, tasks: int, full: str
) -> None:
    start = kept(who)
    held: list[tuple[Handle, str]] = []
    given: dict[tuple[Any, ...], set[Any]] = {}
    ends_s = bench.clock_s() + _LOOP_S
    while full and len(held) < _HELD_AT_MOST and bench.clock_s() < ends_s:
        made, fine = await build(driver, who, full, 1)
        if not fine:
            await complete(driver, who, made, full)
            break
        held.append((made, full))
    while len(held) < _HELD_AT_MOST and bench.clock_s() < ends_s:
        before = kept(who)
        made, fine = await build(driver, who, nodes, tasks)
        if not fine:
            await complete(driver, who, made, nodes)
            lab.half_failed += 1
            _note_half(lab, before, kept(who))
            break
        held.append((made, nodes))
        values = values_by_field(plain(made.value)) if not lab.twice else {}
        for field in sorted(lab.exclusive & values.keys()):
            seen = given.setdefault(field, set())
            both = values[field] & seen
            if both and not full:
                lab.twice = f"{min(both, key=str)} was given to two of {len(held)} live steps"
            seen |= values[field]
    if held:
        # What one of many steps has is wider than what the first one had.
        await _carried(driver, who, lab, held[-1][0])
    for each, where in held:
        await complete(driver, who, each, where)
    if lab.half_failed:
        _note_half(lab, start, kept(who))


async def _carried(driver: Driver, who: Process, lab: Lab, held: Handle) -> None:
    """Pack a credential and unpack it in slurmd, and note what does not come back."""
    slurmd = await driver.process("slurmd")
    packed = Buf()
    await driver.call("switch_p_pack_jobinfo", who, held, packed)
    there = await driver.made("switch_p_alloc_jobinfo", slurmd)
    result = await driver.call("switch_p_unpack_jobinfo", slurmd, there, Buf(packed.data()))
    if result is not None and not failed(result):
        lab.not_carried |= dict.fromkeys(differences(plain(held.value), plain(there.value)))
    await driver.end(slurmd)


def _note_half(lab: Lab, before: dict[str, Any], after: dict[str, Any]) -> None:
    changed = sizes(before, after)
    for name in sorted(lab.returning):
        old, new = before.get(name), after.get(name)
        if alike(old, new):
            continue
        if isinstance(old, _COLLECTIONS):
            if name in changed:
                lab.half.setdefault(name, changed[name])
        else:
            lab.half.setdefault(name, (0, 0))
