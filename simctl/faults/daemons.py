"""The daemons of a cluster as they are now."""

from collections.abc import Callable
from typing import Any

import attrs

from simctl.ctld.daemon import Slurmctld
from simctl.kernel.procs import Host
from simctl.nodes.slurmd import Slurmd
from simctl.scenario.faults import Fault, Target
from simctl.site import Site

Kind = type[Fault] | tuple[type[Fault], type[Target]]
"""A kind of fault; of those that strike daemons, with whom it strikes."""

Deeds = dict[Kind, Callable[[Any, str], None]]
"""What lets each kind of fault happen: it gets the fault and its text."""


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
