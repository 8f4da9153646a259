"""What the controller owns: job, step, node and partition records."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from simctl.kernel.fabric import Mailbox
from simctl.kernel.turns import Timer
from simctl.plugins.hooks import About, Handle
from simctl.wire.bitmap import lowest, mask_of
from simctl.wire.buf import Packed
from simctl.wire.hostlist import compress
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.layout import StepLayout
from simctl.wire.records import JobDesc
from simctl.wire.resources import Demand, Room, Share
from simctl.wire.states import JobState, NodeBase, NodeFlag, PartState, Reason

NOTHING_PACKED: Final = Packed()


@attrs.define(eq=False, kw_only=True)
class NodeRecord:
    """A node as the controller sees it: what it has, what is left of that, and who runs there."""

    index: int
    name: str
    address: str
    total: Room
    free: Room = attrs.field(init=False)
    base: NodeBase = NodeBase.UNKNOWN
    flags: NodeFlag = NodeFlag.NONE
    features: tuple[str, ...] = ()
    reason: str = ""
    reason_uid: int = NO_VAL
    """Who gave the reason."""

    reason_us: int = -1
    start_us: int = -1
    """When its slurmd started, as far as the controller knows."""

    slurmd_start_us: int = -1
    """When that was by its own account."""

    last_busy_us: int = 0
    """When the last job left it."""

    jobs: "dict[int, JobRecord]" = attrs.field(factory=dict)
    """The jobs that run here, by id; those that are completing hold nothing any more."""

    completing: int = 0
    """Jobs that have yet to report that they are gone from the node."""

    last_response_us: int = 0

    invalid_registrations: int = 0
    """How many of its registrations in a row could not be read."""

    start_missed: bool = False
    """One of those registrations was the first of a slurmd that had just started."""

    booted_us: int = -1
    """Since when it has been up, as its last registration says; -1 before the first."""

    free_cores: int = attrs.field(init=False)
    """The cpus that no job has: a bit for each."""

    def __attrs_post_init__(self) -> None:
        self.free = self.total.copy()
        self.free_cores = (1 << self.total.cpus) - 1

    @property
    def cpus(self) -> int:
        """Return how many cpus the node has."""
        return self.total.cpus

    @property
    def usable(self) -> bool:
        """Return whether a job may start here now, if there is room for it."""
        return self.base in (NodeBase.IDLE, NodeBase.MIXED) and not self.flags

    def working_base(self) -> NodeBase:
        """Return the base state of the node as long as it answers."""
        if not self.jobs:
            return NodeBase.IDLE
        return NodeBase.MIXED if self.free.cpus else NodeBase.ALLOCATED

    def take(self, job: "JobRecord", share: Share) -> None:
        """Give a share of the node to a job."""
        self.jobs[job.job_id] = job
        self.free.take(share)
        job.cores[self.index] = lowest(self.free_cores, share.cpus)
        self.free_cores &= ~job.cores[self.index]

    def give_back(self, job: "JobRecord") -> None:
        """Take back what a job has of the node; harmless if it has nothing."""
        if self.jobs.pop(job.job_id, None) is not None:
            self.free.take(job.shares[self.index], -1)
            self.free_cores |= job.cores.get(self.index, 0)


@attrs.define(eq=False, kw_only=True)
class PartRecord:
    """A partition: its limits, its nodes, and who waits."""

    name: str
    nodes: tuple[NodeRecord, ...]
    default: bool
    max_time_min: int
    default_time_min: int
    max_nodes: int
    min_nodes: int
    uniform_cpus: int
    """Cpus of every node where all have as many, else 0."""

    state: PartState = PartState.UP
    tier: int = 1
    exclusive: bool = False
    """Jobs have their nodes for themselves."""

    preempt_mode: str = ""
    """What becomes of its jobs when others need their nodes; empty for the cluster's way."""

    grace_time_s: int = 0
    root_only: bool = False
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    def_mem_per_cpu_mb: int = 0
    def_mem_per_node_mb: int = 0

    queue: "list[tuple[int, int, JobRecord]]" = attrs.field(factory=list)
    """A heap: the highest priority first, then who came first; what left it is dropped when met."""

    reserved_queue: "list[tuple[int, int, JobRecord]]" = attrs.field(factory=list)
    """The same of the jobs that name a reservation: they wait beside the others, for its nodes."""

    waiting: int = 0
    """Jobs in both; those that have left them stay in the heaps until a pass meets them."""

    examined_to: int = -1
    """Queue number of the last job that was waiting at the latest pass."""

    mask: int = attrs.field(init=False)
    widest_cpus: int = attrs.field(init=False)
    """Cpus of the node that has most."""

    def __attrs_post_init__(self) -> None:
        self.mask = mask_of(node.index for node in self.nodes)
        self.widest_cpus = max((node.cpus for node in self.nodes), default=0)

    def set_nodes(self, nodes: tuple[NodeRecord, ...]) -> None:
        """Give the partition other nodes."""
        self.nodes = nodes
        cpus = {node.cpus for node in nodes}
        self.uniform_cpus = nodes[0].cpus if len(cpus) == 1 else 0
        self.__attrs_post_init__()


