"""What a srun asks of the controller for its step: options first, then the job's environment."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from simctl.commands.arguments.job_values import distribution, hosts
from simctl.commands.arguments.options import BAD_OPTION, UsageError, variable
from simctl.commands.submission.describe import checkpoint_dir, restart_dir
from simctl.site import CommandCall
from simctl.wire.ids import NO_VAL
from simctl.wire.layout import Distribution, default_distribution
from simctl.wire.messages import RequestJobStepCreate

_NO_DISTRIBUTION: Final = (None, 0)


@attrs.define(kw_only=True)
class _Shape:
    """How many tasks and nodes a step asks for; NO_VAL stands for what is left open."""

    tasks: int
    least: int
    most: int
    per_node: int


def step_request(
    call: CommandCall, options: Mapping[str, Any], *, job_id: int, own: bool, name: str
) -> RequestJobStepCreate:
    """Return the request for a step; inside an allocation its environment fills in what is open.

    Raises:
        UsageError: The allocation cannot give what is asked.
    """
    env: Mapping[str, str] = {} if own else call.env
    nodes, how, plane = _distribution(options, env)
    shape = _shape(call, options, env, own=own, hosts=nodes if how is _ARBITRARY else ())
    if how is None:
        how = default_distribution(
            num_tasks=_or(shape.tasks, 1), num_nodes=_or(shape.least, 1), own_allocation=own
        )
        if shape.tasks == NO_VAL and not own:
            how = Distribution.CYCLIC
    return RequestJobStepCreate(
        job_id=job_id,
        name=name,
        num_tasks=_or(shape.tasks, 0),
        min_nodes=_or(shape.least, 0),
        max_nodes=_or(shape.most, 0),
        cpus_per_task=max(
            1, options.get("cpus-per-task", _or(variable(env, "SLURM_CPUS_PER_TASK"), 1))
        ),
        ntasks_per_node=_or(shape.per_node, 0),
        distribution=how,
        plane_size=plane,
        nodes=nodes,
        excluded=options.get("exclude", ()),
        relative=options.get("relative", NO_VAL),
        time_limit_min=NO_VAL if own else options.get("time", NO_VAL),
        exclusive=bool({"exclusive", "exact"} & set(options)) and not own,
        immediate=options.get("immediate") == 1,
        submit_line=" ".join(call.argv),
        no_kill="no-kill" in options or bool(call.env.get("SLURM_NO_KILL")),
        overcommit="overcommit" in options,
        ckpt_interval_min=options.get("checkpoint", 0),
        ckpt_dir=checkpoint_dir(call, options),
        restart_dir=restart_dir(call, options),
    )


_ARBITRARY: Final = Distribution.ARBITRARY


def _distribution(
    options: Mapping[str, Any], env: Mapping[str, str]
) -> tuple[tuple[str, ...], Distribution | None, int]:
    """Return the nodes named, how tasks are dealt to nodes, and how many at a time."""
    nodes: tuple[str, ...] = options.get("nodelist", ())
    how, plane = options.get("distribution", _NO_DISTRIBUTION)
    if how is Distribution.UNKNOWN:
        # Only whether nodes are to be filled up was said.
        how = None
    if how is None and env.get("SLURM_DISTRIBUTION"):
        size = env.get("SLURM_DIST_PLANESIZE", "")
        word = env["SLURM_DISTRIBUTION"]
        how, plane = distribution(f"{word}={size}" if word == "plane" else word)
    if how is _ARBITRARY and not nodes:
        nodes = hosts(env.get("SLURM_ARBITRARY_NODELIST", ""))
        if not nodes:
            raise UsageError(BAD_OPTION, "srun: error: " + ARBITRARY_NEEDS_NODES)
    return nodes, how, plane


ARBITRARY_NEEDS_NODES: Final = (
    "--distribution=arbitrary needs the node of each task, in order: --nodelist=n1,n2,n1"
)


def _shape(
    call: CommandCall,
    options: Mapping[str, Any],
    env: Mapping[str, str],
    *,
    own: bool,
    hosts: tuple[str, ...],
) -> _Shape:
    """Return how many tasks and nodes a step asks for; *hosts* names the node of each task."""
    tasks = options.get("ntasks", NO_VAL if hosts else variable(env, "SLURM_NTASKS"))
    least, most = options.get("nodes", (NO_VAL, NO_VAL))
    if hosts:
        return _Shape(tasks=_or(tasks, len(hosts)), least=NO_VAL, most=NO_VAL, per_node=NO_VAL)
    if "ntasks" in options and least != NO_VAL and tasks < least:
        if not own:
            # Of its own job srun has said so already.
            call.err(
                f"srun: Warning: can't run {tasks} processes on {least} nodes, "
                f"setting nnodes to {tasks}"
            )
        least = most = tasks
    per_node = options.get("ntasks-per-node", variable(env, "SLURM_NTASKS_PER_NODE"))
    nodes = variable(env, "SLURM_NNODES")
    if NO_VAL not in (least, nodes) and least > nodes:
        raise UsageError(1, f"srun: error: Only allocated {nodes} nodes asked for {least}")
    first = options.get("relative", 0)
    if NO_VAL not in (least, nodes) and first + least > nodes:
        raise UsageError(
            1,
            "srun: error: --relative and --nodes option incompatible with count of allocated "
            f"nodes ({first}+{least}>{nodes})",
        )
    if least == NO_VAL and nodes != NO_VAL and "exclusive" not in options:
        least = min(nodes, tasks) if tasks != NO_VAL else nodes
        if "nodelist" in options:
            least = min(least, len(options["nodelist"]))
        least = max(1, least - len(options.get("exclude", ())))
        least = max(1, min(least, nodes - first))
        most = least
    if "nodes" in options and "ntasks" not in options and not own:
        tasks = NO_VAL
    if tasks == NO_VAL and NO_VAL not in (per_node, least):
        tasks = per_node * least
    if NO_VAL not in (per_node, tasks, least) and not fits_per_node(call, tasks, least, per_node):
        per_node = NO_VAL
    return _Shape(tasks=tasks, least=least, most=most, per_node=per_node)


def fits_per_node(call: CommandCall, tasks: int, nodes: int, per_node: int) -> bool:
    """Return whether srun heeds --ntasks-per-node; where it does not, it warns as Slurm's does."""
    if not nodes or per_node == tasks // nodes:
        return True
    if tasks > per_node:
        call.err(
            f"srun: Warning: can't honor --ntasks-per-node set to {per_node} which doesn't match "
            f"the requested tasks {tasks} with the number of requested nodes {nodes}. Ignoring "
            "--ntasks-per-node."
        )
    return False


def _or(value: int, otherwise: int) -> int:
    """Return a number, or another where it was left open."""
    return otherwise if value == NO_VAL else value
