"""A served cluster as a whole: its folder, its World, its server, and its end."""

import gc
import os
import resource
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import trio

from simctl.scenario.model import Scenario, UserSpec
from simctl.serve import linux
from simctl.serve.clock import PacedKernel
from simctl.serve.control import Control
from simctl.serve.disk import MachineDisk
from simctl.serve.files import MARK, SOCKET, TRACE
from simctl.serve.log import TraceLog
from simctl.serve.machine import Machine
from simctl.serve.recording import Recorder
from simctl.serve.server import Server, machine_user
from simctl.status import INTERRUPTED, OK, InputError
from simctl.world import World

if TYPE_CHECKING:
    from simctl.serve.web import WebPage

_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ServedCluster:
    """A cluster that is served from a folder."""

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        *,
        token: str,
        model: str = "",
        scale: float = 1.0,
        record: str | None = None,
        web: bool = False,
        force: bool = False,
    ) -> None:
        """Make it; `serve` sets it going.

        Raises:
            PluginError: Its plugins are wrong.
            InputError: The recording cannot be written, or the page not be served.
            OSError: The trace cannot be written.
        """
        now_s = time.time()
        self.folder = folder
        self._token = token
        self.scenario = _as_served(scenario, now_s, model)
        self.kernel = kernel = PacedKernel(scale=scale, begin_us=int(now_s % 1 * 1_000_000))
        self.disk = disk = MachineDisk()
        self.world = World(
            self.scenario,
            model=model,
            watchdog_s=0,
            orderings=False,
            kernel=kernel,
            disk=disk,
            outside=True,
        )
        conf = self.world.site.conf
        kept = (
            *(conf.slurmd_spool_dir, conf.state_save_location, conf.job_checkpoint_dir),
            "/etc/slurm",
        )
        disk.open_to_machine(kept, self.world.site.users)
        disk.hosts, disk.now_us = self.world.hosts, lambda: kernel.now_us
        # A table of all jobs is not asked for in the end, which may never come.
        self.world.ctld.take_row = lambda _: None
        self.machine = Machine(kernel, disk, folder, token=token)
        _open_many_files()
        self.server = Server(self.world, kernel, self.machine, folder)
        self.machine.find_srun = self.server.find_srun
        self.machine.inject = self.server.inject
        self.world.outside.run_task = self.machine.start
        self._status = OK
        self._told = 0
        """The signal that ends it."""

        self.log = TraceLog(folder / TRACE, self.world, self.server.log)
        self.server.control.flush = self.log.flush
        self.page = _page(self.world, kernel, self.server.control) if web else None
        self.recorder = None if record is None else self._recorder(record, force=force)

    def _recorder(self, path: str, *, force: bool) -> Recorder:
        """Return what records what is done to the cluster, and have it told of that."""
        try:
            recorder = Recorder(
                Path(path),
                self.scenario,
                model=self.world.model,
                force=force,
                tell=self.server.log,
            )
        except OSError as error:
            raise InputError(f"--record: {path}: {error.strerror or error}") from error
        self.server.recorder = self.disk.recorder = recorder
        self.server.control.record = recorder.act
        return recorder

    def serve(self, ready: Callable[[], None], *, until_eof: bool = False) -> int:
        """Serve until a signal, a client or the end of standard input ends it; return the status.

        Then nothing is left that it has started.
        """
        for number in _ENDS:
            signal.signal(number, self._note_signal)
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
            _collect_soon,
            lambda: self.kernel.start_outside(self._tell_ready, ready),
        ]
        if until_eof:
            self.world.background.append(lambda: self.kernel.start_outside(self._heed_input))
        if self.page is not None:
            page = self.page
            self.world.background.append(lambda: self.kernel.start_outside(page.run))
            self.server.log(f"its page is {page.address}")
        try:
            self.world.run()
        finally:
            with suppress(OSError):
                path.unlink()
            if self.page is not None:
                self.page.end()
            linux.kill_all_below(os.getpid(), f"{MARK}={self._token}:".encode())
            self.log.end()
            if self.recorder is not None:
                self.recorder.end(self.kernel.now_us)
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
        """End the cluster when it is told to, which may have been before it was there."""
        with trio.open_signal_receiver(*_ENDS) as signals:
            while not self._told:
                self._told = await anext(signals)
        self._status = INTERRUPTED if self._told == signal.SIGINT else OK
        self.kernel.finish()

    async def _heed_input(self) -> None:
        """End the cluster when no process holds the other end of standard input any more."""
        with suppress(OSError):
            while True:
                with suppress(PermissionError):  # files and devices are readable at once
                    await trio.lowlevel.wait_readable(0)
                if not os.read(0, 1 << 16):
                    break
        self.kernel.finish()

    def _note_signal(self, number: int, _: object) -> None:
        self._told = number


def _page(world: World, kernel: PacedKernel, control: Control) -> "WebPage":
    # It knows much of the REPL, which takes a while to import.
    from simctl.serve.web import WebPage  # noqa: PLC0415

    return WebPage(world, kernel, control)


def _open_many_files() -> None:
    """Let this process have as many files open as it may: each client is one, each task four."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _collect_soon() -> None:
    """Have garbage collected as it comes: a run has all of it at its end, and this one has none."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def _as_served(scenario: Scenario, now_s: float, model: str) -> Scenario:
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
    saves = scenario.options.state_saves
    if saves == "auto":
        # In model guide a crash strikes as if all had just been written, and writing all of it for
        # each of thousands of submissions would take most of the time.
        saves = "always" if (model or scenario.model) == "modern" else "never"
    return attrs.evolve(
        scenario,
        users=tuple(users.values()),
        options=attrs.evolve(scenario.options, state_saves=saves),
        start_time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s)),
        start_epoch_s=int(now_s),
    )
