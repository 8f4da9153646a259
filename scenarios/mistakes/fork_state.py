"""A mistake: state kept across the wrong fork."""

from typing import ClassVar

from simctl.plugin import JobInfo, SwitchPlugin, log, process


class ForkState(SwitchPlugin):
    """Open a context in job_init and close it in job_postfini: two processes, two memories."""

    plugin_type: ClassVar[str] = "switch/fork_state"
    plugin_name: ClassVar[str] = "looks for a context in a process that never had it"

    def __init__(self) -> None:
        """Start without a context."""
        self.context: str | None = None

    def switch_p_job_init(self, switch_job: JobInfo, uid: int) -> None:
        """Open the context; in model guide this process is a fork of the job manager."""
        self.context = f"context of uid {uid}"
        log.info("opened", context=self.context, pid=process().pid)

    def switch_p_job_postfini(
        self, switch_job: JobInfo, pgid: int, job_id: int, step_id: int
    ) -> None:
        """Close the context, where this process knows of one."""
        if self.context is None:
            log.error("nothing to close: the context leaks", pid=process().pid)
        else:
            log.info("closed", context=self.context, pid=process().pid)
