"""slurmctld stops in good order and starts again: what plugins hold crosses as packed bytes alone.

The switch plugin saves its global state into a file of its own; jobs and steps lie in saved state
with what plugins packed of them. slurmctld's own fields are taken to survive whole.
"""

from typing import TYPE_CHECKING, Final

import attrs

from simctl.ctld import checkpoint_times, steps
from simctl.ctld.records import JobRecord, StepRecord
from simctl.plugins.hooks import NULL, About, Handle, failed
from simctl.plugins.points.checkpoint import (
    slurm_ckpt_alloc_job,
    slurm_ckpt_pack_job,
    slurm_ckpt_unpack_job,
)
from simctl.plugins.points.switch import (
    switch_p_alloc_jobinfo,
    switch_p_libstate_save,
    switch_p_pack_jobinfo,
    switch_p_unpack_jobinfo,
)
from simctl.plugins.points.switch_besides import switch_p_job_step_allocated
from simctl.wire.buf import Buf, Packed
from simctl.wire.ids import SECOND
from simctl.wire.messages import RequestNodeRegistrationStatus

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld

PROTOCOL_VERSION: Final = 18 << 8 | 8
NODES_ASKED_AFTER_US: Final = 4 * SECOND
"""How long after a restart the nodes are asked what they are like and what they run."""


@attrs.frozen
class RestartDue:
    """Time to stop, and to start again at a moment."""

    again_us: int


@attrs.define
class Saved:
    """What plugins packed of jobs and steps, by job id and by job and step id."""

    jobs: dict[int, Packed] = attrs.field(factory=dict)
    steps: dict[tuple[int, int], tuple[Packed, Packed]] = attrs.field(factory=dict)
    """Of each step, its credential and its checkpoint record."""


async def save(ctld: "Slurmctld") -> Saved:
    """Have the switch save its state, then pack what plugins hold of jobs and steps."""
    hooks, who = ctld.site.hooks, ctld.process
    saved = Saved()
    await hooks.call(switch_p_libstate_save, who, ctld.site.conf.state_save_location)
    for job in ctld.jobs.values():
        saved.jobs[job.job_id] = await _packed(ctld, job.check_job, job.about)
        for step in job.steps.values():
            buffer = Buf()
            about = step.about
            await hooks.call(switch_p_pack_jobinfo, who, step.switch_job, buffer, about=about)
            credential = hooks.packed(who, buffer)
            record = await _packed(ctld, step.check_job, about)
            saved.steps[job.job_id, step.step_id] = credential, record
    return saved


async def _packed(ctld: "Slurmctld", check_job: Handle, about: About) -> Packed:
    buffer = Buf()
    await ctld.site.hooks.call(
        slurm_ckpt_pack_job, ctld.process, check_job, buffer, PROTOCOL_VERSION, about=about
    )
    return Packed(buffer.data())


async def recover(ctld: "Slurmctld", saved: Saved) -> None:
    """Take jobs and steps in from saved state; a step that no plugin can read is lost.

    Nodes are asked to register a while later, as after every start.
    """
    for job in list(ctld.jobs.values()):
        job.check_job = await _recover_job(ctld, job, saved.jobs.get(job.job_id, Packed()))
        for step in list(job.steps.values()):
            credential, record = saved.steps[job.job_id, step.step_id]
            if not await _recover_step(ctld, step, credential, record):
                await steps.lose(ctld, step)
    checkpoint_times.watch(ctld)
    for node in ctld.nodes:
        node.last_response_us = ctld.now_us
    ctld.mailbox.post_at(ctld.now_us + NODES_ASKED_AFTER_US, NodesDue())


async def _recover_job(ctld: "Slurmctld", job: JobRecord, packed: Packed) -> Handle:
    record, good = await _record(ctld, packed, job.about)
    if not good:
        _tell_lost(ctld, "a job's checkpoint record", job.about)
    return record


async def _recover_step(
    ctld: "Slurmctld", step: StepRecord, credential: Packed, record: Packed
) -> bool:
    hooks, who = ctld.site.hooks, ctld.process
    if ctld.site.model == "guide":
        step.switch_job = await hooks.call(switch_p_alloc_jobinfo, who, about=step.about)
        if failed(step.switch_job):
            await ctld.die("switch_g_alloc_jobinfo failed")
    else:
        step.switch_job = await hooks.blank(who, switch_p_alloc_jobinfo)
    step.check_job = NULL
    buffer = credential.opened()
    about = step.about
    if failed(await hooks.call(switch_p_unpack_jobinfo, who, step.switch_job, buffer, about=about)):
        _tell_lost(ctld, "a step's credential", about)
        return False
    step.check_job, good = await _record(ctld, record, about)
    if not good:
        _tell_lost(ctld, "a step's checkpoint record", about)
        return False
    await hooks.call_besides(
        switch_p_job_step_allocated, who, step.switch_job, step.node_list, about=about
    )
    return True


async def _record(ctld: "Slurmctld", packed: Packed, about: About) -> tuple[Handle, bool]:
    """Return a checkpoint record with what was packed of it, and whether that could be read."""
    hooks, who = ctld.site.hooks, ctld.process
    record = await hooks.call(slurm_ckpt_alloc_job, who, about=about)
    if failed(record):
        return NULL, False
    buffer = Buf(packed.data)
    rc = await hooks.call(slurm_ckpt_unpack_job, who, record, buffer, PROTOCOL_VERSION, about=about)
    return record, not failed(rc)


def _tell_lost(ctld: "Slurmctld", what: str, about: About) -> None:
    ctld.site.trace.note(
        "log",
        "incomplete_state",
        ctld.process,
        args={"text": f"{what} cannot be read"},
        job=about.job,
        step=about.step,
    )


@attrs.frozen
class NodesDue:
    """Time to ask all nodes to register, after a restart."""


async def nodes_due(ctld: "Slurmctld", _: object, __: NodesDue) -> None:
    """Ask every node that can be reached; the others are asked once they can be."""
    for node in ctld.nodes:
        ctld.send(ctld.address(node), RequestNodeRegistrationStatus())
