"""From options to a job description."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from simctl.commands.arguments.command_line import acting_user
from simctl.commands.arguments.options import BAD_OPTION, INVALID_GRES, UsageError
from simctl.commands.asking.ask import ask
from simctl.site import CommandCall
from simctl.wire.conf.slurm_conf import SlurmConf, can_checkpoint
from simctl.wire.errno import errno_name, slurm_strerror
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.layout import Distribution
from simctl.wire.messages import RequestJobWillRun, ResponseJobWillRun
from simctl.wire.records import JobDesc
from simctl.wire.times import parse_moment


def qos_environment(conf: SlurmConf, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the variable with a job's QOS: what is asked for, else the usual one if there is."""
    qos = options.get("qos", "normal" if conf.accounts else "")
    return {"SLURM_JOB_QOS": qos} if qos else {}


def describe(call: CommandCall, options: Mapping[str, Any], *, name: str, **more: Any) -> JobDesc:
    """Return the job that the options of sbatch or srun ask for.

    A node count without tasks or the other way round is filled in by the controller; tasks fewer
    than nodes lower the number of nodes, with a warning, as in Slurm.

    Raises:
        UsageError: They ask for a generic resource that slurm.conf does not know.
    """
    user = acting_user(call, options)
    how, plane = options.get("distribution", (Distribution.UNKNOWN, 0))
    least, most, tasks = _size(call, options, how, batch=bool(more.get("script")))
    tres = _tres(call, options, least, most, tasks)
    deadline_s = _deadline_s(call, options, more.get("begin_s", 0))
    return JobDesc(
        name=options.get("job-name", name),
        uid=user.uid,
        gid=int(options.get("gid", user.gid)),
        user=user.name,
        account=options.get("account", user.account if call.site.conf.accounts else ""),
        partition=options.get("partition", ""),
        min_nodes=least,
        max_nodes=most,
        num_tasks=tasks,
        cpus_per_task=options.get("cpus-per-task", NO_VAL),
        ntasks_per_node=options.get("ntasks-per-node", NO_VAL),
        time_limit_min=options.get("time", NO_VAL),
        time_min_min=options.get("time-min", 0),
        nodes=options.get("nodelist", ()),
        excluded=options.get("exclude", ()),
        distribution=how,
        plane_size=plane,
        exclusive="exclusive" in options,
        oversubscribe="oversubscribe" in options,
        overcommit="overcommit" in options,
        min_cpus_per_node=options.get("mincpus", NO_VAL),
        memory_per_node_mb=options.get("mem", NO_VAL),
        memory_per_cpu_mb=options.get("mem-per-cpu", NO_VAL),
        **tres,
        features=options.get("constraint", ""),
        licenses=options.get("licenses", ""),
        comment=options.get("comment", ""),
        wckey=options.get("wckey", ""),
        qos=options.get("qos", "normal" if call.site.conf.accounts else ""),
        container=options.get("container", ""),
        tmp_disk_mb=options.get("tmp", 0),
        reservation=options.get("reservation", ""),
        no_kill="no-kill" in options,
        **_warning(options),
        deadline_s=deadline_s,
        submit_line=" ".join(call.argv),
        filled=tuple(name for name in ("account", "qos") if name not in options),
        ckpt_interval_min=options.get("checkpoint", 0),
        ckpt_dir=checkpoint_dir(call, options),
        restart_dir=restart_dir(call, options),
        work_dir=_resolved(call, options, "."),
        submit_dir=call.work_dir,
        submit_host=call.process.host.name,
        **more,
    )


