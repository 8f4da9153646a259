"""What slurmctld enters in the books of accounting, and what it answers in slurmdbd's stead."""

from typing import Final

from simctl.ctld.controller import Controller
from simctl.ctld.reporting import job_facts
from simctl.ctld.state.job_rows import row
from simctl.ctld.state.records import JobRecord, StepRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.accounts import (
    BATCH_STEP,
    NOBODY,
    REQUEUED,
    JobAccount,
    Records,
    StepAccount,
    as_of,
    step_as_of,
    step_state,
)
from simctl.wire.arrays import format_tasks
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.messages import DbdGetJobsCond, DbdGotJobs
from simctl.wire.resources import ALL_MEMORY
from simctl.wire.states import JobBase, Reason

_EXITED_1: Final = 1 << 8


# What happens to jobs.


def came(ctld: Controller, job: JobRecord) -> None:
    """Note a new job; the tasks of an array are heard of one by one, as they start or end."""
    if job.array is None:
        job.enter_books(ctld.books.next_index())


def started(ctld: Controller, job: JobRecord) -> None:
    """Note that a job starts."""
    if not job.db_index:
        job.enter_books(ctld.books.next_index())


def run_ended(ctld: Controller, job: JobRecord, state: str) -> None:
    """Enter how a run of a job ended; one that is back in the queue has a new record.

    Tasks that are taken out of an array before accounting has heard of them leave no record.
    """
    if job.array is not None and not job.db_index and job.array.rest is not job:
        return
    if not job.db_index:
        job.enter_books(ctld.books.next_index())
    if ctld.books.open:
        ctld.books.enter(_account(ctld, job, state))


def requeued(ctld: Controller, job: JobRecord, *, preempted: bool) -> None:
    """Enter a run that was given up so that the job can run again."""
    run_ended(ctld, job, JobBase.PREEMPTED.name if preempted else REQUEUED)


# What happens to steps.


def step_ended(ctld: Controller, step: StepRecord) -> None:
    """Enter how a step ended."""
    if not ctld.books.open:
        return
    state = step_state(step.exit_code)
    if step.timed_out and state is not JobBase.COMPLETED:
        state = JobBase.TIMEOUT
    ctld.books.enter(_step(ctld, step, state.name, ctld.now_us))


def batch_ended(ctld: Controller, job: JobRecord, exit_code: int) -> None:
    """Enter how a batch script ended, unless that is known."""
    if job.batch_start_us < 0:
        return
    if ctld.books.open:
        ctld.books.enter(_batch(ctld, job, step_state(exit_code).name, exit_code, ctld.now_us))
    job.script_ended()


# Records.


def _account(ctld: Controller, job: JobRecord, state: str) -> JobAccount:
    desc, array = job.desc, job.array
    waiting = array is not None and array.rest is job
    nodes = max(1, job.demand.min_nodes)
    asked = job.demand.asked_cpus(nodes)
    return JobAccount(
        db_index=job.db_index,
        job_id=job.job_id,
        array_job_id=array.job_id if array is not None else 0,
        array_task_id=job.array_task if job.array_task >= 0 and not waiting else NO_VAL,
        array_tasks=_tasks(job) if waiting else "",
        name=job.name,
        user=desc.user,
        user_id=desc.uid,
        group_id=desc.gid,
        account=desc.account,
        partition=job.part.name if job.nodes else desc.partition,
        state=state,
        cancel_uid=job.cancel_uid if state == JobBase.CANCELLED.name else NOBODY,
        reason=job.waited_for or Reason.NONE,
        priority=job.priority,
        exit_code=_exit_code(job, state),
        derived_exit_code=job.derived_exit_code,
        submit_us=job.submit_us,
        eligible_us=_eligible_us(job),
        start_us=job.start_us if job.nodes or state == JobBase.FAILED.name else -1,
        end_us=job.end_us,
        suspended_us=_suspended_us(ctld, job),
        restarts=job.restarts,
        time_limit_min=_limit_min(job),
        node_list=job.node_list if job.nodes else "",
        alloc_nodes=len(job.nodes),
        req_nodes=nodes,
        alloc_cpus=sum(job.cpus),
        req_cpus=asked,
        alloc_memory_mb=sum(share.memory_mb for share in job.shares.values()),
        req_memory_mb=_asked_memory_mb(job, nodes, asked),
        alloc_tres=job_facts.tracked(ctld.site.conf, job.tres),
        req_tres=job_facts.tracked(ctld.site.conf, job.tres_req or job.tres),
        reservation=desc.reservation,
        comment=desc.comment,
        wckey=desc.wckey,
        work_dir=desc.work_dir,
        submit_line=desc.submit_line,
        script=desc.script,
        batch=job.batch,
    )


def _exit_code(job: JobRecord, state: str) -> int:
    """Return a run's wait status; a job that failed without nodes counts as exited with 1."""
    never_ran = state == JobBase.FAILED.name and not job.nodes
    return _EXITED_1 if never_ran else job.exit_code


def _tasks(job: JobRecord) -> str:
    array = job.array
    assert array is not None
    limit = f"%{array.limit}" if array.limit else ""
    return f"[{format_tasks(array.waiting)}{limit}]"


