"""The appliance: one store, one bandwidth, and the programs through which slurmctld reaches it.

It stands outside of Slurm: what it holds survives every restart of slurmctld.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from simctl.appliance import dw_wlm_cli, generic_scripts
from simctl.appliance.spec import (
    DEFAULT_US,
    FOREVER_US,
    ApplianceSpec,
    Function,
    FunctionSpec,
    PoolSpec,
)
from simctl.appliance.store import Buffer, RefusedError, Store
from simctl.kernel.bandwidth import Link
from simctl.kernel.disk import Disk
from simctl.kernel.procs import wait_status
from simctl.kernel.threads import Thread
from simctl.kernel.turns import Kernel
from simctl.site import ScriptCall, ScriptMain
from simctl.wire.burst_buffer_conf import FOLDER, file_name
from simctl.wire.ids import SECOND
from simctl.wire.site_files import BURST_BUFFER, read_site_file

DW_WLM_CLI: Final = "/opt/cray/dw_wlm/default/bin/dw_wlm_cli"
DWSTAT: Final = "/opt/cray/dws/default/bin/dwstat"
"""What burst_buffer/datawarp runs where burst_buffer.conf names nothing else."""

_SCRIPT_KEYS: Final = (
    *("GetSysState", "GetSysStatus"),
    *("StartStageIn", "StartStageOut", "StopStageIn", "StopStageOut"),
)
_DOWN: Final = "cannot connect to the burst buffer appliance\n"


@attrs.define(eq=False)
class Stage:
    """A stage under way, which somebody may stop."""

    thread: Thread
    stopped: bool = False


class Appliance:
    """The state of the appliance, and what is common to all that it is asked for.

    Args:
        spec: What the scenario says of it at the start.
        kernel: Virtual time.
        disk: The simulated disks.
        host: slurmctld's, where burst_buffer.conf is.
        start_s: What clocks show at virtual time 0.
        plugin_names: Plugins that may have a burst_buffer_NAME.conf of their own.
    """

    def __init__(
        self,
        spec: ApplianceSpec,
        *,
        kernel: Kernel,
        disk: Disk,
        host: str,
        start_s: int,
        plugin_names: Iterable[str],
    ) -> None:
        self.kernel = kernel
        self.disk = disk
        self._start_s = start_s
        self.store = Store(spec.pools or (PoolSpec(),))
        self.generic_store = self.store.beside()
        """What scripts of burst_buffer/generic hold, in the same pools under tokens of its own."""
        self.up = True if spec.up is None else spec.up
        self._host = host
        self._link = Link(kernel, spec.bandwidth or 0)
        self._data = dict(spec.data or {})
        self._described = dict(spec.functions or {})
        self._used: dict[str, set[int]] = {}
        self._stages: dict[Buffer, Stage] = {}
        self._paths = {DW_WLM_CLI, DWSTAT}
        self._read: dict[str, str] = {}
        names = dict.fromkeys(("", *plugin_names))
        self._conf_files = [f"{FOLDER}/{file_name(name)}" for name in names]

    def change(self, spec: ApplianceSpec) -> None:
        """Take in what the scenario changes in the middle of the run."""
        if spec.pools is not None:
            self.store.resize(spec.pools)
        if spec.bandwidth is not None:
            self._link.change(spec.bandwidth)
        if spec.up is not None:
            self.up = spec.up
        self._data.update(spec.data or {})
        for name, described in (spec.functions or {}).items():
            self._described[name] = described
            self._used.pop(name, None)

    # Who asks, and for what.

    def paths(self) -> set[str]:
        """Return the paths that are programs of the appliance.

        Those that burst_buffer.conf has named earlier are: daemons may not have read it since.
        """
        for path in self._conf_files:
            if self._file(path) != self._read.get(path, ""):
                text = self._read[path] = self._file(path)
                values = read_site_file(BURST_BUFFER, text, path, self._file).values
                named = (values.get(key) for key in _SCRIPT_KEYS)
                self._paths.update(path for path in named if path)
        return self._paths

    def _file(self, path: str) -> str:
        return self.disk.read(path, host=self._host) or ""

    def answers(self, path: str) -> ScriptMain | None:
        """Return the program at *path*; None if it is none of the appliance's."""
        return self._run if path in self.paths() else None

    def beside(self, path: str, argv: tuple[str, ...]) -> generic_scripts.Beside | None:
        """Return what the appliance does beside a script that the scenario describes itself.

        None where the path is not the appliance's, or the script concerns no buffer.
        """
        concerns = argv[:1] and argv[0] in generic_scripts.WORDS and path in self.paths()
        return generic_scripts.Beside(self, argv) if concerns else None

    async def _run(self, call: ScriptCall) -> int:
        """Do what a call asks for; return its wait status."""
        if not self.up:
            call.write(1, _DOWN)
            return wait_status(1)
        function = _function(self, call)
        described = self._take(function.name, function.token)
        if described is not None and (described.exit or described.signal):
            await self.pass_us(self.fixed_us(function.name, described))
            call.write(1, _line(described.output))
            return described.signal or wait_status(described.exit)
        try:
            text = await function.answer(described)
        except RefusedError as error:
            call.write(1, f"{error}\n")
            return wait_status(1)
        call.write(1, text if described is None else text + _line(described.output))
        return 0

    def _take(self, function: str, token: str) -> FunctionSpec | None:
        """Return what is said of this call: of several items each is for one call."""
        items = self._described.get(function, ())
        used = self._used.setdefault(function, set())
        fitting = [place for place, item in enumerate(items) if item.token in ("", token)]
        if not fitting:
            return None
        place = next((place for place in fitting if place not in used), fitting[-1])
        used.add(place)
        return items[place]

    # Time.

    @property
    def clock_s(self) -> int:
        """Return what the appliance's clock shows."""
        return self._start_s + self.kernel.now_us // SECOND

    @staticmethod
    def fixed_us(function: str, described: FunctionSpec | None) -> int:
        """Return how long a function takes beyond moving bytes."""
        if described is not None and described.runs_us is not None:
            return described.runs_us
        return DEFAULT_US.get(function, 0)

    async def pass_us(self, length_us: int) -> None:
        """Let time pass."""
        while length_us >= FOREVER_US:
            await self.kernel.park("its end, which never comes")
        if length_us:
            await self.kernel.sleep_us(length_us)

    async def stage(
        self, function: str, buffer: Buffer, sizes: Sequence[int], described: FunctionSpec | None
    ) -> None:
        """Move data of these sizes, -1 for unknown ones, in or out of a buffer.

        With a bandwidth, what is known moves through it, and the function's own time is added where
        it is described or something is unknown; without one the function's own time is all.

        What the scenario describes takes its time, and ends as is said, whatever becomes of the
        buffer meanwhile.

        Raises:
            RefusedError: The buffer was taken away meanwhile.
        """
        own = described is not None and described.runs_us is not None
        fixed_us = self.fixed_us(function, described)
        if not own and (not sizes or (self._link.bandwidth and min(sizes) >= 0)):
            fixed_us = 0
        thread = self.kernel.current
        assert thread is not None
        stage = self._stages[buffer] = Stage(thread)
        try:
            until_us = self.kernel.now_us + fixed_us
            while self.kernel.now_us < until_us and (own or not stage.stopped):
                if fixed_us < FOREVER_US:
                    self.kernel.arm(until_us)
                await self.kernel.park("a stage to end")
            if self._link.bandwidth and not stage.stopped:
                known = sum(size for size in sizes if size > 0)
                await self._link.move(known, lambda: stage.stopped)
        finally:
            if self._stages.get(buffer) is stage:
                del self._stages[buffer]
        if stage.stopped and not own:
            raise RefusedError("token not found")

    def stop(self, buffer: Buffer) -> None:
        """Stop the stage of a buffer that is under way, if there is one."""
        stage = self._stages.pop(buffer, None)
        if stage is not None:
            stage.stopped = True
            self.kernel.wake(stage.thread)

    def size_of(self, path: str) -> int:
        """Return the bytes of what is staged from or to a path; -1 if nobody knows."""
        given = self._data.get(path, self._data.get(path.rstrip("/")))
        if given is not None:
            return given
        text = self.disk.read(path, host=self._host) if path.startswith("/") else None
        return -1 if text is None else len(text.encode())


def _function(appliance: Appliance, call: ScriptCall) -> Function:
    """Take a call apart, by the one or the other way of calling."""
    if "--function" in call.argv:
        return dw_wlm_cli.function(appliance, call)
    return generic_scripts.function(appliance, call)


def _line(text: str) -> str:
    """Return a text that ends its line."""
    return text if not text or text.endswith("\n") else f"{text}\n"
