"""What slurmctld tells of jobs, steps, nodes, partitions and reservations when it is asked.

Answers hold copies in the units of the commands: seconds since the epoch, minutes, megabytes.
"""

from collections.abc import Iterable
from typing import Any

from simctl.ctld.choose import dependencies
from simctl.ctld.controller import Controller
from simctl.ctld.reporting import job_facts
from simctl.ctld.state import queue
from simctl.ctld.state.records import (
    JobRecord,
    NodeRecord,
    PartRecord,
    ReservationRecord,
    StepRecord,
)
from simctl.kernel.fabric import Envelope
from simctl.wire.arrays import format_tasks
from simctl.wire.bitmap import members, ranges
from simctl.wire.conf.slurm_conf import can_checkpoint
from simctl.wire.errno import ESLURM_INVALID_JOB_ID
from simctl.wire.filenames import fill_in
from simctl.wire.hostlist import compress
from simctl.wire.ids import INFINITE, NO_VAL, SECOND, SLURM_BATCH_SCRIPT
from simctl.wire.info import JobInfo, NodeInfo, PartInfo, ReservationInfo, StepInfo
from simctl.wire.messages import (
    RequestJobInfo,
    RequestJobStepInfo,
    RequestNodeInfo,
    RequestPartitionInfo,
    RequestReservationInfo,
    ResponseJobInfo,
    ResponseJobStepInfo,
    ResponseNodeInfo,
    ResponsePartitionInfo,
    ResponseReservationInfo,
    ResponseSlurmRc,
)
from simctl.wire.resources import ALL_MEMORY
from simctl.wire.states import JobBase, Reason


async def job_info(ctld: Controller, envelope: Envelope, message: RequestJobInfo) -> None:
    """Tell of all jobs, or of one and the tasks of its array.

    Answers ESLURM_INVALID_JOB_ID for an unknown job.
    """
    if message.job_id and not records_of(ctld, message.job_id):
        ctld.send(envelope.sender, ResponseSlurmRc.to(message, ESLURM_INVALID_JOB_ID))
        return
    ctld.send(envelope.sender, answer_about(ctld, message.job_id))


def answer_about(ctld: Controller, job_id: int) -> ResponseJobInfo:
    """Return what is told of a job and the tasks of its array, or of all jobs where it is 0."""
    jobs: Iterable[JobRecord] = sorted(ctld.jobs.values(), key=lambda job: job.place)
    if job_id:
        jobs = records_of(ctld, job_id)
    told = tuple(describe_job(ctld, job) for job in jobs)
    return ResponseJobInfo(now_s=_clock(ctld, ctld.now_us), jobs=told)


def records_of(ctld: Controller, job_id: int) -> list[JobRecord]:
    """Return the records a job id stands for: of an array, the waiting tasks and the others."""
    array = ctld.arrays.get(job_id)
    if array is None:
        job = ctld.jobs.get(job_id)
        return [job] if job is not None else []
    rest = [array.rest] if array.rest is not None else []
    tasks = [array.records[number] for number in sorted(array.records)]
    return [*rest, *(task for task in tasks if task.job_id in ctld.jobs and task is not array.rest)]


def _reason(job: JobRecord) -> str:
    """Return why a job waits, or how it ended; the begin time counts once its old run is gone."""
    reason = queue.reason_to_wait(job)
    hidden = job.state.completing and reason == Reason.BEGIN_TIME
    return Reason.NONE if hidden else reason


