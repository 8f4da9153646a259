"""How a job ends: the decision, and the tail that every end shares."""

import enum
from typing import Final

import attrs

from simctl.ctld import authority
from simctl.ctld.checkpoints import checkpoint_times
from simctl.ctld.controller import Controller
from simctl.ctld.jobs import (
    admission,
    arrays,
    awaited,
    controller_scripts,
    eligible,
    staging,
    suspensions,
)
from simctl.ctld.nodes import leftovers
from simctl.ctld.reporting import bookkeeping
from simctl.ctld.reporting.bookkeeping import account
from simctl.ctld.state.records import JobRecord, NodeRecord
from simctl.ctld.state.recurring import purge_interval_us
from simctl.ctld.steps import steps
from simctl.kernel.fabric import Envelope, Mailbox
from simctl.kernel.procs import OUT_OF_MEMORY_STATUS, exit_code_of, signal_of
from simctl.plugins.points.checkpoint import slurm_ckpt_free_job
from simctl.wire.conf.slurm_conf import SlurmConf, can_checkpoint
from simctl.wire.credentials import LIFETIME_S
from simctl.wire.errno import (
    ESLURM_ALREADY_DONE,
    ESLURM_INVALID_JOB_ID,
    ESLURM_JOB_PENDING,
    SLURM_SUCCESS,
)
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.messages import (
    MessageEpilogComplete,
    RequestCompleteBatchScript,
    RequestCompleteJobAllocation,
    RequestTerminateJob,
    SrunJobComplete,
)
from simctl.wire.states import (
    COMPLETING,
    NODE_FAIL,
    PENDING,
    PENDING_COMPLETING,
    PENDING_REQUEUE,
    PENDING_REQUEUE_COMPLETING,
    PENDING_SPECIAL_EXIT,
    JobBase,
    JobFlag,
    NodeBase,
    NodeFlag,
    Reason,
)


@attrs.frozen(kw_only=True)
class Completion:
    """How a job ends."""

    base: JobBase
    reason: Reason


def decide(job_rc: int, *, past_limit: bool) -> Completion:
    """Decide how a running job ends from the wait status of its script or srun."""
    if job_rc & 0xFF == OUT_OF_MEMORY_STATUS:
        return Completion(base=JobBase.OUT_OF_MEMORY, reason=Reason.OUT_OF_MEMORY)
    if signal_of(job_rc):
        return Completion(base=JobBase.FAILED, reason=Reason.JOB_LAUNCH_FAILURE)
    if exit_code_of(job_rc):
        return Completion(base=JobBase.FAILED, reason=Reason.NON_ZERO_EXIT_CODE)
    if past_limit:
        return Completion(base=JobBase.TIMEOUT, reason=Reason.TIME_LIMIT)
    return Completion(base=JobBase.COMPLETED, reason=Reason.NONE)


class AfterExit(enum.Enum):
    """What becomes of a job that has exited by itself."""

    END = "it is over"
    AGAIN = "it goes back into the queue"
    HOLD = "it goes back into the queue and is held"


def after_exit(conf: SlurmConf, job: JobRecord) -> AfterExit:
    """Return whether a batch job exited with a code that sends it back into the queue. Pure."""
    if not job.batch or not job.requeue or signal_of(job.exit_code):
        return AfterExit.END
    if job.state.base not in (JobBase.COMPLETED, JobBase.FAILED):
        return AfterExit.END
    code = exit_code_of(job.exit_code)
    if code in conf.requeue_exit.codes:
        return AfterExit.AGAIN
    return AfterExit.HOLD if code in conf.requeue_exit_hold.codes else AfterExit.END


