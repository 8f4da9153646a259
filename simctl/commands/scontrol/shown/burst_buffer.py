"""``scontrol show burstbuffer`` and ``bbstat``: what burst buffer plugins tell of themselves."""

from collections.abc import Callable, Iterator
from typing import Final

from simctl.commands.scontrol.order import Order
from simctl.commands.scontrol.text import moment
from simctl.site import CommandCall
from simctl.wire.buf import Buf
from simctl.wire.burst_buffers import BurstBufferAlloc, BurstBufferInfo, BurstBufferPool
from simctl.wire.errno import SlurmError, errno_name, slurm_strerror
from simctl.wire.ids import NO_VAL, SECOND
from simctl.wire.messages import (
    RequestBurstBufferInfo,
    RequestBurstBufferStatus,
    ResponseBurstBufferInfo,
    ResponseBurstBufferStatus,
)

_WHAT: Final = "slurm_load_burst_buffer_info"
_STATUS: Final = "slurm_load_burst_buffer_stat"
UserName = Callable[[int], str]


async def show_burst_buffers(order: Order, _: str | None) -> int:
    """Print the state of each plugin; nothing where there is none."""
    answer = await order.load(RequestBurstBufferInfo(), _WHAT)
    if not isinstance(answer, ResponseBurstBufferInfo):
        return 1
    call = order.call
    try:
        infos = unpacked(answer.data)
    except SlurmError as error:
        return _failed(order, error.errno)
    now_s = call.site.start_time_s + call.site.kernel.now_us // SECOND
    for info in infos:
        for line in lines_of(info, _user_name(call), now_s, oneliner=order.oneliner):
            call.out(line)
    return _failed(order, answer.error_code) if answer.error_code else 0


async def show_status(order: Order, _: str | None) -> int:
    """Print what the plugins have to say to the words that follow, as they say it."""
    answer = await order.load(RequestBurstBufferStatus(argv=order.words[1:]), _STATUS)
    if not isinstance(answer, ResponseBurstBufferStatus):
        return 1
    if answer.text:
        order.call.write("stdout", answer.text)
    return _failed(order, answer.error_code, _STATUS) if answer.error_code else 0


def _failed(order: Order, error: int, what: str = _WHAT) -> int:
    order.call.errno = errno_name(error)
    order.complain(f"{what} error: {slurm_strerror(error)}")
    return 1


def _user_name(call: CommandCall) -> UserName:
    return call.site.user_name


def unpacked(data: bytes) -> list[BurstBufferInfo]:
    """Return what plugins have packed one behind the other.

    Raises:
        SlurmError: One of them has packed something else.
    """
    buffer = Buf(data)
    infos = []
    while buffer.remaining:
        infos.append(BurstBufferInfo.unpack(buffer))
    return infos


def lines_of(
    info: BurstBufferInfo, user_name: UserName, now_s: int, *, oneliner: bool = False
) -> Iterator[str]:
    """Yield the lines about a plugin; *oneliner* joins those about the plugin itself. Pure."""
    about = list(_about(info))
    if oneliner:
        yield " ".join(about)
    else:
        yield about[0]
        yield from (f"  {line}" for line in about[1:])
    if info.allocs:
        yield "  Allocated Buffers:"
    for alloc in info.allocs:
        yield f"    {_whose(alloc)} {_alloc(alloc, now_s)} UserID={_user(alloc.user_id, user_name)}"
    if info.uses:
        yield "  Per User Buffer Use:"
    for use in info.uses:
        yield f"    UserID={_user(use.user_id, user_name)} Used={size_text(use.used)}"


def _about(info: BurstBufferInfo) -> Iterator[str]:
    yield f"Name={info.name} DefaultPool={info.default_pool or '(null)'} {_space(info)}"
    for number, pool in enumerate(info.pools):
        yield f"PoolName[{number}]={pool.name} {_space(pool, wraps=info.name == 'lua')}"
    yield f"Flags={','.join(info.flags)}"
    yield (
        f"StageInTimeout={info.stage_in_timeout} StageOutTimeout={info.stage_out_timeout} "
        f"ValidateTimeout={info.validate_timeout} OtherTimeout={info.other_timeout}"
    )
    if info.allow_users:
        yield f"AllowUsers={','.join(info.allow_users)}"
    elif info.deny_users:
        yield f"DenyUsers={','.join(info.deny_users)}"
    for key, value in (
        ("CreateBuffer", info.create_buffer),
        ("DestroyBuffer", info.destroy_buffer),
        ("GetSysState", info.get_sys_state),
        ("GetSysStatus", info.get_sys_status),
        ("StartStageIn", info.start_stage_in),
        ("StartStageOut", info.start_stage_out),
        ("StopStageIn", info.stop_stage_in),
        ("StopStageOut", info.stop_stage_out),
    ):
        if value:
            yield f"{key}={value}"


def _space(pool: BurstBufferInfo | BurstBufferPool, *, wraps: bool = False) -> str:
    """Return how large a pool is; what is free is what no job has and nothing is broken of.

    Of the pools of burst_buffer/lua less than nothing *wraps* to a very large number, as recorded.
    """
    free = pool.total_space - pool.unfree_space
    free = free & _UINT64 if wraps else max(0, free)
    return (
        f"Granularity={size_text(pool.granularity)} TotalSpace={size_text(pool.total_space)} "
        f"FreeSpace={size_text(free)} UsedSpace={size_text(pool.used_space)}"
    )


def _whose(alloc: BurstBufferAlloc) -> str:
    if not alloc.job_id:
        return f"Name={alloc.name}"
    if alloc.array_task_id == NO_VAL:
        return f"JobID={alloc.job_id}"
    return f"JobID={alloc.array_job_id}_{alloc.array_task_id}({alloc.job_id})"


def _alloc(alloc: BurstBufferAlloc, now_s: int) -> str:
    return (
        f"CreateTime={moment(alloc.create_time or now_s)} Pool={alloc.pool or '(null)'} "
        f"Size={size_text(alloc.size)} State={alloc.state}"
    )


def _user(user_id: int, user_name: UserName) -> str:
    return f"{user_name(user_id)}({user_id})"


_POWERS: Final = tuple(
    (base**power, f"{letter}{ending}")
    for power, letter in zip((5, 4, 3, 2, 1), "PTGMK", strict=True)
    for base, ending in ((1024, "iB"), (1000, "B"))
)


_UINT64: Final = (1 << 64) - 1


def size_text(size: int) -> str:
    """Return a size in the greatest unit that divides it, ``10GiB`` or ``2TB``; nothing is 0."""
    for unit, letters in _POWERS:
        if size and not size % unit:
            return f"{size // unit}{letters}"
    return str(size)
