"""What the appliance holds: pools, the buffers in them, and who they belong to."""

import attrs

from simctl.appliance.spec import PoolSpec


class RefusedError(Exception):
    """The appliance does not do what it was asked for; the message says why."""


@attrs.define(kw_only=True, eq=False)
class Buffer:
    """Space that was granted under a token: a job's id, or the name of a persistent buffer.

    A buffer of size 0 only says that its token is known.
    """

    number: int
    token: str
    pool: str
    size: int
    owner: int
    created_s: int
    state: str = "allocated"
    ended_us: int = -1
    """When it was staged out and gave its space back; -1 before."""


@attrs.define(kw_only=True)
class Pool:
    """A pool as it is now."""

    name: str
    capacity: int
    granularity: int
    used: int = 0

    @property
    def free(self) -> int:
        """Return the bytes that can still be granted: whole granules, none if it has shrunk."""
        return max(0, self.capacity - self.used) // self.granularity * self.granularity

    def rounded(self, size: int) -> int:
        """Return *size* rounded up to whole granules."""
        return -(-size // self.granularity) * self.granularity


class Store:
    """The pools and buffers; what is granted of a pool never exceeds it.

    The only exceptions are a pool that was made smaller than what it holds, and what described
    scripts of the scenario claim, who answer for their space themselves.
    """

    def __init__(self, pools: tuple[PoolSpec, ...]) -> None:
        self.pools: dict[str, Pool] = {}
        self.buffers: dict[str, Buffer] = {}
        self._number = 0
        self.resize(pools)

    def beside(self) -> "Store":
        """Return a store of other buffers in the same pools, for tokens of another plugin's."""
        other = Store(())
        other.pools = self.pools
        return other

    def resize(self, pools: tuple[PoolSpec, ...]) -> None:
        """Add pools, or change those there are."""
        for spec in pools:
            used = self.pools[spec.name].used if spec.name in self.pools else 0
            self.pools[spec.name] = Pool(
                name=spec.name, capacity=spec.capacity, granularity=spec.granularity, used=used
            )

    def grant(
        self,
        token: str,
        size: int,
        *,
        pool: str = "",
        owner: int = 0,
        now_s: int = 0,
        force: bool = False,
    ) -> Buffer:
        """Grant space; without a pool's name, of the first in which it fits.

        Args:
            token: Whose it is.
            size: Bytes, which are rounded up to the pool's granularity.
            pool: A pool's name.
            owner: The uid of the user it is for.
            now_s: What the clock shows.
            force: Whether it is granted though nothing is free.

        Raises:
            RefusedError: The token has space already, there is no such pool, or too little is free.
        """
        if not token:
            raise RefusedError("no token was given")
        if token in self.buffers:
            raise RefusedError(f"token {token} exists already")
        found = self._choose(size, pool, force=force)
        granted = found.rounded(size)
        found.used += granted
        self._number += 1
        buffer = self.buffers[token] = Buffer(
            number=self._number,
            token=token,
            pool=found.name,
            size=granted,
            owner=owner,
            created_s=now_s,
        )
        return buffer

    def _choose(self, size: int, pool: str, *, force: bool) -> Pool:
        if pool and pool not in self.pools:
            raise RefusedError(f"no pool {pool}: there are {', '.join(self.pools)}")
        candidates = [self.pools[pool]] if pool else list(self.pools.values())
        for each in candidates:
            if each.rounded(size) <= each.free or not size:
                return each
        if force:
            return candidates[0]
        free = max(each.free for each in candidates)
        raise RefusedError(f"no space: {size} bytes were asked for, {free} are free")

    def get(self, token: str) -> Buffer:
        """Return the buffer of a token.

        Raises:
            RefusedError: There is none; in the words that callers look for.
        """
        buffer = self.buffers.get(token)
        if buffer is None:
            raise RefusedError("token not found")
        return buffer

    def empty(self, buffer: Buffer, now_us: int) -> None:
        """Give a buffer's space back, and keep its record."""
        self.pools[buffer.pool].used -= buffer.size
        buffer.size = 0
        buffer.ended_us = now_us

    def drop(self, token: str) -> None:
        """Give a token's space back, and forget it."""
        buffer = self.get(token)
        self.empty(buffer, 0)
        del self.buffers[token]
