"""The timers of burst buffer questions are due: the jobs are asked about once more."""

from simctl.ctld.controller import Controller
from simctl.ctld.jobs import completion, staging
from simctl.ctld.scheduling import schedule
from simctl.ctld.state.notices import GateDue, KeptDue, WaitingDue
from simctl.kernel.fabric import Envelope


async def waiting_due(ctld: Controller, _: Envelope, __: WaitingDue) -> None:
    """Run a main pass for those that wait."""
    ctld.polls.count()
    await schedule.main_pass(ctld)


async def gate_due(ctld: Controller, _: Envelope, __: GateDue) -> None:
    """Ask whether jobs may be over that their nodes have let go of."""
    ctld.polls.count()
    for job in list(ctld.bb.gated.values()) if ctld.bb is not None else ():
        if job.state.completing:
            await completion.gone(ctld, job)


async def kept_due(ctld: Controller, _: Envelope, __: KeptDue) -> None:
    """Ask about the jobs that are old enough to be purged, in one scan."""
    ctld.polls.count()
    await staging.look_at_dependencies(ctld)
    for job in list(ctld.bb.kept.values()) if ctld.bb is not None else ():
        await completion.purge(ctld, job)
