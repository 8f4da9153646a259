"""slurmctld as a trio task: one handler an RPC, each a sequence to be read from top to bottom.

Handlers run one after another, as if each held the job write lock from its first line to its last.
So a slow plugin call holds up every other request, as it does in Slurm for nearly all of them.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from simctl.ctld import (
    agent,
    answers,
    authority,
    awaited,
    backfill,
    bookkeeping,
    burst_info,
    checkpoint_requests,
    checkpoint_times,
    completion,
    deadlines,
    eligible,
    info,
    missing,
    moments_of_limits,
    node_switch,
    nodes,
    notices,
    plugin_services,
    polls,
    preempt,
    prologs,
    queue,
    reconfigure,
    reservations,
    reserved,
    restart,
    resync,
    schedule,
    staging,
    state_save,
    step_limits,
    steps,
    submit,
    suspend,
    switch_info,
    update,
    update_partition,
    will_run,
)
from simctl.ctld.burst_buffers import BurstBuffers
from simctl.ctld.cancel import cancel_job_step, kill_job
from simctl.ctld.job_rows import JobRow, exit_code_text, row
from simctl.ctld.notices import (
    BackfillDue,
    BeginDue,
    GraceDue,
    LimitDue,
    PassDue,
    PurgeDue,
    ReservationDue,
)
from simctl.ctld.records import (
    JobArray,
    JobRecord,
    NodeRecord,
    PartRecord,
    ReservationRecord,
    StepRecord,
)
from simctl.ctld.step_limits import StepLimitDue
from simctl.kernel.causes import Subjects
from simctl.kernel.fabric import Envelope, Mailbox, Unanswered
from simctl.kernel.procs import Host, Process, RunsAs, wait_status
from simctl.kernel.turns import Killed, Thread, Timer
from simctl.plugins.hooks import About, failed
from simctl.plugins.points.switch import switch_p_libstate_restore
from simctl.plugins.points.switch_besides import switch_p_reconfig, switch_p_slurmctld_init
from simctl.plugins.site import Site
from simctl.wire.errno import EPERM, SLURM_SUCCESS
from simctl.wire.ids import SECOND
from simctl.wire.messages import (
    DbdGetJobsCond,
    Message,
    MessageEpilogComplete,
    MessageNodeRegistrationStatus,
    RequestBatchScript,
    RequestBuildInfo,
    RequestBurstBufferInfo,
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
from simctl.wire.rights import DENIALS
from simctl.wire.states import (
    JobBase,
    JobState,
    NodeBase,
    NodeFlag,
    check_job_change,
    node_text,
)

_LOST: Final = NodeFlag.DRAIN | NodeFlag.NO_RESPOND
"""The flags of nodes that no job gets, even once they are idle."""

_TOP_PRIORITY = 4294901760
"""What the first job's priority is one below."""

_LATE_US = 60 * SECOND
"""How long nodes may lie idle that a job has left which has yet to leave others."""


async def job_info(ctld: "Slurmctld", envelope: Envelope, message: RequestJobInfo) -> None:
    """Tell of jobs, at once or when one is over."""
    if not message.when_over or not awaited.hold(ctld, envelope, message):
        await info.job_info(ctld, envelope, message)


