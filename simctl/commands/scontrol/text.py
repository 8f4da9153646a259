"""Moments, times, memory and sets of resources as scontrol writes them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from simctl.commands.columns.formats import padded_time
from simctl.wire.ids import INFINITE

NULL: Final = "(null)"
_UNITS: Final = "MGTP"
_STEP: Final = 1024


def moment(seconds: int, none: str = "Unknown") -> str:
    """Return ``2026-11-20T23:14:07``; 0 stands for no moment."""
    if not seconds:
        return none
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def minutes(limit_min: int, none: str = "UNLIMITED") -> str:
    """Return a time limit: ``00:10:00``, ``1-00:00:00``."""
    return none if limit_min == INFINITE else padded_time(limit_min * 60)


def memory(size_mb: int) -> str:
    """Return memory in the largest unit that divides it: ``500M``, ``1G``; nothing is ``0``."""
    unit = 0
    while size_mb and not size_mb % _STEP and unit < len(_UNITS) - 1:
        size_mb //= _STEP
        unit += 1
    return f"{size_mb}{_UNITS[unit]}" if size_mb else "0"


def tres(
    *,
    cpus: int,
    memory_mb: int = 0,
    nodes: int = 0,
    billing: int = 0,
    others: Mapping[str, int] | None = None,
) -> str:
    """Return ``cpu=2,mem=500M,node=1,billing=2``; what there is none of is left out.

    *others* are in megabytes, by their names, such as ``bb/generic``.
    """
    counts = {
        "cpu": str(cpus or ""),
        "mem": memory(memory_mb) if memory_mb > 0 else "",
        "node": str(nodes or ""),
        "billing": str(billing or ""),
        **{name: memory(size_mb) for name, size_mb in (others or {}).items() if size_mb},
    }
    return ",".join(f"{name}={text}" for name, text in counts.items() if text)


def gres(counts: Mapping[str, int], prefix: str = "", none: str = NULL) -> str:
    """Return ``gpu:2,fast:1``, each with a prefix."""
    return ",".join(f"{prefix}{name}:{count}" for name, count in counts.items()) or none
