"""What can be told of a job that no record holds as such. Pure; moments in virtual microseconds."""

import posixpath
from collections.abc import Mapping
from typing import Final

from simctl.ctld.state.records import JobRecord
from simctl.wire.conf.slurm_conf import SlurmConf
from simctl.wire.states import JobBase, Reason

_UNKNOWN: Final = -1


def asked_nodes(job: JobRecord, num_cpus: int) -> int:
    """Return how many nodes a job that has none will need, as far as its partition tells."""
    demand = job.demand
    by_cpus = -(-num_cpus // max(1, job.part.widest_cpus))
    by_tasks = -(-demand.placed_tasks // demand.ntasks_per_node) if demand.ntasks_per_node else 1
    return max(1, demand.min_nodes, by_cpus, by_tasks)


def eligible_us(job: JobRecord) -> int:
    """Return since or from when nothing but room keeps a job from starting; -1 if not known."""
    requeued = job.state.base is JobBase.PENDING and job.state.completing
    if requeued or job.reason == Reason.ARRAY_TASK_LIMIT:
        return _UNKNOWN
    if job.eligible_us < 0 and job.start_us >= 0 and job.batch_host:
        # It was held when it ran already, or started as it was submitted.
        return _UNKNOWN if job.accrue_us >= 0 else job.submit_us
    if job.eligible_us >= 0:
        return job.eligible_us
    independent = bool(job.priority) and job.dependency is None
    return max(job.begin_us, job.submit_us) if independent else _UNKNOWN


def accrue_us(job: JobRecord) -> int:
    """Return from when a job's age counts: nothing of one that started as it was submitted."""
    if not job.batch and job.start_us == job.submit_us:
        return _UNKNOWN
    return job.accrue_us if job.accrue_us >= 0 else eligible_us(job)


def command(job: JobRecord) -> str:
    """Return the path of a script with its arguments, or of the program that srun starts."""
    desc = job.desc
    if not job.batch:
        program = desc.argv[0] if desc.argv else ""
        return posixpath.join(desc.work_dir, program) if "/" in program else program
    return " ".join((desc.script_name, *desc.argv[1:])) if desc.script_name else ""


def burst_buffer_state(job: JobRecord) -> str:
    """Return the state of a job's burst buffer as it is shown: ``staging-in``."""
    return job.bb_state.lower().replace("_", "-")


def tracked(conf: SlurmConf, tres: Mapping[str, int]) -> dict[str, int]:
    """Return those burst buffers, in megabytes by TRES name, that AccountingStorageTRES counts."""
    return {name: tres[name] for name in conf.accounting_storage_tres if tres.get(name)}
