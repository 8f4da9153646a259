"""A burst buffer plugin for tests: it stages in, runs something before and after, stages out.

It runs no script and has no memory of its own beyond a state a job; how long each part takes is the
job's own affair: ``#STAGE in=5 pre=2 post=2 out=4`` in a script, or the same text after ``--bb=``.
"""

from simctl.plugin import (
    Buf,
    BurstBufferInfo,
    BurstBufferPlugin,
    JobDesc,
    JobRecord,
    now,
    sleep,
    slurmctld,
    start,
)

WORD = "#STAGE"


class Staging(BurstBufferPlugin):
    """Stages in in a thread, holds the launch back for its pre-run, stages out in a thread."""

    plugin_type = "burst_buffer/staging"
    plugin_name = "stages in and out"
    size_mb = 300
    pre_run = "pre"

    def __init__(self) -> None:
        self.states: dict[int, str] = {}

    def bb_p_state_pack(self, uid: int, buffer: Buf, protocol_version: int) -> int:
        """Show the plugin's name."""
        BurstBufferInfo(name=self.plugin_type.partition("/")[2]).pack(buffer)
        return 0

    def bb_p_get_system_size(self, name: str | None) -> int:
        """Tell a size of its own."""
        return self.size_mb

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> int:
        """Read the request out of the script, unless the command has brought one."""
        if not job_desc.burst_buffer:
            lines = (job_desc.script or "").splitlines()
            found = [line for line in lines if line.startswith(WORD)]
            read = found[0][len(WORD) :].strip() if found else ""
            job_desc.burst_buffer = read  # type: ignore[misc] # the one attribute it may set
        return 0

    def bb_p_job_set_tres_cnt(
        self, job_ptr: JobRecord, tres_cnt: dict[str, int], locked: bool
    ) -> None:
        """Count a hundred megabytes for each job with a burst buffer."""
        if job_ptr.burst_buffer:
            tres_cnt[f"bb/{self.plugin_type.partition('/')[2]}"] = 100

    def bb_p_job_get_est_start(self, job_ptr: JobRecord) -> int:
        """Promise it a minute from now."""
        return slurmctld.time() + 60

    def bb_p_job_try_stage_in(self) -> int:
        """Stage in for everybody who is expected to start."""
        for job in slurmctld.candidates():
            if self.states.get(job.job_id, "pending") == "pending":
                self._stage_in(job)
        return 0

    def bb_p_job_test_stage_in(self, job_ptr: JobRecord, test_only: bool) -> int:
        """Start the stage-in if that is allowed; tell how far it is."""
        if not job_ptr.burst_buffer:
            return 1
        state = self.states.get(job_ptr.job_id, "pending")
        if state == "over":
            state = self.states[job_ptr.job_id] = "pending"
        if state == "pending" and not test_only and not job_ptr.array_master:
            self._stage_in(job_ptr)
            return 0
        return {"staging-in": 0, "staged-in": 1}.get(state, -1)

    def _stage_in(self, job: JobRecord) -> None:
        """Bring the data in, then ask for a pass."""
        job_id, took = job.job_id, seconds(job, "in", 5)
        self.states[job_id] = "staging-in"

        async def stage_in() -> None:
            await sleep(took)
            async with slurmctld.locked():
                if self.states.get(job_id) == "staging-in":
                    self.states[job_id] = "staged-in"
                    slurmctld.schedule()

        start(stage_in)

    def bb_p_job_begin(self, job_ptr: JobRecord) -> int:
        """Hold the launch back while the pre-run takes its time."""
        took = seconds(job_ptr, self.pre_run, 0)
        self.states[job_ptr.job_id] = "running"
        if took:
            slurmctld.hold_launch(job_ptr)

            async def pre_run() -> None:
                await sleep(took)
                async with slurmctld.locked():
                    slurmctld.release_launch(job_ptr)

            start(pre_run)
        return 0

    def bb_p_job_revoke_alloc(self, job_ptr: JobRecord) -> int:
        """Have the data ready for the next time."""
        self.states[job_ptr.job_id] = "staged-in"
        return 0

    def bb_p_job_start_stage_out(self, job_ptr: JobRecord) -> int:
        """Do what follows the run, then bring the data out, and let the job go."""
        if not job_ptr.burst_buffer:
            return 0
        self.states[job_ptr.job_id] = "post-run"
        job_ptr.stage_out = True
        post, out = seconds(job_ptr, "post", 0), seconds(job_ptr, "out", 4)

        async def stage_out() -> None:
            await sleep(post)
            self.states[job_ptr.job_id] = "staging-out"
            await sleep(out)
            async with slurmctld.locked():
                self.states[job_ptr.job_id] = "over"
                job_ptr.stage_out = False

        start(stage_out)
        return 0

    def bb_p_job_test_post_run(self, job_ptr: JobRecord) -> int:
        """Wait for what follows the run."""
        return 0 if self.states.get(job_ptr.job_id) == "post-run" else 1

    def bb_p_job_test_stage_out(self, job_ptr: JobRecord) -> int:
        """Wait for the data that is on its way out."""
        return 0 if self.states.get(job_ptr.job_id) in ("post-run", "staging-out") else 1

    def bb_p_job_cancel(self, job_ptr: JobRecord) -> int:
        """Forget the job's data."""
        self.states[job_ptr.job_id] = "over"
        if job_ptr.stage_out:
            job_ptr.stage_out = False
        return 0

    def bb_p_xlate_bb_2_tres_str(self, burst_buffer: str) -> str:
        """Translate any size into 7 MB of this plugin's space."""
        return f"{slurmctld.tres_id('bb/' + self.plugin_type.partition('/')[2])}=7"


def seconds(job: JobRecord, part: str, otherwise: float) -> float:
    """Return how long a part of the staging takes, by the job's request."""
    words = dict(word.split("=") for word in job.burst_buffer.split() if "=" in word)
    return float(words.get(part, otherwise))


class Second(Staging):
    """One more, of the same ways, but with less hope."""

    plugin_type = "burst_buffer/second"
    size_mb = 70
    pre_run = "second_pre"

    def bb_p_job_get_est_start(self, job_ptr: JobRecord) -> int:
        """Promise it ten minutes from now."""
        return slurmctld.time() + 600


__all__ = ["Second", "Staging", "now"]
