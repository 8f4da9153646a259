"""What slurmd hands to the step daemons it forks: plain functions from a launch message."""

from collections.abc import Sequence

from simctl.plugin import StepdJob
from simctl.site import Site, User
from simctl.stepd.environment import (
    batch_environment,
    checkpoint_environment,
    job_environment,
    node_environment,
    shape_environment,
    working_cluster,
)
from simctl.stepd.tree import branches
from simctl.stepd.work import StepWork
from simctl.wire.buf import Packed
from simctl.wire.filenames import fill_in
from simctl.wire.ids import NO_VAL, SLURM_BATCH_SCRIPT
from simctl.wire.messages import RequestBatchJobLaunch, RequestLaunchTasks


def step_work(message: RequestLaunchTasks, switch_job: Packed) -> StepWork:
    """Return the work of one node of a srun step."""
    launch = message.launch
    layout = launch.layout
    nodeid = message.nodeid
    tids = layout.tids[nodeid]
    branch = branches(len(layout.nodes), launch.tree_width)[nodeid]
    return StepWork(
        job=StepdJob(
            job_id=message.job_id,
            step_id=message.step_id,
            uid=launch.uid,
            nodeid=nodeid,
            ntasks=layout.num_tasks,
            node_tasks=len(tids),
            batch=False,
        ),
        user=User(name=launch.user, uid=launch.uid, gid=launch.gid),
        argv=launch.argv,
        env={
            **launch.env,
            **node_environment(layout.nodes[nodeid], tids),
            **_cpus(launch.cpus_on_nodes[nodeid : nodeid + 1]),
            **checkpoint_environment(launch.ckpt_dir),
        },
        work_dir=launch.work_dir,
        tids=tids,
        nnodes=len(layout.nodes),
        programs=tuple(launch.programs[rank] for rank in tids) if launch.programs else (),
        inputs=tuple(launch.inputs[rank] for rank in tids)
        if len(launch.inputs) > 1
        else launch.inputs,
        searches=launch.searches,
        switch_job=switch_job,
        task_prolog=launch.task_prolog,
        task_epilog=launch.task_epilog,
        branch=branch,
        parent=f"slurmd@{layout.nodes[branch.parent]}" if branch.parent >= 0 else "",
        restart_dir=launch.restart_dir,
        ckpt_dir=launch.ckpt_dir,
    )


def _cpus(counts: Sequence[int]) -> dict[str, str]:
    return {"SLURM_CPUS_ON_NODE": str(counts[0])} if counts else {}


def batch_work(message: RequestBatchJobLaunch, site: Site) -> StepWork:
    """Return the work of a batch script, and put the script where slurmd spools it."""
    desc = message.job_desc
    job_id = message.job_id

    def named(pattern: str) -> str:
        return fill_in(
            pattern,
            job_id=job_id,
            user=desc.user,
            job_name=desc.name,
            node=message.nodes[0],
            array_job_id=message.array_job_id,
            array_task_id=message.array_task_id,
        )

    spooled = f"{site.conf.slurmd_spool_dir}/job{job_id:05d}/slurm_script"
    site.disk.write(spooled, desc.script, host=message.nodes[0])
    usual = "slurm-%A_%a.out" if message.array_job_id else "slurm-%j.out"
    std_out = named(desc.std_out or usual)
    std_err = named(desc.std_err) if desc.std_err else std_out
    return StepWork(
        job=StepdJob(
            job_id=job_id,
            step_id=SLURM_BATCH_SCRIPT,
            uid=desc.uid,
            nodeid=0,
            ntasks=1,
            node_tasks=1,
            batch=True,
        ),
        user=User(name=desc.user, uid=desc.uid, gid=desc.gid),
        argv=(spooled, *desc.argv[1:]),
        env=_batch_environment(message, site),
        work_dir=desc.work_dir,
        tids=(0,),
        nnodes=1,
        std_in=named(desc.std_in),
        std_out=std_out,
        std_err=std_err,
        appends=desc.appends,
        restart_cnt=message.restart_cnt,
        restart_dir=message.restart_dir,
        ckpt_dir=message.ckpt_dir,
    )


def _batch_environment(message: RequestBatchJobLaunch, site: Site) -> dict[str, str]:
    """Return the environment of a batch script."""
    desc = message.job_desc
    return {
        **desc.environment,
        **job_environment(
            job_id=message.job_id,
            job_name=desc.name,
            user=desc.user,
            uid=desc.uid,
            gid=desc.gid,
            account=desc.account,
            partition=desc.partition,
            node_list=message.node_list,
            num_nodes=len(message.nodes),
            num_tasks=0 if desc.num_tasks == NO_VAL else desc.num_tasks,
            cpus_per_node=message.cpus_per_node,
            work_dir=desc.submit_dir,
            cluster=site.conf.cluster_name,
            restart_cnt=message.restarts,
        ),
        **shape_environment(desc, message.nodes, message.cpus_per_node),
        "SLURM_SUBMIT_HOST": desc.submit_host,
        **batch_environment(
            node=message.nodes[0],
            cpus=message.cpus_per_node[0],
            memory_per_node_mb=message.memory_per_node_mb,
            memory_per_cpu_mb=message.memory_per_cpu_mb,
            gpus=message.gpus,
            qos=desc.qos,
            reservation=desc.reservation,
            working_cluster=working_cluster(
                site.conf.cluster_name, "slurmctld", site.conf.select_type
            ),
        ),
        **checkpoint_environment(message.ckpt_dir),
    }
