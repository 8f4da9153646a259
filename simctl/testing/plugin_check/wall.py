"""What a plugin does with the clock on the wall: its `time.sleep` is noted, and costs nothing."""

import inspect
import sys
import time  # noqa: TID251 - what a plugin may have called
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def sleeps_noted(
    kind: type[Any],
    note: Callable[[float], bool],
    in_thread: Callable[[float, str, str], None],
) -> Iterator[None]:
    """Let calls of `time.sleep` be noted where *note* says that a plugin's call is under way.

    Others of the plugin's module are those of its threads: *in_thread* is told the seconds, the
    function and the place. A plugin's module may have the function under a name of its own.
    """
    real = time.sleep

    def sleep(seconds: Any, /) -> None:
        if note(seconds):
            return
        caller = sys._getframe(1)
        code = caller.f_code
        if code.co_filename == getattr(module, "__file__", None):
            in_thread(seconds, code.co_name, f"{Path(code.co_filename).name}:{caller.f_lineno}")
        else:
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
