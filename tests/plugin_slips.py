"""Slips of plugin authors: good plugins of `good_plugins/`, each with one thing wrong in it.

A slip is the plugin, what of its text becomes what, and the mistake that `plugins check` must name.
"""

from pathlib import Path
from typing import Final

import attrs

FOLDER: Final = Path(__file__).parent / "good_plugins"


@attrs.frozen
class Slip:
    """One thing that an author gets wrong."""

    name: str
    plugin: str
    changes: tuple[tuple[str, str], ...]
    rule: str
    function: str

    def text(self) -> str:
        """Return the plugin's source with the slip in it."""
        source = (FOLDER / f"{self.plugin}.py").read_text()
        for old, new in self.changes:
            assert old in source, (self.name, old)
            source = source.replace(old, new)
        return source


def _slip(name: str, plugin: str, rule: str, function: str, *changes: tuple[str, str]) -> Slip:
    return Slip(name, plugin, changes, rule, function)


BURST_BUFFER: Final = (
    _slip(
        "cancel forgets the space",
        "pool",
        "space-lost",
        "bb_p_job_cancel",
        ("            self.drop(job_ptr.job_id)\n            job_ptr.stage_out = False", "            job_ptr.stage_out = False"),
        ("        for job_id in [each for each in self.holds if slurmctld.find_job(each) is None]:\n            self.give_back(job_id)\n", ""),
    ),
    _slip(
        "cancel gives back more than is held",
        "pool",
        "space-given-twice",
        "bb_p_job_cancel",
        ("            self.drop(job_ptr.job_id)\n            job_ptr.stage_out", "            self.free += self.size_of(job_ptr)\n            self.drop(job_ptr.job_id)\n            job_ptr.stage_out"),
    ),
    _slip(
        "a new slurmctld books nothing",
        "pool",
        "space-given-twice",
        "bb_p_load_state",
        ("                self.book(job)\n            if job.burst", "                pass\n            if job.burst"),
        ("self.holds[job_id] / SPEED", "self.holds.get(job_id, GIB) / SPEED"),
    ),
    _slip(
        "a new slurmctld takes no stage-in up",
        "pool",
        "job-never-starts-again",
        "bb_p_load_state",
        ('                start(partial(self.fill, job.job_id), "fill")\n            elif', "                pass\n            elif"),
    ),
    _slip(
        "a new slurmctld takes no stage-out up",
        "pool",
        "stage-out-never-ends",
        "bb_p_load_state",
        ('            elif job.burst_buffer_state == "STAGING_OUT":\n                start(partial(self.empty, job.job_id), "empty")\n', ""),
    ),
    _slip(
        "the thread that fills sets a state nobody looks for",
        "pool",
        "job-never-starts",
        "bb_p_job_test_stage_in",
        ('job.burst_buffer_state = "STAGED_IN"\n            slurmctld', 'job.burst_buffer_state = "STAGED-IN"\n            slurmctld'),
    ),
    _slip(
        "backfill's question stages in",
        "pool",
        "test-only-acts",
        "bb_p_job_test_stage_in",
        ("if test_only or job_ptr.array_master", "if job_ptr.array_master"),
    ),
    _slip(
        "the start is told by the wrong clock",
        "pool",
        "start-no-moment",
        "bb_p_job_get_est_start",
        ("return slurmctld.time() + 60", "return int(now()) + 60"),
        ("    errno,\n    sleep", "    errno,\n    now,\n    sleep"),
    ),
    _slip(
        "the size is told in bytes",
        "pool",
        "wrong-unit",
        "bb_p_get_system_size",
        ("return TOTAL >> 20", "return TOTAL"),
    ),
    _slip(
        "a job's size is counted in bytes",
        "pool",
        "wrong-unit",
        "bb_p_job_set_tres_cnt",
        ("self.size_of(job_ptr) >> 20", "self.size_of(job_ptr)"),
    ),
    _slip(
        "a TRES of another name",
        "pool",
        "unknown-tres",
        "bb_p_job_set_tres_cnt",
        ('"bb/pool"', '"bb/pools"'),
    ),
    _slip(
        "what is used is told twice",
        "pool",
        "used-beyond-total",
        "bb_p_state_pack",
        ("used_space=TOTAL - self.free", "used_space=2 * TOTAL - self.free"),
    ),
    _slip(
        "the stage-out forgets the file of a cancelled job",
        "pool",
        "files-left",
        "bb_p_job_cancel",
        ("            self.drop(job_ptr.job_id)\n            job_ptr.stage_out", "            self.give_back(job_ptr.job_id)\n            job_ptr.stage_out"),
        ("/tmp/pool.", "/shared/pool."),
    ),
    _slip(
        "the lock is forgotten",
        "pool",
        "unlocked",
        "fill",
        ("        async with slurmctld.locked():\n            job = slurmctld.find_job(job_id)\n            if job is None or job.burst_buffer_state != \"STAGING_IN\"", "        if True:\n            job = slurmctld.find_job(job_id)\n            if job is None or job.burst_buffer_state != \"STAGING_IN\""),
    ),
    _slip(
        "a bad number is no error of the user's",
        "pool",
        "typo-breaks",
        "bb_p_job_validate",
        ("found is None or int(found[1])", "int(found[1])"),
    ),
    _slip(
        "a record of each job",
        "pool",
        "kept-for-ever",
        "bb_p_job_start_stage_out",
        ("        self.holds = {}\n", "        self.holds = {}\n        self.seen = {}\n"),
        ("            job_ptr.burst_buffer_state = \"STAGING_OUT\"\n", "            job_ptr.burst_buffer_state = \"STAGING_OUT\"\n            self.seen[job_ptr.job_id] = slurmctld.time()\n"),
    ),
    _slip(
        "the test of the stage-out never says 1",
        "pool",
        "record-never-purged",
        "bb_p_job_test_stage_out",
        ('return 0 if job_ptr.burst_buffer_state == "STAGING_OUT" else 1', 'return 1 if job_ptr.burst_buffer_state == "STAGED_OUT" else 0'),
    ),
    _slip(
        "the flag STAGE_OUT stays",
        "pool",
        "stage-out-never-ends",
        "bb_p_job_start_stage_out",
        ("                job.stage_out = False\n                job.burst", "                job.burst"),
    ),
    _slip(
        "slurmctld fills by itself",
        "pool",
        "blocks-slurmctld",
        "bb_p_job_test_stage_in",
        ("    def bb_p_job_test_stage_in", "    async def bb_p_job_test_stage_in"),
        ('        start(partial(self.fill, job_ptr.job_id), "fill")\n        return 0', '        await sleep(self.holds[job_ptr.job_id] / SPEED)\n        job_ptr.burst_buffer_state = "STAGED_IN"\n        return 1'),
    ),
    _slip(
        "an answer that is none",
        "pool",
        "wrong-answer",
        "bb_p_job_test_stage_in",
        ('        if job_ptr.burst_buffer_state == "STAGING_IN":\n            return 0\n', '        if job_ptr.burst_buffer_state == "STAGING_IN":\n            return 2\n'),
    ),
    _slip(
        "a requeued job is not staged in anew",
        "pool",
        "job-never-starts-again",
        "bb_p_job_start_stage_out",
        ('job_ptr.burst_buffer_state == "STAGING_IN":\n            return 0\n', 'job_ptr.burst_buffer_state == "STAGING_IN":\n            return 0\n        if job_ptr.burst_buffer_state == "COMPLETE":\n            return -1\n'),
    ),
    _slip(
        "a revoked job stays RUNNING",
        "pool",
        "job-never-starts-again",
        "bb_p_job_revoke_alloc",
        ('    def bb_p_job_revoke_alloc(self, job_ptr):\n        if self.size_of(job_ptr):\n            job_ptr.burst_buffer_state = "STAGED_IN"', '    def bb_p_job_revoke_alloc(self, job_ptr):\n        if self.size_of(job_ptr):\n            job_ptr.burst_buffer_state = "STAGING_IN"'),
    ),
    _slip(
        "the mount's hold is never released",
        "mounts",
        "launch-held-for-ever",
        "bb_p_job_begin",
        ("            slurmctld.release_launch(job)\n", ""),
    ),
    _slip(
        "a script that failed is taken for done",
        "mounts",
        "failure-ignored",
        "bb_p_job_test_stage_in",
        ("            if done.ok:\n", "            if True:\n"),
    ),
    _slip(
        "a mount that failed is taken for done",
        "mounts",
        "failure-ignored",
        "bb_p_job_begin",
        ("            if not done.ok:\n                await slurmctld.requeue(job, \"fs_mount failed\")\n                return\n", ""),
    ),
    _slip(
        "a failed stage-in holds nobody and never tries again",
        "mounts",
        "space-lost",
        "bb_p_job_cancel",
        ("            if done.ok:\n                job.burst_buffer_state = \"STAGED_IN\"", "            if done.ok and not self.broken:\n                job.burst_buffer_state = \"STAGED_IN\""),
        ("            job.burst_buffer_state = \"\"\n            job.priority = 0\n", "            self.broken = True\n            job.burst_buffer_state = \"\"\n            job.priority = 0\n"),
        ("    plugin_name = \"file systems for jobs\"\n", "    plugin_name = \"file systems for jobs\"\n\n    def init(self):\n        self.broken = False\n"),
    ),
    _slip(
        "a stage-out that divides by nothing",
        "mounts",
        "call-breaks",
        "thread save",
        ('        if "save" in wanted:\n', '        1 // int(wanted["make"] == "x")\n        if "save" in wanted:\n'),
    ),
    _slip(
        "the lease of a cancelled job is kept",
        "tiers",
        "space-lost",
        "bb_p_job_cancel",
        ("        if self.leases.pop(job_ptr.job_id, None) is not None:\n            job_ptr.burst_buffer_state = \"\"", "        if job_ptr.job_id in self.leases:\n            job_ptr.burst_buffer_state = \"\""),
        ("        self.leases = {key: lease for key, lease in self.leases.items() if key in there}\n", ""),
    ),
    _slip(
        "leases are dropped before they are flushed",
        "tiers",
        "kept-for-ever",
        "bb_p_job_start_stage_out",
        ("                if self.leases.pop(job_id, None) is not None:\n", "                if self.leases.get(job_id) is not None:\n"),
        ("        self.leases = {key: lease for key, lease in self.leases.items() if key in there}\n", ""),
        ("            lease.flushed = False\n            job_ptr", "            lease.size_mb = 0\n            job_ptr"),
    ),
    _slip(
        "a directory stays when the job is cancelled",
        "everyone",
        "files-left",
        "bb_p_job_cancel",
        ("    def bb_p_job_cancel(self, job_ptr):\n        self.drop(job_ptr)\n", "    def bb_p_job_cancel(self, job_ptr):\n        pass\n"),
        ("            if slurmctld.find_job(int(name)) is None:\n", "            if int(name) < 0:\n"),
    ),
)

