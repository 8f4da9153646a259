"""Served clusters that tests start and wait for."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from simctl.testing.served import Served

LONG_S = 20.0


def submit(served: Served, script: str, *options: str, **more: object) -> int:
    """Submit a script that sbatch reads from its standard input; return the job's id."""
    found = served.run("sbatch", "--parsable", *options, input=script, **more)
    assert not found.returncode, found.stderr
    return int(found.stdout)


def until(held: Callable[[], bool], what: str) -> None:
    """Wait for something that takes a moment of real time."""
    limit = time.monotonic() + LONG_S
    while not held():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


def server_of(cluster: Served) -> int:
    """Return the process that serves a cluster: the child of its watchdog."""
    command = ["pgrep", "-P", str(cluster.process.pid)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(found.stdout.split()[0])


def alive(pid: int) -> bool:
    """Return whether a process is there that has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