def _warning(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return which signal the job gets before its end, and when."""
    warned = options.get("signal")
    if warned is None:
        return {}
    return {
        "warn_signal": warned.signal,
        "warn_time_s": warned.time_s,
        "warn_batch": warned.batch,
    }


def _size(
    call: CommandCall, options: Mapping[str, Any], how: Distribution, *, batch: bool
) -> tuple[int, int, int]:
    """Return the least and the most nodes, and the tasks; NO_VAL for what the controller fills."""
    least, most = options.get("nodes", (NO_VAL, NO_VAL))
    tasks = options.get("ntasks", NO_VAL)
    if tasks != NO_VAL and least != NO_VAL and tasks < least:
        if "quiet" not in options:
            call.err(
                f"{call.argv[0]}: Warning: can't run {tasks} processes on {least} nodes, "
                f"setting nnodes to {tasks}"
            )
        least = most = tasks
    if tasks == NO_VAL:
        tasks = _tasks_by_node(options, least, most, batch=batch)
    if "gpus-per-task" in options and "gpus" in options and tasks == NO_VAL:
        tasks = options["gpus"][1] // options["gpus-per-task"][1]
    if ("gpus" in options or "gpus-per-task" in options) and least == NO_VAL:
        least = most = 1
    if how is Distribution.ARBITRARY and tasks == NO_VAL:
        tasks = len(options.get("nodelist", ())) or NO_VAL
    return least, most, tasks


def _deadline_s(call: CommandCall, options: Mapping[str, Any], begin_s: int) -> int:
    """Return when the job has to be over, 0 for any time; it may not begin later."""
    until = options.get("deadline", "")
    if not until:
        return 0
    deadline_s = parse_moment(until, call.site.start_time_s + call.site.kernel.now_us // SECOND)
    if begin_s > deadline_s:
        told = "Incompatible begin and deadline time specification"
        raise UsageError(1, f"{call.argv[0]}: error: {told}")
    return deadline_s


def _tasks_by_node(options: Mapping[str, Any], least: int, most: int, *, batch: bool) -> int:
    """Return how many tasks ``--ntasks-per-node`` stands for, of each node that is asked for.

    sbatch leaves it open where the number of nodes is a range; salloc and srun count the least.
    """
    per_node = options.get("ntasks-per-node", NO_VAL)
    if per_node in (NO_VAL, 0) or (batch and least != most):
        return NO_VAL
    named = len(set(options.get("nodelist", ())))
    nodes = max(named, 1 if least == NO_VAL else least)
    return int(per_node) * nodes


def checkpoint_dir(call: CommandCall, options: Mapping[str, Any]) -> str:
    """Return where images are to go: where the options say, else JobCheckpointDir."""
    usual = call.site.conf.job_checkpoint_dir
    return _resolved(call, options, options.get("checkpoint-dir", usual))


def told_dir(call: CommandCall, options: Mapping[str, Any]) -> str:
    """Return what the tasks are told of that; nothing where no checkpoints can be made."""
    return checkpoint_dir(call, options) if can_checkpoint(call.site.conf) else ""


def restart_dir(call: CommandCall, options: Mapping[str, Any]) -> str:
    """Return where the images are that a step goes on from; nothing for a plain start."""
    return _resolved(call, options, options.get("restart-dir", ""))


def _resolved(call: CommandCall, options: Mapping[str, Any], path: str) -> str:
    """Return a path as the job sees it, from its own directory; nothing stays nothing."""
    resolve = call.site.disk.resolve
    return (
        resolve(path, resolve(options.get("chdir", call.work_dir), call.work_dir)) if path else ""
    )


def _tres(
    call: CommandCall, options: Mapping[str, Any], least: int, most: int, tasks: int
) -> dict[str, Any]:
    """Return the generic resources of each node, and the gpus as they were asked for."""
    asked = {"tres_per_job": options.get("gpus"), "tres_per_task": options.get("gpus-per-task")}
    texts = {name: f"{gpus[0]}:{gpus[1]}" for name, gpus in asked.items() if gpus is not None}
    node = [options["gres"].text] if "gres" in options else []
    if "gpus-per-node" in options:
        node.append("{}:{}".format(*options["gpus-per-node"]))
    texts["tres_per_node"] = ",".join(filter(None, node))
    return {"gres": _gres(call, _with_gpus(call, options, least, most, tasks)), **texts}


def _with_gpus(
    call: CommandCall, options: Mapping[str, Any], least: int, most: int, tasks: int
) -> Mapping[str, Any]:
    """Return the options with gpus in all, where gpus of each task are asked for."""
    if "gpus-per-task" not in options:
        return options
    if tasks == NO_VAL:
        told = (
            "--gpus-per-task or --tres-per-task used without either --gpus or -n/--ntasks is not "
            "allowed."
        )
        raise UsageError(1, f"{call.argv[0]}: fatal: {told}")
    kind, count = options["gpus-per-task"]
    return {**options, "nodes": (least, most), "gpus": (kind, count * tasks)}


def _gres(call: CommandCall, options: Mapping[str, Any]) -> dict[str, int]:
    """Return the generic resources of each node; gpus asked for in all are of its nodes alike."""
    asked = dict(options.get("gres", {}))
    if "gpus-per-node" in options:
        kind, count = options["gpus-per-node"]
        asked[kind] = count
    if "gpus" in options:
        nodes, most = options.get("nodes", (1, 1))
        kind, count = options["gpus"]
        each, rest = divmod(count, nodes)
        if rest or nodes != most:
            raise UsageError(
                BAD_OPTION,
                f"{call.argv[0]}: error: --gpus that nodes do not share alike is an option of "
                "Slurm's that simctl does not simulate yet",
            )
        asked[kind] = each
    known = call.site.conf.gres_types
    if any(name.partition(":")[0] not in known for name in asked):
        raise UsageError(1, f"{call.argv[0]}: error: {INVALID_GRES}")
    return {name: count for name, count in asked.items() if count}


async def test_only(call: CommandCall, job: JobDesc, what: str, options: Mapping[str, Any]) -> int:
    """Print when and where a job would start that is not submitted; return the exit status."""
    reply = await ask(call, RequestJobWillRun(job_desc=job))
    assert isinstance(reply, ResponseJobWillRun)
    command = call.argv[0]
    if reply.error_code:
        return refuse(call, what, reply.error_code, reply.text)
    if options.get("quiet"):
        return 0
    when = datetime.fromtimestamp(reply.start_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    call.err(
        f"{command}: Job {reply.job_id} to start at {when} using {reply.num_cpus} processors "
        f"on nodes {reply.node_list} in partition {reply.partition}"
    )
    return 0


def refuse(call: CommandCall, what: str, error_code: int, text: str = "") -> int:
    """Print why the controller refused; return the exit status and note the errno."""
    call.errno = errno_name(error_code)
    command = call.argv[0]
    for line in text.splitlines():
        call.err(f"{command}: error: {line}")
    call.err(f"{command}: error: {what}: {slurm_strerror(error_code)}")
    return 1


def tell_lines(call: CommandCall, text: str, options: Mapping[str, Any]) -> None:
    """Print what slurmctld's plugins have to say of a job that is taken in."""
    for line in text.splitlines() if "quiet" not in options else ():
        call.err(f"{call.argv[0]}: {line}")


UNREACHABLE = "Unable to contact slurm controller (connect failure)"

__all__ = ["INFINITE", "UNREACHABLE", "describe", "refuse", "tell_lines"]
