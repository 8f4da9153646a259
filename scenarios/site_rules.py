"""A site's rules for submissions: what scenarios/job_submit.yaml runs under."""

from typing import Any

from simctl.plugin import JobSubmitPlugin, SlurmError, errno


class SiteRules(JobSubmitPlugin):
    """Refuses one name, gives short limits, and writes down who changed a job."""

    plugin_type = "job_submit/site_rules"
    plugin_name = "a site's rules"

    def job_submit(self, job_desc: Any, submit_uid: int) -> None:
        """Look at a submission before slurmctld does."""
        if job_desc.name == "unwanted":
            raise SlurmError(errno.ESLURM_ACCESS_DENIED, "jobs of this name are not wanted")
        job_desc.time_limit_min = 7
        job_desc.tell("your job may run for seven minutes")

    def job_modify(self, job_desc: Any, job: Any, submit_uid: int) -> None:
        """Look at a change before slurmctld does."""
        job_desc.comment = f"changed by {submit_uid}"
