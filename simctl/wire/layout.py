"""Task layout: which rank of a step runs on which of its nodes.

How many tasks a node gets and which ranks they are follow from the cpus the step has on each node
and from the distribution. When the cpus do not suffice, tasks oversubscribe them; nothing is
refused for that here.
"""

import enum
from collections.abc import Iterable, Iterator, Sequence

import attrs

from simctl.wire.errno import ESLURM_BAD_DIST, ESLURM_BAD_TASK_COUNT, SlurmError
from simctl.wire.hostlist import sort_unique


class Distribution(enum.Enum):
    """How tasks are dealt to nodes; the values are those on the wire."""

    CYCLIC = 1
    BLOCK = 2
    ARBITRARY = 3
    PLANE = 4
    UNKNOWN = 8192
    """Not asked for: slurmctld takes BLOCK."""


@attrs.frozen(kw_only=True)
class StepLayout:
    """Where the tasks of a step run."""

    nodes: tuple[str, ...]
    tasks: tuple[int, ...]
    """Number of tasks on each node."""
    tids: tuple[tuple[int, ...], ...]
    """Ranks on each node, in the order of their local ids."""
    distribution: Distribution
    num_tasks: int

    @property
    def cyclic(self) -> bool:
        """Whether the switch is told that ranks go round the nodes."""
        return self.distribution is Distribution.CYCLIC


def default_distribution(*, num_tasks: int, num_nodes: int, own_allocation: bool) -> Distribution:
    """Return what srun asks for when its user asked for nothing.

    A srun that makes its own allocation leaves the choice to slurmctld, which takes BLOCK. Inside
    an allocation srun chooses: CYCLIC while no node needs a second task, else BLOCK.
    """
    if own_allocation:
        return Distribution.UNKNOWN
    return Distribution.CYCLIC if num_tasks <= num_nodes else Distribution.BLOCK


def lay_out(
    *,
    nodes: Sequence[str],
    cpus_per_node: Sequence[int],
    num_tasks: int,
    cpus_per_task: int = 1,
    distribution: Distribution,
    plane_size: int = 0,
    ntasks_per_node: int = 0,
    pack_nodes: bool = False,
) -> StepLayout:
    """Deal *num_tasks* tasks to *nodes*.

    With fewer tasks than nodes the last nodes get none; whether they stay in the step is up to
    the caller.

    Args:
        nodes: The step's nodes in order. For ARBITRARY the node of each task instead, repeated as
            often as it is to have one; the layout then holds each once, in Slurm's order.
        cpus_per_node: The step's cpus on each node; not looked at for ARBITRARY.
        num_tasks: Tasks of the whole step.
        cpus_per_task: Cpus each task needs; below 1 counts as 1.
        distribution: How to deal; UNKNOWN is BLOCK.
        plane_size: Tasks dealt to a node at a time; for PLANE only.
        ntasks_per_node: At most so many tasks on a node while another has room; 0 for no limit.
            PLANE takes it for its plane size when it has none of its own.
        pack_nodes: For BLOCK, fill a node's cpus before the next, after one task on each.

    Raises:
        SlurmError: ESLURM_BAD_TASK_COUNT without a task or a node; ESLURM_BAD_DIST for PLANE
            without a size, or when ARBITRARY does not name one node for each task.
    """
    if num_tasks < 1 or not nodes:
        message = f"{num_tasks} tasks cannot be laid out on {len(nodes)} nodes"
        raise SlurmError(ESLURM_BAD_TASK_COUNT, message)
    if distribution is Distribution.ARBITRARY:
        return _arbitrary(nodes, num_tasks)
    if distribution is Distribution.UNKNOWN:
        distribution = Distribution.BLOCK
    plane = distribution is Distribution.PLANE
    slots = _slots(nodes, cpus_per_node, cpus_per_task, 0 if plane else ntasks_per_node)
    size = _plane_size(plane_size or ntasks_per_node) if plane else 1
    if num_tasks == len(nodes):
        return _one_each(nodes, distribution)
    if plane:
        counts = _plane_counts(slots, num_tasks, size)
        return _layout(nodes, _deal_planes(counts, size), distribution)
    if distribution is Distribution.CYCLIC:
        return _layout(nodes, _round_ranks(slots, num_tasks), distribution)
    counts = (_pack_counts if pack_nodes else _round_counts)(slots, num_tasks)
    return _layout(nodes, _number_in_blocks(counts), distribution)


def _layout(
    nodes: Iterable[str], tids: Sequence[Sequence[int]], distribution: Distribution
) -> StepLayout:
    counts = tuple(map(len, tids))
    return StepLayout(
        nodes=tuple(nodes),
        tasks=counts,
        tids=tuple(map(tuple, tids)),
        distribution=distribution,
        num_tasks=sum(counts),
    )


def _one_each(nodes: Sequence[str], distribution: Distribution) -> StepLayout:
    """Return the layout of as many tasks as nodes, the same for every distribution."""
    count = len(nodes)
    return StepLayout(
        nodes=tuple(nodes),
        tasks=(1,) * count,
        tids=tuple((rank,) for rank in range(count)),
        distribution=distribution,
        num_tasks=count,
    )


