"""What burst_buffer/lua knows: pools, the buffers that jobs have of them, and what still fits."""

import attrs

from simctl.plugins.burst_buffer.lua.directives import Request
from simctl.plugins.burst_buffer.records import BbState, Fit, Pool


@attrs.define(kw_only=True, eq=False)
class BbJob:
    """One job's buffer: what was asked for, and how far it is; sizes in bytes.

    `charged` tells that its space is taken of the pool.
    """

    job_id: int
    user_id: int
    group_id: int = 0
    request: Request
    size: int = 0
    state: BbState = BbState.PENDING
    charged: bool = False
    create_time: int = 0
    failed: bool = False
    retry_cnt: int = 0
    teardowns: int = 0
    """How many teardowns of it are under way."""

    stuck: int = 0
    """When its pre_run failed, in seconds since the epoch: as recorded, the job waits for ever."""


@attrs.define(kw_only=True, eq=False)
class Books:
    """Pools and jobs; `loaded` once the script has told of pools."""

    loaded: bool = False
    pools: dict[str, Pool] = attrs.field(factory=dict)
    jobs: dict[int, BbJob] = attrs.field(factory=dict)

    def learn(self, pools: list[Pool]) -> None:
        """Note what the script tells; a pool that it leaves out has no size any more."""
        told = {pool.name: pool for pool in pools}
        for name, pool in self.pools.items():
            told.setdefault(name, attrs.evolve(pool, total=0))
        known = [name for name in self.pools if name in told]
        self.pools = {name: told[name] for name in (*known, *told)}

    def forget_sizes(self) -> None:
        """Let every pool be empty, as a reconfiguration does until the script is asked again."""
        self.pools = {name: attrs.evolve(pool, total=0) for name, pool in self.pools.items()}

    def used(self, pool: str) -> int:
        """Return how much of a pool is taken."""
        return sum(
            each.size for each in self.jobs.values() if each.charged and each.request.pool == pool
        )

    def fit(self, bb: BbJob) -> Fit:
        """Return whether what a job asks for is free, may become free, or is too much."""
        if not bb.size:
            return Fit.NOW
        pool = self.pools.get(bb.request.pool)
        if pool is None or pool.total < bb.size:
            return Fit.NEVER
        return Fit.LATER if self.used(pool.name) + bb.size > pool.total else Fit.NOW

    def charge(self, bb: BbJob, now_s: int) -> None:
        """Take a job's space of its pool."""
        bb.charged, bb.create_time = True, now_s

    def release(self, bb: BbJob) -> None:
        """Give a job's space back."""
        bb.charged = False
