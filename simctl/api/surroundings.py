"""What a plugin sees around it: its process, the time, its disk, slurm.conf, and a log."""

import re
import reprlib
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from pathlib import PurePath
from types import CoroutineType, TracebackType
from typing import Any, Final, Self

import attrs

from simctl.api.reach import reach_of
from simctl.kernel.disk import DiskView
from simctl.kernel.procs import CALLING, Process
from simctl.kernel.threads import ENDED, Thread
from simctl.kernel.turns import Kernel
from simctl.wire.ids import SECOND

_LONGEST_S: Final = 100 * 365 * 86_400
"""A hundred years: longer than any run."""

_NAPS_AT_MOST: Final = 100_000
"""How often one call may sleep before it counts as one that never comes back."""


class WatchdogError(BaseException):
    """A plugin's code took too long on the wall clock; `except Exception` does not stop this."""


_THREADS_AT_MOST: Final = 1000
"""How many threads a plugin may have in one process at a time."""


class OutsideCallError(LookupError):
    """A plugin asked for its surroundings where no daemon has called it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"simctl.plugin.{what} belongs to a call: use it inside a plugin's functions or its "
            "threads, not while the module is imported"
        )


def caller(what: str) -> Process:
    """Return the simulated process that runs the plugin's code at present."""
    try:
        return CALLING.get()
    except LookupError:
        raise OutsideCallError(what) from None


@attrs.frozen(kw_only=True)
class PluginProcess:
    """The process that calls the plugin.

    `role` is ``slurmctld``, ``slurmd``, ``manager``, ``session``, ``task`` or ``srun``; `hostname`
    the host it runs on; `env` a copy of its environment, in which nothing need be set: what a task
    gets is set in job_attach's.
    """

    pid: int
    ppid: int
    uid: int
    euid: int
    role: str
    hostname: str
    env: dict[str, str]


class _Environment(dict[str, str]):
    """A copy of a process's environment; a plugin that sets something in it is told."""

    __slots__ = ("_process",)

    def __init__(self, process: Process) -> None:
        super().__init__(process.env)
        self._process = process

    def __setitem__(self, key: str, value: str) -> None:
        super().__setitem__(key, value)
        self._process.table.trace.complain(
            self._process,
            "process().env",
            f"{key} is set in the {self._process.role} process's own environment, and no task "
            "gets it; set it in the env that job_attach is given",
        )


def process() -> PluginProcess:
    """Return the process on whose behalf the plugin runs.

    Raises:
        OutsideCallError: Outside a call of the plugin.
    """
    calling = caller("process()")
    calling.table.kernel.look_at_number()
    return PluginProcess(
        pid=calling.pid,
        ppid=calling.ppid,
        uid=calling.uid,
        euid=calling.euid,
        role=calling.role,
        hostname=calling.host.name,
        env=_Environment(calling),
    )


def now() -> float:
    """Return virtual time in seconds since the start of the run."""
    return caller("now()").table.kernel.now_us / SECOND


class StuckError(RuntimeError):
    """A plugin goes on and on in virtual time."""


class _Sleep:
    """A stretch of virtual time, to be awaited; one that is not is told in the trace."""

    __slots__ = ("_awaited", "_process", "_seconds")

    def __init__(self, process: Process, seconds: float) -> None:
        self._process = process
        self._seconds = seconds
        self._awaited = False

    def __await__(self) -> Generator[Any, None, None]:
        self._awaited = True
        return self._pass().__await__()

    async def _pass(self) -> None:
        process = self._process
        kernel = process.table.kernel
        thread = kernel.current
        if thread is not None and not thread.of_plugin:
            process.naps += 1
            if process.naps > _NAPS_AT_MOST:
                raise StuckError(f"slept {_NAPS_AT_MOST} times in one call without coming back")
        await kernel.sleep_us(round(self._seconds * SECOND))

    def __del__(self) -> None:
        if not self._awaited:
            problem = f"sleep({self._seconds:g}) was not awaited: no time passed"
            self._process.table.trace.complain(self._process, "sleep", problem)


