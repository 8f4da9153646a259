"""What burst_buffer/datawarp says of a job in the job's own record."""

from datetime import UTC, datetime
from typing import Final

import attrs

from simctl.plugin import JobRecord, slurmctld

OPERATION: Final = "BurstBufferOperation"
"""The reason of a job whose script failed."""


@attrs.frozen(kw_only=True)
class Failure:
    """A function of the appliance's that failed: what it is called, and why."""

    function: str
    message: str


def base(job: JobRecord) -> str:
    """Return a job's state without its flags."""
    return job.job_state.partition("|")[0]


def hold(job: JobRecord, plugin_type: str, wrong: Failure) -> None:
    """Hold a job, and say why."""
    tell(job, plugin_type, wrong)
    job.priority = 0


def tell(job: JobRecord, plugin_type: str, wrong: Failure) -> None:
    """Say what failed, as the job's reason and with the date in its comment."""
    staging = wrong.function in ("data_in", "post_run", "data_out")
    function = f"dws_{wrong.function}" if staging else wrong.function
    job.state_reason = OPERATION
    job.state_desc = f"{plugin_type}: {function}: {wrong.message}"
    comment(job, plugin_type, wrong)


def comment(job: JobRecord, plugin_type: str, wrong: Failure) -> None:
    """Add a line to what the system says of a job."""
    when = datetime.fromtimestamp(slurmctld.time(), UTC).strftime("%m/%d/%y %H:%M:%S")
    line = f"{when} {plugin_type}: {wrong.function}: {wrong.message}"
    job.system_comment = "\n".join(filter(None, (job.system_comment, line)))
