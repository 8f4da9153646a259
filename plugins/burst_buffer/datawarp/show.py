"""What burst_buffer/datawarp tells of its pools and buffers."""

from simctl.plugin import (
    NO_VAL,
    BurstBufferAlloc,
    BurstBufferInfo,
    BurstBufferPool,
    BurstBufferUse,
    slurmctld,
)
from simctl.plugins.burst_buffer.datawarp.settings import Settings
from simctl.plugins.burst_buffer.records import Alloc, Books, Pool, shown
from simctl.plugins.burst_buffer.tasks import as_task

_NOT_SHOWN = "default_pool"
"""What burst_buffer.conf says of it may be nothing: the books know better."""


def info(name: str, books: Books, settings: Settings, uid: int | None) -> BurstBufferInfo:
    """Return the state as it is shown: all of it, or the buffers of one user alone."""
    allocs = [each for each in books.allocs.values() if uid is None or each.user_id == uid]
    default = books.pools.get(books.default_pool, Pool(name="", total=0, granularity=1))
    used = books.used(default.name)
    given = {field: getattr(settings, field) for field in Settings.__annotations__}
    del given[_NOT_SHOWN]
    return BurstBufferInfo(
        name=name,
        default_pool=books.default_pool,
        granularity=default.granularity,
        total_space=default.total,
        unfree_space=used,
        used_space=used,
        **given,
        pools=tuple(_pool(books, pool) for pool in books.pools.values() if pool is not default),
        allocs=tuple(_alloc(each) for each in allocs),
        uses=tuple(
            BurstBufferUse(user_id=user, used=size)
            for user, size in sorted(books.uses(allocs).items())
        ),
    )


def _pool(books: Books, pool: Pool) -> BurstBufferPool:
    used = books.used(pool.name)
    return BurstBufferPool(
        name=pool.name,
        total_space=pool.total,
        unfree_space=used,
        used_space=used,
        granularity=pool.granularity,
    )


def _alloc(alloc: Alloc) -> BurstBufferAlloc:
    job = slurmctld.find_job(alloc.job_id)
    shown_as = BurstBufferAlloc(
        name="" if alloc.job_id else alloc.name,
        job_id=alloc.job_id,
        array_job_id=job.array_job_id if job is not None else 0,
        array_task_id=job.array_task_id if job is not None else NO_VAL,
        create_time=alloc.create_time,
        pool=alloc.pool,
        size=alloc.size,
        state=shown(alloc.state),
        user_id=alloc.user_id,
        account=alloc.account,
        partition=alloc.partition,
    )
    return as_task(shown_as)
