"""No worker process outlives the process that started it, however that one ended."""

import multiprocessing  # noqa: TID251 - stands outside the simulation
import os
import signal
import threading  # noqa: TID251 - a worker's main thread is busy with runs
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker  # noqa: TID251 - as above


def end_with_parent() -> None:
    """Have this worker end as soon as its parent does; to be called once, as it begins.

    A parent that is killed ends nobody. Its workers would go on, with a run that takes long or with
    waiting for work that nobody gives.
    """
    threading.Thread(target=_watch, name="end with parent", daemon=True).start()


def _watch() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def leaving_ctrl_c() -> Iterator[None]:
    """Have workers that are started inside leave Ctrl-C to this process: they inherit its mask.

    For this process it waits until they have started. Python's own helper of worker processes is
    started first, for it lets Ctrl-C through again as it starts.
    """
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
