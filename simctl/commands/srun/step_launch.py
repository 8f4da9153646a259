"""What srun tells the nodes of its step: the program, its environment, where its tasks run."""

from collections.abc import Mapping
from typing import Any

import msgspec

from simctl.commands.srun.multi_prog import MultiProgError, programs
from simctl.commands.srun.step_input import step_inputs
from simctl.commands.submission.describe import qos_environment, restart_dir, told_dir
from simctl.site import CommandCall
from simctl.stepd.environment import (
    job_environment,
    srun_environment,
    step_environment,
    working_cluster,
)
from simctl.wire.credentials import JobCredential
from simctl.wire.hostlist import compress, expand
from simctl.wire.layout import StepLayout
from simctl.wire.messages import ResponseResourceAllocation, StepLaunch


def step_launch(
    call: CommandCall,
    options: Mapping[str, Any],
    words: list[str],
    *,
    job_id: int,
    step_id: int,
    restart_cnt: int,
    layout: StepLayout,
    granted: ResponseResourceAllocation | None,
    credential: JobCredential | None,
) -> StepLaunch:
    """Return what every node of a step is told alike; *granted* is srun's own allocation, if any.

    Raises:
        MultiProgError: The file that says what each task runs is not there, or wrong.
        InputError: The file that tasks are to read cannot be read.
    """
    node_list = compress(layout.nodes)
    export = options.get("export")
    env = dict(call.env) if export is None else export.of(call.env)
    if granted is not None:
        env |= _own_job(call, options, words, layout, granted)
    env |= step_environment(layout, job_id=job_id, step_id=step_id, node_list=node_list)
    env |= srun_environment(call.process.pid, options)
    site = call.site
    launch = StepLaunch(
        job_id=job_id,
        step_id=step_id,
        uid=call.process.uid,
        gid=call.user.gid,
        user=call.user.name,
        restart_cnt=restart_cnt,
        job_name=call.env.get("SLURM_JOB_NAME", words[0]),
        layout=layout,
        node_list=node_list,
        argv=tuple(words),
        env=env,
        work_dir=site.disk.resolve(options.get("chdir", call.work_dir), call.work_dir),
        tree_width=site.conf.tree_width,
        credential=credential,
        task_prolog=options.get("task-prolog", ""),
        task_epilog=options.get("task-epilog", ""),
        cpus_on_nodes=_cpus_on_nodes(layout, granted),
        searches=export is None or export.everything or "PATH" in env,
        programs=_programs(call, options, words[0], layout.num_tasks),
        restart_dir=restart_dir(call, options),
        ckpt_dir=told_dir(call, options),
    )
    return msgspec.structs.replace(launch, inputs=step_inputs(call, options, launch))


def _cpus_on_nodes(
    layout: StepLayout, granted: ResponseResourceAllocation | None
) -> tuple[int, ...]:
    """Return the cpus that srun's own job has on the nodes of its step."""
    if granted is None:
        return ()
    cpus = dict(zip(expand(granted.node_list), granted.cpus_per_node, strict=False))
    return tuple(cpus.get(node, 0) for node in layout.nodes)


def _own_job(
    call: CommandCall,
    options: Mapping[str, Any],
    words: list[str],
    layout: StepLayout,
    granted: ResponseResourceAllocation,
) -> dict[str, str]:
    """Return the variables of a job that srun has made itself."""
    user = call.user
    conf = call.site.conf
    around: dict[str, str] = qos_environment(call.site.conf, options) | {
        "SLURM_WORKING_CLUSTER": working_cluster(conf.cluster_name, "127.0.0.1", conf.select_type),
    }
    return (
        around
        | granted.environment
        | job_environment(
            job_id=granted.job_id,
            job_name=options.get("job-name", words[0].rsplit("/", 1)[-1]),
            user=user.name,
            uid=user.uid,
            gid=user.gid,
            account=user.account,
            partition=granted.partition,
            node_list=compress(layout.nodes),
            num_nodes=len(layout.nodes),
            num_tasks=layout.num_tasks,
            cpus_per_node=granted.cpus_per_node,
            work_dir=call.work_dir,
            cluster=call.site.conf.cluster_name,
            restart_cnt=0,
        )
    )


def _programs(
    call: CommandCall, options: Mapping[str, Any], name: str, num_tasks: int
) -> tuple[tuple[str, ...], ...]:
    """Return what each task runs; nothing where all run the same."""
    if "multi-prog" not in options:
        return ()
    text = call.files.find_text(name)
    if text is None:
        raise MultiProgError(f"Could not open multi_prog config file {name}")
    return programs(text, name, num_tasks)
