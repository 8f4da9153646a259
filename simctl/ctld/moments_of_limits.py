"""When limits are looked at."""

from typing import Final

from simctl.wire.ids import SECOND

PERIODIC_US: Final = 30 * SECOND
"""How far apart the checks of time limits are."""


def check_at_or_after(moment_us: int) -> int:
    """Return the first check of limits that is not before a moment. Pure."""
    return -(-moment_us // PERIODIC_US) * PERIODIC_US
