"""Two processes look after each other: the server, and the one that it was started from.

Both adopt orphans, and the server is the other's child. When the server ends, however that is, the
other kills all that is left below it; when the other ends, the server is told, and ends in order.
So whichever of them is killed, no process of a job outlives the cluster. It knows nothing of
clusters and imports next to nothing, for it must not fail.
"""

import os
import signal
import sys
from collections.abc import Callable

from simctl.serve import linux
from simctl.status import BROKEN, OK

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def guard(serve: Callable[[], int], clear: Callable[[], None], mark: bytes) -> int:
    """Run *serve* in a process of its own; return its exit status when nothing is left of it.

    *clear* removes the files of the cluster, and is called in the end by who is still there.
    Whatever has *mark* in its environment ends as well, whatever its parent is.
    """
    linux.adopt_orphans()
    sys.stdout.flush()
    sys.stderr.flush()
    own = os.getpid()
    # What tells both to end waits until each can be told: before that this process would die of it.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    pid = os.fork()
    if not pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        os._exit(_serve(serve, clear, mark, own))
    # A terminal tells both; what comes to this process alone is handed on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told: set[int] = set()

    def hand_on(number: int, _: object) -> None:
        told.add(number)
        linux.kill([pid], number)

    for number in _ENDING:
        signal.signal(number, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        linux.kill_all_below(own, mark)
        clear()
    if -status in told:
        return OK  # it was told to end before it could heed that
    if status < 0:
        print(f"simctl serve: the server was killed by signal {-status}", file=sys.stderr)
        return BROKEN
    return status


def _serve(serve: Callable[[], int], clear: Callable[[], None], mark: bytes, parent: int) -> int:
    try:
        linux.die_with_parent(signal.SIGTERM, parent)
        linux.adopt_orphans()
        return serve()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else BROKEN
    finally:
        linux.kill_all_below(os.getpid(), mark)
        clear()
        sys.stdout.flush()
        sys.stderr.flush()
