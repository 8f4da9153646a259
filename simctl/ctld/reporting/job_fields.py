"""A job by the names that Slurm's own records give its fields: what Lua scripts read of jobs."""

from typing import Any, Final

from simctl.ctld.controller import Controller
from simctl.ctld.reporting.info import describe_job
from simctl.ctld.state.records import JobRecord
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.info import JobInfo

_MEM_PER_CPU: Final = 1 << 63
_NICE_OFFSET: Final = 1 << 31
_NO_VAL16: Final = 0xFFFE
_TIMES: Final = {
    "accrue_time": "accrue_s",
    "deadline": "deadline_s",
    "eligible_time": "eligible_s",
    "end_time": "end_s",
    "last_sched_eval": "evaluated_s",
    "preempt_time": "preempt_s",
    "start_time": "start_s",
    "submit_time": "submit_s",
    "suspend_time": "suspend_s",
}
_SAME: Final = (
    *("admin_comment", "account", "batch_host", "burst_buffer", "burst_buffer_state", "comment"),
    *("container", "dependency", "exit_code", "features", "group_id", "job_id", "licenses"),
    *("max_nodes", "min_nodes", "name", "num_cpus", "num_nodes", "num_tasks", "partition"),
    *("priority", "qos", "restart_cnt", "std_err", "std_in", "std_out", "system_comment"),
    *("user_id", "wckey", "work_dir", "command", "cpus_per_task"),
)
_TEXTS: Final = frozenset(
    {
        *("admin_comment", "account", "batch_host", "burst_buffer", "burst_buffer_state"),
        *("comment", "container", "dependency", "features", "licenses", "name", "partition"),
        *("qos", "std_err", "std_in", "std_out", "system_comment", "wckey", "work_dir", "command"),
        *("exc_nodes", "req_nodes", "nodes", "resv_name", "state_desc", "tres_req_str"),
        *("tres_alloc_str", "tres_per_node", "sched_nodes", "alloc_node", "array_task_str"),
        "gres",
    }
)


def job_fields(ctld: Controller, job: JobRecord) -> dict[str, Any]:
    """Return the fields of a job: texts, numbers and truths; a text that is empty is left out."""
    info = describe_job(ctld, job)
    found: dict[str, Any] = {name: getattr(info, name) for name in _SAME}
    found |= {name: getattr(info, each) for name, each in _TIMES.items()}
    found |= _of_record(job, info)
    return {name: each for name, each in found.items() if each != "" or name not in _TEXTS}


def _of_record(job: JobRecord, info: JobInfo) -> dict[str, Any]:
    per_cpu = info.memory_per_cpu_mb
    desc = job.desc
    state = int(info.state.base) | int(info.state.flags)
    return {
        "alloc_node": info.submit_host,
        "alloc_sid": info.submit_sid,
        "array_job_id": info.array_job_id,
        "array_task_id": info.array_task_id,
        "array_task_str": info.array_tasks,
        "array_max_tasks": info.array_limit,
        "batch_flag": int(info.batch),
        "billable_tres": float(info.billing),
        "contiguous": 0,
        "core_spec": _NO_VAL16,
        "boards_per_node": 0,
        "cores_per_socket": _NO_VAL16,
        "sockets_per_node": _NO_VAL16,
        "sockets_per_board": 0,
        "threads_per_core": _NO_VAL16,
        "cpu_freq_min": NO_VAL,
        "cpu_freq_max": NO_VAL,
        "cpu_freq_gov": NO_VAL,
        "assoc_id": 0,
        "delay_boot": 0,
        "derived_ec": info.derived_exit_code,
        "exc_nodes": info.excluded_nodes,
        "req_nodes": info.required_nodes,
        "nodes": info.node_list,
        "sched_nodes": info.planned_nodes,
        "gres": ",".join(f"gres:{name}:{count}" for name, count in info.gres.items()),
        "gres_detail_cnt": 0,
        "het_job_id": 0,
        "het_job_offset": NO_VAL,
        "job_state": state,
        "mail_type": 0,
        "max_cpus": 0,
        "min_cpus": info.num_cpus,
        "min_mem_per_cpu": per_cpu or None,
        "min_mem_per_node": None if per_cpu else info.memory_per_node_mb,
        "nice": info.nice + _NICE_OFFSET,
        "ntasks_per_node": info.ntasks_per_node,
        "ntasks_per_board": 0,
        "ntasks_per_core": 0xFFFF,
        "ntasks_per_socket": 0xFFFF,
        "ntasks_per_tres": _NO_VAL16,
        "pn_min_cpus": info.min_cpus_per_node,
        "pn_min_memory": per_cpu | _MEM_PER_CPU if per_cpu else info.memory_per_node_mb,
        "pn_min_tmp_disk": desc.tmp_disk_mb,
        "preemptable_time": 0,
        "pre_sus_time": info.pre_suspend_s,
        "profile": 0,
        "reboot": 0,
        "req_switch": 0,
        "wait4switch": 0,
        "requeue": int(info.requeue),
        "resize_time": 0,
        "resv_name": info.reservation,
        "shared": 0 if info.exclusive else 1,
        "show_flags": 0,
        "site_factor": _NICE_OFFSET,
        "start_protocol_ver": 0,
        "state_desc": job.state_desc,
        "state_reason": 0,
        "time_limit": info.time_limit_min,
        "time_min": info.time_min_min or 0,
        "total_cpus": info.num_cpus,
        "total_nodes": info.num_nodes,
        "tres_req_str": f"cpu={info.num_cpus},node={info.num_nodes},billing={info.billing}",
        "tres_per_node": ",".join(f"gres:{name}:{count}" for name, count in info.gres.items()),
        "argv": desc.argv,
        "script": desc.script,
        "unlimited": info.time_limit_min == INFINITE,
    }
