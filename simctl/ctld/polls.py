"""What slurmctld asks burst buffer plugins again and again, and how long that may keep a run alive.

A plugin may come to another answer by itself, so it is asked until it does. When nothing else goes
on in the cluster, and the answers stay the same, the asking ends.
"""

from typing import TYPE_CHECKING, Final

from simctl.ctld.notices import GateDue, KeptDue, WaitingDue
from simctl.kernel.fabric import Envelope
from simctl.kernel.turns import Timer
from simctl.wire.ids import SECOND

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld

_GATE_US: Final = 30 * SECOND
_PATIENCE: Final = 60
"""How often the same answers are heard while nobody does anything."""

_PATIENCE_UNDER_WAY: Final = 3000
"""How often while plugins say that something is under way, or threads of theirs are due."""


class Polls:
    """The timers of one slurmctld; each is set once at a time."""

    def __init__(self, ctld: "Slurmctld") -> None:
        self._ctld = ctld
        self._timers: dict[str, Timer] = {}
        self._fruitless = 0
        self._under_way = False
        self._changes = 0
        """How many states had changed when somebody stirred last."""

    def heard(self, answer: int) -> int:
        """Take in what one of the three-valued functions has answered, and return it."""
        self._under_way = self._under_way or answer == 0
        return answer

    def stirred(self, *, by_somebody: bool = False) -> None:
        """Note that something has happened to somebody's burst buffer: the answers may change.

        An agent that says so for ever, and changes nothing, makes nobody more patient; a person
        who does something (*by_somebody*) does.
        """
        if by_somebody or self._changes != self._ctld.changes:
            self._changes = self._ctld.changes
            self._fruitless = 0
        bb = self._ctld.bb
        if bb is None:
            return
        if bb.gated:
            self.set("gated at once", self._ctld.now_us, GateDue())
        watch_all(self._ctld)

    def set(self, name: str, due_us: int, notice: object) -> None:
        """Set a timer, unless it is set or asking has been given up."""
        timer = self._timers.get(name)
        if (timer is None or not timer.live) and self.hopeful():
            self._timers[name] = self._ctld.mailbox.post_at(due_us, notice)

    def count(self) -> None:
        """Note that questions are asked once more."""
        self._under_way = False
        if not self._others_at_work():
            self._fruitless += 1

    def hopeful(self) -> bool:
        """Tell whether asking again may be of use."""
        at_work = self._under_way or self._ctld.site.kernel.lingering > 0
        return self._fruitless < (_PATIENCE_UNDER_WAY if at_work else _PATIENCE)

    def _others_at_work(self) -> bool:
        """Tell whether anything is due but these timers, and passes that are due for their sake."""
        own = sum(timer.live for timer in self._timers.values())
        own += self._ctld.backfill_is_due + self._ctld.pass_is_due
        return self._ctld.site.kernel.foreground > own


def watch_all(ctld: "Slurmctld") -> None:
    """Set every timer that somebody needs."""
    watch_waiting(ctld)
    watch_gated(ctld)
    watch_kept(ctld)


def watch_waiting(ctld: "Slurmctld") -> None:
    """Have a main pass and a backfill pass run while jobs wait for their burst buffers."""
    if not any(job.queued and job.bb_answer != 1 for job in ctld.jobs.values()):
        return
    interval_us = ctld.site.conf.scheduler_parameters.sched_interval_us
    due_us = max(ctld.now_us, ctld.last_pass_us) + interval_us
    ctld.polls.set("waiting", due_us, WaitingDue())
    if ctld.polls.hopeful():
        ctld.request_backfill()


def watch_gated(ctld: "Slurmctld") -> None:
    """Have the jobs asked about that stay COMPLETING."""
    if ctld.bb is not None and ctld.bb.gated:
        ctld.polls.set("gated", ctld.now_us + _GATE_US, GateDue())


def watch_kept(ctld: "Slurmctld") -> None:
    """Have the jobs asked about that cannot be purged, or whose stage-out others wait for."""
    bb = ctld.bb
    if bb is not None and (bb.kept or bb.is_awaited):
        interval_us = ctld.purge_interval_us
        due_us = (ctld.now_us // interval_us + 1) * interval_us
        ctld.polls.set("kept", due_us, KeptDue())


async def waiting_due(ctld: "Slurmctld", _: Envelope, __: WaitingDue) -> None:
    """Run a main pass for those that wait."""
    ctld.polls.count()
    await ctld.main_pass()


async def gate_due(ctld: "Slurmctld", _: Envelope, __: GateDue) -> None:
    """Ask whether jobs may be over that their nodes have let go of."""
    from simctl.ctld import completion  # noqa: PLC0415 - the end of a job needs us

    ctld.polls.count()
    for job in list(ctld.bb.gated.values()) if ctld.bb is not None else ():
        if job.state.completing:
            await completion.gone(ctld, job)


async def kept_due(ctld: "Slurmctld", _: Envelope, __: KeptDue) -> None:
    """Ask about the jobs that are old enough to be purged, in one scan."""
    from simctl.ctld import completion, staging  # noqa: PLC0415 - the end of a job needs us

    ctld.polls.count()
    await staging.look_at_dependencies(ctld)
    for job in list(ctld.bb.kept.values()) if ctld.bb is not None else ():
        await completion.purge(ctld, job)
