"""The controller's agent: what has not got to a node or a client is sent again.

Slurm's agent tries every RPC_RETRY_INTERVAL, as long as the message still matters
there. Tries that are bound to fail are left out: what a dead slurmd was to have waits until another
registers. A batch launch that no node answers is not tried again: its job goes back into the queue,
once.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from simctl.ctld.controller import Controller
from simctl.ctld.jobs.completion import end_by_status, launch_unanswered
from simctl.ctld.jobs.pending import cancel_without_client
from simctl.ctld.nodes.leftovers import is_leftover
from simctl.ctld.nodes.reachability import not_responding, unreached
from simctl.ctld.state.notices import AgentRetry, ClientGone
from simctl.ctld.state.records import JobRecord, NodeRecord
from simctl.kernel.fabric import NEVER_US, Envelope, Mailbox, Unanswered
from simctl.kernel.procs import wait_status
from simctl.wire.errno import (
    ESLURM_USER_ID_MISSING,
    ESLURMD_CREDENTIAL_EXPIRED,
    ESLURMD_CREDENTIAL_REVOKED,
    ESLURMD_INVALID_JOB_CREDENTIAL,
)
from simctl.wire.ids import SECOND, SLURM_BATCH_SCRIPT
from simctl.wire.messages import (
    SUSPEND_JOB,
    Message,
    RequestAbortJob,
    RequestBatchJobLaunch,
    RequestKillPreempted,
    RequestKillStepTimelimit,
    RequestKillTimelimit,
    RequestLaunchProlog,
    RequestNodeRegistrationStatus,
    RequestPing,
    RequestSignalTasks,
    RequestSuspendInt,
    RequestTerminateJob,
    ResponseJobOver,
    ResponseResourceAllocation,
    ResponseSlurmRc,
    SrunJobComplete,
    SrunNodeFail,
)
from simctl.wire.states import CONFIGURING, RUNNING, JobBase, NodeFlag

RETRY_US: Final = 60 * SECOND
"""Slurm's RPC_RETRY_INTERVAL."""


def not_sent(ctld: Controller, to: Mailbox | None, message: Message) -> None:
    """Note that a message was not sent: keep it, if only a cut link stood in its way.

    A node whose slurmd is not there gets no job until it is heard of.
    """
    node = ctld.nodes_by_name.get(to.host.name) if to is not None else None
    if node is not None and to is not None and to.name == node.address:
        given_up_us = unreached(ctld, node)
        if type(message) is RequestPing:
            ctld.pinging_until_us = given_up_us
    if type(message) not in _WANTED:
        return
    job = _job(ctld, message)
    if isinstance(message, ResponseResourceAllocation) and (to is None or not to.open):
        if job is not None:
            ctld.mailbox.post(ClientGone(job))
        return
    if to is None:
        return
    run = job.restart_cnt if job is not None else -1
    if ctld.site.fabric.holds_back(ctld.process, to):
        _plan(ctld, AgentRetry(to, message, run))
    elif to.process.daemon == "slurmd" and to.host.up and type(message) not in _REGISTRATION_TELLS:
        ctld.unsent.setdefault(to.host.name, []).append(AgentRetry(to, message, run, ctld.now_us))


