"""A real folder as StateSaveLocation: slurmctld finds what lies in it, and what it saves stays.

The files are read once, before the run begins; every change of one is written through at once.
"""

import re
from pathlib import Path
from typing import Final

import attrs

from simctl.files import read_bytes
from simctl.kernel.disk import Disk
from simctl.limits import STATE_BYTES, STATE_FILES
from simctl.wire.state_files import FILES, read_file

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_OWN_MODE: Final = 0o600


class StateFolderError(Exception):
    """A folder cannot hold slurmctld's state; the text says why."""


@attrs.frozen
class StateFolder:
    """A folder of the real machine."""

    path: Path

    def load(self, disk: Disk, host: str, location: str, uid: int) -> str:
        """Put the folder's files where slurmctld looks for them; return the name of this run.

        Raises:
            StateFolderError: It is no folder, or holds what is no state.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            found = sorted(each for each in self.path.iterdir() if not each.name.startswith("."))
            if len(found) > STATE_FILES:
                raise StateFolderError(
                    f"{self.path} holds {len(found)} files; slurmctld's state is at most "
                    f"{STATE_FILES}: name a folder of its own"
                )
            for each in found:
                if not each.is_file():
                    raise StateFolderError(f"{each} is no file; slurmctld's state is files alone")
                data = read_bytes(each, STATE_BYTES)
                disk.place_file(host, f"{location}/{each.name}", data, uid)
        except OSError as error:
            where = error.filename or self.path
            raise StateFolderError(f"{where}: {error.strerror or error}") from error
        disk.mirror(host, location, self._write)
        runs = [self._run_of(disk, host, f"{location}/{name}", name) for name in FILES]
        return str(1 + max(runs))

    @staticmethod
    def _run_of(disk: Disk, host: str, path: str, name: str) -> int:
        """Return which run has written a state file; runs are counted by those that wrote one."""
        view = disk.view(host, 0)
        for each in (path, f"{path}.old"):
            if view.exists(each):
                header = read_file(view.read(each), name).header
                if header is not None and _NUMBER.fullmatch(header.run):
                    return int(header.run)
        return 0

    def _write(self, name: str, data: bytes | None) -> None:
        """Write or remove a file of the folder."""
        where = self.path / name
        if "/" in name:
            return
        if data is None:
            where.unlink(missing_ok=True)
            return
        beside = self.path / f".{name}.tmp"
        beside.write_bytes(data)
        beside.chmod(_OWN_MODE)
        beside.replace(where)
