"""What accounting keeps of jobs and steps: frozen records, and the books they are entered in.

Moments and times are in virtual microseconds, -1 for one that never was; memory is in megabytes;
exit codes are wait statuses.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.states import JobBase

REQUEUED: Final = "REQUEUED"
"""State of a run after which the job went back into the queue."""

NOBODY: Final = -1
"""The uid of the user who cancelled what was not cancelled."""


class JobAccount(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run of a job, or what a job has come to so far."""

    db_index: int
    """Place among all records: jobs in the order in which accounting first heard of them."""

    job_id: int
    array_job_id: int = 0
    array_task_id: int = NO_VAL
    array_tasks: str = ""
    """The tasks that the record stands for, as ``1-5%1``."""

    name: str
    user: str
    user_id: int
    group_id: int
    account: str
    partition: str
    state: str
    cancel_uid: int = NOBODY
    reason: str
    """What the job last had to wait for, but for its turn and for nodes."""

    priority: int
    exit_code: int
    derived_exit_code: int
    submit_us: int
    eligible_us: int
    start_us: int
    end_us: int
    suspended_us: int
    restarts: int
    time_limit_min: int = INFINITE
    """NO_VAL for a job that was to have its partition's limit, and never started."""

    node_list: str
    alloc_nodes: int
    req_nodes: int
    alloc_cpus: int
    req_cpus: int
    alloc_memory_mb: int
    req_memory_mb: int
    alloc_tres: Mapping[str, int] = {}
    """Megabytes of burst buffers that it had, by TRES name, as far as they are counted."""

    req_tres: Mapping[str, int] = {}
    """Those that it asked for."""

    reservation: str = ""
    comment: str = ""
    wckey: str = ""
    work_dir: str
    submit_line: str
    script: str = ""
    batch: bool


class StepAccount(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A step, or what it has come to so far; the batch script is one, with the number -5."""

    db_index: int
    """That of the run of its job."""

    job_id: int
    step_id: int
    name: str
    state: str
    cancel_uid: int = NOBODY
    exit_code: int
    start_us: int
    end_us: int
    suspended_us: int
    node_list: str
    num_nodes: int
    num_cpus: int
    num_tasks: int
    memory_mb: int
    layout: str
    submit_line: str = ""


BATCH_STEP: Final = -5
"""Number of the batch script among the steps: it comes before those of srun."""


def step_label(step_id: int) -> str:
    """Return what follows the point in a step's name: ``batch``, or the number."""
    return "batch" if step_id == BATCH_STEP else str(step_id)


def step_state(exit_code: int) -> JobBase:
    """Return how a step has ended from its wait status; NO_VAL where none was reported. Pure."""
    if exit_code == NO_VAL:
        return JobBase.CANCELLED
    if exit_code & 0x7F == _OUT_OF_MEMORY:
        return JobBase.OUT_OF_MEMORY
    if exit_code & 0x7F:
        return JobBase.CANCELLED
    return JobBase.FAILED if exit_code else JobBase.COMPLETED


_OUT_OF_MEMORY: Final = 125


def as_of(record: JobAccount, moment_us: int) -> JobAccount:
    """Return what was known of a job that had come by a moment: it waits, or runs, or is over."""
    if 0 <= record.end_us <= moment_us:
        return record
    if 0 <= record.start_us <= moment_us:
        if record.end_us < 0:
            return record
        runs = JobBase.RUNNING.name
        return msgspec.structs.replace(
            record, state=runs, cancel_uid=NOBODY, end_us=-1, exit_code=0, derived_exit_code=0
        )
    return msgspec.structs.replace(
        record,
        state=JobBase.PENDING.name,
        cancel_uid=NOBODY,
        start_us=-1,
        end_us=-1,
        exit_code=0,
        derived_exit_code=0,
        node_list="",
        suspended_us=0,
        alloc_nodes=0,
        alloc_cpus=0,
        alloc_memory_mb=0,
        alloc_tres={},
    )


def step_as_of(record: StepAccount, moment_us: int) -> StepAccount:
    """Return what was known of a step that had begun by a moment: it runs, or is over."""
    if record.end_us <= moment_us:
        return record
    return msgspec.structs.replace(
        record, state=JobBase.RUNNING.name, cancel_uid=NOBODY, end_us=-1, exit_code=0
    )


Records = tuple[tuple[JobAccount, ...], tuple[StepAccount, ...]]
"""Of jobs, and of steps."""


class Books:
    """What has ended, in the order in which it did; nothing in it is ever changed.

    A reader that follows gets each record as it is entered. A run that is never asked may leave the
    records to them and keep none.
    """

    def __init__(self) -> None:
        self.keep = True
        self.jobs: list[JobAccount] = []
        self.steps: list[StepAccount] = []
        self.readers: list[Callable[[JobAccount | StepAccount], None]] = []
        self._last_index = 0
        self.away = False
        """Whether slurmdbd answers no client."""

        self.late_us = 0
        """How late it tells what has happened."""

        self.known: Callable[[], Records] | None = None
        """Returns all records, those of what is not over too, as slurmctld has told them last."""

    @property
    def open(self) -> bool:
        """Return whether records are kept at all."""
        return self.keep or bool(self.readers)

    def next_index(self) -> int:
        """Return the place of a record that accounting hears of now."""
        self._last_index += 1
        return self._last_index

    def enter(self, record: JobAccount | StepAccount) -> None:
        """Take a record in."""
        if self.keep:
            if isinstance(record, JobAccount):
                self.jobs.append(record)
            else:
                self.steps.append(record)
        for read in self.readers:
            read(record)
