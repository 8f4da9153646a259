"""A served cluster as a whole: its folder, its World, its server, and its end."""

import os
import secrets
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import attrs
import trio

from simctl.scenario.model import Scenario, UserSpec
from simctl.serve import linux
from simctl.serve.clock import PacedKernel
from simctl.serve.disk import MachineDisk
from simctl.serve.files import SOCKET, TRACE
from simctl.serve.log import TraceLog
from simctl.serve.machine import Machine, RealTask
from simctl.serve.server import Server, machine_user
from simctl.status import INTERRUPTED, OK
from simctl.stepd.programs import OutsidePrograms, OutsideTask
from simctl.world import World


class ServedCluster:
    """A cluster that is served from a folder."""

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        *,
        model: str = "",
        scale: float = 1.0,
    ) -> None:
        now_s = time.time()
        self.folder = folder
        self.scenario = _as_served(scenario, now_s)
        self.kernel = kernel = PacedKernel(scale=scale, begin_us=int(now_s % 1 * 1_000_000))
        self.disk = disk = MachineDisk()
        self.machine: Machine
        self.world = World(
            self.scenario,
            model=model,
            watchdog_s=0,
            orderings=False,
            kernel=kernel,
            disk=disk,
            programs=lambda described, chance: OutsidePrograms(described, chance, self._start),
        )
        conf = self.world.site.conf
        kept = (
            *(conf.slurmd_spool_dir, conf.state_save_location, conf.job_checkpoint_dir),
            "/etc/slurm",
        )
        disk.open_to_machine(kept, self.world.site.users)
        self.server = Server(self.world, kernel, folder)
        self.machine = self.server.machine = Machine(
            kernel,
            disk,
            folder,
            token=secrets.token_hex(8),
            find_srun=self.server.find_srun,
        )
        self._status = OK
        self.log = TraceLog(folder / TRACE, self.world)
        self.server.control.flush = self.log.flush

    def _start(self, task: OutsideTask) -> RealTask:
        return self.machine.start(task)

    def serve(self, ready: Callable[[], None]) -> int:
        """Serve until a signal or a client ends it; return the exit status.

        Then nothing is left that it has started.
        """
        path = self.folder / SOCKET
        with suppress(FileNotFoundError):
            path.unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177 if os.geteuid() else 0o111)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(4096)
        self.world.background += [
            lambda: self.kernel.start_outside(self.server.listen, listener),
            lambda: self.kernel.start_outside(self._heed_signals),
            self.machine.sweep,
            lambda: self.kernel.start_outside(self._tell_ready, ready),
        ]
        try:
            self.world.run()
        finally:
            with suppress(OSError):
                path.unlink()
            linux.kill_all_below(os.getpid())
            self.log.end()
        return self._status

    async def _tell_ready(self, ready: Callable[[], None]) -> None:
        """Tell that clients may come, as soon as the nodes have registered."""
        event = trio.Event()
        nodes = self.world.ctld.nodes

        def look() -> None:
            if all(node.usable or node.base.name == "DOWN" for node in nodes):
                self.kernel.poke(event)
            else:
                self.kernel.call_in_background(self.kernel.now_us + 1000, look)

        self.kernel.call_in_background(self.kernel.now_us + 1000, look)
        await event.wait()
        ready()

    async def _heed_signals(self) -> None:
        """End the cluster when it is told to."""
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                self._status = INTERRUPTED if number == signal.SIGINT else OK
                self.kernel.finish()
                return


def _as_served(scenario: Scenario, now_s: float) -> Scenario:
    """Return a scenario whose clocks show the time of day, and whose users are this machine's."""
    users = {user.name: user for user in scenario.users}
    uid = os.geteuid()
    if uid:
        me = machine_user(uid)
        known = users.get(me.name)
        if known is not None:
            users[me.name] = attrs.evolve(known, uid=uid, gid=me.gid)
        elif uid not in {user.uid for user in users.values()}:
            users[me.name] = UserSpec(name=me.name, uid=uid, gid=me.gid)
    return attrs.evolve(
        scenario,
        users=tuple(users.values()),
        start_time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s)),
        start_epoch_s=int(now_s),
    )
