"""States of jobs and nodes: a base state, flags beside it, and which change may follow which."""

import enum
import functools
from typing import Final

import attrs


class JobBase(enum.IntEnum):
    """What a job is doing; numbers as Slurm's, so that "finished" is a comparison."""

    PENDING = 0
    RUNNING = 1
    SUSPENDED = 2
    COMPLETED = 3
    CANCELLED = 4
    FAILED = 5
    TIMEOUT = 6
    NODE_FAIL = 7
    PREEMPTED = 8
    DEADLINE = 10
    OUT_OF_MEMORY = 11


class JobFlag(enum.IntFlag):
    """What stands beside a job's base state, in the order in which texts join them."""

    NONE = 0
    REQUEUE = 0x400
    SPECIAL_EXIT = 0x1000
    RESIZING = 0x2000
    CONFIGURING = 0x4000
    COMPLETING = 0x8000
    STOPPED = 0x10000
    STAGE_OUT = 0x800000


class NodeBase(enum.IntEnum):
    """What the controller takes a node to be."""

    UNKNOWN = 0
    DOWN = 1
    IDLE = 2
    ALLOCATED = 3
    MIXED = 5
    """Some of its cpus are allocated; Slurm derives this for display."""


class PartState(enum.Enum):
    """What may happen in a partition: jobs come in, jobs start."""

    UP = (True, True)
    DOWN = (True, False)
    DRAIN = (False, True)
    INACTIVE = (False, False)

    @property
    def takes_jobs(self) -> bool:
        """Return whether jobs may be submitted to it."""
        return self.value[0]

    @property
    def starts_jobs(self) -> bool:
        """Return whether jobs may start in it."""
        return self.value[1]


class NodeFlag(enum.IntFlag):
    """What stands beside a node's base state."""

    NONE = 0
    DRAIN = 0x200
    COMPLETING = 0x400
    NO_RESPOND = 0x800


class IllegalTransitionError(AssertionError):
    """A change of state that no table allows: a bug of simctl's."""


@attrs.frozen
class JobState:
    """A job's state word."""

    base: JobBase
    flags: JobFlag = JobFlag.NONE

    @property
    def finished(self) -> bool:
        """Return whether the job will do nothing more, though it may still be completing."""
        return self.base > JobBase.SUSPENDED

    @property
    def is_known(self) -> bool:
        """Return whether jobs can be in this state at all."""
        return self in _JOB_TEXT

    @property
    def configuring(self) -> bool:
        """Return whether the job has its nodes and may not be launched yet."""
        flags = self.flags
        return flags is not JobFlag.NONE and bool(flags & JobFlag.CONFIGURING)

    @property
    def completing(self) -> bool:
        """Return whether nodes have yet to report that the job is gone."""
        flags = self.flags
        return flags is not JobFlag.NONE and bool(flags & JobFlag.COMPLETING)

    @property
    def staging_out(self) -> bool:
        """Return whether the job's burst buffer is being staged out."""
        return bool(self.flags & JobFlag.STAGE_OUT)

    def having(self, flag: JobFlag) -> "JobState":
        """Return the state with a flag beside it."""
        return JobState(self.base, self.flags | flag)

    def lacking(self, flag: JobFlag) -> "JobState":
        """Return the state without a flag."""
        return JobState(self.base, self.flags & ~flag)

    def __str__(self) -> str:
        """Return ``COMPLETED|COMPLETING``, as traces print it."""
        return _JOB_TEXT[self]


_ALONE: Final = (
    JobFlag.NONE,
    JobFlag.COMPLETING,
    JobFlag.REQUEUE,
    JobFlag.REQUEUE | JobFlag.COMPLETING,
    JobFlag.CONFIGURING,
    JobFlag.SPECIAL_EXIT,
    JobFlag.RESIZING,
    JobFlag.STOPPED,
)
"""The flags that jobs have together, but for STAGE_OUT."""


