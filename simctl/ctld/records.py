"""What the controller owns: job, step, node and partition records."""

import heapq

import attrs

from simctl.kernel.fabric import Mailbox
from simctl.kernel.turns import Timer
from simctl.plugins.hooks import About, Handle
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.wire.layout import StepLayout
from simctl.wire.records import JobDesc
from simctl.wire.states import JobState, NodeBase, NodeFlag, Reason


@attrs.define(eq=False, kw_only=True)
class NodeRecord:
    """A node as the controller sees it; whole nodes are allocated, so it holds at most one job."""

    index: int
    name: str
    address: str
    cpus: int
    memory_mb: int
    base: NodeBase = NodeBase.UNKNOWN
    flags: NodeFlag = NodeFlag.NONE
    reason: str = ""
    job: "JobRecord | None" = None
    completing: int = 0
    """Jobs that have yet to report that they are gone from the node."""

    last_response_us: int = 0
    partitions: "list[PartRecord]" = attrs.field(factory=list)

    @property
    def usable(self) -> bool:
        """Tell whether a job may start here now."""
        return self.base is NodeBase.IDLE and not self.flags


@attrs.define(eq=False, kw_only=True)
class PartRecord:
    """A partition: its limits, its nodes, those of them that are idle, and who waits."""

    name: str
    nodes: tuple[NodeRecord, ...]
    default: bool
    max_time_min: int
    default_time_min: int
    max_nodes: int
    min_nodes: int
    uniform_cpus: int
    """Cpus of every node where all have as many, else 0."""

    size: int
    """Nodes of the whole cluster."""

    idle: int = 0
    """How many nodes may start a job now."""

    queue: "list[tuple[int, int, JobRecord]]" = attrs.field(factory=list)
    """A heap: the highest priority first, then who came first; what left it is dropped when met."""

    waiting: int = 0
    """Jobs in the queue; those that have left it stay in the heap until a pass meets them."""

    examined_to: int = -1
    """Queue number of the last job that was waiting at the latest pass."""

    widest_cpus: int = attrs.field(init=False)
    """Cpus of the node that has most."""

    _heap: list[int] = attrs.field(factory=list)
    _queued: bytearray = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._queued = bytearray(self.size)
        self.widest_cpus = max(node.cpus for node in self.nodes)

    def offer(self, node: NodeRecord) -> None:
        """Note that a node has become usable."""
        self.idle += 1
        if not self._queued[node.index]:
            self._queued[node.index] = 1
            heapq.heappush(self._heap, node.index)

    def withdraw(self) -> None:
        """Note that a node is usable no more; its place in the heap is dropped when met."""
        self.idle -= 1

    def take_first(self, count: int, nodes: list[NodeRecord]) -> list[NodeRecord]:
        """Return the first *count* usable nodes in node order; there must be as many."""
        taken: list[NodeRecord] = []
        heap = self._heap
        while len(taken) < count:
            index = heapq.heappop(heap)
            self._queued[index] = 0
            node = nodes[index]
            if node.usable:
                taken.append(node)
        return taken


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


@attrs.frozen(kw_only=True)
class Need:
    """One part of a dependency: another job, and what must become of it.

    `job` is None for ``singleton``, which concerns every job of the same name and user; with an
    `array` every task of it is meant.
    """

    kind: str
    job: "JobRecord | None" = None
    array: JobArray | None = None
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


@attrs.define(eq=False, kw_only=True)
class JobRecord:
    """A job, from its submission to its purge; times in virtual microseconds, -1 for "not yet"."""

    job_id: int
    desc: JobDesc
    part: PartRecord
    state: JobState
    about: About
    check_job: Handle
    submit_us: int
    batch: bool
    client: Mailbox | None
    """Where the srun waits that asked for the allocation."""

    requeue: bool
    time_limit_min: int
    min_nodes: int
    max_nodes: int
    num_tasks: int
    name: str
    priority: int
    """The highest starts first; 0 holds the job."""

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
    array: JobArray | None = None
    array_task: int = -1
    """Number of the task; -1 for a record that stands for the tasks that wait."""

    start_us: int = -1
    end_us: int = -1
    limit_us: int = INFINITE
    exit_code: int = 0
    """A wait status."""

    restart_cnt: int = 0
    nodes: tuple[NodeRecord, ...] = ()
    node_list: str = ""
    completing_nodes: set[str] = attrs.field(factory=set)
    nodes_lost: set[str] = attrs.field(factory=set)
    """Nodes that restarted under the job, and have nothing of it left."""

    steps: dict[int, StepRecord] = attrs.field(factory=dict)
    next_step_id: int = 0
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

    begin_us: int = -1


def cpus_needed(desc: JobDesc) -> int:
    """Return how many cpus each task of a job needs."""
    return 1 if desc.cpus_per_task == NO_VAL else desc.cpus_per_task
