"""Where the tasks of a step run: choices only, records in, layout out."""

from collections.abc import Mapping, Sequence

from simctl.ctld.state.records import JobRecord, NodeRecord
from simctl.wire.errno import (
    ESLURM_BAD_TASK_COUNT,
    ESLURM_INVALID_NODE_COUNT,
    ESLURM_INVALID_NODE_NAME,
    ESLURM_NODES_BUSY,
    ESLURM_TOO_MANY_REQUESTED_CPUS,
    SlurmError,
)
from simctl.wire.ids import NO_VAL
from simctl.wire.layout import Distribution, StepLayout, lay_out
from simctl.wire.messages import RequestJobStepCreate


def free_cpus(job: JobRecord) -> dict[str, int]:
    """Return how many cpus of a job no step uses, by node; steps that share count as well."""
    free = {node.name: cpus for node, cpus in zip(job.nodes, job.cpus, strict=True)}
    for step in job.steps.values():
        for name, used in zip(step.layout.nodes, step.cpus, strict=True):
            if name in free:
                free[name] = max(0, free[name] - used)
    return free


def candidates(job: JobRecord, request: RequestJobStepCreate) -> list[NodeRecord]:
    """Return the nodes of a job that a step may have: those asked for by name come first.

    Raises:
        SlurmError: The job does not have a node that was named.
    """
    own = {node.name: node for node in job.nodes}
    if any(name not in own for name in request.nodes):
        raise SlurmError(ESLURM_INVALID_NODE_NAME)
    first = 0 if request.relative == NO_VAL else request.relative
    excluded = set(request.excluded)
    rest = [node for node in job.nodes[first:] if node.name not in excluded]
    return list(dict.fromkeys((*(own[name] for name in request.nodes), *rest)))


def step_nodes(job: JobRecord, request: RequestJobStepCreate) -> tuple[NodeRecord, ...]:
    """Return the nodes of a step: those asked for by name, then the job's first others.

    Nodes on which no step runs go before the others, if there are enough of them.

    Raises:
        SlurmError: The job does not have them.
    """
    named = len(set(request.nodes))
    possible = candidates(job, request)
    count = request.min_nodes or named or len(possible)
    if job.steps and request.relative == NO_VAL and count < len(possible):
        busy = {name for step in job.steps.values() for name in step.layout.nodes}
        idle = [node for node in possible[named:] if node.name not in busy]
        if len(idle) >= count - named:
            possible = [*possible[:named], *idle]
    chosen = possible[: max(count, named)]
    if not chosen or len(chosen) < request.min_nodes:
        raise SlurmError(ESLURM_INVALID_NODE_COUNT)
    return tuple(sorted(chosen, key=lambda node: node.index))


def lay_out_step(
    job: JobRecord, request: RequestJobStepCreate, *, most_per_node: int
) -> StepLayout:
    """Return where the tasks of a step run, MaxTasksPerNode of them on a node at most.

    Raises:
        SlurmError: The job lacks the nodes or the cpus; ESLURM_NODES_BUSY where it has them, and
            other steps use them.
    """
    cpus = {node.name: count for node, count in zip(job.nodes, job.cpus, strict=True)}
    if request.distribution is Distribution.ARBITRARY:
        return _arbitrary(job, request, most_per_node)
    if request.exclusive:
        return _dedicated(job, request, cpus, most_per_node)
    nodes = step_nodes(job, request)
    num_tasks = request.num_tasks or len(nodes)
    nodes = nodes[:num_tasks]
    if num_tasks > most_per_node * len(nodes):
        raise SlurmError(ESLURM_BAD_TASK_COUNT)
    if sum(_takes(request, cpus[node.name], num_tasks) for node in nodes) < num_tasks:
        raise SlurmError(ESLURM_TOO_MANY_REQUESTED_CPUS)
    return _deal(nodes, num_tasks, request, cpus)


def _takes(request: RequestJobStepCreate, cpus: int, num_tasks: int) -> int:
    """Return how many of a step's tasks so many cpus take: any number where they overcommit."""
    if request.overcommit:
        return num_tasks if cpus else 0
    return cpus // max(1, request.cpus_per_task)


def _deal(
    nodes: Sequence[NodeRecord],
    num_tasks: int,
    request: RequestJobStepCreate,
    cpus: Mapping[str, int],
) -> StepLayout:
    return lay_out(
        nodes=tuple(node.name for node in nodes),
        cpus_per_node=tuple(cpus[node.name] for node in nodes),
        num_tasks=num_tasks,
        cpus_per_task=max(1, request.cpus_per_task),
        distribution=request.distribution,
        plane_size=request.plane_size,
        ntasks_per_node=request.ntasks_per_node,
    )


def _arbitrary(job: JobRecord, request: RequestJobStepCreate, most_per_node: int) -> StepLayout:
    """Put each task on the node that was named for it."""
    candidates(job, request)
    if request.num_tasks > most_per_node * len(set(request.nodes)):
        raise SlurmError(ESLURM_BAD_TASK_COUNT)
    return lay_out(
        nodes=request.nodes,
        cpus_per_node=(),
        num_tasks=request.num_tasks or len(request.nodes),
        distribution=Distribution.ARBITRARY,
    )


def _dedicated(
    job: JobRecord, request: RequestJobStepCreate, cpus: Mapping[str, int], most_per_node: int
) -> StepLayout:
    """Lay a step out on cpus that no other step uses, on as few of the first nodes as will do."""
    num_tasks = request.num_tasks or max(1, request.min_nodes)
    free = free_cpus(job)
    named = set(request.nodes)
    chosen: list[NodeRecord] = []
    room = 0
    for node in candidates(job, request):
        enough = room >= num_tasks and len(chosen) >= request.min_nodes
        if enough and node.name not in named:
            break
        if takes := _takes(request, free[node.name], num_tasks):
            chosen.append(node)
            room += takes
    if room >= num_tasks and len(chosen) >= request.min_nodes and named <= _names(chosen):
        nodes = sorted(chosen, key=lambda node: node.index)[:num_tasks]
        if num_tasks > most_per_node * len(nodes):
            raise SlurmError(ESLURM_BAD_TASK_COUNT)
        return _deal(nodes, num_tasks, request, free)
    possible = candidates(job, request)
    if len(possible) < request.min_nodes:
        raise SlurmError(ESLURM_INVALID_NODE_COUNT)
    if sum(_takes(request, cpus[node.name], num_tasks) for node in possible) < num_tasks:
        raise SlurmError(ESLURM_TOO_MANY_REQUESTED_CPUS)
    raise SlurmError(ESLURM_NODES_BUSY)


def _names(nodes: Sequence[NodeRecord]) -> set[str]:
    return {node.name for node in nodes}
