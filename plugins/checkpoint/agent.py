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
    """A checkpoint that was asked for: what, where it runs, and where images go."""

    job_id: int
    step_id: int
    nodes: str
    uid: int
    op: CheckOp
    max_wait: int
    image_dir: str
    begin_time: int
    record: CheckRecord
    """Where it is noted how that went."""

    run: int
    """Which run of its job it is about: a later one is not to be ended for it."""

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
        order.record.time_stamp = 0
        order.record.note(failure, errno.slurm_strerror(failure) if failure else "")
        runs = _still_runs(order)
        if not runs:
            log.error("job or step ended during its checkpoint", order=order.name)
        elif order.op is CheckOp.REQUEUE:
            await _requeue(order, failure)
    if runs and order.op is CheckOp.VACATE:
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


def _still_runs(order: Order) -> bool:
    """Return whether the job or step still runs, in the same run and with the same record."""
    job = slurmctld.find_job(order.job_id)
    if job is None or job.restart_cnt != order.run:
        return False
    if order.step_id == SLURM_BATCH_SCRIPT:
        return job.check_job is order.record
    step = slurmctld.find_step(order.job_id, order.step_id)
    return step is not None and step.check_job is order.record


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
