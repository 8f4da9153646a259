"""What burst_buffer/datawarp knows: pools, buffers that exist, what jobs want, and what fits."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from simctl.plugins.burst_buffer.directives import Request
from simctl.plugins.burst_buffer.sizes import GIB, round_up


class BbState(enum.IntEnum):
    """How far a burst buffer is; numbers as Slurm's, whose order comparisons rest on."""

    PENDING = 0x00
    ALLOCATING = 0x01
    ALLOCATED = 0x02
    DELETING = 0x05
    DELETED = 0x06
    STAGING_IN = 0x11
    STAGED_IN = 0x12
    PRE_RUN = 0x18
    ALLOC_REVOKE = 0x1A
    RUNNING = 0x21
    SUSPEND = 0x22
    POST_RUN = 0x29
    STAGING_OUT = 0x31
    STAGED_OUT = 0x32
    TEARDOWN = 0x41
    TEARDOWN_FAIL = 0x43
    COMPLETE = 0x45


_NO_WORD: Final = frozenset(
    {BbState.DELETING, BbState.DELETED, BbState.PRE_RUN, BbState.ALLOC_REVOKE, BbState.POST_RUN}
)
"""Slurm shows these as numbers."""


def shown(state: BbState) -> str:
    """Return a state as `scontrol show burst` prints it."""
    return str(int(state)) if state in _NO_WORD else state.name.lower().replace("_", "-")


class Fit(enum.IntEnum):
    """Whether a job's buffer has a place, numbered as Slurm's size test."""

    NOW = 0
    NEVER = 1
    LATER = 2


@attrs.frozen(kw_only=True)
class Pool:
    """A pool of the appliance; sizes in bytes, requests are rounded up to `granularity`."""

    name: str
    total: int
    granularity: int


@attrs.define(kw_only=True)
class Alloc:
    """A buffer that exists: a job's, or one with a name that outlives jobs (`job_id` is 0)."""

    name: str
    user_id: int
    size: int
    pool: str
    job_id: int = 0
    state: BbState = BbState.ALLOCATED
    create_time: int = 0
    account: str = ""
    partition: str = ""


@attrs.define(kw_only=True, eq=False)
class BbJob:
    """What one job wants, and how far it is with it.

    `size` is in bytes, of its own buffer and its swap space, all in `pool`. `failed` tells that a
    stage ended badly and its buffer waits for a cancel; `wanted` that its space is set aside while
    the appliance has yet to make the buffer.
    """

    job_id: int
    user_id: int
    request: Request
    size: int = 0
    pool: str = ""
    state: BbState = BbState.PENDING
    retry_cnt: int = 0
    failed: bool = False
    wanted: bool = False
    hurry: bool = False
    tearing_down: bool = False
    overtaken: bool = False
    """It was cancelled while it was staged in, and its stage-in thread came last."""

    told: tuple[str, str] = ("None", "")
    """The job's reason, and what was said of it, before its teardown failed."""

    made: set[str] = attrs.field(factory=set)
    """Names of persistent buffers it has made or destroyed: that is done once."""

    @property
    def token(self) -> str:
        """Return what the appliance knows the job's buffer by."""
        return str(self.job_id)


