"""What should run on a node and does not, or the other way round: seen when the node registers.

A step daemon may have been killed, or a slurmd before it forked one or while it ended a job.
"""

from typing import Final

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import completion, controller_scripts, suspensions
from simctl.ctld.nodes import reachability
from simctl.ctld.nodes.leftovers import belongs
from simctl.ctld.state.notices import LookDue
from simctl.ctld.state.records import JobRecord, NodeRecord, StepRecord
from simctl.kernel.fabric import Envelope
from simctl.kernel.procs import SIGKILL
from simctl.wire.ids import SECOND, SLURM_BATCH_SCRIPT
from simctl.wire.messages import (
    MessageNodeRegistrationStatus,
    RequestNodeRegistrationStatus,
    RequestSignalTasks,
    SrunStepMissing,
)
from simctl.wire.states import JobBase, Reason

_BATCH_START_TIMEOUT_S: Final = 10
"""Slurm's default: how long a launch may take before it is looked for."""

_MESSAGE_TIMEOUT_S: Final = 10
"""At most this much of MessageTimeout is added to that."""


def watch(ctld: Controller, node: NodeRecord) -> None:
    """Have a node asked to register when all are asked the next time.

    Such rounds keep no run alive; this does, for something may come of it.
    """
    interval_us = reachability.PINGS_PER_REGISTRATION * reachability.ping_interval_us(ctld)
    due_us = (ctld.now_us // interval_us + 1) * interval_us
    if ctld.looks.get(node.name) != due_us:
        ctld.looks[node.name] = due_us
        ctld.mailbox.post_at(due_us, LookDue(node))


async def look_due(ctld: Controller, _: Envelope, notice: LookDue) -> None:
    """Ask the node, unless it has just been asked or cannot answer; then it registers by itself."""
    node = notice.node
    ctld.looks.pop(node.name, None)
    if ctld.nodes_asked_us != ctld.now_us and reachability.answers(ctld, node):
        ctld.process.cause = 0  # nothing but the time leads to this
        ctld.send(ctld.address(node), RequestNodeRegistrationStatus())


async def look(
    ctld: Controller, node: NodeRecord, message: MessageNodeRegistrationStatus, *, started: bool
) -> None:
    """Compare what a node runs with what it should; it may have a new slurmd that has *started*."""
    listed = {(job_id, step_id) for job_id, step_id, _ in message.steps}
    starting = dict.fromkeys(message.starting)
    young = False
    for job in (*node.jobs.values(), *suspensions.suspended_on(ctld, node)):
        if (job.job_id, job.restart_cnt) in starting:
            continue
        if _lacks_script(job, node, listed):
            if _is_young(ctld, job.launched_us):
                young = True
            else:
                await _script_missing(ctld, job, node)
                continue
        for step in _missing_steps(job, node, listed):
            if _is_young(ctld, step.start_us):
                young = True
            else:
                _tell_srun(ctld, step, node)
    if young:
        watch(ctld, node)
    if started:
        _tell_anew(ctld, node, message)


def _lacks_script(job: JobRecord, node: NodeRecord, listed: set[tuple[int, int]]) -> bool:
    """Return whether a node was sent the script of a job and does not run it. Pure."""
    launched = job.batch and job.nodes[0] is node and job.launched_us >= 0
    return launched and (job.job_id, SLURM_BATCH_SCRIPT) not in listed


def _missing_steps(
    job: JobRecord, node: NodeRecord, listed: set[tuple[int, int]]
) -> list[StepRecord]:
    """Return the steps of a job that should run on a node and do not. Pure."""
    return [
        step
        for step in job.steps.values()
        if node.name in step.layout.nodes
        and not step.reported[step.layout.nodes.index(node.name)]
        and (job.job_id, step.step_id) not in listed
    ]


def _is_young(ctld: Controller, since_us: int) -> bool:
    """Return whether a launch may still be on its way."""
    timeout_s = min(_MESSAGE_TIMEOUT_S, ctld.site.conf.message_timeout_s)
    wait_s = _BATCH_START_TIMEOUT_S + timeout_s
    return ctld.now_us - since_us < wait_s * SECOND


async def _script_missing(ctld: Controller, job: JobRecord, node: NodeRecord) -> None:
    """End a job whose script is gone from its node, or send it back into the queue."""
    ctld.site.trace.note(
        "log", "batch_missing", ctld.process, args={"node": node.name}, job=job.job_id
    )
    if job.requeue:
        await completion.requeue_after_node_failure(ctld, job)
    else:
        await completion.end_job(ctld, job, JobBase.NODE_FAIL, Reason.NONE)


def _tell_srun(ctld: Controller, step: StepRecord, node: NodeRecord) -> None:
    if step.srun is not None and step.srun.open:
        job_id = step.job.job_id
        message = SrunStepMissing(job_id=job_id, step_id=step.step_id, node_list=node.name)
        ctld.send(step.srun, message)


def _tell_anew(ctld: Controller, node: NodeRecord, message: MessageNodeRegistrationStatus) -> None:
    """Tell a new slurmd what the old one may have been at: jobs to end, prologs, dead steps."""
    for job in list(ctld.completing.values()):
        if node.name in job.completing_nodes:
            ctld.send(ctld.address(node), completion.termination(job))
    for job in node.jobs.values():
        if node.name in job.prologs_out:
            controller_scripts.launch_prolog(ctld, job, node)
    for job_id, step_id, restart_cnt in message.steps:
        job_there = ctld.jobs.get(job_id)
        if job_there is None or not belongs(job_there, node, restart_cnt):
            continue
        over = step_id != SLURM_BATCH_SCRIPT and step_id not in job_there.steps
        if over and job_there.state.base is JobBase.RUNNING:
            request = RequestSignalTasks(job_id=job_id, step_id=step_id, signal=SIGKILL)
            ctld.send(ctld.address(node), request)
