"""Burst buffer space as slurmctld keeps its books: sizes, states, records, and what still fits."""

import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

MEGABYTE: Final = 1 << 20
NODES: Final = "nodes"

_SIZE: Final = re.compile(r"([0-9]{1,18})\s*([A-Za-z]*)")
_POWERS: Final = {letter: power for power, letter in enumerate("kmgtp", 1)}

Granularity = tuple[int, str]
"""How much is given out at least: a number, and whether it counts bytes or nodes."""


class BbState(enum.IntEnum):
    """What a buffer goes through, numbered as in Slurm: tests of order rely on it."""

    PENDING = 0x00
    ALLOCATED = 0x02
    STAGING_IN = 0x11
    STAGED_IN = 0x12
    RUNNING = 0x21
    STAGING_OUT = 0x31
    STAGED_OUT = 0x32

    @property
    def shown(self) -> str:
        """Return the word that is shown of it, and that scripts use."""
        return self.name.lower().replace("_", "-")


STATES: Final[Mapping[str, BbState]] = {state.shown: state for state in BbState}
"""The states by the words that scripts write."""


class Fit(enum.IntEnum):
    """Whether a request can be granted, numbered as in Slurm."""

    NOW = 0
    NEVER = 1
    """It is larger than all there is."""
    LATER = 2
    """Others have the space."""


def parse_size(text: str, granularity: Granularity = (1, "bytes")) -> int:
    """Return the bytes that a size stands for; ``16n`` is as many granules.

    ``k`` and ``kib`` are 1024 bytes, ``kb`` is 1000, and so on up to ``p``.

    Raises:
        ValueError: It is no size.
    """
    match = _SIZE.fullmatch(text)
    number, unit = (int(match[1]), match[2].casefold()) if match else (0, "?")
    if unit in ("", "b"):
        return number
    if unit in ("n", "node", "nodes"):
        granule, counts = granularity
        return number if counts == NODES else number * max(1, granule)
    power = _POWERS.get(unit[0])
    if power is None or unit[1:] not in ("", "b", "ib"):
        raise ValueError(f'expected a size such as 512, 200G or 16N, got "{text}"')
    factor: int = (1000 if unit[1:] == "b" else 1024) ** power
    return number * factor


def round_up(size: int, granularity: Granularity) -> int:
    """Return the least multiple of a granule that holds *size*."""
    granule = max(1, granularity[0])
    return -(-size // granule) * granule


@attrs.define(kw_only=True, eq=False)
class Alloc:
    """A buffer: a job's, or with a name one that outlives jobs.

    `state_s` and `create_s` are moments in seconds since the epoch.
    """

    job_id: int = 0
    name: str = ""
    user_id: int = 0
    size: int = 0
    state: BbState = BbState.PENDING
    state_s: int = 0
    create_s: int = 0
    account: str = ""
    partition: str = ""
    seen: bool = False
    """Whether the store has told of it since it last changed hands."""
    stopped_s: int = 0
    """When its staging was stopped because it took too long; 0 for not."""

    @property
    def key(self) -> str:
        """Return what the books call it."""
        return key_of(self.job_id, self.name)


def key_of(job_id: int, name: str = "") -> str:
    """Return what the books call a job's buffer, or that of a name."""
    return name if not job_id else f"job {job_id}"


@attrs.define(kw_only=True, eq=False)
class Books:
    """What slurmctld knows of the space: how much there is, and who has it."""

    total: int = 0
    allocs: dict[str, Alloc] = attrs.field(factory=dict)

    @property
    def used(self) -> int:
        """Return what is taken."""
        return sum(alloc.size for alloc in self.allocs.values())

    def of_job(self, job_id: int) -> Alloc | None:
        """Return the buffer of a job."""
        return self.allocs.get(key_of(job_id))

    def add(self, alloc: Alloc) -> Alloc:
        """Take a buffer in."""
        self.allocs[alloc.key] = alloc
        return alloc

    def remove(self, alloc: Alloc) -> None:
        """Forget a buffer."""
        self.allocs.pop(alloc.key, None)

    def fit(self, size: int) -> Fit:
        """Return whether a request can be granted."""
        if size > self.total:
            return Fit.NEVER
        return Fit.NOW if size <= self.total - self.used else Fit.LATER

    def lacking(self, size: int) -> int:
        """Return how much has to become free first."""
        return max(0, size - (self.total - self.used))

    def uses(self) -> Iterator[tuple[int, int]]:
        """Go through the users who have space, by uid, with how much each has."""
        sums: dict[int, int] = {}
        for alloc in self.allocs.values():
            sums[alloc.user_id] = sums.get(alloc.user_id, 0) + alloc.size
        return iter(sorted((uid, size) for uid, size in sums.items() if size))


def to_give_way(staging: Iterable[tuple[int, Alloc]], start_s: int, lacking: int) -> list[Alloc]:
    """Choose buffers that are still being filled and whose jobs start later than a candidate.

    Args:
        staging: Such buffers, each with the expected start of its job, 0 for not known.
        start_s: The expected start of the candidate; if it is not known no job gives way.
        lacking: How much the candidate lacks.

    Returns:
        Those that start last, as many as are needed; none if all together were not enough.
    """
    later = [
        (when or _NEVER_S, alloc)
        for when, alloc in staging
        if start_s and (when or _NEVER_S) > start_s
    ]
    chosen: list[Alloc] = []
    for _, alloc in sorted(later, key=lambda each: (-each[0], -each[1].job_id)):
        if lacking <= 0:
            break
        chosen.append(alloc)
        lacking -= alloc.size
    return chosen if lacking <= 0 else []


_NEVER_S: Final = 1 << 62
