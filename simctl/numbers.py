"""The numbers that options take, and how large each may be: one table for every command."""

import math
import re
from typing import Final, NamedTuple

from simctl.limits import HOSTS
from simctl.status import InputError

LARGEST: Final = 2**63 - 1
"""What a whole number of a scenario may be at most."""

_SHOWN: Final = 40
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_ANY: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_MOST_DIGITS: Final = 40


class Bounds(NamedTuple):
    """The least and the largest number that an option takes; it reads the option's text."""

    option: str
    least: float
    most: float
    what: str = "a whole number"

    def __call__(self, text: str) -> float:
        """Return the number that a text gives.

        Raises:
            InputError: It gives none, or one beyond the bounds.
        """
        whole = isinstance(self.least, int)
        number = math.nan
        if len(text) <= _MOST_DIGITS and (_WHOLE if whole else _ANY).fullmatch(text.strip()):
            number = int(text) if whole else float(text)
        if not self.least <= number <= self.most:
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            raise InputError(
                f"{self.option}: expected {self.what} from {self.least:,} to {self.most:,}, "
                f"got {shown!r}"
            )
        return number


SEED: Final = Bounds("--seed", 0, LARGEST)
MAX_TURNS: Final = Bounds("--max-turns", 0, LARGEST)
NODES: Final = Bounds("--nodes", 1, HOSTS)
CPUS_PER_NODE: Final = Bounds("--cpus-per-node", 1, 65_535)
REPLAYED: Final = Bounds("--limit", 1, 10_000_000)
SCHEDULES: Final = Bounds("--seeds", 1, 1_000_000)
ORDERS: Final = Bounds("--limit", 1, 10_000_000)
SCALE: Final = Bounds("--scale", 0.01, 10_000.0, "a number")
SECONDS: Final = Bounds("--seconds", 0.001, 31_536_000.0, "seconds")
JOB: Final = Bounds("--job", 1, 2**32 - 1)
PORT: Final = Bounds("--port", 0, 65_535)
RUNS: Final = Bounds("--runs", 1, 10_000_000)
WORKERS: Final = Bounds("--workers", 1, 256)
TESTED: Final = Bounds("--seeds", 0, 100_000)
TESTED_BY_PYTEST: Final = TESTED._replace(option="--simctl-seeds")
TESTED_BY_SETTING: Final = TESTED._replace(option="simctl_seeds")
WATCHDOG: Final = Bounds("--watchdog", 0.0, 86_400.0, "seconds of wall time, 0 for none,")


def check_last_seed(first: int, count: int) -> None:
    """Check that so many seeds, from one on, are seeds that a scenario may have.

    Raises:
        InputError: The last of them is too large.
    """
    if first + count - 1 > LARGEST:
        raise InputError(
            f"--seed: {count:,} seeds from {first} on go beyond {LARGEST:,}, the largest; begin "
            f"with {LARGEST - count + 1} at most"
        )
