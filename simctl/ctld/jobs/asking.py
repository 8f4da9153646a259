"""Which burst buffer questions are asked again, and when: the timers that jobs need."""

from typing import Final

from simctl.ctld.controller import Controller
from simctl.ctld.state.notices import GateDue, KeptDue, WaitingDue
from simctl.ctld.state.recurring import purge_interval_us
from simctl.wire.ids import SECOND

_GATE_US: Final = 30 * SECOND


def stirred(ctld: Controller, *, by_somebody: bool = False) -> None:
    """Note that something has happened to a burst buffer: the answers may change.

    A plugin's thread that says so for ever, and changes nothing, makes slurmctld no more patient;
    a person who does something (*by_somebody*) does.
    """
    ctld.polls.begin_anew(by_somebody=by_somebody)
    bb = ctld.bb
    if bb is None:
        return
    if bb.gated:
        ctld.polls.set("gated at once", ctld.now_us, GateDue())
    watch_all(ctld)


def watch_all(ctld: Controller) -> None:
    """Set every timer that jobs need."""
    watch_waiting(ctld)
    watch_gated(ctld)
    watch_kept(ctld)


def watch_waiting(ctld: Controller) -> None:
    """Have a main pass and a backfill pass run while jobs wait for their burst buffers."""
    if not any(job.queued and job.bb_answer != 1 for job in ctld.jobs.values()):
        return
    interval_us = ctld.site.conf.scheduler_parameters.sched_interval_us
    due_us = max(ctld.now_us, ctld.last_pass_us) + interval_us
    ctld.polls.set("waiting", due_us, WaitingDue())
    if ctld.polls.hopeful():
        ctld.request_backfill()


def watch_gated(ctld: Controller) -> None:
    """Have the jobs asked about that stay COMPLETING."""
    if ctld.bb is not None and ctld.bb.gated:
        ctld.polls.set("gated", ctld.now_us + _GATE_US, GateDue())


def watch_kept(ctld: Controller) -> None:
    """Have the jobs asked about that cannot be purged, or whose stage-out others wait for."""
    bb = ctld.bb
    if bb is not None and (bb.kept or bb.is_awaited):
        interval_us = purge_interval_us(ctld.site.conf.min_job_age_s)
        due_us = (ctld.now_us // interval_us + 1) * interval_us
        ctld.polls.set("kept", due_us, KeptDue())
