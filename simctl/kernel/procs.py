"""Simulated processes: who acts, with which user id, and what memory a fork shares with whom."""

import copy
import enum
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

import attrs
from msgspec import UNSET, UnsetType

from simctl.kernel.causes import Cause
from simctl.kernel.threads import Body, Killed, Thread
from simctl.kernel.trace import Trace
from simctl.kernel.turns import Kernel

SIGHUP: Final = 1
SIGINT: Final = 2
SIGKILL: Final = 9
SIGUSR1: Final = 10
SIGUSR2: Final = 12
SIGTERM: Final = 15
SIGCONT: Final = 18
SIGSTOP: Final = 19
SIGTSTP: Final = 20


BY_PLUGIN: Final = "plugin"
"""Who has ended a process whose plugin has, by a crash or by calling exit."""

OUT_OF_MEMORY_STATUS: Final = 0xFD
"""What stands for a wait status where a process was killed for the memory it used."""


class RunsAs(enum.Enum):
    """As whom a process acts; root's own jobs act as the user as well, with uid 0."""

    ROOT = "root"
    SLURM_USER = "SlurmUser"
    USER = "user"
    EITHER = "root or user"
    """No process's own: stands in declarations for a call that both may make."""


def wait_status(exit_code: int) -> int:
    """Return the wait status of a process that left with *exit_code*."""
    return (exit_code & 0xFF) << 8


def exit_code_of(status: int) -> int:
    """Return the exit code in a wait status; 0 when a signal ended the process."""
    return 0 if status & 0x7F else status >> 8 & 0xFF


def signal_of(status: int) -> int:
    """Return the signal in a wait status; 0 when the process left by itself."""
    return status & 0x7F


def wait_status_text(status: int) -> str:
    """Return how a process ended, for people: its exit code, or the signal that ended it."""
    number = signal_of(status)
    return f"signal {number}" if number else f"exit code {exit_code_of(status)}"


class StateNotCopyableError(Exception):
    """A plugin keeps something in memory that no fork could copy.

    Attributes:
        attribute: Name of what could not be copied; empty if that is the whole object.
    """

    def __init__(self, kept: object, attribute: str, why: str) -> None:
        what = f"attribute {attribute!r}" if attribute else "this object"
        super().__init__(
            f"{type(kept).__name__}: {what} cannot be copied at a fork ({why}); "
            "give the class a __deepcopy__ or keep it outside the instance"
        )
        self.attribute = attribute


class Memory:
    """What the plugins of a process keep, shared with its forks until one of them touches it.

    A fork only counts the holders up. The first holder to call a plugin takes a copy for itself, so
    that no process sees what another wrote after the fork; a memory that holds nothing that
    could change is never copied at all. One that a plugin's own thread works in is copied at the
    fork itself: the thread goes on in it whatever the plugin is called for.
    """

    __slots__ = ("credential", "holders", "inert", "instances", "threaded")

    def __init__(self) -> None:
        self.instances: dict[str, Any] = {}
        self.credential: Any = None
        self.holders = 1
        self.inert = True
        self.threaded = False

    def load(self, plugin_class: str, instance: Any) -> None:
        """Keep *instance* as the plugin for *plugin_class*, such as ``switch``."""
        self.instances[plugin_class] = instance
        self.inert = self.inert and _is_stateless(instance)

    def store(self, credential: Any) -> None:
        """Keep the credential of the step, which a plugin may change in place."""
        self.credential = credential
        if credential is not None and credential.value is not None:
            self.inert = False

    def forked(self) -> "Memory":
        """Return what a fork of its process has: this memory as well, or at once a copy."""
        if self.threaded and not self.inert:
            return self.duplicate()
        self.holders += 1
        return self

    def duplicate(self) -> "Memory":
        """Return a copy of all it holds.

        Raises:
            StateNotCopyableError: Something in it cannot be copied.
        """
        duplicate = Memory()
        duplicate.inert = False
        memo: dict[int, Any] = {}
        duplicate.instances = {
            name: _copy(instance, instance, memo) for name, instance in self.instances.items()
        }
        if self.credential is not None:
            duplicate.credential = _copy(self.credential, self.credential.value, memo)
        return duplicate


_ROOMLESS: dict[type, bool] = {}
"""Which classes have instances that can store nothing."""


def _is_stateless(instance: Any) -> bool:
    """Return whether nothing can be stored in an instance, so that sharing it shows nothing."""
    kind: type = type(instance)
    known = _ROOMLESS.get(kind)
    if known is None:
        slots = any(vars(base).get("__slots__") for base in kind.__mro__)
        known = _ROOMLESS[kind] = kind.__dictoffset__ == 0 and not slots
    return known


