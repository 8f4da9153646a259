"""The plugins of the recordings: they do nothing but be called, and so are seen in the trace."""

from typing import Any

from simctl.plugin import CheckpointPlugin, SwitchPlugin


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


class CheckpointTrace(CheckpointPlugin):
    """A checkpoint plugin that agrees to everything."""

    plugin_type = "checkpoint/trace"
    plugin_name = "is called, and does nothing"