def _all_job_states() -> dict[JobState, str]:
    return {
        JobState(base, flags): "|".join(
            (base.name, *(flag.name or "" for flag in JobFlag if flag and flag & flags))
        )
        for base in JobBase
        for flags in (
            *_ALONE,
            *(flags | JobFlag.STAGE_OUT for flags in _ALONE),
        )
    }


_JOB_TEXT: Final = _all_job_states()

PENDING: Final = JobState(JobBase.PENDING)
PENDING_COMPLETING: Final = JobState(JobBase.PENDING, JobFlag.COMPLETING)
PENDING_REQUEUE: Final = JobState(JobBase.PENDING, JobFlag.REQUEUE)
PENDING_REQUEUE_COMPLETING: Final = JobState(JobBase.PENDING, JobFlag.REQUEUE | JobFlag.COMPLETING)
RUNNING: Final = JobState(JobBase.RUNNING)
PENDING_CONFIGURING: Final = JobState(JobBase.PENDING, JobFlag.CONFIGURING)
CONFIGURING: Final = JobState(JobBase.RUNNING, JobFlag.CONFIGURING)
RUNNING_RESIZING: Final = JobState(JobBase.RUNNING, JobFlag.RESIZING)
RUNNING_STOPPED: Final = JobState(JobBase.RUNNING, JobFlag.STOPPED)
PENDING_SPECIAL_EXIT: Final = JobState(JobBase.PENDING, JobFlag.SPECIAL_EXIT)
SUSPENDED: Final = JobState(JobBase.SUSPENDED)
CANCELLED: Final = JobState(JobBase.CANCELLED)
FAILED: Final = JobState(JobBase.FAILED)
NODE_FAIL: Final = JobState(JobBase.NODE_FAIL)

COMPLETING: Final[dict[JobBase, JobState]] = {
    base: JobState(base, JobFlag.COMPLETING) for base in JobBase
}
DONE: Final[dict[JobBase, JobState]] = {base: JobState(base) for base in JobBase}


def _job_changes() -> dict[JobState, frozenset[JobState]]:
    ends = [base for base in JobBase if base > JobBase.SUSPENDED]
    gone = (CANCELLED, DONE[JobBase.DEADLINE])
    taken_away = (*(COMPLETING[base] for base in ends), NODE_FAIL, PENDING, PENDING_REQUEUE)
    changes: dict[JobState, frozenset[JobState]] = {
        PENDING: frozenset(
            {
                *(RUNNING, *gone, FAILED, PENDING_COMPLETING, PENDING_SPECIAL_EXIT),
                PENDING_CONFIGURING,
            }
        ),
        # A burst buffer's begin holds the launch back before the job runs.
        PENDING_CONFIGURING: frozenset({RUNNING, PENDING, *gone}),
        # Held for what it ended with: it is released, or ended.
        PENDING_SPECIAL_EXIT: frozenset({PENDING, *gone}),
        RUNNING: frozenset(
            {*taken_away, SUSPENDED, RUNNING_STOPPED, RUNNING_RESIZING, CONFIGURING}
        ),
        # It loses a node and goes on, in one request.
        RUNNING_RESIZING: frozenset({RUNNING}),
        CONFIGURING: frozenset({*taken_away, RUNNING}),
        RUNNING_STOPPED: frozenset({*taken_away, SUSPENDED, RUNNING}),
        SUSPENDED: frozenset({*taken_away, RUNNING}),
        # Requeueing passes through its states in one request.
        PENDING_REQUEUE: frozenset({PENDING_REQUEUE_COMPLETING, PENDING, PENDING_COMPLETING}),
        PENDING_REQUEUE_COMPLETING: frozenset({PENDING_REQUEUE}),
        PENDING_COMPLETING: frozenset({PENDING, COMPLETING[JobBase.CANCELLED]}),
    }
    for base in ends:
        changes[COMPLETING[base]] = frozenset({DONE[base]})
    # RequeueExit, RequeueExitHold and a requeue by hand send a job back that has ended; a failed
    # node one that may run again.
    for base in ends:
        changes[DONE[base]] = frozenset({PENDING, PENDING_SPECIAL_EXIT})
    _add_stage_out(changes)
    return changes


