"""What code that Slurm loads can reach from the process it runs in."""

import attrs

from simctl.kernel.disk import Disk
from simctl.kernel.fabric import Fabric
from simctl.kernel.procs import Process
from simctl.wire.conf.slurm_conf import SlurmConf


@attrs.frozen(kw_only=True)
class Reach:
    """The links, disks and slurm.conf of the cluster that a process belongs to."""

    fabric: Fabric
    disk: Disk
    conf: SlurmConf
    model: str


def reach_of(process: Process) -> Reach:
    """Return what a process can reach."""
    reach = process.table.reach
    assert isinstance(reach, Reach)
    return reach
