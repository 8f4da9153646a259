"""select/linear: whole nodes, in node order. Choices only: records in, nodes out."""

from collections.abc import Iterable

from simctl.ctld.records import JobRecord, NodeRecord, cpus_needed
from simctl.wire.ids import NO_VAL


def tasks_on(cpus: int, cpus_per_task: int, ntasks_per_node: int) -> int:
    """Return how many tasks a node of so many cpus takes."""
    fit = cpus // cpus_per_task
    return fit if ntasks_per_node == NO_VAL else min(fit, ntasks_per_node)


def uniform_need(job: JobRecord, cpus: int) -> int:
    """Return how many nodes of *cpus* cpus a job needs; 0 if no number of them would do."""
    desc = job.desc
    each = tasks_on(cpus, cpus_needed(desc), desc.ntasks_per_node)
    if not each:
        return 0
    need = max(job.min_nodes, -(-job.num_tasks // each))
    return need if need <= job.max_nodes else 0


def choose(job: JobRecord, candidates: Iterable[NodeRecord]) -> tuple[NodeRecord, ...]:
    """Return the first of the *candidates* that together hold a job; none if they cannot.

    Required nodes come first and excluded ones never; the answer is in node order.
    """
    desc = job.desc
    need_cpus = cpus_needed(desc)
    required = set(desc.nodes)
    excluded = set(desc.excluded)
    fit = [
        node
        for node in candidates
        if node.name not in excluded and tasks_on(node.cpus, need_cpus, desc.ntasks_per_node)
    ]
    chosen = [node for node in fit if node.name in required]
    if len(chosen) < len(required):
        return ()
    room = sum(tasks_on(node.cpus, need_cpus, desc.ntasks_per_node) for node in chosen)
    for node in fit:
        if len(chosen) >= job.min_nodes and room >= job.num_tasks:
            break
        if node.name not in required:
            chosen.append(node)
            room += tasks_on(node.cpus, need_cpus, desc.ntasks_per_node)
    if len(chosen) < job.min_nodes or len(chosen) > job.max_nodes or room < job.num_tasks:
        return ()
    return tuple(sorted(chosen, key=lambda node: node.index))


def could_hold(job: JobRecord) -> bool:
    """Tell whether a job's partition could hold it if all of its nodes were idle."""
    if is_plain(job):
        return 0 < uniform_need(job, job.part.uniform_cpus) <= len(job.part.nodes)
    return bool(choose(job, job.part.nodes))


def is_plain(job: JobRecord) -> bool:
    """Tell whether a job takes any nodes of its partition, and all of those are alike."""
    return bool(job.part.uniform_cpus) and not job.desc.nodes and not job.desc.excluded
