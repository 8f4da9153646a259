"""Which nodes a job runs on, and what it takes of them. Choices only: rooms in, shares out.

select/linear gives whole nodes, select/cons_tres cpus, memory and generic resources of nodes. Both
take nodes in their order.
"""

from collections.abc import Iterable

import attrs

from simctl.ctld.state.records import JobRecord, PartRecord
from simctl.wire.ids import NO_VAL
from simctl.wire.resources import ALL_MEMORY, Demand, Room, Share, split_gres, tasks_in


def demand_in(job: JobRecord, part: PartRecord) -> Demand:
    """Return what a job asks for in a partition, which has limits and may give whole nodes only."""
    demand = job.demand
    if (
        (part.exclusive and not demand.whole)
        or part.max_nodes < demand.max_nodes
        or part.min_nodes > demand.min_nodes
    ):
        return attrs.evolve(
            demand,
            whole=demand.whole or part.exclusive,
            min_nodes=max(part.min_nodes, demand.min_nodes),
            max_nodes=min(part.max_nodes, demand.max_nodes),
        )
    return demand


def limit_in(job: JobRecord, part: PartRecord) -> int:
    """Return the minutes that a job may run in a partition; who asks for none has its default."""
    if job.desc.time_limit_min != NO_VAL:
        return job.time_limit_min
    return min(part.default_time_min, part.max_time_min)


def uniform_need(demand: Demand, cpus: int) -> int:
    """Return how many whole nodes of *cpus* cpus a job needs; 0 if no number of them would do."""
    each = tasks_in(demand, Room(index=0, cpus=cpus, memory_mb=0, gres={}))
    if not each:
        return 0
    need = max(demand.min_nodes, -(-demand.placed_tasks // each))
    return need if need <= demand.max_nodes else 0


def choose(demand: Demand, rooms: Iterable[Room]) -> tuple[Share, ...]:
    """Return what a job takes of the *rooms*, in the order they come; nothing if it cannot fit.

    Required nodes are always among them, excluded ones never. The first that together suffice are
    taken, or where they would be too many, those that take the most tasks.
    """
    fit: list[tuple[Room, int]] = []
    named: list[tuple[Room, int]] = []
    room_for = 0
    for room in rooms:
        if demand.excluded >> room.index & 1:
            continue
        tasks = tasks_in(demand, room)
        if not tasks:
            continue
        if demand.required >> room.index & 1:
            named.append((room, tasks))
            continue
        fit.append((room, tasks))
        room_for += tasks
        if (
            not demand.required
            and len(fit) >= demand.min_nodes
            and room_for >= demand.placed_tasks
            and len(fit) <= demand.max_nodes
        ):
            break
    if len(named) < demand.required.bit_count():
        return ()
    chosen = _fill(demand, named, fit)
    if not chosen:
        widest = sorted(fit, key=lambda each: (-each[1], each[0].index))
        chosen = _fill(demand, named, widest)
    return _deal(demand, sorted(chosen, key=lambda each: each[0].index))


def _fill(
    demand: Demand, named: list[tuple[Room, int]], others: list[tuple[Room, int]]
) -> list[tuple[Room, int]]:
    """Return the named rooms and the first others that are needed; nothing if that is no fit."""
    chosen = list(named)
    room_for = sum(tasks for _, tasks in chosen)
    for other in others:
        if len(chosen) >= demand.min_nodes and room_for >= demand.placed_tasks:
            break
        chosen.append(other)
        room_for += other[1]
    enough = len(chosen) >= demand.min_nodes and room_for >= demand.placed_tasks
    return chosen if enough and len(chosen) <= demand.max_nodes else []


def _deal(demand: Demand, chosen: list[tuple[Room, int]]) -> tuple[Share, ...]:
    """Give one task's cpus to each node, then the rest in node order as each has room."""
    left = max(0, demand.placed_tasks - len(chosen))
    shares = []
    for room, fit in chosen:
        more = min(left, fit - 1)
        left -= more
        cpus = max((1 + more) * demand.cpus_per_task, demand.cpus_per_node)
        shares.append(_share(demand, room, room.cpus if demand.whole else cpus))
    return tuple(shares)


def _share(demand: Demand, room: Room, cpus: int) -> Share:
    memory_mb = demand.memory_per_node_mb
    if not demand.uses_memory:
        memory_mb = 0
    elif memory_mb == ALL_MEMORY:
        memory_mb = room.memory_mb
    elif demand.memory_per_cpu_mb:
        memory_mb = min(room.memory_mb, demand.memory_per_cpu_mb * cpus)
    gres = split_gres(demand.gres, room.gres) if demand.gres else None
    return Share(index=room.index, cpus=cpus, memory_mb=memory_mb, gres=gres or {})


def whole_nodes(part: PartRecord, indexes: Iterable[int]) -> tuple[Share, ...]:
    """Return whole nodes of a partition whose nodes are alike."""
    return tuple(Share(index=index, cpus=part.uniform_cpus) for index in indexes)


def could_hold(job: JobRecord, part: PartRecord, serviceable: int = -1) -> bool:
    """Return whether a partition could hold a job if its nodes, or those *serviceable*, idled."""
    demand = demand_in(job, part)
    mask = part.mask & serviceable
    if part.uniform_cpus and demand.plain:
        return 0 < uniform_need(demand, part.uniform_cpus) <= mask.bit_count()
    rooms = (node.total for node in part.nodes if mask >> node.index & 1)
    return bool(choose(demand, rooms))


def fitting_parts(job: JobRecord) -> tuple[PartRecord, ...]:
    """Return those of a job's partitions that could hold it."""
    return tuple(part for part in job.parts if could_hold(job, part))
