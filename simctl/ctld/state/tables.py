"""slurmctld's tables: what there is, and the sets and queues that follow from it."""

from collections.abc import Iterable, Iterator
from typing import Any

from simctl.ctld.state.job_rows import JobRow
from simctl.ctld.state.notices import AgentRetry
from simctl.ctld.state.records import (
    JobArray,
    JobRecord,
    NodeRecord,
    PartRecord,
    ReservationRecord,
    StepRecord,
)
from simctl.kernel.fabric import Envelope, Mailbox
from simctl.kernel.threads import Thread
from simctl.kernel.turns import Timer
from simctl.wire.conf.slurm_conf import SlurmConf
from simctl.wire.messages import RequestUpdatePartition
from simctl.wire.states import JobBase, JobState, NodeBase, NodeFlag

_LOST = NodeFlag.DRAIN | NodeFlag.NO_RESPOND
"""The flags of nodes that no job gets, even once they are idle."""

_LEAVING = NodeFlag.COMPLETING

_TOP_PRIORITY = 4294901760
"""What the first job's priority is one below."""


class State:
    """The tables of one slurmctld. Nothing here waits, sends or calls a plugin."""

    def __init__(  # noqa: PLR0915 - all that slurmctld knows
        self, conf: SlurmConf, records: list[NodeRecord], partitions: list[PartRecord]
    ) -> None:
        self._conf = conf
        self.nodes = records
        self.nodes_by_name = {node.name: node for node in records}
        self.partitions = {part.name: part for part in partitions}
        self.jobs: dict[int, JobRecord] = {}
        self.running: dict[int, JobRecord] = {}
        """The jobs that run, by id."""
        self.completing: dict[int, JobRecord] = {}
        """Those that are COMPLETING."""
        self.ended_rows: dict[int, JobRow] = {}
        """How jobs that are over have ended, by id; it outlives a slurmctld."""
        self.runs_ended = 0
        """How many runs of jobs have ended."""
        self.next_job_id = conf.first_job_id
        self.last_place, self.last_queue_number = 0, -1
        self.last_priority = _TOP_PRIORITY
        self.dependents: dict[int, list[JobRecord]] = {}
        """The jobs that wait for a job, by its id."""
        self.singletons: dict[tuple[int, str], list[JobRecord]] = {}
        """Jobs by user and name, of those names that a singleton has asked for."""
        self.arrays: dict[int, JobArray] = {}
        """Job arrays, by the id they were submitted under."""
        self.usable_nodes = 0
        """The nodes on which a job may start now, if there is room."""
        self.idle_nodes = 0
        """Those of them that have no job."""
        self.serviceable_nodes = (1 << len(records)) - 1
        """The nodes on which jobs may start once those that run there are over."""
        self.planned_nodes = 0
        """The nodes that the latest backfill pass keeps for jobs that wait."""
        self.reservations: dict[str, ReservationRecord] = {}
        self.last_reservation = 0
        self.boundary_us = -1
        """When a pass is due because a reservation begins or ends."""
        self.backfill_is_due = False
        self.suspended: dict[int, JobRecord] = {}
        """Suspended jobs by id: no node counts them as its own."""
        self.preempted: dict[int, JobRecord] = {}
        """Those of them that were preempted: they go on as soon as their nodes are free."""
        self.periodic: dict[tuple[int, int], JobRecord | StepRecord] = {}
        """The jobs and steps that are checkpointed every so often, by job and step id."""
        self.periodic_timer: Timer | None = None
        self.periodic_us = -1
        """When that is due."""
        self.last_runs: dict[int, int] = {}
        """Number of the last run of batch jobs that are purged and may be restarted, by id."""
        self.awaited: dict[int, list[Envelope]] = {}
        """Requests to be answered once a job is over, by its id."""
        self.outlasting: dict[Mailbox, int] = {}
        """Clients that were still there when their job was purged, and its id."""
        self.unheard: set[str] = set()
        """Nodes that have not registered since slurmctld was started again."""
        self.last_pass_us = self.last_full_us = -1
        self.pass_is_due = False
        self.late_pass: Timer | None = None
        self.ping_timer: Timer | None = None
        self.pinging_until_us = -1
        """When the last pings that cannot be answered are given up; no others are sent before."""
        self.looks: dict[str, int] = {}
        """When nodes are asked that may lack something of what should run there."""
        self.nodes_asked_us = -1
        """When all nodes were last asked to register."""
        self.unsent: dict[str, list[AgentRetry]] = {}
        """What is to be sent to nodes that have no slurmd at present."""
        self.leftovers: dict[str, dict[tuple[int, int], None]] = {}
        """Runs of jobs that are over, by the node that has yet to report them gone."""
        self.changes = 0
        """How many states of jobs and of their burst buffers have changed."""
        self.encoded: dict[JobRecord, tuple[Any, bytes]] = {}
        """The saved records of jobs that wait or are over, with what they were made of."""
        self.lock_holder: Thread | None = None
        """The thread of a plugin that has the job write lock."""

    def next_place(self) -> int:
        """Return the place at the end of the list of jobs."""
        self.last_place += 1
        return self.last_place

    def next_id(self) -> int:
        """Return the next job id that is free, 0 if none is; after MaxJobId FirstJobId follows."""
        conf = self._conf
        job_id = self.next_job_id
        tried = 0
        while job_id in self.jobs or job_id in self.arrays:
            tried += 1
            if tried > conf.max_job_id - conf.first_job_id:
                return 0
            job_id = job_id + 1 if job_id < conf.max_job_id else conf.first_job_id
        self.next_job_id = job_id + 1 if job_id < conf.max_job_id else conf.first_job_id
        return job_id

    def next_priority(self, nice: int) -> int:
        """Return a priority one below the last, less a nice value."""
        self.last_priority -= 1
        return max(1, self.last_priority - nice)

    def nodes_named(self, names: Iterable[str]) -> Iterator[NodeRecord]:
        """Return nodes by their names; what was saved may name some that are there no more."""
        known = self.nodes_by_name
        return (known[name] for name in names if name in known)

    def move_job(self, job: JobRecord, after: JobState) -> None:
        """Let a job be in another state, and in the tables of those that run or are completing."""
        job.state = after
        self.changes += 1
        if after.base is JobBase.RUNNING:
            self.running[job.job_id] = job
        else:
            self.running.pop(job.job_id, None)
        if after.completing:
            self.completing[job.job_id] = job
        else:
            self.completing.pop(job.job_id, None)

    def move_node(self, node: NodeRecord, base: NodeBase, flags: NodeFlag) -> bool:
        """Let a node be in a state, and note in the sets of nodes what may be done with it.

        Return whether the node joined or left those on which jobs may start later.
        """
        node.base = base
        node.flags = flags
        bit = 1 << node.index
        free = not flags
        idle = free and base is NodeBase.IDLE
        usable = idle or (free and base is NodeBase.MIXED)
        self.usable_nodes = self.usable_nodes | bit if usable else self.usable_nodes & ~bit
        self.idle_nodes = self.idle_nodes | bit if idle else self.idle_nodes & ~bit
        before = self.serviceable_nodes
        lost = base is NodeBase.DOWN or (flags and flags is not _LEAVING and flags & _LOST)
        self.serviceable_nodes = before & ~bit if lost else before | bit
        return self.serviceable_nodes != before

    def update_partition(self, part: PartRecord, asked: RequestUpdatePartition) -> None:
        """Change a partition; where it becomes the default, the one before is so no more."""
        if asked.default:
            for other in self.partitions.values():
                other.be_default(False)
        part.update(asked)

    def anybody_waits(self) -> bool:
        """Return whether a pass has a job to look at."""
        for part in self.partitions.values():  # noqa: SIM110 - asked at every turn
            if part.waiting:
                return True
        return False
