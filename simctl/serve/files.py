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
_BIN: Final = "bin"
_SPOOL: Final = "spool"
_CLIENT: Final = "client.py"
_OWN_CLIENT: Final = Path(__file__).parent / _CLIENT
_START: Final = "#!/bin/sh\nexec "
_MADE: Final = (SOCKET, _CLIENT, _BIN, _SPOOL, *(f"{_BIN}/{name}" for name in COMMANDS))
"""What a cluster makes in its folder, the trace aside."""

TRACE: Final = "trace.jsonl"
_PYTHONS: Final = ("/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3")
_MOST_PATH: Final = 100
"""How long the path of a unix socket may be."""


def prepare(folder: Path) -> None:
    """Put the commands and what they start into a folder of the cluster's own.

    Raises:
        InputError: Its path is too long for a socket in it, or another's files lie in their place.
        OSError: It cannot be written.
    """
    if len(os.fsencode(folder / SOCKET)) > _MOST_PATH:
        raise InputError(
            f"serve: {folder / SOCKET}: the path of a socket has {_MOST_PATH} bytes at most; "
            "name a shorter --dir"
        )
    if folder.exists() and not folder.is_dir():
        raise InputError(f"serve: {folder} is there, and is no folder")
    folder.mkdir(parents=True, exist_ok=True)
    taken = next((name for name in _MADE if _is_taken(folder, name)), None)
    if taken is not None:
        raise InputError(
            f"serve: {folder / taken} is there already, and is none that simctl made; it is left "
            "alone: name another --dir"
        )
    if not os.geteuid() and {each.name for each in folder.iterdir()} <= {*_MADE, TRACE}:
        # All users may talk to a root's cluster, and jobs of all users run in it.
        folder.chmod(folder.stat().st_mode | 0o055)
    (folder / _BIN).mkdir(exist_ok=True)
    (folder / _SPOOL).mkdir(exist_ok=True)
    client = folder / _CLIENT
    client.write_bytes(_OWN_CLIENT.read_bytes())
    python = interpreter()
    for name in COMMANDS:
        script = folder / _BIN / name
        words = shlex.join([python, "-IS", str(client), str(folder / SOCKET), name])
        script.write_text(f'{_START}{words} "$@"\n', errors="surrogateescape")
        script.chmod(0o755)


def _is_taken(folder: Path, name: str) -> bool:
    """Return whether another's file has the name of what a cluster makes, or a link its place."""
    path = folder / name
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    if name == SOCKET:
        return not stat.S_ISSOCK(mode)
    if name in (_BIN, _SPOOL):
        ours = (folder / _CLIENT).exists() or name == _BIN or not any(path.iterdir())
        return not (stat.S_ISDIR(mode) and ours)
    start = _START if name != _CLIENT else _OWN_CLIENT.read_text(encoding="utf-8")[:80]
    return not (stat.S_ISREG(mode) and path.read_bytes().startswith(start.encode()))


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
    for name in (*_MADE, TRACE) if whole else _MADE:
        with suppress(OSError):
            (folder / name).unlink()
    spool = folder / _SPOOL
    for script in spool.glob("*/*"):
        with suppress(OSError):
            script.unlink()
    for each in (*spool.glob("*"), spool, folder / _BIN, folder):
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
