"""A process that runs a script: what it knows, and how it waits for what it has started."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NoReturn, Self

from simctl.kernel.disk import DiskView
from simctl.kernel.procs import (
    OUT_OF_MEMORY_STATUS,
    SIGKILL,
    Process,
    exit_code_of,
    signal_of,
)
from simctl.kernel.threads import Killed, Thread
from simctl.site import Site, User
from simctl.stepd.hosts.child import Child, Running
from simctl.stepd.journal import JournalingHost
from simctl.stepd.outcome import NEVER_US
from simctl.stepd.programs import Input, ScriptRun
from simctl.stepd.scripts.host import (
    Body,
    DeadlySignal,
    Disposition,
    Interrupted,
    OpenFile,
    PipeEnd,
    Redirects,
    Stream,
)
from simctl.stepd.signals import EXIT_TRAP, SIGINT
from simctl.stepd.streams import BROKEN, Output, Streams

_STDERR: Final = 2
_SIGPIPE: Final = 13


class Base:
    """A process of a script, and its children.

    Args:
        user: whose it is.
        work_dir: where it stands at first.
        output: takes what it writes to the outputs that it was given, by descriptor.
        ended: is told how it has ended, with a wait status.
        stdin: what it can read.
        parent: the process of a script that has forked it.
        redirects: its descriptors, if a script has started it.
    """

    _body: Body | None = None
    """What a subshell does."""

    _run: ScriptRun | None = None
    """The script or the tool that it executes."""

    _foreground: Child | None = None
    """The child that the shell waits for to go on."""

    _resumed: Child | None = None
    """That of an image, which the shell has yet to ask for."""

    _journal: JournalingHost | None = None
    _begun = False
    _waiter: Thread | None = None
    _interruptible = False
    _deadly = 0
    """A signal of which the shell is to die once it has run its EXIT trap."""

    _awaited: Child | None = None
    """The child, a subshell or a program, that the shell can do nothing but wait for."""

    _interrupted = False
    """INT came while the shell waited for a child in the foreground."""

    _out_of_memory = False
    _stopped = False
    _paused = False
    _kept: tuple[int, ...] = ()
    """The signals that reached it while it was stopped."""

    def __init__(
        self,
        site: Site,
        process: Process,
        *,
        user: User,
        work_dir: str,
        output: Output,
        ended: Callable[[int], None],
        stdin: Input | None = None,
        parent: Self | None = None,
        redirects: Redirects | None = None,
    ) -> None:
        self._site = site
        self._kernel = site.kernel
        self.process = process
        self._user = user
        self._work_dir = work_dir
        self._ended = ended
        self._parent = parent
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self._streams: Streams = (
            parent._streams
            if parent is not None
            else Streams(site.kernel, output, stdin or Input())
        )
        self._redirects = redirects or Redirects()
        self.held = self._redirects
        """What the descriptors of the process are now; its parent lets go of them at its end."""

        self._kept_ends: list[PipeEnd] = []
        """The ends of pipes that the shell itself holds, besides what its descriptors are."""

        self._left_behind: list[Running] = []
        """Of scripts that have ended before what they had started."""

        self._children: dict[int, Child] = {}
        self._dispositions: dict[int, Disposition] = (
            {} if parent is None else parent.ignored_signals()
        )
        self._pending: deque[int] = deque()
        self._pid = process.pid
        self._start_dir = work_dir
        self._first_env: dict[str, str] = {}

    @property
    def pid(self) -> int:
        """The process's own pid; after a restart the one that it had before."""
        return self._pid

    def ignored_signals(self) -> dict[int, Disposition]:
        """Return what a child inherits: the signals that are ignored."""
        return {number: how for number, how in self._dispositions.items() if how == "ignore"}

    def connect(self, redirects: Redirects, *, counted: bool = True) -> None:
        """Have other descriptors from now on; nobody waits any more for those there were."""
        if counted and self._parent is not None:
            self._streams.hold(redirects)
            self._streams.release(self.held)
        self.held = redirects

    @property
    def _files(self) -> DiskView:
        """The files of this host, as the script's user sees them from where it stands."""
        process = self.process
        return self._site.disk.view(process.host.name, process.uid, self._work_dir)

    async def _hold_still(self) -> None:
        """Do nothing while the script is stopped or its image is written."""
        while self._stopped or self._paused:
            self._waiter = self._kernel.current
            self._interruptible = False
            await self._kernel.park("SIGCONT" if self._stopped else "its image")
            self._waiter = None
        self._check_deadly()

    def _check_deadly(self) -> None:
        """Tell the shell that it dies; another signal then ends it at once."""
        if self._deadly:
            signal, self._deadly = self._deadly, 0
            self._dispositions.pop(EXIT_TRAP, None)
            raise DeadlySignal(signal)

    def die(self, signal: int) -> NoReturn:
        """End the process by a signal."""
        self._site.procs.kill(self.process, signal)
        self._tell_end(signal)
        raise Killed

    def _tell_end(self, status: int) -> None:
        """Tell how the script ended; that a child took too much memory counts for all of it."""
        while self._kept_ends:
            self._streams.release_end(self._kept_ends.pop())
        self._ended(OUT_OF_MEMORY_STATUS if self._out_of_memory else status)

    @property
    def has_children(self) -> bool:
        """Return whether a child has not ended."""
        return bool(self.live_children())

    def live_children(self) -> list[Child]:
        """Return the children that have not ended, and what ended ones have left, oldest first."""
        found = [child for child in self._children.values() if not child.ended]
        if self._left_behind:
            for host in self._left_behind:
                found += host.live_children()
            found.sort(key=lambda child: child.process.pid)
        return found

    def _say(self, stream: Stream, text: str) -> bool:
        """Write what a child says; return whether it wrote into a pipe without a reader."""
        wrong = self._streams.write(stream, text, self._files)
        if wrong and wrong != BROKEN and isinstance(stream, OpenFile):
            # Since it was opened it may have gone, or the disk have filled.
            self._streams.output(_STDERR, f"{stream.path}: write error: {wrong}\n")
        return wrong == BROKEN

    def _watch(self, child: Child) -> None:
        """Have a program in the background end in time; of others, the one who waits sees to it."""
        if child.due_us < NEVER_US:
            child.timer = self._kernel.call_at(child.due_us, self._expire, child)

    def _expire(self, child: Child) -> None:
        if child.ended:
            return
        program = child.program
        if program is not None and program.output:
            broken = self._say(child.redirects.stdout, program.output)
            if broken and _SIGPIPE not in program.ignores:
                self._end(child, _SIGPIPE)
                return
        self._end(child, child.planned)

    def _end(self, child: Child, status: int) -> None:
        if child.ended:
            return
        if status == OUT_OF_MEMORY_STATUS:
            self._out_of_memory = True
            status = SIGKILL
        child.ended = True
        child.status = status
        if child.host is not None and child.host.live_children():
            self._left_behind.append(child.host)
        held = child.redirects if child.host is None else child.host.held
        child.call = child.host = None
        self._streams.release(held)
        self._streams.processes -= 1
        if child.timer is not None:
            child.timer.cancel()
        child.process.exit(status)
        if self._waiter is not None:
            self._kernel.wake(self._waiter)

    def _status(self, child: Child) -> int:
        child.awaited = True
        forked, self.process.cause = self.process.cause, child.process.cause
        if forked != child.forked:
            # It has waited for others as well, or has done something meanwhile.
            self._site.trace.join(self.process, forked)
        return shell_status(child.status)

    async def _wait_for(
        self, children: list[Child], *, interruptible: bool, due_us: int = NEVER_US
    ) -> int:
        """Wait until one of these has ended, and return its pid; 0 if none has by *due_us*."""
        kernel = self._kernel
        while True:
            held = self._stopped or self._paused
            if not held:
                self._check_deadly()
            ended = next((child for child in children if child.ended), None)
            if ended is not None and not held:
                self._die_with(ended)
                return ended.pid
            if kernel.now_us >= due_us and not held:
                return 0
            if interruptible and self._pending and not held:
                raise Interrupted(self._pending[0])
            child = children[0]
            timed = (
                child.timer is None
                and not child.ended
                and child.program is not None
                and child.due_us < NEVER_US
            )
            wakes_us = min(child.due_us if timed else NEVER_US, due_us)
            if wakes_us < NEVER_US and not (due_us <= kernel.now_us):
                kernel.arm(wakes_us)
            self._waiter = kernel.current
            self._interruptible = interruptible
            self._awaited = None if interruptible else child
            await kernel.park(f"{child.process.name} (pid {child.process.pid}) to end")
            self._waiter = self._awaited = None
            if timed and kernel.now_us >= child.due_us:
                self._expire(child)

    def _die_with(self, child: Child) -> None:
        """End by an INT that came meanwhile, if the child in the foreground ended by it as well.

        A shell takes it from a child that did not that it has seen to the signal.
        """
        interrupted, self._interrupted = self._interrupted, False
        if interrupted and child.status == SIGINT:
            if self._dispositions.get(EXIT_TRAP) != "trap":
                self.die(SIGINT)
            self._deadly = SIGINT
            self._check_deadly()


def shell_status(status: int) -> int:
    """Return a wait status as a shell knows it: an exit code, or 128 and the signal."""
    signal = signal_of(status)
    return 128 + signal if signal else exit_code_of(status)