def _plane_size(size: int) -> int:
    if size < 1:
        raise SlurmError(ESLURM_BAD_DIST, "plane needs a size of 1 or more, as in plane=4")
    return size


def _arbitrary(hosts: Sequence[str], num_tasks: int) -> StepLayout:
    """Put task i on host i."""
    if len(hosts) != num_tasks:
        message = (
            f"arbitrary needs a host for each task: {num_tasks} tasks, {len(hosts)} hosts named"
        )
        raise SlurmError(ESLURM_BAD_DIST, message)
    ranks: dict[str, list[int]] = {node: [] for node in sort_unique(hosts)}
    for rank, host in enumerate(hosts):
        ranks[host].append(rank)
    return _layout(ranks, tuple(ranks.values()), Distribution.ARBITRARY)


def _slots(
    nodes: Sequence[str], cpus_per_node: Sequence[int], cpus_per_task: int, ntasks_per_node: int
) -> list[int]:
    """Return how many tasks fit on each node; one always does."""
    if len(cpus_per_node) != len(nodes):
        msg = f"{len(nodes)} nodes, but cpus for {len(cpus_per_node)}"
        raise ValueError(msg)
    each = max(1, cpus_per_task)
    fitting = [max(1, cpus // each) for cpus in cpus_per_node]
    if ntasks_per_node > 0:
        return [min(slots, ntasks_per_node) for slots in fitting]
    return fitting


def _rounds(slots: Sequence[int], num_tasks: int) -> Iterator[Sequence[int]]:
    """Yield the nodes that take a task, round after round, until all tasks are placed.

    A node sits out once it is full. After a round that leaves no room anywhere every node takes
    part again, full or not.
    """
    everyone: Sequence[int] = range(len(slots))
    takers = everyone
    left = num_tasks
    full = False
    turn = 0
    while left > 0:
        yield takers[:left]
        left -= len(takers)
        turn += 1
        roomy = [] if full else [node for node in takers if slots[node] > turn]
        full = not roomy
        takers = roomy or everyone


def _round_counts(slots: Sequence[int], num_tasks: int) -> list[int]:
    """Count the tasks each node gets in rounds."""
    counts = [0] * len(slots)
    for takers in _rounds(slots, num_tasks):
        for node in takers:
            counts[node] += 1
    return counts


def _round_ranks(slots: Sequence[int], num_tasks: int) -> list[list[int]]:
    """Give ranks to tasks as the rounds place them."""
    tids: list[list[int]] = [[] for _ in slots]
    rank = 0
    for takers in _rounds(slots, num_tasks):
        for node in takers:
            tids[node].append(rank)
            rank += 1
    return tids


def _spread(counts: list[int], left: int) -> list[int]:
    """Add *left* tasks in rounds over all nodes, whatever they hold."""
    whole, rest = divmod(left, len(counts))
    return [count + whole + (node < rest) for node, count in enumerate(counts)]


def _pack_counts(slots: Sequence[int], num_tasks: int) -> list[int]:
    """Count one task a node, then fill node after node, then go round."""
    counts = [int(node < num_tasks) for node in range(len(slots))]
    left = num_tasks - sum(counts)
    for node, room in enumerate(slots):
        added = min(left, room - counts[node])
        if added > 0:
            counts[node] += added
            left -= added
    return _spread(counts, left)


def _plane_counts(slots: Sequence[int], num_tasks: int, size: int) -> list[int]:
    """Count one task a node, then rounds of up to *size* a node while it has room.

    The first round counts the task each node has already. As in Slurm, a round after which no
    node that took a task has room left lets all later rounds oversubscribe; with a size of 1 that
    is the first round.
    """
    counts = [int(node < num_tasks) for node in range(len(slots))]
    left = num_tasks - sum(counts)
    quota = size - 1
    oversubscribe = False
    while left:
        space_remaining = False
        for node, room in enumerate(slots):
            wanted = quota if oversubscribe else min(quota, room - counts[node])
            taken = min(left, max(0, wanted))
            counts[node] += taken
            left -= taken
            # Slurm looks after each task; the roomiest moment is after the first one taken.
            space_remaining |= taken > 0 and room > counts[node] - taken + 1
        oversubscribe |= not space_remaining
        quota = size
    return counts


def _number_in_blocks(counts: Sequence[int]) -> list[range]:
    """Give ranks to tasks node by node."""
    tids = []
    first = 0
    for count in counts:
        tids.append(range(first, first + count))
        first += count
    return tids


def _deal_planes(counts: Sequence[int], size: int) -> list[list[int]]:
    """Give ranks to tasks in rounds over the nodes, *size* at a time, until each has its count."""
    tids: list[list[int]] = [[] for _ in counts]
    waiting = [node for node, count in enumerate(counts) if count]
    rank = 0
    while waiting:
        for node in waiting:
            taken = min(size, counts[node] - len(tids[node]))
            tids[node].extend(range(rank, rank + taken))
            rank += taken
        waiting = [node for node in waiting if len(tids[node]) < counts[node]]
    return tids
