"""What Slurm tells of an option to a cli_filter.lua: a text of its own making, given or not.

Slurm reads what is typed into numbers and flags, and writes them out again when a script asks. So
an option that was not given has the text of its default, and one that the command lacks says so.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from simctl.plugin import NO_VAL
from simctl.plugins.lua.machine import minutes

ELSEWHERE: Final = "invalid-context"
"""The text of an option that belongs to another command."""


def _each(names: str, text: str | None) -> dict[str, str | None]:
    return dict.fromkeys(names.split(), text)


_DEFAULTS: Final[Mapping[str, str | None]] = {
    **_each("cores-per-socket sockets-per-node threads-per-core nice tasks-per-node", "-2"),
    **_each("ntasks-per-core ntasks-per-node ntasks-per-socket ntasks-per-tres", "-2"),
    **_each("ntasks-per-gpu", "-2"),
    **_each("cpus-per-gpu cpus-per-task immediate priority quiet verbose", "0"),
    **_each("contiguous hold overcommit reboot no-kill spread-job use-min-nodes", "unset"),
    **_each("thread-spec exclusive oversubscribe extra-node-info gres-flags mem-bind", "unset"),
    **_each("core-spec kill-on-invalid-dep switches", "unset"),
    **_each("begin deadline", "Unknown"),
    "mincpus": "-1",
    "ntasks": "1",
    "nodes": "1-0",
    "signal": "0@0",
    "mail-type": "NONE",
    "profile": "NotSet",
}
"""The texts of options that were not given; the others are nil."""

_OWN: Final[Mapping[tuple[str, ...], Mapping[str, str | None]]] = {
    ("sbatch",): {
        **_each("array batch export-file wrap", None),
        **_each("ignore-pbs parsable requeue no-requeue wait", "unset"),
    },
    ("salloc",): {**_each("bell no-bell", "bell-after-delay"), "no-shell": "unset"},
    ("srun",): {
        **_each("accel-bind bcast bcast-exclude cpu-bind epilog het-group pack-group mpi", None),
        **_each("prolog send-libs task-epilog task-prolog", None),
        **_each("disable-status exact interactive label multi-prog no-allocate overlap", "unset"),
        **_each("preserve-env quit-on-interrupt resv-ports unbuffered whole", "unset"),
        "compress": "none",
        "msg-timeout": "10",
        "relative": "-2",
        "slurmd-debug": "error",
        "threads": "60",
    },
    ("sbatch", "srun"): {**_each("export propagate", None), "test-only": "unset"},
    ("salloc", "sbatch"): {"wait-all-nodes": "65534"},
}
"""Options that only some commands have, and their texts there where they were not given."""

_MEMORY: Final = re.compile(r"(\d{1,12})([kmgtp]?)b?", re.ASCII | re.IGNORECASE)


_UNASKED: Final = "2982616-04:14:00"
"""NO_VAL minutes, which Slurm before 24.05 writes like any other limit."""

_NOBODY: Final = "99"
"""The user and the group of commands from 23.02 on, which leave it to slurmctld who asks."""


def default(name: str, command: str, slurm: str, uid: int) -> str | None:
    """Return the text of an option that was not given, in Slurm of a version; None for nil."""
    if name in ("time", "time-min"):
        return _UNASKED if slurm < "24.05" else None
    if name in ("uid", "gid"):
        return str(uid) if slurm < "23.02" else _NOBODY
    if name == "segment":
        return "unset" if slurm >= "24.05" else None
    if name == "pty":
        return ELSEWHERE if command != "srun" else "unset" if slurm < "24.05" else None
    for commands, texts in _OWN.items():
        if name in texts:
            return texts[name] if command in commands else ELSEWHERE
    if name == "jobid" and command == "srun":
        return "unset"
    if name == "kill-on-bad-exit" and command == "srun":
        return "-2"
    return _DEFAULTS.get(name)


def given(name: str, typed: str, slurm: str) -> str:
    """Return the text of an option that was typed like that; a flag is typed ``set``."""
    if typed == "set" and name == "pty" and slurm >= "24.05":
        return ""
    if typed == "set" and name in _FLAGS:
        return _FLAGS[name]
    change = _CHANGED.get(name)
    return typed if change is None else change(typed, slurm)


def memory(typed: str, _slurm: str = "") -> str:
    """Return a size as Slurm writes it: in the largest unit that divides it, none for MB."""
    match = _MEMORY.fullmatch(typed)
    if match is None:
        return typed
    number, unit = int(match[1]), match[2].lower()
    size = -(-number // 1024) if unit == "k" else number * 1024 ** "mgtp".index(unit or "m")
    for sign in ("", "G", "T", "P"):
        if size % 1024:
            return f"{size}{sign}"
        size //= 1024
    return f"{size}?"


def duration(typed: str, _slurm: str = "") -> str:
    """Return a time limit as Slurm writes it: ``1-00:30:00``, ``01:00:00``, ``UNLIMITED``."""
    number = minutes(typed)
    if number == NO_VAL:
        return typed
    if number in (0, NO_VAL + 1):
        return "UNLIMITED"
    days, rest = divmod(number, 1440)
    clock = f"{rest // 60:02d}:{rest % 60:02d}:00"
    return f"{days}-{clock}" if days else clock


def _gres(typed: str, slurm: str) -> str:
    sign = "gres/" if slurm >= "24.05" else "gres:"
    bare = (word.removeprefix("gres:").removeprefix("gres/") for word in typed.split(","))
    return typed if typed == "none" else ",".join(f"{sign}{word}" for word in bare)


def _nodes(typed: str, _slurm: str) -> str:
    least, dash, most = typed.partition("-")
    return least if dash and least == most else typed


_FLAGS: Final = {
    "exclusive": "exclusive",
    "oversubscribe": "oversubscribe",
    "requeue": "requeue",
    "no-requeue": "no-requeue",
    "bell": "bell-always",
    "no-bell": "bell-never",
    "nice": "100",
    **dict.fromkeys(("immediate", "verbose", "quiet", "kill-on-bad-exit"), "1"),
    "propagate": "ALL",
}
_CHANGED: Final[Mapping[str, Callable[[str, str], str]]] = {
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu", "tmp"), memory),
    **dict.fromkeys(("time", "time-min"), duration),
    "gres": _gres,
    "nodes": _nodes,
}
