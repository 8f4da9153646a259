"""The watchdog: ends a plugin's code that does not come back, and names it.

It looks on wall time, once a second: a run is virtual, but a plugin that loops without end loops in
this Python process. What it finds on the stack tells whose code that is, so that no call pays for
being watched.
"""

import os
import signal
import sys
import threading  # noqa: TID251 - only to know the main thread
import time  # noqa: TID251 - a watchdog looks on the wall clock
from types import FrameType
from typing import Any, Self

from simctl.api.surroundings import WatchdogError, run_thread_body
from simctl.kernel.turns import Kernel
from simctl.plugins.guard import IGNORED_AT_MOST, RUNNERS, TICK_S, Standing, entry_of, give_up
from simctl.plugins.hooks import Hooks
from simctl.plugins.registry import Registry


class Watchdog:
    """Watches the main thread while a world runs; `limit_s` 0 watches nothing.

    Where there is no SIGALRM, where other code uses it, and outside the main thread nothing is
    watched.
    """

    def __init__(self, kernel: Kernel, limit_s: float, standing: Standing | None = None) -> None:
        self._standing = standing
        self._kernel = kernel
        self._limit_s = limit_s
        self._entry: FrameType | None = None
        self._turns = -1
        self._since_s = 0.0
        self._ignored = 0
        self._previous: Any = None
        self._armed = False
        self._paused = False
        self._at_ctrl_c: Any = None
        self._interrupted = False

    def __enter__(self) -> Self:
        """Start to watch; trio runs by now."""
        if (
            self._limit_s > 0
            and hasattr(signal, "setitimer")
            and threading.current_thread() is threading.main_thread()
            and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        ):
            self._previous = signal.signal(signal.SIGALRM, self._tick)
            self._armed = True
            self._listen()
            self._set_timer()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop watching."""
        if self._armed:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._previous)
            if self._at_ctrl_c is not None:
                signal.signal(signal.SIGINT, self._at_ctrl_c)
        self._entry = None

    def pause(self) -> None:
        """Watch nothing for a while, such as while a person is asked what to do."""
        self._paused = True
        if self._armed:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def retire(self) -> None:
        """Watch no more in this run: a person looks at the plugin's code."""
        self.__exit__(None, None, None)

    def go_on(self) -> None:
        """Watch again, as from the beginning; a fork of this process has no timer before."""
        self._entry = None
        self._interrupted = False
        self._paused = False
        self._set_timer()

    def interrupt(self) -> None:
        """Stop a plugin's code if it still runs a tick from now."""
        self._notice(sys._getframe())

    def _notice(self, frame: FrameType | None) -> None:
        """Note which plugin runs as the user interrupts; only a call that goes on is to be stopped.

        What runs by then may as well be simctl's own part of a call, which is over at once.
        """
        self._interrupted, self._paused = True, False
        self._entry, self._turns = entry_of(frame), self._kernel.turns
        self._since_s = time.monotonic()
        self._ignored = 0
        self._set_timer()

    def _set_timer(self) -> None:
        """Look once more, a tick from now: a look at millions of frames takes longer than that."""
        if self._armed and not self._paused:
            signal.setitimer(signal.ITIMER_REAL, min(TICK_S, self._limit_s / 2))

    def _tick(self, _: int, frame: FrameType | None) -> None:
        try:
            self._look(frame)
        finally:
            self._set_timer()

    def _look(self, frame: FrameType | None) -> None:
        """Raise in a plugin's code if it is where it was, in the same turn, for too long."""
        if self._standing is not None:
            self._standing.restore_names()
        entry = entry_of(frame)
        now_s = time.monotonic()
        if entry is None or entry is not self._entry or self._turns != self._kernel.turns:
            self._entry = entry
            self._turns = self._kernel.turns
            self._since_s = now_s
            self._ignored = 0
            return
        if now_s - self._since_s < self._limit_s and not self._interrupted:
            return
        self._ignored += 1
        if self._ignored > IGNORED_AT_MOST:
            _give_up(entry)
        if self._interrupted:
            raise WatchdogError("was interrupted")
        raise WatchdogError(f"still ran after {self._limit_s:g} s of wall time, and was stopped")

    def _listen(self) -> None:
        """Stand before trio's handler of Ctrl-C, which waits until the plugin's code comes back."""
        handler = signal.getsignal(signal.SIGINT)
        if self._armed and getattr(handler, "__module__", "").startswith("trio"):
            self._at_ctrl_c = handler
            signal.signal(signal.SIGINT, self._note_ctrl_c)

    def _note_ctrl_c(self, number: int, frame: FrameType | None) -> None:
        self._notice(frame)
        self._at_ctrl_c(number, frame)


RUNNERS.update(
    function.__code__
    for function in (
        Hooks.call,
        Hooks.run_function,
        Hooks.run_own,
        Hooks.blank,
        Registry.make,
        run_thread_body,
    )
)


def _give_up(entry: FrameType) -> None:
    """Name the code that nothing stops, and leave."""
    code = entry.f_code
    file = os.path.basename(code.co_filename)  # noqa: PTH119 - may be no path
    give_up(f"plugin function {code.co_name} ({file}, line {entry.f_lineno}) loops without end")
