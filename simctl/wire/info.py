"""What slurmctld tells of jobs, steps, nodes, partitions and reservations when it is asked.

Moments are in seconds since the epoch, 0 for one that is not known; times are in seconds; memory
is in megabytes; NO_VAL stands for what was not asked for, INFINITE for no limit.
"""

from collections.abc import Mapping

import msgspec

from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.states import JobState, NodeBase, NodeFlag, PartState


class JobInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A job, a task of an array, or the tasks of an array that wait."""

    job_id: int
    array_job_id: int = 0
    array_task_id: int = NO_VAL
    """Number of the task; NO_VAL for no task, and for the tasks that wait."""

    array_tasks: str = ""
    """The tasks that wait, as ``1-5%1``."""

    array_limit: int = 0
    name: str
    user_id: int
    user: str
    group_id: int
    account: str
    partition: str
    state: JobState
    reason: str
    """Why it waits or ended, in Slurm's word or in a plugin's own words."""

    priority: int
    nice: int
    dependency: str = ""
    requeue: bool = True
    restart_cnt: int = 0
    batch: bool = True
    exit_code: int = 0
    """A wait status."""

    derived_exit_code: int = 0
    """The highest of those of its steps."""

    submit_s: int
    eligible_s: int = 0
    accrue_s: int = 0
    start_s: int = 0
    """Of a pending job, when it is expected to start."""

    end_s: int = 0
    """Of a running job, when its time limit ends."""

    suspend_s: int = 0
    """When it was suspended or resumed last."""

    run_s: int = 0
    """How long it has run, suspensions left out."""

    pre_suspend_s: int = 0
    preempt_s: int = 0
    deadline_s: int = 0
    evaluated_s: int = 0
    """When a scheduler last looked at it."""

    scheduler: str = ""
    """Who that was: Main, Backfill or Submit."""

    time_limit_min: int = INFINITE
    node_list: str = ""
    planned_nodes: str = ""
    """Where it is expected to start."""

    num_nodes: int
    """Of a pending job, how many it is likely to get."""

    min_nodes: int = 1
    """How many nodes it asks for at the least."""

    max_nodes: int = 0
    num_cpus: int
    billing: int
    """The cpus that the job is billed for: those it began with, also once a node is lost."""

    cpus_to_leave: int = 0
    """Of these, how many are on nodes that it has yet to leave, once it is over."""

    num_tasks: int
    cpus_per_task: int = 1
    ntasks_per_node: int = 0
    min_cpus_per_node: int = 1
    memory_per_node_mb: int = 0
    memory_per_cpu_mb: int = 0
    cpus: tuple[int, ...] = ()
    """What it has on each of its nodes."""

    memory_mb: tuple[int, ...] = ()
    total_memory_mb: int = 0
    """What it has, or asks for, on all its nodes together."""

    gres: Mapping[str, int] = {}
    """Generic resources on each node, as asked for."""

    required_nodes: str = ""
    excluded_nodes: str = ""
    exclusive: bool = False
    oversubscribe: bool = False
    """It would share its cpus, if partitions let jobs do that."""

    reservation: str = ""
    comment: str = ""
    wckey: str = ""
    time_min_min: int = 0
    features: str = ""
    licenses: str = ""
    qos: str = "normal"
    burst_buffer: str = ""
    burst_buffer_state: str = ""
    """As Slurm shows it, such as ``staging-in``."""

    system_comment: str = ""
    admin_comment: str = ""
    tres: Mapping[str, int] = {}
    """What it has, or asks for, beside cpus, memory and nodes: megabytes by ``bb/generic``."""

    container: str = ""
    command: str = ""
    work_dir: str = ""
    std_in: str = ""
    std_out: str = ""
    std_err: str = ""
    submit_host: str = ""
    submit_sid: int = 0
    """The process that submitted it."""

    batch_host: str = ""
    kill_on_invalid_dep: int = NO_VAL
    """Whether it is to end if its dependency can never be met; NO_VAL if it does not say."""

    cpu_ids: tuple[str, ...] = ()
    """Which cpus it has on each of its nodes, as ``0-1,3``."""

    @property
    def sharing(self) -> str:
        """What it says of others on its nodes: NO, YES, or OK where it says nothing."""
        return "NO" if self.exclusive else "YES" if self.oversubscribe else "OK"


class StepInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A step that runs; the batch script is one."""

    job_id: int
    array_job_id: int = 0
    array_task_id: int = NO_VAL
    step_id: int
    name: str
    user_id: int
    user: str
    partition: str
    start_s: int
    run_s: int
    time_limit_min: int = INFINITE
    node_list: str
    num_nodes: int
    num_cpus: int
    num_tasks: int
    memory_mb: int = 0
    gres: Mapping[str, int] = {}
    distribution: str = ""
    srun_host: str = ""
    srun_pid: int = 0
    ckpt_interval_min: int = 0
    ckpt_dir: str = ""
    """Empty where no checkpoints can be made."""


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A node."""

    name: str
    base: NodeBase
    flags: NodeFlag
    cpus: int
    cpus_allocated: int
    memory_mb: int
    memory_allocated_mb: int
    features: tuple[str, ...] = ()
    gres: Mapping[str, int] = {}
    gres_used: Mapping[str, int] = {}
    reason: str = ""
    reason_uid: int = NO_VAL
    reason_user: str = ""
    reason_s: int = 0
    partitions: tuple[str, ...] = ()
    boot_s: int = 0
    slurmd_start_s: int = 0
    last_busy_s: int = 0
    planned: bool = False
    """It is kept free for a job that is expected to start there."""

    maintenance: bool = False
    """It belongs to a reservation for maintenance that has begun."""

    reserved: bool = False
    """It belongs to another reservation that has begun."""


class PartInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A partition."""

    name: str
    default: bool
    state: PartState
    nodes: tuple[str, ...]
    node_list: str
    cpus: int
    memory_mb: int
    gres: Mapping[str, int] = {}
    default_time_min: int
    max_time_min: int
    min_nodes: int
    max_nodes: int
    tier: int
    exclusive: bool
    preempt_mode: str
    grace_time_s: int
    root_only: bool
    allow_accounts: tuple[str, ...]
    deny_accounts: tuple[str, ...]
    def_mem_per_cpu_mb: int
    def_mem_per_node_mb: int


class ReservationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation."""

    name: str
    start_s: int
    end_s: int
    node_list: str
    num_nodes: int
    cpus: int
    flags: tuple[str, ...]
    users: tuple[str, ...]
    accounts: tuple[str, ...]
    active: bool
    burst_buffer: str = ""
    tres: Mapping[str, int] = {}
    """Megabytes of burst buffers that it keeps, by ``bb/generic``."""
