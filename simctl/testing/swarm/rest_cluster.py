"""Rules about nodes, processes and the simulator itself: all is as before the first job."""

from collections.abc import Iterator

from simctl.kernel.procs import Host
from simctl.nodes.credential_file import NAME
from simctl.testing.swarm.rules import AtRest, rule
from simctl.wire.states import NodeBase


@rule(
    "nodes-free",
    says="every node is IDLE without flags, and has all its cpus, cores, memory and gres",
)
def nodes_free(run: AtRest) -> Iterator[str]:
    """Find nodes that are something else, or from which something is missing."""
    for node in run.world.ctld.nodes:
        if node.base is not NodeBase.IDLE or node.flags:
            yield f"{node.name} is {node.base.name} {node.flags!s} ({node.reason})"
        if node.jobs or node.completing:
            yield f"{node.name} has jobs {sorted(node.jobs)} and {node.completing} completing"
        if node.free != node.total:
            yield f"{node.name} has {node.free} free of {node.total}"
        if node.free_cores != (1 << node.cpus) - 1:
            yield f"{node.name} has the cores {node.free_cores:b} free of {node.cpus}"


@rule(
    "processes-gone",
    says="nothing runs but slurmctld and a slurmd on each node",
    exceptions="commands, where a slurmctld has lost jobs",
)
def processes_gone(run: AtRest) -> Iterator[str]:
    """Find step daemons, tasks, scripts and commands that still run, and daemons that do not."""
    world = run.world
    hosts: dict[str, Host] = {"login": world.login, "slurmctld": world.ctld.process.host}
    for name, host in {**hosts, **world.hosts}.items():
        wanted = {"login": [], "slurmctld": ["slurmctld"]}.get(name, ["slurmd"])
        found = [process.daemon for process in host.processes.values()]
        if found != wanted and not (run.lost and host is world.login):
            told = [f"{each.name} (pid {each.pid})" for each in host.processes.values()]
            yield f"on {name} there are {', '.join(told) or 'no processes'}"


@rule(
    "threads-done",
    says="no daemon has a thread that is still at a job's work",
    exceptions="threads of plugins, which may go on for ever",
)
def threads_done(run: AtRest) -> Iterator[str]:
    """Find threads of slurmctld and of the slurmds beside their first."""
    world = run.world
    for host in (world.ctld.process.host, *world.hosts.values()):
        for process in host.processes.values():
            threads = [each for each in process.threads if not each.finished]
            extra = [each for each in threads[1:] if not each.of_plugin]
            for thread in extra:
                yield f"{thread.name} on {host.name} waits for {thread.waits_for}"


@rule(
    "files-gone",
    says="no file of a job is left where daemons keep them: in SlurmdSpoolDir of a node",
    exceptions="nodes that crashed, or on which a step daemon was killed: disks do not forget",
)
def files_gone(run: AtRest) -> Iterator[str]:
    """Find files below the folders of slurmd."""
    folder = run.world.site.conf.slurmd_spool_dir
    for name in run.world.hosts:
        view = run.world.disk.view(name, 0)
        if (
            name not in run.crashed | run.killed
            and view.is_dir(folder)
            and (left := [each for each in view.listdir(folder) if each != NAME])
        ):
            yield f"{folder} of {name} still has {sorted(left)}"


@rule("links-whole", says="no link is cut any more")
def links_whole(run: AtRest) -> Iterator[str]:
    """Find links that are."""
    cuts = run.world.fabric.cuts
    if cuts:
        yield f"cut are {sorted(cuts)}"


@rule(
    "nobody-fatal",
    says="no daemon has given up, and no plugin has done anything wrong by itself",
    exceptions="exceptions that the scenario raises; a slurmctld that does not start with a "
    "damaged file, or stops because slurm_ckpt_alloc_job has failed",
    ended=True,
)
def nobody_fatal(run: AtRest) -> Iterator[str]:
    """Find daemons that stopped themselves, and mistakes of the bundled plugins."""
    assert run.result is not None
    if "corrupt" not in run.faults and not run.has_failed("slurm_ckpt_alloc_job"):
        yield from run.result.fatalities
    for complaint in run.result.complaints:
        yield f"{complaint.function}: {complaint.problem}"


@rule("daemons-stop", says="when all is over the daemons stop, and nothing runs", ended=True)
def daemons_stop(run: AtRest) -> Iterator[str]:
    """Find processes after the end."""
    world = run.world
    for host in (world.login, world.ctld.process.host, *world.hosts.values()):
        for process in host.processes.values() if not (run.lost and host is world.login) else ():
            yield f"{process.name} (pid {process.pid}) on {host.name} has not ended"
