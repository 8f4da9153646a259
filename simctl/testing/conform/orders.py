"""Orders between processes that every recording keeps, mined from all of them.

Acts are looked at by the step and node that they are about, with those of the step's job. An order
says that the first or last act of one name comes before the first or last of another. It is in the
table if recordings have both sides fifteen times or more, and never the other way round.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Final

import attrs

from simctl.testing.conform.acts import (
    BATCH_STEP,
    MARK,
    OF_NO_JOB,
    TASKS_OF,
    Act,
    Story,
    starts_run,
)
from simctl.testing.conform.answers import ENDING

OFTEN: Final = 15
"""How often an order has to be seen to be one."""

_TABLE: Final = "orders.txt"
_ENDS: Final = ("first", "last")
_PURGE: Final = frozenset({"slurm_ckpt_free_job", "bb_p_job_test_stage_out"})
_REPEATED: Final = ("REQUEST_TERMINATE_JOB", "REQUEST_KILL_TIMELIMIT")
"""Messages that are sent again until they are answered: only the first counts."""

_ANY_TIME: Final = ("RESPONSE_SLURM_RC", "REQUEST_SIGNAL_TASKS")
"""Messages with no place of their own: a step may be sent a signal more than once, and late."""

_FIRST_OF_A_RACE: Final = {
    "slurmd switch_p_free_jobinfo": (
        *("task ended", "stepd MESSAGE_TASK_EXIT", "srun MESSAGE_TASK_EXIT received"),
        *("stepd switch_p_job_fini", "stepd switch_p_job_postfini"),
    ),
    "task exec": ("task ended",),
    "stepd RESPONSE_LAUNCH_TASKS": ("task ended",),
    "srun RESPONSE_LAUNCH_TASKS received": ("task ended",),
}
"""What came first in all recordings because their tasks took some milliseconds at least."""


@attrs.frozen(order=True)
class Order:
    """One act of a group comes before another."""

    kind: str
    """Of what the group is: ``step`` or ``batch``."""

    before_end: str
    before: str
    after_end: str
    after: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.before_end} {self.before} < {self.after_end} {self.after}"


@attrs.frozen(kw_only=True)
class Group:
    """What happens to a step on a node, and to its job meanwhile."""

    kind: str
    step: str
    node: str
    acts: dict[str, tuple[Act, Act]]
    """The first and the last act by name."""


@attrs.frozen(kw_only=True)
class Violation:
    """An order of the table that a run does not keep."""

    order: Order
    group: Group
    before: Act
    after: Act


def groups(story: Story) -> Iterator[Group]:
    """Return the groups of a run, each step on each of its nodes."""
    by_job: dict[int | None, list[tuple[int, Act]]] = {}
    runs = Counter[int | None]()
    epilogs: dict[str, int | None] = {}
    hosts = {(act.step, act.key): act.node for act in story.acts if act.name == "fork"}
    for each in sorted(story.acts, key=lambda act: act.place):
        act = _from_its_node(each, hosts)
        job = act.job
        if act.name == "node_state":
            job = epilogs.pop(act.node, None)
        elif act.name == "MESSAGE_EPILOG_COMPLETE received":
            epilogs[act.node] = job
        runs[job] += starts_run(act)
        if job is not None:
            by_job.setdefault(job, []).append((runs[job], act))
    for acts in by_job.values():
        yield from _groups_of(acts)


def _from_its_node(act: Act, hosts: dict[tuple[str, str], str]) -> Act:
    """Return what srun is told of tasks as about the node that they are on."""
    if act.name != "MESSAGE_TASK_EXIT received":
        return act
    first = act.key.split(",")[0].replace("tasks=", "task=")
    return attrs.evolve(act, node=hosts.get((act.step, first), ""))


def _groups_of(acts: list[tuple[int, Act]]) -> Iterator[Group]:
    """Return the groups of a job."""
    begun = {
        (act.step, act.node): run
        for run, act in reversed(acts)
        if act.step and act.node and act.strand.startswith(("stepd[", "slurmd@"))
    }
    for (step, node), started in begun.items():
        found: dict[str, tuple[Act, Act]] = {}
        for run, act in acts:
            if run != started or act.step not in (step, "") or act.node not in (node, ""):
                continue
            name = _label(act)
            if name:
                found[name] = found.get(name, (act, act))[0], act
        kind = BATCH_STEP if step.endswith(BATCH_STEP) else "step"
        yield Group(kind=kind, step=step, node=node, acts=found)


def _label(act: Act) -> str:
    """Return what an act is called in orders; nothing if it is not told what it is about."""
    if act.name in OF_NO_JOB or act.name in _PURGE or act.name.startswith(_ANY_TIME):
        return ""
    if act.name.endswith(ENDING) or (act.name == "slurm_ckpt_alloc_job" and not act.step):
        return ""
    if act.name == "node_state":
        return "node_state after the epilog"
    if act.name == "job_state":
        return "job_state > " + act.key.split(" > ")[-1]
    who = _who(act)
    return f"{who} {act.name} {act.key if act.kind == 'call' else ''}".strip()


def _who(act: Act) -> str:
    """Return what kind of process did it."""
    if act.strand.startswith(TASKS_OF):
        return ""
    if act.strand == MARK:
        by_user = {"SlurmUser": "slurmctld", "root": "slurmd"}
        return by_user.get(act.user, "srun") if act.kind == "message" else ""
    who = act.strand.split("[")[0].split("@")[0].split(" ")[0]
    return "task" if who.startswith("task") else who


def mined(stories: Iterable[Story]) -> list[Order]:
    """Return the orders that all the recordings keep."""
    seen = Counter[Order]()
    for story in stories:
        for group in groups(story):
            seen.update(_orders_in(group))
    kept = {
        order
        for order, count in seen.items()
        if count >= OFTEN
        and not seen[_reverse(order)]
        and order.after not in _FIRST_OF_A_RACE.get(order.before, ())
    }
    return sorted(order for order in kept if not _is_implied(order, kept))


def _orders_in(group: Group) -> Iterator[Order]:
    ends = [
        (end, name, act)
        for name, pair in group.acts.items()
        for end, act in zip(_ENDS, pair, strict=True)
        if end == "first" or not any(each in name for each in _REPEATED)
    ]
    for before_end, before, first in ends:
        for after_end, after, second in ends:
            if first.place < second.place and before != after and first.strand != second.strand:
                yield Order(group.kind, before_end, before, after_end, after)


def _reverse(order: Order) -> Order:
    return Order(order.kind, order.after_end, order.after, order.before_end, order.before)


def _is_implied(order: Order, kept: set[Order]) -> bool:
    """Return whether a stronger order of the same two says the same."""
    return any(
        attrs.evolve(order, before_end=before_end, after_end=after_end) in kept
        for before_end in {order.before_end, "last"}
        for after_end in {order.after_end, "first"}
        if (before_end, after_end) != (order.before_end, order.after_end)
    )


def violations(story: Story, orders: Iterable[Order]) -> Iterator[Violation]:
    """Return the orders that a run does not keep, group by group."""
    for group in groups(story):
        for order in orders:
            pair = _sides(group, order)
            if pair is not None and pair[0].place > pair[1].place:
                yield Violation(order=order, group=group, before=pair[0], after=pair[1])


def turned_round(ours: Story, theirs: Story, orders: Iterable[Order]) -> Iterator[Violation]:
    """Return the orders that a run does not keep where the recording does, for the same group."""
    known = {(group.kind, group.step, group.node): group for group in groups(theirs)}
    for each in violations(ours, orders):
        group = known.get((each.group.kind, each.group.step, each.group.node))
        if group is not None and _keeps(group, each.order):
            yield each


def _keeps(group: Group, order: Order) -> bool:
    pair = _sides(group, order)
    return pair is not None and pair[0].place < pair[1].place


def _sides(group: Group, order: Order) -> tuple[Act, Act] | None:
    """Return the two acts of a group that an order is about, if it has both."""
    before, after = group.acts.get(order.before), group.acts.get(order.after)
    if order.kind != group.kind or before is None or after is None:
        return None
    return before[_ENDS.index(order.before_end)], after[_ENDS.index(order.after_end)]


# The table.


def as_text(orders: Iterable[Order]) -> str:
    """Return a table of orders, a line for each."""
    return "".join(f"{order}\n" for order in orders)


def from_text(text: str) -> tuple[Order, ...]:
    """Return the orders of a table."""
    return tuple(map(_parsed, text.splitlines()))


def _parsed(line: str) -> Order:
    kind, _, rest = line.partition(": ")
    before, _, after = rest.partition(" < ")
    before_end, _, before = before.partition(" ")
    after_end, _, after = after.partition(" ")
    return Order(kind, before_end, before, after_end, after)


@cache
def table() -> tuple[Order, ...]:
    """Return the orders that the recordings of the project keep."""
    return from_text((files(__package__) / _TABLE).read_text())
