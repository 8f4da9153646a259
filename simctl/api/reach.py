"""What code that Slurm loads can reach from the process it runs in."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from simctl.kernel.disk import Disk
from simctl.kernel.fabric import Fabric
from simctl.kernel.faults import CallFault
from simctl.kernel.procs import Process
from simctl.wire.conf.slurm_conf import SlurmConf

People = Callable[[int | None, str], tuple[str, int, int, str] | None]
"""Returns the name, uid, gid and home directory of a user, by uid or name; else None."""


@attrs.frozen(kw_only=True)
class LuaSettings:
    """How Lua scripts are run: which Lua, under which Slurm.

    `order` is 0, or the seed by which tables are gone through. `epoch_s` is what clocks show at
    virtual time 0; `people` has uid, gid and home of each user; `slurm_ids` those of SlurmUser.
    """

    version: str = "5.4"
    slurm: str = "22.05"
    order: int = 0
    defects: frozenset[str] = frozenset()
    epoch_s: int = 0
    cluster: str = ""
    people: Mapping[str, tuple[int, int, str]] = attrs.field(factory=dict)
    slurm_ids: tuple[int, int] = (0, 0)


@attrs.frozen(kw_only=True)
class Reach:
    """The links, disks and slurm.conf of the cluster that a process belongs to."""

    fabric: Fabric
    disk: Disk
    conf: SlurmConf
    model: str
    start_time_us: int
    """What the cluster's clocks show at the start, in microseconds since the epoch."""

    people: People
    """Finds who has a uid, or else a name."""

    died: Callable[[Process, int], None]
    """Lets the daemon or task of a process end with a wait status: its plugin has ended it."""
    lua: LuaSettings
    shell: Callable[..., Awaitable[Any]]
    """Runs a line of shell in a child of a process."""

    child: Callable[..., Awaitable[int]]
    """Runs a function in a child of a process."""

    fault: Callable[[Process, str], CallFault | None]
    """Finds the fault that strikes a function of a script in a process."""


def reach_of(process: Process) -> Reach:
    """Return what a process can reach."""
    reach = process.table.reach
    assert isinstance(reach, Reach)
    return reach
