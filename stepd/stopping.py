"""Programs that are stopped and continued: while one is stopped its clock stands still.

Besides signals, the writing of an image stops a program: nothing then tells it, and it goes on by
itself afterwards.
"""

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


class Pausable(Stoppable, Protocol):
    """A program, or whatever else runs, whose image is written.

    `paused_us` is what a program has yet to run meanwhile, -1 for one that is not paused; `held`
    are the signals that reached it since.
    """

    paused_us: int
    held: tuple[int, ...]


def pause(run: Pausable, now_us: int) -> None:
    """Let the clock of what runs stand still, beside whatever signals have done to it."""
    run.paused_us = max(0, min(run.due_us - now_us, NEVER_US))
    run.due_us = NEVER_US


def unpause(run: Pausable, now_us: int) -> tuple[int, ...]:
    """Let it go on, unless it was killed meanwhile; return the signals it is to get now."""
    if run.due_us >= NEVER_US:
        run.due_us = min(NEVER_US, now_us + run.paused_us)
    run.paused_us = -1
    held, run.held = run.held, ()
    return held


def left_us(run: Pausable, now_us: int) -> int:
    """Return how long a program has yet to run, whether it runs or stands still."""
    if run.left_us >= 0:
        left = run.left_us
    elif run.paused_us >= 0:
        left = run.paused_us
    else:
        left = run.due_us - now_us
    # What no time ends has the same length at every moment.
    return NEVER_US if left >= NEVER_US // 2 else max(0, left)
