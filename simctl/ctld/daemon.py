"""slurmctld as a trio task: one handler an RPC, each a sequence to be read from top to bottom.

Handlers run one after another, as if each held the job write lock from its first line to its last.
So a slow plugin call holds up every other request, as it does in Slurm for nearly all of them.
"""

from collections.abc import Callable
from typing import Any

import attrs

from simctl.ctld import (
    agent,
    completion,
    eligible,
    nodes,
    reconfigure,
    schedule,
    steps,
    submit,
    update,
)
from simctl.ctld.accounting import JobRow, row
from simctl.ctld.cancel import cancel_job_step, kill_job
from simctl.ctld.records import JobArray, JobRecord, NodeRecord, PartRecord
from simctl.kernel.fabric import Envelope, Mailbox, Unanswered
from simctl.kernel.procs import Host, Process, RunsAs, wait_status
from simctl.kernel.turns import Killed, Timer
from simctl.plugins.hooks import About, failed
from simctl.plugins.points.checkpoint import slurm_ckpt_pack_job
from simctl.plugins.points.switch import (
    switch_p_libstate_restore,
    switch_p_libstate_save,
    switch_p_pack_jobinfo,
)
from simctl.plugins.site import Site
from simctl.wire.buf import Buf
from simctl.wire.errno import SLURM_SUCCESS
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    Message,
    MessageEpilogComplete,
    MessageNodeRegistrationStatus,
    RequestCancelJobStep,
    RequestCompleteBatchScript,
    RequestCompleteJobAllocation,
    RequestJobReady,
    RequestJobRequeue,
    RequestJobStepCreate,
    RequestKillJob,
    RequestPing,
    RequestReconfigure,
    RequestResourceAllocation,
    RequestShutdown,
    RequestStepComplete,
    RequestSubmitBatchJob,
    RequestUpdateJob,
    RequestUpdateNode,
    ResponseSlurmRc,
)
from simctl.wire.states import (
    JobState,
    NodeBase,
    NodeFlag,
    check_job_change,
    node_text,
)

PERIODIC_US = 30 * SECOND
"""How far apart the checks of time limits are."""

PROTOCOL_VERSION = 18 << 8 | 8

_TOP_PRIORITY = 4294901760
"""What the first job's priority is one below."""


@attrs.frozen
class PassDue:
    """Time for a scheduler pass."""


@attrs.frozen
class LimitDue:
    """Time to look at a job's time limit."""

    job: JobRecord
    run: int


@attrs.frozen
class PurgeDue:
    """Time to forget a job."""

    job: JobRecord


@attrs.frozen
class BeginDue:
    """Time for a job that waited for its begin time to join its queue."""

    job: JobRecord