async def complete_batch_script(
    ctld: Controller, envelope: Envelope, message: RequestCompleteBatchScript
) -> None:
    """Note how a batch script ended; a report that comes late still gives the exit code.

    Answers ESLURM_INVALID_JOB_ID, or ESLURM_ALREADY_DONE for a job that is over. In Slurm:
    `job_complete()` of job_mgr.c.
    """
    job = ctld.jobs.get(message.job_id)
    rc = SLURM_SUCCESS
    if job is None:
        rc = ESLURM_INVALID_JOB_ID
    elif _is_of_another_run(job, message):
        # Its node was given up, the step daemon went on, and the job is back in the queue or
        # runs elsewhere: the report is answered, and changes nothing.
        ctld.site.trace.note(
            "log",
            "wrong_run",
            ctld.process,
            args={"rpc": message.rpc, "job": job.job_id, "node": message.node_name},
        )
    elif job.state.finished:
        rc = ESLURM_ALREADY_DONE
        if job.state.completing:
            bookkeeping.batch_ended(ctld, job, message.job_rc)
        job.exit_late(message.job_rc)
    elif job.state == PENDING_COMPLETING:
        bookkeeping.batch_ended(ctld, job, message.job_rc)
    elif job.state.base in (JobBase.RUNNING, JobBase.SUSPENDED):
        if message.slurm_rc:
            node = ctld.nodes_by_name[message.node_name]
            ctld.drain(node, "batch job complete failure")
        bookkeeping.batch_ended(ctld, job, message.job_rc)
        await end_by_status(ctld, job, message.job_rc)
    ctld.answer(envelope, rc)


def _is_of_another_run(job: JobRecord, message: RequestCompleteBatchScript) -> bool:
    """Return whether a report is of a run that was given up. Pure."""
    names = [node.name for node in job.nodes]
    # A prolog that fails may be any node's; a script runs on the first.
    hosts = names if message.slurm_rc else names[:1]
    return message.restart_cnt != job.restart_cnt or message.node_name not in hosts


async def complete_job_allocation(
    ctld: Controller, envelope: Envelope, message: RequestCompleteJobAllocation
) -> None:
    """Note that srun is done with the allocation it made.

    Answers ESLURM_INVALID_JOB_ID, ESLURM_ALREADY_DONE for a job that is over, or
    ESLURM_JOB_PENDING for one that has not started. In Slurm: `job_complete()` of job_mgr.c.
    """
    job = ctld.jobs.get(message.job_id)
    rc = SLURM_SUCCESS
    if job is None:
        rc = ESLURM_INVALID_JOB_ID
    elif denied := authority.refusal(ctld, envelope, job.desc.uid):
        rc = denied
    elif job.state.finished:
        rc = ESLURM_ALREADY_DONE
        job.exit_late(message.job_rc)
    elif job.state.base is JobBase.PENDING:
        rc = ESLURM_JOB_PENDING
    else:
        job.lose_client()
        await end_by_status(ctld, job, message.job_rc)
    ctld.answer(envelope, rc)


async def end_by_status(ctld: Controller, job: JobRecord, job_rc: int) -> None:
    """End a running job as the wait status of its script or srun says."""
    limit_us = job.limit_us + ctld.site.conf.over_time_limit_min * 60 * SECOND
    past_limit = job.limit_us != INFINITE and ctld.now_us > limit_us
    completion = decide(job_rc, past_limit=past_limit)
    await end_job(ctld, job, completion.base, completion.reason, exit_code=job_rc)


async def end_job(
    ctld: Controller,
    job: JobRecord,
    base: JobBase,
    reason: str,
    *,
    exit_code: int | None = None,
    request: type[RequestTerminateJob] = RequestTerminateJob,
) -> None:
    """End a job that has nodes: COMPLETING until all of them report that it is gone.

    *request* is what they are told with. Without an *exit_code* the job keeps what it has.
    """
    job.end_run(ctld.now_us, reason, exit_code)
    bookkeeping.run_ended(ctld, job, base.name)
    ctld.set_job(job, COMPLETING[base])
    await staging.ended(ctld, job)
    await _release(ctld, job, request)