@attrs.define(eq=False, kw_only=True)
class JobArray:
    """A job array: its tasks, who of them waits, and the records of the others."""

    job_id: int
    tasks: tuple[int, ...]
    limit: int
    """How many tasks may run at a time, 0 for any number."""

    waiting: list[int]
    running: int = 0
    rest: "JobRecord | None" = None
    """The record that stands for all tasks that wait."""

    first: "JobRecord | None" = None
    """The record it was submitted as."""

    records: "dict[int, JobRecord]" = attrs.field(factory=dict)

    def has_records(self, jobs: "Mapping[int, JobRecord]") -> bool:
        """Return whether a task that was split off is still among the *jobs*, and not purged."""
        return any(jobs.get(task.job_id) is task for task in self.records.values())


@attrs.frozen(kw_only=True)
class Need:
    """One part of a dependency: another job, and what must become of it.

    `job` is None for ``singleton``, which concerns every job of the same name and user; with an
    `array` every task of it is meant, or one alone.
    """

    kind: str
    job: "JobRecord | None" = None
    array: JobArray | None = None
    task: int = -1
    delay_us: int = 0


@attrs.frozen(kw_only=True)
class Dependency:
    """What must have happened before a job may start; any of it, or all."""

    text: str
    needs: tuple[Need, ...]
    any_will_do: bool


@attrs.define(eq=False, kw_only=True)
class StepRecord:
    """A step that runs: its credential and checkpoint record live as long as it does."""

    job: "JobRecord"
    step_id: int
    name: str
    layout: StepLayout
    node_list: str
    about: About
    srun: Mailbox | None
    switch_job: Handle
    check_job: Handle
    reported: bytearray
    """One flag a node of the step: its daemon has reported the end."""

    reports: list[int] = attrs.field(factory=list)
    """What these reports are the causes of."""

    cpus_per_task: int = 1
    exact: bool = False
    """Whether it has the cpus it asks for alone, not all that its job has on its nodes."""

    no_kill: bool = False
    overcommit: bool = False
    start_us: int = 0
    clock_us: int = 0
    """When it started, less how long its job had been suspended by then."""

    time_limit_min: int = INFINITE
    limit_us: int = INFINITE
    """When it has reached its time limit, but for what its job is suspended."""

    limit_timer: Timer | None = None
    exit_code: int = NO_VAL
    """The highest wait status reported; NO_VAL while there is none."""

    suspended_before_us: int = 0
    """How long its job had been suspended when it began."""

    timed_out: bool = False
    cancel_uid: int = -1
    """Who cancelled it alone."""

    submit_line: str = ""
    ckpt_interval_min: int = 0
    """How often it is checkpointed by itself; 0 for never."""

    ckpt_us: int = 0
    """When it was last, or was created."""

    ckpt_dir: str = ""
    packed_job: Packed = NOTHING_PACKED
    """What its credential was when it was packed last, to be saved."""

    packed_record: Packed = NOTHING_PACKED
    """The same of its checkpoint record."""

    view: Any = None
    """What plugins see of it."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return how many cpus it uses on each of its nodes; those it overcommits count once."""
        wanted = [count * self.cpus_per_task for count in self.layout.tasks]
        if not self.overcommit:
            return tuple(wanted)
        there = {n.name: cpus for n, cpus in zip(self.job.nodes, self.job.cpus, strict=True)}
        names = self.layout.nodes
        return tuple(
            min(cpus, there.get(name, 0)) for name, cpus in zip(names, wanted, strict=True)
        )


