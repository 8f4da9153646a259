"""Saved records become slurmctld's tables again; what is not saved is left for its restart to make.

Nothing here asks a plugin or sets a timer. A record is believed as far as the cluster as it is
configured now bears it out: nodes and partitions that are gone are left out.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs

from simctl.ctld.port.port import Port
from simctl.ctld.saved.saved_records import (
    ARRAY,
    DEMAND,
    JOB,
    NODE,
    PART,
    RESV,
    STEP,
    Client,
    Form,
    GoneJob,
    JobRef,
    SavedController,
    SavedDependency,
    SavedLeftovers,
    SavedReservations,
)
from simctl.ctld.state.records import (
    Dependency,
    JobArray,
    JobRecord,
    Need,
    NodeRecord,
    PartRecord,
    ReservationRecord,
    StepRecord,
)
from simctl.kernel.fabric import Envelope, Mailbox
from simctl.plugins.hooks import NULL, About
from simctl.wire.bitmap import mask_of
from simctl.wire.ids import INFINITE, step_name
from simctl.wire.messages import RequestJobInfo
from simctl.wire.records import JobDesc
from simctl.wire.resources import Demand, Share
from simctl.wire.states import JobBase, JobFlag, JobState, NodeBase, NodeFlag, PartState, Reason

_LONG_GONE: Final = Demand(min_nodes=0, max_nodes=0, num_tasks=0)


class Reader:
    """Fills the tables of a slurmctld that has just started."""

    def __init__(self, ctld: Port, *, shift_us: int, same_run: bool) -> None:
        self._ctld = ctld
        self._shift_us = shift_us
        """How far the moments of the records lie ahead of this run's."""
        self._same_run = same_run
        """Whether the clients that the records name may still be there."""
        self.doubts: list[str] = []
        """What of the records does not fit this cluster."""

    def _was(self, form: Form, saved: Any) -> dict[str, Any]:
        """Return the fields that were kept as they are, with moments of this run."""
        fields = {name: getattr(saved, name) for name in form.as_is}
        if self._shift_us:
            for name, value in fields.items():
                if name in _MOMENTS and value >= 0 and value != INFINITE:
                    fields[name] = max(0, value - self._shift_us)
        return fields

    @contextmanager
    def _doubting(self, saved: Any) -> Iterator[None]:
        """Leave out a record that can be read and says what cannot be."""
        try:
            yield
        except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
            name = getattr(saved, "job_id", "") or getattr(saved, "name", "")
            self.doubts.append(f"a record ({name}) says what cannot be: {error!r:.100}")

    def _client(self, client: Client | None) -> Mailbox | None:
        if client is None or not self._same_run:
            return None
        return self._ctld.site.fabric.box_of(*client)

    # Nodes, partitions, reservations.

    def nodes(self, records: Iterable[Any]) -> None:
        """Read what is known of nodes."""
        ctld = self._ctld
        for saved in records:
            node = ctld.nodes_by_name.get(getattr(saved, "name", "") or getattr(saved, "node", ""))
            if node is None:
                self.doubts.append(f"there is no node {getattr(saved, 'name', '')}")
            elif isinstance(saved, SavedLeftovers):
                ctld.leftovers[node.name] = dict.fromkeys(saved.runs)
            else:
                with self._doubting(saved):
                    self._node(node, saved)

    def _node(self, node: NodeRecord, saved: Any) -> None:
        node.restore(NodeBase(saved.base), NodeFlag(saved.flags), self._was(NODE, saved))
        if not self._same_run:
            node.forget_boot()

    def partitions(self, records: Iterable[Any], *, whole: bool) -> None:
        """Read the partitions, as they were last changed; what was deleted stays deleted.

        Where the file was not *whole* those of the configuration are there that it lacks.
        """
        found: dict[str, PartRecord] = {}
        for saved in records:
            with self._doubting(saved):
                found[saved.name] = self._part(saved)
        missing = {} if whole and found else self._ctld.partitions
        self._ctld.partitions = found | {
            name: part for name, part in missing.items() if name not in found
        }

    def _part(self, saved: Any) -> PartRecord:
        nodes = tuple(self._ctld.nodes_named(saved.nodes))
        return PartRecord(
            **self._was(PART, saved),
            nodes=nodes,
            uniform_cpus=nodes[0].cpus if len({node.cpus for node in nodes}) == 1 else 0,
            state=PartState[saved.state],
        )

    def _mask(self, names: Iterable[str]) -> int:
        return mask_of(node.index for node in self._ctld.nodes_named(names))

    def reservations(self, records: Iterable[Any]) -> None:
        """Read the reservations."""
        ctld = self._ctld
        for saved in records:
            if isinstance(saved, SavedReservations):
                ctld.last_reservation = saved.last_reservation
            else:
                ctld.reservations[saved.name] = ReservationRecord(
                    **self._was(RESV, saved), nodes=self._mask(saved.nodes)
                )

    # Jobs.

    def jobs(self, records: Iterable[Any]) -> None:
        """Read jobs, arrays, and what slurmctld counts; then join what refers to others."""
        ctld = self._ctld
        of_jobs, of_arrays, counts = [], [], None
        for saved in records:
            if isinstance(saved, SavedController):
                counts = saved
            elif isinstance(saved, JOB.struct):
                of_jobs.append(saved)
            else:
                of_arrays.append(saved)
        for saved in of_jobs:
            with self._doubting(saved):
                job = self._job(saved)
                if job is not None:
                    ctld.jobs[job.job_id] = job
        for saved in of_arrays:
            array: Any = saved
            with self._doubting(saved):
                ctld.arrays[array.job_id] = JobArray(
                    **{**self._was(ARRAY, array), "waiting": list(array.waiting)}
                )
        for saved in of_jobs:
            if (job := ctld.jobs.get(getattr(saved, "job_id", 0))) is not None:
                with self._doubting(saved):
                    self._join(job, saved)
        for saved in of_arrays:
            with self._doubting(saved):
                self._join_array(saved)
        for array in list(ctld.arrays.values()):
            if array.rest is None and not array.has_records(ctld.jobs):
                # All of its tasks are lost, or over and forgotten.
                del ctld.arrays[array.job_id]
        self._count(counts)

    def _count(self, counts: SavedController | None) -> None:
        ctld = self._ctld
        if counts is not None:
            ctld.next_job_id = counts.next_job_id
            ctld.last_place = counts.last_place
            ctld.last_priority = counts.last_priority
            ctld.last_queue_number = counts.last_queue_number
            ctld.last_runs = dict(counts.last_runs)
            ctld.preempted = {
                job_id: job
                for job_id in counts.preempted
                if (job := ctld.jobs.get(job_id)) is not None
            }
            for job_id, client in counts.awaited:
                self._await(job_id, client)
            for job_id, client in counts.outlasting:
                box = self._client(client)
                if box is not None and box.open:
                    ctld.outlasting[box] = job_id
        for job in ctld.jobs.values():
            ctld.last_place = max(ctld.last_place, job.place)
            if ctld.site.conf.first_job_id <= job.job_id < ctld.site.conf.max_job_id:
                ctld.next_job_id = (
                    max(ctld.next_job_id, job.job_id + 1) if counts is None else (ctld.next_job_id)
                )

    def _await(self, job_id: int, client: Client) -> None:
        box = self._client(client)
        if box is not None and box.open:
            request = RequestJobInfo(job_id=job_id, when_over=True)
            self._ctld.awaited.setdefault(job_id, []).append(Envelope(request, box, 0))

    def _job(self, saved: Any) -> JobRecord | None:
        state = JobState(JobBase(saved.state[0]), JobFlag(saved.state[1]))
        if not state.is_known:
            self.doubts.append(f"job {saved.job_id} is in no state that jobs can be in")
            return None
        parts, was = self._ctld.partitions, self._was(JOB, saved)
        asked = saved.desc.partition.split(",")
        mine = tuple(parts[name] for name in saved.parts if name in parts)
        lost = [name for name in dict.fromkeys((*saved.parts, *asked)) if name not in parts]
        if lost:
            self.doubts.append(f"job {saved.job_id}: there is no partition {', '.join(lost)}")
            mine = mine or (next(iter(parts.values())),)
            # It asks for what is left from now on.
            left = [name for name in asked if name in parts] or [part.name for part in mine]
            was["desc"] = attrs.evolve(saved.desc, partition=",".join(left))
        gone = [name for name in saved.desc.nodes if name not in self._ctld.nodes_by_name]
        if gone:
            self.doubts.append(f"job {saved.job_id} asks for {gone[0]}, and there is no such node")
            # It waits until it asks for others.
            was["lasting_reason"] = Reason.PARTITION_CONFIG
        job = JobRecord(
            **was,
            **self._on_nodes(saved),
            parts=mine,
            part=parts.get(saved.part, mine[0]),
            state=state,
            about=About(job=saved.job_id),
            check_job=NULL,
            client=self._client(saved.client),
            demand=Demand(
                **{name: getattr(saved.demand, name) for name in DEMAND.as_is},
                required=self._mask(saved.demand.required),
                excluded=self._mask(saved.demand.excluded),
            ),
            prologs_out=set(saved.prologs_out),
        )
        for each in saved.steps:
            job.add_step(self._step(job, each))
        for client, since_us in saved.step_waiters:
            box = self._client(client)
            if box is not None:
                job.step_waits(box, since_us)
        return job

    def _on_nodes(self, saved: Any) -> dict[str, Any]:
        """Return what a job has of nodes; it has lost those that are configured no more."""
        known = self._ctld.nodes_by_name
        lost = [name for name in saved.nodes if name not in known]
        if lost:
            self.doubts.append(f"job {saved.job_id}: there is no node {lost[0]}")
        had = {known[share.node].index: share for share in saved.shares if share.node in known}
        return {
            "nodes": tuple(n for n in self._ctld.nodes_named(saved.nodes) if n.index in had),
            "completing_nodes": {name for name in saved.completing_nodes if name in known},
            "nodes_lost": {name for name in saved.nodes_lost if name in known},
            "shares": {
                index: Share(
                    index=index, cpus=share.cpus, memory_mb=share.memory_mb, gres=share.gres
                )
                for index, share in had.items()
            },
            "cores": {index: int(share.cores, 16) for index, share in had.items() if share.cores},
            "gpus": {index: share.gpus for index, share in had.items() if share.gpus is not None},
        }

    def _step(self, job: JobRecord, saved: Any) -> StepRecord:
        name = step_name(job.job_id, saved.step_id)
        return StepRecord(
            **self._was(STEP, saved),
            job=job,
            about=About(job=job.job_id, step=name),
            srun=self._client(saved.srun),
            switch_job=NULL,
            check_job=NULL,
            reported=bytearray(bool(each) for each in saved.reported),
        )

    def _join(self, job: JobRecord, saved: Any) -> None:
        ctld = self._ctld
        job.depend_on(self._dependency(saved.dependency))
        job.preempt(tuple(ctld.jobs[each] for each in saved.gives_way if each in ctld.jobs))
        if saved.array is None:
            return
        array = ctld.arrays.get(saved.array)
        if array is None and job.array_task < 0:
            # Which tasks wait, and which have run, is lost.
            self.doubts.append(f"job {job.job_id} stands for tasks of an array that has no record")
            del ctld.jobs[job.job_id]
            return
        if array is None:
            # Its record is lost: what is left of the array is what can be told of this task.
            tasks = (job.array_task,) if job.array_task >= 0 else ()
            array = ctld.arrays[saved.array] = JobArray(
                job_id=saved.array, tasks=tasks, limit=0, waiting=[]
            )
        array.rejoin(job)

    def _dependency(self, saved: SavedDependency | None) -> Dependency | None:
        if saved is None:
            return None
        needs = []
        for need in saved.needs:
            array = self._ctld.arrays.get(need.array) if need.array is not None else None
            job = self._found(need.job)
            if need.kind != "singleton" and array is None and job is None:
                # What it waits for is lost with its record, and counts as over.
                self.doubts.append(f"a job that others wait for is not there ({saved.text})")
                continue
            needs.append(
                Need(kind=need.kind, job=job, array=array, task=need.task, delay_us=need.delay_us)
            )
        return Dependency(text=saved.text, needs=tuple(needs), any_will_do=saved.any_will_do)

    def _found(self, ref: JobRef | None) -> JobRecord | None:
        if isinstance(ref, GoneJob):
            return self._gone(ref)
        return None if ref is None else self._ctld.jobs.get(ref)

    def _gone(self, gone: GoneJob) -> JobRecord:
        """Return a record that stands for a job that is purged."""
        part = next(iter(self._ctld.partitions.values()))
        return JobRecord(
            job_id=gone.job_id,
            desc=JobDesc(name="", uid=0, gid=0, user=""),
            parts=(part,),
            part=part,
            state=JobState(JobBase(gone.state[0]), JobFlag(gone.state[1])),
            about=About(job=gone.job_id),
            check_job=NULL,
            submit_us=0,
            batch=True,
            client=None,
            requeue=False,
            time_limit_min=0,
            demand=_LONG_GONE,
            name="",
            priority=0,
            array_task=gone.array_task,
            start_us=gone.start_us,
            end_us=gone.end_us,
            staged_out=gone.staged_out,
            burst_buffer=gone.burst_buffer,
        )

    def _join_array(self, saved: Any) -> None:
        array = self._ctld.arrays[saved.job_id]
        records = {task: self._found(ref) for task, ref in saved.records}
        array.restore(
            rest=self._found(saved.rest),
            first=self._found(saved.first),
            records={task: job for task, job in records.items() if job is not None},
        )
        if array.rest is None and array.waiting:
            self.doubts.append(f"the tasks of array {array.job_id} that wait have no record")
            array.cancel_waiting()


_MOMENTS: Final = frozenset(
    {
        *("submit_us", "eligible_us", "accrue_us", "start_us", "end_us", "limit_us", "planned_us"),
        *("evaluated_us", "preempt_us", "suspend_us", "switched_us", "batch_start_us", "begin_us"),
        *(
            "expected_us",
            "ckpt_us",
            "clock_us",
            "reason_us",
            "last_busy_us",
            "launched_us",
            "booted_us",
            "slurmd_start_us",
        ),
    }
)
"""The fields that hold moments, where others in microseconds hold lengths of time."""

__all__ = ["Reader"]
