"""A job and its clock: its start and end, its limits, its suspensions."""

import attrs

from simctl.ctld.state.job.waiting import WaitingJob
from simctl.kernel.turns import Timer
from simctl.wire.ids import INFINITE, SECOND


@attrs.define(eq=False, kw_only=True)
class TimedJob(WaitingJob):
    """What a job is whose time counts, and stands still while it is suspended."""

    start_us: int = -1
    end_us: int = -1
    exit_code: int = 0
    """A wait status."""

    time_limit_min: int
    limit_us: int = INFINITE
    limit_timer: Timer | None = None
    warn_timer: Timer | None = None
    warned: bool = False
    """The signal that warns of the time limit was sent."""

    deadline_timer: Timer | None = None
    begin_timer: Timer | None = None
    preempt_us: int = -1
    """When its grace time ends, if it is being preempted."""

    suspensions: int = 0
    """How often its nodes were told to suspend or resume it."""

    suspend_us: int = -1
    """Since when it is suspended."""

    suspended_us: int = 0
    """How long it was suspended before, all in all."""

    switched_us: int = -1
    """When it was suspended or resumed last."""

    before_suspension_us: int = 0
    """How long it had run when it was suspended last."""

    def limit_to(self, minutes: int) -> None:
        """Ask for another time limit."""
        self.time_limit_min = minutes
        self.desc = attrs.evolve(self.desc, time_limit_min=minutes)

    def set_limit(self) -> None:
        """Count the time limit from the start of the run, less what it was suspended for."""
        self.limit_us = INFINITE
        if self.time_limit_min != INFINITE:
            ran_us = self.time_limit_min * 60 * SECOND
            self.limit_us = self.start_us + self.suspended_us + ran_us

    def watch_limit(self, timer: Timer | None) -> None:
        """Have the time limit looked at when a timer is due, and not before."""
        if self.limit_timer is not None:
            self.limit_timer.cancel()
        self.limit_timer = timer

    def watch_warning(self, timer: Timer | None) -> None:
        """Have the job warned of its time limit when a timer is due, and not before."""
        if self.warn_timer is not None:
            self.warn_timer.cancel()
        self.warn_timer = timer

    def warn(self) -> None:
        """Note that the job is warned of its time limit; it is so once a run."""
        self.warned = True

    def watch_deadline(self, timer: Timer | None) -> None:
        """Have the deadline looked at when a timer is due, and not before."""
        if self.deadline_timer is not None:
            self.deadline_timer.cancel()
        self.deadline_timer = timer

    def watch_begin(self, timer: Timer) -> None:
        """Have the job join its queue when a timer is due, and not before."""
        if self.begin_timer is not None:
            self.begin_timer.cancel()
        self.begin_timer = timer

    def stop_timers(self) -> None:
        """Have no limit of the job looked at any more: it is over, suspended or back in line."""
        for timer in (self.limit_timer, self.warn_timer, self.deadline_timer, self.begin_timer):
            if timer is not None:
                timer.cancel()
        self.limit_timer = self.warn_timer = self.deadline_timer = self.begin_timer = None

    def give_way_by(self, preempt_us: int) -> None:
        """Note when the grace time ends of a job that is preempted."""
        self.preempt_us = preempt_us

    def exit_late(self, status: int) -> None:
        """Take the exit code of a late report, unless the job has one. Source: job_complete()."""
        if not self.exit_code and status > 0:
            self.exit_code = status

    def forget_run(self) -> None:
        """Be as before the run that is over: no limit, no suspension of it counts."""
        self.start_us = self.end_us = self.switched_us = self.preempt_us = -1
        self.limit_us = INFINITE
        self.warned = False
        self.suspended_us = self.before_suspension_us = 0

    def suspend(self, now_us: int) -> None:
        """Stand still: the time limit does not count on, and the nodes are for others."""
        self.suspend_us = self.switched_us = now_us
        self.before_suspension_us = now_us - self.start_us - self.suspended_us
        self.limit_us = INFINITE
        self.stop_timers()

    def suspend_by_hand(self) -> None:
        """Stay suspended until a person resumes the job."""
        self.priority = 0

    def resume(self, now_us: int, priority: int) -> None:
        """Count the suspension, which is over."""
        self.suspended_us += now_us - self.suspend_us
        self.suspend_us = -1
        self.switched_us = now_us
        self.priority = priority

    def count_suspension(self) -> None:
        """Count that nodes are told to suspend or resume the job."""
        self.suspensions += 1
