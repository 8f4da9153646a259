"""``scontrol show job``: all there is to know of jobs."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from simctl.commands.columns.formats import padded_time
from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.text import NULL, gres, memory, minutes, moment, tres
from simctl.kernel.procs import exit_code_of, signal_of
from simctl.wire.arrays import parse_tasks
from simctl.wire.errno import ESLURM_INVALID_JOB_ID, errno_name, slurm_strerror
from simctl.wire.hostlist import compress, expand
from simctl.wire.ids import NO_VAL
from simctl.wire.info import JobInfo
from simctl.wire.messages import RequestJobInfo, ResponseJobInfo
from simctl.wire.states import JobBase, JobFlag, JobState

_ID: Final = re.compile(r"(\d+)(?:_(\d+))?")
_KILLS: Final = {0: "No", 1: "Yes"}
_FLAG_TEXT: Final = {
    JobFlag.COMPLETING: "COMPLETING",
    JobFlag.STAGE_OUT: "STAGE_OUT",
    JobFlag.CONFIGURING: "CONFIGURING",
    JobFlag.RESIZING: "RESIZING",
    JobFlag.REQUEUE: "REQUEUED",
    JobFlag.SPECIAL_EXIT: "SPECIAL_EXIT",
    JobFlag.STOPPED: "STOPPED",
}
"""What is shown of a job instead of its base state; the first that holds."""


async def show_jobs(order: Order, value: str | None) -> int:
    """Print all jobs, or one and the tasks of its array."""
    job_id, task = 0, NO_VAL
    if value is not None:
        match = _ID.match(value)
        if match is None or not re.fullmatch(r"[0-9_+]+", value):
            order.call.errno = errno_name(ESLURM_INVALID_JOB_ID)
            text = slurm_strerror(ESLURM_INVALID_JOB_ID)
            order.complain(f"scontrol_print_job error: {text}")
            return 1
        job_id, task = int(match[1]), int(match[2]) if match[2] else NO_VAL
    answer = await order.load(RequestJobInfo(job_id=job_id), "slurm_load_jobs")
    if not isinstance(answer, ResponseJobInfo):
        return 1
    found = [job for job in answer.jobs if task == NO_VAL or _has_task(job, task)]
    shown = not order.details
    order.print_records([_lines(job, task, brief=shown) for job in found])
    if not found and not order.quiet:
        name = str(job_id) if task == NO_VAL else f"{job_id}_{task}"
        order.call.out("No jobs in the system" if value is None else f"Job {name} not found")
    return 0 if found or value is None else 1


def _has_task(job: JobInfo, task: int) -> bool:
    """Return whether a record is that of a task, or of tasks that wait and it with them."""
    if job.array_task_id == task:
        return True
    waiting = job.array_tasks.partition("%")[0]
    return bool(waiting) and task in parse_tasks(waiting)


def _account(job: JobInfo) -> str:
    return f"Account={job.account or NULL} QOS={job.qos or NULL}"


def _lines(job: JobInfo, task: int, *, brief: bool) -> list[str]:
    return [
        f"JobId={job.job_id} {_array(job, task)}JobName={job.name}",
        f"UserId={job.user}({job.user_id}) GroupId={job.user}({job.group_id}) MCS_label=N/A",
        f"Priority={job.priority} Nice={job.nice} {_account(job)}",
        *_state(job, brief=brief),
        *_times(job),
        *_place(job),
        *_size(job, brief=brief),
        *_request(job),
        *_files(job, task),
        *_optional("BurstBuffer", job.burst_buffer),
        *_optional("BurstBufferState", job.burst_buffer_state),
        "Power=",
        *_optional("TresPerNode", gres(job.gres, "gres:", "")),
        *_optional("KillOInInvalidDependent", _KILLS.get(job.kill_on_invalid_dep, "")),
        "",
    ]


def _optional(name: str, value: str) -> list[str]:
    return [f"{name}={value}"] if value else []


def _array(job: JobInfo, task: int) -> str:
    if not job.array_job_id:
        return ""
    shown = job.array_tasks
    if task != NO_VAL or not shown:
        shown = str(job.array_task_id if task == NO_VAL else task)
    limit = f"ArrayTaskThrottle={job.array_limit} " if job.array_limit else ""
    return f"ArrayJobId={job.array_job_id} ArrayTaskId={shown} {limit}"


def state_text(state: JobState) -> str:
    """Return the one word that scontrol shows for a state and its flags."""
    for flag, shown in _FLAG_TEXT.items():
        if state.flags & flag:
            return shown
    return state.base.name


def _exit(status: int) -> str:
    return f"{exit_code_of(status)}:{signal_of(status)}"


def _state(job: JobInfo, *, brief: bool) -> Iterator[str]:
    reason = job.reason.replace(" ", "_")
    yield (f"JobState={state_text(job.state)} Reason={reason} Dependency={job.dependency or NULL}")
    yield (
        f"Requeue={job.requeue:d} Restarts={job.restart_cnt} BatchFlag={job.batch:d} Reboot=0 "
        f"ExitCode={_exit(job.exit_code)}"
    )
    if not brief:
        yield f"DerivedExitCode={_exit(job.derived_exit_code)}"


def _times(job: JobInfo) -> Iterator[str]:
    limit = minutes(job.time_limit_min)
    least = minutes(job.time_min_min) if job.time_min_min else "N/A"
    yield f"RunTime={padded_time(job.run_s)} TimeLimit={limit} TimeMin={least}"
    yield f"SubmitTime={moment(job.submit_s)} EligibleTime={moment(job.eligible_s)}"
    yield f"AccrueTime={moment(job.accrue_s)}"
    yield (
        f"StartTime={moment(job.start_s)} EndTime={moment(job.end_s)} "
        f"Deadline={moment(job.deadline_s, 'N/A')}"
    )
    if job.preempt_s:
        # Jobs may be preempted from their start on.
        start = moment(job.start_s, "None")
        yield f"PreemptEligibleTime={start} PreemptTime={moment(job.preempt_s)}"
    yield (
        f"SuspendTime={moment(job.suspend_s, 'None')} SecsPreSuspend={job.pre_suspend_s} "
        f"LastSchedEval={moment(job.evaluated_s)} Scheduler={job.scheduler}"
    )


def _place(job: JobInfo) -> Iterator[str]:
    yield f"Partition={job.partition} AllocNode:Sid={job.submit_host}:{job.submit_sid}"
    yield (f"ReqNodeList={job.required_nodes or NULL} ExcNodeList={job.excluded_nodes or NULL}")
    planned = f" SchedNodeList={job.planned_nodes}" if job.planned_nodes else ""
    yield f"NodeList={job.node_list}{planned}"
    yield from _optional("BatchHost", job.batch_host)


def _size(job: JobInfo, *, brief: bool) -> Iterator[str]:
    nodes = str(job.num_nodes)
    waits = job.state.base is JobBase.PENDING and not job.node_list
    if waits and job.max_nodes:
        nodes = f"{min(job.num_nodes, job.max_nodes)}-{job.max_nodes}"
    yield (
        f"NumNodes={nodes} NumCPUs={job.cpus_to_leave or job.num_cpus} NumTasks={job.num_tasks} "
        f"CPUs/Task={job.cpus_per_task} ReqB:S:C:T=0:0:*:*"
    )
    amount = tres(
        cpus=job.num_cpus,
        memory_mb=job.total_memory_mb,
        nodes=len(job.cpus) or job.min_nodes,
        billing=job.billing,
        others=job.tres,
    )
    yield f"TRES={amount or NULL}"
    yield f"Socks/Node=* NtasksPerN:B:S:C={job.ntasks_per_node}:0:*:* CoreSpec=*"
    if not brief:
        yield f"JOB_GRES={gres(_all_gres(job))}"
        yield from _on_nodes(job)
    kind, size = "CPU", job.memory_per_cpu_mb
    if not size:
        kind, size = "Node", max(0, job.memory_per_node_mb)
    yield f"MinCPUsNode={job.min_cpus_per_node} MinMemory{kind}={memory(size)} MinTmpDiskNode=0"


def _all_gres(job: JobInfo) -> dict[str, int]:
    nodes = len(job.cpus) or job.num_nodes
    return {name: count * nodes for name, count in job.gres.items()}


def _on_nodes(job: JobInfo) -> Iterator[str]:
    """Yield what a job has of each of its nodes; neighbours that are alike share a line."""
    names = expand(job.node_list)
    each = list(zip(names, job.cpu_ids, job.memory_mb, strict=False))
    devices = ",".join(
        f"{name}:{count}(IDX:{f'0-{count - 1}' if count > 1 else 0})"
        for name, count in job.gres.items()
    )
    for (ids, size_mb), run in groupby(each, key=lambda entry: entry[1:]):
        nodes = compress(name for name, _, _ in run)
        yield f"  Nodes={nodes} CPU_IDs={ids} Mem={size_mb} GRES={devices}"


def _request(job: JobInfo) -> Iterator[str]:
    yield f"Features={NULL} DelayBoot=00:00:00"
    yield from _optional("Reservation", job.reservation)
    yield f"OverSubscribe={job.sharing} Contiguous=0 Licenses={NULL} Network={NULL}"


def _files(job: JobInfo, task: int) -> Iterator[str]:
    yield f"Command={job.command or NULL}"
    yield f"WorkDir={job.work_dir}"
    for name, text in (
        ("AdminComment", job.admin_comment),
        ("SystemComment", job.system_comment),
        ("Comment", job.comment),
    ):
        if text:
            yield f"{name}={text} "
    if job.batch:
        # What the tasks that wait have for a number is that of no task.
        number = str(NO_VAL if task == NO_VAL else task)
        out, err = (
            path.replace(f"_{NO_VAL}", f"_{number}") if job.array_tasks else path
            for path in (job.std_out, job.std_err)
        )
        yield f"StdErr={err}"
        yield f"StdIn={job.std_in}"
        yield f"StdOut={out}"