CHECKPOINT: Final = (
    _slip("unpack in another order", "savers", "record-lost", "slurm_ckpt_unpack_job",
          ('        jobinfo["saved"] = buffer.unpack32()\n        jobinfo["error"] = buffer.unpack32()\n', '        jobinfo["error"] = buffer.unpack32()\n        jobinfo["saved"] = buffer.unpack32()\n')),
    _slip("a field is not packed", "savers", "record-lost", "slurm_ckpt_unpack_job",
          ('        buffer.pack32(jobinfo["saved"])\n', ""), ('        jobinfo["saved"] = buffer.unpack32()\n', "")),
    _slip("another width", "savers", "record-lost", "slurm_ckpt_unpack_job",
          ('jobinfo["off"] = buffer.unpack16()', 'jobinfo["off"] = buffer.unpack32()')),
    _slip("a field is not unpacked", "savers", "record-lost", "slurm_ckpt_unpack_job",
          ('        jobinfo["off"] = buffer.unpack16()\n', "")),
    _slip("the copy is the record", "savers", "shares-record", "slurm_ckpt_copy_job",
          ("return dict(jobinfo)", "return jobinfo")),
    _slip("the copy lacks a field's value", "savers", "copy-differs", "slurm_ckpt_copy_job",
          ("return dict(jobinfo)", "return {**jobinfo, \"saved\": 0}")),
    _slip("one record for all", "savers", "shares-record", "slurm_ckpt_alloc_job",
          ('        return {"saved": 0, "error": 0, "text": "", "off": 0, "began": 0}', "        return self.empty"),
          ('    plugin_name = "saves tasks"\n', '    plugin_name = "saves tasks"\n\n    def init(self):\n        self.empty = {"saved": 0, "error": 0, "text": "", "off": 0, "began": 0}\n')),
    _slip("the thread takes no lock", "savers", "unlocked", "save",
          ("        async with slurmctld.locked():\n", "        if True:\n")),
    _slip("the end is never noted", "savers", "checkpoint-never-ends", "slurm_ckpt_op",
          ('            record["began"] = 0\n', "")),
    _slip("a failure is no end", "savers", "checkpoint-never-ends", "slurm_ckpt_op",
          ('            record["began"] = 0\n', '            record["began"] = began if error else 0\n')),
    _slip("what was under way is packed", "savers", "checkpoint-never-ends", "slurm_ckpt_op",
          ('        buffer.pack16(jobinfo["off"])\n', '        buffer.pack16(jobinfo["off"])\n        buffer.pack64(jobinfo["began"])\n'),
          ('        jobinfo["off"] = buffer.unpack16()\n', '        jobinfo["off"] = buffer.unpack16()\n        jobinfo["began"] = buffer.unpack64()\n')),
    _slip("nobody is told to save", "savers", "checkpoint-not-made", "slurm_ckpt_op",
          ('        start(partial(self.save', '        partial(self.save'), ('record["began"]), "save")', 'record["began"])')),
    _slip("the helper's failure is ignored", "savers", "failure-hidden", "slurm_ckpt_signal_tasks",
          ("        return -1 if failed else 0", "        return 0")),
    _slip("the error is not kept", "savers", "failure-hidden", "slurm_ckpt_signal_tasks",
          ('            record["error"] = error\n', "")),
    _slip("success is an error", "savers", "false-error", "slurm_ckpt_op",
          ('record["error"] = error\n', 'record["error"] = error or 1\n')),
    _slip("vacate saves and goes on", "savers", "vacate-goes-on", "slurm_ckpt_op",
          ("        if op == CheckOp.VACATE:\n            await slurmctld.signal_step(job_id, step_id, 15)\n", "")),
    _slip("requeue saves and goes on", "savers", "requeue-goes-on", "slurm_ckpt_op",
          ("            if op == CheckOp.REQUEUE and not error:\n                await slurmctld.requeue(slurmctld.find_job(job_id))\n", "")),
    _slip("restart looks elsewhere", "savers", "restart-fails", "slurm_ckpt_restart_task",
          ("RESTART, self.image(slurmd_job, image_dir, gtid)", 'RESTART, f"{image_dir}/rank.{gtid}.ckpt"')),
    _slip("restart does nothing", "savers", "restart-fails", "slurm_ckpt_restart_task",
          ("        await stepd.execve(RESTART, self.image(slurmd_job, image_dir, gtid))", "        return 0")),
    _slip("one image for all", "savers", "one-image-for-two", "slurm_ckpt_signal_tasks",
          ('f"{image_dir}/task.{gtid}.ckpt"', 'f"{image_dir}/task.ckpt"')),
    _slip("images by the place on the node", "savers", "one-image-for-two", "slurm_ckpt_signal_tasks",
          ("self.image(slurmd_job, image_dir, task.gtid))", "self.image(slurmd_job, image_dir, task.procid))")),
    _slip("disable is not looked at", "savers", "disable-ignored", "slurm_ckpt_op",
          ('        if record["off"]:\n            raise SlurmError(errno.ESLURM_DISABLED)\n', "")),
    _slip("enable adds one more", "savers", "enable-ignored", "slurm_ckpt_op",
          ('record["off"] = max(0, record["off"] - 1)', 'record["off"] = max(1, record["off"])')),
    _slip("the wrong clock", "savers", "event-no-moment", "slurm_ckpt_op",
          ('        record["began"] = slurmctld.time()', '        record["began"] = int(now())'), ("    log,\n", "    log,\n    now,\n")),
    _slip("slurmctld waits for the nodes", "savers", "blocks-slurmctld", "slurm_ckpt_op",
          ("    def slurm_ckpt_op", "    async def slurm_ckpt_op"),
          ("        start(partial(self.save, job_id, step_id, op, data, image_dir, nodes, record[\"began\"]), \"save\")\n        return None", "        await sleep(12)\n        record[\"began\"] = 0\n        return None"), ("    slurmctld,\n", "    sleep,\n    slurmctld,\n")),
    _slip("the history is shared", "slots", "shares-record", "slurm_ckpt_copy_job",
          ("copied.times = list(jobinfo.times)", "copied.times = jobinfo.times")),
    _slip("the slot is never free again", "slots", "checkpoint-never-ends", "slurm_ckpt_op",
          ("                self.taken = False\n                self.free.set()\n", "                self.free.set()\n")),
    _slip("srun's report is not noted", "mpi", "checkpoint-never-ends", "slurm_ckpt_op",
          ('        record[:] = [0, error_code, error_msg or ""]', '        record[1:] = [error_code, error_msg or ""]')),
    _slip("jobs are noted for ever", "scripts_only", "kept-of-gone-jobs", "slurm_ckpt_op",
          ("        self.busy.add(job_id)\n", "        self.busy.add(job_id)\n        self.asked[job_id] = began = slurmctld.time()\n"),
          ("        self.busy = set()\n", "        self.busy = set()\n        self.asked = {}\n")),
)

__all__ = ["BURST_BUFFER", "CHECKPOINT", "FOLDER", "Slip"]
