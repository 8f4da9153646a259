"""A fault: who has the buffer is known to memory alone."""

from typing import ClassVar

from simctl.plugin import BurstBufferPlugin, JobDesc, JobRecord


class LostClaim(BurstBufferPlugin):
    """Give one buffer to one job at a time, until its data are out."""

    plugin_type: ClassVar[str] = "burst_buffer/lost_claim"
    plugin_name: ClassVar[str] = "forgets who has its buffer when slurmctld restarts"

    def __init__(self) -> None:
        """Start with a buffer that nobody has."""
        self.holder = 0

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> None:
        """Note which jobs want the buffer."""
        if "#BUFFER" in (job_desc.script or ""):
            job_desc.burst_buffer = "one"  # type: ignore[misc] # the one attribute it may set

    def bb_p_job_test_stage_in(self, job_ptr: JobRecord, test_only: bool) -> int:
        """Give the buffer away if nobody has it: 1; -1: the job has to wait."""
        if not job_ptr.burst_buffer:
            return 1
        if not test_only and not self.holder:
            self.holder = job_ptr.job_id
        return 1 if self.holder == job_ptr.job_id else -1

    def bb_p_job_test_post_run(self, job_ptr: JobRecord) -> int:
        """Take the buffer back as soon as the job's nodes are free."""
        if self.holder == job_ptr.job_id:
            self.holder = 0
        return 1

    def bb_p_job_cancel(self, job_ptr: JobRecord) -> None:
        """Take the buffer back from a job that never ran."""
        if self.holder == job_ptr.job_id:
            self.holder = 0
