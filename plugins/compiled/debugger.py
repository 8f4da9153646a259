"""`run --gdb FUNCTION`: before the first call of a function its process waits for a debugger."""

import difflib
import signal
import sys
import time  # noqa: TID251 - a person attaches on the wall clock
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from simctl.console import clear_live_lines
from simctl.kernel.procs import Process
from simctl.plugins.compiled import prototypes as versions
from simctl.plugins.guard import PluginError
from simctl.plugins.points import ALL, OPTIONAL

_LOOKS_S: Final = 0.05
_WAITS_S: Final = 600.0
"""How long a call waits for a debugger, in seconds of real time."""


class Stop:
    """Where the run is to stop: before one function of the plugin, once."""

    function = ""
    """Its name in C; empty for nowhere."""


def stop_before(function: str) -> None:
    """Have the first call of a function wait until a debugger is attached to its process.

    Raises:
        PluginError: No guide has such a function.
    """
    known = {versions.name_of(name, version) for name in (*ALL, *OPTIONAL) for version in _ALL}
    known |= {"init", "fini"}
    if function not in known:
        near = difflib.get_close_matches(function, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise PluginError(f"--gdb {function}: no plugin guide has this function{hint}")
    Stop.function = function


def left_over() -> str:
    """Return the function that was not called, empty for none, and stop nowhere any more."""
    function, Stop.function = Stop.function, ""
    return function


def wait_for_debugger(function: str, pid: int, process: Process | None) -> None:
    """Say which process is about to call a function, and wait until a debugger is attached."""
    Stop.function = ""
    clear_live_lines()
    where = "simctl" if process is None else f"{process.role} {process.pid} on {process.host.name}"
    _say(
        f"simctl: {where} is about to call {function}; its real process is {pid}:\n"
        f"  gdb -p {pid} -ex 'break {function}' -ex continue\n"
        "The run goes on once a debugger is attached; Ctrl-C ends it."
    )
    with _interruptible() as interrupted:
        until_s = time.monotonic() + _WAITS_S
        while not is_traced(pid) and not interrupted:
            if time.monotonic() > until_s:
                _say(f"simctl: no debugger came in {_WAITS_S:g} s; the run goes on")
                return
            time.sleep(_LOOKS_S)


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Note Ctrl-C instead of letting it wait for the end of the call; the run hears of it after."""
    noted: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    except ValueError:  # outside the main thread no signal interrupts
        yield noted
        return
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
    if noted:
        signal.raise_signal(signal.SIGINT)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def is_traced(pid: int) -> bool:
    """Return whether a debugger is attached to a process."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - as in processor_time_s
            return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in file)
    except OSError:
        return False


_ALL: Final = (versions.GUIDE, versions.LATER)
