"""The Federation adapters of one node, as their driver shows them: windows and their states.

A window belongs to the adapter, not to the process that loaded it: job_init of one process loads
it, postfini of another unloads it. Adapters have power of their own: a window that was loaded when
its node crashed is loaded still when the node is back, until an operator cleans it.
"""

import zlib
from typing import Final

import attrs

from simctl.plugin import SlurmError, disk

ESTATUS: Final = 3000
EADAPTER: Final = 3001
ENOADAPTER: Final = 3002
EBADMAGIC_FEDNODEINFO: Final = 3003
EBADMAGIC_FEDJOBINFO: Final = 3004
EBADMAGIC_FEDLIBSTATE: Final = 3005
EUNPACK: Final = 3006
EHOSTNAME: Final = 3007
ENOTSUPPORTED: Final = 3008
EVERSION: Final = 3009
EWINDOW: Final = 3010
EUNLOAD: Final = 3011
ESTATEFILE: Final = 3012

TEXTS: Final = {
    ESTATUS: "Adapter window is in an unexpected state",
    EADAPTER: "Adapter of this name is not on the node",
    ENOADAPTER: "Node has no adapters",
    EBADMAGIC_FEDNODEINFO: "Bad magic in federation nodeinfo",
    EBADMAGIC_FEDJOBINFO: "Bad magic in federation jobinfo",
    EBADMAGIC_FEDLIBSTATE: "Bad magic in federation libstate",
    EUNPACK: "Packed federation record is damaged",
    EHOSTNAME: "Node has not told of its adapters",
    ENOTSUPPORTED: "Federation does not support this",
    EVERSION: "Federation record or driver is of another version",
    EWINDOW: "No free windows on an adapter",
    EUNLOAD: "Adapter window could not be unloaded",
    ESTATEFILE: "File of federation libstate cannot be read or written",
}
"""What this plugin says of its error numbers."""

UNLOADED: Final = 9
LOADED: Final = 10
DRIVER_VERSION: Final = 100
"""The version of the adapters' driver that this plugin was made for."""

_STATE: Final = "/var/lib/sni"
_CONF: Final = "/etc/federation.conf"


@attrs.frozen(kw_only=True)
class Settings:
    """What /etc/federation.conf says: the adapters, and the driver's version."""

    adapters: tuple[str, ...] = ("sni0", "sni1")
    driver_version: int = DRIVER_VERSION

    @classmethod
    def here(cls) -> "Settings":
        """Read the file of the calling process's host, if it has one."""
        files = disk()
        if not files.exists(_CONF):
            return cls()
        adapters: list[str] = []
        version = DRIVER_VERSION
        for line in files.read(_CONF).decode(errors="replace").splitlines():
            for word in line.partition("#")[0].split():
                key, _, value = word.partition("=")
                if key.casefold() == "adaptername":
                    adapters += filter(None, value.split(","))
                elif key.casefold() == "driverversion" and value.isdecimal():
                    version = int(value)
        return cls(
            adapters=tuple(dict.fromkeys(adapters)) or cls().adapters, driver_version=version
        )


class Driver:
    """The windows of the node that the calling process runs on."""

    def __init__(self) -> None:
        self._disk = disk()

    def loaded(self, adapter: str) -> dict[int, int]:
        """Return the windows of an adapter that are loaded, each with its job's key.

        Raises:
            SlurmError: ESTATUS: the driver holds something else.
        """
        path = f"{_STATE}/{adapter}"
        if not self._disk.exists(path):
            return {}
        try:
            pairs = (line.split() for line in self._disk.read_text(path).splitlines())
            return {int(window): int(key) for window, key in pairs}
        except ValueError as error:
            raise SlurmError(ESTATUS, f"windows of {adapter}") from error

    def load(self, adapter: str, window: int, key: int) -> None:
        """Load a window for a job.

        Raises:
            SlurmError: It is loaded already.
        """
        windows = self.loaded(adapter)
        if window in windows:
            raise SlurmError(ESTATUS, f"window {window} of {adapter}")
        self._keep(adapter, {**windows, window: key})

    def unload(self, adapter: str, window: int, key: int) -> None:
        """Unload a window, if this job has loaded it."""
        windows = self.loaded(adapter)
        if windows.get(window) == key:
            del windows[window]
            self._keep(adapter, windows)

    def clean(self, adapter: str) -> list[int]:
        """Unload all windows of an adapter, whichever step has them; return which were loaded."""
        try:
            windows = self.loaded(adapter)
        except SlurmError:
            windows = {}
        if windows or self._disk.exists(f"{_STATE}/{adapter}"):
            self._keep(adapter, {})
        return sorted(windows)

    def _keep(self, adapter: str, windows: dict[int, int]) -> None:
        lines = [f"{window} {key}\n" for window, key in sorted(windows.items())]
        try:
            if not self._disk.is_dir(_STATE):
                self._disk.mkdir(_STATE)
            self._disk.write(f"{_STATE}/{adapter}", "".join(lines))
        except OSError as error:
            raise SlurmError(ESTATUS, str(error)) from error


def lid_of(host: str, index: int, adapters: int) -> int:
    """Return the local id of a host's adapter: where messages to it are sent."""
    digits = host[len(host.rstrip("0123456789")) :]
    number = int(digits) if digits else zlib.crc32(host.encode())
    return (number * adapters + index) & 0xFFFF
