"""The sruns that wait until other steps of their job give cpus back."""

from typing import Final

from simctl.ctld.controller import Controller
from simctl.ctld.state.records import JobRecord
from simctl.kernel.fabric import Mailbox
from simctl.wire.ids import SECOND
from simctl.wire.messages import SrunStepSignal
from simctl.wire.states import JobBase

WOKEN_AT_A_TIME: Final = 8
"""How many sruns are woken when a step ends: which of them its cpus suit is not known yet."""

WOKEN: Final = -1
"""Stands for the time since when a srun waits that has been woken and has not asked again."""

LONG_US: Final = 60 * SECOND
"""A step that has waited as long is woken in any case."""


def wait(ctld: Controller, job: JobRecord, srun: Mailbox | None) -> None:
    """Note that a srun waits; one that asks again keeps its place."""
    if srun is not None:
        job.step_waits(srun, ctld.now_us)


def leave(job: JobRecord, srun: Mailbox | None) -> None:
    """Note that a srun has its step."""
    if job.step_waiters and srun is not None:
        job.step_waits_no_more(srun)


def wake(ctld: Controller, job: JobRecord) -> None:
    """Have the first of those who wait ask again, now that a step of their job has ended."""
    if not job.step_waiters or job.state.base is not JobBase.RUNNING:
        return
    for gone in [srun for srun in job.step_waiters if not srun.open]:
        job.step_waits_no_more(gone)
    woken = 0
    for srun, since_us in job.step_waiters.items():
        asks_anyway = since_us == WOKEN
        if not asks_anyway and (woken < WOKEN_AT_A_TIME or since_us + LONG_US <= ctld.now_us):
            woken += 1
            job.step_waits(srun, WOKEN)
            ctld.send(srun, SrunStepSignal(job_id=job.job_id))
