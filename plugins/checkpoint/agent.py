"""The agent of checkpoint/blcr: threads of slurmctld that see checkpoints through.

In the whole cluster one job at a time is checkpointed; another's waits until all those of the
first are over.
"""

from functools import partial
from typing import Final

import attrs

from simctl.plugin import (
    SLURM_BATCH_SCRIPT,
    SLURM_SUCCESS,
    CheckOp,
    Event,
    errno,
    log,
    rpc,
    slurmctld,
    start,
)
from simctl.plugins.checkpoint.records import CheckRecord

SCCH: Final = "/usr/sbin/scch"
"""A site's own program, run as the user when a checkpoint is over, where there is one."""

_SIGTERM: Final = 15


@attrs.frozen(kw_only=True)
class Order:
    """A checkpoint that somebody has asked for: what, where it runs, and where images go."""

    job_id: int
    step_id: int
    nodes: str
    uid: int
    op: CheckOp
    max_wait: int
    image_dir: str
    begin_time: int

    @property
    def name(self) -> str:
        """Return what `scch` is told of the job or step."""
        if self.step_id == SLURM_BATCH_SCRIPT:
            return str(self.job_id)
        return f"{self.job_id}.{self.step_id}"


class Agent:
    """Carries orders out, each in a thread, those of one job at a time."""

    def __init__(self) -> None:
        self._job_id = 0
        """The job whose turn it is."""

        self._under_way = 0
        self._idle = Event()

    def take(self, order: Order) -> None:
        """Carry an order out in a thread of its own."""
        start(partial(self._carry_out, order), "ckpt_agent")

    async def _carry_out(self, order: Order) -> None:
        while self._job_id and self._job_id != order.job_id:
            self._idle.clear()
            await self._idle.wait()
        self._job_id = order.job_id
        self._under_way += 1
        try:
            await _checkpoint(order)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._job_id = 0
                self._idle.set()


async def _checkpoint(order: Order) -> None:
    """Have the nodes save the tasks, record how that went, and end what is to end."""
    failure = await _save(order)
    async with slurmctld.locked():
        record = _find(order)
        if record is None:
            log.error("job or step ended during its checkpoint", order=order.name)
        else:
            record.time_stamp = 0
            record.note(failure, errno.slurm_strerror(failure) if failure else "")
        if record is not None and order.op is CheckOp.REQUEUE:
            await _requeue(order, failure)
    if order.op is CheckOp.VACATE:
        # Whatever has become of the images.
        await slurmctld.signal_step(order.job_id, order.step_id, _SIGTERM)
    if slurmctld.has_script(SCCH):
        await slurmctld.run_script(
            SCCH,
            order.name,
            str(failure),
            order.image_dir,
            name="scch",
            job_id=order.job_id,
            uid=order.uid,
        )


async def _save(order: Order) -> int:
    """Have the nodes save the tasks; return 0 or the error."""
    rc = await rpc.slurm_checkpoint_tasks(
        order.job_id,
        order.step_id,
        order.begin_time,
        order.image_dir,
        order.max_wait,
        order.nodes,
    )
    return rpc.slurm_get_errno() if rc else SLURM_SUCCESS


def _find(order: Order) -> CheckRecord | None:
    """Return the record of a job or step that still runs; None if it has gone."""
    if order.step_id == SLURM_BATCH_SCRIPT:
        owner = slurmctld.find_job(order.job_id)
    else:
        owner = slurmctld.find_step(order.job_id, order.step_id)
    record = owner.check_job if owner is not None else None
    return record if isinstance(record, CheckRecord) else None


async def _requeue(order: Order, failure: int) -> None:
    """Send the job back into the queue, to go on from its new image, or else as it began."""
    job = slurmctld.find_job(order.job_id)
    if job is None:
        return
    before = job.restart_dir
    await slurmctld.requeue(job)
    if failure:
        job.restart_dir = before


__all__ = ["SCCH", "Agent", "Order"]
