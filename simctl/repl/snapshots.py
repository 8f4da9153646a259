"""Going back quickly: the process of a session is forked now and then, and its parent stays.

A parent is frozen where it forked. To go back, the child hands over what the person has done so far
and ends; the parent that is the nearest before the target forks another child, which repeats what
lies between. So at most an interval of the run has to be repeated. Where a fork is not to be had
the whole run is repeated instead, in the same process.
"""

import contextlib
import ctypes
import os
import pickle
import signal
from collections.abc import Callable
from typing import Any, Final

from simctl.plugins.watchdog import Watchdog
from simctl.repl.desk import Desk

INTERVAL_EVENTS: Final = 10_000
"""How many events lie between two snapshots; later in a long run, an eighth of all so far."""

_SHARE: Final = 8
_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""


class Snapshots:
    """The frozen parents of a session's process, from where this process stands."""

    def __init__(self, flush: Callable[[], None], *, forks: bool) -> None:
        self._flush = flush
        self._forks = forks and hasattr(os, "fork")
        self._up = -1
        """Where the parent listens; -1 in the process that the session began in."""
        self._next_seq = 0
        self._alone = False

    @property
    def is_copy(self) -> bool:
        """Return whether this process is a fork of the one that the session began in."""
        return self._up >= 0

    def is_due(self, seq: int) -> bool:
        """Return whether the next place between two turns is to be kept."""
        return self._forks and seq >= self._next_seq

    def take(self, seq: int, watchdog: Watchdog) -> Desk | int | None:
        """Keep the present place; return in a child, each time the session goes on from here.

        The first time it returns None, later what the person had done that came back to here. In
        the process that the session began in it returns the session's exit status, at its end.
        """
        if not self._forks:
            return None
        handed_over: Desk | None = None
        self._next_seq = seq + max(INTERVAL_EVENTS, seq // _SHARE)
        while True:
            self._flush()
            read_end, write_end = os.pipe()
            try:
                child = os.fork()
            except OSError:
                os.close(read_end)
                os.close(write_end)
                self._forks = self._up >= 0
                return handed_over
            if not child:
                os.close(read_end)
                self._become_child(write_end)
                watchdog.go_on()
                return handed_over
            os.close(write_end)
            watchdog.pause()
            handed, status = _wait(child, read_end)
            if not handed:
                if self._up < 0:
                    return status
                os._exit(status)
            desk: Desk = pickle.loads(handed)
            assert desk.target is not None
            if self._up >= 0 and desk.target.seq <= seq:
                _write(self._up, handed)
                os._exit(0)
            handed_over = desk

    def _become_child(self, write_end: int) -> None:
        if self._up >= 0:
            os.close(self._up)
        self._up = write_end
        self._die_with_parent()

    def _die_with_parent(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            # A session whose parent was killed has no user any more.
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal.SIGTERM))

    def hand_over(self, desk: Desk) -> None:
        """Go back through the parents; returns where there are none."""
        if self._up >= 0:
            with contextlib.suppress(OSError, ValueError):
                self._flush()
            _write(self._up, pickle.dumps(desk))
            os._exit(0)

    def leave(self, status: int) -> None:
        """End a child with the status that the session is to have; does nothing elsewhere."""
        if self._alone:
            os._exit(status)
        if self._up >= 0:
            with contextlib.suppress(OSError, ValueError):
                self._flush()
            os._exit(status)

    def live_alone(self) -> None:
        """Be a copy of the session in which no user goes back, and that ends by itself."""
        self._forks = False
        self._alone = True
        self._die_with_parent()


def _wait(child: int, read_end: int) -> tuple[bytes, int]:
    """Wait until a child ends; return what it hands over, and its exit status.

    Ctrl-C is the child's business, and what ends this process ends the child as well.
    """

    def pass_on(number: int, _: Any) -> None:
        os.kill(child, number)

    at_ctrl_c = signal.signal(signal.SIGINT, signal.SIG_IGN)
    at_term = signal.signal(signal.SIGTERM, pass_on)
    try:
        with open(read_end, "rb") as stream:
            handed = stream.read()
        _, how = os.waitpid(child, 0)
    finally:
        signal.signal(signal.SIGINT, at_ctrl_c)
        signal.signal(signal.SIGTERM, at_term)
    code = os.waitstatus_to_exitcode(how)
    return handed, code if code >= 0 else _KILLED - code


_KILLED: Final = 128
"""What a shell adds to the number of a signal."""


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