class Slurmctld:
    """The controller."""

    def __init__(  # noqa: PLR0915 - all that slurmctld owns
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
        self.disk = site.disk.view(host.name, uid)
        self.books = site.books
        self._clean = clean
        self._follows = before is not None
        self.before = before
        """The slurmctld before this one, until this one has taken up what that has left."""
        # What slurmdbd has been told, and what is known of causes, outlives a slurmctld.
        if before is None:
            self.subjects = site.trace.subjects = Subjects(self.process.pid)
            self.ended_rows: dict[int, JobRow] = {}
            self.take_row: Callable[[JobRow], None] | None = None
            """Takes the rows of jobs that have ended, where they are too many to be kept."""
            self.runs_ended = 0
            """How many runs of jobs have ended."""
        else:
            self.subjects = before.subjects
            self.subjects.pid = self.process.pid
            self.ended_rows = before.ended_rows
            self.take_row, self.runs_ended = before.take_row, before.runs_ended
        site.books.known = partial(bookkeeping.known, self)
        self.nodes = records
        self.nodes_by_name = {node.name: node for node in records}
        self.partitions = {part.name: part for part in partitions}
        self.jobs: dict[int, JobRecord] = {}
        self.subjects.live = self.jobs
        self.running: dict[int, JobRecord] = {}
        """The jobs that run, by id."""
        self.completing: dict[int, JobRecord] = {}
        """Those that are COMPLETING."""
        self.next_job_id = site.conf.first_job_id
        self.last_place, self.last_queue_number = 0, -1
        self.last_priority = _TOP_PRIORITY
        self.dependents: dict[int, list[JobRecord]] = {}
        """The jobs that wait for a job, by its id."""
        self.singletons: dict[tuple[int, str], list[JobRecord]] = {}
        """Jobs by user and name, of those names that a singleton has asked for."""
        self.arrays: dict[int, JobArray] = {}
        """Job arrays, by the id they were submitted under."""
        self.usable_nodes = 0
        """The nodes on which a job may start now, if there is room."""
        self.idle_nodes = 0
        """Those of them that have no job."""
        self.serviceable_nodes = (1 << len(records)) - 1
        """The nodes on which jobs may start once those that run there are over."""
        self.reservations: dict[str, ReservationRecord] = {}
        self.last_reservation = 0
        self.boundary_us = -1
        """When a pass is due because a reservation begins or ends."""
        self.backfill_is_due = False
        self.planned_nodes = 0
        """The nodes that the latest backfill pass keeps for jobs that wait."""
        self.suspended: dict[int, JobRecord] = {}
        """Suspended jobs by id: no node counts them as its own."""
        self.preempted: dict[int, JobRecord] = {}
        """Those of them that were preempted: they go on as soon as their nodes are free."""
        self.periodic: dict[tuple[int, int], JobRecord | StepRecord] = {}
        """The jobs and steps that are checkpointed every so often, by job and step id."""
        self.periodic_timer: Timer | None = None
        self.periodic_us = -1
        """When that is due."""
        self.last_runs: dict[int, int] = {}
        """Number of the last run of batch jobs that are purged and may be restarted, by id."""
        self.awaited: dict[int, list[Envelope]] = {}
        """Requests to be answered once a job is over, by its id."""
        self.outlasting: dict[Mailbox, int] = {}
        """Clients that were still there when their job was purged, and its id."""
        self.relieves: Slurmctld | None = None
        """The backup controller that is to give control back to this one."""
        self._relieved_by: Envelope | None = None
        self.at_end: Callable[[], None] | None = None
        """What is done once the process has ended."""
        self.unheard: set[str] = set()
        """Nodes that have not registered since slurmctld was started again."""
        self.began_us = self.now_us
        """When its loop began, which looks each second whether a pass is due."""
        self.last_pass_us = self.last_full_us = -1
        self.pass_is_due = False
        self.late_pass: Timer | None = None
        self.ping_timer: Timer | None = None
        self.looks: dict[str, int] = {}
        """When nodes are asked that may lack something of what should run there."""
        self.nodes_asked_us = -1
        """When all nodes were last asked to register."""
        self.unsent: dict[str, list[notices.AgentRetry]] = {}
        """What is to be sent to nodes that have no slurmd at present."""
        self.leftovers: dict[str, dict[tuple[int, int], None]] = {}
        """Runs of jobs that are over, by the node that has yet to report them gone."""
        types = site.conf.burst_buffer_types
        self.bb = BurstBuffers(self, types) if types else None
        """The burst buffer plugins; None where none is configured."""
        self.changes = 0
        """How many states of jobs and of their burst buffers have changed."""
        self.polls = polls.Polls(self)
        self.lock_holder: Thread | None = None
        """The thread of a plugin that has the job write lock."""
        site.procs.slurmctld = plugin_services.PluginServices(self)
        self._handlers = {
            message: authority.guarded(handler, message)
            for message, handler in self._all_handlers().items()
        }
        self.state = state_save.StateSave(self, simulated=saves)
        for node in records:
            # Nobody counts as silent before this controller could have heard of them.
            node.last_response_us = max(node.last_response_us, self.now_us)
            if node.base is not NodeBase.UNKNOWN or node.flags:
                self.sort_node(node)

    @staticmethod
    def _all_handlers() -> "dict[type, Callable[[Slurmctld, Envelope, Any], Any]]":
        """Return who takes in which message or notice."""
        return {
            MessageNodeRegistrationStatus: nodes.node_registration,
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
            ResponseSlurmRc: nodes.response_rc,
            PassDue: _pass_due,
            BackfillDue: _backfill_due,
            GraceDue: _grace_due,
            LimitDue: nodes.limit_due,
            StepLimitDue: step_limits.step_limit_due,
            notices.WarningDue: deadlines.warning_due,
            notices.DeadlineDue: deadlines.deadline_due,
            PurgeDue: _purge_due,
            BeginDue: _begin_due,
            RequestCompleteProlog: prologs.complete_prolog,
            notices.PrologEnded: prologs.prolog_ended,
            notices.EpilogEnded: prologs.epilog_ended,
            notices.EndUnlaunched: prologs.unlaunched_over,
            notices.PingDue: nodes.ping_due,
            notices.StruckPingsDue: nodes.struck_pings_due,
            node_switch.NodeDue: node_switch.node_due,
            notices.LookDue: missing.look_due,
            notices.RegistrationsDue: nodes.registrations_due,
            notices.NodesDue: resync.nodes_due,
            notices.SaveDue: state_save.save_due,
            RequestBurstBufferInfo: burst_info.burst_buffer_info,
            RequestCheckpoint: checkpoint_requests.checkpoint,
            RequestCheckpointComp: checkpoint_requests.checkpoint_comp,
            RequestCheckpointTaskComp: checkpoint_requests.checkpoint_task_comp,
            notices.CheckpointsDue: checkpoint_times.checkpoints_due,
            preempt.StillThere: preempt.still_there,
            plugin_services.LockClaim: plugin_services.lock_claimed,
            notices.WaitingDue: polls.waiting_due,
            notices.GateDue: polls.gate_due,
            notices.KeptDue: polls.kept_due,
            notices.AgentRetry: agent.retry,
            notices.ClientGone: agent.client_gone,
            Unanswered: agent.unanswered,
        }

    @property
    def purge_interval_us(self) -> int:
        """Return how far apart the scans for old jobs are."""
        return completion.purge_interval_us(self.site.conf.min_job_age_s)

    @property
    def now_us(self) -> int:
        """Virtual time."""
        return self.site.kernel.now_us

    def is_operator(self, uid: int) -> bool:
        """Tell whether a user may do what only root, SlurmUser and operators may."""
        if uid in (0, self.process.uid):
            return True
        return self._admin_of(uid) in ("operator", "administrator")

    def is_administrator(self, uid: int) -> bool:
        """Return whether a user may do what only root, SlurmUser and administrators may."""
        return uid in (0, self.process.uid) or self._admin_of(uid) == "administrator"

    def _admin_of(self, uid: int) -> str:
        return next((user.admin for user in self.site.users.values() if user.uid == uid), "none")

    def next_place(self) -> int:
        """Return the place at the end of the list of jobs."""
        self.last_place += 1
        return self.last_place

    def tell_over_id(self, job_id: int) -> None:
        """Answer those who wait for a job to be over, if it is."""
        awaited.over_id(self, job_id)

    def tell_over(self, job: JobRecord) -> None:
        """Answer those who wait for a job to be over."""
        if self.awaited:
            awaited.over(self, job)

    def next_id(self) -> int:
        """Return the next job id that is free, 0 if none is; after MaxJobId FirstJobId follows."""
        conf = self.site.conf
        job_id = self.next_job_id
        tried = 0
        while job_id in self.jobs or job_id in self.arrays:
            tried += 1
            if tried > conf.max_job_id - conf.first_job_id:
                return 0
            job_id = job_id + 1 if job_id < conf.max_job_id else conf.first_job_id
        self.next_job_id = job_id + 1 if job_id < conf.max_job_id else conf.first_job_id
        return job_id

    def next_priority(self, nice: int) -> int:
        """Return a priority one below the last, less a nice value."""
        self.last_priority -= 1
        return max(1, self.last_priority - nice)

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
        if self.relieves is not None:
            await self._ask_for_control(self.relieves)
        problem = await self._set_up()
        if problem:
            await self.die(problem)
        again = await self._restore()
        if self.site.asks_nodes:
            nodes.ask_in_a_while(self)
        await self.site.hooks.call_besides(switch_p_reconfig, self.process)
        problem = await staging.set_up(self, again=again)
        if problem:
            await self.die(problem)
        if again:
            await restart.take_up(self)
        elif self._follows:
            self.mailbox.post_at(self.now_us + restart.NODES_ASKED_AFTER_US, notices.NodesDue())
        self.state.start()
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
            if self.state.simulated and type(message) is not notices.SaveDue:
                await self.state.request_done()

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

    async def die(self, problem: str) -> None:
        """Stop at once, as slurmctld does where it cannot go on; does not return."""
        if not self.state.simulated:
            await self._save_as_if()
        if self._follows:
            # Who starts it a third time finds everybody trying still.
            self.site.fabric.leave(self.mailbox.name)
        self.site.trace.fatal(self.process, problem, self.process.why)
        self.end(wait_status(1))
        raise Killed

    def die_at_once(self) -> None:
        """Receive and answer nothing more; whoever calls this kills the threads."""
        self.mailbox.abandon(self._unanswered(), breaks=True)
        self.lock_holder = None

    async def save_and_die(self) -> None:
        """Save as if a save had just ended when slurmctld died, and be gone."""
        await self._save_as_if()
        self.be_gone()

    async def _save_as_if(self) -> None:
        """Save as if a save had just ended; one that had taken up nothing yet leaves the files."""
        if not self.state.ready:
            return
        if not self.state.simulated:
            text = "saves are not simulated in this run: it dies as if it had just saved its state"
            self.site.trace.note("log", "state_save", self.process, args={"text": text})
        await self.state.pack_all()
        self.state.write_all()

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
            self.mailbox.abandon(self._unanswered(), breaks=again)
            self.be_gone(status)
        else:
            self.be_gone(status)
            self.mailbox.abandon(self._unanswered(), breaks=again)

    async def _restore(self) -> bool:
        """Take in what the state files hold; tell whether there was anything."""
        if self._clean:
            self._forget_before()
            return False
        try:
            restored = self.state.restore()
        except state_save.UnusableStateError as error:
            await self.die(str(error))
        self._forget_before()
        if not restored.there:
            return False
        restart.rebuild(self)
        await restart.recover(self)
        return True

    def _forget_before(self) -> None:
        """Let go of the slurmctld before; tell which of its jobs this one knows nothing of."""
        # One that died before it had taken anything up knew nothing of its own.
        before = self.before.tables if self.before is not None else None
        self.before = None
        known = list(before.jobs) if before is not None else []
        if before is not None and before.state.write_through and before.state.ready:
            # Whoever submitted another was never told that it had come in.
            known = [job_id for job_id in known if job_id in before.state.heard_of]
        lost = [job_id for job_id in known if job_id not in self.jobs]
        if lost:
            self.site.trace.lost_jobs += lost
            self.site.trace.note("log", "jobs_lost", self.process, args={"jobs": lost})

    async def _save_and_stop(self) -> None:
        """Save the switch's state, pack what jobs and steps are left, unload, and end."""
        await restart.save(self)
        if self.bb is not None:
            await self.bb.unload()
        if self.site.model == "guide":
            await self.site.hooks.unload(self.process, "switch")
            await self.site.hooks.unload(self.process, "checkpoint")
        if self._relieved_by is not None:
            self.answer(self._relieved_by, SLURM_SUCCESS)
        self.end(0)

    # Messages.

    def send(self, to: Mailbox | None, message: Message) -> bool:
        """Send a message; false when nobody is there. What a cut link holds back is sent later."""
        if self.state.write_through:
            self.state.commit()
        if self.site.fabric.send(self.process, to, message, self.mailbox):
            return True
        agent.not_sent(self, to, message)
        return False

    def nodes_named(self, names: Iterable[str]) -> Iterator[NodeRecord]:
        """Return nodes by their names; what was saved may name some that are there no more."""
        known = self.nodes_by_name
        return (known[name] for name in names if name in known)

    def address(self, node: NodeRecord) -> Mailbox | None:
        """Return where the slurmd of a node receives."""
        return self.site.fabric.find(node.address)

    def answer(self, envelope: Envelope, return_code: int) -> None:
        """Answer a request with a return code; that somebody may not ask is told in the trace."""
        if return_code in DENIALS and return_code != EPERM:
            authority.tell(self, envelope, return_code)
        if not self.send(envelope.sender, ResponseSlurmRc.to(envelope.message, return_code)):
            timeout_us = self.site.conf.message_timeout_s * SECOND
            self.site.fabric.answer_lost(envelope, self.mailbox, timeout_us)

    def wait_for(self, job: JobRecord, *causes: int) -> None:
        """Let all that follows of a job need what is being done, and *causes* as well.

        For what a job has to wait for in any case, such as the last of its epilogs.
        """
        trace = self.site.trace
        if trace.recording:
            trace.join(self.process, *causes)
            self.subjects.has_come_to(job.job_id, self.process.cause)

    # States.

    def set_job(self, job: JobRecord, after: JobState) -> None:
        """Change a job's state, if the table allows it."""
        before = job.state
        check_job_change(before, after)
        job.state = after
        self.changes += 1
        if after.base is JobBase.RUNNING:
            self.running[job.job_id] = job
        else:
            self.running.pop(job.job_id, None)
        if after.completing:
            self.completing[job.job_id] = job
        else:
            self.completing.pop(job.job_id, None)
        ended = after.finished and job.exit_code
        self.site.trace.state(
            self.process,
            "job_state",
            before=str(before),
            after=str(after),
            reason=job.reason,
            job=job.job_id,
            **({"exit_code": exit_code_text(job.exit_code)} if ended else {}),
        )

    def set_node(self, node: NodeRecord, base: NodeBase, flags: NodeFlag) -> None:
        """Change a node's state; its partitions learn whether it may start jobs."""
        before_base, before_flags = node.base, node.flags
        if base is before_base and flags == before_flags:
            return
        node.base = base
        node.flags = flags
        self.sort_node(node)
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

    def sort_node(self, node: NodeRecord) -> None:
        """Note in the sets of nodes what may be done with one."""
        bit = 1 << node.index
        base, flags = node.base, node.flags
        free = not flags
        idle = free and base is NodeBase.IDLE
        usable = idle or (free and base is NodeBase.MIXED)
        self.usable_nodes = self.usable_nodes | bit if usable else self.usable_nodes & ~bit
        self.idle_nodes = self.idle_nodes | bit if idle else self.idle_nodes & ~bit
        before = self.serviceable_nodes
        lost = base is NodeBase.DOWN or (flags and flags & _LOST)
        self.serviceable_nodes = before & ~bit if lost else before | bit
        if self.serviceable_nodes != before:
            # Who waits for it blocks nobody any more, or does so again.
            self.request_pass()

    def drain(self, node: NodeRecord, reason: str) -> None:
        """Let no more jobs start on a node, until an administrator resumes it."""
        if not node.reason:
            self.note_reason(node, reason, self.process.uid)
        self.set_node(node, node.base, node.flags | NodeFlag.DRAIN)

    def note_reason(self, node: NodeRecord, reason: str, uid: int) -> None:
        """Note why a node is out of service, and who says so."""
        node.reason = reason
        node.reason_uid = uid
        node.reason_us = self.now_us

    async def main_pass(self) -> None:
        """Run a pass of the main loop; one that is long after the last such looks at everybody."""
        self.last_pass_us = self.now_us
        interval_us = self.site.conf.scheduler_parameters.sched_interval_us
        full = self.last_full_us < 0 or self.now_us >= self.last_full_us + interval_us
        if full:
            self.last_full_us = self.now_us
        if self.bb is not None and (queue.anybody_waits(self) or self.bb.is_awaited):
            await staging.before_pass(self)
        elif self.bb is not None:
            staging.tell_cleaning(self)
        await schedule.run_pass(self, full=full)

    # What comes later.

    def request_pass(self) -> None:
        """Have a pass run as soon as the last one is batch_sched_delay ago, if anybody waits."""
        if self.pass_is_due or not (queue.anybody_waits(self) or self.preempted):
            return
        self.pass_is_due = True
        due_us = self.now_us
        if self.last_pass_us >= 0:
            delay_us = self.site.conf.scheduler_parameters.batch_sched_delay_us
            due_us = max(due_us, self.last_pass_us + delay_us)
        if self.site.options.batch_start == "as_real":
            # Source: _slurmctld_background() sleeps for a second in each turn.
            turns = max(due_us - self.began_us, self.now_us - self.began_us + 1)
            due_us = self.began_us - (-turns // SECOND) * SECOND
        self.mailbox.post_at(due_us, PassDue())

    def request_late_pass(self) -> None:
        """Have a pass run for nodes that a job has left which is slow to leave its others.

        Once it has left them all a pass follows at once, and this one is called off.
        """
        late = self.late_pass
        if (late is None or not late.live) and queue.anybody_waits(self):
            self.late_pass = self.mailbox.post_at(self.now_us + _LATE_US, PassDue())

    def forget_late_pass(self) -> None:
        """Call the late pass off if nobody is leaving nodes any more."""
        if self.late_pass is not None and not self.completing:
            self.late_pass.cancel()
            self.late_pass = None

    def request_backfill(self) -> None:
        """Have the next backfill pass run, if somebody still waits and it is configured.

        It runs every bf_interval; one before which nothing has changed would change nothing.
        """
        conf = self.site.conf
        if (
            self.backfill_is_due
            or conf.scheduler_type != "sched/backfill"
            or not queue.anybody_waits(self)
        ):
            return
        self.backfill_is_due = True
        interval_us = conf.scheduler_parameters.bf_interval_us
        self.mailbox.post_at((self.now_us // interval_us + 1) * interval_us, BackfillDue())

    def pass_at(self, due_us: int) -> None:
        """Have a pass run at a moment, whatever else asks for one before."""
        self.mailbox.post_at(due_us, PassDue())

    def grace_at(self, due_us: int, job: JobRecord) -> None:
        """Have a preempted job ended at a moment."""
        self.mailbox.post_at(due_us, GraceDue(job, job.restart_cnt))

    def reservation_at(self, due_us: int, record: ReservationRecord) -> None:
        """Have a reservation looked at, unless nothing else happens any more."""
        self.site.kernel.call_in_background(
            due_us, lambda: self.mailbox.post(ReservationDue(record))
        )

    def wait_for_reservations(self) -> None:
        """Have a pass run when the next reservation begins or ends; somebody may wait for that."""
        coming = [self.now_us + wait_us for wait_us in reserved.waits(self)]
        if coming and self.boundary_us <= self.now_us:
            self.boundary_us = min(coming)
            self.pass_at(self.boundary_us)

    def purge_at(self, due_us: int, job: JobRecord) -> None:
        """Have a finished job forgotten at a moment."""
        self.mailbox.post_at(due_us, PurgeDue(job))

    def begin_at(self, due_us: int, job: JobRecord) -> None:
        """Have a job join its queue at a moment."""
        if job.begin_timer is not None:
            job.begin_timer.cancel()
        job.begin_timer = self.mailbox.post_at(due_us, BeginDue(job))

    def watch_limit(self, job: JobRecord) -> None:
        """Look at a job's time limit at the check before it is reached, and at the one after."""
        over_us = self.site.conf.over_time_limit_min * 60 * SECOND
        kill_us = moments_of_limits.check_at_or_after(job.limit_us + over_us)
        warn_us = kill_us - moments_of_limits.PERIODIC_US
        job.limit_timer = self.mailbox.post_at(
            warn_us if warn_us > self.now_us else kill_us, LimitDue(job, job.restart_cnt)
        )

    # Reports.

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


async def _ping(ctld: Slurmctld, envelope: Envelope, message: RequestPing) -> None:
    """Answer that the controller is there."""
    ctld.answer(envelope, SLURM_SUCCESS)


async def _pass_due(ctld: Slurmctld, _: Envelope, __: PassDue) -> None:
    await ctld.main_pass()


async def _backfill_due(ctld: Slurmctld, _: Envelope, __: BackfillDue) -> None:
    await backfill.run_backfill(ctld)


async def _reservation_due(ctld: Slurmctld, _: Envelope, message: ReservationDue) -> None:
    await reservations.due(ctld, message.record)


async def _grace_due(ctld: Slurmctld, _: Envelope, message: GraceDue) -> None:
    if message.job.restart_cnt == message.run:
        await preempt.end(ctld, message.job)


async def _purge_due(ctld: Slurmctld, _: Envelope, message: PurgeDue) -> None:
    await completion.purge(ctld, message.job)


async def _begin_due(ctld: Slurmctld, _: Envelope, message: BeginDue) -> None:
    eligible.settle(ctld, message.job)
