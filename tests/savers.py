"""A checkpoint plugin of the tests: every task into an image, one after another."""

from simctl.plugin import (
    CheckOp,
    CheckpointPlugin,
    SlurmError,
    StepdJob,
    StepRecord,
    errno,
    hostlist,
    log,
    rpc,
    slurmctld,
    start,
    stepd,
)


class Saver(CheckpointPlugin):
    """Saves tasks with cr_checkpoint.sh, and restarts them with cr_restart.sh."""

    plugin_type = "checkpoint/saver"
    plugin_name = "saves tasks for tests"

    def slurm_ckpt_op(
        self,
        job_id: int,
        step_id: int,
        step_ptr: StepRecord | None,
        op: int,
        data: int,
        image_dir: str,
    ) -> int:
        """Begin a checkpoint, after which VACATE ends the step and CREATE lets it be."""
        if op not in (CheckOp.CREATE, CheckOp.VACATE):
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        job = slurmctld.find_job(job_id)
        assert job is not None
        nodes = step_ptr.nodes if step_ptr is not None else hostlist(job.nodes)[0]
        begun = slurmctld.time()

        async def save() -> None:
            rc = await rpc.slurm_checkpoint_tasks(job_id, step_id, begun, image_dir, 60, nodes)
            log.info("saved", rc=rc, errno=rpc.slurm_get_errno() if rc else 0)
            if op == CheckOp.VACATE:
                async with slurmctld.locked():
                    await slurmctld.signal_step(job_id, step_id, 9)

        start(save)
        return 0

    async def slurm_ckpt_signal_tasks(self, slurmd_job: StepdJob, image_dir: str) -> int:
        """Save every task that is alive; the first that cannot be ends it."""
        for task in stepd.tasks():
            if not task.alive:
                continue
            name = "script" if slurmd_job.batch else f"task.{task.gtid}"
            result = await stepd.run_script(
                "/usr/sbin/cr_checkpoint.sh", str(task.pid), f"{image_dir}/{name}.ckpt"
            )
            if not result.ok:
                log.error(result.error)
                raise SlurmError(errno.EIO)
        return 0

    async def slurm_ckpt_restart_task(self, slurmd_job: StepdJob, image_dir: str, gtid: int) -> int:
        """Become the task of an image."""
        name = "script" if slurmd_job.batch else f"task.{gtid}"
        await stepd.execve("/usr/sbin/cr_restart.sh", f"{image_dir}/{name}.ckpt")
