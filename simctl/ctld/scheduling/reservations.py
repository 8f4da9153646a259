"""Advance reservations: nodes kept for some users between two moments."""

import attrs

from simctl.ctld.controller import Controller
from simctl.ctld.state import queue
from simctl.ctld.state.records import JobRecord, ReservationRecord
from simctl.kernel.fabric import Envelope
from simctl.wire.bitmap import mask_of
from simctl.wire.errno import (
    ESLURM_INVALID_NODE_NAME,
    ESLURM_INVALID_TIME_VALUE,
    ESLURM_NODES_BUSY,
    ESLURM_RESERVATION_BUSY,
    ESLURM_RESERVATION_INVALID,
    ESLURM_RESERVATION_NAME_DUP,
    ESLURM_RESERVATION_OVERLAP,
    SLURM_SUCCESS,
)
from simctl.wire.hostlist import HostlistError, expand
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.messages import (
    RequestCreateReservation,
    RequestDeleteReservation,
    RequestUpdateReservation,
    ResponseCreateReservation,
)
from simctl.wire.states import JobBase

# What scontrol does.


async def create_reservation(
    ctld: Controller, envelope: Envelope, message: RequestCreateReservation
) -> None:
    """Take a reservation in, if nothing stands in its way.

    Answers ESLURM_RESERVATION_NAME_DUP, ESLURM_INVALID_TIME_VALUE, ESLURM_INVALID_NODE_NAME,
    ESLURM_RESERVATION_OVERLAP or ESLURM_NODES_BUSY. In Slurm: `create_resv()` of reservation.c.
    """
    rc, record = _read(ctld, message)
    if record is not None:
        await translate(ctld, record)
        ctld.reservations[record.name] = record
        for when_us in (record.start_us, record.end_us):
            ctld.reservation_at(when_us, record)
        ctld.request_pass()
    ctld.send(
        envelope.sender,
        ResponseCreateReservation(name=record.name if record is not None else "", error_code=rc),
    )


def _read(
    ctld: Controller, message: RequestCreateReservation
) -> tuple[int, ReservationRecord | None]:
    """Return the reservation that is asked for, or the error that refuses it. Pure."""
    zero_s = ctld.site.start_time_s
    record = ReservationRecord(
        name=message.name or _next_name(ctld, message),
        start_us=max(ctld.now_us, (message.start_s - zero_s) * SECOND),
        end_us=(message.end_s - zero_s) * SECOND,
        nodes=_nodes(ctld, message.nodes),
        users=message.users,
        accounts=message.accounts,
        flags=message.flags,
        burst_buffer=message.burst_buffer,
        maintenance="MAINT" in message.flags,
        overlaps="OVERLAP" in message.flags,
    )
    if record.name in ctld.reservations:
        return ESLURM_RESERVATION_NAME_DUP, None
    rc = _conflict(ctld, record)
    return rc, None if rc else record


def _conflict(ctld: Controller, record: ReservationRecord) -> int:
    """Return what stands in the way of a reservation, or 0. Pure."""
    if record.end_us <= record.start_us:
        return ESLURM_INVALID_TIME_VALUE
    if not record.nodes:
        return ESLURM_INVALID_NODE_NAME
    if "OVERLAP" not in record.flags and any(
        each.nodes & record.nodes
        and each.start_us < record.end_us
        and record.start_us < each.end_us
        for each in ctld.reservations.values()
        if each.name != record.name
    ):
        return ESLURM_RESERVATION_OVERLAP
    if not {"IGNORE_JOBS", "MAINT"} & set(record.flags) and _has_jobs(ctld, record):
        return ESLURM_NODES_BUSY
    return SLURM_SUCCESS


async def update_reservation(
    ctld: Controller, envelope: Envelope, message: RequestUpdateReservation
) -> None:
    """Change a reservation, if nothing stands in the way of what it would be.

    Answers ESLURM_RESERVATION_INVALID, or as for a new one. In Slurm: `update_resv()` of
    reservation.c.
    """
    record = ctld.reservations.get(message.name)
    if record is None:
        rc = ESLURM_RESERVATION_INVALID
    else:
        changed = _changed(ctld, record, message)
        rc = _conflict(ctld, changed)
        if not rc:
            await translate(ctld, changed)
            ctld.reservations[record.name] = changed
            for when_us in (changed.start_us, changed.end_us):
                if when_us >= ctld.now_us:
                    ctld.reservation_at(when_us, changed)
            ctld.request_pass()
    ctld.answer(envelope, rc)


