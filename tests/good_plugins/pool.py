"""burst_buffer/pool: space of one pool, counted in slurmctld, filled by the plugin itself.

    #POOL 2G /home/alice/in.dat
"""

import re
from functools import partial

from simctl.plugin import (
    BurstBufferAlloc,
    BurstBufferInfo,
    BurstBufferPlugin,
    SlurmError,
    disk,
    errno,
    sleep,
    slurmctld,
    start,
)

LINE = re.compile(r"#POOL +(\d+)G(?: +(/\S+))?$")
GIB = 1 << 30
TOTAL = 12 * GIB
SPEED = GIB


class Pool(BurstBufferPlugin):
    """Books space in memory, and books it anew when slurmctld is started."""

    plugin_type = "burst_buffer/pool"
    plugin_name = "one pool"

    def init(self):
        self.free = TOTAL
        self.holds = {}

    def bb_p_load_state(self, init_config):
        for job_id in [each for each in self.holds if slurmctld.find_job(each) is None]:
            self.give_back(job_id)
        if not init_config:
            return
        for job in slurmctld.jobs():
            if job.burst_buffer_state in ("STAGING_IN", "STAGED_IN", "RUNNING", "STAGING_OUT"):
                self.book(job)
            if job.burst_buffer_state == "STAGING_IN":
                start(partial(self.fill, job.job_id), "fill")
            elif job.burst_buffer_state == "STAGING_OUT":
                start(partial(self.empty, job.job_id), "empty")

    def bb_p_get_system_size(self, name):
        return TOTAL >> 20

    def bb_p_state_pack(self, uid, buffer, protocol_version):
        allocs = tuple(BurstBufferAlloc(job_id=each, size=size) for each, size in self.holds.items())
        info = BurstBufferInfo(
            name="pool", total_space=TOTAL, used_space=TOTAL - self.free, allocs=allocs
        )
        info.pack(buffer)

    def bb_p_job_validate(self, job_desc, submit_uid):
        for line in (job_desc.script or "").splitlines():
            if not line.startswith("#POOL"):
                continue
            found = LINE.match(line)
            if found is None or int(found[1]) * GIB > TOTAL:
                raise SlurmError(
                    errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, f"{line}: `#POOL NG [FILE]`, up to 12G"
                )
            job_desc.burst_buffer = line

    def size_of(self, job):
        found = LINE.match(job.burst_buffer)
        return int(found[1]) * GIB if found else 0

    def bb_p_job_set_tres_cnt(self, job_ptr, tres_cnt, locked):
        if self.size_of(job_ptr):
            tres_cnt["bb/pool"] = self.size_of(job_ptr) >> 20

    def bb_p_job_get_est_start(self, job_ptr):
        return slurmctld.time() + 60

    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        size = self.size_of(job_ptr)
        if not size or job_ptr.burst_buffer_state == "STAGED_IN":
            return 1
        if job_ptr.burst_buffer_state == "STAGING_IN":
            return 0
        if test_only or job_ptr.array_master or not job_ptr.priority or size > self.free:
            return -1
        self.book(job_ptr)
        job_ptr.burst_buffer_state = "STAGING_IN"
        start(partial(self.fill, job_ptr.job_id), "fill")
        return 0

    def book(self, job):
        if job.job_id not in self.holds:
            self.holds[job.job_id] = self.size_of(job)
            self.free -= self.size_of(job)

    def give_back(self, job_id):
        self.free += self.holds.pop(job_id, 0)

    async def fill(self, job_id):
        await sleep(self.holds[job_id] / SPEED)
        async with slurmctld.locked():
            job = slurmctld.find_job(job_id)
            if job is None or job.burst_buffer_state != "STAGING_IN":
                return
            source = LINE.match(job.burst_buffer)[2]
            if source and disk().exists(source):
                disk().write(f"/tmp/pool.{job_id}", disk().read(source))
            job.burst_buffer_state = "STAGED_IN"
            slurmctld.schedule()

    def bb_p_job_begin(self, job_ptr):
        if self.size_of(job_ptr):
            job_ptr.burst_buffer_state = "RUNNING"
            job_ptr.env_sup["POOL_FILE"] = f"/tmp/pool.{job_ptr.job_id}"

    def bb_p_job_revoke_alloc(self, job_ptr):
        if self.size_of(job_ptr):
            job_ptr.burst_buffer_state = "STAGED_IN"

    def bb_p_job_start_stage_out(self, job_ptr):
        if self.size_of(job_ptr):
            job_ptr.burst_buffer_state = "STAGING_OUT"
            job_ptr.stage_out = True
            start(partial(self.empty, job_ptr.job_id), "empty")

    async def empty(self, job_id):
        await sleep(self.holds.get(job_id, GIB) / SPEED)
        async with slurmctld.locked():
            self.drop(job_id)
            job = slurmctld.find_job(job_id)
            if job is not None and job.burst_buffer_state == "STAGING_OUT":
                job.stage_out = False
                job.burst_buffer_state = "COMPLETE"
            slurmctld.schedule()

    def drop(self, job_id):
        self.give_back(job_id)
        if disk().exists(f"/tmp/pool.{job_id}"):
            disk().remove(f"/tmp/pool.{job_id}")

    def bb_p_job_test_stage_out(self, job_ptr):
        return 0 if job_ptr.burst_buffer_state == "STAGING_OUT" else 1

    def bb_p_job_cancel(self, job_ptr):
        if self.size_of(job_ptr):
            self.drop(job_ptr.job_id)
            job_ptr.stage_out = False
            job_ptr.burst_buffer_state = "COMPLETE"
