"""The plugins of the recordings: they do nothing but be called, and so are seen in the trace."""

from typing import Any

from simctl.plugin import (
    SLURM_SUCCESS,
    CheckOp,
    CheckpointStatus,
    SlurmError,
    StepdJob,
    StepRecord,
    SwitchPlugin,
    conf,
    errno,
    process,
    stepd,
)
from simctl.plugins.checkpoint.blcr import CheckpointBlcr


class SwitchTrace(SwitchPlugin):
    """A switch plugin that has every function real Slurm 18.08 looks for."""

    plugin_type = "switch/trace"
    plugin_name = "is called, and does nothing"

    def switch_p_slurmctld_init(self) -> None:
        """Do nothing."""

    def switch_p_slurmd_init(self) -> None:
        """Do nothing."""

    def switch_p_slurmd_step_init(self) -> None:
        """Do nothing."""

    def switch_p_reconfig(self) -> None:
        """Do nothing."""

    def switch_p_part_comp(self) -> bool:
        """Want to know of no single nodes."""
        return False

    def switch_p_job_step_part_comp(self, switch_job: Any, nodelist: str) -> None:
        """Do nothing."""

    def switch_p_job_step_allocated(self, switch_job: Any, nodelist: str) -> None:
        """Do nothing."""

    def switch_p_job_suspend_test(self, switch_job: Any) -> None:
        """Do nothing."""

    def switch_p_job_suspend_info_get(self, switch_job: Any, suspend_info: Any) -> None:
        """Have nothing to tell."""

    def switch_p_job_suspend_info_pack(self, suspend_info: Any, buffer: Any) -> None:
        """Do nothing."""

    def switch_p_job_suspend_info_unpack(self, buffer: Any) -> None:
        """Do nothing."""

    def switch_p_job_suspend_info_free(self, suspend_info: Any) -> None:
        """Do nothing."""

    def switch_p_job_suspend(self, suspend_info: Any, max_wait: int) -> None:
        """Do nothing."""

    def switch_p_job_resume(self, suspend_info: Any, max_wait: int) -> None:
        """Do nothing."""

    def switch_p_job_step_pre_suspend(self, slurmd_job: Any) -> None:
        """Do nothing."""

    def switch_p_job_step_post_suspend(self, slurmd_job: Any) -> None:
        """Do nothing."""

    def switch_p_job_step_pre_resume(self, slurmd_job: Any) -> None:
        """Do nothing."""

    def switch_p_job_step_post_resume(self, slurmd_job: Any) -> None:
        """Do nothing."""

    def switch_p_job_attach(
        self,
        switch_job: Any,
        env: dict[str, str],
        nodeid: int,
        procid: int,
        nnodes: int,
        nprocs: int,
        rank: int,
    ) -> None:
        """Write the place of the task into its environment."""
        env["ORACLE_SWITCH"] = (
            f"nodeid={nodeid}/procid={procid}/nnodes={nnodes}/nprocs={nprocs}/rank={rank}"
        )


class CheckpointTrace(CheckpointBlcr):
    """A checkpoint plugin that does all as checkpoint/blcr, and makes no images."""

    plugin_type = "checkpoint/trace"
    plugin_name = "is called, and makes no images"

    def slurm_ckpt_op(
        self,
        job_id: int,
        step_id: int,
        step_ptr: StepRecord | None,
        op: int,
        data: int,
        image_dir: str,
    ) -> CheckpointStatus | None:
        """Do as checkpoint/blcr, but leave a job that is requeued where its end puts it."""
        if op == CheckOp.REQUEUE and step_ptr is None:
            op = CheckOp.VACATE
        return super().slurm_ckpt_op(job_id, step_id, step_ptr, op, data, image_dir)

    def slurm_ckpt_comp(
        self, step_ptr: StepRecord | None, event_time: int, error_code: int, error_msg: str
    ) -> None:
        """Agree to the report."""

    def slurm_ckpt_task_comp(
        self, step_ptr: StepRecord, task_id: int, event_time: int, error_code: int, error_msg: str
    ) -> None:
        """Agree to the report."""

    def slurm_ckpt_stepd_prefork(self, slurmd_job: StepdJob) -> None:
        """Have nothing to prepare."""

    async def slurm_ckpt_signal_tasks(self, slurmd_job: StepdJob, image_dir: str) -> int:
        """Save nothing."""
        return SLURM_SUCCESS

    async def slurm_ckpt_restart_task(
        self, slurmd_job: StepdJob, image_dir: str, gtid: int
    ) -> None:
        """Run the batch script again; it can tell that it is restarted."""
        if not image_dir.startswith("/cluster/run"):
            raise SlurmError(errno.ENOENT)
        script = f"{conf['SlurmdSpoolDir']}/job{slurmd_job.job_id:05d}/slurm_script"
        await stepd.execve(script, env={**process().env, "ORACLE_RESTARTED": image_dir})