class Slurmctld:
    """The controller."""

    def __init__(
        self,
        site: Site,
        host: Host,
        *,
        uid: int,
        records: list[NodeRecord],
        partitions: list[PartRecord],
    ) -> None:
        self.site = site
        self.process: Process = site.procs.add(
            host,
            ppid=1,
            daemon="slurmctld",
            role="slurmctld",
            uid=uid,
            runs_as=RunsAs.SLURM_USER,
        )
        self.mailbox = site.fabric.mailbox(self.process, "slurmctld", listed=True)
        self.nodes = records
        self.nodes_by_name = {node.name: node for node in records}
        self.partitions = {part.name: part for part in partitions}
        self.jobs: dict[int, JobRecord] = {}
        self.ended_rows: dict[int, JobRow] = {}
        self.next_job_id = site.conf.first_job_id
        self.last_queue_number = -1
        self.last_priority = _TOP_PRIORITY
        self.dependents: dict[int, list[JobRecord]] = {}
        """The jobs that wait for a job, by its id."""
        self.singletons: dict[tuple[int, str], list[JobRecord]] = {}
        """Jobs by user and name, of those names that a singleton has asked for."""
        self.arrays: dict[int, JobArray] = {}
        """Job arrays, by the id they were submitted under."""
        self.last_pass_us = -1
        self.pass_is_due = False
        self.ping_timer: Timer | None = None
        self.leftovers: dict[str, dict[tuple[int, int], None]] = {}
        """Runs of jobs that are over, by the node that has yet to report them gone."""
        self._handlers: dict[type, Callable[[Slurmctld, Envelope, Any], Any]] = {
            MessageNodeRegistrationStatus: nodes.node_registration,
            RequestSubmitBatchJob: submit.submit_batch_job,
            RequestResourceAllocation: submit.resource_allocation,
            RequestJobReady: submit.job_ready,
            RequestJobStepCreate: steps.job_step_create,
            RequestStepComplete: steps.step_complete,
            RequestCompleteBatchScript: completion.complete_batch_script,
            RequestCompleteJobAllocation: completion.complete_job_allocation,
            MessageEpilogComplete: completion.epilog_complete,
            RequestKillJob: kill_job,
            RequestCancelJobStep: cancel_job_step,
            RequestUpdateJob: update.update_job,
            RequestJobRequeue: update.job_requeue,
            RequestUpdateNode: update.update_node,
            RequestPing: _ping,
            RequestReconfigure: reconfigure.reconfigure,
            ResponseSlurmRc: nodes.response_rc,
            PassDue: _pass_due,
            LimitDue: nodes.limit_due,
            PurgeDue: _purge_due,
            BeginDue: _begin_due,
            nodes.PingDue: nodes.ping_due,
            agent.AgentRetry: agent.retry,
            agent.ClientGone: agent.client_gone,
            Unanswered: agent.unanswered,
        }

    @property
    def now_us(self) -> int:
        """Virtual time."""
        return self.site.kernel.now_us

    def is_operator(self, uid: int) -> bool:
        """Tell whether a user may do what only root, SlurmUser and operators may."""
        if uid in (0, self.process.uid):
            return True
        users = self.site.users.values()
        return any(
            user.uid == uid and user.admin in ("operator", "administrator") for user in users
        )

    def next_id(self) -> int:
        """Return the next job id that is free; after MaxJobId FirstJobId follows."""
        conf = self.site.conf
        job_id = self.next_job_id
        while job_id in self.jobs:
            job_id = job_id + 1 if job_id < conf.max_job_id else conf.first_job_id
        self.next_job_id = job_id + 1 if job_id < conf.max_job_id else conf.first_job_id
        return job_id

    # Its life.

    def start(self) -> None:
        """Start the daemon in a turn of its own."""
        self.process.start(self._run, "slurmctld")

    def shut_down(self) -> None:
        """Have the cluster stop: the nodes are told, then the controller saves and stops."""
        self.mailbox.post(RequestShutdown())

    async def _run(self) -> None:
        problem = await self._set_up()
        if problem:
            self.site.trace.note("log", "fatal", self.process, args={"text": problem})
            self.mailbox.close()
            self.process.exit(wait_status(1))
            return
        handlers = self._handlers
        receive = self.mailbox.receive
        while True:
            envelope = await receive()
            message = envelope.message
            if type(message) is RequestShutdown:
                for node in self.nodes:
                    self.send(self.address(node), message)
                break
            await handlers[type(message)](self, envelope, message)
        await self._save_and_stop()

    async def _set_up(self) -> str:
        """Load the plugins and restore what they saved; return what is fatal, or nothing."""
        hooks = self.site.hooks
        if not await hooks.load(self.process, "checkpoint"):
            return "failed to initialize checkpoint plugin"
        if not await hooks.load(self.process, "switch"):
            return "failed to initialize switch plugin"
        about = About(besides={"recover": 1} if self.site.model == "modern" else {})
        saved = self.site.conf.state_save_location
        if failed(await hooks.call(switch_p_libstate_restore, self.process, saved, about=about)):
            return "failed to initialize switch plugin: its saved state cannot be restored"
        return ""

    async def die(self, problem: str) -> None:
        """Stop at once, as slurmctld does where it cannot go on; does not return."""
        self.site.trace.note("log", "fatal", self.process, args={"text": problem})
        self.mailbox.close()
        self.process.exit(wait_status(1))
        raise Killed

    async def _save_and_stop(self) -> None:
        """Save the switch's state, pack what jobs and steps are left, and unload."""
        hooks = self.site.hooks
        who = self.process
        await hooks.call(switch_p_libstate_save, who, self.site.conf.state_save_location)
        for job in self.jobs.values():
            await hooks.call(
                slurm_ckpt_pack_job, who, job.check_job, Buf(), PROTOCOL_VERSION, about=job.about
            )
            for step in job.steps.values():
                about = step.about
                await hooks.call(switch_p_pack_jobinfo, who, step.switch_job, Buf(), about=about)
                await hooks.call(
                    slurm_ckpt_pack_job, who, step.check_job, Buf(), PROTOCOL_VERSION, about=about
                )
        if self.site.model == "guide":
            await hooks.unload(who, "switch")
            await hooks.unload(who, "checkpoint")
        self.mailbox.close()
        who.exit(0)

    # Messages.

    def send(self, to: Mailbox | None, message: Message) -> bool:
        """Send a message; false when nobody is there. What a cut link holds back is sent later."""
        if self.site.fabric.send(self.process, to, message, self.mailbox):
            return True
        agent.not_sent(self, to, message)
        return False

    def address(self, node: NodeRecord) -> Mailbox | None:
        """Return where the slurmd of a node receives."""
        return self.site.fabric.addresses.get(node.address)

    def answer(self, envelope: Envelope, return_code: int) -> None:
        """Answer a request with a return code."""
        if not self.send(envelope.sender, ResponseSlurmRc.to(envelope.message, return_code)):
            timeout_us = self.site.conf.message_timeout_s * SECOND
            self.site.fabric.answer_lost(envelope, self.mailbox, timeout_us)

    # States.

    def set_job(self, job: JobRecord, after: JobState) -> None:
        """Change a job's state, if the table allows it."""
        before = job.state
        check_job_change(before, after)
        job.state = after
        self.site.trace.state(
            self.process,
            "job_state",
            before=str(before),
            after=str(after),
            reason=job.reason,
            job=job.job_id,
        )

    def set_node(self, node: NodeRecord, base: NodeBase, flags: NodeFlag) -> None:
        """Change a node's state; its partitions learn whether it may start jobs."""
        before_base, before_flags = node.base, node.flags
        if base is before_base and flags == before_flags:
            return
        was_usable = before_base is NodeBase.IDLE and not before_flags
        node.base = base
        node.flags = flags
        usable = base is NodeBase.IDLE and not flags
        if usable != was_usable:
            for part in node.partitions:
                if usable:
                    part.offer(node)
                else:
                    part.withdraw()
        trace = self.site.trace
        if trace.recording:
            trace.state(
                self.process,
                "node_state",
                before=node_text(before_base, before_flags),
                after=node_text(base, flags),
                reason=node.reason or "None",
                node=node.name,
            )
        else:
            self.process.cause = trace.skip()

    def drain(self, node: NodeRecord, reason: str) -> None:
        """Let no more jobs start on a node, until an administrator resumes it."""
        node.reason = node.reason or reason
        self.set_node(node, node.base, node.flags | NodeFlag.DRAIN)

    # What comes later.

    def request_pass(self) -> None:
        """Have a pass run as soon as the last one is batch_sched_delay ago, if anybody waits."""
        if self.pass_is_due or not any(part.waiting for part in self.partitions.values()):
            return
        self.pass_is_due = True
        due_us = self.now_us
        if self.last_pass_us >= 0:
            delay_us = self.site.conf.scheduler_parameters.batch_sched_delay_us
            due_us = max(due_us, self.last_pass_us + delay_us)
        self.mailbox.post_at(due_us, PassDue())

    def pass_at(self, due_us: int) -> None:
        """Have a pass run at a moment, whatever else asks for one before."""
        self.mailbox.post_at(due_us, PassDue())

    def purge_at(self, due_us: int, job: JobRecord) -> None:
        """Have a finished job forgotten at a moment."""
        self.mailbox.post_at(due_us, PurgeDue(job))

    def begin_at(self, due_us: int, job: JobRecord) -> None:
        """Have a job join its queue at a moment."""
        self.mailbox.post_at(due_us, BeginDue(job))

    def watch_limit(self, job: JobRecord) -> None:
        """Look at a job's time limit at the check before it is reached, and at the one after."""
        over_us = self.site.conf.over_time_limit_min * 60 * SECOND
        kill_us = -(-(job.limit_us + over_us) // PERIODIC_US) * PERIODIC_US
        warn_us = kill_us - PERIODIC_US
        job.limit_timer = self.mailbox.post_at(
            warn_us if warn_us > self.now_us else kill_us, LimitDue(job, job.restart_cnt)
        )

    # Reports.

    def rows(self) -> list[JobRow]:
        """Return a row for every job, as it ended or as it stands, by id and array task."""
        found = dict(self.ended_rows)
        for job in self.jobs.values():
            if job.job_id not in found or not job.state.finished:
                found[job.job_id] = row(job, str(job.state), schedule.reason_to_wait(job))
        rows = found.values()
        return sorted(
            rows,
            key=lambda each: (each.array_job_id or each.job_id, each.array_task_id, each.job_id),
        )


async def _ping(ctld: Slurmctld, envelope: Envelope, message: RequestPing) -> None:
    """Answer that the controller is there."""
    ctld.answer(envelope, SLURM_SUCCESS)


async def _pass_due(ctld: Slurmctld, _: Envelope, __: PassDue) -> None:
    ctld.last_pass_us = ctld.now_us
    await schedule.run_pass(ctld)


async def _purge_due(ctld: Slurmctld, _: Envelope, message: PurgeDue) -> None:
    await completion.purge(ctld, message.job)


async def _begin_due(ctld: Slurmctld, _: Envelope, message: BeginDue) -> None:
    eligible.settle(ctld, message.job)