def describe_job(ctld: Controller, job: JobRecord) -> JobInfo:
    """Return what is told of a job."""
    desc, demand, array = job.desc, job.demand, job.array
    waits = array is not None and array.rest is job
    pending = job.state.base is JobBase.PENDING
    min_nodes = max(demand.min_nodes, 1)
    num_cpus = sum(job.cpus) if job.nodes else job.demand.asked_cpus(min_nodes)
    num_nodes = len(job.nodes) or job_facts.asked_nodes(job, num_cpus)
    to_leave = [node for node in job.nodes if node.name in job.completing_nodes]
    if job.state.completing and job.completing_nodes:
        num_nodes = len(job.completing_nodes)
    out, err = output_files(job)
    return JobInfo(
        job_id=job.job_id,
        array_job_id=array.job_id if array is not None else 0,
        array_task_id=job.array_task if array is not None and not waits else NO_VAL,
        array_tasks=_waiting_tasks(job) if waits else "",
        array_limit=array.limit if array is not None else 0,
        name=job.name,
        user_id=desc.uid,
        user=desc.user,
        group_id=desc.gid,
        account=desc.account,
        partition=job.part.name if not pending else desc.partition,
        state=job.state,
        reason=_reason(job),
        priority=job.priority,
        nice=job.nice,
        dependency=dependencies.told(ctld, job, ctld.now_us),
        requeue=job.requeue,
        restart_cnt=job.restarts + (pending and job.state.completing),
        batch=job.batch,
        exit_code=job.exit_code,
        submit_s=_clock(ctld, job.submit_us),
        eligible_s=_clock(ctld, job_facts.eligible_us(job)),
        accrue_s=_clock(ctld, job_facts.accrue_us(job)),
        start_s=_start_s(ctld, job),
        end_s=_end_s(ctld, job),
        suspend_s=_clock(ctld, job.switched_us) if not pending else 0,
        run_s=run_s(ctld, job),
        pre_suspend_s=job.before_suspension_us // SECOND if not pending else 0,
        preempt_s=_clock(ctld, job.preempt_us),
        deadline_s=desc.deadline_s,
        evaluated_s=_clock(ctld, max(job.evaluated_us, job.submit_us)),
        scheduler=job.scheduler,
        time_limit_min=job.time_limit_min,
        node_list=_node_list(job),
        planned_nodes=job.planned_nodes if pending and job.queued else "",
        num_nodes=num_nodes,
        min_nodes=min_nodes,
        max_nodes=0 if demand.max_nodes == INFINITE else demand.max_nodes,
        num_cpus=num_cpus,
        billing=job.billing or num_cpus,
        cpus_to_leave=sum(job.shares[node.index].cpus for node in to_leave),
        num_tasks=demand.num_tasks,
        cpus_per_task=demand.cpus_per_task,
        ntasks_per_node=demand.ntasks_per_node,
        min_cpus_per_node=max(1, demand.cpus_per_node, demand.cpus_per_task * demand.at_once),
        memory_per_node_mb=demand.memory_per_node_mb,
        memory_per_cpu_mb=demand.memory_per_cpu_mb,
        cpus=job.cpus if job.nodes else (),
        memory_mb=tuple(job.shares[node.index].memory_mb for node in job.nodes),
        total_memory_mb=_memory_mb(job, min_nodes, num_cpus),
        gres=desc.gres,
        required_nodes=compress(desc.nodes),
        excluded_nodes=compress(desc.excluded),
        exclusive=desc.exclusive,
        oversubscribe=desc.oversubscribe,
        reservation=desc.reservation,
        comment=desc.comment,
        wckey=desc.wckey,
        time_min_min=desc.time_min_min,
        features=desc.features,
        licenses=desc.licenses,
        qos="normal" if ctld.site.conf.accounts else "",
        burst_buffer=job.burst_buffer or desc.burst_buffer,
        burst_buffer_state=job_facts.burst_buffer_state(job),
        system_comment=job.system_comment,
        admin_comment=job.admin_comment,
        tres=job_facts.tracked(ctld.site.conf, job.tres or job.tres_req),
        container=desc.container,
        command=job_facts.command(job),
        work_dir=desc.work_dir,
        std_in=_placed(job, desc.std_in) if desc.std_in else "/dev/null",
        std_out=out,
        std_err=err,
        submit_host=job.submit_host,
        submit_sid=job.submit_pid,
        cpu_ids=tuple(ranges(job.cores.get(node.index, 0)) for node in job.nodes),
        batch_host=job.batch_host,
        kill_on_invalid_dep=desc.kill_on_invalid_dep,
    )


