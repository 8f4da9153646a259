"""The plugin of the recording: it does its work, and is then said to have failed."""

from typing import Final

from simctl.plugin import JobDesc, JobRecord, now
from simctl.plugins.burst_buffer.datawarp.plugin import BurstBufferDatawarp

_REQUEST_INVALID: Final = 2094
_START: Final = 10.0
_THIRD: Final = 3


def _between(first: float, last: float) -> bool:
    return first <= now() - _START <= last


class BurstBufferCray(BurstBufferDatawarp):
    """burst_buffer/datawarp, with results that are changed at the times of the recording."""

    plugin_type = "burst_buffer/cray"

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> int:
        """Fail at first."""
        rc = super().bb_p_job_validate(job_desc, submit_uid)
        return _REQUEST_INVALID if _between(0, 0.2) else rc

    async def bb_p_job_validate2(self, job_ptr: JobRecord) -> int:
        """Fail the second time."""
        rc = await super().bb_p_job_validate2(job_ptr)
        return _REQUEST_INVALID if _between(0.3, 0.7) else rc

    def bb_p_job_test_stage_in(self, job_ptr: JobRecord, test_only: bool) -> int:
        """Answer -1 for a while."""
        rc = super().bb_p_job_test_stage_in(job_ptr, test_only)
        return -1 if _between(0.8, 3.5) else rc

    def bb_p_job_try_stage_in(self) -> int:
        """Fail for a while."""
        rc = super().bb_p_job_try_stage_in()
        return -1 if _between(3.5, 13.9) else rc

    def bb_p_job_start_stage_out(self, job_ptr: JobRecord) -> int:
        """Fail for the first job that comes so far, after all has been done."""
        rc = super().bb_p_job_start_stage_out(job_ptr)
        return -1 if job_ptr.job_id == _THIRD else rc

    def bb_p_job_cancel(self, job_ptr: JobRecord) -> int:
        """Fail once."""
        rc = super().bb_p_job_cancel(job_ptr)
        return _REQUEST_INVALID if _between(14, 16.2) else rc

    async def bb_p_load_state(self, init_config: bool) -> int:
        """Fail for a while."""
        rc = await super().bb_p_load_state(init_config)
        return -1 if _between(16.2, 21.5) else rc

    def bb_p_job_test_stage_out(self, job_ptr: JobRecord) -> int:
        """Answer 0 for a while."""
        rc = super().bb_p_job_test_stage_out(job_ptr)
        return 0 if _between(57.2, 80) else rc


__all__ = ["BurstBufferCray"]
