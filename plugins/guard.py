"""The guard between a plugin's code and the process it shares with the emulator.

A plugin is Python code in simctl's own process. What it could do to that process is refused where
Python asks first (forks, threads that outlive the run), bounded (time to load, memory), or seen
afterwards, undone and told (names of modules, standard output). Nothing of it is paid for by calls.
"""

import atexit
import builtins
import contextlib
import functools
import heapq
import io
import json
import os
import re
import signal
import sys
import threading  # noqa: TID251 - to know the main thread, and the threads that plugins make
import time  # noqa: TID251 - its names are kept as they are
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType, FrameType
from typing import Any, Final, NoReturn, Self

import msgspec
import trio

from simctl.api.surroundings import WatchdogError, told_failure
from simctl.files import size
from simctl.limits import LOAD_S, PLUGIN_BYTES
from simctl.outputs import drop_all


class PluginError(ValueError):
    """A plugin cannot be used; the text says which, why, and what would do.

    Attributes:
        mistakes: What is wrong, one text each.
    """

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class DiedError(Exception):
    """A plugin has ended the process that it runs in, in the middle of a call.

    Attributes:
        status: The wait status that the process ends with.
    """

    def __init__(self, told: str, status: int) -> None:
        super().__init__(told)
        self.status = status


class RefusedError(RuntimeError):
    """A plugin's code asked for what no plugin may have; raised in that code."""


RUNNERS: Final[set[CodeType]] = set()
"""The functions of simctl's that run a plugin's code; the watchdog names them."""


def entry_of(frame: FrameType | None) -> FrameType | None:
    """Return the outermost frame of the plugin's code that runs at present, if any does."""
    inner: FrameType | None = None
    while frame is not None:
        if frame.f_code in RUNNERS:
            return inner
        inner = frame
        frame = frame.f_back
    return None


# What is refused.


def _ask(event: str, args: tuple[Any, ...]) -> None:
    """Refuse to a plugin's code what Python asks about first: forks and signals."""
    if event in _ASKED and _plugin_runs():
        refused = _refusal(event, args)
        if refused:
            raise RefusedError(f"{event} is refused: {refused}")


_ASKED: Final = frozenset({"os.fork", "os.forkpty", "os.kill", "os.killpg", "signal.pthread_kill"})


def _refusal(event: str, args: tuple[Any, ...]) -> str:
    """Return why a plugin may not do something; empty if it may."""
    if event in ("os.fork", "os.forkpty"):
        return "the child would go on as simctl; use subprocess for a program"
    number, signal_number = args
    if not signal_number or _is_own_code(sys._getframe(2)):
        return ""
    own = (0, -1, os.getpgrp(), -os.getpgrp(), os.getpid())  # noqa: TID251 - which is real here
    if event == "signal.pthread_kill" or number in own:
        return _OWN
    if _is_child(number, group=event == "os.killpg" or number < 0):
        return ""
    return (
        f"{number} is no process that the plugin has started; those of the simulation have their "
        "pids there alone"
    )


_OWN: Final = "it would end simctl without a word"


def _is_own_code(frame: FrameType) -> bool:
    """Return whether it is simctl's own code that asks, on behalf of a plugin."""
    return str(frame.f_globals.get("__name__", "")).startswith("simctl.")


