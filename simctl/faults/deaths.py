"""What becomes of a daemon or a task whose plugin has ended its process: a crash, an exit, a loop.

The daemon ends as the real one would, and the cluster goes on without it.
"""

from simctl.faults.daemons import Daemons
from simctl.faults.injector import FaultInjector
from simctl.kernel.procs import Process
from simctl.nodes.spool import StepKey
from simctl.stepd.manager import StepDaemon
from simctl.stepd.suspend import TasksSignalled


class Deaths:
    """Lets daemons and tasks end with a wait status that their plugin has caused."""

    def __init__(self, daemons: Daemons, injector: FaultInjector) -> None:
        self._daemons = daemons
        self._injector = injector

    def die(self, process: Process, status: int) -> None:
        """End a process, with what ends with it."""
        ends = {
            "slurmctld": self._end_slurmctld,
            "slurmd": self._end_slurmd,
            "manager": self._end_step_daemon,
            "session": self._end_step_daemon,
            "task": self._end_task,
        }
        ends.get(process.role, _end_alone)(process, status)

    def _end_slurmctld(self, process: Process, status: int) -> None:
        ctld = self._daemons.ctld
        if ctld.process is not process or not ctld.mailbox.open:
            _end_alone(process, status)
            return
        self._injector.crash_controller(status=status)

    def _end_slurmd(self, process: Process, status: int) -> None:
        slurmd = self._daemons.slurmds.get(process.host.name)
        if slurmd is None or slurmd.process is not process:
            _end_alone(process, status)
            return
        process.exit(status)
        self._injector.nodes.end_slurmd(slurmd)

    def _end_step_daemon(self, process: Process, status: int) -> None:
        found = self._step_of(process)
        process.exit(status)
        if found is None:
            _end_alone(process, status)
        else:
            self._injector.nodes.end_stepd(process.host.name, found[0])

    def _end_task(self, process: Process, status: int) -> None:
        found = self._step_of(process)
        if found is None:
            _end_alone(process, status)
            return
        daemon = found[1]
        for task in daemon.tasks.tasks:
            if task.process is process:
                task.leave(status)
                daemon.mailbox.post(TasksSignalled())

    def _step_of(self, process: Process) -> tuple[StepKey, StepDaemon] | None:
        """Return the step daemon that a process is, or is of."""
        slurmd = self._daemons.slurmds.get(process.host.name)
        for key, socket in slurmd.spool.sockets.items() if slurmd is not None else ():
            daemon = socket.daemon
            if daemon is not None and daemon.has(process):
                return key, daemon
        return None


def _end_alone(process: Process, status: int) -> None:
    process.table.kill(process, status)
