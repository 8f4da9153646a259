"""What goes wrong in a cluster: each fault of a scenario, and what it does to daemons and links."""

from collections.abc import Callable
from typing import Any, Final

from simctl.ctld.nodes.reachability import watch_unreachable
from simctl.ctld.recovery.pings import ping_in_earnest
from simctl.ctld.recovery.restart import StopDue
from simctl.ctld.state.notices import NodeGivenUp
from simctl.faults.backup import Backup
from simctl.faults.daemons import Daemons, Deeds, Kind
from simctl.faults.disk import DiskInjector
from simctl.faults.nodes import NodeInjector
from simctl.faults.services import ServiceInjector
from simctl.kernel.fabric import NEVER_US
from simctl.kernel.faults import CallFault, CallFaults
from simctl.kernel.links import LinkFault, Links, luck
from simctl.kernel.procs import Host, Process
from simctl.nodes.slurmd import Slurmd
from simctl.scenario.faults import (
    OF_DAEMONS,
    ControllerTarget,
    Crash,
    CutFault,
    FailFault,
    Fault,
    HangFault,
    MessageFault,
    NodeTarget,
    RaiseFault,
    Restart,
    Start,
    Stop,
)
from simctl.scenario.model import FaultEntry
from simctl.wire.credentials import damaged
from simctl.wire.errno import errno_number
from simctl.wire.hosts import CONTROLLER
from simctl.wire.messages import credential_of, with_credential
from simctl.wire.states import NodeFlag

_KILLED: Final = 9


