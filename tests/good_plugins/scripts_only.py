"""checkpoint/scripts_only: batch scripts alone, saved on their first node and requeued."""

from simctl.plugin import (
    CheckOp,
    CheckpointPlugin,
    CheckpointStatus,
    SlurmError,
    errno,
    hostlist,
    rpc,
    slurmctld,
    start,
    stepd,
)


class ScriptsOnly(CheckpointPlugin):
    """Keeps one number of a job: the error of its last checkpoint."""

    plugin_type = "checkpoint/scripts_only"
    plugin_name = "batch scripts"

    def __init__(self):
        self.busy = set()

    def slurm_ckpt_alloc_job(self):
        return {"error": 0}

    def slurm_ckpt_copy_job(self, jobinfo):
        return {"error": jobinfo["error"]}

    def slurm_ckpt_pack_job(self, jobinfo, buffer, protocol_version):
        buffer.pack32(jobinfo["error"])

    def slurm_ckpt_unpack_job(self, jobinfo, buffer, protocol_version):
        jobinfo["error"] = buffer.unpack32()

    def slurm_ckpt_op(self, job_id, step_id, step_ptr, op, data, image_dir):
        if step_ptr is not None:
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        job = slurmctld.find_job(job_id)
        if op == CheckOp.ABLE:
            return CheckpointStatus(event_time=slurmctld.time() if job_id in self.busy else 0)
        if op == CheckOp.ERROR:
            return CheckpointStatus(error_code=job.check_job["error"])
        if op not in (CheckOp.CREATE, CheckOp.VACATE, CheckOp.REQUEUE):
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        if job_id in self.busy:
            raise SlurmError(errno.EALREADY)
        self.busy.add(job_id)
        began, node = slurmctld.time(), hostlist(job.nodes)[0]

        async def work():
            rc = await rpc.slurm_checkpoint_tasks(job_id, step_id, began, image_dir, data, node)
            async with slurmctld.locked():
                self.busy.discard(job_id)
                there = slurmctld.find_job(job_id)
                if there is None:
                    return
                there.check_job["error"] = rpc.slurm_get_errno() if rc else 0
                if op == CheckOp.REQUEUE and not rc:
                    await slurmctld.requeue(there)
            if op == CheckOp.VACATE and not rc:
                await slurmctld.signal_step(job_id, step_id, 15)

        start(work, "saves a script")
        return None

    async def slurm_ckpt_signal_tasks(self, slurmd_job, image_dir):
        for task in stepd.tasks():
            if not (await stepd.run_script("/usr/sbin/cr_checkpoint.sh", str(task.pid), f"{image_dir}/script")).ok:
                return -1
        return 0

    async def slurm_ckpt_restart_task(self, slurmd_job, image_dir, gtid):
        await stepd.execve("/usr/sbin/cr_restart.sh", f"{image_dir}/script")
