"""What goes wrong on a node: its daemons and tasks die, stop and start, each by itself."""

from collections.abc import Callable

from simctl.ctld.nodes.reachability import watch_unreachable
from simctl.ctld.recovery.missing import watch
from simctl.faults.daemons import Daemons, Deeds
from simctl.kernel.procs import SIGKILL
from simctl.nodes.leftovers import Leftovers
from simctl.nodes.slurmd import Slurmd
from simctl.nodes.spool import StepKey
from simctl.scenario.faults import (
    Crash,
    Restart,
    SlurmdTarget,
    Start,
    StepdTarget,
    Stop,
    TaskTarget,
)
from simctl.stepd.suspend import TasksSignalled


class NodeInjector:
    """Lets faults of daemons of nodes happen; *missed* is told of one that meets no target."""

    def __init__(self, daemons: Daemons, missed: Callable[[str, str], None]) -> None:
        self._daemons = daemons
        self._missed = missed
        self._kernel = daemons.site.kernel
        self.deeds: Deeds = {
            (Crash, SlurmdTarget): self._crash_slurmd,
            (Stop, SlurmdTarget): self._stop_slurmd,
            (Start, SlurmdTarget): self._start_slurmd,
            (Restart, SlurmdTarget): self._restart_slurmd,
            (Crash, StepdTarget): self._crash_stepd,
            (Crash, TaskTarget): self._crash_task,
        }

    # slurmd.

    def _running(self, target: SlurmdTarget, text: str) -> Slurmd | None:
        """Return the slurmd of a node, if one runs there that has not been told to stop."""
        node = target.node
        slurmd = self._daemons.slurmds[node]
        if not self._daemons.hosts[node].up:
            self._missed(text, f"{node} is down")
        elif slurmd.process.exited:
            self._missed(text, f"no slurmd runs on {node}")
        else:
            return slurmd
        return None

    def _crash_slurmd(self, fault: Crash[SlurmdTarget], text: str) -> None:
        slurmd = self._running(fault.target, text)
        if slurmd is not None:
            self.end_slurmd(slurmd)

    def end_slurmd(self, slurmd: Slurmd) -> None:
        """Let a slurmd end at once, without a word to slurmctld."""
        self._silent(slurmd.host.name)
        slurmd.die()

    def _stop_slurmd(self, fault: Stop[SlurmdTarget], text: str) -> None:
        slurmd = self._running(fault.target, text)
        if slurmd is not None:
            self._silent(slurmd.host.name)
            slurmd.shut_down()

    def _silent(self, node: str) -> None:
        """Note since when no daemon answers on a node, and have it found out."""
        self._daemons.site.fabric.down_since_us[node] = self._kernel.now_us
        watch_unreachable(self._daemons.ctld)

    def _start_slurmd(self, fault: Start[SlurmdTarget], text: str) -> None:
        node = fault.target.node
        old = self._daemons.slurmds[node]
        if not self._daemons.hosts[node].up:
            self._missed(text, f"{node} is down: start the node")
        elif old.mailbox.open:
            self._missed(text, f"a slurmd runs on {node}")
        elif old.at_end is not None and not old.process.exited:
            self._missed(text, f"a slurmd is about to start on {node}")
        else:
            self._start_after(old, clean=fault.clean)

    def _restart_slurmd(self, fault: Restart[SlurmdTarget], text: str) -> None:
        slurmd = self._running(fault.target, text)
        if slurmd is not None:
            self._silent(slurmd.host.name)
            slurmd.shut_down()
            due_us = self._kernel.now_us + fault.for_us
            self._kernel.call_at(due_us, self._start_again, slurmd)

    def _start_again(self, old: Slurmd) -> None:
        """Start a slurmd after one that was to stop, unless another has been started meanwhile."""
        if old.at_end is None and self._daemons.slurmds[old.host.name] is old:
            self._start_after(old, clean=False)

    def _start_after(self, old: Slurmd, *, clean: bool) -> None:
        """Start a slurmd in the place of another, as soon as that has ended."""

        def start() -> None:
            host = old.host
            if host.up:
                slurmd = Slurmd(self._daemons.site, host, clean=clean, spool=old.spool)
                self._daemons.slurmds[host.name] = slurmd
                slurmd.start()

        if old.process.exited:
            start()
        else:
            old.at_end = start

    # Step daemons and tasks.

    def _crash_stepd(self, fault: Crash[StepdTarget], text: str) -> None:
        target = fault.target
        spool = self._daemons.slurmds[target.node].spool
        key = (target.job_id, target.step_id)
        socket = spool.sockets.get(key)
        if socket is None or socket.mailbox.process.exited:
            self._missed(text, f"no such step daemon runs on {target.node}")
        else:
            self.end_stepd(target.node, key)

    def end_stepd(self, node: str, key: StepKey) -> None:
        """Let the step daemon of a step end at once."""
        spool = self._daemons.slurmds[node].spool
        socket = spool.sockets.pop(key)
        site = self._daemons.site
        stepd = socket.mailbox.process
        if socket.daemon is None:
            socket.mailbox.close()
            site.procs.kill(stepd)
        else:
            tasks = socket.daemon.die()
            if tasks.alive:
                spool.left[key] = Leftovers(site, tasks, stepd.run_of_job)
        spool.gone(key[0], stepd.cause)
        ctld = self._daemons.ctld
        watch(ctld, ctld.nodes_by_name[node])

    def _crash_task(self, fault: Crash[TaskTarget], text: str) -> None:
        target = fault.target
        key = (target.job_id, target.step_id)
        for slurmd in self._daemons.slurmds.values():
            spool = slurmd.spool
            socket, left = spool.sockets.get(key), spool.left.get(key)
            daemon = socket.daemon if socket is not None else None
            tasks = daemon.tasks if daemon is not None else left.tasks if left is not None else None
            for task in tasks.tasks if tasks is not None else ():
                if task.rank == target.rank and not task.ended:
                    task.signal(SIGKILL, children=False)
                    if daemon is not None:
                        daemon.mailbox.post(TasksSignalled())
                    elif left is not None:
                        left.signalled()
                    return
        self._missed(text, "no such task runs")
