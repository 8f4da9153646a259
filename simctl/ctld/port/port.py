"""slurmctld's tables with its ways out: process, mailbox, clock, trace, plugins, timers."""

from collections.abc import Callable

from msgspec import UNSET

from simctl.ctld.state.job_rows import JobRow, exit_code_text
from simctl.ctld.state.notices import (
    BackfillDue,
    BeginDue,
    GraceDue,
    LimitDue,
    PassDue,
    PurgeDue,
    ReservationDue,
)
from simctl.ctld.state.records import JobRecord, NodeRecord, PartRecord, ReservationRecord
from simctl.ctld.state.recurring import PERIODIC_US, check_at_or_after
from simctl.ctld.state.tables import State
from simctl.kernel.causes import Subjects
from simctl.kernel.fabric import Envelope, Mailbox
from simctl.kernel.procs import Host, Process, RunsAs
from simctl.site import Site
from simctl.wire.errno import errno_name
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.states import (
    JobState,
    NodeBase,
    NodeFlag,
    check_job_change,
    node_text,
)

_LATE_US = 60 * SECOND
"""How long nodes may lie idle that a job has left which has yet to leave others."""


class Port(State):
    """What slurmctld can do with the rest of the cluster, short of sending messages.

    The state of a job or node is changed here alone: the trace is told, and the sets follow.
    """

    def __init__(
        self,
        site: Site,
        host: Host,
        *,
        uid: int,
        records: list[NodeRecord],
        partitions: list[PartRecord],
    ) -> None:
        super().__init__(site.conf, records, partitions)
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
        self.subjects = Subjects(self.process.pid)
        """What is known of causes; it outlives a slurmctld."""
        self.take_row: Callable[[JobRow], None] | None = None
        """Takes the rows of jobs that have ended, where they are too many to be kept."""
        self.began_us = self.now_us
        """When the main loop began, which looks each second whether a pass is due."""

    @property
    def now_us(self) -> int:
        """Virtual time."""
        return self.site.kernel.now_us

    def moment_us(self, unix_s: int) -> int:
        """Return a Unix time in virtual time, -1 for one before the run; 0 stands for none."""
        return max(-1, (unix_s - self.site.start_time_s) * SECOND) if unix_s else -1

    def is_operator(self, uid: int) -> bool:
        """Return whether a user may do what only root, SlurmUser and operators may."""
        if uid in (0, self.process.uid):
            return True
        return self._admin_of(uid) in ("operator", "administrator")

    def is_administrator(self, uid: int) -> bool:
        """Return whether a user may do what only root, SlurmUser and administrators may."""
        return uid in (0, self.process.uid) or self._admin_of(uid) == "administrator"

    def _admin_of(self, uid: int) -> str:
        return next((user.admin for user in self.site.users.values() if user.uid == uid), "none")

    def address(self, node: NodeRecord) -> Mailbox | None:
        """Return where the slurmd of a node receives."""
        return self.site.fabric.find(node.address)

    def wait_for(self, job: JobRecord, *causes: int) -> None:
        """Let all that follows of a job need what is being done, and *causes* as well.

        For what a job has to wait for in any case, such as the last of its epilogs.
        """
        trace = self.site.trace
        if trace.recording:
            trace.join(self.process, *causes)
            self.subjects.has_come_to(job.job_id, self.process.cause)

    def set_job(self, job: JobRecord, after: JobState) -> None:
        """Change a job's state, if the table allows it."""
        before = job.state
        check_job_change(before, after)
        self.move_job(job, after)
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
        if self.move_node(node, base, flags):
            # A job that waits for it blocks the others no more, or does so again.
            self.request_pass()
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
        if not node.reason:
            self.note_reason(node, reason, self.process.uid)
        self.set_node(node, node.base, node.flags | NodeFlag.DRAIN)

    def note_reason(self, node: NodeRecord, reason: str, uid: int) -> None:
        """Note why a node is out of service, and who says so."""
        node.give_reason(reason, uid, self.now_us)

    def request_pass(self) -> None:
        """Have a pass run as soon as the last one is batch_sched_delay ago, if a job waits."""
        if self.pass_is_due or not (self.anybody_waits() or self.preempted):
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
        if (late is None or not late.live) and self.anybody_waits():
            self.late_pass = self.mailbox.post_at(self.now_us + _LATE_US, PassDue())

    def forget_late_pass(self) -> None:
        """Call the late pass off if no job is leaving nodes any more."""
        if self.late_pass is not None and not self.completing:
            self.late_pass.cancel()
            self.late_pass = None

    def request_backfill(self) -> None:
        """Have the next backfill pass run, if a job still waits and it is configured.

        It runs every bf_interval; one before which nothing has changed would change nothing.
        """
        conf = self.site.conf
        if (
            self.backfill_is_due
            or conf.scheduler_type != "sched/backfill"
            or not self.anybody_waits()
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

    def purge_at(self, due_us: int, job: JobRecord) -> None:
        """Have a finished job forgotten at a moment."""
        self.mailbox.post_at(due_us, PurgeDue(job))

    def begin_at(self, due_us: int, job: JobRecord) -> None:
        """Have a job join its queue at a moment."""
        job.watch_begin(self.mailbox.post_at(due_us, BeginDue(job)))

    def start_limit(self, job: JobRecord) -> None:
        """Count a running job's time limit from its start, and look at it in time."""
        job.set_limit()
        if job.limit_us != INFINITE:
            self.watch_limit(job)
        else:
            job.watch_limit(None)

    def watch_limit(self, job: JobRecord) -> None:
        """Look at a job's time limit at the check before it is reached, and at the one after."""
        over_us = self.site.conf.over_time_limit_min * 60 * SECOND
        kill_us = check_at_or_after(job.limit_us + over_us)
        warn_us = kill_us - PERIODIC_US
        due_us = warn_us if warn_us > self.now_us else kill_us
        job.watch_limit(self.mailbox.post_at(due_us, LimitDue(job, job.restart_cnt)))

    def tell_refusal(self, envelope: Envelope, return_code: int) -> None:
        """Say in the trace that a request is refused for who asks."""
        message, sender = envelope.message, envelope.sender
        if sender is None:
            return
        job_id = getattr(message, "job_id", 0)
        args = {"rpc": message.rpc, "who": sender.name, "by": sender.process.uid}
        self.process.cause = self.site.trace.note(
            "log",
            "refused",
            self.process,
            args=args,
            rc=return_code,
            errno=errno_name(return_code),
            job=job_id or UNSET,
        )
