"""What mutated code does beside what it did: it is copied into the package of a mutated tree.

Everything that could be seen of a call is left as it is, but for the one thing that is mutated: the
process itself is dressed up for as long as the call takes.
"""

import atexit
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

from simctl.kernel.procs import Process, RunsAs

_FAR: Final = 7000
"""Between a process and the one that a mutation calls from instead."""

_OTHER_ROLE: Final = {
    "slurmctld": "slurmd",
    "slurmd": "slurmctld",
    "srun": "slurmd",
    "manager": "session",
    "session": "manager",
    "task": "session",
}


def __getattr__(name: str) -> Any:
    """Look NULL up late: the module that has it may be the mutated one, which imports this."""
    if name != "NULL":
        raise AttributeError(name)
    from simctl.plugins.hooks import NULL  # noqa: PLC0415

    return NULL


HITS: set[str] = set()
"""The probes that were passed."""


def hit(probe: str) -> None:
    """Note that a probe was passed."""
    HITS.add(probe)


def failed(probe: str, result: Any, good: Any, *, counts: bool = False) -> Any:
    """Note that a probe was passed by a call that failed; return what the call did."""
    if ignored(result, good, counts=counts) != result:
        HITS.add(f"{probe}:failed")
    return result


def ignored(result: Any, good: Any, *, counts: bool = False) -> Any:
    """Return *good* in place of the result of a call that failed, or of each of several."""
    if isinstance(good, list):
        return [ignored(each, good[0], counts=counts) for each in result]
    if isinstance(good, bool):
        return good
    failed = type(result) is int and (result < 0 if counts else result != good)
    return good if failed else result


async def elsewhere(who: Process, call: Callable[[], Awaitable[Any]]) -> Any:
    """Call from another process of the same role and user."""
    pid = who.pid
    who.pid = pid + _FAR
    try:
        return await call()
    finally:
        who.pid = pid


async def misplaced(who: Process, call: Callable[[], Awaitable[Any]]) -> Any:
    """Call from a process of another role."""
    role, daemon = who.role, who.daemon
    who.role = who.daemon = _OTHER_ROLE.get(role, "slurmctld")
    try:
        return await call()
    finally:
        who.role, who.daemon = role, daemon


async def as_root_or_user(who: Process, call: Callable[[], Awaitable[Any]]) -> Any:
    """Call as root where it was to be somebody else, and as a user where it was to be root."""
    kept = who.uid, who.euid, who.runs_as
    if who.runs_as is RunsAs.ROOT:
        who.uid = who.euid = who.owner or 1001
        who.runs_as = RunsAs.USER
    else:
        who.uid = who.euid = 0
        who.runs_as = RunsAs.ROOT
    try:
        return await call()
    finally:
        who.uid, who.euid, who.runs_as = kept


async def as_another(who: Process, call: Callable[[], Awaitable[Any]]) -> Any:
    """Call with another user's number; what the process is taken to run as stays."""
    kept = who.uid, who.euid
    who.uid = who.euid = who.uid + _FAR
    try:
        return await call()
    finally:
        who.uid, who.euid = kept


def _tell() -> None:
    """Write down the probes that were passed in a process that a test has started."""
    path = os.environ.get("SIMCTL_MUTANTS_HITS")
    if path and HITS:
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - at the end of all
            file.write("".join(f"{probe}\n" for probe in sorted(HITS)))


atexit.register(_tell)
