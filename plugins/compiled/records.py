"""What simctl puts into Slurm's own records, by the names of their fields.

A record in C has many more fields than these; the others are zero. A key with several names is one
field that versions of Slurm call differently.
"""

from typing import Any, Final

from simctl.kernel.procs import CALLING
from simctl.plugin import JobRecord, StepdJob, StepdTask, StepRecord, hostlist, slurmctld, stepd
from simctl.plugins.compiled.layouts import Address
from simctl.wire.ids import NO_VAL16
from simctl.wire.states import JobBase, JobFlag

STEP: Final = ("step_record", "step_record_t")
"""The names of slurmctld's record of a step."""

JOB: Final = ("job_record", "job_record_t")
"""The names of slurmctld's record of a job."""

STEPD: Final = ("stepd_step_rec_t", "stepd_step_rec", "slurmd_job_t", "slurmd_job")
"""The names of slurmstepd's record of its step."""

LAYOUT: Final = ("slurm_step_layout_t", "slurm_step_layout")
"""The names of a step's layout."""

ENVIRONMENT: Final = "env"
"""The field of it whose changes simctl takes in."""


def of_step(step: StepRecord) -> dict[str, Any]:
    """Return what goes into slurmctld's record of a step."""
    job = slurmctld.find_job(step.job_id)
    return {
        "step_id": step.step_id,
        "name": step.name,
        "start_time": step.start_time,
        "ckpt_dir": step.ckpt_dir,
        "ckpt_interval": step.ckpt_interval,
        "check_job": _address(step.check_job),
        "job_ptr": None if job is None else of_job(job),
        "step_layout": {
            "node_list": step.nodes,
            "task_cnt": step.num_tasks,
        },
    }


def of_job(job: JobRecord) -> dict[str, Any]:
    """Return what goes into slurmctld's record of a job."""
    return {
        "job_id": job.job_id,
        "user_id": job.user_id,
        "group_id": job.group_id,
        "name": job.name,
        "account": job.account,
        "partition": job.partition,
        "job_state": _state_number(job.job_state),
        "priority": job.priority,
        "nodes": job.nodes,
        "time_limit": job.time_limit_min,
        "start_time": job.start_time,
        "end_time": job.end_time,
        "restart_cnt": job.restart_cnt,
        "batch_flag": int(job.batch),
        "array_job_id": job.array_job_id,
        "array_task_id": job.array_task_id,
        "exit_code": job.exit_code,
        "ckpt_interval": job.ckpt_interval,
        "check_job": _address(job.check_job),
        "details": {
            "submit_time": job.submit_time,
            "begin_time": job.begin_time,
            "min_nodes": job.min_nodes,
            "num_tasks": job.num_tasks,
            "work_dir": job.work_dir,
            "ckpt_dir": job.ckpt_dir,
            "restart_dir": job.restart_dir,
        },
    }


def of_layout(nodelist: str, nprocs: int, cyclic_alloc: int) -> dict[str, Any]:
    """Return what goes into the layout of a step whose credential is built in this process."""
    process = CALLING.get(None)
    about = None if process is None else process.about
    besides = about.besides if about is not None else {}
    nodes = len(hostlist(nodelist))
    ranks = [list(each) for each in besides.get("tids") or _dealt(nodes, nprocs, cyclic_alloc)]
    return {
        "node_list": nodelist,
        "node_cnt": nodes,
        "task_cnt": nprocs,
        "task_dist": besides.get("task_dist", _CYCLIC if cyclic_alloc else _BLOCK),
        "plane_size": besides.get("plane", NO_VAL16),
        "tasks": [len(each) for each in ranks],
        "tids": ranks,
    }


_CYCLIC: Final = 1
_BLOCK: Final = 2


def _dealt(nodes: int, tasks: int, cyclic: int) -> list[range]:
    """Return the ranks of each node's tasks by default: round the nodes, or as they come."""
    if cyclic:
        return [range(node, tasks, nodes) for node in range(nodes)]
    ends = [tasks * node // nodes for node in range(nodes + 1)]
    return [range(ends[node], ends[node + 1]) for node in range(nodes)]


def of_stepd() -> dict[str, Any]:
    """Return what goes into slurmstepd's record of its step, in the process that asks."""
    process = CALLING.get()
    services = process.stepd
    job: StepdJob = services.job
    started = {each.gtid: each for each in stepd.tasks()}
    return {
        "jobid": job.job_id,
        "stepid": job.step_id,
        "uid": job.uid,
        "gid": stepd.gid,
        "nnodes": services.nnodes,
        "nodeid": job.nodeid,
        "ntasks nprocs": job.ntasks,
        "node_tasks": job.node_tasks,
        "batch": int(job.batch),
        "jmgr_pid": process.pid if process.role == "manager" else process.ppid,
        "pgid": next((each.pid for each in started.values()), 0),
        "cwd": stepd.cwd,
        "switch_job": _address(getattr(process.memory.credential, "value", None)),
        ENVIRONMENT: [f"{key}={value}" for key, value in stepd.environment.items()],
        "task": [
            {"id": place, "gtid": rank, **_of_process(started.get(rank))}
            for place, rank in enumerate(services.tids)
        ],
    }


def _of_process(task: StepdTask | None) -> dict[str, int]:
    """Return what is known of a task that has been started."""
    return {} if task is None else {"pid": task.pid, "exited": int(not task.alive)}


def _address(kept: Any) -> Address | None:
    """Return where an object of a plugin's lies; None for none, and for one of Python's."""
    address = getattr(kept, "address", None)
    return None if address is None else Address(address)


def _state_number(state: str) -> int:
    """Return the number of a job's state, with its flags."""
    numbers: dict[str, int] = {**JobBase.__members__, **JobFlag.__members__}
    return sum(numbers.get(each, 0) for each in state.split("|"))
