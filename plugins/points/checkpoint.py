"""The functions of the checkpoint plugin guide."""

from typing import Any, Final

from simctl.plugins.points.declare import (
    MANAGER,
    SESSION_AS_ROOT,
    SLURMCTLD,
    TASK,
    OnError,
    Returns,
    point,
)

_GLOSSARY: Final = {
    "jobinfo": "in: the plugin's record of a job or step",
    "buffer": "in/out: the bytes; packing appends to them, unpacking reads on",
    "protocol_version": "in: the version of the protocol that the bytes are for",
    "slurmd_job": "in: what slurmstepd knows of its step (StepdJob)",
    "image_dir": "in: directory that images are written to or read from",
    "step_ptr": "in: slurmctld's record of the step (StepRecord); None for a batch script",
    "error_code": "in: the checkpoint's own error code, 0 for none",
    "error_msg": "in: what it says",
}

_ALL: Final = "1.0 to 19.05; the whole interface left Slurm with 20.02"
_BLCR: Final = "2.0 (with the blcr plugin) to 19.05; the whole interface left Slurm with 20.02"


@point(
    c="int slurm_ckpt_alloc_job(check_jobinfo_t *jobinfo)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.OBJECT,
    on_error=OnError.REFUSE_JOB,
    often="once a job and once a step; before each record read from saved state",
    failure=(
        "for a job the submission is refused with SLURM_ERROR; for a step slurmctld stops; a saved "
        "record is dropped"
    ),
    locks="job write",
    versions=_ALL,
    glossary=_GLOSSARY,
    jobinfo="out in C, returned in Python: the new record; nothing returned is an empty one",
)
def slurm_ckpt_alloc_job() -> Any:
    """Make the checkpoint record of a new job, or of a step right after its credential is built."""
    raise AssertionError


@point(
    c="int slurm_ckpt_free_job(check_jobinfo_t jobinfo)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    often="once for each record made; a requeued job keeps its own",
    failure="nothing",
    locks="job write",
    versions=_ALL,
    glossary=_GLOSSARY,
)
def slurm_ckpt_free_job(jobinfo: Any) -> int:
    """Release the record: a step's when it is over, a job's when it is purged."""
    raise AssertionError


@point(
    c="int slurm_ckpt_pack_job(check_jobinfo_t jobinfo, Buf buffer, uint16_t protocol_version)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    often="for every job and step at each save of state: docs/restarts.md says when those are",
    failure="nothing",
    locks="job read",
    versions=_ALL,
    glossary=_GLOSSARY,
)
def slurm_ckpt_pack_job(jobinfo: Any, buffer: Any, protocol_version: int) -> int:
    """Store the record when slurmctld saves its state, for each job and step."""
    raise AssertionError


@point(
    c="int slurm_ckpt_unpack_job(check_jobinfo_t jobinfo, Buf buffer, uint16_t protocol_version)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.STOP_LOADING,
    often="once for each job and step that saved state holds, when slurmctld starts",
    failure=(
        "a step is dropped, a job keeps the empty record, and slurmctld goes on (a real one reads "
        "no further in its saved state)"
    ),
    locks="job write",
    versions=_ALL,
    glossary=_GLOSSARY,
    jobinfo="in/out: a record just made, to be filled in",
)
def slurm_ckpt_unpack_job(jobinfo: Any, buffer: Any, protocol_version: int) -> int:
    """Retrieve the record when slurmctld reads its saved state."""
    raise AssertionError


@point(
    c="check_jobinfo_t slurm_ckpt_copy_job(check_jobinfo_t jobinfo)",
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.OBJECT,
    result="a copy of the record, of the plugin's own making",
    often=(
        "once for each task that is split out of a job array; in modern only where it has a record"
    ),
    failure="the task has no record, as if the plugin had returned nothing",
    locks="job write",
    versions="at the latest 15.08 to 19.05; the whole interface left Slurm with 20.02",
    glossary=_GLOSSARY,
)
def slurm_ckpt_copy_job(jobinfo: Any) -> Any:
    """Copy the record when a task is split out of a job array."""
    raise AssertionError


@point(
    c=(
        "int slurm_ckpt_op(uint32_t job_id, uint32_t step_id, struct step_record *step_ptr, "
        "uint16_t op, uint16_t data, char *image_dir, time_t *event_time, uint32_t *error_code, "
        "char **error_msg)"
    ),
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.STATUS,
    on_error=OnError.ANSWERED,
    result="CREATE and VACATE return when they are begun, long before images are written",
    often=(
        "once a request, for a job without script once for each running step; once an interval for "
        "periodic checkpoints"
    ),
    failure="the client gets -1 and the error number; a periodic checkpoint is left out",
    locks="job write, node read",
    modern_failure="the client gets the error number; a periodic checkpoint is left out",
    versions=_ALL,
    glossary=_GLOSSARY,
    job_id="in: the job",
    step_id=(
        "in: the step; for a batch script SLURM_BATCH_SCRIPT, which is the same number as NO_VAL"
    ),
    op=(
        "in: what is to be done, a CheckOp; a restart is slurmctld's own business and never asked "
        "for"
    ),
    data="in: seconds to wait at most for CREATE, VACATE and REQUEUE, else 0",
    event_time=(
        "out in C, in the CheckpointStatus returned in Python: when the checkpoint under way "
        "began, for ABLE"
    ),
    error_code=(
        "out in C, in the CheckpointStatus returned in Python: 0 or an error's number, for ERROR"
    ),
    error_msg="out in C, in the CheckpointStatus returned in Python: what that number says",
)
def slurm_ckpt_op(
    job_id: int, step_id: int, step_ptr: Any, op: int, data: int, image_dir: str
) -> Any:
    """Perform a checkpoint operation on a step or a batch job, when a client asks for it."""
    raise AssertionError