@attrs.define(kw_only=True, eq=False)
class Books:
    """Pools, buffers and jobs; `loaded` once the appliance has answered."""

    loaded: bool = False
    default_pool: str = ""
    pools: dict[str, Pool] = attrs.field(factory=dict)
    allocs: dict[str, Alloc] = attrs.field(factory=dict)
    jobs: dict[int, BbJob] = attrs.field(factory=dict)
    active: dict[int, BbJob] = attrs.field(factory=dict)
    """Those of the jobs that have more to tell than that they wait, or are done."""

    def enter(self, bb: BbJob, state: BbState) -> None:
        """Enter how far a job's buffer is."""
        bb.state = state
        idle = state in (BbState.PENDING, BbState.COMPLETE)
        if idle and not bb.retry_cnt and not bb.made:
            self.active.pop(bb.job_id, None)
        else:
            self.active[bb.job_id] = bb

    def forget(self, job_id: int) -> None:
        """Forget a job."""
        self.jobs.pop(job_id, None)
        self.active.pop(job_id, None)

    def pool_of(self, name: str) -> str:
        """Return the pool that a request means which may have named none."""
        return name or self.default_pool

    def rounded(self, pool: str, size: int) -> int:
        """Return a size as the pool gives it out."""
        found = self.pools.get(pool)
        return round_up(size, found.granularity) if found is not None else size

    def size_of(self, request: Request, nodes: int) -> int:
        """Return the bytes that a job of *nodes* nodes takes for itself, as its pool gives them."""
        pool = self.pool_of(request.pool)
        swap = request.swap_gib * GIB * max(nodes, 1)
        return self.rounded(pool, request.size) + self.rounded(pool, swap)

    def used(self, pool: str) -> int:
        """Return how much of a pool is given out or set aside."""
        given = sum(each.size for each in self.allocs.values() if each.pool == pool)
        aside = (self.needs(each).get(pool, 0) for each in self.active.values() if each.wanted)
        return given + sum(aside)

    def needs(self, bb: BbJob) -> dict[str, int]:
        """Return what a job has yet to be given, by pool: for itself, and for buffers it makes."""
        needs = {bb.pool: bb.size} if bb.size and bb.token not in self.allocs else {}
        for pool, size in self.to_create(bb):
            needs[pool] = needs.get(pool, 0) + size
        return needs

    def fit(self, bb: BbJob) -> Fit:
        """Return whether what a job needs is free, could become free, or is more than there is."""
        needs = self.needs(bb)
        if any(name not in self.pools or self.pools[name].total < needs[name] for name in needs):
            return Fit.NEVER
        return Fit.LATER if self.shortage(bb) else Fit.NOW

    def shortage(self, bb: BbJob) -> dict[str, int]:
        """Return how many bytes each pool lacks for a job that waits."""
        lacks = {
            name: size + self.used(name) - self.pools[name].total
            for name, size in self.needs(bb).items()
        }
        return {name: lack for name, lack in lacks.items() if lack > 0}

    def to_create(self, bb: BbJob) -> Iterator[tuple[str, int]]:
        """Return pool and size of each persistent buffer that a job has yet to make."""
        for each in bb.request.creates:
            if each.name not in bb.made and each.name not in self.allocs:
                pool = self.pool_of(each.pool)
                yield pool, self.rounded(pool, each.size)

    def named_ready(self, bb: BbJob) -> bool:
        """Return whether the persistent buffers that a job uses or destroys let it go on.

        One it uses must be there, unless it makes it itself; one it destroys must not be
        in another job's use, nor about to be made.
        """
        own = {each.name for each in bb.request.creates}
        for name in bb.request.uses:
            alloc = self.allocs.get(name)
            if name not in own and (alloc is None or alloc.state is not BbState.ALLOCATED):
                return False
        return not any(
            self._in_use(each.name, bb) or self.being_made(each.name, bb)
            for each in bb.request.destroys
        )

    def _in_use(self, name: str, but: BbJob) -> bool:
        return any(
            name in each.request.uses and BbState.STAGING_IN <= each.state < BbState.COMPLETE
            for each in self.active.values()
            if each is not but
        )

    def being_made(self, name: str, but: BbJob) -> bool:
        """Return whether another job is about to make a persistent buffer."""
        return any(
            name not in each.made and any(made.name == name for made in each.request.creates)
            for each in self.active.values()
            if each is not but and each.state is BbState.STAGING_IN
        )

    def uses(self, allocs: Iterable[Alloc]) -> Mapping[int, int]:
        """Return the bytes of each user's buffers."""
        used: dict[int, int] = {}
        for each in allocs:
            used[each.user_id] = used.get(each.user_id, 0) + each.size
        return used

    def next_end(self, ends: Iterable[int], now: int) -> int:
        """Return when space may come back: the first end of a job that runs, or in an hour."""
        return min((end for end in ends if end > now), default=now + 3600)
