"""The description of a batch job that lies beside its checkpoints: what a restart submits again.

JobCheckpointDir/JOBID.ckpt on the host of slurmctld, the one before it as JOBID.ckpt.old.
"""

from typing import Final

import attrs
import msgspec

from simctl.ctld.controller import Controller
from simctl.ctld.state.records import JobRecord
from simctl.wire.errno import EINVAL, SLURM_SUCCESS, SlurmError
from simctl.wire.ids import NO_VAL
from simctl.wire.records import JobDesc

VERSION: Final = "JOB_CKPT_001"
"""Files of another version are refused."""

_MODE: Final = 0o600


class SavedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What such a file holds."""

    version: str
    image_dir: str
    """Where the images were to go, without the job's own directory."""

    nodes: str
    """Where the job ran."""

    job: JobDesc


def path_of(ctld: Controller, job_id: int) -> str:
    """Return where the description of a job lies, wherever its images go."""
    return f"{ctld.site.conf.job_checkpoint_dir}/{job_id}.ckpt"


def write(ctld: Controller, job: JobRecord, image_dir: str) -> int:
    """Write the description of a batch job; return why that failed, or 0.

    It is written beside the one there is, which is kept as the old one.
    """
    saved = SavedJob(version=VERSION, image_dir=image_dir, nodes=job.node_list, job=described(job))
    path = path_of(ctld, job.job_id)
    disk = ctld.site.disk.view(ctld.process.host.name, ctld.process.uid)
    try:
        if disk.exists(f"{path}.new"):
            disk.remove(f"{path}.new")
        disk.write(f"{path}.new", msgspec.json.encode(saved), _MODE)
        if disk.exists(path):
            disk.rename(path, f"{path}.old")
        disk.rename(f"{path}.new", path)
    except OSError as error:
        args = {"level": "error", "text": f"{path}: {error.strerror}"}
        ctld.site.trace.note("log", "checkpoint_record", ctld.process, args=args, job=job.job_id)
        return error.errno or EINVAL
    return SLURM_SUCCESS


def described(job: JobRecord) -> JobDesc:
    """Return what would submit a job again as it is now. Pure."""
    return attrs.evolve(
        job.desc,
        job_id=job.job_id,
        name=job.name,
        partition=",".join(part.name for part in job.parts),
        time_limit_min=job.time_limit_min,
        nice=job.nice,
        requeue=int(job.requeue),
        # What it waited for it has waited for; a task of an array comes back alone.
        priority=NO_VAL,
        dependency="",
        begin_s=0,
        array="",
    )


def read(ctld: Controller, job_id: int) -> SavedJob:
    """Return the description of a job.

    Raises:
        SlurmError: There is none (ENOENT), it cannot be read, or it is none of this job (EINVAL).
    """
    disk = ctld.site.disk.view(ctld.process.host.name, ctld.process.uid)
    try:
        saved = msgspec.json.decode(disk.read(path_of(ctld, job_id)), type=SavedJob)
    except OSError as error:
        raise SlurmError(error.errno or EINVAL) from None
    except msgspec.DecodeError:
        raise SlurmError(EINVAL) from None
    if saved.version != VERSION or saved.job.job_id != job_id:
        raise SlurmError(EINVAL)
    return saved


__all__ = ["VERSION", "SavedJob", "described", "path_of", "read", "write"]