def _copy(held: Any, kept: Any, memo: dict[int, Any]) -> Any:
    """Copy what memory holds; *kept* is the plugin's object in it, whose attributes are blamed."""
    try:
        return copy.deepcopy(held, memo)
    except Exception as error:
        for name, value in _attributes(kept).items():
            try:
                copy.deepcopy(value)
            except Exception:  # noqa: BLE001 - whatever stops a copy is told by attribute
                raise StateNotCopyableError(kept, name, str(error)) from error
        raise StateNotCopyableError(kept, "", str(error)) from error


def _attributes(kept: Any) -> dict[str, Any]:
    try:
        return dict(object.__getattribute__(kept, "__dict__"))
    except AttributeError:
        return {}


@attrs.define(eq=False)
class Host:
    """A machine: what runs on it, and whether it is up."""

    name: str
    node: str | None
    """The compute node's name; None for the controller's host, ``login`` for the login host."""

    up: bool = True
    booted_us: int = 0
    """When it was started."""

    processes: "dict[int, Process]" = attrs.field(factory=dict)


class Process:
    """One simulated process; `cause` is the seq of the event that its next event follows from.

    `run_of_job` is which run of its job it belongs to, -1 where that is not known; a process that
    is restarted from an image has the environment of an earlier run.
    """

    __slots__ = (
        "about",
        "begun",
        "cause",
        "daemon",
        "ended_by",
        "env",
        "errno",
        "euid",
        "exited",
        "host",
        "job",
        "memory",
        "name",
        "naps",
        "outside",
        "owner",
        "pid",
        "ppid",
        "role",
        "run_of_job",
        "runs_as",
        "said",
        "spoken",
        "step",
        "stepd",
        "table",
        "task",
        "threads",
        "uid",
        "unit",
        "why",
    )

    def __init__(
        self,
        table: "ProcessTable",
        host: Host,
        *,
        pid: int,
        ppid: int,
        daemon: str,
        role: str,
        uid: int,
        runs_as: RunsAs,
        job: int | UnsetType = UNSET,
        step: str | UnsetType = UNSET,
        task: int | UnsetType = UNSET,
        name: str = "",
        unit: str = "",
        memory: Memory | None = None,
    ) -> None:
        self.table = table
        self.about: Any = None
        """What the call of a plugin is about that it makes: job, step, and what real Slurm passes
        besides; a `simctl.plugins.hooks.About`."""
        self.unit = unit or f"host {host.name}"
        """Which processes it shares memory of the simulator with, where footprints are kept."""
        self.host = host
        self.pid = pid
        self.ppid = ppid
        self.daemon = daemon
        self.role = role
        self.uid = uid
        self.euid = uid
        self.runs_as = runs_as
        self.job = job
        self.step = step
        self.task = task
        self.name = name or daemon
        self.owner = uid
        self.env: dict[str, str] = {}
        self.memory = memory or Memory()
        self.errno = 0
        self.why = ""
        self.spoken: list[str] = []
        self.naps = 0
        self.run_of_job = -1
        self.cause = 0
        self.begun = 0
        """The cause of the first that it does, and of its end if that may come at any time."""
        self.exited = False
        self.ended_by = ""
        """Who has ended it, where that was neither itself nor a signal from outside."""
        self.said = ""
        """The first error that it has told its user, where it is a command."""
        self.outside: Callable[[], None] | None = None
        """Told when it ends: something outside of the simulation stands for it."""
        self.threads: list[Thread] = []
        self.stepd: Any = None
        """What a step daemon offers to plugins in it and in its forks; a `simctl.api.stepd`
        Services. None in every other process."""

    def fork(
        self,
        *,
        daemon: str = "",
        role: str,
        task: int | UnsetType = UNSET,
        fresh: bool = False,
        apart: bool = False,
        name: str = "",
    ) -> "Process":
        """Make a child that shares this process's memory until either touches it.

        A *fresh* child executes another program at once, and starts with a memory of its own. One
        that is *apart* reaches its parent, and its parent it, by messages and files alone.
        """
        table = self.table
        child = table.add(
            self.host,
            ppid=self.pid,
            daemon=daemon or self.daemon,
            role=role,
            uid=self.uid,
            runs_as=self.runs_as,
            job=self.job,
            step=self.step,
            task=task,
            name=name or self.name,
            unit="" if apart else self.unit,
            apart=apart,
            memory=None if fresh else self.memory.forked(),
        )
        child.owner = self.owner
        child.run_of_job = self.run_of_job
        child.env = self.env
        if not fresh:
            child.stepd = self.stepd
        try:
            child.cause = child.begun = table.trace.process(self, "fork", child.pid)
        except Killed:
            # Its parent was killed upon that very event: no process knows the child.
            child.exit(SIGKILL)
            raise
        return child

    def become_user(self, uid: int) -> None:
        """Give up root for good."""
        self.uid = self.euid = uid
        self.runs_as = RunsAs.USER
        self.cause = self.table.trace.process(self, "become_user", uid)

    def exec(self, program: str) -> None:
        """Become another program; what plugins kept in memory is gone."""
        try:
            self.cause = self.begun = self.table.trace.process(self, "exec", program)
        finally:
            # The caller may be killed upon that very event.
            if self.threads:
                self._end_other_threads()
            self.stepd = None
            self.memory.holders -= 1
            self.memory = _NOTHING

    def exit(self, status: int) -> None:
        """End with a wait status; harmless when it has ended already."""
        if self.exited:
            return
        kernel = self.table.kernel
        if kernel.line is not None:
            kernel.touch(self.unit)
            kernel.look(f"processes {self.host.name}")
        self.exited = True
        if self.threads:
            self._end_other_threads()
            # A thread knows its process: let go of it, so that neither waits for the collector.
            self.threads = [thread for thread in self.threads if not thread.finished]
        self.stepd = None
        self.memory.holders -= 1
        self.memory = _NOTHING
        del self.host.processes[self.pid]
        self.cause = self.table.trace.process(self, "exit", status)
        if self.outside is not None:
            self.outside()

    def _end_other_threads(self) -> None:
        """End the threads that a plugin has started in this process."""
        for thread in self.threads:
            if thread.of_plugin:
                self.table.kernel.kill(thread)

    def touch(self) -> Memory:
        """Return this process's memory, copied if a fork still shares it."""
        memory = self.memory
        if memory.holders != 1 and not memory.inert:
            self.memory = memory.duplicate()
            memory.holders -= 1
        return self.memory

    def start(
        self,
        body: Body,
        name: str = "",
        *,
        due_us: int = -1,
        lingers: bool = False,
    ) -> Thread:
        """Start a thread of this process in a turn of its own."""
        thread = self.table.kernel.spawn(
            self, name or self.name, body, due_us=due_us, lingers=lingers
        )
        if self.threads:
            if self.table.trace.recording:
                # Nothing orders it and what the other threads do from now on.
                thread.cause = Cause.of(self.cause, (self.cause,))
            self.threads = [each for each in self.threads if not each.finished]
        self.threads.append(thread)
        return thread


