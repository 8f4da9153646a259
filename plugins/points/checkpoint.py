"""The functions of the checkpoint plugin guide."""

from typing import Any

from simctl.plugins.points.declare import (
    MANAGER,
    SESSION_AS_ROOT,
    SLURMCTLD,
    TASK,
    OnError,
    Returns,
    point,
)


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.OBJECT, on_error=OnError.REFUSE_JOB)
def slurm_ckpt_alloc_job() -> Any:
    """Make the checkpoint record of a new job, or of a step right after its credential is built."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.INT)
def slurm_ckpt_free_job(jobinfo: Any) -> int:
    """Release the record: a step's when it is over, a job's when it is purged."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.INT)
def slurm_ckpt_pack_job(jobinfo: Any, buffer: Any, protocol_version: int) -> int:
    """Store the record when slurmctld saves its state, for each job and step."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.INT)
def slurm_ckpt_unpack_job(jobinfo: Any, buffer: Any, protocol_version: int) -> int:
    """Retrieve the record when slurmctld reads its saved state."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.OBJECT)
def slurm_ckpt_copy_job(jobinfo: Any) -> Any:
    """Copy the record when a task is split out of a job array."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.DATA)
def slurm_ckpt_op(
    job_id: int, step_id: int, step_ptr: Any, op: int, data: int, image_dir: str
) -> Any:
    """Perform a checkpoint operation on a step or a batch job."""
    raise AssertionError


@point(guide=SLURMCTLD, modern=SLURMCTLD, returns=Returns.INT)
def slurm_ckpt_comp(step_ptr: Any, event_time: int, error_code: int, error_msg: str) -> int:
    """Note that a checkpoint operation is complete."""
    raise AssertionError


@point(guide=SESSION_AS_ROOT, modern=MANAGER, returns=Returns.INT, on_error=OnError.FAIL_LAUNCH)
def slurm_ckpt_stepd_prefork(slurmd_job: Any) -> int:
    """Prepare for checkpoints before tasks are forked, for batch and srun steps alike."""
    raise AssertionError


@point(guide=MANAGER, modern=MANAGER, returns=Returns.INT)
def slurm_ckpt_signal_tasks(slurmd_job: Any, image_dir: str) -> int:
    """Forward a checkpoint request to the tasks of a step daemon."""
    raise AssertionError


@point(guide=TASK, modern=TASK, returns=Returns.INT)
def slurm_ckpt_restart_task(slurmd_job: Any, image_dir: str, gtid: int) -> int:
    """Restart a task from an image, in the task, instead of executing its program."""
    raise AssertionError
