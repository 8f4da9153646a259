"""What a plugin does with the clock on the wall: its `time.sleep` is noted, and costs nothing."""

import inspect
import sys
import time  # noqa: TID251 - what a plugin may have called
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def sleeps_noted(kind: type[Any], note: Callable[[float], bool]) -> Iterator[None]:
    """Let calls of `time.sleep` be noted where *note* says that a plugin's call is under way.

    A plugin's module may have the function under a name of its own.
    """
    real = time.sleep

    def sleep(seconds: Any, /) -> None:
        if not note(seconds):
            real(seconds)

    module = inspect.getmodule(kind) or sys.modules[__name__]
    names = [name for name, value in vars(module).items() if value is real]
    time.sleep = sleep
    for name in names:
        vars(module)[name] = sleep
    try:
        yield
    finally:
        time.sleep = real
        for name in names:
            vars(module)[name] = real
