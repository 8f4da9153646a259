"""The storage of the appliance: its pools, what they hold, and the stages that move data.

It stands outside of Slurm: what it holds survives every restart of slurmctld.
"""

from collections.abc import Sequence

import attrs

from simctl.appliance.spec import DEFAULT_US, FOREVER_US, ApplianceSpec, FunctionSpec, PoolSpec
from simctl.appliance.store import Buffer, RefusedError, Store
from simctl.kernel.bandwidth import Bandwidth
from simctl.kernel.disk import Disk
from simctl.kernel.threads import Thread
from simctl.kernel.turns import Kernel
from simctl.wire.ids import SECOND


@attrs.define(eq=False)
class Stage:
    """A stage under way, which a plugin may stop."""

    thread: Thread
    stopped: bool = False


class Storage:
    """Pools, buffers and one bandwidth, in virtual time.

    Args:
        spec: What the scenario says of it at the start.
        kernel: Virtual time.
        disk: The simulated disks.
        host: slurmctld's, where the files are that are staged.
        start_s: What clocks show at virtual time 0.
    """

    def __init__(
        self, spec: ApplianceSpec, *, kernel: Kernel, disk: Disk, host: str, start_s: int
    ) -> None:
        self.kernel = kernel
        self.disk = disk
        self.host = host
        self._start_s = start_s
        self.store = Store(spec.pools or (PoolSpec(),))
        self.generic_store = self.store.beside()
        """What scripts of burst_buffer/generic hold, in the same pools under tokens of its own."""
        self._bandwidth = Bandwidth(kernel, spec.bandwidth or 0)
        self._data = dict(spec.data or {})
        self._stages: dict[Buffer, Stage] = {}

    def change(self, spec: ApplianceSpec) -> None:
        """Apply what the scenario changes in the middle of the run."""
        if spec.pools is not None:
            self.store.resize(spec.pools)
        if spec.bandwidth is not None:
            self._bandwidth.change(spec.bandwidth)
        self._data.update(spec.data or {})

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
        if not own and (not sizes or (self._bandwidth.per_s and min(sizes) >= 0)):
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
            if self._bandwidth.per_s and not stage.stopped:
                known = sum(size for size in sizes if size > 0)
                await self._bandwidth.move(known, lambda: stage.stopped)
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
        """Return the bytes of what is staged from or to a path; -1 if that is not known."""
        given = self._data.get(path, self._data.get(path.rstrip("/")))
        if given is not None:
            return given
        text = self.disk.read(path, host=self.host) if path.startswith("/") else None
        return -1 if text is None else len(text.encode())
