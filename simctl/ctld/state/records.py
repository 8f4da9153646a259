"""What the controller owns: job, step, node and partition records."""

from collections.abc import Iterable, Mapping
from itertools import count, islice
from typing import Any, Final

import attrs

from simctl.ctld.state.job.launched import NOTHING_PACKED, LaunchedJob
from simctl.kernel.fabric import Mailbox
from simctl.kernel.turns import Timer
from simctl.plugins.hooks import About, Handle
from simctl.wire.accounts import NOBODY
from simctl.wire.bitmap import lowest, mask_of
from simctl.wire.buf import Packed
from simctl.wire.hostlist import compress
from simctl.wire.ids import INFINITE, NO_VAL, SECOND
from simctl.wire.layout import StepLayout
from simctl.wire.messages import RequestUpdatePartition
from simctl.wire.resources import Demand, Room, Share
from simctl.wire.states import JobBase, NodeBase, NodeFlag, PartState, Reason

_ASKED_NUMBERS: Final = {
    "max_time_min": "max_time_min",
    "default_time_min": "default_time_min",
    "max_nodes": "max_nodes",
    "min_nodes": "min_nodes",
    "priority_tier": "tier",
    "grace_time_s": "grace_time_s",
    "def_mem_per_cpu_mb": "def_mem_per_cpu_mb",
    "def_mem_per_node_mb": "def_mem_per_node_mb",
}
"""Numbers of an update request for a partition, and the field of the record each changes."""


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

    def give_reason(self, reason: str, uid: int, now_us: int) -> None:
        """Note why the node is out of service, and who says so."""
        self.reason, self.reason_uid, self.reason_us = reason, uid, now_us

    def in_service(self) -> None:
        """Forget why the node was out of service."""
        self.reason = ""

    def heard(self, when_us: int) -> None:
        """Note that the node answered at a moment; it may be known to have answered later."""
        self.last_response_us = max(self.last_response_us, when_us)

    def expect_end(self) -> None:
        """Wait for the node to report an old run gone."""
        self.completing += 1

    def begin_anew(self, now_us: int, leftovers: int) -> None:
        """Be taken up by a slurmctld that starts: *leftovers* old runs have yet to be reported."""
        self.last_response_us = now_us
        self.completing = leftovers

    def register(self, now_us: int, *, started_us: int, booted_us: int, started: bool) -> None:
        """Take a registration that could be read; its slurmd may have *started* before it."""
        self.slurmd_start_us = max(self.slurmd_start_us, started_us)
        self.booted_us = booted_us
        self.start_missed, self.invalid_registrations = False, 0
        self.last_response_us = now_us
        if started:
            self.start_us = now_us

    def misread(self, *, startup: bool) -> int:
        """Count a registration that cannot be read; return how many that are in a row.

        That the slurmd has just started is kept: a later registration will not say so again.
        """
        self.start_missed = self.start_missed or startup
        self.invalid_registrations += 1
        return self.invalid_registrations

    def offer(self, features: tuple[str, ...]) -> None:
        """Have other features."""
        self.features = features

    def restore(self, base: NodeBase, flags: NodeFlag, saved: Mapping[str, Any]) -> None:
        """Be in a state again, with the fields that were saved as they were."""
        self.base, self.flags = base, flags
        for name, value in saved.items():
            setattr(self, name, value)

    def forget_boot(self) -> None:
        """Know no more since when the machine and its slurmd are up: they are others."""
        self.booted_us = self.slurmd_start_us = -1

    def is_left(self, now_us: int) -> bool:
        """Note that one job, or one old run, is gone; return whether it was the last to go."""
        self.completing -= 1
        if self.completing:
            return False
        self.last_busy_us = now_us
        return True

    def take(self, job: "JobRecord", share: Share) -> None:
        """Give a share of the node to a job."""
        self.jobs[job.job_id] = job
        self.free.take(share)
        job.cores[self.index] = lowest(self.free_cores, share.cpus)
        self.free_cores &= ~job.cores[self.index]

    def keep(self, job: "JobRecord") -> None:
        """Let a restored job have what it had of the node."""
        self.jobs[job.job_id] = job
        self.free.take(job.shares[self.index])
        self.free_cores &= ~job.cores.get(self.index, 0)

    def give_gpus(self, job: "JobRecord", share: Share) -> None:
        """Give a job the first gpus of the node that no other job there has."""
        taken = {gpu for other in self.jobs.values() for gpu in other.gpus.get(self.index, ())}
        wanted = sum(
            number for name, number in share.gres.items() if name.partition(":")[0] == "gpu"
        )
        job.gpus[self.index] = tuple(islice((gpu for gpu in count() if gpu not in taken), wanted))

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

    def examined(self, queue_number: int) -> None:
        """Note which job was the last in the queue at a pass that is over."""
        self.examined_to = queue_number

    def update(self, asked: RequestUpdatePartition) -> None:
        """Be as a request says; what it does not name stays as it is."""
        for name, field in _ASKED_NUMBERS.items():
            value = getattr(asked, name)
            if value != NO_VAL:
                setattr(self, field, value)
        if asked.state:
            self.state = PartState[asked.state]
        if asked.preempt_mode:
            self.preempt_mode = asked.preempt_mode
        for name in ("allow_accounts", "deny_accounts", "exclusive", "root_only", "default"):
            value = getattr(asked, name)
            if value is not None:
                setattr(self, name, value)

    def be_default(self, default: bool) -> None:
        """Be, or be no more, the partition of jobs that name none."""
        self.default = default

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

    def take_id(self, job_id: int) -> None:
        """Have an id from now on."""
        self.job_id = job_id

    def begin(self, job: "JobRecord") -> None:
        """Have all tasks wait in one record."""
        self.rest = self.first = job

    def rejoin(self, job: "JobRecord") -> None:
        """Have a restored job that stands for a task, or for those that wait."""
        job.array = self
        if job.array_task >= 0:
            self.records.setdefault(job.array_task, job)

    def restore(
        self,
        *,
        rest: "JobRecord | None",
        first: "JobRecord | None",
        records: "dict[int, JobRecord]",
    ) -> None:
        """Have the restored jobs that stand for tasks, each of which knows its task from now on."""
        self.rest, self.first, self.records = rest, first, records
        for task, job in records.items():
            job.array, job.array_task = self, task
        if rest is not None:
            rest.array = self

    def take(self, task: int) -> bool:
        """Let a task wait by itself; return whether others are left, for which `rest` stands."""
        self.waiting.remove(task)
        if not self.waiting:
            self.rest = None
        return bool(self.waiting)

    def cancel_waiting(self) -> None:
        """Let no task wait any more."""
        self.rest = None
        self.waiting.clear()

    def task_started(self) -> None:
        """Count a task that starts."""
        self.running += 1

    def task_ended(self) -> None:
        """Count a task that has left its nodes: one more may run."""
        self.running -= 1

    def limit_to(self, limit: int) -> None:
        """Let so many tasks run at a time, 0 for any number."""
        self.limit = limit

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

    def report(self, first: int, last: int, status: int, cause: int) -> bool:
        """Note that the step is over on a range of its nodes; return whether it is on all."""
        known = self.exit_code
        self.exit_code = status if known == NO_VAL else max(known, status)
        self.reported[first : last + 1] = b"\1" * (last + 1 - first)
        self.reports.append(cause)
        return all(self.reported)

    def end_on(self, node_name: str, cause: int | None = None) -> bool:
        """Count the step as over on a node, which says nothing; return whether it is on all."""
        self.reported[self.layout.nodes.index(node_name)] = 1
        if cause is not None:
            self.reports.append(cause)
        return all(self.reported)

    def start_clock(self, now_us: int) -> None:
        """Begin to count the time limit; what the job was suspended before does not count."""
        self.clock_us = now_us - self.job.suspended_us

    def limit_to(self, minutes: int) -> None:
        """Have a time limit, counted from the start of the step; INFINITE for none."""
        self.time_limit_min = minutes
        self.limit_us = INFINITE if minutes == INFINITE else self.clock_us + minutes * 60 * SECOND

    def watch_limit(self, timer: Timer | None) -> None:
        """Have the time limit looked at when a timer is due, and not before."""
        if self.limit_timer is not None:
            self.limit_timer.cancel()
        self.limit_timer = timer

    def time_out(self) -> None:
        """Be ended for the time limit."""
        self.timed_out = True

    def cancelled_by(self, uid: int) -> None:
        """Note who cancels the step alone."""
        self.cancel_uid = uid

    def checkpointed(self, now_us: int) -> None:
        """Note that the step is checkpointed by itself now."""
        self.ckpt_us = now_us

    def keep_credential(self, switch_job: Handle) -> None:
        """Have another credential from now on."""
        self.switch_job = switch_job

    def keep_record(self, check_job: Handle) -> None:
        """Have another checkpoint record from now on."""
        self.check_job = check_job

    def pack_credential(self, packed_job: Packed) -> None:
        """Keep what the credential is, for the state files and for who asks for it again."""
        self.packed_job = packed_job

    def pack(self, packed_record: Packed) -> None:
        """Keep what the checkpoint record is now, for the state files."""
        self.packed_record = packed_record

    def view_as(self, view: Any) -> None:
        """Be shown to plugins as *view* from now on."""
        self.view = view

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
class JobRecord(LaunchedJob):
    """A job, from its submission to its purge; times in virtual microseconds, -1 for "not yet".

    What it is by itself stands in `state/job`, a class a subject, each on the one below. Here is
    what it has to do with nodes, partitions, steps, its array and other jobs.
    """

    parts: tuple[PartRecord, ...]
    """The partitions it may run in, in the order they were asked for."""

    part: PartRecord
    """The partition it runs in, or the first of those it waits for."""

    demand: Demand
    dependency: Dependency | None = None
    array: JobArray | None = None
    array_task: int = -1
    """Number of the task; -1 for a record that stands for the tasks that wait."""

    awaited_ends: tuple[int, ...] = ()
    """The causes of what its dependency has waited for."""

    gives_way: "tuple[JobRecord, ...]" = ()
    """The jobs that were preempted so that it can start."""

    nodes: tuple[NodeRecord, ...] = ()
    node_list: str = ""
    shares: dict[int, Share] = attrs.field(factory=dict)
    """What it has of each of its nodes, by the node's index."""

    cores: dict[int, int] = attrs.field(factory=dict)
    """Which cpus it has on each of its nodes, by the node's index: a bit for each."""

    gpus: dict[int, tuple[int, ...]] = attrs.field(factory=dict)
    """Numbers of its gpus, by the index of the node."""

    batch_host: str = ""
    """The first node of its latest run."""

    billing: int = 0
    """The cpus that its run began with, for which it is billed; 0 before."""

    completing_nodes: set[str] = attrs.field(factory=set)
    left: list[int] = attrs.field(factory=list)
    """What the reports of nodes that it has left are the causes of."""

    nodes_lost: set[str] = attrs.field(factory=set)
    """Nodes that restarted under the job, and have nothing of it left."""

    steps: dict[int, StepRecord] = attrs.field(factory=dict)
    next_step_id: int = 0
    step_waiters: dict[Mailbox, int] = attrs.field(factory=dict)
    """The sruns that wait for cpus of the job, first come first, and since when."""

    db_index: int = 0
    """Place of the run in the books of accounting, once they know of it."""

    cancel_uid: int = -1
    """Who cancelled it."""

    derived_exit_code: int = 0
    """The highest wait status of its steps."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return how many cpus it has on each of its nodes."""
        return tuple([self.shares[node.index].cpus for node in self.nodes])

    # While it waits.

    def fits(self, parts: tuple[PartRecord, ...], reason: str) -> None:
        """Wait in the partitions that could hold the job; without any, for ever and for a reason.

        In a partition that could not hold it the job would be in the way of others.
        """
        if parts:
            self.lasting_reason = ""
            self.parts, self.part = parts, parts[0]
        else:
            self.lasting_reason = Reason.PARTITION_CONFIG if reason == Reason.NONE else reason

    def ask_anew(
        self, parts: tuple[PartRecord, ...], demand: Demand | None, time_limit_min: int
    ) -> None:
        """Ask for what the job's description comes to now; without a demand for the same nodes."""
        self.parts, self.part = parts, parts[0]
        self.demand = demand or self.demand
        self.time_limit_min = time_limit_min

    def become_eligible(self, now_us: int, awaited_ends: tuple[int, ...]) -> None:
        """Join the queue: what the job depended on has happened, caused by *awaited_ends*."""
        self.reason = Reason.NONE
        self.awaited_ends = awaited_ends
        self.dependency = None
        self.eligible_us = now_us
        if self.accrue_us < 0:
            self.accrue_us = now_us

    def depend_on(self, dependency: Dependency | None) -> None:
        """Wait for other jobs than before."""
        self.dependency = dependency

    def preempt(self, victims: "tuple[JobRecord, ...]") -> None:
        """Start in the place of *victims* as soon as they have given way."""
        self.gives_way = victims

    # Its run, and what it has of nodes.

    def take_nodes(
        self,
        part: PartRecord,
        nodes: tuple["NodeRecord", ...],
        shares: Iterable[Share],
        now_us: int,
    ) -> None:
        """Give the job what a pass has chosen for it."""
        if len(self.parts) > 1:
            self.part = part
            self.desc = attrs.evolve(self.desc, partition=part.name)
        self.nodes = nodes
        self.shares = {share.index: share for share in shares}
        self.node_list = compress(tuple([node.name for node in nodes]))
        self.batch_host = nodes[0].name
        self.billing = sum(self.cpus)
        self.start_us = self.evaluated_us = now_us

    def lose_nodes(self) -> None:
        """Let the job be as it was before it was given nodes: it could not start."""
        self.nodes, self.shares, self.node_list = (), {}, ""
        self.billing = 0
        self.start_us = self.expected_us = -1

    def lose_claim(self) -> None:
        """Be as before the nodes and the burst buffer were given: they could not be had."""
        self.lose_nodes()
        self.bb_answer = -1

    def leave_out(self, node: NodeRecord) -> None:
        """Go on without a node that has failed."""
        del self.shares[node.index]
        self.nodes = tuple(each for each in self.nodes if each is not node)
        self.node_list = compress(tuple(each.name for each in self.nodes))

    def begin_run(self, now_us: int, time_limit_min: int) -> None:
        """Let the job run from now on: it waits for nothing any more."""
        self.start_us = now_us
        self.begin_us = self.expected_us = -1
        self.reason = Reason.NONE
        self.time_limit_min = time_limit_min

    def enter_books(self, db_index: int) -> None:
        """Have a record in accounting from now on."""
        self.db_index = db_index

    # Its end.

    def end_run(self, now_us: int, reason: str, exit_code: int | None = None) -> None:
        """Let the run be over, for a reason; what a plugin said of the job is past."""
        self.end_us = now_us
        self.reason = reason
        self.state_desc = ""
        if exit_code is not None:
            self.exit_code = exit_code

    def end_waiting(self, now_us: int, reason: str, exit_code: int | None = None) -> None:
        """Let the job be over, for a reason, without a run."""
        self.stop_timers()
        self.begin_us = -1
        self.start_us = self.end_us = now_us
        if exit_code is not None:
            self.exit_code = exit_code
        self.waits_for(reason)

    def refuse(self, now_us: int) -> None:
        """Let the job be over, which could not start at once: it has waited for nothing."""
        self.stop_timers()
        self.start_us = self.end_us = now_us
        self.reason = Reason.BAD_CONSTRAINTS
        self.waited_for = ""

    def cancelled_by(self, uid: int, *, hurry: bool = False) -> None:
        """Note who cancels the job, and whether in a *hurry*: then nothing is staged out."""
        self.cancel_uid = uid
        self.hurry = hurry

    def complete_on(self, node: NodeRecord) -> None:
        """Wait for a node to report that it has let go of the job."""
        self.completing_nodes.add(node.name)
        node.completing += 1

    def gone_from(self, node: NodeRecord, cause: int) -> None:
        """Note that a node has let go of the job, and the cause of its report."""
        self.completing_nodes.discard(node.name)
        self.left.append(cause)

    def leave(self) -> list[int]:
        """Have no node any more; return the causes of their reports that the job is gone."""
        causes, self.left = self.left, []
        return causes

    def lose_on(self, node: NodeRecord) -> None:
        """Note that a node has restarted, and has nothing of the job left to end."""
        self.nodes_lost.add(node.name)

    # Back into the queue, or to a slurmctld that starts.

    def give_up_run(self, now_us: int, *, unlaunched: bool) -> None:
        """End the run so that the job can run again; of an *unlaunched* one it is told why."""
        self.end_us = now_us
        if not unlaunched:
            self.state_desc = ""

    def leave_run(self) -> None:
        """Wait again once the nodes have let go; what a plugin said of the job is past."""
        self.state_desc = ""
        self.wait_again()

    def back_to_queue(self, now_us: int, begin_us: int, db_index: int) -> None:
        """Forget the run that is over: the job waits as one that was submitted now.

        It has a new record in accounting. What its burst buffer failed with before it was launched
        is its exit code until it runs.
        """
        self.forget_run()
        self.nodes = ()
        self.shares, self.cores, self.gpus = {}, {}, {}
        self.nodes_lost.clear()
        self.batch_host = ""
        self.billing = 0
        self.cancelled_by(NOBODY)
        self.desc = attrs.evolve(self.desc, partition=",".join(part.name for part in self.parts))
        self.submit_us, self.begin_us = now_us, begin_us
        self.eligible_us = self.accrue_us = -1
        self.db_index = db_index

    def begin_anew(self, *, was_stopped: bool) -> None:
        """Be taken up by a slurmctld that starts; the last one *was stopped*, or has died.

        One that died may have been about to tell some nodes that the job is over.
        """
        state = self.state
        self.epilog_running = False
        if not state.configuring:
            self.prologs_out = set()
        if state.completing:
            if not was_stopped:
                self.completing_nodes = {node.name for node in self.nodes}
            self.completing_nodes -= {n.name for n in self.nodes if n.base is NodeBase.DOWN}
        elif state.base is JobBase.PENDING and not state.flags:
            self.nodes, self.shares, self.completing_nodes = (), {}, set()
            self.start_us = -1

    # Tasks of its array, and its steps.

    def become_task(self, task: int, environment: dict[str, str]) -> None:
        """Stand for one task of the array, and for no others."""
        assert self.array is not None
        self.array_task = task
        self.desc = attrs.evolve(self.desc, environment=environment)
        self.array.records[task] = self

    def split(self, job_id: int, place: int) -> "JobRecord":
        """Return a record of one task of the array that the job stands for; it has run nothing.

        The record of those that wait goes to the end of the list of jobs, to *place*.
        """
        record = attrs.evolve(
            self,
            job_id=job_id,
            about=About(job=job_id),
            queued=False,
            reason=Reason.NONE,
            prologs_out=set(),
            completing_nodes=set(),
            shares={},
            cores={},
            gpus={},
            left=[],
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
            view=None,
        )
        self.place = place
        return record

    def next_step(self) -> int:
        """Return the number of a new step."""
        self.next_step_id += 1
        return self.next_step_id - 1

    def add_step(self, step: StepRecord) -> None:
        """Have a step that runs."""
        self.steps[step.step_id] = step

    def drop_step(self, step: StepRecord) -> None:
        """Have a step no more, which is over: what it has exited with counts for the job."""
        del self.steps[step.step_id]
        if step.exit_code != NO_VAL:
            self.derived_exit_code = max(self.derived_exit_code, step.exit_code)
        step.watch_limit(None)

    def step_waits(self, srun: Mailbox, since_us: int) -> None:
        """Note that a srun waits for cpus of the job; one that asks again keeps its place."""
        self.step_waiters[srun] = since_us

    def step_waits_no_more(self, srun: Mailbox) -> None:
        """Forget a srun that has its step, or is gone."""
        self.step_waiters.pop(srun, None)


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

    def keep_of_buffers(self, tres: str) -> None:
        """Take what the plugins make of what the reservation is to keep of burst buffers."""
        self.tres = tres

    def admits(self, uid: int, account: str) -> bool:
        """Return whether jobs of a user, or of an account, may use it."""
        return uid in self.users or account in self.accounts
