"""burst_buffer/tiers: fast and large space, asked for with ``--bb`` and booked by try_stage_in."""

from simctl.plugin import (
    BurstBufferInfo,
    BurstBufferPlugin,
    BurstBufferPool,
    SlurmError,
    errno,
    sleep,
    slurmctld,
    start,
)

TIERS = {"fast": 4096, "large": 65536}
"""MB of each tier."""


class Lease:
    """What one job has."""

    def __init__(self, tier, size_mb):
        self.tier = tier
        self.size_mb = size_mb
        self.filled = False
        self.flushed = True


def parse(text):
    """Return the tier and the MB of a request such as ``tier=fast mb=512``; None for another's."""
    words = dict(word.partition("=")[::2] for word in text.split())
    if words.get("tier") not in TIERS or not words.get("mb", "").isdecimal():
        return None
    return words["tier"], int(words["mb"])


class Tiers(BurstBufferPlugin):
    """Keeps leases by job; a slurmctld that starts anew takes them from what jobs say."""

    plugin_type = "burst_buffer/tiers"
    plugin_name = "two tiers"

    def __init__(self):
        self.leases = {}

    def left(self, tier):
        return TIERS[tier] - sum(each.size_mb for each in self.leases.values() if each.tier == tier)

    def bb_p_load_state(self, init_config):
        there = {job.job_id: job for job in slurmctld.jobs()}
        self.leases = {key: lease for key, lease in self.leases.items() if key in there}
        for job in there.values() if init_config else ():
            if job.burst_buffer_state:
                self.take(job)
                if job.burst_buffer_state != "filling":
                    self.leases[job.job_id].filled = True
                if job.burst_buffer_state == "flushing":
                    self.leases[job.job_id].flushed = False
                    self.flush_later(job.job_id)

    def take(self, job):
        tier, size_mb = parse(job.burst_buffer)
        self.leases[job.job_id] = Lease(tier, size_mb)
        if job.burst_buffer_state in ("", "filling"):
            job.burst_buffer_state = "filling"
            job_id = job.job_id

            async def fill():
                await sleep(size_mb / 512)
                async with slurmctld.locked():
                    lease, job = self.leases.get(job_id), slurmctld.find_job(job_id)
                    if lease is not None and job is not None:
                        lease.filled = True
                        job.burst_buffer_state = "filled"
                        slurmctld.schedule()

            start(fill)

    def bb_p_get_system_size(self, name):
        return sum(TIERS.values())

    def bb_p_state_pack(self, uid, buffer, protocol_version):
        pools = tuple(
            BurstBufferPool(
                name=tier,
                total_space=size << 20,
                unfree_space=size - self.left(tier) << 20,
                used_space=size - self.left(tier) << 20,
                granularity=1 << 20,
            )
            for tier, size in TIERS.items()
        )
        BurstBufferInfo(name="tiers", pools=pools).pack(buffer)

    def bb_p_job_validate(self, job_desc, submit_uid):
        text = job_desc.burst_buffer
        if not text.startswith("tier="):
            return
        wanted = parse(text)
        if wanted is None or wanted[1] > TIERS[wanted[0]]:
            number = errno.ESLURM_INVALID_BURST_BUFFER_REQUEST
            raise SlurmError(number, "expected --bb='tier=fast mb=512', or another tier: large")

    def bb_p_job_set_tres_cnt(self, job_ptr, tres_cnt, locked):
        wanted = parse(job_ptr.burst_buffer)
        if wanted is not None:
            tres_cnt["bb/tiers"] = wanted[1]

    def bb_p_job_get_est_start(self, job_ptr):
        return slurmctld.time()

    def bb_p_job_try_stage_in(self):
        for job in slurmctld.candidates():
            wanted = parse(job.burst_buffer)
            if wanted is not None and job.job_id not in self.leases and wanted[1] <= self.left(wanted[0]):
                self.take(job)

    def bb_p_job_test_stage_in(self, job_ptr, test_only):
        if parse(job_ptr.burst_buffer) is None:
            return 1
        lease = self.leases.get(job_ptr.job_id)
        return -1 if lease is None else int(lease.filled)

    def bb_p_job_start_stage_out(self, job_ptr):
        lease = self.leases.get(job_ptr.job_id)
        if lease is not None:
            lease.flushed = False
            job_ptr.burst_buffer_state = "flushing"
            self.flush_later(job_ptr.job_id)

    def flush_later(self, job_id):
        async def flush():
            await sleep(3)
            async with slurmctld.locked():
                if self.leases.pop(job_id, None) is not None:
                    job = slurmctld.find_job(job_id)
                    if job is not None:
                        job.burst_buffer_state = ""
                slurmctld.schedule()

        start(flush)

    def bb_p_job_test_stage_out(self, job_ptr):
        lease = self.leases.get(job_ptr.job_id)
        return int(lease is None or lease.flushed)

    def bb_p_job_cancel(self, job_ptr):
        if self.leases.pop(job_ptr.job_id, None) is not None:
            job_ptr.burst_buffer_state = ""