class FaultInjector:
    """Lets faults happen to a cluster."""

    def __init__(self, daemons: Daemons, rules: CallFaults, *, seed: int) -> None:
        self._daemons = daemons
        self._rules = rules
        self._kernel = daemons.site.kernel
        self._fabric = daemons.site.fabric
        self._trace = daemons.site.trace
        conf = daemons.site.conf
        self.backup: Backup | None = None
        if conf.backup_controller:
            host = Host(name=conf.backup_controller, node=None)
            self.backup = Backup(daemons, host, uid=daemons.ctld.process.uid)
        self.missed: list[str] = []
        """The faults that met no target, each with the reason."""
        self._links = Links(self._fabric)
        self._seed = seed
        self._struck = 0
        self.nodes = NodeInjector(daemons, self._miss)
        self._deeds: Deeds = {
            FailFault: self._fail,
            RaiseFault: self._raise,
            HangFault: self._hang,
            (Crash, NodeTarget): self._crash,
            (Start, NodeTarget): self._start,
            (Restart, ControllerTarget): self._restart,
            (Stop, ControllerTarget): self._stop_controller,
            (Crash, ControllerTarget): self._crash_controller,
            (Start, ControllerTarget): self._start_controller,
            CutFault: self._cut,
            MessageFault: self._strike,
            **self.nodes.deeds,
            **DiskInjector(daemons, self._miss, seed=seed).deeds,
            **ServiceInjector(daemons, self._miss).deeds,
        }

        self._over = False

    def happen(self, entry: FaultEntry) -> None:
        """Let the fault of an entry happen now."""
        self._trace.note("fault", "fault", args={"fault": entry.text})
        if self._over and isinstance(entry.fault, Start | Restart):
            self._miss(entry.text, "the run is over, and the daemons stop")
        else:
            self._deeds[_kind(entry.fault)](entry.fault, entry.text)

    def _miss(self, text: str, why: str) -> None:
        """Tell that a fault has met no target: nothing comes of it."""
        self._trace.note("log", "fault_met_nobody", args={"fault": text, "why": why})
        self.missed.append(f"{text}: {why}")

    # Rules for plugin calls.

    def _fail(self, fault: FailFault, text: str) -> None:
        self._rules.add(
            CallFault(
                pattern=fault.pattern,
                text=text,
                errno=errno_number(fault.errno) if fault.errno else 0,
                rc=fault.rc,
                times=fault.times,
                skip=fault.skip,
            )
        )

    def _raise(self, fault: RaiseFault, text: str) -> None:
        self._rules.add(CallFault(pattern=fault.pattern, text=text, raises=True, times=fault.times))

    def _hang(self, fault: HangFault, text: str) -> None:
        self._rules.add(
            CallFault(
                pattern=fault.pattern,
                text=text,
                hangs=True,
                hangs_us=fault.for_us,
                times=fault.times,
                skip=fault.skip,
            )
        )

    # Nodes.

    def _crash(self, fault: Crash[NodeTarget], text: str) -> None:
        node = fault.target.name
        if self._daemons.hosts[node].up:
            self.crash(node)
            ctld = self._daemons.ctld
            if fault.noticed and not ctld.process.exited:
                ctld.mailbox.post(NodeGivenUp(node=node))
        else:
            self._miss(text, f"{node} is down")

    def _start(self, fault: Start[NodeTarget], text: str) -> None:
        node = fault.target.name
        if self._daemons.hosts[node].up:
            self._miss(text, f"{node} is up")
        else:
            self.start_node(node, clean=fault.clean)

    def crash(self, name: str) -> None:
        """Take a node down with all its processes, one a turn, in pid order."""
        host = self._daemons.hosts[name]
        if not host.up:
            return
        self._fabric.take_down(host)
        self._daemons.site.disk.crash(host.name)
        self._daemons.slurmds[name].lose()
        for process in list(host.processes.values()):
            for thread in process.threads:
                self._kernel.kill(thread)
            self._kernel.call_at(self._kernel.now_us, _end_crashed, process)
        watch_unreachable(self._daemons.ctld)

    def start_node(self, name: str, *, clean: bool = False) -> None:
        """Start a node that is down: a new slurmd registers, *clean* as with its option -c."""
        host = self._daemons.hosts[name]
        if host.up:
            return
        host.up = True
        host.booted_us = self._kernel.now_us
        slurmds = self._daemons.slurmds
        spool = slurmds[name].spool
        slurmds[name] = Slurmd(self._daemons.site, host, clean=clean, spool=spool)
        slurmds[name].start()

    # slurmctld.

    def _restart(self, fault: Restart[ControllerTarget], _: str) -> None:
        """Let slurmctld stop and start again; until then no client can connect to it."""
        again_us = self._kernel.now_us + fault.for_us
        self.stop_controller(again_us)
        self._kernel.call_at(again_us, lambda _: self.start_controller(), None)

    def _stop_controller(self, fault: Stop[ControllerTarget], text: str) -> None:
        host = fault.target.host
        if self.backup is not None and host == self.backup.host.name:
            self._end_standby(text, 0)
        elif self._is_there(host, text):
            self.stop_controller()

    def _crash_controller(self, fault: Crash[ControllerTarget], text: str) -> None:
        backup, host = self.backup, fault.target.host
        if backup is not None and host == backup.host.name and not backup.in_control:
            self._end_standby(text, _KILLED)
        elif self._is_there(host, text):
            self.crash_controller(saved=fault.saved)

    def _start_controller(self, fault: Start[ControllerTarget], text: str) -> None:
        backup, host = self.backup, fault.target.host
        if backup is None or host != backup.host.name:
            self.start_controller(clean=fault.clean)
        elif backup.stands_by or backup.in_control:
            self._miss(text, f"{host} is there")
        else:
            backup.start()

    def _is_there(self, host: str, text: str) -> bool:
        """Return whether slurmctld runs on a host; if not, the fault meets no target."""
        ctld = self._daemons.ctld
        there = ctld.mailbox.open and ctld.process.host.name == host
        if not there:
            self._miss(text, f"no slurmctld runs on {host}")
        return there

    def _end_standby(self, text: str, status: int) -> None:
        backup = self.backup
        if backup is not None and backup.in_control:
            self.stop_controller()
        elif backup is not None and backup.stands_by:
            backup.end(status)
        else:
            self._miss(text, "it does not run")

    def stop_controller(self, until_us: int = NEVER_US) -> None:
        """Let slurmctld stop in good order; from now on no client can connect to it."""
        ctld = self._daemons.ctld
        if not ctld.mailbox.open:
            return
        self._fabric.leave(CONTROLLER, until_us)
        if self.backup is not None:
            self.backup.watch()
        ctld.mailbox.post(StopDue())

    def crash_controller(self, *, saved: bool = False, status: int = _KILLED) -> None:
        """Let slurmctld die with all its threads; *saved*: as if it had just saved its state.

        One that is not killed but has ended itself, by another *status*, saves nothing any more.
        """
        ctld = self._daemons.ctld
        if not ctld.mailbox.open:
            return
        self._fabric.leave(CONTROLLER)
        if self.backup is not None:
            self.backup.watch()
        process = ctld.process
        threads = list(process.threads)
        ctld.die_at_once()
        for thread in threads:
            self._kernel.kill(thread)
        if saved or not (ctld.saves.simulated or status != _KILLED):
            process.start(ctld.save_and_die, "slurmctld")
        else:
            self._kernel.call_at(self._kernel.now_us, lambda _: ctld.be_gone(status), None)

    def start_controller(self, *, clean: bool = False) -> None:
        """Start slurmctld, if it is not there or about to end: anew, from its state files."""
        daemons = self._daemons
        last = daemons.ctld
        backup = self.backup
        if last.mailbox.open and CONTROLLER not in self._fabric.away:
            if backup is not None and backup.in_control:
                self._take_back(backup, clean=clean)
            return
        if not last.process.exited:
            last.at_end = lambda: self.start_controller(clean=clean)
            return
        daemons.ctld = daemons.make_ctld(last, daemons.primary, clean)
        self._fabric.come_back(CONTROLLER)
        daemons.ctld.start()

    def _take_back(self, backup: Backup, *, clean: bool) -> None:
        """Start the primary, which asks the backup for control; that stands by again."""
        daemons = self._daemons
        last = daemons.ctld
        last.at_end = backup.start
        daemons.ctld = daemons.make_ctld(last, daemons.primary, clean)
        daemons.ctld.relieves = last
        daemons.ctld.start()

    # Links.

    def _cut(self, fault: CutFault, _: str) -> None:
        """Let the link between two hosts carry nothing for a while, or for ever."""
        until_us = NEVER_US if fault.for_us is None else self._kernel.now_us + fault.for_us
        self._fabric.cut(fault.one, fault.other, until_us)
        if until_us < NEVER_US:
            self._kernel.call_at(until_us, self._heal, fault)
        if CONTROLLER in (fault.one, fault.other):
            watch_unreachable(self._daemons.ctld)
        if self.backup is not None:
            self.backup.listen()

    def _heal(self, fault: CutFault) -> None:
        if not self._fabric.heal(fault.one, fault.other):
            return
        text = f"heal {fault.one} {fault.other}"
        self._trace.note("fault", "fault", args={"fault": text})
        ctld = self._daemons.ctld
        ends = [ctld.nodes_by_name.get(name) for name in (fault.one, fault.other)]
        if CONTROLLER in (fault.one, fault.other) and any(
            node is not None and node.flags & NodeFlag.NO_RESPOND for node in ends
        ):
            watch_unreachable(ctld)

    # Messages.

    def _strike(self, fault: MessageFault, text: str) -> None:
        """Let messages go wrong from now on; each rule has luck of its own."""
        self._struck += 1
        until_us = NEVER_US if fault.for_us is None else self._kernel.now_us + fault.for_us
        self._links.add(
            LinkFault(
                kind=fault.kind,
                rpc=fault.rpc,
                text=text,
                sender=fault.sender,
                receiver=fault.receiver,
                by_us=fault.by_us,
                times=fault.times,
                skip=fault.skip,
                chance=fault.chance,
                luck=luck(self._seed, self._struck),
                until_us=until_us,
                damage=self._damage(fault.how),
            )
        )
        ping_in_earnest(self._daemons.ctld)
        if until_us < NEVER_US:
            self._kernel.call_at(until_us, self._end_strikes, None)

    def _damage(self, how: str) -> Callable[[Any], Any] | None:
        """Return what makes a launch one with a damaged credential."""
        signer = self._daemons.site.keys.signer

        def damage(message: Any) -> Any:
            return with_credential(message, damaged(credential_of(message), how, signer))

        return damage if how else None

    def _end_strikes(self, _: None) -> None:
        """Ask nodes to register that were not heard of while their messages got lost."""
        ctld = self._daemons.ctld
        if any(node.flags & NodeFlag.NO_RESPOND for node in ctld.nodes):
            watch_unreachable(ctld)

    @property
    def endless(self) -> list[str]:
        """Return what goes wrong with messages for ever."""
        return self._links.endless()

    def cease(self) -> None:
        """Let no more messages go wrong, and nothing start again: the run is over."""
        self._over = True
        self._fabric.disturbance = None
        self._fabric.disturbed = bool(self._fabric.cuts)


def _kind(fault: Fault) -> Kind:
    return (type(fault), type(fault.target)) if isinstance(fault, OF_DAEMONS) else type(fault)


def _end_crashed(process: Process) -> None:
    process.exit(9)
