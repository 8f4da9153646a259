"""checkpoint/blcr: each task is saved by a helper script, and restarted by another in its place.

In slurmctld a thread sees each checkpoint through, `agent.py`; in the step daemons and tasks the
helpers do the work as the user. They are found where Slurm is installed.
"""

from typing import ClassVar, Final

from simctl.plugin import (
    SLURM_BATCH_SCRIPT,
    SLURM_ERROR,
    SLURM_SUCCESS,
    Buf,
    CheckOp,
    CheckpointPlugin,
    CheckpointStatus,
    SlurmError,
    StepdJob,
    StepdTask,
    StepRecord,
    errno,
    hostlist,
    log,
    slurmctld,
    start,
    stepd,
)
from simctl.plugins.checkpoint.agent import Agent, Order
from simctl.plugins.checkpoint.records import BLCR_ID, CheckRecord, load, store

CR_CHECKPOINT: Final = "/usr/sbin/cr_checkpoint.sh"
"""Run with a pid and an image: saves the process and what it has started."""

CR_RESTART: Final = "/usr/sbin/cr_restart.sh"
"""Run with an image: becomes what was saved."""

LIBCR: Final = "libcr_run.so"
_OTHER_LIBCR: Final = ("libcr_run.so", "libcr_omit.so")


class CheckpointBlcr(CheckpointPlugin):
    """Save each task in an image of its own, as Berkeley Lab's checkpoints for Linux do."""

    plugin_type: ClassVar[str] = "checkpoint/blcr"
    plugin_name: ClassVar[str] = "BLCR checkpoint plugin"
    plugin_version: ClassVar[int] = 100

    def __init__(self) -> None:
        self._agent = Agent()

    # Records.

    def slurm_ckpt_alloc_job(self) -> CheckRecord:
        """Return a record of a job or step that was never checkpointed."""
        return CheckRecord()

    def slurm_ckpt_pack_job(
        self, jobinfo: CheckRecord | None, buffer: Buf, protocol_version: int
    ) -> None:
        """Append the record to *buffer*."""
        store(BLCR_ID, jobinfo, buffer)

    def slurm_ckpt_unpack_job(
        self, jobinfo: CheckRecord, buffer: Buf, protocol_version: int
    ) -> None:
        """Fill the record in from *buffer*."""
        load(BLCR_ID, jobinfo, buffer)

    def slurm_ckpt_copy_job(self, jobinfo: CheckRecord | None) -> CheckRecord | None:
        """Return a copy of the record."""
        return jobinfo.copy() if jobinfo is not None else None

    # Operations, in slurmctld.

    def slurm_ckpt_op(
        self,
        job_id: int,
        step_id: int,
        step_ptr: StepRecord | None,
        op: int,
        data: int,
        image_dir: str,
    ) -> CheckpointStatus | None:
        """Do what is asked at once, or have the agent do it."""
        record = self._record(job_id, step_ptr)
        match op:
            case CheckOp.ABLE:
                record.check_enabled()
                return CheckpointStatus(event_time=record.time_stamp)
            case CheckOp.DISABLE:
                record.disable()
            case CheckOp.ENABLE:
                record.enable(wraps=slurmctld.model == "modern")
            case CheckOp.ERROR:
                return CheckpointStatus(error_code=record.error_code, error_msg=record.error_msg)
            case CheckOp.CREATE | CheckOp.VACATE | CheckOp.REQUEUE:
                record.check_enabled()
                if record.time_stamp:
                    raise SlurmError(errno.EALREADY)
                order = _order(job_id, step_id, step_ptr, CheckOp(op), data, image_dir, record)
                record.begin(order.begin_time)
                self._agent.take(order)
            case _:
                raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        return None

    @staticmethod
    def _record(job_id: int, step_ptr: StepRecord | None) -> CheckRecord:
        """Return the record of a step, or without one the record of the job's batch script."""
        owner = step_ptr if step_ptr is not None else slurmctld.find_job(job_id)
        record = owner.check_job if owner is not None else None
        if record is None:
            raise SlurmError(errno.ESLURM_INVALID_JOB_ID)
        assert isinstance(record, CheckRecord)
        return record

    # Tasks, in the step daemon.

    def slurm_ckpt_stepd_prefork(self, slurmd_job: StepdJob) -> None:
        """Have the tasks loaded with the library that can save them, as `cr_run` does."""
        env = stepd.environment
        words = env.get("LD_PRELOAD", "").replace(":", " ").split()
        others = [word for word in words if word.rpartition("/")[2] not in _OTHER_LIBCR]
        env["LD_PRELOAD"] = ":".join((LIBCR, *others))

    async def slurm_ckpt_signal_tasks(self, slurmd_job: StepdJob, image_dir: str) -> int:
        """Have each task of this node saved, all at the same time; one that fails fails all."""
        savers = [_Saver(slurmd_job, task, image_dir) for task in stepd.tasks()]
        for saver, thread in [(each, start(each.run, "cr_checkpoint")) for each in savers]:
            await thread.join()
            if not saver.ok:
                log.error("checkpoint failed", task=saver.task.gtid, why=saver.why)
        return SLURM_SUCCESS if all(saver.ok for saver in savers) else SLURM_ERROR

    async def slurm_ckpt_restart_task(
        self, slurmd_job: StepdJob, image_dir: str, gtid: int
    ) -> None:
        """Become the task that was saved; come back only if that cannot be."""
        await stepd.execve(CR_RESTART, image_of(slurmd_job, image_dir, gtid))


def image_of(job: StepdJob, image_dir: str, gtid: int) -> str:
    """Return the path of a task's image."""
    return f"{image_dir}/script.ckpt" if job.batch else f"{image_dir}/task.{gtid}.ckpt"


class _Saver:
    """Saves one task, in a thread of its own."""

    def __init__(self, job: StepdJob, task: StepdTask, image_dir: str) -> None:
        self.task = task
        self.ok = False
        self.why = "the helper did not run"
        self._image = image_of(job, image_dir, task.gtid)

    async def run(self) -> None:
        """Run the helper as the user, where the step runs."""
        ended = await stepd.run_script(CR_CHECKPOINT, str(self.task.pid), self._image)
        self.ok = ended.ok
        self.why = ended.error.strip() or f"exit status {ended.exit_code}"


def _order(
    job_id: int,
    step_id: int,
    step_ptr: StepRecord | None,
    op: CheckOp,
    max_wait: int,
    image_dir: str,
    record: CheckRecord,
) -> Order:
    """Return what the agent is to do.

    Raises:
        SlurmError: A step is to be requeued by itself, or there is no such job.
    """
    if op is CheckOp.REQUEUE and step_id != SLURM_BATCH_SCRIPT:
        raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
    job = slurmctld.find_job(job_id)
    if job is None:
        raise SlurmError(errno.ESLURM_INVALID_JOB_ID)
    return Order(
        job_id=job_id,
        step_id=step_id,
        # The batch script is on the first node of its job.
        nodes=step_ptr.nodes if step_ptr is not None else next(iter(hostlist(job.nodes))),
        uid=job.user_id,
        op=op,
        max_wait=max_wait,
        image_dir=image_dir,
        begin_time=slurmctld.time(),
        record=record,
        run=job.restart_cnt,
    )


__all__ = ["CR_CHECKPOINT", "CR_RESTART", "CheckpointBlcr", "image_of"]
