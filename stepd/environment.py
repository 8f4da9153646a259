"""The SLURM_ variables that jobs, steps, tasks and their scripts start with."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from simctl.wire.errno import SlurmError
from simctl.wire.ids import NO_VAL
from simctl.wire.layout import Distribution, StepLayout, lay_out
from simctl.wire.records import JobDesc

SCRIPT_CONTEXTS: Final[Mapping[str, str]] = {
    "prolog": "prolog_slurmd",
    "epilog": "epilog_slurmd",
    "prolog_slurmctld": "prolog_slurmctld",
    "epilog_slurmctld": "epilog_slurmctld",
    "task_prolog": "prolog_task",
    "task_epilog": "epilog_task",
    "srun_prolog": "prolog_srun",
    "srun_epilog": "epilog_srun",
}
"""The name of each script's event, and what the script finds in SLURM_SCRIPT_CONTEXT."""

LUA_FUNCTIONS: Final = (
    *("pools", "job_process", "setup", "data_in", "test_data_in", "real_size", "paths", "pre_run"),
    *("post_run", "data_out", "test_data_out", "job_teardown", "get_status"),
)
"""The functions of a burst_buffer.lua, without their prefix ``slurm_bb_``."""

BURST_BUFFER_SCRIPTS: Final = (
    "dw_job_process",
    "dw_pools",
    "dw_show_instances",
    "dw_show_sessions",
    "dw_show_configurations",
    "dw_create_persistent",
    "dw_setup",
    "dw_data_in",
    "dw_real_size",
    "dw_paths",
    "dw_pre_run",
    "dw_post_run",
    "dw_data_out",
    "dw_teardown",
    "get_sys",
    "get_job",
    "start_stage_in",
    "stop_stage_in",
    "start_stage_out",
    "stop_stage_out",
    *(f"slurm_bb_{name}" for name in LUA_FUNCTIONS),
    "shell",
)
"""The events of what the bundled burst buffer plugins run; none has a context."""


def repeat_counts(counts: Sequence[int]) -> str:
    """Return ``2(x3),1``: equal neighbours are counted, as Slurm prints lists per node."""
    runs: list[list[int]] = []
    for count in counts:
        if runs and runs[-1][0] == count:
            runs[-1][1] += 1
        else:
            runs.append([count, 1])
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in runs)


def job_environment(
    *,
    job_id: int,
    job_name: str,
    user: str,
    uid: int,
    gid: int,
    account: str,
    partition: str,
    node_list: str,
    num_nodes: int,
    num_tasks: int,
    cpus_per_node: Sequence[int],
    work_dir: str,
    cluster: str,
    restart_cnt: int,
) -> dict[str, str]:
    """Return what every process of a job finds in its environment."""
    env = {
        "SLURM_CLUSTER_NAME": cluster,
        "SLURM_JOB_ID": str(job_id),
        "SLURM_JOBID": str(job_id),
        "SLURM_JOB_NAME": job_name,
        "SLURM_JOB_USER": user,
        "SLURM_JOB_UID": str(uid),
        "SLURM_JOB_GID": str(gid),
        "SLURM_JOB_PARTITION": partition,
        "SLURM_JOB_NODELIST": node_list,
        "SLURM_NODELIST": node_list,
        "SLURM_JOB_NUM_NODES": str(num_nodes),
        "SLURM_NNODES": str(num_nodes),
        "SLURM_JOB_CPUS_PER_NODE": repeat_counts(cpus_per_node),
        "SLURM_SUBMIT_DIR": work_dir,
        "SLURM_SUBMIT_HOST": "login",
    }
    if num_tasks:
        env["SLURM_NTASKS"] = env["SLURM_NPROCS"] = str(num_tasks)
    if account:
        env["SLURM_JOB_ACCOUNT"] = account
    if restart_cnt:
        env["SLURM_RESTART_COUNT"] = str(restart_cnt)
    return env


