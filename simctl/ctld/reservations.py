"""Advance reservations: nodes kept for some users between two moments."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from simctl.ctld.records import JobRecord
from simctl.wire.errno import (
    ESLURM_RESERVATION_ACCESS,
    ESLURM_RESERVATION_INVALID,
    SLURM_SUCCESS,
)
from simctl.wire.ids import INFINITE, SECOND
from simctl.wire.records import JobDesc
from simctl.wire.states import Reason

if TYPE_CHECKING:
    from simctl.ctld.daemon import Slurmctld

_FOR_EVER = 1 << 62


@attrs.define(eq=False, kw_only=True)
class ReservationRecord:
    """A reservation; `nodes` is a set of nodes, moments are in virtual microseconds."""

    name: str
    start_us: int
    end_us: int
    nodes: int
    users: tuple[int, ...] = ()
    accounts: tuple[str, ...] = ()
    maintenance: bool = False

    def admits(self, uid: int, account: str) -> bool:
        """Tell whether jobs of a user, or of an account, may use it."""
        return uid in self.users or account in self.accounts


def refusal(ctld: "Slurmctld", desc: JobDesc) -> int:
    """Return why a job may not have the reservation it names, or 0."""
    if not desc.reservation:
        return SLURM_SUCCESS
    own = ctld.reservations.get(desc.reservation)
    if own is None:
        return ESLURM_RESERVATION_INVALID
    return SLURM_SUCCESS if own.admits(desc.uid, desc.account) else ESLURM_RESERVATION_ACCESS


def _length_us(job: JobRecord) -> int:
    return _FOR_EVER if job.time_limit_min == INFINITE else job.time_limit_min * 60 * SECOND


def open_to(ctld: "Slurmctld", job: JobRecord) -> int:
    """Return the nodes on which reservations let a job start now."""
    return open_between(ctld, job, ctld.now_us, ctld.now_us + _length_us(job))


def open_between(ctld: "Slurmctld", job: JobRecord, start_us: int, end_us: int) -> int:
    """Return the nodes that reservations leave to a job for a time.

    A job that names a reservation has its nodes, and must be over before it is.
    """
    if job.desc.reservation:
        own = ctld.reservations.get(job.desc.reservation)
        if own is None or start_us < own.start_us or end_us > own.end_us:
            return 0
        return own.nodes
    closed = 0
    for each in ctld.reservations.values():
        if each.start_us < end_us and start_us < each.end_us:
            closed |= each.nodes
    return ~closed


def reason_to_wait(ctld: "Slurmctld", job: JobRecord) -> str:
    """Return Reservation for a job whose reservation does not let it start now, else nothing."""
    return "" if open_to(ctld, job) else Reason.RESERVATION


def waits(ctld: "Slurmctld") -> Iterator[int]:
    """Yield how long it is to each end or beginning of a reservation that is still to come."""
    for each in ctld.reservations.values():
        for when_us in (each.start_us, each.end_us):
            if when_us > ctld.now_us:
                yield when_us - ctld.now_us
