"""checkpoint/savers: every task saved by the helper, steps and scripts alike."""

from functools import partial

from simctl.plugin import (
    SLURM_BATCH_SCRIPT,
    CheckOp,
    CheckpointPlugin,
    CheckpointStatus,
    SlurmError,
    errno,
    hostlist,
    log,
    rpc,
    slurmctld,
    start,
    stepd,
)

HELPER = "/usr/sbin/cr_checkpoint.sh"
RESTART = "/usr/sbin/cr_restart.sh"


class Savers(CheckpointPlugin):
    """Keeps in each record how often it was saved, how the last time went, and when it began."""

    plugin_type = "checkpoint/savers"
    plugin_name = "saves tasks"

    def slurm_ckpt_alloc_job(self):
        return {"saved": 0, "error": 0, "text": "", "off": 0, "began": 0}

    def slurm_ckpt_copy_job(self, jobinfo):
        return dict(jobinfo)

    def slurm_ckpt_pack_job(self, jobinfo, buffer, protocol_version):
        buffer.pack32(jobinfo["saved"])
        buffer.pack32(jobinfo["error"])
        buffer.packstr(jobinfo["text"])
        buffer.pack16(jobinfo["off"])

    def slurm_ckpt_unpack_job(self, jobinfo, buffer, protocol_version):
        jobinfo["saved"] = buffer.unpack32()
        jobinfo["error"] = buffer.unpack32()
        jobinfo["text"] = buffer.unpackstr()
        jobinfo["off"] = buffer.unpack16()

    def record(self, job_id, step_id):
        if step_id == SLURM_BATCH_SCRIPT:
            owner = slurmctld.find_job(job_id)
        else:
            owner = slurmctld.find_step(job_id, step_id)
        return owner.check_job if owner is not None else None

    def slurm_ckpt_op(self, job_id, step_id, step_ptr, op, data, image_dir):
        record = step_ptr.check_job if step_ptr else slurmctld.find_job(job_id).check_job
        if op == CheckOp.ERROR:
            return CheckpointStatus(error_code=record["error"], error_msg=record["text"])
        if op == CheckOp.DISABLE:
            record["off"] += 1
            return None
        if op == CheckOp.ENABLE:
            record["off"] = max(0, record["off"] - 1)
            return None
        if record["off"]:
            raise SlurmError(errno.ESLURM_DISABLED)
        if op == CheckOp.ABLE:
            return CheckpointStatus(event_time=record["began"])
        if op == CheckOp.REQUEUE and step_ptr is not None:
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        if record["began"]:
            raise SlurmError(errno.EALREADY)
        record["began"] = slurmctld.time()
        nodes = step_ptr.nodes if step_ptr else hostlist(slurmctld.find_job(job_id).nodes)[0]
        start(partial(self.save, job_id, step_id, op, data, image_dir, nodes, record["began"]), "save")
        return None

    async def save(self, job_id, step_id, op, wait, image_dir, nodes, began):
        error = 0
        if await rpc.slurm_checkpoint_tasks(job_id, step_id, began, image_dir, wait, nodes):
            error = rpc.slurm_get_errno()
        async with slurmctld.locked():
            record = self.record(job_id, step_id)
            if record is None or record["began"] != began:
                return
            record["began"] = 0
            record["error"] = error
            record["text"] = errno.slurm_strerror(error) if error else ""
            record["saved"] += not error
            if op == CheckOp.REQUEUE and not error:
                await slurmctld.requeue(slurmctld.find_job(job_id))
        if op == CheckOp.VACATE:
            await slurmctld.signal_step(job_id, step_id, 15)

    async def slurm_ckpt_signal_tasks(self, slurmd_job, image_dir):
        failed = 0
        for task in stepd.tasks():
            done = await stepd.run_script(HELPER, str(task.pid), self.image(slurmd_job, image_dir, task.gtid))
            if not done.ok:
                log.error("not saved", task=task.gtid, why=done.error)
                failed += 1
        return -1 if failed else 0

    def image(self, slurmd_job, image_dir, gtid):
        return f"{image_dir}/script.ckpt" if slurmd_job.batch else f"{image_dir}/task.{gtid}.ckpt"

    async def slurm_ckpt_restart_task(self, slurmd_job, image_dir, gtid):
        await stepd.execve(RESTART, self.image(slurmd_job, image_dir, gtid))
