"""What slurmctld's tables come to in its state files: a list of records for each file."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

import msgspec

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
    GoneJob,
    JobRef,
    SavedController,
    SavedDependency,
    SavedLeftovers,
    SavedNeed,
    SavedReservations,
    SavedShare,
    kept,
)
from simctl.ctld.state.records import (
    Dependency,
    JobArray,
    JobRecord,
    NodeRecord,
    PartRecord,
    ReservationRecord,
    StepRecord,
)
from simctl.kernel.fabric import Mailbox
from simctl.wire.bitmap import members
from simctl.wire.resources import Demand

_ENCODER: Final = msgspec.json.Encoder()


def records_of(ctld: Port, name: str) -> list[bytes]:
    """Return what stands in a state file now, a record each."""
    return [each if type(each) is bytes else _ENCODER.encode(each) for each in _WRITERS[name](ctld)]


def client_of(box: Mailbox | None) -> Client | None:
    """Return how a client is found again."""
    return None if box is None or not box.open else (box.process.pid, box.name)


_MUTABLE: Final = (
    *("client", "prologs_out", "shares", "cores", "gpus", "completing_nodes", "nodes_lost"),
    *("steps", "step_waiters", "env_sup", "tres", "tres_req"),
)
"""What of a job may change in place, or by itself."""

_OF_RUNS: Final = ("client", "shares", "cores", "gpus")
"""What does not change any more once a job is over."""

_mutable = attrgetter(*_MUTABLE)
_mutable_when_over = attrgetter(*(name for name in _MUTABLE if name not in _OF_RUNS))
_fixed = attrgetter(
    *(name for name in (*JOB.as_is, *JOB.otherwise) if name not in _MUTABLE and name != "array")
)


def _encoded_jobs(ctld: Port) -> Iterable[bytes]:
    """Yield the records of jobs; of one that waits or is over, and is as it was, the last one.

    Most jobs are such at any time, and state may be written at every message.
    """
    before, now = ctld.encoded, {}
    for job in ctld.jobs.values():
        state = job.state
        over = state.finished and not state.completing
        key = None
        if job.dependency is None and not any((_mutable_when_over if over else _mutable)(job)):
            key = _fixed(job), job.array and job.array.job_id, over and client_of(job.client)
        known = before.get(job) if key is not None else None
        if known is None or known[0] != key:
            known = key, _ENCODER.encode(_job(ctld, job))
        if key is not None:
            now[job] = known
        yield known[1]
    ctld.encoded = now


def _job_state(ctld: Port) -> Iterable[msgspec.Struct | bytes]:
    yield SavedController(
        next_job_id=ctld.next_job_id,
        last_place=ctld.last_place,
        last_priority=ctld.last_priority,
        last_queue_number=ctld.last_queue_number,
        last_runs=tuple(ctld.last_runs.items()),
        preempted=tuple(ctld.preempted),
        awaited=tuple(
            (job_id, client)
            for job_id, envelopes in ctld.awaited.items()
            for envelope in envelopes
            if (client := client_of(envelope.sender)) is not None
        ),
        outlasting=tuple(
            (job_id, client)
            for box, job_id in ctld.outlasting.items()
            if (client := client_of(box)) is not None
        ),
    )
    # Before the jobs: of a file that is cut off a task without its array would be of no use.
    for array in _arrays(ctld):
        yield _array(ctld, array)
    yield from _encoded_jobs(ctld)


def _arrays(ctld: Port) -> Iterable[JobArray]:
    """Yield the arrays, and those whose tasks are purged while others wait to know how they ended.

    Of one that has been given the id of another since, the one that is there counts.
    """
    asked = {
        need.array.job_id: need.array
        for job in ctld.jobs.values()
        for need in (job.dependency.needs if job.dependency is not None else ())
        if need.array is not None
    }
    return (asked | ctld.arrays).values()


def _job(ctld: Port, job: JobRecord) -> msgspec.Struct:
    saved: msgspec.Struct = kept(
        JOB,
        job,
        parts=tuple(part.name for part in job.parts),
        part=job.part.name,
        state=(int(job.state.base), int(job.state.flags)),
        client=client_of(job.client),
        demand=_demand(ctld, job.demand),
        dependency=_dependency(ctld, job.dependency),
        array=job.array.job_id if job.array is not None else None,
        prologs_out=tuple(sorted(job.prologs_out)),
        nodes=tuple(node.name for node in job.nodes),
        shares=tuple(_share(ctld, job, index) for index in job.shares),
        completing_nodes=tuple(sorted(job.completing_nodes)),
        nodes_lost=tuple(sorted(job.nodes_lost)),
        steps=tuple(_step(step) for step in job.steps.values()),
        gives_way=tuple(other.job_id for other in job.gives_way),
        step_waiters=tuple(
            (client, since_us)
            for box, since_us in job.step_waiters.items()
            if (client := client_of(box)) is not None
        ),
    )
    return saved


def _demand(ctld: Port, demand: Demand) -> msgspec.Struct:
    saved: msgspec.Struct = kept(
        DEMAND,
        demand,
        required=_names(ctld, demand.required),
        excluded=_names(ctld, demand.excluded),
    )
    return saved


def _names(ctld: Port, mask: int) -> tuple[str, ...]:
    return tuple(ctld.nodes[index].name for index in members(mask)) if mask else ()


def _share(ctld: Port, job: JobRecord, index: int) -> SavedShare:
    share = job.shares[index]
    return SavedShare(
        node=ctld.nodes[index].name,
        cpus=share.cpus,
        memory_mb=share.memory_mb,
        gres=dict(share.gres),
        cores=f"{job.cores[index]:x}" if index in job.cores else "",
        gpus=job.gpus.get(index),
    )


def _step(step: StepRecord) -> msgspec.Struct:
    saved: msgspec.Struct = kept(
        STEP, step, srun=client_of(step.srun), reported=tuple(step.reported)
    )
    return saved


def _dependency(ctld: Port, dependency: Dependency | None) -> SavedDependency | None:
    if dependency is None:
        return None
    return SavedDependency(
        text=dependency.text,
        any_will_do=dependency.any_will_do,
        needs=tuple(
            SavedNeed(
                kind=need.kind,
                job=_ref(ctld, need.job),
                array=need.array.job_id if need.array is not None else None,
                task=need.task,
                delay_us=need.delay_us,
            )
            for need in dependency.needs
        ),
    )


def _ref(ctld: Port, job: JobRecord | None) -> JobRef | None:
    """Return the id of a job that is there, and of one that is not what became of it."""
    if job is None:
        return None
    if ctld.jobs.get(job.job_id) is job:
        return job.job_id
    return GoneJob(
        job_id=job.job_id,
        array_task=job.array_task,
        state=(int(job.state.base), int(job.state.flags)),
        start_us=job.start_us,
        end_us=job.end_us,
        staged_out=job.staged_out,
        burst_buffer=job.burst_buffer,
    )


def _array(ctld: Port, array: JobArray) -> msgspec.Struct:
    saved: msgspec.Struct = kept(
        ARRAY,
        array,
        rest=_ref(ctld, array.rest),
        first=_ref(ctld, array.first),
        records=tuple(
            (task, ref)
            for task, job in array.records.items()
            if (ref := _ref(ctld, job)) is not None
        ),
    )
    return saved


def _node_state(ctld: Port) -> Iterable[msgspec.Struct]:
    for node in ctld.nodes:
        yield _node(node)
    for name, runs in ctld.leftovers.items():
        if runs:
            yield SavedLeftovers(node=name, runs=tuple(runs))


def _node(node: NodeRecord) -> msgspec.Struct:
    saved: msgspec.Struct = kept(NODE, node, base=int(node.base), flags=int(node.flags))
    return saved


def _part_state(ctld: Port) -> Iterable[msgspec.Struct]:
    for part in ctld.partitions.values():
        yield _part(part)


def _part(part: PartRecord) -> msgspec.Struct:
    nodes = tuple(node.name for node in part.nodes)
    saved: msgspec.Struct = kept(PART, part, nodes=nodes, state=part.state.name)
    return saved


def _resv_state(ctld: Port) -> Iterable[msgspec.Struct]:
    yield SavedReservations(last_reservation=ctld.last_reservation)
    for record in ctld.reservations.values():
        yield _reservation(ctld, record)


def _reservation(ctld: Port, record: ReservationRecord) -> msgspec.Struct:
    saved: msgspec.Struct = kept(RESV, record, nodes=_names(ctld, record.nodes))
    return saved


_WRITERS: Final[dict[str, Callable[[Port], Iterable[msgspec.Struct | bytes]]]] = {
    "job_state": _job_state,
    "node_state": _node_state,
    "part_state": _part_state,
    "resv_state": _resv_state,
}

__all__ = ["client_of", "records_of"]
