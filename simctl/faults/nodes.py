"""What goes wrong on a node: its daemons and tasks die, stop and start, each by itself."""

from collections.abc import Callable
from typing import Any

from simctl.ctld.nodes.reachability import watch_unreachable
from simctl.ctld.recovery.missing import watch
from simctl.faults.daemons import Daemons
from simctl.kernel.procs import SIGKILL
from simctl.nodes.leftovers import Leftovers
from simctl.nodes.slurmd import Slurmd
from simctl.nodes.spool import StepKey
from simctl.scenario.model import (
    CrashSlurmd,
    CrashStepd,
    CrashTask,
    Fault,
    RestartSlurmd,
    StartSlurmd,
    StopSlurmd,
)
from simctl.stepd.suspend import TasksSignalled


class NodeInjector:
    """Lets faults of single daemons of nodes happen; *missed* is told of one that meets nobody."""

    def __init__(self, daemons: Daemons, missed: Callable[[str, str], None]) -> None:
        self._daemons = daemons
        self._missed = missed
        self._kernel = daemons.site.kernel
        self.deeds: dict[type[Fault], Callable[[Any, str], None]] = {
            CrashSlurmd: self._crash_slurmd,
            StopSlurmd: self._stop_slurmd,
            StartSlurmd: self._start_slurmd,
            RestartSlurmd: self._restart_slurmd,
            CrashStepd: self._crash_stepd,
            CrashTask: self._crash_task,
        }

    # slurmd.

    def _running(self, node: str, text: str) -> Slurmd | None:
        """Return the slurmd of a node, if one runs there that has not been told to stop."""
        slurmd = self._daemons.slurmds[node]
        if not self._daemons.hosts[node].up:
            self._missed(text, f"{node} is down")
        elif slurmd.process.exited:
            self._missed(text, f"no slurmd runs on {node}")
        else:
            return slurmd
        return None

    def _crash_slurmd(self, fault: CrashSlurmd, text: str) -> None:
        slurmd = self._running(fault.node, text)
        if slurmd is not None:
            self.end_slurmd(slurmd)

    def end_slurmd(self, slurmd: Slurmd) -> None:
        """Let a slurmd end at once; nobody is told."""
        self._silent(slurmd.host.name)
        slurmd.die()

    def _stop_slurmd(self, fault: StopSlurmd, text: str) -> None:
        slurmd = self._running(fault.node, text)
        if slurmd is not None:
            self._silent(fault.node)
            slurmd.shut_down()

    def _silent(self, node: str) -> None:
        """Note since when nobody answers on a node, and have it found out."""
        self._daemons.site.fabric.down_since_us[node] = self._kernel.now_us
        watch_unreachable(self._daemons.ctld)

    def _start_slurmd(self, fault: StartSlurmd, text: str) -> None:
        old = self._daemons.slurmds[fault.node]
        if not self._daemons.hosts[fault.node].up:
            self._missed(text, f"{fault.node} is down: start the node")
        elif old.mailbox.open:
            self._missed(text, f"a slurmd runs on {fault.node}")
        elif old.at_end is not None and not old.process.exited:
            self._missed(text, f"a slurmd is about to start on {fault.node}")
        else:
            self._start_after(old, clean=fault.clean)

    def _restart_slurmd(self, fault: RestartSlurmd, text: str) -> None:
        slurmd = self._running(fault.node, text)
        if slurmd is not None:
            self._silent(fault.node)
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

    def _crash_stepd(self, fault: CrashStepd, text: str) -> None:
        spool = self._daemons.slurmds[fault.node].spool
        key = (fault.job_id, fault.step_id)
        socket = spool.sockets.get(key)
        if socket is None or socket.mailbox.process.exited:
            self._missed(text, f"no such step daemon runs on {fault.node}")
        else:
            self.end_stepd(fault.node, key)

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

    def _crash_task(self, fault: CrashTask, text: str) -> None:
        key = (fault.job_id, fault.step_id)
        for slurmd in self._daemons.slurmds.values():
            spool = slurmd.spool
            socket, left = spool.sockets.get(key), spool.left.get(key)
            daemon = socket.daemon if socket is not None else None
            tasks = daemon.tasks if daemon is not None else left.tasks if left is not None else None
            for task in tasks.tasks if tasks is not None else ():
                if task.rank == fault.rank and not task.ended:
                    task.signal(SIGKILL, children=False)
                    if daemon is not None:
                        daemon.mailbox.post(TasksSignalled())
                    elif left is not None:
                        left.signalled()
                    return
        self._missed(text, "no such task runs")