async def requeue_after_node_failure(ctld: Controller, job: JobRecord) -> None:
    """Send a job whose node failed back into the queue, once its other nodes have let it go."""
    job.end_run(ctld.now_us, Reason.NODE_DOWN)
    if job.desc.ckpt_interval_min and job.ckpt_us >= 0:
        job.restart_from(f"{job.ckpt_dir}/{job.job_id}")
    bookkeeping.run_ended(ctld, job, JobBase.NODE_FAIL.name)
    ctld.set_job(job, NODE_FAIL)
    await staging.ended(ctld, job)
    job.leave_run()
    ctld.set_job(job, PENDING)
    ctld.set_job(job, PENDING_COMPLETING)
    await _release(ctld, job, RequestTerminateJob, job_state="NODE_FAIL")


async def launch_unanswered(ctld: Controller, job: JobRecord) -> None:
    """Send a batch job back into the queue whose launch no node answered; the second time it fails.

    The script may run all the same: its node is told that it is over.
    """
    if job.launch_unanswered() == 1 and job.requeue:
        await requeue_after_node_failure(ctld, job)
    else:
        await end_by_status(ctld, job, _NEVER_LAUNCHED)


_NEVER_LAUNCHED: Final = 1
"""The wait status of a batch job that was given up: as of a script that a signal has ended."""

REQUEUED_HELD: Final = "job requeued in held state"
LAUNCH_FAILED_HELD: Final = "launch failed requeued held"
_SPECIAL_EXIT_HELD: Final = "job requeued in special exit state"


def hold_requeued(job: JobRecord, text: str = REQUEUED_HELD, *, special_exit: bool = False) -> None:
    """Hold a job that goes back into the queue; *text* is shown instead of the usual reason."""
    job.hold_after_run(_SPECIAL_EXIT_HELD if special_exit else text, special_exit=special_exit)


async def requeue(
    ctld: Controller, job: JobRecord, *, preempted: bool = False, unlaunched: bool = False
) -> None:
    """Send a running job back into the queue, once its nodes have let it go.

    Slurm passes through these states in one request, and no client sees those between; accounting
    is told whether the job was *preempted*. The run of an *unlaunched* one counts as no restart.
    """
    job.give_up_run(ctld.now_us, unlaunched=unlaunched)
    bookkeeping.requeued(ctld, job, preempted=preempted)
    ctld.set_job(job, PENDING_REQUEUE)
    await staging.ended(ctld, job)
    if unlaunched:
        job.count_no_restart()
        ctld.set_job(job, PENDING_COMPLETING)
        await _release(ctld, job, RequestTerminateJob, job_state="COMPLETING")
        return
    flag = job.state.flags & JobFlag.STAGE_OUT
    ctld.set_job(job, PENDING_REQUEUE_COMPLETING.having(flag))
    ctld.set_job(job, PENDING_REQUEUE.having(flag))
    job.leave_run()
    ctld.set_job(job, PENDING)
    ctld.set_job(job, PENDING_COMPLETING)
    await _release(ctld, job, RequestTerminateJob, job_state="COMPLETING")


async def _release(
    ctld: Controller,
    job: JobRecord,
    request: type[RequestTerminateJob],
    *,
    job_state: str = "",
) -> None:
    """Tell the clients and the nodes of a job that it is over."""
    suspensions.forget(ctld, job)
    job.end_launch()
    if ctld.periodic:
        checkpoint_times.forget(ctld, job.job_id)
    for srun in clients(job):
        ctld.send(srun, SrunJobComplete(job_id=job.job_id))
    message = termination(job, request, job_state)
    if ctld.site.conf.epilog_slurmctld:
        controller_scripts.start_epilog(ctld, job)
    for node in job.nodes:
        # One that is suspended has given its nodes back already.
        node.give_back(job)
        if node.base is NodeBase.DOWN or node.name in job.nodes_lost:
            if node.base is NodeBase.DOWN and not node.flags & NodeFlag.NO_RESPOND:
                # Set down by hand: it is told, and the job does not wait for it.
                ctld.send(ctld.address(node), message)
            continue
        job.complete_on(node)
        ctld.set_node(node, node.base, node.flags | NodeFlag.COMPLETING)
        ctld.set_node(node, node.working_base(), node.flags)
        ctld.send(ctld.address(node), message)
    if not job.completing_nodes and not job.epilog_running:
        await _cleanup_completing(ctld, job)


