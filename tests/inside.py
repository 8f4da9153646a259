"""Call a plugin's functions by hand, as a daemon of a cluster would that does not run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from simctl.kernel.procs import CALLING
from simctl.plugin import SlurmError
from simctl.scenario.load import read_scenario
from simctl.world import World

_CLUSTER = """\
nodes: [{name: "n[1-4]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-4]", default: true}]
"""


@contextmanager
def slurmctld(text: str = "") -> Iterator[World]:
    """Let what is called inside be called by slurmctld; its disk starts empty."""
    world = World(read_scenario(_CLUSTER + text, file="s.yaml"))
    token = CALLING.set(world.ctld.process)
    try:
        yield world
    finally:
        CALLING.reset(token)


@contextmanager
def slurmd(world: World, node: int = 0) -> Iterator[None]:
    """Let what is called inside be called by a node's slurmd."""
    token = CALLING.set(list(world.daemons.slurmds.values())[node].process)
    try:
        yield
    finally:
        CALLING.reset(token)


def failure(function: Callable[..., object], *arguments: object) -> int:
    """Call a function of the plugin's; return the errno it fails with, or 0."""
    try:
        function(*arguments)
    except SlurmError as error:
        return error.errno
    return 0