def sleep(seconds: float) -> Awaitable[None]:
    """Let virtual time pass, when awaited; the calling process is blocked, as by a slow C plugin.

    Raises:
        ValueError: *seconds* is negative, or no number that a clock could reach.
        StuckError: When awaited: a call of a plugin has slept a hundred thousand times.
    """
    if not 0 <= seconds <= _LONGEST_S:
        raise ValueError(f"sleep: expected 0 to {_LONGEST_S} seconds, got {seconds!r}")
    return _Sleep(caller("sleep()"), seconds)


def disk() -> DiskView:
    """Return the file system as the calling process sees it: its host's, with its user's rights."""
    calling = caller("disk()")
    return reach_of(calling).disk.view(calling.host.name, calling.euid)


# Threads.


class Event:
    """A flag that threads of one process can wait for; a fork gets one of its own."""

    def __init__(self) -> None:
        """Start unset."""
        self._set = False
        self._waiting: list[Thread] = []

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._set

    def set(self) -> None:
        """Set it, and let all threads go on that wait for it, each in a turn."""
        self._set = True
        if self._waiting:
            self._release(caller("Event").table.kernel)

    def _release(self, kernel: Kernel) -> None:
        """Let all threads go on that wait."""
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            kernel.wake(thread)

    def clear(self) -> None:
        """Unset it."""
        self._set = False

    async def wait(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - virtual time
        """Wait until it is set, or for *timeout* seconds of virtual time; return whether it is."""
        kernel = caller("Event").table.kernel
        if timeout is not None and not 0 <= timeout <= _LONGEST_S:
            raise ValueError(f"wait: expected 0 to {_LONGEST_S} seconds, got {timeout!r}")
        due_us = None if timeout is None else kernel.now_us + round(timeout * SECOND)
        while not self._set and (due_us is None or kernel.now_us < due_us):
            thread = kernel.current
            assert thread is not None
            self._waiting.append(thread)
            if due_us is not None:
                kernel.arm(due_us)
            await kernel.park("an event of the plugin's")
            if thread in self._waiting:
                self._waiting.remove(thread)
        return self._set

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return what a fork has: the flag, and no thread that waits."""
        copied = type(self)()
        copied._set = self._set
        return copied


class PluginThread:
    """A thread that a plugin started in its process; it ends with the process at the latest."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: BaseException | None = None
        self._thread: Thread | None = None
        self._process: Process | None = None
        self._over = Event()

    @property
    def alive(self) -> bool:
        """Return whether it still runs; in a fork it never does."""
        return self._thread is not None and not self._over.is_set()

    async def join(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - virtual time
        """Wait for its end, for *timeout* seconds at most; return whether it has ended."""
        if not self.alive:
            return True
        return await self._over.wait(timeout)

    def cancel(self) -> None:
        """End it where it waits, in a turn of its own; harmless when it has ended."""
        if self._thread is not None and self._process is not None and self.alive:
            self._process.table.kernel.kill(self._thread)
            self._over.set()

    def _ended_unbegun(self) -> None:
        """Let those go on who wait for a thread that was killed before its first turn."""
        assert self._process is not None
        self._over._set = True
        self._over._release(self._process.table.kernel)

    def __deepcopy__(self, memo: dict[int, Any]) -> "PluginThread":
        """Return what a fork has: a thread that is not there."""
        return PluginThread(self.name)


ThreadBody = Callable[[], Coroutine[Any, Any, object]]


def start(body: ThreadBody, name: str = "") -> PluginThread:
    """Start a thread of the plugin in the calling process, in a turn of its own.

    The thread keeps no run alive by itself: when every job is done its process ends, and it with
    it. What it raises is told in the trace as a `plugin_error`, and ends it alone.

    Args:
        body: A function without parameters, defined with `async def`.
        name: What stalls and errors call the thread; its function's name if left out.

    Raises:
        TypeError: *body* is no such function.
        StuckError: The process had a thousand threads of the plugin's; they are ended.
    """
    process = caller("start()")
    running = [each for each in process.threads if each.of_plugin and not each.finished]
    if len(running) >= _THREADS_AT_MOST:
        for thread in running:
            process.table.kernel.kill(thread)
        raise StuckError(
            f"start: {_THREADS_AT_MOST} threads of the plugin's ran in this process; all were ended"
        )
    named = name or getattr(body, "__name__", "thread")
    if not callable(body):
        raise TypeError(f"start: expected a function defined with `async def`, got {body!r}")
    handle = PluginThread(named)
    process.memory.threaded = True

    async def run() -> None:
        await process.table.kernel.enter_task()
        CALLING.set(process)
        try:
            await run_thread_body(body)
        except BaseException as error:
            if isinstance(error, ENDED) and process.table.kernel.ends(error):
                raise
            handle.error = error
            process.table.trace.complain(process, f"thread {named}", told_failure(error))
        finally:
            handle._over.set()

    handle._process = process
    handle._thread = thread = process.start(run, f"plugin thread {named}", lingers=True)
    thread.never_ran = handle._ended_unbegun
    return handle


class Recurring:
    """What a plugin does again and again: see `every`."""

    def __init__(self, process: Process, length_us: int, body: ThreadBody, name: str) -> None:
        self._process = process
        self._length_us = length_us
        self._body = body
        self._name = name
        self._over = False

    def cancel(self) -> None:
        """Do it no more; what has begun goes on."""
        self._over = True

    def wait(self, length_us: int) -> None:
        """Have it done after a while."""
        kernel = self._process.table.kernel
        kernel.call_in_background(kernel.now_us + length_us, self._begin)

    def _begin(self) -> None:
        if self._over or self._process.exited:
            return
        CALLING.set(self._process)
        start(self._run, self._name)

    async def _run(self) -> None:
        try:
            await run_thread_body(self._body)
        finally:
            if not self._over:
                self.wait(self._length_us)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return what a fork has: something that does not recur."""
        copied = object.__new__(type(self))
        vars(copied).update({**vars(self), "_over": True})
        return copied


def every(seconds: float, body: ThreadBody, name: str = "", *, first: float = 0) -> Recurring:
    """Run a function in a thread of its own again and again, *seconds* after it has ended.

    It keeps no run alive, and a run does not wait for it, unlike for a thread that sleeps. *first*
    is after how many seconds it is run first, if not as later.

    Raises:
        ValueError: *seconds* is not above 0, or no number that a clock could reach.
    """
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError(f"every: expected more than 0 seconds, got {seconds!r}")
    recurring = Recurring(caller("every()"), round(seconds * SECOND), body, name)
    recurring.wait(round((first or seconds) * SECOND))
    return recurring


async def run_thread_body(body: ThreadBody) -> None:
    """Run what a plugin's thread consists of; the watchdog knows this function by name."""
    running = body()
    if type(running) is not CoroutineType:
        raise TypeError(f"start: {body!r} returned {running!r}; define it with `async def`")
    await running


_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def told_failure(error: BaseException) -> str:
    """Return what a plugin raised and where, without what differs between runs and machines."""
    problem = _told_error(error)
    # There may be millions: only the innermost are looked at.
    frames = deque(_frames(error.__traceback__), maxlen=_INNERMOST)
    if not frames:
        return problem
    # The plugin's own line says more than that of simctl's which it ran into.
    found = next((each for each in reversed(frames) if not _is_ours(each)), frames[-1])
    code = found.tb_frame.f_code
    return (
        f"{problem} ({PurePath(code.co_filename).name}, line {found.tb_lineno}, in {code.co_name})"
    )


_INNERMOST: Final = 1_000


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


_PACKAGE: Final = PurePath(__file__).parent.parent


def _is_ours(traceback: TracebackType) -> bool:
    path = PurePath(traceback.tb_frame.f_code.co_filename)
    return path.is_relative_to(_PACKAGE) and not path.is_relative_to(_PACKAGE / "scenarios")


def _told_error(error: BaseException) -> str:
    """Return an exception's type and text."""
    plain = error.args and type(error).__str__ is BaseException.__str__
    args: object = error.args[0] if len(error.args) == 1 else error.args
    return f"{type(error).__name__}: {told(in_words, args) if plain else told(str, error)}"


# slurm.conf and the log.


class Conf(Mapping[str, str | int | bool]):
    """The slurm.conf of the cluster, by Slurm's own key names, whatever their case.

    A key that is known to Slurm and was left out has Slurm's default; numbers are in the unit of
    slurm.conf.
    """

    def __getitem__(self, key: str) -> str | int | bool:
        """Return a key's value.

        Raises:
            KeyError: Slurm has no such key, or simctl does not simulate it.
        """
        return reach_of(caller("conf")).conf.value(key)

    def __iter__(self) -> Iterator[str]:
        """Return the keys that have a value here."""
        return iter(reach_of(caller("conf")).conf.keys())

    def __len__(self) -> int:
        """Return how many keys have a value here."""
        return len(reach_of(caller("conf")).conf.keys())


class Log:
    """Writes into the run's trace, as events of kind `log` and name `plugin_log`."""

    def debug(self, text: str, **values: object) -> None:
        """Log what only a reader who looks for it wants to know."""
        self._write("debug", text, values)

    def info(self, text: str, **values: object) -> None:
        """Log what happened."""
        self._write("info", text, values)

    def warning(self, text: str, **values: object) -> None:
        """Log what may be wrong."""
        self._write("warning", text, values)

    def error(self, text: str, **values: object) -> None:
        """Log what is wrong."""
        self._write("error", text, values)

    @staticmethod
    def _write(level: str, text: str, values: Mapping[str, object]) -> None:
        calling = caller("log")
        shown = {key: _shown(value) for key, value in values.items()}
        calling.cause = calling.table.trace.note(
            "log", "plugin_log", calling, args={"level": level, "text": _shown(text), **shown}
        )


def _shown(value: object) -> Any:
    if value is None or type(value) in (bool, float):
        return value
    if type(value) is int and abs(value) < 1 << 63:
        return value
    return told(in_words, value)


class _Steady(reprlib.Repr):
    """Writes five levels of containers whole, and sets in the order of their elements' texts.

    The order of a set of strings differs from one interpreter to the next.
    """

    def __init__(self) -> None:
        super().__init__()
        for limit in ("dict", "list", "tuple", "set", "frozenset", "deque", "array"):
            setattr(self, f"max{limit}", sys.maxsize)
        self.maxlevel = 5

    def repr_set(self, x: set[Any], level: int) -> str:
        return f"{{{self._elements(x, level)}}}" if x else "set()"

    def repr_frozenset(self, x: frozenset[Any], level: int) -> str:
        return f"frozenset({{{self._elements(x, level)}}})" if x else "frozenset()"

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        if level <= 0:
            return "{...}"
        pairs = (
            f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}"
            for key, value in x.items()
        )
        return f"{{{', '.join(pairs)}}}"

    def repr_str(self, x: str, level: int) -> str:
        return repr(x)

    def repr_int(self, x: int, level: int) -> str:
        return repr(x)

    def repr_instance(self, x: Any, level: int) -> str:
        return repr(x)

    def _elements(self, elements: Iterable[Any], level: int) -> str:
        if level <= 0:
            return "..."
        return ", ".join(sorted(self.repr1(each, level - 1) for each in elements))


_STEADY: Final = _Steady()
_CONTAINERS: Final = (set, frozenset, dict, list, tuple)


def in_words(value: object) -> str:
    """Return `str` of a value, with the sets inside of it in a steady order."""
    return _STEADY.repr(value) if type(value) in _CONTAINERS else str(value)


def told(tell: Callable[[Any], str], value: Any) -> str:
    """Return what an object of a plugin's says of itself, without what differs between runs."""
    try:
        text = _ADDRESS.sub("", tell(value))
    except BaseException as error:  # noqa: BLE001 - it is a plugin's object
        return f"a {type(value).__name__} that raises {type(error).__name__} when it is shown"
    # Half of a surrogate pair has no place in a file.
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
