"""A worker process: runs the chunks that come through a pipe, and ends with its parent."""

import os
import threading  # noqa: TID251 - a worker's main thread is busy with runs
import traceback
from multiprocessing.connection import Connection  # noqa: TID251 - stands outside the simulation


def main(pipe_fd: int, life_fd: int) -> None:
    """Run chunks until there are no more, or until the other end of *life_fd* is closed.

    A parent that is killed closes it: its workers end at once, whatever they are at.
    """
    threading.Thread(target=_watch, args=(life_fd,), name="end with parent", daemon=True).start()
    pipe = Connection(pipe_fd)
    name = "simctl"
    try:
        make, folder, stop, name = pipe.recv()
        runner = make(folder)
        while True:
            first, last = pipe.recv()
            pipe.send(runner.run_chunk(first, last, stop=stop, done=lambda: pipe.send(None)))
    except (EOFError, ConnectionError):
        return
    except Exception:  # noqa: BLE001 - the parent tells it
        pipe.send(f"a worker process of `{name}` broke:\n{traceback.format_exc()}")


def _watch(life_fd: int) -> None:
    os.read(life_fd, 1)
    os._exit(1)
