"""What Linux offers to find every process that a served cluster has started, and to end it."""

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_ROUNDS: Final = 200
_PAUSE_S: Final = 0.02


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (a child subreaper)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: int, parent: int) -> None:
    """Have a signal sent to this process when its parent ends, or now if that is gone already."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def processes() -> dict[int, int]:
    """Return the parent of each process that has not ended; what ends meanwhile is left out."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            found[int(name)] = int(fields[1])
    return found


def below(root: int, parents: dict[int, int]) -> list[int]:
    """Return the descendants of a process, nearest first."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found = list(children.get(root, ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def is_marked(pid: int, mark: bytes) -> bool:
    """Return whether a process was given a variable (``NAME=value``) in its environment.

    A *mark* that ends with a zero byte is the whole of it, another one only its beginning.
    """
    try:
        return b"\0" + mark in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def kill(pids: Iterable[int], number: int = signal.SIGKILL) -> None:
    """Send a signal to processes; those that are gone already are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def reap() -> None:
    """Let go of all children that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def kill_all_below(root: int, mark: bytes) -> int:
    """Kill every descendant of this process, and every marked process, however fast they fork.

    It stops them all before it kills any, so that none sees another go and starts one more. Return
    how many were left.
    """
    own = os.getpid()
    for _ in range(_ROUNDS):
        parents = processes()
        known = below(root, parents)
        left = known + [
            pid for pid in sorted(parents.keys() - {own, *known}) if is_marked(pid, mark)
        ]
        if not left:
            return 0
        kill(left, signal.SIGSTOP)
        kill(left)
        reap()
        time.sleep(_PAUSE_S)
    return len(left)
