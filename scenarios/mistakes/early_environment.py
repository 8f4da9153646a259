"""A mistake: a task's environment set too early."""

from typing import ClassVar

from simctl.plugin import JobInfo, SwitchPlugin, process


class EarlyEnvironment(SwitchPlugin):
    """Set one variable in job_init and one in job_attach: only the second reaches the task."""

    plugin_type: ClassVar[str] = "switch/early_environment"
    plugin_name: ClassVar[str] = "sets a variable before there is a task to have it"

    def switch_p_job_init(self, switch_job: JobInfo, uid: int) -> None:
        """Set FABRIC in this process's own environment, which no task is started with."""
        process().env["FABRIC"] = "too early"

    def switch_p_job_attach(
        self,
        switch_job: JobInfo,
        env: dict[str, str],
        nodeid: int,
        procid: int,
        nnodes: int,
        nprocs: int,
        rank: int,
    ) -> None:
        """Set FABRIC_RANK in the environment that the task's program gets."""
        env["FABRIC_RANK"] = str(rank)