def _changed(
    ctld: Controller, record: ReservationRecord, message: RequestUpdateReservation
) -> ReservationRecord:
    """Return a reservation as it would be after an update; one that has begun keeps its start."""
    zero_s = ctld.site.start_time_s
    start_us, end_us = record.start_us, record.end_us
    if message.start_s is not None:
        start_us = max(ctld.now_us, (message.start_s - zero_s) * SECOND)
    if message.end_s is not None:
        end_us = (message.end_s - zero_s) * SECOND
    if message.duration_min is not None:
        end_us = start_us + message.duration_min * 60 * SECOND
    flags = record.flags if message.flags is None else (*record.flags, *message.flags)
    return attrs.evolve(
        record,
        start_us=start_us,
        end_us=end_us,
        nodes=record.nodes if message.nodes is None else _nodes(ctld, message.nodes),
        users=record.users if message.users is None else message.users,
        accounts=record.accounts if message.accounts is None else message.accounts,
        burst_buffer=_given(message.burst_buffer, record.burst_buffer),
        flags=tuple(dict.fromkeys(flags)),
        maintenance="MAINT" in flags,
        overlaps="OVERLAP" in flags,
    )


async def translate(ctld: Controller, record: ReservationRecord) -> None:
    """Have plugins say how much of which burst buffer a reservation is to keep."""
    tres = ""
    if ctld.bb is not None and record.burst_buffer:
        tres = await ctld.bb.xlate_bb_2_tres_str(record.burst_buffer)
    record.keep_of_buffers(tres)


def _given(wish: str | None, before: str) -> str:
    return before if wish is None else wish


def _next_name(ctld: Controller, message: RequestCreateReservation) -> str:
    """Return a name made of the first account or user it is for, and a number."""
    ctld.last_reservation += 1
    first = message.accounts[0] if message.accounts else ctld.site.user_name(message.users[0])
    return f"{first}_{ctld.last_reservation}"


def _nodes(ctld: Controller, text: str) -> int:
    """Return the set of nodes that a host list names; empty if it names one that is not there."""
    if text.upper() == "ALL":
        return mask_of(range(len(ctld.nodes)))
    try:
        names = expand(text)
    except HostlistError:
        return 0
    if any(name not in ctld.nodes_by_name for name in names):
        return 0
    return mask_of(ctld.nodes_by_name[name].index for name in names)


def _has_jobs(ctld: Controller, record: ReservationRecord) -> bool:
    """Return whether a job may still run on a reservation's nodes when it begins."""
    return any(
        record.nodes >> node.index & 1
        and any(job.limit_us == INFINITE or job.limit_us > record.start_us for job in running)
        for node in ctld.nodes
        if (running := list(node.jobs.values()))
    )


async def delete_reservation(
    ctld: Controller, envelope: Envelope, message: RequestDeleteReservation
) -> None:
    """Forget a reservation that no job asks for.

    Answers ESLURM_RESERVATION_INVALID, or ESLURM_RESERVATION_BUSY. In Slurm: `delete_resv()` of
    reservation.c.
    """
    if message.name not in ctld.reservations:
        rc = ESLURM_RESERVATION_INVALID
    elif any(_uses(job, message.name) for job in ctld.jobs.values()):
        rc = ESLURM_RESERVATION_BUSY
    else:
        rc = SLURM_SUCCESS
        del ctld.reservations[message.name]
        ctld.request_pass()
    ctld.answer(envelope, rc)


def _uses(job: JobRecord, name: str) -> bool:
    return job.desc.reservation == name and not job.state.finished


async def due(ctld: Controller, record: ReservationRecord) -> None:
    """Have jobs looked at when a reservation begins; when it ends, hold those that wait for it."""
    if ctld.reservations.get(record.name) is not record:
        return
    if ctld.now_us >= record.end_us:
        del ctld.reservations[record.name]
        for job in ctld.jobs.values():
            if _uses(job, record.name) and job.state.base is JobBase.PENDING:
                if job.queued:
                    queue.take_from_queue(job)
                job.lose_reservation()
                args = {"reservation": record.name}
                ctld.site.trace.note(
                    "log", "reservation_over", ctld.process, args=args, job=job.job_id
                )
    ctld.request_pass()
