"""A real folder as StateSaveLocation: slurmctld finds what lies in it, and what it saves stays.

The files are read once, before the run begins; every change of one is written through at once.
"""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import attrs

from simctl.files import read_bytes
from simctl.kernel.disk import Disk
from simctl.limits import STATE_BYTES, STATE_FILES
from simctl.wire.state_files import FILES, NO_HEADER, read_file

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_HOLDER: Final = re.compile(r"[0-9]{0,19}\n?")
_LONGEST_HOLDER: Final = 21
_OWN_MODE: Final = 0o600


class StateFolderError(Exception):
    """A folder cannot hold slurmctld's state; the text says why."""


@attrs.frozen
class StateFolder:
    """A folder of the real machine."""

    path: Path

    def lock(self) -> IO[str] | None:
        """Keep other runs out while the file that is returned is open; None where nothing can.

        The kernel lets go of the lock of a process that has died.

        Raises:
            StateFolderError: Another run has the folder, or it cannot be written.
        """
        try:
            import fcntl  # noqa: PLC0415 - Windows has none
        except ImportError:
            return None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = self._lock_file()
        except FileExistsError as error:
            raise StateFolderError(f"{self.path} is there, and is no folder") from error
        except OSError as error:
            where = error.filename or self.path
            raise StateFolderError(f"{where}: {error.strerror or error}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read(20).strip()
            file.close()
            raise StateFolderError(
                f"{self.path} is in use by another run, process {holder or 'unknown'}; "
                "wait for its end, or name another folder"
            ) from error
        with suppress(OSError):
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()}\n")  # noqa: TID251 - a real process has a real folder
            file.flush()
        return file

    def _lock_file(self) -> IO[str]:
        """Open the file of the lock; what another has put there in its place is left alone.

        Raises:
            OSError: It cannot be opened.
            StateFolderError: It is no lock of simctl's.
        """
        path = self.path / ".lock"
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        number = os.open(path, flags, 0o666)
        if stat.S_ISREG(os.fstat(number).st_mode):
            file = os.fdopen(number, "r+", encoding="ascii", errors="replace")
            if _HOLDER.fullmatch(file.read(_LONGEST_HOLDER)):
                return file
            file.close()
        else:
            os.close(number)
        raise StateFolderError(f"{path} is no lock of simctl's; name another folder")

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
        """Return which run has written a state file; runs are counted by those that wrote one.

        Raises:
            StateFolderError: It is no state file.
        """
        view = disk.view(host, 0)
        for each in (path, f"{path}.old"):
            if view.exists(each):
                found = read_file(view.read(each), name)
                if found.problem == NO_HEADER:
                    raise StateFolderError(
                        f"{name} of this folder is no state file of slurmctld's: {NO_HEADER}; "
                        "name another folder, or remove what is in this one"
                    )
                header = found.header
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
        # A link of that name would lead out of the folder.
        beside.unlink(missing_ok=True)
        with beside.open("xb") as file:
            file.write(data)
        beside.chmod(_OWN_MODE)
        beside.replace(where)
