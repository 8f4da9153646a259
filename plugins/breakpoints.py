"""`breakpoint()` in a plugin: Python's debugger, with nothing of simctl's in the way.

From the first stop on the watchdog looks no more, and the live line of a run is taken away. `q` of
the debugger interrupts the run, as Ctrl-C does.
"""

import os
import pdb
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from simctl.console import clear_live_lines
from simctl.plugins.watchdog import Watchdog


class _Debugger(pdb.Pdb):
    """Python's debugger, which leaves signals to the run."""

    def __init__(self) -> None:
        super().__init__(nosigint=True)
        self.prompt = "(Pdb) "

    def set_quit(self) -> None:
        """Go on, and interrupt the run: an exception would be taken for the plugin's."""
        self.set_continue()
        signal.raise_signal(signal.SIGINT)


@contextmanager
def breakpoints(watchdog: Watchdog) -> Iterator[None]:
    """Let `breakpoint()` stop in code that runs now; another debugger's hook goes before."""
    before = sys.breakpointhook
    chosen = before is not sys.__breakpointhook__ or bool(os.environ.get("PYTHONBREAKPOINT"))

    stopped = False

    def stop(*args: Any, **names: Any) -> Any:
        nonlocal stopped
        if os.environ.get("PYTHONBREAKPOINT") == "0":
            return None
        watchdog.retire()
        clear_live_lines()
        if chosen:
            return before(*args, **names)
        stopped = True
        return _Debugger().set_trace(sys._getframe(1))

    hook: Callable[..., Any] = stop
    sys.breakpointhook = hook
    try:
        yield
    finally:
        if sys.breakpointhook is hook:
            sys.breakpointhook = before
        if stopped:
            # A person who steps through a call would else go on behind the end of the run.
            sys.settrace(None)
