"""The folder of a served cluster: commands for PATH, the socket, scripts of jobs, the trace."""

import os
import shlex
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from simctl.status import InputError

COMMANDS: Final = (
    *("sacct", "sacctmgr", "salloc", "sattach", "sbatch", "scancel", "scontrol", "sinfo"),
    *("squeue", "srun", "sshare"),
)
MARK: Final = "SIMCTL_TASK"
"""The variable by which all that a task has started is found."""

SOCKET: Final = "socket"
TRACE: Final = "trace.jsonl"
_PYTHONS: Final = ("/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3")
_MOST_PATH: Final = 100
"""How long the path of a unix socket may be."""


def prepare(folder: Path) -> None:
    """Put the commands and what they start into a folder of the cluster's own.

    Raises:
        InputError: Its path is too long for a socket in it.
        OSError: It cannot be written.
    """
    if len(os.fsencode(folder / SOCKET)) > _MOST_PATH:
        raise InputError(
            f"serve: {folder / SOCKET}: the path of a socket has {_MOST_PATH} bytes at most; "
            "name a shorter --dir"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not os.geteuid():
        # All users may talk to a root's cluster, and jobs of all users run in it.
        folder.chmod(folder.stat().st_mode | 0o055)
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "spool").mkdir(exist_ok=True)
    client = folder / "client.py"
    client.write_bytes((Path(__file__).parent / "client.py").read_bytes())
    python = interpreter()
    for name in COMMANDS:
        script = folder / "bin" / name
        words = shlex.join([python, "-IS", str(client), str(folder / SOCKET), name])
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        script.chmod(0o755)


def interpreter() -> str:
    """Return the Python that commands start with: where all users may run them, one they can."""
    own = os.path.realpath(sys.executable)
    if os.geteuid() or _open_to_all(own):
        return own
    return next((other for other in _PYTHONS if _open_to_all(os.path.realpath(other))), own)


def _open_to_all(path: str) -> bool:
    try:
        return all(each.stat().st_mode & stat.S_IXOTH for each in (Path(path), *Path(path).parents))
    except OSError:
        return False


def clear(folder: Path, *, whole: bool) -> None:
    """Remove what `prepare` and the server have made, with *whole* the trace as well.

    What else lies in the folder stays.
    """
    made = (SOCKET, "client.py", *(f"bin/{name}" for name in COMMANDS))
    for name in (*made, TRACE) if whole else made:
        with suppress(OSError):
            (folder / name).unlink()
    spool = folder / "spool"
    for script in spool.glob("*/*"):
        with suppress(OSError):
            script.unlink()
    for each in (*spool.glob("*"), spool, folder / "bin", folder):
        with suppress(OSError):
            each.rmdir()


def is_served(folder: Path) -> bool:
    """Return whether a server answers in a folder."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(folder / SOCKET))
        except OSError:
            return False
    return True