def _clock(ctld: Controller, when_us: int) -> int:
    """Return what clocks show at a moment, in seconds since the epoch; 0 if it is none."""
    return ctld.site.start_time_s + when_us // SECOND if when_us >= 0 else 0


def _waiting_tasks(job: JobRecord) -> str:
    array = job.array
    assert array is not None
    tasks = format_tasks(array.waiting)
    return f"{tasks}%{array.limit}" if array.limit else tasks


def _node_list(job: JobRecord) -> str:
    """Return a job's nodes; of one that is completing those it has yet to leave."""
    if job.state.completing and job.completing_nodes:
        return compress(node.name for node in job.nodes if node.name in job.completing_nodes)
    return job.node_list if job.nodes else ""


def _memory_mb(job: JobRecord, num_nodes: int, num_cpus: int) -> int:
    """Return the memory that a job has, or asks for, on all its nodes together."""
    if job.nodes:
        return sum(share.memory_mb for share in job.shares.values())
    demand = job.demand
    if demand.memory_per_node_mb == ALL_MEMORY:
        return 0
    return demand.memory_per_node_mb * num_nodes or demand.memory_per_cpu_mb * num_cpus


def run_s(ctld: Controller, job: JobRecord) -> int:
    """Return how long a job has run, or ran, suspensions left out; 0 if it has not started.

    Counted from second to second, as the moments that are shown beside it.
    """
    if job.start_us < 0 or job.state.base is JobBase.PENDING:
        return 0
    until_us = job.end_us if job.end_us >= 0 else ctld.now_us
    if job.suspend_us >= 0:
        until_us = min(until_us, job.suspend_us)
    return max(0, _span_s(job.start_us, until_us) - job.suspended_us // SECOND)


def _step_run_s(ctld: Controller, step: StepRecord) -> int:
    """Return how long a step has run, suspensions of its job since then left out."""
    job = step.job
    until_us = ctld.now_us if job.suspend_us < 0 else min(ctld.now_us, job.suspend_us)
    suspended_us = job.suspended_us - step.suspended_before_us
    return max(0, _span_s(step.start_us, until_us) - suspended_us // SECOND)


def _span_s(first_us: int, last_us: int) -> int:
    """Return how much later clocks show the second moment than the first."""
    return last_us // SECOND - first_us // SECOND


def _start_s(ctld: Controller, job: JobRecord) -> int:
    """Return when a job started, or is expected to as far as is known."""
    if job.start_us >= 0 and job.state.base is not JobBase.PENDING:
        return _clock(ctld, job.start_us)
    if job.state.completing or job.state.finished:
        # As if it had started when it was sent back into the queue, or cancelled there.
        return _clock(ctld, job.end_us)
    if job.begin_us > ctld.now_us:
        return _clock(ctld, job.begin_us)
    return _clock(ctld, job.planned_us) if job.queued and job.planned_us > 0 else 0


def _end_s(ctld: Controller, job: JobRecord) -> int:
    """Return when a job ended, or will if it uses its time limit up."""
    if job.end_us >= 0 and job.state.base is not JobBase.PENDING:
        return _clock(ctld, job.end_us)
    if job.state.base is JobBase.RUNNING:
        return _clock(ctld, job.limit_us) if job.limit_us != INFINITE else 0
    start_s = _start_s(ctld, job)
    limited = job.time_limit_min != INFINITE
    return start_s + job.time_limit_min * 60 if start_s and limited else 0


def output_files(job: JobRecord) -> tuple[str, str]:
    """Return where the output of a batch script goes, and where its errors do."""
    desc, array = job.desc, job.array
    if not job.batch:
        return desc.std_out, desc.std_err
    usual = "slurm-%A_%a.out" if array is not None else "slurm-%j.out"
    out = _placed(job, desc.std_out or usual)
    return out, _placed(job, desc.std_err) if desc.std_err else out


def _placed(job: JobRecord, pattern: str) -> str:
    """Return the path of a file of a batch script."""
    desc, array = job.desc, job.array
    name = fill_in(
        pattern,
        job_id=job.job_id,
        user=desc.user,
        job_name=job.name,
        node=job.nodes[0].name if job.nodes else "",
        array_job_id=array.job_id if array is not None else 0,
        array_task_id=job.array_task if array is not None and job.array_task >= 0 else NO_VAL,
    )
    return name if name.startswith("/") else f"{desc.work_dir.rstrip('/')}/{name}"


async def job_step_info(ctld: Controller, envelope: Envelope, message: RequestJobStepInfo) -> None:
    """Tell of the steps that run, of all jobs or of one."""
    steps = [
        step
        for job in sorted(ctld.jobs.values(), key=lambda job: job.place)
        if job.state.base in (JobBase.RUNNING, JobBase.SUSPENDED)
        and (not message.job_id or message.job_id in (job.job_id, _array_id(job)))
        for step in describe_steps(ctld, job)
    ]
    ctld.send(
        envelope.sender,
        ResponseJobStepInfo(now_s=_clock(ctld, ctld.now_us), steps=tuple(steps)),
    )


def _array_id(job: JobRecord) -> int:
    return job.array.job_id if job.array is not None else 0


def describe_steps(ctld: Controller, job: JobRecord) -> list[StepInfo]:
    """Return what is told of the steps of a job; its batch script comes last."""
    found = [_step(ctld, step) for step in job.steps.values()]
    if job.batch and job.nodes and not job.state.configuring:
        found.append(
            StepInfo(
                **_of_job(job),
                step_id=SLURM_BATCH_SCRIPT,
                name="batch",
                start_s=_clock(ctld, job.start_us),
                run_s=run_s(ctld, job),
                node_list=job.nodes[0].name,
                num_nodes=1,
                num_cpus=0,
                num_tasks=1,
                ckpt_interval_min=job.desc.ckpt_interval_min,
                ckpt_dir=job.ckpt_dir if can_checkpoint(ctld.site.conf) else "",
            )
        )
    return found


def _of_job(job: JobRecord) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "array_job_id": _array_id(job),
        "array_task_id": job.array_task if job.array_task >= 0 else NO_VAL,
        "user_id": job.desc.uid,
        "user": job.desc.user,
        "partition": job.part.name,
    }


def _step(ctld: Controller, step: StepRecord) -> StepInfo:
    job, layout = step.job, step.layout
    # A job that goes on without a node that failed has nothing there any more.
    shares = (job.shares.get(node.index) for node in ctld.nodes_named(layout.nodes))
    return StepInfo(
        **_of_job(job),
        step_id=step.step_id,
        name=step.name,
        start_s=_clock(ctld, step.start_us),
        run_s=_step_run_s(ctld, step),
        time_limit_min=step.time_limit_min,
        node_list=step.node_list,
        num_nodes=len(layout.nodes),
        num_cpus=sum(step.cpus),
        num_tasks=layout.num_tasks,
        memory_mb=sum(share.memory_mb for share in shares if share is not None),
        gres=job.desc.gres,
        distribution=layout.distribution.name.capitalize(),
        srun_host=step.srun.process.host.name if step.srun is not None else "",
        srun_pid=step.srun.process.pid if step.srun is not None else 0,
        ckpt_interval_min=step.ckpt_interval_min,
        ckpt_dir=step.ckpt_dir if can_checkpoint(ctld.site.conf) else "",
    )


async def node_info(ctld: Controller, envelope: Envelope, message: RequestNodeInfo) -> None:
    """Tell of all nodes, in their order."""
    nodes = tuple(describe_node(ctld, node) for node in ctld.nodes)
    ctld.send(envelope.sender, ResponseNodeInfo(now_s=_clock(ctld, ctld.now_us), nodes=nodes))


def describe_node(ctld: Controller, node: NodeRecord) -> NodeInfo:
    """Return what is told of a node."""
    bit = 1 << node.index
    active = [each for each in ctld.reservations.values() if _is_active(ctld, each)]
    here = [each for each in active if each.nodes & bit]
    return NodeInfo(
        name=node.name,
        base=node.base,
        flags=node.flags,
        cpus=node.total.cpus,
        cpus_allocated=node.total.cpus - node.free.cpus,
        memory_mb=node.total.memory_mb,
        memory_allocated_mb=node.total.memory_mb - node.free.memory_mb,
        features=node.features,
        gres=node.total.gres,
        gres_used={
            name: count - node.free.gres.get(name, 0) for name, count in node.total.gres.items()
        },
        reason=node.reason,
        reason_uid=node.reason_uid,
        reason_user=ctld.site.user_name(node.reason_uid) if node.reason_uid != NO_VAL else "",
        reason_s=_clock(ctld, node.reason_us) if node.reason else 0,
        partitions=tuple(part.name for part in ctld.partitions.values() if part.mask & bit),
        boot_s=_clock(ctld, 0),
        slurmd_start_s=_clock(ctld, node.start_us),
        last_busy_s=_clock(ctld, node.last_busy_us),
        planned=bool(ctld.planned_nodes & bit) and ctld.anybody_waits(),
        maintenance=any(each.maintenance for each in here),
        reserved=any(not each.maintenance for each in here),
    )


async def partition_info(
    ctld: Controller, envelope: Envelope, message: RequestPartitionInfo
) -> None:
    """Tell of all partitions, in their order."""
    parts = tuple(describe_partition(part) for part in ctld.partitions.values())
    now_s = _clock(ctld, ctld.now_us)
    ctld.send(envelope.sender, ResponsePartitionInfo(now_s=now_s, partitions=parts))


def describe_partition(part: PartRecord) -> PartInfo:
    """Return what is told of a partition. Pure."""
    gres: dict[str, int] = {}
    for node in part.nodes:
        for name, count in node.total.gres.items():
            gres[name] = gres.get(name, 0) + count
    names = tuple(node.name for node in part.nodes)
    return PartInfo(
        name=part.name,
        default=part.default,
        state=part.state,
        nodes=names,
        node_list=compress(names),
        cpus=sum(node.cpus for node in part.nodes),
        memory_mb=sum(node.total.memory_mb for node in part.nodes),
        gres=gres,
        default_time_min=part.default_time_min,
        max_time_min=part.max_time_min,
        min_nodes=part.min_nodes,
        max_nodes=part.max_nodes,
        tier=part.tier,
        exclusive=part.exclusive,
        preempt_mode=part.preempt_mode,
        grace_time_s=part.grace_time_s,
        root_only=part.root_only,
        allow_accounts=part.allow_accounts,
        deny_accounts=part.deny_accounts,
        def_mem_per_cpu_mb=part.def_mem_per_cpu_mb,
        def_mem_per_node_mb=part.def_mem_per_node_mb,
    )


async def reservation_info(
    ctld: Controller, envelope: Envelope, message: RequestReservationInfo
) -> None:
    """Tell of all reservations, in the order in which they were made."""
    told = tuple(describe_reservation(ctld, each) for each in ctld.reservations.values())
    now_s = _clock(ctld, ctld.now_us)
    ctld.send(envelope.sender, ResponseReservationInfo(now_s=now_s, reservations=told))


def _is_active(ctld: Controller, record: ReservationRecord) -> bool:
    return record.start_us <= ctld.now_us < record.end_us


def describe_reservation(ctld: Controller, record: ReservationRecord) -> ReservationInfo:
    """Return what is told of a reservation."""
    nodes = [ctld.nodes[index] for index in members(record.nodes)]
    return ReservationInfo(
        name=record.name,
        start_s=_clock(ctld, record.start_us),
        end_s=_clock(ctld, record.end_us),
        node_list=compress(tuple(node.name for node in nodes)),
        num_nodes=len(nodes),
        cpus=sum(node.cpus for node in nodes),
        flags=record.flags,
        users=tuple(ctld.site.user_name(uid) for uid in record.users),
        accounts=record.accounts,
        active=_is_active(ctld, record),
        burst_buffer=record.burst_buffer,
        tres=ctld.bb.sizes_in(record.tres) if ctld.bb is not None else {},
    )
