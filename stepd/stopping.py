"""Programs that are stopped and continued: while one is stopped its clock stands still."""

from typing import Protocol

from simctl.kernel.procs import SIGCONT, SIGKILL
from simctl.stepd.outcome import NEVER_US, ProgramRun, by_default_stops, status_after_signal, stops


class Stoppable(Protocol):
    """A program that runs until `due_us`; `left_us` is what a stopped one has yet to run, else -1.

    `kept` holds the signals that reached it while it was stopped.
    """

    due_us: int
    left_us: int
    kept: tuple[int, ...]


def take_signal(run: Stoppable, program: ProgramRun, signal: int, now_us: int) -> int | None:
    """Let a signal act on a program that has not ended.

    It stops the program or continues it by moving its end; or the wait status is returned with
    which the program ends now.
    """
    if run.left_us < 0:
        if stops(program, signal):
            run.left_us = max(0, min(run.due_us - now_us, NEVER_US))
            run.due_us = NEVER_US
            return None
        return status_after_signal(program, signal)
    if signal == SIGKILL:
        return SIGKILL
    if signal != SIGCONT:
        if not by_default_stops(signal):
            run.kept += (signal,)
        return None
    run.due_us = min(NEVER_US, now_us + run.left_us)
    run.left_us = -1
    kept, run.kept = run.kept, ()
    acts = (status_after_signal(program, each) for each in (SIGCONT, *kept))
    return next((status for status in acts if status is not None), None)
