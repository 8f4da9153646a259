"""checkpoint/ompi: Open MPI saves a step itself; srun is told to have it do so, and reports.

Nothing is done on the nodes, and Slurm restarts nothing: ``ompi-restart`` does, in a job of its
own.
"""

from typing import ClassVar, Final

import attrs

from simctl.plugin import (
    Buf,
    CheckOp,
    CheckpointPlugin,
    CheckpointStatus,
    SlurmError,
    StepRecord,
    errno,
    slurmctld,
)
from simctl.plugins.checkpoint.records import OMPI_ID, CheckRecord, load, store

OMPI_CHECKPOINT: Final = "ompi-checkpoint"


@attrs.define(kw_only=True, eq=False)
class OmpiRecord(CheckRecord):
    """What is kept of a step; `reply_cnt` is 1 once its srun has reported."""

    node_cnt: int = 0
    reply_cnt: int = 0
    wait_time: int = 0

    def pack(self, body: Buf) -> None:
        """Append what is stored of it."""
        body.pack16(self.disabled)
        body.pack16(self.node_cnt)
        body.pack16(self.reply_cnt)
        body.pack16(self.wait_time)
        self.pack_error(body)
        body.packtime(self.time_stamp)

    def unpack(self, body: Buf) -> None:
        """Read what is stored of it; its srun may still report."""
        self.disabled = body.unpack16()
        self.node_cnt = body.unpack16()
        self.reply_cnt = body.unpack16()
        self.wait_time = body.unpack16()
        self.unpack_error(body)
        self.time_stamp = body.unpacktime()


class CheckpointOmpi(CheckpointPlugin):
    """Have a step's srun run ``ompi-checkpoint``, and wait for its report."""

    __slots__ = ()

    plugin_type: ClassVar[str] = "checkpoint/ompi"
    plugin_name: ClassVar[str] = "OpenMPI checkpoint plugin"
    plugin_version: ClassVar[int] = 100

    def slurm_ckpt_alloc_job(self) -> OmpiRecord:
        """Return a record of a job or step that was never checkpointed."""
        return OmpiRecord()

    def slurm_ckpt_pack_job(
        self, jobinfo: OmpiRecord | None, buffer: Buf, protocol_version: int
    ) -> None:
        """Append the record to *buffer*."""
        store(OMPI_ID, jobinfo, buffer)

    def slurm_ckpt_unpack_job(
        self, jobinfo: OmpiRecord, buffer: Buf, protocol_version: int
    ) -> None:
        """Fill the record in from *buffer*."""
        load(OMPI_ID, jobinfo, buffer)

    def slurm_ckpt_copy_job(self, jobinfo: OmpiRecord | None) -> OmpiRecord | None:
        """Return a copy of the record."""
        return jobinfo.copy() if jobinfo is not None else None

    def slurm_ckpt_op(
        self,
        job_id: int,
        step_id: int,
        step_ptr: StepRecord | None,
        op: int,
        data: int,
        image_dir: str,
    ) -> CheckpointStatus | None:
        """Do what is asked of a step; a batch script has no MPI to save it."""
        if step_ptr is None:
            raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        record = _record(step_ptr)
        match op:
            case CheckOp.ABLE:
                record.check_enabled()
                return CheckpointStatus(event_time=0 if record.reply_cnt else record.time_stamp)
            case CheckOp.DISABLE:
                record.disable()
            case CheckOp.ENABLE:
                record.enable(wraps=slurmctld.model == "modern")
            case CheckOp.ERROR:
                return CheckpointStatus(error_code=record.error_code, error_msg=record.error_msg)
            case CheckOp.CREATE | CheckOp.VACATE:
                record.check_enabled()
                record.begin(slurmctld.time())
                record.reply_cnt = 0
                record.wait_time = data & 0xFFFF
                how = ("--term",) if op == CheckOp.VACATE else ()
                if slurmctld.srun_exec(job_id, step_id, OMPI_CHECKPOINT, *how):
                    record.time_stamp = 0
                    raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
            case _:
                raise SlurmError(errno.ESLURM_NOT_SUPPORTED)
        return None

    def slurm_ckpt_comp(
        self, step_ptr: StepRecord | None, event_time: int, error_code: int, error_msg: str
    ) -> None:
        """Note the first report of a checkpoint; the highest error is kept."""
        record = _record(step_ptr)
        if record.reply_cnt:
            raise SlurmError(errno.ESLURM_ALREADY_DONE)
        record.note(error_code, error_msg)
        record.reply_cnt = 1
        record.time_stamp = slurmctld.time()


def _record(step_ptr: StepRecord | None) -> OmpiRecord:
    record = step_ptr.check_job if step_ptr is not None else None
    if record is None:
        raise SlurmError(errno.ESLURM_INVALID_JOB_ID)
    assert isinstance(record, OmpiRecord)
    return record


__all__ = ["OMPI_CHECKPOINT", "CheckpointOmpi", "OmpiRecord"]
