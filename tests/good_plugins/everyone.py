"""burst_buffer/everyone: each job has a directory of its own on the shared file system."""

from simctl.plugin import BurstBufferPlugin, disk, slurmctld

ROOT = "/shared/tmp"


class Everyone(BurstBufferPlugin):
    """Needs no directive, no thread and no memory: the directory says all."""

    plugin_type = "burst_buffer/everyone"
    plugin_name = "a directory for each job"

    def init(self):
        if not disk().is_dir(ROOT):
            disk().mkdir(ROOT, 0o755)

    def bb_p_job_validate(self, job_desc, submit_uid):
        if not job_desc.burst_buffer:
            job_desc.burst_buffer = "directory"

    def bb_p_load_state(self, init_config):
        for name in disk().listdir(ROOT):
            if slurmctld.find_job(int(name)) is None:
                disk().remove(f"{ROOT}/{name}")

    def bb_p_job_begin(self, job_ptr):
        path = f"{ROOT}/{job_ptr.job_id}"
        if not disk().is_dir(path):
            disk().mkdir(path, 0o777)
        job_ptr.env_sup["JOBTMP"] = path

    def bb_p_job_revoke_alloc(self, job_ptr):
        self.drop(job_ptr)

    def bb_p_job_start_stage_out(self, job_ptr):
        self.drop(job_ptr)

    def bb_p_job_cancel(self, job_ptr):
        self.drop(job_ptr)

    def drop(self, job):
        if disk().is_dir(f"{ROOT}/{job.job_id}"):
            disk().remove(f"{ROOT}/{job.job_id}")
