"""The last argument of most functions from Slurm 23.02 on: what slurmctld knows of the job."""

from collections.abc import Mapping
from typing import Any, Final

from simctl.plugin import JobRecord, lua_settings, slurmctld

_SHOWN: Final = (
    *(("JobId", "job_id"), ("JobName", "name"), ("UserId", "user_id"), ("GroupId", "group_id")),
    *(("Priority", "priority"), ("Account", "account"), ("QOS", "qos"), ("Partition", "partition")),
    *(("NumNodes", "num_nodes"), ("NumCPUs", "num_cpus"), ("NumTasks", "num_tasks")),
    *(("NodeList", "nodes"), ("WorkDir", "work_dir"), ("StdErr", "std_err"), ("StdIn", "std_in")),
    *(("StdOut", "std_out"), ("BurstBuffer", "burst_buffer")),
)


def job_info(job: JobRecord) -> Mapping[str, Any]:
    """Return a copy of a job's record, by Slurm's names; it does not change during a call."""
    found = dict(slurmctld.job_fields(job.job_id))
    # Records of job_submit.lua alone have these.
    for name in ("argv", "script", "unlimited", "gres"):
        found.pop(name, None)
    return {**found, "cluster": lua_settings().cluster}


def job_text(fields: Mapping[str, Any]) -> str:
    """Return a job as job_info_to_string does: as scontrol shows it, less whole."""
    return "\n   ".join(f"{key}={fields.get(name, '(null)')}" for key, name in _SHOWN)