def termination(
    job: JobRecord, request: type[RequestTerminateJob] = RequestTerminateJob, job_state: str = ""
) -> RequestTerminateJob:
    """Return what tells a node to end a job."""
    return request(
        job_id=job.job_id,
        restart_cnt=job.restart_cnt,
        job_state=job_state or str(job.state),
        uid=job.desc.uid,
        node_list=job.node_list,
    )


def terminate_again(ctld: Controller, job: JobRecord) -> None:
    """Tell the nodes that have yet to report a job gone once more that it is over."""
    job_state = "COMPLETING" if job.state.base is JobBase.PENDING else ""
    message = termination(job, job_state=job_state)
    for node in job.nodes:
        if node.name in job.completing_nodes:
            ctld.send(ctld.address(node), message)


def clients(job: JobRecord) -> list[Mailbox]:
    """Return the mailboxes of the sruns that still wait on a job, each once."""
    boxes = [job.client, *(step.srun for step in job.steps.values()), *job.step_waiters]
    return [box for box in dict.fromkeys(boxes) if box is not None and box.open]


async def epilog_complete(
    ctld: Controller, envelope: Envelope, message: MessageEpilogComplete
) -> None:
    """Note that a job is gone from a node; the last node ends COMPLETING and frees a pass.

    Nothing is answered. In Slurm: `job_epilog_complete()` of job_mgr.c.
    """
    job = ctld.jobs.get(message.job_id)
    node = ctld.nodes_by_name[message.node_name]
    if leftovers.forget_leftover(ctld, node, (message.job_id, message.restart_cnt)):
        if job is not None:
            await steps.epilog_complete(ctld, job, node.name)
        ctld.request_pass()
        return
    if job is None:
        return
    if message.restart_cnt != job.restart_cnt or node.name not in job.completing_nodes:
        await steps.epilog_complete(ctld, job, node.name)
        return
    if message.return_code:
        ctld.drain(node, "Epilog error")
    await node_is_gone(ctld, job, node, reported=True)


async def node_is_gone(
    ctld: Controller, job: JobRecord, node: NodeRecord, *, reported: bool = False
) -> None:
    """Note that a completing job has left a node, as it has *reported*, or with the node itself."""
    job.gone_from(node, ctld.process.cause)
    if not job.completing_nodes:
        await _left_last(ctld, job)
    if node.is_left(ctld.now_us):
        ctld.set_node(node, node.base, node.flags & ~NodeFlag.COMPLETING)
    if not job.completing_nodes:
        await _after_last(ctld, job, node if reported else None)
        return
    if reported:
        await steps.epilog_complete(ctld, job, node.name)
    if node.usable:
        ctld.request_late_pass()


async def gone(ctld: Controller, job: JobRecord) -> None:
    """Let a job be over that has left all of its nodes, and let the next start."""
    await _left_last(ctld, job)
    await _after_last(ctld, job, None)


async def _left_last(ctld: Controller, job: JobRecord) -> None:
    """Let a job be over as it leaves its last node, which becomes IDLE after that.

    While EpilogSlurmctld runs the job stays COMPLETING; its nodes are free all the same.
    Source: make_node_idle() and cleanup_completing() of Slurm 18.08.
    """
    ctld.wait_for(job, *job.leave())
    if not job.epilog_running:
        await _cleanup_completing(ctld, job)


async def _after_last(ctld: Controller, job: JobRecord, node: NodeRecord | None) -> None:
    """Let the next jobs start; *node* is the one whose report a job was over with, if one was."""
    if node is not None:
        await steps.epilog_complete(ctld, job, node.name)
    if ctld.bb is not None:
        await staging.look_at_dependencies(ctld)
    await ctld.moments.nodes_left(ctld)


