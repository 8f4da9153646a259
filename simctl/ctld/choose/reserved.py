"""Which nodes reservations leave to a job, and when."""

from collections.abc import Iterator

from simctl.ctld.choose.select import limit_in
from simctl.ctld.state.records import JobRecord, PartRecord, ReservationRecord
from simctl.ctld.state.tables import State
from simctl.wire.errno import ESLURM_RESERVATION_ACCESS, ESLURM_RESERVATION_INVALID, SLURM_SUCCESS
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.records import JobDesc
from simctl.wire.states import Reason

_FOR_EVER = 1 << 62


def refusal(state: State, desc: JobDesc) -> int:
    """Return why a job may not have the reservation it names, or 0."""
    if not desc.reservation:
        return SLURM_SUCCESS
    own = state.reservations.get(desc.reservation)
    if own is None:
        return ESLURM_RESERVATION_INVALID
    return SLURM_SUCCESS if own.admits(desc.uid, desc.account) else ESLURM_RESERVATION_ACCESS


def open_to(state: State, job: JobRecord, part: PartRecord, now_us: int) -> int:
    """Return the nodes on which reservations let a job start now in a partition."""
    limit_min = limit_in(job, part)
    length_us = _FOR_EVER if limit_min == INFINITE else limit_min * 60 * SECOND
    return open_between(state, job, now_us, now_us + length_us)


def open_between(state: State, job: JobRecord, start_us: int, end_us: int) -> int:
    """Return the nodes that reservations leave to a job for a time.

    A job that names a reservation has its nodes, and must be over before it is. Where another lies
    over that one, its nodes are the other's.
    """
    if job.desc.reservation:
        own = state.reservations.get(job.desc.reservation)
        if own is None or start_us < own.start_us or end_us > own.end_us:
            return 0
    else:
        own = None
    closed = 0
    for each in state.reservations.values():
        if each.start_us < end_us and start_us < each.end_us and not _gives_way(each, own):
            closed |= each.nodes
    return ~closed if own is None else own.nodes & ~closed


def _gives_way(each: ReservationRecord, own: ReservationRecord | None) -> bool:
    """Return whether a reservation lets in jobs of another; maintenance never does."""
    if own is None:
        return False
    return each is own or own.maintenance or (own.overlaps and not each.maintenance)


def reason_to_wait(state: State, job: JobRecord, part: PartRecord, now_us: int) -> str:
    """Return Reservation for a job whose reservation does not let it start now, else nothing."""
    return "" if open_to(state, job, part, now_us) else Reason.RESERVATION


def waits(state: State, now_us: int) -> Iterator[int]:
    """Yield how long it is to each end or beginning of a reservation that is still to come."""
    for each in state.reservations.values():
        for when_us in (each.start_us, each.end_us):
            if when_us > now_us:
                yield when_us - now_us
