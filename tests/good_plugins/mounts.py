"""burst_buffer/mounts: a site's scripts make a file system for a job, mount it, and save it.

A script asks for one with

    #FS make=scratch space=20

where `space` is in GB; `save=/lus/out` says where what is in it goes.
"""

from simctl.plugin import BurstBufferPlugin, SlurmError, errno, slurmctld, start

KNOWN = ("make", "space", "save")


def request(text):
    """Return what a directive asks for, by key; nothing for a text that is none."""
    if not text.startswith("#FS "):
        return {}
    words = [word.partition("=") for word in text.split()[1:]]
    if any(key not in KNOWN or not value for key, _, value in words):
        raise ValueError(f"expected {', '.join(f'{each}=' for each in KNOWN)}")
    found = {key: value for key, _, value in words}
    if "make" not in found or not found.get("space", "").isdigit():
        raise ValueError("make=NAME and space=GB are needed")
    return found


class Mounts(BurstBufferPlugin):
    """Leaves the space to the scripts: they say no where there is none."""

    plugin_type = "burst_buffer/mounts"
    plugin_name = "file systems for jobs"

    def bb_p_load_state(self, init_config):
        for job in slurmctld.jobs() if init_config else ():
            if job.burst_buffer_state == "STAGING_IN":
                self.begin(job, self.make)
            elif job.burst_buffer_state == "STAGING_OUT":
                self.begin(job, self.save)

    def begin(self, job, what):
        job_id, wanted = job.job_id, request(job.burst_buffer)

        async def work():
            await what(job_id, wanted)

        start(work, what.__name__)

    def bb_p_job_validate(self, job_desc, submit_uid):
        lines = [each for each in (job_desc.script or "").splitlines() if each.startswith("#FS ")]
        try:
            for line in lines[:1]:
                request(line)
                job_desc.burst_buffer = line
        except ValueError as error:
            raise SlurmError(errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, str(error)) from None

    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        if not request(job_ptr.burst_buffer):
            return 1
        if job_ptr.burst_buffer_state in ("STAGING_IN", "STAGED_IN"):
            return int(job_ptr.burst_buffer_state == "STAGED_IN")
        if test_only or job_ptr.array_master or not job_ptr.priority:
            return -1
        job_ptr.burst_buffer_state = "STAGING_IN"
        self.begin(job_ptr, self.make)
        return 0

    async def make(self, job_id, wanted):
        done = await slurmctld.run_script(
            "/site/fs_make", wanted["make"], wanted["space"], job_id=job_id, timeout=600
        )
        async with slurmctld.locked():
            job = slurmctld.find_job(job_id)
            if job is None or job.burst_buffer_state != "STAGING_IN":
                return
            if done.ok:
                job.burst_buffer_state = "STAGED_IN"
                slurmctld.schedule()
                return
            job.burst_buffer_state = ""
            job.priority = 0
            job.state_desc = f"fs_make: {done.output.strip() or done.exit_code}"

    def bb_p_job_begin(self, job_ptr):
        if request(job_ptr.burst_buffer):
            slurmctld.hold_launch(job_ptr)
            self.begin(job_ptr, self.mount)

    async def mount(self, job_id, wanted):
        done = await slurmctld.run_script("/site/fs_mount", wanted["make"], job_id=job_id, timeout=60)
        async with slurmctld.locked():
            job = slurmctld.find_job(job_id)
            if job is None or not job.job_state.startswith("RUNNING"):
                return
            if not done.ok:
                await slurmctld.requeue(job, "fs_mount failed")
                return
            job.env_sup["FS"] = f"/fs/{wanted['make']}"
            job.burst_buffer_state = "RUNNING"
            slurmctld.release_launch(job)

    def bb_p_job_start_stage_out(self, job_ptr):
        if request(job_ptr.burst_buffer):
            job_ptr.burst_buffer_state = "STAGING_OUT"
            job_ptr.stage_out = True
            self.begin(job_ptr, self.save)

    async def save(self, job_id, wanted):
        if "save" in wanted:
            await slurmctld.run_script("/site/fs_save", wanted["save"], job_id=job_id, timeout=600)
        await slurmctld.run_script("/site/fs_drop", wanted["make"], job_id=job_id, timeout=60)
        async with slurmctld.locked():
            job = slurmctld.find_job(job_id)
            if job is not None and job.burst_buffer_state == "STAGING_OUT":
                job.stage_out = False
                job.burst_buffer_state = "COMPLETE"

    def bb_p_job_test_stage_out(self, job_ptr):
        return 0 if job_ptr.burst_buffer_state == "STAGING_OUT" else 1

    def bb_p_job_cancel(self, job_ptr):
        if request(job_ptr.burst_buffer):
            job_ptr.stage_out = False
            job_ptr.burst_buffer_state = "COMPLETE"