CALLING: ContextVar[Process] = ContextVar("CALLING")
"""The process on whose behalf a plugin runs at present."""

_NOTHING = Memory()
"""The memory of a process that has executed a program or ended."""


class ProcessTable:
    """Every process of the run, and the numbers they bear."""

    reach: Any = None
    """What code in a process can reach; set once as the world is built, see api/reach.py."""
    slurmctld: Any = None
    """What slurmctld offers to plugins that run in it; None where there is no slurmctld."""

    def __init__(self, kernel: Kernel, trace: Trace) -> None:
        self.kernel = kernel
        self.trace = trace
        self._pid = 0
        self.divides = False
        """Whether what is apart from other processes has a unit of its own."""
        self.units: dict[int, str] = {}
        """The units of processes that have one of their own, by pid."""

    def add(self, host: Host, *, apart: bool = False, **fields: Any) -> Process:
        """Make a process on *host*; pids are unique in a run and mean nothing more."""
        self._pid = pid = self._pid + 1
        line = self.kernel.line
        if line is not None and line.steps is not None:
            line.steps.look(f"processes {host.name}")
            line.steps.number()
            if apart and self.divides:
                fields["unit"] = f"process {line.fresh_name()}"
        process = Process(self, host, pid=pid, **fields)
        if self.divides:
            self.units[pid] = process.unit
        host.processes[pid] = process
        return process

    def stop(self, process: Process) -> None:
        """Let a process do nothing more until it is continued, as SIGSTOP does."""
        for thread in process.threads:
            self.kernel.freeze(thread)

    def go_on(self, process: Process) -> None:
        """Continue a stopped process, as SIGCONT does."""
        for thread in process.threads:
            self.kernel.thaw(thread)

    def kill(self, process: Process, status: int = SIGKILL) -> None:
        """End a process and its threads at once, as SIGKILL does."""
        for thread in process.threads:
            self.kernel.kill(thread)
        # However far it has come: it might have been killed before.
        self.trace.choose(process, process.begun)
        process.exit(status)