def _is_child(number: int, *, group: bool) -> bool:
    """Return whether a pid, or the number of a group, is that of children of this process."""
    if not hasattr(os, "waitid"):
        return True  # the system cannot tell
    try:
        which = os.P_PGID if group else os.P_PID
        os.waitid(which, abs(number), os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _plugin_runs() -> bool:
    """Return whether a plugin's code is what runs; a session forks as it stops inside of a call."""
    if _loading:
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in RUNNERS:
            return True
        if frame.f_globals.get("__name__", "").startswith("simctl.repl."):
            return False
        frame = frame.f_back
    return False


sys.addaudithook(_ask)

_loading: list[str] = []
"""What is loaded at present."""


def _exit(status: int) -> NoReturn:
    """Refuse `os._exit` to a plugin's code: the run would end without a word."""
    if _plugin_runs():
        raise RefusedError(f"os._exit is refused: {_OWN}")
    _REAL_EXIT(status)


def _abort() -> NoReturn:
    """Refuse `os.abort` to a plugin's code."""
    if _plugin_runs():
        raise RefusedError(f"os.abort is refused: {_OWN}")
    _REAL_ABORT()


def _raise_signal(number: int) -> None:
    """Refuse `signal.raise_signal` to a plugin's code; a debugger interrupts the run with it."""
    if _plugin_runs() and not _is_own_code(sys._getframe(1)):
        raise RefusedError(f"signal.raise_signal is refused: {_OWN}")
    _REAL_RAISE(number)


def _start(self: threading.Thread) -> None:
    """Refuse a lasting thread to a plugin's code."""
    if not self.daemon and _plugin_runs():
        raise RefusedError(
            "a thread that is no daemon is refused: simctl could not end before it; "
            "start(body) of simctl.plugin starts a thread in virtual time"
        )
    _REAL_START(self)


_REAL_EXIT: Final = os._exit
_REAL_ABORT: Final = os.abort
_REAL_RAISE: Final = signal.raise_signal
_REAL_START: Final = threading.Thread.start


# What is undone.

_MODULES: Final = (
    *(builtins, os, time, trio, vars(trio)["lowlevel"]),
    *(contextlib, functools, heapq, json, msgspec, msgspec.json, re, signal),
)
"""Modules that the emulator stands on: a name replaced there breaks it anywhere."""


_TOLD: Final = 5
"""How many names of a module are told."""


class Standing:
    """How the process stands before a plugin's code runs, to be restored after it.

    Attributes:
        bounded: Whether the memory that it may take is bounded.
        harms: What was done to it, one text each.
    """

    def __init__(self, *, bounded: bool) -> None:
        self.bounded = bounded
        self.harms: list[str] = []
        self._names: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        self._streams: tuple[tuple[str, int, Any], ...] = ()
        self._kept: dict[int, int] = {}
        self._limit: tuple[int, int] | None = None
        self._unraisable: Any = None
        self._folder = ""
        self._umask = 0

    def __enter__(self) -> Self:
        """Take everything down, and bound the memory."""
        _give(_exit, _abort, _raise_signal, _start)
        self._names = [(module.__name__, vars(module), dict(vars(module))) for module in _MODULES]
        if self.bounded:
            self._names.append(("sys.modules", sys.modules, _own_modules()))
        self._streams = (("stdout", 1, sys.stdout), ("stderr", 2, sys.stderr))
        for number in (1, 2):
            with suppress(OSError):
                self._kept[number] = os.dup(number)
        self._limit = _bound_memory() if self.bounded else None
        self._unraisable, sys.unraisablehook = sys.unraisablehook, _tell_ignored
        self._folder, self._umask = _folder(), _umask()
        return self

    def __exit__(self, *exc: object) -> None:
        """Restore everything."""
        self.restore_names()
        sys.unraisablehook = self._unraisable
        _give(_REAL_EXIT, _REAL_ABORT, _REAL_RAISE, _REAL_START)
        self._restore_files()
        self._restore_folder()
        for name, number, stream in self._streams:
            self._restore_stream(name, number, stream)
        if self._limit is not None:
            _set_memory(self._limit)

    def restore_names(self) -> None:
        """Put back what was replaced in modules; uses no builtin before that is done."""
        for name, there, before in self._names:
            if there == before:
                continue
            changed = [key for key in before if key not in there or there[key] is not before[key]]
            there.update(before)
            self.harms += [f"{name}.{key} was replaced" for key in changed[:_TOLD]]
            if len(changed) > _TOLD:
                self.harms.append(f"so were {len(changed) - _TOLD} more of {name}")

    def _restore_files(self) -> None:
        for number, kept in self._kept.items():
            try:
                same = os.path.sameopenfile(number, kept)
            except OSError:
                same = False
            with suppress(OSError):  # it may be closed as well
                if not same:
                    self.harms.append(f"file descriptor {number} was closed or replaced")
                    os.dup2(kept, number)
                os.close(kept)
        self._kept = {}

    def _restore_folder(self) -> None:
        """Have the outputs of the run lie where they were asked for, and be readable there."""
        if _folder() != self._folder:
            with suppress(OSError):
                os.chdir(self._folder)
                self.harms.append("the working directory was changed")
        if _umask() != self._umask:
            os.umask(self._umask)
            self.harms.append("the umask was changed")

    def _restore_stream(self, name: str, number: int, stream: Any) -> None:
        if getattr(sys, name) is not stream:
            setattr(sys, name, stream)
            self.harms.append(f"sys.{name} was replaced")
        if getattr(stream, "closed", False) and isinstance(stream, io.TextIOWrapper):
            anew = open(number, "w", encoding=stream.encoding, closefd=False)  # noqa: SIM115
            setattr(sys, name, anew)
            self.harms.append(f"sys.{name} was closed")


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - it may be no longer there
    except OSError:
        return ""


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found


def _tell_ignored(ignored: Any) -> None:
    """Say in a line what nobody could catch, such as what `__del__` of a plugin's object raised."""
    sys.stderr.write(f"simctl: warning: ignored: {told_failure(ignored.exc_value)}\n")


def _own_modules() -> dict[str, Any]:
    """Return the modules of Python and of simctl; what others import comes and goes."""
    own = sys.stdlib_module_names | {"simctl", "trio", "msgspec"}
    return {key: each for key, each in sys.modules.items() if key.partition(".")[0] in own}


def _give(
    leave: Callable[[int], NoReturn],
    abort: Callable[[], NoReturn],
    raise_signal: Callable[[int], None],
    start: Callable[[threading.Thread], None],
) -> None:
    """Put these in place of Python's ends of the process and start of a thread."""
    vars(os).update(_exit=leave, abort=abort)
    vars(signal)["raise_signal"] = raise_signal
    setattr(threading.Thread, "start", start)  # noqa: B010 - mypy takes it for a mistake


def _bound_memory() -> tuple[int, int] | None:
    """Let the process grow by so much only; return the limits there were, None where none can be.

    Beyond it Python raises MemoryError in the code that asks for more.
    """
    try:
        import resource  # noqa: PLC0415 - Windows has none

        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - a quarter the time
            now = int(file.read().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        bounds = [now + PLUGIN_BYTES, *(each for each in (soft, hard) if each >= 0)]
        resource.setrlimit(resource.RLIMIT_AS, (min(bounds), hard))
    except (ImportError, OSError, ValueError):
        return None
    return soft, hard


def _set_memory(limits: tuple[int, int]) -> None:
    import resource  # noqa: PLC0415 - as above

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, limits)


OUT_OF_MEMORY: Final = f"took more than {size(PLUGIN_BYTES)} of memory, the most"


# Loading.


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Let a plugin's code run that is imported or looked at.

    Args:
        what: Names it, such as ``plugin './mine.py'``.

    Raises:
        PluginError: It raised whatever it may be, took too long, or harmed the process.
        KeyboardInterrupt: The person at the keyboard wants no more.
    """
    standing = Standing(bounded=True)
    keyboard = _Keyboard()
    _loading.append(what)
    try:
        with standing, keyboard, _timed(what):
            yield
    except PluginError:
        raise
    except MemoryError as error:
        raise PluginError(f"{what}: loading it {OUT_OF_MEMORY}") from error
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and keyboard.pressed:
            raise
        raise PluginError(f"{what}: loading it failed: {told_failure(error)}") from error
    finally:
        _loading.pop()
    if standing.harms:
        raise PluginError(f"{what}: as it was loaded, {', '.join(standing.harms)}")


class _Keyboard:
    """Tells Ctrl-C from a plugin's own KeyboardInterrupt."""

    def __init__(self) -> None:
        self.pressed = False
        self._previous: Any = None

    def __enter__(self) -> None:
        """Listen, if this is the main thread and no other code does."""
        if _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._previous = signal.signal(signal.SIGINT, self._press)

    def __exit__(self, *exc: object) -> None:
        """Listen no more."""
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _press(self, *_: object) -> None:
        self.pressed = True
        raise KeyboardInterrupt


@contextmanager
def _timed(what: str) -> Iterator[None]:
    """Stop what takes too long to load, where there is a timer that no other code uses."""
    free = hasattr(signal, "setitimer") and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    if not free or not _in_main_thread():
        yield
        return
    ignored = 0

    def stop(*_: object) -> None:
        nonlocal ignored
        ignored += 1
        if ignored > IGNORED_AT_MOST:
            give_up(f"{what} takes without end to load")
        raise WatchdogError(f"still ran after {LOAD_S:g} s of wall time, and was stopped")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LOAD_S, TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def run_exit_functions() -> None:
    """Run what is left for the end of Python (`atexit`), as long as a plugin may take to load."""
    with Standing(bounded=False), _timed("what plugins have left for the end"):
        getattr(atexit, "_run_exitfuncs")()  # noqa: B009 - no name of Python's own is public


TICK_S: Final = 0.5
IGNORED_AT_MOST: Final = 5


def give_up(what: str) -> NoReturn:
    """Leave: a plugin's code catches everything, and nothing but the process's end stops it."""
    with suppress(OSError):
        os.write(2, f"simctl: {what} and catches what would stop it; giving up\n".encode())
    drop_all()
    _REAL_EXIT(2)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


__all__ = [
    "IGNORED_AT_MOST",
    "OUT_OF_MEMORY",
    "RUNNERS",
    "TICK_S",
    "DiedError",
    "PluginError",
    "RefusedError",
    "Standing",
    "entry_of",
    "give_up",
    "loading",
    "run_exit_functions",
]
