"""slurmctld as a trio task: one handler an RPC, each a sequence to be read from top to bottom.

Handlers run one after another, as if each held the job write lock from its first line to its last.
So a slow plugin call holds up every other request, as it does in Slurm for nearly all of them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from simctl.ctld import authority
from simctl.ctld.checkpoints import checkpoints
from simctl.ctld.controller import Controller, Fatal, Moments
from simctl.ctld.jobs import awaited, completion, deadlines, eligible, prologs, staging, suspend
from simctl.ctld.jobs.pending import end_pending
from simctl.ctld.nodes import node_switch, reachability
from simctl.ctld.recovery import (
    agent,
    buffers_at_start,
    loss,
    missing,
    pings,
    registration,
    restart,
    restored,
    resync,
)
from simctl.ctld.reporting import bookkeeping, info
from simctl.ctld.reporting.job_view import live
from simctl.ctld.requests import (
    answers,
    burst_buffers,
    checkpoint_requests,
    plugin_services,
    reconfigure,
    submit,
    switch_info,
    update,
    update_partition,
    will_run,
)
from simctl.ctld.requests.cancel import cancel_job_step, kill_job
from simctl.ctld.saved import state_save
from simctl.ctld.scheduling import asked_again, backfill, preempt, reservations, schedule
from simctl.ctld.state import notices, queue
from simctl.ctld.state.job_rows import JobRow, row
from simctl.ctld.state.notices import (
    BackfillDue,
    BeginDue,
    GraceDue,
    LimitDue,
    PassDue,
    PurgeDue,
    ReservationDue,
)
from simctl.ctld.state.records import NodeRecord, PartRecord
from simctl.ctld.steps import step_limits, steps
from simctl.ctld.steps.step_limits import StepLimitDue
from simctl.kernel.fabric import Envelope, Unanswered
from simctl.kernel.procs import Host, wait_status
from simctl.kernel.threads import Killed
from simctl.plugins.hooks import About, failed
from simctl.plugins.points.switch import switch_p_libstate_restore
from simctl.plugins.points.switch_besides import switch_p_reconfig, switch_p_slurmctld_init
from simctl.site import Site
from simctl.wire.errno import SLURM_SUCCESS
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    DbdGetJobsCond,
    MessageEpilogComplete,
    MessageNodeRegistrationStatus,
    RequestBatchScript,
    RequestBuildInfo,
    RequestBurstBufferInfo,
    RequestBurstBufferStatus,
    RequestCancelJobStep,
    RequestCheckpoint,
    RequestCheckpointComp,
    RequestCheckpointTaskComp,
    RequestCompleteBatchScript,
    RequestCompleteJobAllocation,
    RequestCompleteProlog,
    RequestControl,
    RequestCreatePartition,
    RequestCreateReservation,
    RequestDeletePartition,
    RequestDeleteReservation,
    RequestJobInfo,
    RequestJobNotify,
    RequestJobPackAllocInfo,
    RequestJobReady,
    RequestJobRequeue,
    RequestJobStepCreate,
    RequestJobStepInfo,
    RequestJobWillRun,
    RequestKillJob,
    RequestNodeInfo,
    RequestPartitionInfo,
    RequestPing,
    RequestReconfigure,
    RequestReservationInfo,
    RequestResourceAllocation,
    RequestShutdown,
    RequestStepComplete,
    RequestSubmitBatchJob,
    RequestSuspend,
    RequestSwitchInfo,
    RequestUpdateJob,
    RequestUpdateJobStep,
    RequestUpdateNode,
    RequestUpdatePartition,
    RequestUpdateReservation,
    ResponseSlurmRc,
)
from simctl.wire.states import (
    CANCELLED,
    NodeBase,
)


async def job_info(ctld: Controller, envelope: Envelope, message: RequestJobInfo) -> None:
    """Tell of jobs, at once or when one is over."""
    if not message.when_over or not awaited.hold(ctld, envelope, message):
        await info.job_info(ctld, envelope, message)


async def _jobs_may_start(ctld: Controller) -> None:
    await schedule.run_pass(ctld)
    ctld.forget_late_pass()


MOMENTS: Final = Moments(
    not_sent=agent.not_sent,
    told_by_plugin=eligible.settle,
    never_eligible=lambda ctld, job: end_pending(ctld, job, CANCELLED),
    nodes_left=_jobs_may_start,
)
"""What leads to what, where the room that knows is below the one that acts."""


class Slurmctld(Controller):
    """The controller: its life, and the loop that hands each message to its handler."""

    def __init__(
        self,
        site: Site,
        host: Host,
        *,
        uid: int,
        records: list[NodeRecord],
        partitions: list[PartRecord],
        saves: bool = False,
        clean: bool = False,
        before: "Slurmctld | None" = None,
    ) -> None:
        super().__init__(
            site,
            host,
            uid=uid,
            records=records,
            partitions=partitions,
            simulates_saves=saves,
            moments=MOMENTS,
            views=live,
        )
        self._clean = clean
        self._follows = before is not None
        self.before = before
        """The slurmctld before this one, until this one has taken up what that has left."""
        # What slurmdbd has been told, and what is known of causes, outlives a slurmctld.
        if before is None:
            site.trace.subjects = self.subjects
        else:
            self.subjects = before.subjects
            self.subjects.pid = self.process.pid
            self.ended_rows = before.ended_rows
            self.take_row, self.runs_ended = before.take_row, before.runs_ended
        site.books.known = partial(bookkeeping.known, self)
        self.subjects.live = self.jobs
        self.relieves: Slurmctld | None = None
        """The backup controller that is to give control back to this one."""
        self._relieved_by: Envelope | None = None
        self.at_end: Callable[[], None] | None = None
        """What is done once the process has ended."""
        site.procs.slurmctld = plugin_services.PluginServices(self)
        self._handlers = {
            message: authority.guarded(handler, message)
            for message, handler in self._all_handlers().items()
        }
        for node in records:
            # No node counts as silent before this controller could have heard of it.
            node.heard(self.now_us)
            if node.base is not NodeBase.UNKNOWN or node.flags:
                self.move_node(node, node.base, node.flags)

    @staticmethod
    def _all_handlers() -> "dict[type, Callable[[Controller, Envelope, Any], Any]]":
        """Return who takes in which message or notice."""
        return {
            MessageNodeRegistrationStatus: registration.node_registration,
            RequestSubmitBatchJob: submit.submit_batch_job,
            RequestResourceAllocation: submit.resource_allocation,
            RequestJobReady: submit.job_ready,
            RequestJobPackAllocInfo: submit.allocation_info,
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
            RequestUpdatePartition: update_partition.update_partition,
            RequestCreatePartition: update_partition.create_partition,
            RequestDeletePartition: update_partition.delete_partition,
            RequestUpdateJobStep: step_limits.update_job_step,
            RequestUpdateReservation: reservations.update_reservation,
            RequestBatchScript: answers.batch_script,
            RequestBuildInfo: answers.build_info,
            RequestJobNotify: answers.job_notify,
            RequestSwitchInfo: switch_info.switch_info,
            RequestJobInfo: job_info,
            RequestJobWillRun: will_run.job_will_run,
            RequestJobStepInfo: info.job_step_info,
            RequestNodeInfo: info.node_info,
            RequestPartitionInfo: info.partition_info,
            RequestReservationInfo: info.reservation_info,
            DbdGetJobsCond: bookkeeping.get_jobs_cond,
            RequestCreateReservation: reservations.create_reservation,
            RequestDeleteReservation: reservations.delete_reservation,
            ReservationDue: _reservation_due,
            RequestSuspend: suspend.suspend,
            RequestPing: _ping,
            RequestReconfigure: reconfigure.reconfigure,
            ResponseSlurmRc: agent.response_rc,
            PassDue: _pass_due,
            BackfillDue: _backfill_due,
            GraceDue: _grace_due,
            LimitDue: deadlines.limit_due,
            StepLimitDue: step_limits.step_limit_due,
            notices.WarningDue: deadlines.warning_due,
            notices.DeadlineDue: deadlines.deadline_due,
            PurgeDue: _purge_due,
            BeginDue: _begin_due,
            RequestCompleteProlog: prologs.complete_prolog,
            notices.PrologEnded: prologs.prolog_ended,
            notices.EpilogEnded: prologs.epilog_ended,
            notices.EndUnlaunched: prologs.unlaunched_over,
            notices.PingDue: pings.ping_due,
            notices.ConnectFailed: reachability.connect_failed,
            notices.StruckPingsDue: pings.struck_pings_due,
            node_switch.NodeDue: node_switch.node_due,
            notices.LookDue: missing.look_due,
            notices.RegistrationsDue: pings.registrations_due,
            notices.NodesDue: resync.nodes_due,
            notices.SaveDue: restart.save_due,
            RequestBurstBufferInfo: burst_buffers.burst_buffer_info,
            RequestBurstBufferStatus: burst_buffers.burst_buffer_status,
            RequestCheckpoint: checkpoint_requests.checkpoint,
            RequestCheckpointComp: checkpoint_requests.checkpoint_comp,
            RequestCheckpointTaskComp: checkpoint_requests.checkpoint_task_comp,
            notices.CheckpointsDue: checkpoints.checkpoints_due,
            preempt.StillThere: preempt.still_there,
            notices.PreemptAsked: preempt.asked,
            notices.NodeGivenUp: loss.given_up,
            plugin_services.LockClaim: plugin_services.lock_claimed,
            notices.WaitingDue: asked_again.waiting_due,
            notices.GateDue: asked_again.gate_due,
            notices.KeptDue: asked_again.kept_due,
            notices.AgentRetry: agent.retry,
            notices.ClientGone: agent.client_gone,
            Unanswered: agent.unanswered,
        }

    # Its life.

    def start(self) -> None:
        """Start the daemon in a turn of its own."""
        self.process.start(self._run, "slurmctld")

    def shut_down(self) -> None:
        """Have the cluster stop: the nodes are told, then the controller saves and stops."""
        self.mailbox.post(RequestShutdown())

    def _may_stop(self, envelope: Envelope) -> bool:
        """Answer the client that asks slurmctld to stop, if one does; return whether it may."""
        if envelope.sender is None:
            return True
        errno = authority.refusal(self, envelope)
        self.answer(envelope, errno)
        return not errno

    async def _run(self) -> None:
        try:
            await self._live()
        except Fatal as problem:
            await self._die(str(problem))

    async def _live(self) -> None:
        if self.relieves is not None:
            await self._ask_for_control(self.relieves)
        problem = await self._set_up()
        if problem:
            raise Fatal(problem)
        again = await self._restore()
        if self.site.asks_nodes:
            pings.ask_in_a_while(self)
        await self.site.hooks.call_besides(switch_p_reconfig, self.process)
        problem = await buffers_at_start.set_up(self, again=again)
        if not problem and self.job_submit is not None:
            problem = await self.job_submit.load()
        if problem:
            raise Fatal(problem)
        if again:
            await restart.take_up(self)
        elif self._follows:
            self.mailbox.post_at(self.now_us + restart.NODES_ASKED_AFTER_US, notices.NodesDue())
        self.saves.start()
        await self._serve()
        await self._save_and_stop()

    async def _serve(self) -> None:
        """Handle one request after the other, until it is time to stop."""
        handlers = self._handlers
        receive = self.mailbox.receive
        while True:
            envelope = await receive()
            message = envelope.message
            if type(message) is RequestShutdown:
                if not self._may_stop(envelope):
                    continue
                for node in () if message.controller_only else self.nodes:
                    self.send(self.address(node), message)
                break
            if type(message) is restart.StopDue:
                break
            if type(message) is RequestControl:
                self._relieved_by = envelope
                break
            await handlers[type(message)](self, envelope, message)
            if self.bb is not None and self.bb.owed:
                await staging.flush(self)
            if self.saves.simulated and type(message) is not notices.SaveDue:
                await self.saves.request_done()

    async def _ask_for_control(self, other: "Slurmctld") -> None:
        """Have the backup controller save its state and stand by, before anything is read."""
        fabric = self.site.fabric
        box = fabric.mailbox(self.process, f"slurmctld[{self.process.pid}]")
        limit_us = self.now_us + self.site.conf.message_timeout_s * SECOND
        if fabric.send(self.process, other.mailbox, RequestControl(), box):
            await box.receive_until(limit_us)
        box.close()
        self.relieves = None

    async def _set_up(self) -> str:
        """Load the plugins and restore what they saved; return what is fatal, or nothing."""
        hooks = self.site.hooks
        if not await hooks.load(self.process, "checkpoint"):
            return "failed to initialize checkpoint plugin"
        if not await hooks.load(self.process, "switch"):
            return f"Can't find plugin for {self.site.conf.switch_type}"
        if failed(await hooks.call_besides(switch_p_slurmctld_init, self.process)):
            return "failed to initialize switch plugin"
        modern = self.site.model == "modern"
        if self._clean and not modern:
            return ""
        about = About(besides={"recover": int(not self._clean)} if modern else {})
        saved = self.site.conf.state_save_location
        if self._clean:
            # A plugin is not told of `recover`: what it is to find is a place with no state.
            saved = f"{saved}/clean"
        if failed(await hooks.call(switch_p_libstate_restore, self.process, saved, about=about)):
            return "failed to initialize switch plugin: its saved state cannot be restored"
        return ""

    async def _die(self, problem: str) -> None:
        """Stop at once, as slurmctld does where it cannot go on; does not return."""
        if not self.saves.simulated:
            await self._save_as_if()
        if self._follows:
            # A third start finds all clients still trying.
            self.site.fabric.leave(self.mailbox.name)
        self.site.trace.fatal(self.process, problem, self.process.why)
        self.end(wait_status(1))
        raise Killed

    def die_at_once(self) -> None:
        """Receive and answer nothing more; the caller kills the threads."""
        self.mailbox.abandon(self._unanswered(), breaks=True)
        self.lock_holder = None

    async def save_and_die(self) -> None:
        """Save as if a save had just ended when slurmctld died, and be gone."""
        await self._save_as_if()
        self.be_gone()

    async def _save_as_if(self) -> None:
        """Save as if a save had just ended; one that had taken up nothing yet leaves the files."""
        if not self.saves.ready:
            return
        if not self.saves.simulated:
            text = "saves are not simulated in this run: it dies as if it had just saved its state"
            self.site.trace.note("log", "state_save", self.process, args={"text": text})
        await self.saves.pack_all()
        self.saves.write_all()

    def be_gone(self, status: int = 9) -> None:
        """End the process; who is to be started after it is."""
        self.process.exit(status)
        at_end, self.at_end = self.at_end, None
        if at_end is not None:
            self.site.kernel.call_at(self.now_us, lambda _: at_end(), None)

    def _unanswered(self) -> list[Envelope]:
        return [each for envelopes in self.awaited.values() for each in envelopes]

    def end(self, status: int) -> None:
        """End the process with its threads and timers; who waits for an answer gets none."""
        kernel = self.site.kernel
        again = self.mailbox.name in self.site.fabric.away or self._relieved_by is not None
        if again:
            for thread in self.process.threads:
                if thread is not kernel.current and not thread.of_plugin:
                    kernel.kill(thread)
        if status:
            self.mailbox.abandon(self._unanswered(), breaks=True)
            self.be_gone(status)
        else:
            self.be_gone(status)
            self.mailbox.abandon(self._unanswered(), breaks=again)

    async def _restore(self) -> bool:
        """Read what the state files hold; return whether there was anything."""
        if self._clean:
            self._forget_before()
            return False
        try:
            found = self.saves.restore()
        except state_save.UnusableStateError as error:
            raise Fatal(str(error)) from error
        self._forget_before()
        if found.there or self._follows:
            restored.tell(self)
        if not found.there:
            return False
        restart.rebuild(self)
        await restart.recover(self)
        return True

    def _forget_before(self) -> None:
        """Let go of the slurmctld before; return which of its jobs this one knows nothing of."""
        # One that died before it had taken anything up knew nothing of its own.
        before = self.before.tables if self.before is not None else None
        self.before = None
        known = list(before.jobs) if before is not None else []
        if before is not None and before.saves.write_through and before.saves.ready:
            # The client that submitted another was never told that it had come in.
            known = [job_id for job_id in known if job_id in before.saves.heard_of]
        lost = [job_id for job_id in known if job_id not in self.jobs]
        if lost:
            self.site.trace.lost_jobs += lost
            self.site.trace.note("log", "jobs_lost", self.process, args={"jobs": lost})

    async def _save_and_stop(self) -> None:
        """Save the switch's state, pack what jobs and steps are left, unload, and end."""
        await restart.save(self)
        if self.bb is not None:
            await self.bb.unload()
        if self.job_submit is not None:
            await self.job_submit.unload()
        if self.site.model == "guide":
            await self.site.hooks.unload(self.process, "switch")
            await self.site.hooks.unload(self.process, "checkpoint")
        if self._relieved_by is not None:
            self.answer(self._relieved_by, SLURM_SUCCESS)
        self.end(0)

    @property
    def tables(self) -> "Slurmctld":
        """Return whose tables tell what there is: until this one has read its state the last's."""
        return self if self.before is None else self.before.tables

    def rows(self) -> list[JobRow]:
        """Return a row for every job, as it ended or as it stands, by id and array task."""
        found = dict(self.ended_rows)
        for job in self.jobs.values():
            if job.job_id not in found or not job.state.finished:
                found[job.job_id] = row(job, str(job.state), queue.reason_to_wait(job))
        rows = found.values()
        return sorted(
            rows,
            key=lambda each: (each.array_job_id or each.job_id, each.array_task_id, each.job_id),
        )


async def _ping(ctld: Controller, envelope: Envelope, message: RequestPing) -> None:
    """Answer that the controller is there."""
    ctld.answer(envelope, SLURM_SUCCESS)


async def _pass_due(ctld: Controller, _: Envelope, __: PassDue) -> None:
    await schedule.main_pass(ctld)


async def _backfill_due(ctld: Controller, _: Envelope, __: BackfillDue) -> None:
    await backfill.run_backfill(ctld)


async def _reservation_due(ctld: Controller, _: Envelope, message: ReservationDue) -> None:
    await reservations.due(ctld, message.record)


async def _grace_due(ctld: Controller, _: Envelope, message: GraceDue) -> None:
    if message.job.restart_cnt == message.run:
        await preempt.end(ctld, message.job)


async def _purge_due(ctld: Controller, _: Envelope, message: PurgeDue) -> None:
    await completion.purge(ctld, message.job)


async def _begin_due(ctld: Controller, _: Envelope, message: BeginDue) -> None:
    eligible.settle(ctld, message.job)