@attrs.define(eq=False, kw_only=True)
class JobRecord:
    """A job, from its submission to its purge; times in virtual microseconds, -1 for "not yet"."""

    job_id: int
    desc: JobDesc
    parts: tuple[PartRecord, ...]
    """The partitions it may run in, in the order they were asked for."""

    part: PartRecord
    """The partition it runs in, or the first of those it waits for."""

    state: JobState
    about: About
    check_job: Handle
    submit_us: int
    batch: bool
    client: Mailbox | None
    """Where the srun waits that asked for the allocation."""

    requeue: bool
    time_limit_min: int
    demand: Demand
    name: str
    priority: int
    """The highest starts first; 0 holds the job."""

    place: int = 0
    """Where it stands in the list of jobs; the tasks of an array that wait go to its end."""

    queue_number: int = -1
    queued: bool = False
    reason: str = Reason.NONE
    lasting_reason: str = ""
    """Why the job could never start in its partition as it is."""

    held_by_user: bool = False
    """A held job may be released by its owner."""

    hold_text: str = ""
    """What is shown of a held job instead of the usual reason."""

    nice: int = 0
    dependency: Dependency | None = None
    eligible_us: int = -1
    accrue_us: int = -1
    """When it was eligible first: its age counts from then on, held or not."""

    array: JobArray | None = None
    array_task: int = -1
    """Number of the task; -1 for a record that stands for the tasks that wait."""

    gpus: dict[int, tuple[int, ...]] = attrs.field(factory=dict)
    """Numbers of its gpus, by the index of the node."""

    start_us: int = -1
    end_us: int = -1
    limit_us: int = INFINITE
    exit_code: int = 0
    """A wait status."""

    restart_cnt: int = 0
    """How often it has gone back into the queue: the number of its present run."""

    uncounted_runs: int = 0
    """Those of them that are no restarts to anybody, since nothing of the job had run."""

    suspensions: int = 0
    """How often its nodes were told to suspend or resume it."""

    unanswered_launches: int = 0
    """How often its launch was sent and never answered."""

    launch_failures: int = 0
    """How often in a row PrologSlurmctld has sent the job back into the queue."""

    prologs_out: set[str] = attrs.field(factory=set)
    """Nodes that have yet to tell how the prolog of an allocation went (PrologFlags=Alloc)."""

    prologs_us: int = -1
    """When this slurmctld last told nodes to run it."""

    epilog_running: bool = False
    """EpilogSlurmctld has yet to end for the run that is over."""

    nodes: tuple[NodeRecord, ...] = ()
    node_list: str = ""
    shares: dict[int, Share] = attrs.field(factory=dict)
    """What it has of each of its nodes, by the node's index."""

    planned_us: int = -1
    """When backfill last expected it to start."""

    planned_nodes: str = ""
    """Where that was to be."""

    evaluated_us: int = -1
    """When a scheduler last looked at it."""

    scheduler: str = "Main"
    """Which of them that was, Main or Backfill."""

    batch_host: str = ""
    """The first node of its latest run."""

    submit_host: str = ""
    submit_pid: int = 0
    """The process that submitted it."""

    cores: dict[int, int] = attrs.field(factory=dict)
    """Which cpus it has on each of its nodes, by the node's index: a bit for each."""

    completing_nodes: set[str] = attrs.field(factory=set)
    awaited_ends: tuple[int, ...] = ()
    """The causes of what its dependency has waited for."""

    left: list[int] = attrs.field(factory=list)
    """What the reports of nodes that it has left are the causes of."""

    nodes_lost: set[str] = attrs.field(factory=set)
    """Nodes that restarted under the job, and have nothing of it left."""

    steps: dict[int, StepRecord] = attrs.field(factory=dict)
    next_step_id: int = 0
    gives_way: "tuple[JobRecord, ...]" = ()
    """The jobs that were preempted so that it can start."""

    preempt_us: int = -1
    """When its grace time ends, if it is being preempted."""
    step_waiters: dict[Mailbox, int] = attrs.field(factory=dict)
    """The sruns that wait for cpus of the job, first come first, and since when."""

    limit_timer: Timer | None = None
    warn_timer: Timer | None = None
    warned: bool = False
    """The signal that warns of the time limit was sent."""

    deadline_timer: Timer | None = None
    special_exit: bool = False
    """It goes back into the queue to be held there for how it ended."""

    suspend_us: int = -1
    """Since when it is suspended."""

    suspended_us: int = 0
    """How long it was suspended before, all in all."""

    switched_us: int = -1
    """When it was suspended or resumed last."""

    before_suspension_us: int = 0
    """How long it had run when it was suspended last."""

    db_index: int = 0
    """Place of the run in the books of accounting, once they know of it."""

    waited_for: str = ""
    """What it last had to wait for, but for its turn and for nodes."""

    cancel_uid: int = -1
    """Who cancelled it."""

    derived_exit_code: int = 0
    """The highest wait status of its steps."""

    launched_us: int = -1
    """When its script was sent to its node; -1 while it could not be."""

    batch_start_us: int = -1
    """When its batch script was launched, while its end is not known."""

    begin_us: int = -1
    told: str = ""
    """What job_submit plugins have to say to the user who submits it."""

    begin_timer: Timer | None = None

    burst_buffer: str = ""
    """What it asks for of burst buffers, as its plugins have read it."""

    bb_state: str = ""
    """The state of its burst buffer, as its plugin tells it."""

    bb_reason: str = ""
    """The reason a plugin gave, for as long as it holds the job."""

    bb_answer: int = 1
    """What test_stage_in said of it last."""

    state_desc: str = ""
    """What is shown in place of the reason."""

    system_comment: str = ""
    admin_comment: str = ""
    expected_us: int = -1
    """While it waits for its burst buffer, when it is expected to start."""

    prolog_running: int = 0
    """How many things of burst buffer plugins its launch waits for."""

    staged_out: bool = False
    """Its stage-out is over, and jobs that depend on that were told so."""

    stage_out_due: bool = False
    """Its stage-out is to start once the epilogs are over."""

    stage_out_over: bool = False
    """The stage-out ended while nodes had yet to let go of the job."""

    pre_run_status: int = 0
    """What its burst buffer failed with before it was launched: its exit code until it runs."""

    hurry: bool = False
    """The client that cancelled it wants nothing staged out."""

    prolog_slurmctld_runs: bool = False
    env_sup: dict[str, str] = attrs.field(factory=dict)
    """Variables that plugins put into its environment."""

    billing: int = 0
    """The cpus that its run began with, for which it is billed; 0 before."""

    tres: dict[str, int] = attrs.field(factory=dict)
    """What it takes of burst buffers: MB by TRES name, such as ``bb/generic``."""

    tres_req: dict[str, int] = attrs.field(factory=dict)
    """What it asked for of them."""

    view: Any = None
    """What plugins see of it."""

    ckpt_us: int = -1
    """When it was last checkpointed by itself."""

    ckpt_requeue_dir: str = ""
    """The images of the requeue that its checkpoint plugin was asked for, once that comes."""

    ckpt_preempted: bool = False
    """Its checkpoint plugin was asked to have it give way."""

    restart_dir: str = ""
    """Where the images are that it is launched from; empty for a plain start."""

    packed_record: Packed = NOTHING_PACKED
    """What its checkpoint record was when it was packed last, to be saved."""

    @property
    def ckpt_dir(self) -> str:
        """Return where images of it go that nobody names another place for."""
        return self.desc.ckpt_dir or self.desc.work_dir

    @property
    def without_nodes(self) -> bool:
        """Return whether it asks for no node: all it does is done by its burst buffer."""
        return self.desc.min_nodes == 0

    @property
    def restarts(self) -> int:
        """Return how often it has been restarted, as is shown of it."""
        return self.restart_cnt - self.uncounted_runs

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return how many cpus it has on each of its nodes."""
        return tuple(self.shares[node.index].cpus for node in self.nodes)

    # What belongs together is written together.

    def take_nodes(
        self, nodes: tuple["NodeRecord", ...], shares: Iterable[Share], now_us: int
    ) -> None:
        """Give the job what a pass has chosen for it."""
        self.nodes = nodes
        self.shares = {share.index: share for share in shares}
        self.node_list = compress(tuple(node.name for node in nodes))
        self.batch_host = nodes[0].name
        self.billing = sum(share.cpus for share in self.shares.values())
        self.start_us = self.evaluated_us = now_us

    def lose_nodes(self) -> None:
        """Let the job be as it was before it was given nodes: it could not start."""
        self.nodes, self.shares, self.node_list = (), {}, ""
        self.billing = 0
        self.start_us = self.expected_us = -1

    def begin_run(self, now_us: int) -> None:
        """Let the job run from now on: it waits for nothing any more."""
        self.start_us = now_us
        self.begin_us = self.expected_us = -1
        self.reason = Reason.NONE

    def end_run(self, now_us: int, reason: str) -> None:
        """Let the run be over, for a reason; what a plugin said of the job is past."""
        self.end_us = now_us
        self.reason = reason
        self.state_desc = ""

    def set_limit(self) -> None:
        """Count the time limit from the start of the run, less what it was suspended for."""
        self.limit_us = INFINITE
        if self.time_limit_min != INFINITE:
            ran_us = self.time_limit_min * 60 * SECOND
            self.limit_us = self.start_us + self.suspended_us + ran_us

    def hold(self, text: str, *, by_user: bool) -> None:
        """Hold the job; *text* is shown in place of the usual reason, if there is any."""
        self.priority = 0
        self.held_by_user = by_user
        self.hold_text = text

    def back_to_queue(self, now_us: int) -> None:
        """Forget the run that is over: the job waits as one that was submitted now.

        What its burst buffer failed with before it was launched is its exit code until it runs.
        """
        self.restart_cnt += 1
        self.nodes = ()
        self.shares, self.cores, self.gpus = {}, {}, {}
        self.nodes_lost.clear()
        self.batch_host = ""
        self.billing = 0
        self.tres = {}
        self.env_sup = {}
        self.launched_us = self.start_us = self.end_us = self.expected_us = -1
        self.eligible_us = self.accrue_us = -1
        self.limit_us = INFINITE
        self.warned = False
        self.preempt_us = -1
        self.suspended_us = self.before_suspension_us = 0
        self.switched_us = -1
        self.exit_code, self.pre_run_status = self.pre_run_status, 0
        self.hurry = False
        self.ckpt_requeue_dir = ""
        self.ckpt_preempted = False
        self.desc = attrs.evolve(self.desc, partition=",".join(part.name for part in self.parts))
        self.submit_us = now_us

    def split(self, job_id: int) -> "JobRecord":
        """Return a record of one task of the array that the job stands for; it has run nothing."""
        return attrs.evolve(
            self,
            job_id=job_id,
            about=About(job=job_id),
            queued=False,
            reason=Reason.NONE,
            prologs_out=set(),
            completing_nodes=set(),
            cores={},
            nodes_lost=set(),
            steps={},
            gives_way=(),
            step_waiters={},
            deadline_timer=None,
            begin_timer=None,
            bb_state="",
            env_sup={},
            tres={},
            tres_req=dict(self.tres_req),
        )


@attrs.define(eq=False, kw_only=True)
class ReservationRecord:
    """A reservation; `nodes` is a set of nodes, moments are in virtual microseconds."""

    name: str
    start_us: int
    end_us: int
    nodes: int
    users: tuple[int, ...] = ()
    accounts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    maintenance: bool = False
    overlaps: bool = False
    """It was made over others on purpose."""

    burst_buffer: str = ""
    """What it was asked to keep of burst buffers, as text."""

    tres: str = ""
    """What the plugins made of that: numbers of TRES and megabytes, ``1001=2048``."""

    def admits(self, uid: int, account: str) -> bool:
        """Return whether jobs of a user, or of an account, may use it."""
        return uid in self.users or account in self.accounts
