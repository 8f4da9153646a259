"""Decisions of a step daemon: plain functions, records in, decision out."""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from simctl.kernel.procs import SIGKILL, SIGSTOP, SIGTSTP, exit_code_of, signal_of, wait_status
from simctl.wire.errno import (
    ESCRIPT_CHDIR_FAILED,
    ESLURM_INTERCONNECT_FAILURE,
    ESLURMD_EXECVE_FAILED,
    ESLURMD_SET_SID_ERROR,
    ESLURMD_SET_UID_OR_GID_ERROR,
    SLURM_ERROR,
    SLURM_SUCCESS,
)

SESSION_EXIT_RC: Final[Mapping[int, int]] = {
    0: SLURM_SUCCESS,
    1: ESLURM_INTERCONNECT_FAILURE,
    2: ESLURMD_SET_UID_OR_GID_ERROR,
    3: ESLURMD_SET_SID_ERROR,
    4: ESCRIPT_CHDIR_FAILED,
    5: SLURM_ERROR,
    6: ESLURMD_EXECVE_FAILED,
}
"""Model guide: what the job manager reports for each exit code of the session manager."""

DEFAULT_IMAGE: Final = 64 << 20
"""Memory of a program of which nothing else is said."""

SHELL_IMAGE: Final = 1 << 20
"""Memory of a shell, and of a command of Slurm's."""

NEVER_US: Final = 1 << 62
"""When a program ends that only a signal can end."""

_IGNORED_BY_DEFAULT: Final = frozenset({17, 18, 23, 28})
_STOPPING: Final = frozenset({SIGSTOP, SIGTSTP, 21, 22})


@attrs.frozen(kw_only=True)
class ProgramRun:
    """What one process will do: end *runs_us* after its start with a wait status.

    `ignores` holds signals it does not mind, `exits_on` signals it catches and the exit code it
    then leaves with at once.
    """

    runs_us: int
    status: int = 0
    output: str = ""
    error: str = ""
    ignores: tuple[int, ...] = ()
    exits_on: Mapping[int, int] = {}
    exec_errno: int = 0
    """Why it cannot be executed: a shell says so in `error`, a step daemon in words of its own."""

    image: int = DEFAULT_IMAGE
    """How many bytes of memory it has, which is what a checkpoint image of it takes."""


def status_after_signal(program: ProgramRun, signal: int) -> int | None:
    """Return the wait status with which *signal* ends a program at once; None if it goes on."""
    if signal == SIGKILL:
        return SIGKILL
    if signal in program.ignores:
        return None
    if signal in program.exits_on:
        return wait_status(program.exits_on[signal])
    return default_status(signal)


def stops(program: ProgramRun, signal: int) -> bool:
    """Return whether *signal* stops a program until SIGCONT; only SIGSTOP always does."""
    if signal == SIGSTOP:
        return True
    return by_default_stops(signal) and not (
        signal in program.ignores or signal in program.exits_on
    )


def by_default_stops(signal: int) -> bool:
    """Return whether a signal's default action is to stop a process."""
    return signal in _STOPPING


def default_status(signal: int) -> int | None:
    """Return the wait status that a signal's default action leads to; None if it ends nothing."""
    if signal in _IGNORED_BY_DEFAULT or signal in _STOPPING or signal == 0:
        return None
    return signal


def step_rc(statuses: Iterable[int]) -> int:
    """Fold the wait statuses of a node's tasks into what REQUEST_STEP_COMPLETE reports.

    An exit status counts if it is the greatest so far, a signal by its number. The job's own exit
    code never comes from here.
    """
    folded = 0
    for status in statuses:
        signal = signal_of(status)
        folded = signal or max(folded, exit_code_of(status) << 8)
    return folded


def last_step_rc(statuses: Iterable[int]) -> int:
    """Fold them as Slurm 18.08 does, where of plain exits that of the last task alone counts."""
    folded = 0
    for status in statuses:
        signal = signal_of(status)
        if signal:
            return signal
        folded = exit_code_of(status) << 8
    return folded


def group_exits(ended: Iterable[tuple[int, int]]) -> list[tuple[int, tuple[int, ...]]]:
    """Group (rank, wait status) pairs: tasks that share a status share a message.

    They are told of in the order of their ranks, whichever ended first.
    """
    groups: dict[int, list[int]] = {}
    for rank, status in sorted(ended):
        groups.setdefault(status, []).append(rank)
    return [(status, tuple(ranks)) for status, ranks in groups.items()]


_FIRST_PAUSE_US: Final = 100_000
_LONGEST_PAUSE_US: Final = 800_000
_PAUSES: Final = 5
_NODES_PER_PAUSE: Final = 1024


def patience_us(nodes: int) -> int:
    """Return how long a step daemon tries to reach an srun that is dead.

    Each pause between two tries is twice as long, up to 0.8 s: 2.3 s in all for a step of less
    than 1024 nodes; of a larger one srun may be busier. Source: Slurm 18.08, recorded.
    """
    count = nodes // _NODES_PER_PAUSE + _PAUSES
    return sum(min(_FIRST_PAUSE_US << place, _LONGEST_PAUSE_US) for place in range(count))


def own_last(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges to report in their order: that of the daemon alone comes last.

    What the first child has reported joins it; else all children come first.
    """
    return [*runs[1:], runs[0]] if runs[:1] == [(0, 0)] else runs


def runs_of(flags: Iterable[bool]) -> list[tuple[int, int]]:
    """Return the first and last place of every run of true *flags*."""
    runs: list[tuple[int, int]] = []
    for place, flag in enumerate(flags):
        if not flag:
            continue
        if runs and runs[-1][1] == place - 1:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs
