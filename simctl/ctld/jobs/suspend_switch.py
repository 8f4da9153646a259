"""What the switch plugin has to do with suspended jobs, in model modern."""

from simctl.ctld.controller import Controller
from simctl.ctld.state.records import JobRecord
from simctl.plugins.hooks import NULL, Handle, failed
from simctl.plugins.points.switch_besides import (
    switch_p_job_suspend_info_free,
    switch_p_job_suspend_info_get,
    switch_p_job_suspend_info_pack,
    switch_p_job_suspend_test,
)
from simctl.wire.buf import Buf, Packed
from simctl.wire.errno import SLURM_ERROR, SLURM_SUCCESS


async def test(ctld: Controller, job: JobRecord) -> int:
    """Return 0 if every step of a job can be suspended, else the error of the first that cannot."""
    who = ctld.process
    for step in list(job.steps.values()):
        rc = await ctld.site.hooks.call_besides(
            switch_p_job_suspend_test, who, step.switch_job, about=step.about
        )
        if failed(rc):
            return who.errno or SLURM_ERROR
    return SLURM_SUCCESS


async def told(ctld: Controller, job: JobRecord) -> Handle:
    """Return what the nodes are told, which each step adds to."""
    held = NULL
    for step in list(job.steps.values()):
        given = await ctld.site.hooks.call_besides(
            switch_p_job_suspend_info_get, ctld.process, step.switch_job, held, about=step.about
        )
        if not failed(given) and given.value is not None:
            held = given
    return held


async def packed(ctld: Controller, job: JobRecord, held: Handle) -> Packed:
    """Return what one node is told, packed."""
    buffer = Buf()
    await ctld.site.hooks.call_besides(
        switch_p_job_suspend_info_pack, ctld.process, held, buffer, about=job.about
    )
    return ctld.site.hooks.packed(ctld.process, buffer)


async def free(ctld: Controller, job: JobRecord, held: Handle) -> None:
    """Release what the nodes have been told."""
    await ctld.site.hooks.call_besides(
        switch_p_job_suspend_info_free, ctld.process, held, about=job.about
    )