def shape_environment(
    desc: JobDesc, nodes: Sequence[str], cpus_per_node: Sequence[int]
) -> dict[str, str]:
    """Return what tells the sruns of a job how tasks were asked to lie on its nodes."""
    env = {"SLURM_TASKS_PER_NODE": _tasks_per_node(desc, nodes, cpus_per_node)}
    if desc.ntasks_per_node != NO_VAL:
        env["SLURM_NTASKS_PER_NODE"] = str(desc.ntasks_per_node)
    if desc.overcommit:
        env["SLURM_OVERCOMMIT"] = "1"
    if desc.cpus_per_task != NO_VAL:
        env["SLURM_CPUS_PER_TASK"] = str(desc.cpus_per_task)
    env |= _distribution(desc.distribution, desc.plane_size)
    if desc.distribution is Distribution.ARBITRARY and desc.nodes:
        env["SLURM_ARBITRARY_NODELIST"] = ",".join(desc.nodes)
    return env


def _distribution(how: Distribution, plane_size: int) -> dict[str, str]:
    """Return what tells how tasks were asked to be dealt to nodes; nothing if they were not."""
    if how is Distribution.UNKNOWN:
        return {}
    env = {"SLURM_DISTRIBUTION": how.name.lower()}
    return env | {"SLURM_DIST_PLANESIZE": str(plane_size)} if how is Distribution.PLANE else env


def batch_environment(
    *,
    node: str,
    cpus: int,
    memory_per_node_mb: int,
    memory_per_cpu_mb: int,
    gpus: Sequence[int],
    qos: str,
    reservation: str,
    working_cluster: str,
) -> dict[str, str]:
    """Return what a batch script finds in its environment beside what its job does.

    *cpus* and *gpus* are those of the job on *node*, where the script runs.
    """
    env = {
        "ENVIRONMENT": "BATCH",
        **node_environment(node, (0,)),
        "HOSTNAME": node,
        "SLURM_CPUS_ON_NODE": str(cpus),
        "SLURM_NODE_ALIASES": "(null)",
        "SLURM_WORKING_CLUSTER": working_cluster,
        "TMPDIR": "/tmp",
    }
    if qos:
        env["SLURM_JOB_QOS"] = qos
    if memory_per_cpu_mb:
        env["SLURM_MEM_PER_CPU"] = str(memory_per_cpu_mb)
    elif memory_per_node_mb:
        env["SLURM_MEM_PER_NODE"] = str(memory_per_node_mb)
    if reservation:
        env["SLURM_JOB_RESERVATION"] = reservation
    if gpus:
        env["SLURM_JOB_GPUS"] = ",".join(str(gpu) for gpu in gpus)
        env["SLURM_GPUS_ON_NODE"] = str(len(gpus))
    return env


def node_environment(node: str, ranks: Sequence[int]) -> dict[str, str]:
    """Return what tells the tasks of a step where they run; *ranks* are those on the node."""
    return {
        "SLURMD_NODENAME": node,
        "SLURM_CONF": CONF_FILE,
        "SLURM_GTIDS": ",".join(str(rank) for rank in ranks),
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_TOPOLOGY_ADDR": node,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
    }


CONF_FILE: Final = "/etc/slurm/slurm.conf"
"""Where every host of a simulated cluster has its slurm.conf."""

_PROTOCOL_VERSION: Final = 9728
_SELECT_PLUGINS: Final = {"select/cons_res": 101, "select/linear": 102, "select/cons_tres": 109}


def working_cluster(name: str, host: str, select_type: str) -> str:
    """Return how a job is told of its cluster: name, controller, port, protocol, selection."""
    plugin = _SELECT_PLUGINS.get(select_type, 0)
    return f"{name}:{host}:{SLURMCTLD_PORT}:{_PROTOCOL_VERSION}:{plugin}"


SLURMCTLD_PORT: Final = 6817