def _eligible_us(job: JobRecord) -> int:
    array = job.array
    if array is not None and array.rest is job and job.reason == Reason.ARRAY_TASK_LIMIT:
        # No pass looks at the other tasks before one of those that run has ended.
        return -1
    if not job.nodes and job.begin_us > max(job.end_us, job.eligible_us, job.submit_us):
        return job.begin_us
    if job.eligible_us >= 0:
        return max(job.eligible_us, job.submit_us)
    if job.lasting_reason and job.priority and job.dependency is None:
        # What is too much for its partition may start all the same, as far as it is concerned.
        return max(job.begin_us, job.submit_us)
    return job.start_us if job.nodes or job.state.base is JobBase.FAILED else -1


def _suspended_us(ctld: Controller, job: JobRecord) -> int:
    """Return how long a job was suspended, up to now or to its end."""
    if job.suspend_us < 0:
        return job.suspended_us
    until_us = job.end_us if job.end_us >= 0 else ctld.now_us
    return job.suspended_us + max(0, until_us - job.suspend_us)


def _limit_min(job: JobRecord) -> int:
    """Return the time limit; of a job that has not started its partition's may be meant."""
    unset = job.desc.time_limit_min == NO_VAL and job.part.default_time_min >= INFINITE
    return NO_VAL if unset and not job.nodes else job.time_limit_min


def _asked_memory_mb(job: JobRecord, nodes: int, cpus: int) -> int:
    demand = job.demand
    if demand.memory_per_node_mb == ALL_MEMORY:
        return 0
    return demand.memory_per_node_mb * nodes or demand.memory_per_cpu_mb * cpus


def _step(ctld: Controller, step: StepRecord, state: str, end_us: int) -> StepAccount:
    job, layout = step.job, step.layout
    found = [job.shares.get(node.index) for node in ctld.nodes_named(layout.nodes)]
    shares = [share for share in found if share is not None]
    asked = sum(step.cpus)
    return StepAccount(
        db_index=job.db_index,
        job_id=job.job_id,
        step_id=step.step_id,
        name=step.name,
        state=state,
        cancel_uid=step.cancel_uid if state == JobBase.CANCELLED.name else NOBODY,
        exit_code=0 if step.exit_code == NO_VAL else step.exit_code,
        start_us=step.start_us,
        end_us=end_us,
        suspended_us=_suspended_us(ctld, job) - step.suspended_before_us,
        node_list=step.node_list,
        num_nodes=len(layout.nodes),
        num_cpus=asked if step.exact or not shares else sum(share.cpus for share in shares),
        num_tasks=layout.num_tasks,
        memory_mb=sum(share.memory_mb for share in shares),
        layout=layout.distribution.name.capitalize(),
        submit_line=step.submit_line,
    )


def _batch(
    ctld: Controller, job: JobRecord, state: str, exit_code: int, end_us: int
) -> StepAccount:
    """Return the record of a batch script, which has all that its job has on the first node."""
    share = job.shares.get(job.nodes[0].index) if job.nodes else None
    return StepAccount(
        db_index=job.db_index,
        job_id=job.job_id,
        step_id=BATCH_STEP,
        name="batch",
        state=state,
        exit_code=exit_code,
        start_us=job.batch_start_us,
        end_us=end_us,
        suspended_us=_suspended_us(ctld, job),
        node_list=job.nodes[0].name if job.nodes else "",
        num_nodes=1,
        num_cpus=share.cpus if share is not None else 0,
        num_tasks=1,
        memory_mb=share.memory_mb if share is not None else 0,
        layout="Unknown",
    )


# Answers.


def current(ctld: Controller) -> tuple[list[JobAccount], list[StepAccount]]:
    """Return what stands for the jobs and steps that are not over, in the order of their places."""
    jobs: list[JobAccount] = []
    steps: list[StepAccount] = []
    for job in sorted(ctld.jobs.values(), key=lambda each: each.place):
        if not job.state.finished and not job.state.completing:
            jobs.append(_account(ctld, job, job.state.base.name))
        state = (JobBase.SUSPENDED if job.suspend_us >= 0 else JobBase.RUNNING).name
        if job.batch_start_us >= 0:
            steps.append(_batch(ctld, job, state, 0, -1))
        steps += [_step(ctld, step, state, -1) for step in job.steps.values()]
    return jobs, steps


def known(ctld: Controller) -> Records:
    """Return every record there is, also of a slurmctld that is down: slurmdbd has been told."""
    jobs, steps = current(ctld)
    all_jobs, all_steps = (*ctld.books.jobs, *jobs), (*ctld.books.steps, *steps)
    if late_us := max(ctld.books.late_us, ctld.site.options.accounting_lag):
        seen_us = ctld.now_us - late_us
        shown = [as_of(each, seen_us) for each in all_jobs if each.submit_us <= seen_us]
        begun = [step_as_of(each, seen_us) for each in all_steps if each.start_us <= seen_us]
        return tuple(shown), tuple(begun)
    return all_jobs, all_steps


async def get_jobs_cond(ctld: Controller, envelope: Envelope, _: DbdGetJobsCond) -> None:
    """Answer with every record there is; sacct chooses."""
    jobs, steps = known(ctld)
    ctld.send(envelope.sender, DbdGotJobs(jobs=jobs, steps=steps))


def account(ctld: Controller, job: JobRecord, base: JobBase) -> None:
    """Record how a run of a job ended."""
    ended = row(job, base.name, job.reason)
    ctld.runs_ended += 1
    if ctld.take_row is None:
        ctld.ended_rows[job.job_id] = ended
    else:
        ctld.take_row(ended)
