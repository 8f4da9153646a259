"""The daemons of a cluster as they are now."""

from collections.abc import Callable

import attrs

from simctl.ctld.daemon import Slurmctld
from simctl.kernel.procs import Host
from simctl.nodes.slurmd import Slurmd
from simctl.site import Site


@attrs.define(eq=False, kw_only=True)
class Daemons:
    """The daemons of a cluster as they are now: of each the one that started last."""

    site: Site
    ctld: Slurmctld
    hosts: dict[str, Host]
    """The nodes' machines, by name."""

    slurmds: dict[str, Slurmd]
    """By the node's name."""

    primary: Host
    """The host that slurmctld starts on."""

    make_ctld: Callable[[Slurmctld, Host, bool], Slurmctld]
    """Makes the slurmctld on a host that follows another; it may start clean."""
