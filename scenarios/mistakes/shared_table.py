"""A mistake: state in a class attribute."""

from typing import ClassVar

from simctl.plugin import JobInfo, SwitchPlugin


class SharedTable(SwitchPlugin):
    """Number the steps of the cluster in a table that all processes seem to share."""

    plugin_type: ClassVar[str] = "switch/shared_table"
    plugin_name: ClassVar[str] = "keeps its table where only Python shares it"

    steps: ClassVar[list[str]] = []

    def switch_p_job_preinit(self, switch_job: JobInfo) -> None:
        """Enter the step: real Slurm's daemons would each have a table of their own."""
        self.steps.append("step")

    def switch_p_job_step_complete(self, switch_job: JobInfo, nodelist: str) -> None:
        """Count in the controller what was entered in another process."""
        if not self.steps:
            raise RuntimeError("no step was ever entered")
