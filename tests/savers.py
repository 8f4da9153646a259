"""A checkpoint plugin of the tests: every task into an image, one after another."""

from simctl.plugin import CheckpointPlugin, SlurmError, StepdJob, errno, stepd


class Saver(CheckpointPlugin):
    """Saves tasks with cr_checkpoint.sh, and restarts them with cr_restart.sh."""

    plugin_type = "checkpoint/saver"
    plugin_name = "saves tasks for tests"

    async def slurm_ckpt_signal_tasks(self, slurmd_job: StepdJob, image_dir: str) -> int:
        """Save every task that is alive; the first that cannot be ends it."""
        for task in stepd.tasks():
            name = "script" if slurmd_job.batch else f"task.{task.gtid}"
            result = await stepd.run_script(
                "/usr/sbin/cr_checkpoint.sh", str(task.pid), f"{image_dir}/{name}.ckpt"
            )
            if not result.ok:
                raise SlurmError(errno.EIO, result.error)
        return 0

    async def slurm_ckpt_restart_task(self, slurmd_job: StepdJob, image_dir: str, gtid: int) -> int:
        """Become the task of an image."""
        name = "script" if slurmd_job.batch else f"task.{gtid}"
        await stepd.execve("/usr/sbin/cr_restart.sh", f"{image_dir}/{name}.ckpt")
