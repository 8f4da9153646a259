"""The signals that a script and what it has started are sent, from outside and by `kill`."""

from __future__ import annotations

from simctl.kernel.procs import (
    SIGCONT,
    SIGKILL,
    SIGSTOP,
)
from simctl.kernel.threads import Killed
from simctl.site import CommandCall
from simctl.stepd.hosts.base import Base
from simctl.stepd.hosts.child import Child, Signalled
from simctl.stepd.outcome import (
    NEVER_US,
    ProgramRun,
    by_default_stops,
    default_status,
)
from simctl.stepd.scripts.host import Disposition
from simctl.stepd.signals import EXIT_TRAP, SIGINT
from simctl.stepd.stopping import take_signal

_TRAP_KEEPS = "trap"


class Signals(Base):
    """Takes signals, and passes them on."""

    def signal(self, number: int, *, children: bool) -> None:
        """Take a signal from the step daemon."""
        for child in self.live_children() if children else ():
            self.signal_child(child, number)
        self.deliver(number)

    def kill_children(self) -> None:
        """Kill the children, save commands of Slurm's: these end by themselves."""
        for child in self.live_children():
            if child.call is None:
                self.signal_child(child, SIGKILL)

    def deliver(self, signal: int) -> None:
        """Take a signal as the script has arranged: end by it, drop it, or keep it for a trap.

        A script that is stopped takes signals once it is continued, save SIGKILL.
        """
        if self._stopped and signal != SIGKILL:
            self._take_while_stopped(signal)
            return
        disposition = self._dispositions.get(signal, "default")
        if signal == SIGSTOP or (disposition == "default" and by_default_stops(signal)):
            self._stopped = True
            return
        if signal != SIGKILL and disposition in ("ignore", "ignore alone"):
            return
        if signal != SIGKILL and disposition == _TRAP_KEEPS:
            self._pending.append(signal)
            if self._interruptible and self._waiter is not None:
                self._kernel.wake(self._waiter)
            return
        if signal == SIGINT and self._awaits_foreground:
            self._interrupted = True
            return
        status = SIGKILL if signal == SIGKILL else default_status(signal)
        if status is None or self.process.exited:
            return
        if signal != SIGKILL and self._dispositions.get(EXIT_TRAP) == "trap":
            self._deadly = self._deadly or signal
            if self._waiter is not None:
                self._kernel.wake(self._waiter)
            return
        self._site.procs.kill(self.process, status)
        self._tell_end(status)

    @property
    def _awaits_foreground(self) -> bool:
        """Return whether this is a shell that waits for a child to go on."""
        is_tool = self._run is not None and self._run.tool
        return self._awaited is not None and not is_tool

    def _take_while_stopped(self, signal: int) -> None:
        if signal != SIGCONT:
            if not by_default_stops(signal):
                self._kept += (signal,)
            return
        self._stopped = False
        kept, self._kept = self._kept, ()
        for each in (SIGCONT, *kept):
            self.deliver(each)
        if self._waiter is not None and not self.process.exited:
            self._kernel.wake(self._waiter)

    def signal_child(self, child: Child, signal: int) -> None:
        """Deliver a signal to a child of the script, and to a script's own children."""
        self._site.trace.process(child.process, "signal", signal)
        if child.paused_us >= 0 and signal != SIGKILL:
            child.held += (signal,)
        else:
            self._deliver_to(child, signal)

    def _signal_alone(self, child: Child, signal: int) -> None:
        """Deliver a signal to a child as `kill` does: what that has started gets none."""
        if child.host is None or child.paused_us >= 0:
            self.signal_child(child, signal)
            return
        self._site.trace.process(child.process, "signal", signal)
        child.host.deliver(signal)

    def _deliver_to(self, child: Child, signal: int) -> None:
        if child.host is not None:
            for grandchild in child.host.live_children():
                child.host.signal_child(grandchild, signal)
            child.host.deliver(signal)
        elif child.call is not None:
            self._signal_command(child, child.call, signal)
        elif child.program is not None:
            self._signal_program(child, child.program, signal)

    def _signal_program(self, child: Child, program: ProgramRun, signal: int) -> None:
        due_us = child.due_us
        status = take_signal(child, program, signal, self._kernel.now_us)
        if status is not None:
            self._end(child, status)
        elif child.due_us != due_us:
            # It was stopped, or goes on: what was to end it at its old time must not.
            if child.timer is not None:
                child.timer.cancel()
                child.timer = None
            if child.due_us < NEVER_US:
                child.timer = self._kernel.call_at(child.due_us, self._expire, child)

    def _signal_command(self, child: Child, call: CommandCall, signal: int) -> None:
        if signal == SIGCONT and child.stopped:
            child.stopped = False
            self._site.procs.go_on(child.process)
            kept, child.kept = child.kept, ()
            for each in kept:
                if not child.ended:
                    self._signal_command(child, call, each)
            return
        if by_default_stops(signal):
            child.stopped = True
            self._site.procs.stop(child.process)
            return
        if child.stopped and signal != SIGKILL:
            child.kept += (signal,)
            return
        if signal != SIGKILL and child.process.daemon in ("srun", "srun_cr", "salloc"):
            call.mailbox.post(Signalled(signal=signal))
            return
        status = SIGKILL if signal == SIGKILL else default_status(signal)
        if status is not None:
            call.mailbox.close(breaks=True)
            self._site.procs.kill(child.process, status)
            self._end(child, status)

    def kill(self, pid: int, signal: int) -> bool:
        """Send a signal to the script itself, to a child, or to the process above it.

        0, or the negative pid of the outermost script, stands for the process group: that script
        and all that it and its children have started. The negative pid of a child stands for that
        child and all that it has started.
        """
        if pid < 1:
            return self._kill_group(-pid, signal)
        if pid in (self.pid, self.process.pid):
            if signal:
                self._site.trace.process(self.process, "signal", signal)
                self.deliver(signal)
            if self.process.exited:
                raise Killed
            self._check_deadly()
            return True
        child = self._children.get(pid)
        if child is None or child.ended:
            return self._parent is not None and self._parent.kill_from_below(pid, signal)
        if signal:
            killed = child.call.killed if child.call is not None else None
            self._signal_alone(child, signal)
            if signal == SIGKILL and killed is not None:
                killed()
        return True

    def _kill_group(self, leader: int, signal: int) -> bool:
        """Send a signal to all of the process group that the script is in."""
        child = self._children.get(leader)
        if child is not None and not child.ended:
            if signal:
                self.signal_child(child, signal)
            return True
        outermost: Signals = self
        while outermost._parent is not None:
            outermost = outermost._parent
        if leader not in (0, outermost.pid, outermost.process.pid):
            return False
        if signal:
            for child in outermost.live_children():
                outermost.signal_child(child, signal)
            self._site.trace.process(outermost.process, "signal", signal)
            outermost.deliver(signal)
        if self.process.exited:
            raise Killed
        self._check_deadly()
        return True

    def kill_from_below(self, pid: int, signal: int) -> bool:
        """Send a signal that a subshell sends to this script, or to another child of it."""
        if pid in (self.pid, self.process.pid):
            if signal and not self.process.exited:
                self._site.trace.process(self.process, "signal", signal)
                self.deliver(signal)
            return True
        child = self._children.get(pid)
        if child is not None and not child.ended:
            if signal:
                self._signal_alone(child, signal)
            return True
        return self._parent is not None and self._parent.kill_from_below(pid, signal)

    def set_trap(self, signal: int, disposition: Disposition) -> None:
        """Arrange what a signal does."""
        self._dispositions[signal] = disposition

    def shut_out(self, signals: tuple[int, ...], how: Disposition) -> None:
        """Ignore signals in the way *how*, until the script says otherwise."""
        for each in signals:
            self._dispositions.setdefault(each, how)

    def take_signals(self) -> tuple[int, ...]:
        """Return the signals kept for traps."""
        taken = tuple(self._pending)
        self._pending.clear()
        if taken:
            # A trap is sprung wherever the script has come to.
            self._site.trace.choose(self.process, self.process.begun)
        return taken
