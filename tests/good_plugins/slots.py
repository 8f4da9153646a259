"""checkpoint/slots: one checkpoint at a time in the cluster, and a history in each record."""

from simctl.plugin import (
    SLURM_BATCH_SCRIPT,
    CheckOp,
    CheckpointPlugin,
    CheckpointStatus,
    Event,
    SlurmError,
    errno,
    rpc,
    slurmctld,
    start,
    stepd,
)


class Record:
    """What is known of a job's or step's checkpoints."""

    __slots__ = ("busy", "failures", "times")

    def __init__(self):
        self.busy = False
        self.failures = 0
        self.times = []


class Slots(CheckpointPlugin):
    """Lets whoever comes second wait until the first is over."""

    plugin_type = "checkpoint/slots"
    plugin_name = "one at a time"

    def __init__(self):
        self.taken = False
        self.free = Event()

    def slurm_ckpt_alloc_job(self):
        return Record()

    def slurm_ckpt_copy_job(self, jobinfo):
        copied = Record()
        copied.busy, copied.failures = jobinfo.busy, jobinfo.failures
        copied.times = list(jobinfo.times)
        return copied

    def slurm_ckpt_pack_job(self, jobinfo, buffer, protocol_version):
        buffer.pack32(jobinfo.failures)
        buffer.pack32(len(jobinfo.times))
        for moment in jobinfo.times:
            buffer.packtime(moment)

    def slurm_ckpt_unpack_job(self, jobinfo, buffer, protocol_version):
        jobinfo.failures = buffer.unpack32()
        jobinfo.times = [buffer.unpacktime() for _ in range(buffer.unpack32())]

    def slurm_ckpt_op(self, job_id, step_id, step_ptr, op, data, image_dir):
        owner = step_ptr if step_ptr is not None else slurmctld.find_job(job_id)
        record = owner.check_job
        if op == CheckOp.ABLE:
            return CheckpointStatus(event_time=record.times[-1] if record.busy else 0)
        if op == CheckOp.ERROR:
            return CheckpointStatus(error_code=record.failures)
        if op not in (CheckOp.CREATE, CheckOp.VACATE):
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        if record.busy:
            raise SlurmError(errno.EALREADY)
        record.busy = True
        record.times = [*record.times[-4:], slurmctld.time()]
        began, nodes = record.times[-1], owner.nodes.split(",")[0] if step_ptr is None else owner.nodes
        if step_ptr is None:
            nodes = nodes.partition("[")[0] + nodes.partition("[")[2].partition("-")[0].rstrip("]")

        async def work():
            while self.taken:
                self.free.clear()
                await self.free.wait()
            self.taken = True
            try:
                rc = await rpc.slurm_checkpoint_tasks(job_id, step_id, began, image_dir, data, nodes)
            finally:
                self.taken = False
                self.free.set()
            async with slurmctld.locked():
                if step_id == SLURM_BATCH_SCRIPT:
                    now = slurmctld.find_job(job_id)
                else:
                    now = slurmctld.find_step(job_id, step_id)
                if now is None or now.check_job is not record:
                    return
                record.busy = False
                record.failures = rpc.slurm_get_errno() if rc else 0
            if op == CheckOp.VACATE:
                await slurmctld.signal_step(job_id, step_id, 15)

        start(work)
        return None

    async def slurm_ckpt_signal_tasks(self, slurmd_job, image_dir):
        threads = []
        results = []
        for task in stepd.tasks():

            async def save(task=task):
                path = f"{image_dir}/rank{task.gtid}"
                results.append(await stepd.run_script("/opt/cr_checkpoint.sh", str(task.pid), path))

            threads.append(start(save))
        for thread in threads:
            await thread.join()
        return 0 if all(each.ok for each in results) else -1

    async def slurm_ckpt_restart_task(self, slurmd_job, image_dir, gtid):
        await stepd.execve("/opt/cr_restart.sh", f"{image_dir}/rank{gtid}")
