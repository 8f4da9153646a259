"""Whether a compiled plugin gives back the memory that it takes for objects."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from simctl.plugins.compiled.classes import CompiledPlugin
from simctl.plugins.guard import DiedError, PluginError
from simctl.testing.plugin_check.mistakes import rule
from simctl.wire.buf import Buf
from simctl.wire.errno import SlurmError

LEAKS: Final = rule(
    "leaks-memory",
    rank=1,
    cost="slurmctld and slurmd run for months: they grow with each step or registration",
    remedy="release in the free function all that alloc, build, copy and unpack have allocated",
)

_WARM_UP: Final = 4
_ROUNDS: Final = 8


def leaked(kind: type[CompiledPlugin]) -> list[tuple[str, str]]:
    """Return each free function whose objects leave memory behind, and what was seen."""
    found = []
    for function, what, round_ in _ROUNDS_OF[kind.plugin_type.partition("/")[0]]:
        try:
            grown = _growth(kind, round_)
        except (DiedError, PluginError, SlurmError, RuntimeError):
            # What it breaks by is told by the trials.
            continue
        if grown > 0:
            text = (
                f"leaves {grown} bytes behind for each time that {what} was made, packed, unpacked "
                "and released"
            )
            found.append((function, text))
    return found


def _growth(kind: type[CompiledPlugin], round_: Callable[[Any], bool]) -> int:
    """Return by how many bytes the heap grows at least in each round, 0 where it does not."""
    plugin = kind()
    used = []
    for _ in range(_WARM_UP + _ROUNDS):
        if not round_(plugin):
            return 0
        # Always after the same call: what the host itself has allocated by then is the same.
        used.append(plugin.heap)
    steady = used[_WARM_UP:]
    return max(min(after - before for before, after in pairwise(steady)), 0)


def _credentials(plugin: Any) -> bool:
    job = plugin.switch_p_alloc_jobinfo()
    if plugin.switch_p_build_jobinfo(job, "n[1-2]", 4, 0):
        return False
    packed = Buf()
    plugin.switch_p_pack_jobinfo(job, packed)
    copied = plugin.switch_p_copy_jobinfo(job)
    other = _to_unpack_into(plugin, "switch_p_alloc_jobinfo")
    plugin.switch_p_unpack_jobinfo(other, Buf(packed.data()))
    plugin.switch_p_job_step_complete(job, "n[1-2]")
    for each in (other, copied, job):
        plugin.switch_p_free_jobinfo(each)
    return True


def _records(plugin: Any) -> bool:
    node = plugin.switch_p_alloc_node_info()
    if plugin.switch_p_build_node_info(node):
        return False
    packed = Buf()
    plugin.switch_p_pack_node_info(node, packed)
    other = _to_unpack_into(plugin, "switch_p_alloc_node_info")
    plugin.switch_p_unpack_node_info(other, Buf(packed.data()))
    plugin.switch_p_free_node_info(other)
    plugin.switch_p_free_node_info(node)
    return True


def _to_unpack_into(plugin: Any, alloc: str) -> Any:
    """Return a new object, or what stands for one where unpack makes its own."""
    return getattr(plugin, getattr(plugin, "simctl_blank", alloc))()


def _checkpoints(plugin: Any) -> bool:
    record, other = plugin.slurm_ckpt_alloc_job(), plugin.slurm_ckpt_alloc_job()
    packed = Buf()
    plugin.slurm_ckpt_pack_job(record, packed, _PROTOCOL_VERSION)
    plugin.slurm_ckpt_unpack_job(other, Buf(packed.data()), _PROTOCOL_VERSION)
    for each in (plugin.slurm_ckpt_copy_job(record), other, record):
        plugin.slurm_ckpt_free_job(each)
    return True


_PROTOCOL_VERSION: Final = 18 << 8 | 8
_ROUNDS_OF: Final[dict[str, tuple[tuple[str, str, Callable[[Any], bool]], ...]]] = {
    "switch": (
        ("switch_p_free_jobinfo", "a credential", _credentials),
        ("switch_p_free_node_info", "a node's record", _records),
    ),
    "checkpoint": (("slurm_ckpt_free_job", "a record", _checkpoints),),
}
