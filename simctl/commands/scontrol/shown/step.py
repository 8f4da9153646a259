"""``scontrol show step``: the steps that run."""

import re
from itertools import groupby
from typing import Final

from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.text import NULL, gres, minutes, moment, tres
from simctl.wire.errno import ESLURM_INVALID_JOB_ID, errno_name, slurm_strerror
from simctl.wire.ids import NO_VAL, SLURM_BATCH_SCRIPT
from simctl.wire.info import StepInfo
from simctl.wire.messages import (
    RequestJobInfo,
    RequestJobStepInfo,
    ResponseJobInfo,
    ResponseJobStepInfo,
)

_ID: Final = re.compile(r"(\d+)(?:_(\d+))?(?:\.(\d+|batch))?")
_WHAT: Final = "slurm_get_job_steps"


async def show_steps(order: Order, value: str | None) -> int:
    """Print all steps, those of a job, or one."""
    job_id, task, step_id = 0, "", ""
    if value is not None:
        match = _ID.fullmatch(value)
        if match is None:
            order.call.errno = errno_name(ESLURM_INVALID_JOB_ID)
            order.complain(f"{_WHAT} error: {slurm_strerror(ESLURM_INVALID_JOB_ID)}")
            return 1
        job_id, task, step_id = int(match[1]), match[2] or "", match[3] or ""
        jobs = await order.load(RequestJobInfo(job_id=job_id), _WHAT)
        if not isinstance(jobs, ResponseJobInfo):
            return 1
    answer = await order.load(RequestJobStepInfo(job_id=job_id), _WHAT)
    if not isinstance(answer, ResponseJobStepInfo):
        return 1
    found = [
        step
        for step in _in_order(answer.steps)
        if task in ("", str(step.array_task_id)) and step_id in ("", _name(step))
    ]
    order.print_records([_lines(step) for step in found])
    if not found and not order.quiet:
        job = f"{job_id}_{task}" if task else str(job_id)
        missing = f"Job step {job}.{step_id or NO_VAL} not found"
        order.call.out(missing if value is not None else "No job steps in the system")
    return 0 if found or value is None else 1


def _in_order(steps: tuple[StepInfo, ...]) -> list[StepInfo]:
    """Return steps by job, the batch script before the others: it was there first."""
    return [
        step
        for _, run in groupby(steps, key=lambda step: step.job_id)
        for step in sorted(run, key=lambda step: step.step_id != SLURM_BATCH_SCRIPT)
    ]


def _name(step: StepInfo) -> str:
    return "batch" if step.step_id == SLURM_BATCH_SCRIPT else str(step.step_id)


def _lines(step: StepInfo) -> list[str]:
    batch = step.step_id == SLURM_BATCH_SCRIPT
    job = str(step.job_id)
    if step.array_task_id != NO_VAL:
        job = f"{step.array_job_id}_{step.array_task_id}"
    amount = tres(cpus=step.num_cpus, memory_mb=step.memory_mb, nodes=step.num_nodes)
    layout = f" Dist={step.distribution}" if step.distribution else ""
    devices = gres(step.gres, "gres:", "")
    start, limit = moment(step.start_s), minutes(step.time_limit_min)
    images = f" Checkpoint={step.ckpt_interval_min} CheckpointDir={step.ckpt_dir}"
    images = images if step.ckpt_dir else ""
    amounts = f"Nodes={step.num_nodes} CPUs={step.num_cpus} Tasks={step.num_tasks}"
    return [
        f"StepId={job}.{_name(step)} UserId={step.user_id} StartTime={start} TimeLimit={limit}",
        f"State=RUNNING Partition={step.partition} NodeList={step.node_list}",
        f"{amounts} Name={step.name} Network={NULL}",
        f"TRES={NULL if batch else amount}",
        f"ResvPorts={NULL}{images}",
        f"CPUFreqReq=Default{layout}",
        f"SrunHost:Pid={step.srun_host or NULL}:{step.srun_pid}",
        *([f"TresPerNode={devices}"] if devices else []),
    ]
