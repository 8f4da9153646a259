"""checkpoint/mpi: the MPI library saves a step by itself; srun is told to ask it, and reports."""

from simctl.plugin import CheckOp, CheckpointPlugin, CheckpointStatus, SlurmError, errno, slurmctld


class Mpi(CheckpointPlugin):
    """Notes what srun reports."""

    plugin_type = "checkpoint/mpi"
    plugin_name = "the library's own checkpoints"

    def slurm_ckpt_alloc_job(self):
        return [0, 0, ""]

    def slurm_ckpt_copy_job(self, jobinfo):
        return list(jobinfo)

    def slurm_ckpt_pack_job(self, jobinfo, buffer, protocol_version):
        buffer.pack32(jobinfo[1])
        buffer.packstr(jobinfo[2])

    def slurm_ckpt_unpack_job(self, jobinfo, buffer, protocol_version):
        jobinfo[1] = buffer.unpack32()
        jobinfo[2] = buffer.unpackstr()

    def slurm_ckpt_op(self, job_id, step_id, step_ptr, op, data, image_dir):
        if step_ptr is None:
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        record = step_ptr.check_job
        if op == CheckOp.ABLE:
            return CheckpointStatus(event_time=record[0])
        if op == CheckOp.ERROR:
            return CheckpointStatus(error_code=record[1], error_msg=record[2])
        if op != CheckOp.CREATE and op != CheckOp.VACATE:
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        if record[0]:
            raise SlurmError(errno.EALREADY)
        words = ["ompi-checkpoint"] + ["--term"] * (op == CheckOp.VACATE)
        rc = slurmctld.srun_exec(job_id, step_id, *words)
        if rc:
            raise SlurmError(rc)
        record[0] = slurmctld.time()
        return None

    def slurm_ckpt_comp(self, step_ptr, event_time, error_code, error_msg):
        record = step_ptr.check_job
        if not record[0]:
            raise SlurmError(errno.ESLURM_ALREADY_DONE)
        record[:] = [0, error_code, error_msg or ""]
