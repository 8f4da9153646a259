"""What scancel is to end: the jobs, array tasks and steps its words name, or its filters select."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from simctl.commands.arguments.options import UsageError
from simctl.wire.arrays import parse_tasks
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.ids import NO_VAL
from simctl.wire.info import JobInfo
from simctl.wire.states import JobBase, JobFlag

_WORD: Final = re.compile(r"([1-9]\d*)(?:_(\d+|\*|\[[\d,:-]+\]))?(?:\+\d+)?(?:\.(\d+))?")
USUAL_QOS: Final = "normal"
"""The quality of service of every job."""

FILTERS: Final = (
    *("account", "name", "nodelist", "partition", "qos", "reservation", "state", "user", "wckey"),
)
"""Options that select among all jobs."""


@attrs.frozen(kw_only=True)
class Target:
    """A job, tasks of an array, or a step, as a word names it; `tasks` is empty for all of them."""

    word: str
    job_id: int
    tasks: tuple[int, ...] = ()
    step_id: int | None = None

    def means(self, job: JobInfo) -> bool:
        """Return whether a job is what the word names."""
        if not self.tasks:
            return self.job_id in (job.job_id, job.array_job_id)
        if job.array_job_id != self.job_id:
            return False
        return bool(set(self.tasks) & set(tasks_of(job)))

    @property
    def told(self) -> str:
        """Return the job's id as scancel's complaints write it: without the step."""
        return self.word.partition(".")[0]


def read_target(word: str) -> Target:
    """Read ``5``, ``5.0``, ``5_7``, ``5_[1-3]`` or ``5_*``.

    Raises:
        UsageError: It names nothing.
    """
    match = _WORD.fullmatch(word)
    bad = UsageError(1, f"scancel: error: Invalid job id {word}")
    if match is None:
        raise bad
    tasks: tuple[int, ...] = ()
    if match[2] and match[2] != "*":
        try:
            tasks = parse_tasks(match[2])
        except ValueError:
            raise bad from None
    step_id = int(match[3]) if match[3] else None
    return Target(word=word, job_id=int(match[1]), tasks=tasks, step_id=step_id)


def tasks_of(job: JobInfo) -> tuple[int, ...]:
    """Return the tasks of an array that a record stands for: one, or all that wait."""
    if job.array_tasks:
        return parse_tasks(job.array_tasks.partition("%")[0])
    return (job.array_task_id,) if job.array_task_id != NO_VAL else ()


def name_of(job: JobInfo) -> str:
    """Return a job's id as scancel writes it: ``7``, ``7_2``, ``7_[2-5]`` for tasks that wait."""
    if job.array_tasks:
        tasks = job.array_tasks.partition("%")[0]
        return f"{job.array_job_id}_{tasks if tasks.isdecimal() else f'[{tasks}]'}"
    if job.array_task_id != NO_VAL:
        return f"{job.array_job_id}_{job.array_task_id}"
    return str(job.job_id)


def chosen(options: Mapping[str, Any], jobs: Iterable[JobInfo]) -> list[JobInfo]:
    """Return the jobs not over that all filters let through."""
    return [job for job in jobs if not job.state.finished and _passes(options, job)]


def _passes(options: Mapping[str, Any], job: JobInfo) -> bool:
    values = {
        "account": job.account,
        "name": job.name,
        "partition": job.partition,
        "qos": USUAL_QOS,
        "reservation": job.reservation,
        "user": job.user_id,
        "wckey": job.wckey,
    }
    if any(options[key] != value for key, value in values.items() if key in options):
        return False
    if "state" in options and not _is_in(job, options["state"]):
        return False
    wanted = options.get("nodelist")
    return wanted is None or bool(set(wanted) & set(expand(job.node_list)))


def _is_in(job: JobInfo, state: JobBase | JobFlag) -> bool:
    if isinstance(state, JobFlag):
        return bool(job.state.flags & state)
    return job.state.base is state


_SHORT: Final[dict[str, JobBase | JobFlag]] = {
    "PD": JobBase.PENDING,
    "R": JobBase.RUNNING,
    "S": JobBase.SUSPENDED,
    "CD": JobBase.COMPLETED,
    "CA": JobBase.CANCELLED,
    "F": JobBase.FAILED,
    "TO": JobBase.TIMEOUT,
    "NF": JobBase.NODE_FAIL,
    "PR": JobBase.PREEMPTED,
    "DL": JobBase.DEADLINE,
    "OOM": JobBase.OUT_OF_MEMORY,
    "CG": JobFlag.COMPLETING,
    "CF": JobFlag.CONFIGURING,
}


def read_state(value: str, *, from_environment: bool = False) -> JobBase | JobFlag:
    """Read the name of a state, in full or in squeue's letters.

    Raises:
        UsageError: There is no such state.
    """
    word = value.upper()
    for letters, state in _SHORT.items():
        if word in (letters, state.name):
            return state
    what = "Unrecognized SCANCEL_STATE value" if from_environment else _NO_STATE
    known = "Valid job states are PENDING, RUNNING, and SUSPENDED"
    raise UsageError(1, f"{what}: {value}", known)


_NO_STATE: Final = "Invalid job state specified"


def read_nodes(value: str) -> tuple[str, ...]:
    """Read a list of nodes.

    Raises:
        UsageError: It is none, or names a file, which is not built.
    """
    if "/" in value:
        raise UsageError(
            1,
            "scancel: error: --nodelist=FILE is an option of Slurm's that simctl does not "
            "simulate yet",
        )
    try:
        return expand(value)
    except HostlistError as error:
        raise UsageError(1, f"scancel: error: Invalid node list: {error}") from None
