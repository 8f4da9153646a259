"""A job as it waits: what it asks for, its priority, its reason, its holds."""

from typing import Final

import attrs

from simctl.plugins.hooks import About
from simctl.wire.records import JobDesc
from simctl.wire.states import JobBase, JobState, Reason

_NOT_TOLD: Final = (Reason.NONE, Reason.PRIORITY, Reason.RESOURCES)
"""What a job waits for of which accounting is not told."""


@attrs.define(eq=False, kw_only=True)
class WaitingJob:
    """What a job is that waits: how it stands in its queues, and why it does not start."""

    job_id: int
    desc: JobDesc
    state: JobState
    about: About
    submit_us: int
    batch: bool
    requeue: bool
    name: str
    priority: int
    """The highest starts first; 0 holds the job."""

    place: int = 0
    """Where it stands in the list of jobs; the tasks of an array that wait go to its end."""

    queue_number: int = -1
    queued: bool = False
    reason: str = Reason.NONE
    lasting_reason: str = ""
    """Why the job could never start in its partition as it is."""

    held_by_user: bool = False
    """A held job may be released by its owner."""

    hold_text: str = ""
    """What is shown of a held job instead of the usual reason."""

    special_exit: bool = False
    """It goes back into the queue to be held there for how it ended."""

    nice: int = 0
    eligible_us: int = -1
    accrue_us: int = -1
    """When it was eligible first: its age counts from then on, held or not."""

    begin_us: int = -1
    waited_for: str = ""
    """What it last had to wait for, but for its turn and for nodes."""

    planned_us: int = -1
    """When backfill last expected it to start."""

    planned_nodes: str = ""
    """Where that was to be."""

    evaluated_us: int = -1
    """When a scheduler last looked at it."""

    scheduler: str = "Main"
    """Which of them that was, Main or Backfill."""

    submit_host: str = ""
    submit_pid: int = 0
    """The process that submitted it."""

    told: str = ""
    """What job_submit plugins have to say to the user who submits it."""

    @property
    def without_nodes(self) -> bool:
        """Return whether it asks for no node: all it does is done by its burst buffer."""
        return self.desc.min_nodes == 0

    def waits_for(self, reason: str) -> None:
        """Wait for *reason*, and remember what of that accounting is told.

        Accounting is not told of a job's turn and of nodes in use, nor, where an srun or salloc
        waits, of what the job's partition does not allow.
        """
        self.reason = reason
        if reason == self.lasting_reason and not self.batch:
            return
        if reason and reason == self.hold_text:
            reason = Reason.HELD_USER
        if reason and reason not in _NOT_TOLD:
            self.waited_for = reason.partition(",")[0]

    def looked_at(self, now_us: int, scheduler: str) -> None:
        """Note that a pass looks at the job: one of Main or of Backfill."""
        self.evaluated_us, self.scheduler = now_us, scheduler

    def plan(self, start_us: int, node_list: str) -> None:
        """Note when and where backfill expects the job to start; where is empty if not known."""
        self.planned_us, self.planned_nodes = start_us, node_list

    def begin_after(self, begin_us: int) -> None:
        """Not begin before a moment; -1 for no such moment."""
        self.begin_us = begin_us

    def wait_again(self) -> None:
        """Wait for the begin time after a run, or be held; who held it while it ran is told."""
        if self.hold_text:
            self.reason = self.hold_text
        elif self.reason not in (Reason.HELD_USER, Reason.HELD_ADMIN):
            self.reason = Reason.BEGIN_TIME

    def hold(self, text: str, *, by_user: bool) -> None:
        """Hold the job; *text* is shown in place of the usual reason, if there is any.

        Of a job that runs the hold is told at once, and holds once it is back in the queue.
        """
        self._hold(text, by_user=by_user)
        self.eligible_us = -1
        if self.state.base is not JobBase.PENDING:
            self.reason = Reason.HELD_USER if by_user else Reason.HELD_ADMIN

    def hold_after_run(self, text: str, *, special_exit: bool) -> None:
        """Have a job that goes back into the queue held there; its owner may release it."""
        self._hold(text, by_user=True)
        self.special_exit = special_exit

    def lose_reservation(self) -> None:
        """Hold the job, whose reservation is gone; its owner may release it to run without one.

        What an operator holds stays so.
        """
        self.desc = attrs.evolve(self.desc, reservation="")
        if self.priority or self.held_by_user:
            self._hold(Reason.RESERVATION_DELETED, by_user=False)
            self.waits_for(Reason.RESERVATION_DELETED)

    def _hold(self, text: str, *, by_user: bool) -> None:
        self.priority = 0
        self.held_by_user = by_user
        self.hold_text = text

    def release(self, priority: int) -> None:
        """Let the job have a priority again, and forget why it was held."""
        self.priority = priority
        self.hold_text = ""
        self.special_exit = False
        if self.state.base is not JobBase.PENDING:
            self.reason = Reason.NONE

    def prioritize(self, priority: int) -> None:
        """Take a priority that an operator or the owner gives; it counts as it is."""
        self.priority = priority
        self.nice = 0

    def be_nice(self, nice: int) -> None:
        """Take another nice value: the priority changes by the difference, unless it is held."""
        if self.priority:
            self.priority = max(1, self.priority + self.nice - nice)
        self.nice = nice

    def plugin_prioritizes(self, priority: int) -> None:
        """Take the priority that a plugin gives; with 0 an operator has to release the job."""
        self.priority = priority
        self.held_by_user = False
        if not priority:
            self.eligible_us = -1

    def rename(self, name: str) -> None:
        """Take another name."""
        self.name = name
        self.desc = attrs.evolve(self.desc, name=name)

    def amend(self, desc: JobDesc) -> None:
        """Ask for something else from now on; what follows from it is the caller's."""
        self.desc = desc

    def allow_requeue(self, allowed: bool) -> None:
        """Take whether the job may be sent back into the queue."""
        self.requeue = allowed