def _tasks_per_node(desc: JobDesc, nodes: Sequence[str], cpus_per_node: Sequence[int]) -> str:
    """Return how many tasks each node would have, as many as there are cpus if none was asked."""
    need = 1 if desc.cpus_per_task == NO_VAL else desc.cpus_per_task
    tasks = desc.num_tasks
    if tasks == NO_VAL:
        tasks = max(1, sum(cpus // need for cpus in cpus_per_node))
    arbitrary = desc.distribution is Distribution.ARBITRARY
    if len(nodes) == 1:
        return str(tasks)
    if tasks == len(nodes) and not arbitrary:
        return f"1(x{tasks})"
    try:
        layout = lay_out(
            nodes=desc.nodes if arbitrary else nodes,
            cpus_per_node=cpus_per_node,
            num_tasks=tasks,
            cpus_per_task=need,
            distribution=desc.distribution,
            plane_size=desc.plane_size,
            ntasks_per_node=0 if desc.ntasks_per_node == NO_VAL else desc.ntasks_per_node,
        )
    except SlurmError:
        # More or fewer tasks than nodes named for them: the job's sruns will be told.
        return repeat_counts([1] * len(nodes))
    return repeat_counts(layout.tasks)


def step_environment(
    layout: StepLayout, *, job_id: int, step_id: int, node_list: str
) -> dict[str, str]:
    """Return what srun adds for the tasks of a step."""
    return {
        "SLURM_STEP_ID": str(step_id),
        "SLURM_STEPID": str(step_id),
        "SLURM_STEP_NODELIST": node_list,
        "SLURM_STEP_NUM_NODES": str(len(layout.nodes)),
        "SLURM_STEP_NUM_TASKS": str(layout.num_tasks),
        "SLURM_STEP_TASKS_PER_NODE": repeat_counts(layout.tasks),
        "SLURM_NTASKS": str(layout.num_tasks),
        "SLURM_NPROCS": str(layout.num_tasks),
        "SLURM_NNODES": str(len(layout.nodes)),
        "SLURM_TASKS_PER_NODE": repeat_counts(layout.tasks),
        "SLURM_JOB_ID": str(job_id),
        "SLURM_JOBID": str(job_id),
    }


def srun_environment(pid: int, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what tells the tasks of a step of their srun, and what it was asked for."""
    port = str(_FIRST_PORT + pid % _PORTS)
    env = {
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
        "SLURM_SRUN_COMM_HOST": "127.0.0.1",
        "SLURM_SRUN_COMM_PORT": port,
        "SLURM_STEP_LAUNCHER_PORT": port,
        "SLURM_UMASK": "0022",
    }
    env |= _distribution(*options.get("distribution", (Distribution.UNKNOWN, 0)))
    if "overcommit" in options:
        env["SLURM_OVERCOMMIT"] = "1"
    if "cpus-per-task" in options:
        env["SLURM_CPUS_PER_TASK"] = str(options["cpus-per-task"])
    if "ntasks-per-node" in options:
        env["SLURM_NTASKS_PER_NODE"] = str(options["ntasks-per-node"])
    return env


_FIRST_PORT: Final = 32768
_PORTS: Final = 28232
"""Where Linux takes a port for a process that needs any."""


def task_environment(rank: int, procid: int, pid: int, nodeid: int) -> dict[str, str]:
    """Return what tells a task who it is."""
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(procid),
        "SLURM_NODEID": str(nodeid),
        "SLURM_TASK_PID": str(pid),
    }


def edit_environment(text: str, env: dict[str, str], say: Callable[[str], None]) -> None:
    """Do what a task prolog has written: ``export N=V``, ``unset N``, and ``print TEXT``."""
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        rest = rest.lstrip()
        name, equals, value = rest.partition("=")
        if word == "export" and equals:
            env[name.strip()] = value
        elif word == "unset":
            env.pop(rest.strip(), None)
        elif word == "print":
            say(rest + "\n")


def checkpoint_environment(ckpt_dir: str) -> dict[str, str]:
    """Return where images of a step are to go, as its tasks are told; nothing if nowhere."""
    return {"SLURM_CHECKPOINT_IMAGE_DIR": ckpt_dir} if ckpt_dir else {}
