"""The appliance: its storage, and the programs through which slurmctld reaches it."""

from collections.abc import Iterable
from typing import Final

from simctl.appliance import dw_wlm_cli, generic_scripts
from simctl.appliance.spec import ApplianceSpec, Function, FunctionSpec
from simctl.appliance.storage import Storage
from simctl.appliance.store import RefusedError
from simctl.kernel.disk import Disk
from simctl.kernel.procs import wait_status
from simctl.kernel.turns import Kernel
from simctl.site import ScriptCall, ScriptMain
from simctl.wire.burst_buffer_conf import FOLDER, file_name
from simctl.wire.site_files import BURST_BUFFER, read_site_file

DW_WLM_CLI: Final = "/opt/cray/dw_wlm/default/bin/dw_wlm_cli"
DWSTAT: Final = "/opt/cray/dws/default/bin/dwstat"
"""What burst_buffer/datawarp runs where burst_buffer.conf names nothing else."""

_SCRIPT_KEYS: Final = (
    *("GetSysState", "GetSysStatus"),
    *("StartStageIn", "StartStageOut", "StopStageIn", "StopStageOut"),
)
_DOWN: Final = "cannot connect to the burst buffer appliance\n"


class Appliance(Storage):
    """What daemons reach of the appliance; see `Storage` for its arguments.

    Args:
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
        super().__init__(spec, kernel=kernel, disk=disk, host=host, start_s=start_s)
        self.up = True if spec.up is None else spec.up
        self._described = dict(spec.functions or {})
        self._used: dict[str, set[int]] = {}
        self._paths = {DW_WLM_CLI, DWSTAT}
        self._read: dict[str, str] = {}
        names = dict.fromkeys(("", *plugin_names))
        self._conf_files = [f"{FOLDER}/{file_name(name)}" for name in names]

    def change(self, spec: ApplianceSpec) -> None:
        """Apply what the scenario changes in the middle of the run."""
        super().change(spec)
        if spec.up is not None:
            self.up = spec.up
        for name, described in (spec.functions or {}).items():
            self._described[name] = described
            self._used.pop(name, None)

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
        return self.disk.read(path, host=self.host) or ""

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
        except OSError as error:
            # A disk that takes nothing is the program's trouble.
            call.write(1, f"{error.filename}: {error.strerror}\n")
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


def _function(appliance: Appliance, call: ScriptCall) -> Function:
    """Take a call apart, by the one or the other way of calling."""
    if "--function" in call.argv:
        return dw_wlm_cli.function(appliance, call)
    return generic_scripts.function(appliance, call)


def _line(text: str) -> str:
    """Return a text that ends its line."""
    return text if not text or text.endswith("\n") else f"{text}\n"