@point(
    c=(
        "int slurm_ckpt_comp(struct step_record *step_ptr, time_t event_time, "
        "uint32_t error_code, char *error_msg)"
    ),
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.ANSWERED,
    often="once a report (REQUEST_CHECKPOINT_COMP)",
    failure="the sender of the report gets -1 and the error number",
    locks="job read, although it changes records",
    versions=_ALL,
    glossary=_GLOSSARY,
    step_ptr="in/out: slurmctld's record of the step (StepRecord)",
    event_time="in: when the operation began, in seconds since the epoch",
)
def slurm_ckpt_comp(step_ptr: Any, event_time: int, error_code: int, error_msg: str) -> int:
    """Note that a checkpoint operation is complete, when a task or helper reports it."""
    raise AssertionError


@point(
    c=(
        "int slurm_ckpt_task_comp(struct step_record *step_ptr, uint32_t task_id, "
        "time_t event_time, uint32_t error_code, char *error_msg)"
    ),
    guide=SLURMCTLD,
    modern=SLURMCTLD,
    returns=Returns.INT,
    on_error=OnError.ANSWERED,
    often="once a report (REQUEST_CHECKPOINT_TASK_COMP)",
    failure="the sender of the report gets -1 and the error number",
    locks="job read, although it changes records",
    versions=_ALL,
    glossary=_GLOSSARY,
    optional=True,
    step_ptr="in/out: slurmctld's record of the step (StepRecord)",
    task_id="in: global rank of the task",
    event_time="in: when the operation began, in seconds since the epoch",
)
def slurm_ckpt_task_comp(
    step_ptr: Any, task_id: int, event_time: int, error_code: int, error_msg: str
) -> int:
    """Note that one task is done with a checkpoint operation, when it is reported."""
    raise AssertionError


@point(
    c="int slurm_ckpt_stepd_prefork(void *slurmd_job)",
    guide=SESSION_AS_ROOT,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.FAIL_LAUNCH,
    often="once a step and node, batch script included",
    failure=(
        "the session manager exits with 5: no task runs, no job_fini, and job_postfini runs; the "
        "launch fails with SLURM_ERROR. A batch job ends COMPLETED 0:0 without having run, and the "
        "node is drained"
    ),
    modern_failure=(
        "no task runs; job_fini and job_postfini both run; the launch fails with SLURM_ERROR. A "
        "batch job ends COMPLETED 0:0 without having run, and the node is drained"
    ),
    versions=_BLCR,
    glossary=_GLOSSARY,
)
def slurm_ckpt_stepd_prefork(slurmd_job: Any) -> int:
    """Prepare for checkpoints before tasks are forked, for batch and srun steps alike."""
    raise AssertionError


@point(
    c="int slurm_ckpt_signal_tasks(void *slurmd_job, char *image_dir)",
    guide=MANAGER,
    modern=MANAGER,
    returns=Returns.INT,
    on_error=OnError.ANSWERED,
    often=(
        "once a request (REQUEST_CHECKPOINT_TASKS) that reaches the step daemon, unless another of "
        "the same second did"
    ),
    failure="the client gets ESLURMD_JOB_NOTRUNNING (4027)",
    versions=_BLCR,
    glossary=_GLOSSARY,
)
def slurm_ckpt_signal_tasks(slurmd_job: Any, image_dir: str) -> int:
    """Forward a checkpoint request to the tasks of a step daemon."""
    raise AssertionError


@point(
    c="int slurm_ckpt_restart_task(void *slurmd_job, char *image_dir, int gtid)",
    guide=TASK,
    modern=TASK,
    returns=Returns.INT,
    on_error=OnError.END_TASK,
    result="one that succeeds never comes back: the task has become the restarted program",
    often="once a task of a step that is restarted from images",
    failure="the task exits with the error's number; so it does if the function returns at all",
    versions=_BLCR,
    glossary=_GLOSSARY,
    gtid="in: global rank of the task",
)
def slurm_ckpt_restart_task(slurmd_job: Any, image_dir: str, gtid: int) -> int:
    """Restart a task from an image, in the task, instead of executing its program."""
    raise AssertionError
