"""What recurs by the clock: checks of limits, scans for old jobs."""

from typing import Final

from simctl.wire.ids import SECOND

_PURGE_INTERVAL_S = 60


_SHORT_PURGE_INTERVAL_S = 10


def purge_interval_us(min_job_age_s: int) -> int:
    """Return how far apart the scans for old jobs are."""
    if min_job_age_s < _PURGE_INTERVAL_S:
        return max(_SHORT_PURGE_INTERVAL_S, min_job_age_s) * SECOND
    return _PURGE_INTERVAL_S * SECOND


PERIODIC_US: Final = 30 * SECOND
"""How far apart the checks of time limits are."""


def check_at_or_after(moment_us: int) -> int:
    """Return the first check of limits that is not before a moment. Pure."""
    return -(-moment_us // PERIODIC_US) * PERIODIC_US
