"""What a burst buffer plugin tells of its buffers: what `bb_p_state_pack` packs.

Sizes are in bytes, moments in seconds since the epoch, timeouts in seconds. A plugin packs one
`BurstBufferInfo`; ``scontrol show burstbuffer`` prints those of all plugins.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from simctl.wire.buf import Buf
from simctl.wire.ids import NO_VAL

_Item = TypeVar("_Item")


@attrs.frozen(kw_only=True)
class BurstBufferPool:
    """A pool of burst buffer space beside the default one."""

    name: str
    total_space: int
    unfree_space: int
    """What is allocated, drained or reserved."""

    used_space: int
    granularity: int

    def pack(self, buffer: Buf) -> None:
        """Append it to *buffer*."""
        buffer.packstr(self.name)
        for name in _SIZES:
            buffer.pack64(getattr(self, name))

    @classmethod
    def unpack(cls, buffer: Buf) -> "BurstBufferPool":
        """Take the next one from *buffer*."""
        name = _text(buffer)
        return cls(name=name, **{size: buffer.unpack64() for size in _SIZES})


@attrs.frozen(kw_only=True)
class BurstBufferAlloc:
    """A buffer that is allocated: of a job, or persistent and then with a name.

    `state` is the text that is shown, such as ``staged-in``.
    """

    name: str = ""
    job_id: int = 0
    array_job_id: int = 0
    array_task_id: int = NO_VAL
    create_time: int = 0
    pool: str = ""
    size: int = 0
    state: str = ""
    user_id: int = 0
    account: str = ""
    partition: str = ""
    qos: str = ""

    def pack(self, buffer: Buf) -> None:
        """Append it to *buffer*."""
        for number in (self.job_id, self.array_job_id, self.array_task_id, self.user_id):
            buffer.pack32(number)
        buffer.packtime(self.create_time)
        buffer.pack64(self.size)
        for text in (
            *(self.name, self.pool, self.state),
            *(self.account, self.partition, self.qos),
        ):
            buffer.packstr(text)

    @classmethod
    def unpack(cls, buffer: Buf) -> "BurstBufferAlloc":
        """Take the next one from *buffer*."""
        return cls(
            job_id=buffer.unpack32(),
            array_job_id=buffer.unpack32(),
            array_task_id=buffer.unpack32(),
            user_id=buffer.unpack32(),
            create_time=buffer.unpacktime(),
            size=buffer.unpack64(),
            name=_text(buffer),
            pool=_text(buffer),
            state=_text(buffer),
            account=_text(buffer),
            partition=_text(buffer),
            qos=_text(buffer),
        )


@attrs.frozen(kw_only=True)
class BurstBufferUse:
    """How much of the space a user has."""

    user_id: int
    used: int

    def pack(self, buffer: Buf) -> None:
        """Append it to *buffer*."""
        buffer.pack32(self.user_id)
        buffer.pack64(self.used)

    @classmethod
    def unpack(cls, buffer: Buf) -> "BurstBufferUse":
        """Take the next one from *buffer*."""
        return cls(user_id=buffer.unpack32(), used=buffer.unpack64())


@attrs.frozen(kw_only=True)
class BurstBufferInfo:
    """A plugin's configuration, its default pool, and who has what of it.

    `name` is the plugin's own, such as ``generic``. `flags` are words of burst_buffer.conf's Flags.
    The spaces are those of the default pool; `pools` are the others.
    """

    name: str
    default_pool: str = ""
    granularity: int = 1
    total_space: int = 0
    unfree_space: int = 0
    used_space: int = 0
    flags: tuple[str, ...] = ()
    allow_users: tuple[str, ...] = ()
    deny_users: tuple[str, ...] = ()
    alt_pool: str = ""
    create_buffer: str = ""
    destroy_buffer: str = ""
    get_sys_state: str = ""
    get_sys_status: str = ""
    start_stage_in: str = ""
    start_stage_out: str = ""
    stop_stage_in: str = ""
    stop_stage_out: str = ""
    stage_in_timeout: int = 0
    stage_out_timeout: int = 0
    validate_timeout: int = 0
    other_timeout: int = 0
    pools: tuple[BurstBufferPool, ...] = ()
    allocs: tuple[BurstBufferAlloc, ...] = ()
    uses: tuple[BurstBufferUse, ...] = ()

    def pack(self, buffer: Buf) -> None:
        """Append it to *buffer*: what `bb_p_state_pack` is asked for."""
        for name in _TEXTS:
            buffer.packstr(getattr(self, name))
        for name in _WORDS:
            words: tuple[str, ...] = getattr(self, name)
            buffer.pack32(len(words))
            for word in words:
                buffer.packstr(word)
        for name in _SIZES:
            buffer.pack64(getattr(self, name))
        for name in _TIMEOUTS:
            buffer.pack32(getattr(self, name))
        for name in _RECORDS:
            items = getattr(self, name)
            buffer.pack32(len(items))
            for item in items:
                item.pack(buffer)

    @classmethod
    def unpack(cls, buffer: Buf) -> "BurstBufferInfo":
        """Take the next one from *buffer*."""
        values: dict[str, Any] = {name: _text(buffer) for name in _TEXTS}
        values |= {name: _several(buffer, _text) for name in _WORDS}
        values |= {name: buffer.unpack64() for name in _SIZES}
        values |= {name: buffer.unpack32() for name in _TIMEOUTS}
        values |= {name: _several(buffer, unpack) for name, unpack in _RECORDS.items()}
        return cls(**values)


_TEXTS = (
    *("name", "default_pool", "alt_pool", "create_buffer", "destroy_buffer"),
    *("get_sys_state", "get_sys_status", "start_stage_in", "start_stage_out"),
    *("stop_stage_in", "stop_stage_out"),
)
_WORDS = ("flags", "allow_users", "deny_users")
_SIZES = ("total_space", "unfree_space", "used_space", "granularity")
_TIMEOUTS = ("stage_in_timeout", "stage_out_timeout", "validate_timeout", "other_timeout")
_RECORDS: Mapping[str, Callable[[Buf], Any]] = {
    "pools": BurstBufferPool.unpack,
    "allocs": BurstBufferAlloc.unpack,
    "uses": BurstBufferUse.unpack,
}


def _text(buffer: Buf) -> str:
    return buffer.unpackstr() or ""


def _several(buffer: Buf, unpack: Callable[[Buf], _Item]) -> tuple[_Item, ...]:
    return tuple(unpack(buffer) for _ in range(buffer.unpack32()))


__all__ = ["BurstBufferAlloc", "BurstBufferInfo", "BurstBufferPool", "BurstBufferUse"]