def _add_stage_out(changes: dict[JobState, frozenset[JobState]]) -> None:
    """Let stage-out begin when a run is over, and end when the nodes have let go of the job.

    What goes back into the queue loses the flag in the same request.
    """
    flag = JobFlag.STAGE_OUT
    over = [base for base in JobBase if base > JobBase.SUSPENDED]
    begins = [*(COMPLETING[base] for base in over), NODE_FAIL, PENDING_REQUEUE]
    for state in begins:
        after = changes[state]
        # COMPLETING outlasts no stage-out: the flag goes once the nodes have let go of the job.
        kept = frozenset(each.having(flag) for each in after)
        changes[state.having(flag)] = kept if state.completing else kept | after
        changes[state] = after | {state.having(flag)}
    flagged = PENDING_REQUEUE_COMPLETING.having(flag)
    changes[flagged] = frozenset({PENDING_REQUEUE.having(flag)})
    for base in over:
        done = DONE[base]
        after = changes.get(done, frozenset())
        changes[done.having(flag)] = after | {done}
        # An appliance that did not answer when the run was over may be asked for it later.
        changes[done] = after | {done.having(flag)}


JOB_CHANGES: Final = _job_changes()
"""The states that may follow each state of a job; no other change is made."""


def check_job_change(before: JobState, after: JobState) -> None:
    """Check a change of a job's state against the table.

    Raises:
        IllegalTransitionError: The table lacks it.
    """
    if after not in JOB_CHANGES.get(before, ()):
        raise IllegalTransitionError(f"no job goes from {before} to {after}")


@functools.cache
def node_text(base: NodeBase, flags: NodeFlag) -> str:
    """Return ``ALLOCATED|COMPLETING``, as traces print a node's state."""
    if not flags:
        return base.name
    return "|".join((base.name, *(flag.name or "" for flag in NodeFlag if flag and flag & flags)))


class Reason(enum.StrEnum):
    """Why a job waits or ended, as squeue prints it."""

    NONE = "None"
    PRIORITY = "Priority"
    RESOURCES = "Resources"
    PARTITION_NODE_LIMIT = "PartitionNodeLimit"
    PARTITION_TIME_LIMIT = "PartitionTimeLimit"
    PARTITION_CONFIG = "PartitionConfig"
    PARTITION_DOWN = "PartitionDown"
    PARTITION_INACTIVE = "PartitionInactive"
    RESERVATION = "Reservation"
    RESERVATION_DELETED = "ReservationDeleted"
    BEGIN_TIME = "BeginTime"
    JOB_LAUNCH_FAILURE = "JobLaunchFailure"
    NON_ZERO_EXIT_CODE = "NonZeroExitCode"
    TIME_LIMIT = "TimeLimit"
    NODE_DOWN = "NodeDown"
    DEADLINE = "DeadLine"
    OUT_OF_MEMORY = "OutOfMemory"
    REQ_NODE_NOT_AVAIL = "ReqNodeNotAvail"
    NODES_NOT_AVAIL = (
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
        "partitions"
    )
    ARRAY_TASK_LIMIT = "JobArrayTaskLimit"
    DEPENDENCY = "Dependency"
    DEPENDENCY_NEVER = "DependencyNeverSatisfied"
    HELD_ADMIN = "JobHeldAdmin"
    HELD_USER = "JobHeldUser"
    BAD_CONSTRAINTS = "BadConstraints"
    PROLOG = "Prolog"
    HOLD_MAX_REQUEUE = "JobHoldMaxRequeue"
    BURST_BUFFER_RESOURCES = "BurstBufferResources"
    BURST_BUFFER_STAGE_IN = "BurstBufferStageIn"
    BURST_BUFFER_OPERATION = "BurstBufferOperation"
    CLEANING = "Cleaning"
