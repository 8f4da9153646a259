"""No worker process outlives the process that started it, however that one ended."""

import multiprocessing  # noqa: TID251 - stands outside the simulation
import os
import threading  # noqa: TID251 - a worker's main thread is busy with runs


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
