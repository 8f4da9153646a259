"""What code that Slurm loads can reach from the process it runs in."""

from collections.abc import Callable

import attrs

from simctl.kernel.disk import Disk
from simctl.kernel.fabric import Fabric
from simctl.kernel.procs import Process
from simctl.wire.conf.slurm_conf import SlurmConf

People = Callable[[int | None, str], tuple[str, int, int, str] | None]
"""Returns the name, uid, gid and home directory of who has a uid, or a name; None for nobody."""


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


def reach_of(process: Process) -> Reach:
    """Return what a process can reach."""
    reach = process.table.reach
    assert isinstance(reach, Reach)
    return reach