async def _cleanup_completing(ctld: Controller, job: JobRecord) -> None:
    """End COMPLETING: what steps are left are deleted; the job is over, or waits again."""
    bookkeeping.batch_ended(ctld, job, NO_VAL)
    await _delete_steps(ctld, job)
    if ctld.bb is not None:
        await staging.late_stage_out(ctld, job)
        if await staging.holds_completing(ctld, job):
            return
    if job.state == PENDING_COMPLETING:
        ctld.set_job(job, PENDING)
        _back_to_queue(ctld, job)
        return
    ctld.set_job(job, job.state.lacking(JobFlag.COMPLETING))
    staging.settle_stage_out(ctld, job)
    again = after_exit(ctld.site.conf, job)
    if again is AfterExit.END:
        finish(ctld, job)
        return
    if again is AfterExit.HOLD:
        hold_requeued(job, special_exit=True)
    job.wait_again()
    ctld.set_job(job, PENDING)
    _back_to_queue(ctld, job)


async def _delete_steps(ctld: Controller, job: JobRecord) -> None:
    """Delete the steps that are left of a job; their order does not matter."""
    trace, who = ctld.site.trace, ctld.process
    before, ends = who.cause, []
    for step in list(job.steps.values()):
        trace.choose(who, before)
        await steps.delete(ctld, step)
        ends.append(who.cause)
    trace.join(who, *ends)


def finish(ctld: Controller, job: JobRecord) -> None:
    """Account a job that is over for good, and have it purged once it is old enough."""
    account(ctld, job, job.state.base)
    if job.start_us >= 0 and job.nodes:
        arrays.ended(ctld, job)
    eligible.changed(ctld, job)
    if ctld.awaited:
        awaited.over(ctld, job)
    purge_in_time(ctld, job)


def purge_in_time(ctld: Controller, job: JobRecord) -> None:
    """Have a job that is over purged at the first scan after it is old enough."""
    conf = ctld.site.conf
    interval_us = purge_interval_us(conf.min_job_age_s)
    old_us = job.end_us + conf.min_job_age_s * SECOND
    ctld.purge_at(max(-(-old_us // interval_us) * interval_us, ctld.now_us), job)


def run_again(ctld: Controller, job: JobRecord) -> None:
    """Send a job that is over, and has left its nodes, back into the queue."""
    job.wait_again()
    ctld.set_job(job, PENDING)
    if job.array is not None and job.nodes:
        # It was counted as ended when it was over.
        arrays.started(job)
    _back_to_queue(ctld, job)


def _back_to_queue(ctld: Controller, job: JobRecord) -> None:
    if job.special_exit:
        ctld.set_job(job, PENDING_SPECIAL_EXIT)
    arrays.ended(ctld, job)
    begin_us = ctld.now_us + (LIFETIME_S + 1) * SECOND
    job.back_to_queue(ctld.now_us, begin_us, ctld.books.next_index())
    # Its partitions may have other limits than when it was submitted.
    admission.ask_anew(ctld, job)
    eligible.settle(ctld, job)


async def purge(ctld: Controller, job: JobRecord) -> None:
    """Forget a job that is old enough, unless its burst buffer is still needed."""
    old_us = job.end_us + ctld.site.conf.min_job_age_s * SECOND
    if ctld.jobs.get(job.job_id) is not job or not job.state.finished or ctld.now_us < old_us:
        # It has run again since this purge was planned.
        return
    if ctld.bb is not None and not await staging.may_purge(ctld, job):
        return
    if ctld.bb is not None and not job.staged_out:
        job.end_stage_out()
        eligible.changed(ctld, job)
    eligible.forget(ctld, job)
    await ctld.site.hooks.call(slurm_ckpt_free_job, ctld.process, job.check_job, about=job.about)
    if job.batch and can_checkpoint(ctld.site.conf):
        ctld.last_runs[job.job_id] = job.restart_cnt
    del ctld.jobs[job.job_id]
    if still_there := clients(job):
        ctld.outlasting = {box: job_id for box, job_id in ctld.outlasting.items() if box.open}
        ctld.outlasting |= dict.fromkeys(still_there, job.job_id)
    arrays.purged(ctld, job)


async def end_unlaunched(ctld: Controller, job: JobRecord, base: JobBase) -> None:
    """End a job that has no nodes."""
    await end_job(ctld, job, base, Reason.NONE)
