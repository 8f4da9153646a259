"""`simctl serve` that counts its objects when it is told to; a script for a test.

On SIGUSR2 it writes into the file that COUNTS names how many objects of each type there are, and
how many entries containers of each type have. What is remembered of a number of jobs or events, and
no longer than that, is remembered of few here.
"""

import functools
import gc
import json
import os
import signal
import sys
from collections import Counter, deque
from pathlib import Path

import simctl.serve.control
import simctl.serve.session
from simctl.cli import main
from simctl.kernel import causes


def count(*_: object) -> None:
    """Count objects, once what is kept for speed alone is gone."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            each.cache_clear()
    gc.unfreeze()
    gc.collect()
    found: Counter[str] = Counter()
    for each in gc.get_objects():
        kind = type(each).__name__
        found[kind] += 1
        if isinstance(each, dict | list | set | deque):
            found[f"entries of {kind}"] += len(each)
        if isinstance(each, list) and each and type(each[-1]).__name__.endswith("Account"):
            found[f"list of {type(each[-1]).__name__}"] += len(each)
    file = Path(os.environ["COUNTS"])
    file.with_suffix(".part").write_text(json.dumps(found))
    file.with_suffix(".part").rename(file)


if __name__ == "__main__":
    causes._WINDOW, causes._GONE = 500, 10  # type: ignore[misc]
    simctl.serve.control._MOST_JOBS = 10  # type: ignore[misc]
    simctl.serve.session._PATIENCE_S = 0.5  # type: ignore[misc]
    signal.signal(signal.SIGUSR2, count)
    sys.exit(main(sys.argv[1:]))
