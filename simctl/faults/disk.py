"""What goes wrong with files and disks: damage, no room, nothing that could be changed."""

from collections.abc import Callable
from typing import Final

from simctl.faults.daemons import Daemons, Deeds
from simctl.kernel.disk import flipped
from simctl.scenario.faults import CorruptFault, DiskFault
from simctl.wire.state_files import VERSION, with_header

_FOREIGN: Final = "elsewhere"
"""The cluster that a file is made to be of."""

_WORD: Final = 4


class DiskInjector:
    """Damages files, and disks for a while; *miss* is told of a fault that meets nothing."""

    def __init__(self, daemons: Daemons, miss: Callable[[str, str], None], *, seed: int) -> None:
        self._site = daemons.site
        self._miss = miss
        self._seed = seed
        self._flips = 0
        self._until_us: dict[str, int] = {}
        self.deeds: Deeds = {
            CorruptFault: self._corrupt,
            DiskFault: self._disk,
        }

    def _corrupt(self, fault: CorruptFault, text: str) -> None:
        """Damage a file where it lies; its next reader finds it so."""
        disk = self._site.disk
        path = fault.file
        if not path.startswith("/"):
            path = f"{self._site.conf.state_save_location}/{path}"
        try:
            data = disk.view(fault.host, 0).read(path)
        except OSError as error:
            self._miss(text, f"{path}: {error.strerror}")
            return
        damaged = self._damaged(fault.how, data)
        if damaged == data:
            self._miss(text, f"{path} has nothing to be damaged like that")
            return
        disk.overwrite(fault.host, path, damaged)

    def _damaged(self, how: str, data: bytes) -> bytes:
        if how == "truncate":
            return data[: len(data) // 2]
        if how == "flip":
            self._flips += 1
            return flipped(data, f"{self._seed}:{self._flips}")
        if how == "version":
            changed = with_header(data, simctl_state=VERSION + 1)
            return changed or bytes(byte ^ 0xFF for byte in data[:_WORD]) + data[_WORD:]
        changed = with_header(data, cluster=_FOREIGN)
        return changed or data.replace(self._site.conf.cluster_name.encode(), _FOREIGN.encode())

    def _disk(self, fault: DiskFault, _: str) -> None:
        """Let a disk be full or read-only; of two such faults the later one counts."""
        kernel = self._site.kernel
        self._site.disk.settle(fault.host)
        self._site.disk.troubles[fault.host] = fault.how
        self._until_us.pop(fault.host, None)
        if fault.for_us is not None:
            until_us = self._until_us[fault.host] = kernel.now_us + fault.for_us
            kernel.call_at(until_us, self._heal, (fault.host, until_us))

    def _heal(self, ends: tuple[str, int]) -> None:
        host, until_us = ends
        if self._until_us.get(host) == until_us:
            del self._until_us[host]
            del self._site.disk.troubles[host]
            self._site.trace.note("fault", "fault", args={"fault": f"disk {host} well again"})
