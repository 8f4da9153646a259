"""From options to a job description."""

from collections.abc import Mapping
from typing import Any

from simctl.commands.options import INVALID_GRES, UsageError
from simctl.plugins.site import CommandCall
from simctl.wire.errno import errno_name, slurm_strerror
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.layout import Distribution
from simctl.wire.records import JobDesc
from simctl.wire.times import parse_moment


def describe(call: CommandCall, options: Mapping[str, Any], *, name: str, **more: Any) -> JobDesc:
    """Return the job that the options of sbatch or srun ask for.

    A node count without tasks or the other way round is filled in by the controller; tasks fewer
    than nodes lower the number of nodes, with a warning, as in Slurm.

    Raises:
        UsageError: They ask for a generic resource that slurm.conf does not know.
    """
    known = call.site.conf.gres_types
    if any(name.partition(":")[0] not in known for name in options.get("gres", {})):
        raise UsageError(1, f"{call.argv[0]}: error: {INVALID_GRES}")
    least, most = options.get("nodes", (NO_VAL, NO_VAL))
    tasks = options.get("ntasks", NO_VAL)
    if tasks != NO_VAL and least != NO_VAL and tasks < least:
        call.err(
            f"{call.argv[0]}: Warning: can't run {tasks} processes on {least} nodes, "
            f"setting nnodes to {tasks}"
        )
        least = most = tasks
    warned = options.get("signal")
    until = options.get("deadline", "")
    now_s = call.site.start_time_s + call.site.kernel.now_us // SECOND
    how, plane = options.get("distribution", (Distribution.UNKNOWN, 0))
    if how is Distribution.ARBITRARY and tasks == NO_VAL:
        tasks = len(options.get("nodelist", ())) or NO_VAL
    return JobDesc(
        name=options.get("job-name", name),
        uid=call.user.uid,
        gid=call.user.gid,
        user=call.user.name,
        account=options.get("account", call.user.account),
        partition=options.get("partition", ""),
        min_nodes=least,
        max_nodes=most,
        num_tasks=tasks,
        cpus_per_task=options.get("cpus-per-task", NO_VAL),
        ntasks_per_node=options.get("ntasks-per-node", NO_VAL),
        time_limit_min=options.get("time", NO_VAL),
        nodes=options.get("nodelist", ()),
        excluded=options.get("exclude", ()),
        distribution=how,
        plane_size=plane,
        exclusive="exclusive" in options,
        min_cpus_per_node=options.get("mincpus", NO_VAL),
        memory_per_node_mb=options.get("mem", NO_VAL),
        memory_per_cpu_mb=options.get("mem-per-cpu", NO_VAL),
        gres=options.get("gres", {}),
        reservation=options.get("reservation", ""),
        no_kill="no-kill" in options,
        warn_signal=warned.signal if warned is not None else 0,
        warn_time_s=warned.time_s if warned is not None else 0,
        warn_batch=warned is not None and warned.batch,
        deadline_s=parse_moment(until, now_s) if until else 0,
        submit_line=" ".join(call.argv),
        work_dir=call.site.disk.resolve(options.get("chdir", call.work_dir), call.work_dir),
        **more,
    )


def refuse(call: CommandCall, what: str, error_code: int, text: str = "") -> int:
    """Print why the controller refused; return the exit status and note the errno."""
    call.errno = errno_name(error_code)
    command = call.argv[0]
    if text:
        call.err(f"{command}: error: {text}")
    call.err(f"{command}: error: {what}: {slurm_strerror(error_code)}")
    return 1


UNREACHABLE = "Unable to contact slurm controller (connect failure)"

__all__ = ["INFINITE", "UNREACHABLE", "describe", "refuse"]