def slurmd_is_back(ctld: Controller, node: NodeRecord, *, same: bool) -> None:
    """Plan anew what could not be sent to a node while it had no slurmd; unless it has rebooted."""
    for notice in ctld.unsent.pop(node.name, ()) if same else ():
        tries = max(1, -((notice.tried_us - ctld.now_us) // RETRY_US))
        ctld.mailbox.post_at(notice.tried_us + tries * RETRY_US, notice)
    if not same:
        ctld.unsent.pop(node.name, None)


def _plan(ctld: Controller, notice: AgentRetry) -> None:
    fabric = ctld.site.fabric
    due_us = fabric.next_try_us(ctld.mailbox, notice.to, RETRY_US, over_cuts=False)
    if due_us == NEVER_US and isinstance(notice.message, ResponseResourceAllocation):
        # By then the client has given up, which ends the job.
        due_us = ctld.now_us + RETRY_US
    if due_us < NEVER_US:
        ctld.mailbox.post_at(due_us, notice)


async def retry(ctld: Controller, _: Envelope, notice: AgentRetry) -> None:
    """Send a message again, if it is still wanted."""
    to = ctld.site.fabric.find(notice.to.name) or notice.to
    job = _job(ctld, notice.message)
    if (job is None or job.restart_cnt == notice.run) and _is_wanted(ctld, to, notice.message):
        _send_again(ctld, to, notice.message)


def _send_again(ctld: Controller, to: Mailbox, message: Message) -> None:
    job = _job(ctld, message)
    if not isinstance(message, RequestBatchJobLaunch) or job is None:
        ctld.send(to, message)
        return
    if message.credential is not None:
        # The one it had may be void by now.
        fresh = msgspec.structs.replace(message.credential, made_us=ctld.now_us)
        credential = ctld.site.keys.signer.sign(fresh)
        message = msgspec.structs.replace(message, credential=credential)
    if ctld.send(to, message):
        job.launch_again(ctld.now_us)


async def unanswered(ctld: Controller, _: Envelope, notice: Unanswered) -> None:
    """Try a request again that was not answered, or give it up.

    A signal that may have been delivered is not tried again: it would strike a second time. Where
    a connection broke a new one is made at once.
    """
    request, to = notice.request, notice.by
    node = ctld.nodes_by_name.get(to.host.name)
    if not notice.struck:
        to = ctld.site.fabric.find(to.name) or to
        if not isinstance(request, RequestSignalTasks) and _is_wanted(ctld, to, request):
            _send_again(ctld, to, request)
        return
    if node is not None and to.name == node.address:
        not_responding(ctld, node)
    if isinstance(request, RequestSignalTasks) and not notice.lost:
        return
    if not _is_wanted(ctld, to, request):
        return
    job = _job(ctld, request)
    if isinstance(request, ResponseResourceAllocation) and not to.open and job is not None:
        await cancel_without_client(ctld, job)
    elif isinstance(request, RequestBatchJobLaunch) and job is not None:
        await launch_unanswered(ctld, job)
    elif not notice.for_ever:
        again = AgentRetry(to, request, job.restart_cnt if job is not None else -1)
        ctld.mailbox.post_at(ctld.now_us + RETRY_US, again)


async def client_gone(ctld: Controller, _: Envelope, notice: ClientGone) -> None:
    """End a job that was allocated to a client which has gone away."""
    await cancel_without_client(ctld, notice.job)


def _job(ctld: Controller, message: Message) -> JobRecord | None:
    return ctld.jobs.get(getattr(message, "job_id", 0))


def _is_wanted(ctld: Controller, to: Mailbox, message: Message) -> bool:
    wanted = _WANTED.get(type(message))
    return wanted is not None and wanted(ctld, to, message)


def _launch(ctld: Controller, _: Mailbox, message: RequestBatchJobLaunch) -> bool:
    job = _job(ctld, message)
    return (
        job is not None
        and job.state.base is JobBase.RUNNING
        and job.restart_cnt == message.restart_cnt
    )


def _end(ctld: Controller, to: Mailbox, message: RequestTerminateJob) -> bool:
    job = _job(ctld, message)
    completing = (
        job is not None
        and job.restart_cnt == message.restart_cnt
        and to.host.name in job.completing_nodes
    )
    return completing or is_leftover(ctld, to.host.name, message.job_id, message.restart_cnt)


def _signal(ctld: Controller, _: Mailbox, message: RequestSignalTasks) -> bool:
    job = _job(ctld, message)
    if job is None or job.state.base is not JobBase.RUNNING:
        # Slurm sends it as long as it has the job; it strikes nothing that has ended.
        return job is not None and job.state.completing
    return message.step_id in job.steps or message.step_id == SLURM_BATCH_SCRIPT


def _step_limit(ctld: Controller, _: Mailbox, message: RequestKillStepTimelimit) -> bool:
    job = _job(ctld, message)
    running = job is not None and job.state.base is JobBase.RUNNING
    return job is not None and running and message.step_id in job.steps


def _prolog(ctld: Controller, _: Mailbox, message: RequestLaunchProlog) -> bool:
    job = _job(ctld, message)
    return job is not None and job.state.configuring and job.restart_cnt == message.restart_cnt


def _suspension(ctld: Controller, _: Mailbox, message: RequestSuspendInt) -> bool:
    job = _job(ctld, message)
    base = JobBase.SUSPENDED if message.op == SUSPEND_JOB else JobBase.RUNNING
    return job is not None and job.state.base is base


def _client(_: Controller, to: Mailbox, __: Message) -> bool:
    return to.open


def _allocation(ctld: Controller, _: Mailbox, message: ResponseResourceAllocation) -> bool:
    job = _job(ctld, message)
    return job is not None and not job.state.finished and not job.state.completing


_REGISTRATION_TELLS: Final = frozenset(
    {
        *(RequestTerminateJob, RequestKillTimelimit, RequestKillPreempted, RequestAbortJob),
        RequestLaunchProlog,
    }
)
"""What a node is told anew when it registers, if that is still to be done."""

_WANTED: Final[dict[type[Message], Callable[[Controller, Mailbox, Any], bool]]] = {
    RequestBatchJobLaunch: _launch,
    RequestTerminateJob: _end,
    RequestKillTimelimit: _end,
    RequestKillPreempted: _end,
    RequestKillStepTimelimit: _step_limit,
    RequestLaunchProlog: _prolog,
    RequestSuspendInt: _suspension,
    RequestAbortJob: lambda _ctld, _to, _message: True,
    RequestSignalTasks: _signal,
    ResponseResourceAllocation: _allocation,
    ResponseJobOver: _client,
    SrunJobComplete: _client,
    SrunNodeFail: _client,
}
"""The messages that are sent again, and what tells whether one is still wanted."""


_NON_STARTABLE = (
    ESLURM_USER_ID_MISSING,
    ESLURMD_INVALID_JOB_CREDENTIAL,
    ESLURMD_CREDENTIAL_EXPIRED,
    ESLURMD_CREDENTIAL_REVOKED,
)
"""Why nothing of a job is launched, nor ever will be: it fails."""


async def response_rc(ctld: Controller, envelope: Envelope, message: ResponseSlurmRc) -> None:
    """Handle slurmd's answer to a request; one that refuses a launch is told in the trace.

    Whatever a node answers, it is there. One that answers a ping, and had not answered before, is
    asked what it runs.
    """
    sender = envelope.sender
    node = ctld.nodes_by_name.get(sender.host.name) if sender is not None else None
    if node is not None:
        node.heard(ctld.now_us)
        if message.answers == RequestPing.rpc and node.flags & NodeFlag.NO_RESPOND:
            ctld.send(sender, RequestNodeRegistrationStatus())
    if message.return_code:
        ctld.site.trace.note(
            "log",
            "request_refused",
            ctld.process,
            args={"rpc": message.answers, "return_code": message.return_code},
        )
        await _launch_refused(ctld, message)


_LAUNCHES = (RequestBatchJobLaunch.rpc, RequestLaunchProlog.rpc)


async def _launch_refused(ctld: Controller, message: ResponseSlurmRc) -> None:
    """End a job of which a node says that nothing of it could ever start there.

    The node takes it for one which is over, because it bears the id of one that slurmctld has
    forgotten with its state; or its credential is bad.
    """
    job = ctld.jobs.get(message.job_id)
    if job is None or message.answers not in _LAUNCHES or message.return_code not in _NON_STARTABLE:
        return
    run = getattr(message.request, "restart_cnt", job.restart_cnt)
    if run == job.restart_cnt and job.state in (RUNNING, CONFIGURING):
        await end_by_status(ctld, job, wait_status(1))
