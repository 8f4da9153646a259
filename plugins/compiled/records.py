"""What simctl puts into Slurm's own records, by the names of their fields.

A record in C has many more fields than these; the others are zero. A key with several names is one
field that versions of Slurm call differently.
"""

from typing import Any, Final

from simctl.kernel.procs import CALLING
from simctl.plugin import JobRecord, StepdJob, StepRecord, slurmctld, stepd
from simctl.plugins.compiled.layouts import Address
from simctl.wire.ids import NO_VAL16
from simctl.wire.states import JobBase, JobFlag

STEP: Final = ("step_record", "step_record_t")
"""The names of slurmctld's record of a step."""

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
    about = CALLING.get().about
    besides = about.besides if about is not None else {}
    return {
        "node_list": nodelist,
        "task_cnt": nprocs,
        "plane_size": besides.get("plane", NO_VAL16),
        **{key: besides.get(key) for key in ("node_cnt", "task_dist", "tasks", "tids")},
    }


def of_stepd(switch_job: Any = None) -> dict[str, Any]:
    """Return what goes into slurmstepd's record of its step, in the process that asks."""
    process = CALLING.get()
    services = process.stepd
    job: StepdJob = services.job
    tasks = stepd.tasks()
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
        "pgid": tasks[0].pid if tasks else 0,
        "cwd": stepd.cwd,
        "switch_job": _address(switch_job),
        ENVIRONMENT: [f"{key}={value}" for key, value in stepd.environment.items()],
        "task": [
            {"id": each.procid, "gtid": each.gtid, "pid": each.pid, "exited": int(not each.alive)}
            for each in tasks
        ],
    }


def _address(kept: Any) -> Address | None:
    """Return where an object of the plugin's own lies."""
    return None if kept is None else Address(kept.address)


def _state_number(state: str) -> int:
    """Return the number of a job's state, with its flags."""
    numbers: dict[str, int] = {**JobBase.__members__, **JobFlag.__members__}
    return sum(numbers.get(each, 0) for each in state.split("|"))
