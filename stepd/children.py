"""The process that a script runs in: its programs and commands, its files, its signals."""

import posixpath
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol

import attrs
from msgspec import UNSET

from simctl.kernel.disk import DiskView
from simctl.kernel.procs import (
    OUT_OF_MEMORY_STATUS,
    SIGCONT,
    SIGKILL,
    SIGSTOP,
    Process,
    exit_code_of,
    signal_of,
    wait_status,
)
from simctl.kernel.threads import Killed, Thread
from simctl.kernel.turns import Timer
from simctl.limits import SCRIPT_FORKS, SCRIPT_PROCESSES, SUBSHELL_NESTING
from simctl.plugins.guard import DiedError
from simctl.site import CommandCall, Site, User
from simctl.stepd.image_file import (
    ChildState,
    CommandState,
    ImageError,
    ProgramState,
    ScriptState,
    State,
    redirects_of,
    redirects_state,
)
from simctl.stepd.journal import DivergedError, JournalingHost
from simctl.stepd.outcome import (
    NEVER_US,
    SHELL_IMAGE,
    ProgramRun,
    by_default_stops,
    default_status,
)
from simctl.stepd.programs import Input, ScriptRun, script_of
from simctl.stepd.scripts.host import (
    Body,
    Disposition,
    Info,
    Inherited,
    Interrupted,
    OpenFile,
    OpenText,
    PipeEnd,
    Redirects,
    ShellHost,
    Stream,
)
from simctl.stepd.scripts.shell import Shell
from simctl.stepd.scripts.tools import TOOLS, Tool
from simctl.stepd.scripts.tree import OpenMode
from simctl.stepd.signals import SIGINT, SIGQUIT
from simctl.stepd.stopping import Pausable, left_us, pause, take_signal, unpause
from simctl.stepd.streams import BROKEN, BlockedError, Output, Streams
from simctl.wire.command_lines import reads_input
from simctl.wire.ids import SECOND

_STDERR: Final = 2
_TRAP_KEEPS = "trap"
_SIGPIPE: Final = 13
_KEYBOARD: Final = (SIGINT, SIGQUIT)


@attrs.frozen(kw_only=True)
class Signalled:
    """Tell a command's own thread that a signal reached its process."""

    signal: int


@attrs.define(eq=False, kw_only=True)
class Child:
    """A program that a script has started."""

    process: Process
    pid: int
    """The pid that the script knows; one that was restarted from an image has another besides."""

    argv: tuple[str, ...] = ()
    program: ProgramRun | None = None
    due_us: int = NEVER_US
    planned: int = 0
    left_us: int = -1
    kept: tuple[int, ...] = ()
    paused_us: int = -1
    held: tuple[int, ...] = ()
    stopped: bool = False
    """A command is stopped; of programs `left_us` tells."""

    redirects: Redirects = attrs.field(factory=Redirects)
    forked: int = 0
    """The cause of its fork."""

    awaited: bool = False
    """The script knows how it ended."""

    status: int = 0
    ended: bool = False
    timer: Timer | None = None
    host: "ScriptHost | None" = None
    call: CommandCall | None = None


_NO_CHILD: Final = 127
_NOT_EXECUTED: Final = 126


def command_name(argv: tuple[str, ...]) -> str:
    """Return the name under which a command of Slurm's would be known."""
    return argv[0].rsplit("/", 1)[-1]


class ScriptHost:
    """Runs one script in one simulated process, as sh does, and is the shell's way to the world."""

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
        parent: "ScriptHost | None" = None,
        redirects: Redirects | None = None,
    ) -> None:
        self._site = site
        self._kernel = site.kernel
        self.process = process
        self._user = user
        self._work_dir = work_dir
        self._ended = ended
        self._parent = parent
        self._depth: int = parent._depth + 1 if parent is not None else 0
        self._streams: Streams = (
            parent._streams
            if parent is not None
            else Streams(site.kernel, output, stdin or Input())
        )
        self._redirects = redirects or Redirects()
        self._held = self._redirects
        """What the descriptors of the process are now; its parent lets go of them at its end."""

        self._kept_ends: list[PipeEnd] = []
        """The ends of pipes that the shell itself holds, besides what its descriptors are."""

        self._left_behind: list[ScriptHost] = []
        """Of scripts that have ended before what they had started."""

        self._body: Body | None = None
        """What a subshell does."""

        self._children: dict[int, Child] = {}
        self._dispositions: dict[int, Disposition] = (
            {} if parent is None else parent.ignored_signals()
        )
        self._pending: deque[int] = deque()
        self._waiter: Thread | None = None
        self._interruptible = False
        self._out_of_memory = False
        self._stopped = False
        self._paused = False
        self._kept: tuple[int, ...] = ()
        self._pid = process.pid
        self._run: ScriptRun | None = None
        self._start_dir = work_dir
        self._first_env: dict[str, str] = {}
        self._journal: JournalingHost | None = None
        self._begun = False
        self._foreground: Child | None = None
        """The child that the shell waits for to go on."""

        self._resumed: Child | None = None
        """That of an image, which the shell has yet to ask for."""

    def ignored_signals(self) -> dict[int, Disposition]:
        """Return what a child inherits: the signals that are ignored."""
        return {number: how for number, how in self._dispositions.items() if how == "ignore"}

    def connect(self, redirects: Redirects, *, counted: bool = True) -> None:
        """Have other descriptors from now on; nobody waits any more for those there were."""
        if counted and self._parent is not None:
            self._streams.hold(redirects)
            self._streams.release(self._held)
        self._held = redirects

    def start_script(self, run: ScriptRun, env: dict[str, str]) -> None:
        """Run a script, or a tool, in a thread of the process; its end is told with a wait status.

        A shell that starts elsewhere than PWD says sets it right.
        """
        if not run.tool:
            env["PWD"] = self._work_dir
        self._run = run
        self._first_env = dict(env)
        self._start(self._main(run, env))

    def _main(self, run: ScriptRun, env: dict[str, str]) -> Body:
        """Return what a process does that executes a script or a tool."""
        redirects = self._redirects

        async def main(host: ShellHost) -> int:
            if run.tool:
                return await TOOLS[run.tool](Tool(host, run.argv, env, redirects))
            return await Shell(run.script, host, args=run.argv, env=env, streams=redirects).run()

        return main

    def _start(self, main: Body) -> None:
        host: ShellHost = self
        if self._site.images.enabled:
            self._journal = self._journal or JournalingHost(self)
            host = self._journal

        async def body() -> None:
            await self._hold_still()
            self._begun = True
            try:
                status = wait_status(await main(host))
            except DivergedError as error:
                name = self._run.argv[0] if self._run is not None else "a subshell"
                self._streams.output(2, f"{name}: {error}\n")
                status = wait_status(1)
            except RecursionError:
                name = self._run.argv[0] if self._run is not None else "a subshell"
                self._streams.output(2, f"{name}: what it does is nested too deep; it ends here\n")
                status = wait_status(1)
            self.process.exit(status)
            self._tell_end(status)

        self.process.start(body, "script")

    async def _hold_still(self) -> None:
        """Do nothing while the script is stopped or its image is written."""
        while self._stopped or self._paused:
            self._waiter = self._kernel.current
            self._interruptible = False
            await self._kernel.park("SIGCONT" if self._stopped else "its image")
            self._waiter = None

    def _tell_end(self, status: int) -> None:
        """Tell how the script ended; that a child took too much memory counts for all of it."""
        while self._kept_ends:
            self._streams.release_end(self._kept_ends.pop())
        self._ended(OUT_OF_MEMORY_STATUS if self._out_of_memory else status)

    # Signals from outside.

    def signal(self, number: int, *, children: bool) -> None:
        """Take a signal from the step daemon."""
        for child in self.live_children() if children else ():
            self.signal_child(child, number)
        self.deliver(number)

    @property
    def has_children(self) -> bool:
        """Return whether a child has not ended."""
        return bool(self.live_children())

    def kill_children(self) -> None:
        """Kill the children, save commands of Slurm's: these end by themselves."""
        for child in self.live_children():
            if child.call is None:
                self.signal_child(child, SIGKILL)

    def deliver(self, signal: int) -> None:
        """Take a signal as the script has arranged: end by it, drop it, or keep it for a trap.

        A script that is stopped takes signals once it is continued, save SIGKILL.
        """
        if self._stopped and signal != SIGKILL:
            self._take_while_stopped(signal)
            return
        disposition = self._dispositions.get(signal, "default")
        if signal == SIGSTOP or (disposition == "default" and by_default_stops(signal)):
            self._stopped = True
            return
        if signal != SIGKILL and disposition in ("ignore", "ignore alone"):
            return
        if signal != SIGKILL and disposition == _TRAP_KEEPS:
            self._pending.append(signal)
            if self._interruptible and self._waiter is not None:
                self._kernel.wake(self._waiter)
            return
        status = SIGKILL if signal == SIGKILL else default_status(signal)
        if status is not None and not self.process.exited:
            self._site.procs.kill(self.process, status)
            self._tell_end(status)

    def _take_while_stopped(self, signal: int) -> None:
        if signal != SIGCONT:
            if not by_default_stops(signal):
                self._kept += (signal,)
            return
        self._stopped = False
        kept, self._kept = self._kept, ()
        for each in (SIGCONT, *kept):
            self.deliver(each)
        if self._waiter is not None and not self.process.exited:
            self._kernel.wake(self._waiter)

    def live_children(self) -> list[Child]:
        """Return the children that have not ended, and what ended ones have left, oldest first."""
        found = [child for child in self._children.values() if not child.ended]
        if self._left_behind:
            for host in self._left_behind:
                found += host.live_children()
            found.sort(key=lambda child: child.process.pid)
        return found

    def signal_child(self, child: Child, signal: int) -> None:
        """Deliver a signal to a child of the script, and to a script's own children."""
        self._site.trace.process(child.process, "signal", signal)
        if child.paused_us >= 0 and signal != SIGKILL:
            child.held += (signal,)
        else:
            self._deliver_to(child, signal)

    def _signal_alone(self, child: Child, signal: int) -> None:
        """Deliver a signal to a child as `kill` does: what that has started gets none."""
        if child.host is None or child.paused_us >= 0:
            self.signal_child(child, signal)
            return
        self._site.trace.process(child.process, "signal", signal)
        child.host.deliver(signal)

    def _deliver_to(self, child: Child, signal: int) -> None:
        if child.host is not None:
            for grandchild in child.host.live_children():
                child.host.signal_child(grandchild, signal)
            child.host.deliver(signal)
        elif child.call is not None:
            self._signal_command(child, child.call, signal)
        elif child.program is not None:
            self._signal_program(child, child.program, signal)

    def _signal_program(self, child: Child, program: ProgramRun, signal: int) -> None:
        due_us = child.due_us
        status = take_signal(child, program, signal, self._kernel.now_us)
        if status is not None:
            self._end(child, status)
        elif child.due_us != due_us:
            # It was stopped, or goes on: what was to end it at its old time must not.
            if child.timer is not None:
                child.timer.cancel()
                child.timer = None
            if child.due_us < NEVER_US:
                child.timer = self._kernel.call_at(child.due_us, self._expire, child)

    def _signal_command(self, child: Child, call: CommandCall, signal: int) -> None:
        if signal == SIGCONT and child.stopped:
            child.stopped = False
            self._site.procs.go_on(child.process)
            kept, child.kept = child.kept, ()
            for each in kept:
                if not child.ended:
                    self._signal_command(child, call, each)
            return
        if by_default_stops(signal):
            child.stopped = True
            self._site.procs.stop(child.process)
            return
        if child.stopped and signal != SIGKILL:
            child.kept += (signal,)
            return
        if signal != SIGKILL and child.process.daemon in ("srun", "srun_cr", "salloc"):
            call.mailbox.post(Signalled(signal=signal))
            return
        status = SIGKILL if signal == SIGKILL else default_status(signal)
        if status is not None:
            call.mailbox.close(breaks=True)
            self._site.procs.kill(child.process, status)
            self._end(child, status)

    # The shell's side (ShellHost).

    @property
    def pid(self) -> int:
        """The process's own pid; after a restart the one that it had before."""
        return self._pid

    async def run(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Run a program and wait for its end."""
        # It may have stopped itself.
        await self._hold_still()
        child, self._resumed = self._resumed, None
        if child is None:
            child = self._launch(argv, env, redirects)
        self._foreground = child
        await self._wait_for([child], interruptible=False)
        self._foreground = None
        return self._status(child)

    def start(
        self,
        argv: tuple[str, ...],
        env: dict[str, str],
        redirects: Redirects,
        *,
        background: bool = False,
    ) -> int:
        """Start a program beside the shell; return its pid."""
        child = self._launch(argv, env, redirects)
        if background:
            self._set_apart(child)
        if child.program is not None:
            self._watch(child)
        return child.pid

    def _set_apart(self, child: Child) -> None:
        """Let a child in the background ignore the signals that a keyboard sends."""
        if child.program is not None:
            deaf = [each for each in _KEYBOARD if each not in child.program.exits_on]
            child.program = attrs.evolve(child.program, ignores=(*child.program.ignores, *deaf))
        elif child.host is not None:
            how: Disposition = "ignore" if child.argv else "ignore alone"
            for each in _KEYBOARD:
                child.host._dispositions.setdefault(each, how)

    def fork(self, body: Body, redirects: Redirects, *, background: bool = False) -> int:
        """Start a child that goes on with *body*; return its pid, 0 if there are too many."""
        if self._is_too_many:
            return 0
        own = self.process
        process = own.fork(role=own.role, task=own.task)
        process.env = own.env
        child = self._adopt(process, (), redirects)
        child.host = self._host_of(child)
        if background:
            self._set_apart(child)
        child.host._start_body(body)
        return child.pid

    @property
    def _is_too_many(self) -> bool:
        """Whether the script and what it has started may start nothing more."""
        streams = self._streams
        return streams.processes >= SCRIPT_PROCESSES or streams.started >= SCRIPT_FORKS

    def adopt(self, pid: int, body: Body) -> None:
        """Let the child *pid*, if it is one of an image, go on with *body*."""
        child = self._children.get(pid)
        if child is not None and child.host is not None:
            child.host._start_body(body)

    def _start_body(self, body: Body) -> None:
        self._body = body
        self._start(body)

    async def wait(
        self, pids: tuple[int, ...], *, interruptible: bool = True, until_us: int = 0
    ) -> int:
        """Wait for one of these children, for a trapped signal, or until a moment."""
        children = [self._children[pid] for pid in pids if pid in self._children]
        if not children:
            return pids[0]
        due_us = until_us - self._site.start_time_s * SECOND if until_us else NEVER_US
        return await self._wait_for(children, interruptible=interruptible, due_us=due_us)

    def status(self, pid: int) -> int:
        """Return the exit status of a child that has ended, 127 if it is none; else -1."""
        child = self._children.get(pid)
        if child is None:
            return _NO_CHILD
        return self._status(child) if child.ended else -1

    def kill(self, pid: int, signal: int) -> bool:
        """Send a signal to the script itself, to a child, or to whoever is above it."""
        if pid in (self.pid, self.process.pid):
            if signal:
                self._site.trace.process(self.process, "signal", signal)
                self.deliver(signal)
            if self.process.exited:
                raise Killed
            return True
        child = self._children.get(pid)
        if child is None or child.ended:
            return self._parent is not None and self._parent.kill_from_below(pid, signal)
        if signal:
            killed = child.call.killed if child.call is not None else None
            self._signal_alone(child, signal)
            if signal == SIGKILL and killed is not None:
                killed()
        return True

    def kill_from_below(self, pid: int, signal: int) -> bool:
        """Send a signal that a subshell sends to this script, or to another child of it."""
        if pid in (self.pid, self.process.pid):
            if signal and not self.process.exited:
                self._site.trace.process(self.process, "signal", signal)
                self.deliver(signal)
            return True
        child = self._children.get(pid)
        if child is not None and not child.ended:
            if signal:
                self._signal_alone(child, signal)
            return True
        return self._parent is not None and self._parent.kill_from_below(pid, signal)

    def has_program(self, name: str) -> bool:
        """Say whether there is a program of this name or path."""
        known = command_name((name,)) in self._site.commands
        return known or not self._site.programs.lacks((name,), self._files)

    @property
    def _files(self) -> DiskView:
        """The files of this host, as the script's user sees them from where it stands."""
        process = self.process
        return self._site.disk.view(process.host.name, process.uid, self._work_dir)

    def absolute(self, path: str) -> str:
        """Return a path as it is called from the root on."""
        return self._site.disk.resolve(path, self._work_dir)

    def open(self, path: str, mode: OpenMode, permissions: int = 0o666) -> OpenFile | str:
        """Make or empty a file, or check that it can be read."""
        where = self.absolute(path)
        try:
            if mode == "write":
                self._files.write(where, "", permissions)
            elif mode == "append" or (mode == "both" and not self._files.exists(where)):
                self._files.append(where, "", permissions)
            elif where != "/dev/null":
                self._files.read(where)
        except OSError as error:
            return error.strerror or str(error)
        number = 0 if mode in ("write", "append") else self._streams.open()
        return OpenFile(path=where, mode=mode, number=number)

    def text(self, text: str) -> OpenText:
        """Return a file that holds a text."""
        return self._streams.text(text)

    def pipe(self, *, keeps: Literal["", "r", "w"] = "") -> tuple[PipeEnd, PipeEnd]:
        """Return the two ends of a new pipe."""
        source, sink = self._streams.pipe()
        if keeps:
            kept = source if keeps == "r" else sink
            self._streams.hold_end(kept)
            self._kept_ends.append(kept)
        return source, sink

    def close(self, end: PipeEnd) -> None:
        """Let go of the end of a pipe that the shell kept."""
        if end in self._kept_ends:
            self._kept_ends.remove(end)
            self._streams.release_end(end)

    async def read(self, stream: Stream, until: str = "", most: int = 0) -> str | None:
        """Read from a stream, waiting while a pipe is empty."""
        while True:
            await self._hold_still()
            try:
                found = self._streams.read(stream, until, most, self._files)
            except BlockedError:
                assert isinstance(stream, PipeEnd)
                await self._wait_at(stream, "something to read")
                continue
            if isinstance(stream, PipeEnd):
                self._streams.drain(stream, found or "")
            return found

    async def _wait_at(self, end: PipeEnd, what: str) -> None:
        """Wait until something changes at a pipe, or to the script."""
        thread = self._kernel.current
        assert thread is not None
        self._streams.wait_for(end, thread)
        self._waiter, self._interruptible = thread, False
        await self._kernel.park(what)
        self._waiter = None

    async def write(self, stream: Stream, text: str) -> str:
        """Write to a descriptor, a file or a pipe, and wait for room in that."""
        wrong = self.put(stream, text)
        await self.drain(stream)
        return wrong

    def put(self, stream: Stream, text: str) -> str:
        """Write without waiting; a pipe that nobody reads ends the process, unless it minds not."""
        wrong = self._streams.write(stream, text, self._files)
        if wrong == BROKEN:
            self._site.trace.process(self.process, "signal", _SIGPIPE)
            self.deliver(_SIGPIPE)
            if self.process.exited:
                raise Killed
        return wrong

    async def drain(self, stream: Stream) -> None:
        """Wait until there is room in a pipe."""
        while isinstance(stream, PipeEnd) and self._streams.is_full(stream):
            await self._wait_at(stream, "room in a pipe")

    def info(self, path: str) -> Info | None:
        """Return what is at a path."""
        try:
            found = self._files.stat(path or "/nothing")
        except OSError:
            return None
        return Info(is_dir=found.is_dir, size=found.size, mode=found.mode, uid=found.uid)

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory."""
        try:
            return tuple(self._files.listdir(path))
        except OSError:
            return ()

    def change(self, what: str, path: str, argument: str = "") -> str:
        """Change files; return what stood in the way."""
        files = self._files
        try:
            match what:
                case "mkdir":
                    files.mkdir(path, int(argument or "755", 8))
                case "remove":
                    files.remove(path)
                case "rename":
                    files.rename(path, argument)
                case "chmod":
                    files.chmod(path, int(argument, 8))
                case "touch":
                    files.append(path, "", int(argument or "644", 8))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def facts(self) -> dict[str, str]:
        """Return what a shell knows of its surroundings."""
        process = self.process
        self._streams.seeds += 1
        where = f"{process.job}:{process.step}:{process.task}:{self._streams.seeds}"
        seed = zlib.crc32(f"{self._site.programs.seed}:{where}".encode())
        return {
            "HOSTNAME": process.host.name,
            "UID": str(process.uid),
            "USER": self._user.name,
            "PPID": str(process.ppid),
            "SEED": str(seed),
        }

    def now_us(self) -> int:
        """Return the present moment, in microseconds since 1970."""
        return self._site.start_time_s * SECOND + self._kernel.now_us

    def chdir(self, path: str) -> str:
        """Change the working directory."""
        where = self._site.disk.resolve(path, self._work_dir)
        if not self._files.is_dir(where):
            return "No such file or directory"
        self._work_dir = posixpath.normpath(where)
        return ""

    def set_trap(self, signal: int, disposition: Disposition) -> None:
        """Arrange what a signal does."""
        self._dispositions[signal] = disposition

    def take_signals(self) -> tuple[int, ...]:
        """Return the signals kept for traps."""
        taken = tuple(self._pending)
        self._pending.clear()
        if taken:
            # A trap is sprung wherever the script has come to.
            self._site.trace.choose(self.process, self.process.begun)
        return taken

    # Children.

    def _fork(self, argv: tuple[str, ...], env: dict[str, str]) -> Process:
        """Fork a child that executes a program, or is a command of Slurm's."""
        name = command_name(argv)
        main = self._site.commands.get(name)
        own = self.process
        # What a prolog or an epilog starts is no task of the job's.
        role = name if main is not None else "script" if own.role == "script" else "task"
        daemon = own.daemon if role == "script" else role
        process = own.fork(daemon=daemon, role=role, task=own.task)
        if main is not None:
            process.task = UNSET
            process.step = UNSET
            process.memory.holders -= 1
            process.memory = type(process.memory)()
        else:
            process.exec(argv[0])
        process.env = env
        return process

    def _adopt(self, process: Process, argv: tuple[str, ...], redirects: Redirects) -> Child:
        """Take in a child that was just forked."""
        pid = process.pid
        while pid in self._children:
            # A child of an image has the number.
            pid += 1
        child = self._children[pid] = Child(
            process=process, pid=pid, argv=argv, redirects=redirects
        )
        self._streams.hold(redirects)
        self._streams.processes += 1
        self._streams.started += 1
        child.forked = self.process.cause
        return child

    def _launch(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> Child:
        child = self._adopt(self._fork(argv, env), argv, redirects)
        name = command_name(argv)
        if name in self._site.commands:
            self._start_command(child, name, self._call(child, name, ""))
        else:
            self._start_program(child, argv, env, redirects)
        return child

    def _start_command(self, child: Child, name: str, call: CommandCall) -> None:
        main = self._site.commands[name]
        child.call = call
        stdin = child.redirects.stdin
        if isinstance(stdin, Inherited) and not call.stdin:
            call.stdin = self._streams.stdin.text
        reads = not isinstance(stdin, Inherited) and call.memory is None and reads_input(call.argv)

        async def body() -> None:
            if reads:
                call.stdin = await self._all_of(stdin)
            try:
                status = wait_status(await main(call))
            except DiedError as died:
                status = died.status
                self._site.procs.kill(child.process, status)
            call.mailbox.close(breaks=True)
            self._end(child, status)

        child.process.start(body, name)

    async def _all_of(self, stream: Stream) -> str:
        """Return all that a command of Slurm's reads from its standard input."""
        pieces: list[str] = []
        while True:
            try:
                found = self._streams.read(stream, "", 0, self._files)
            except BlockedError:
                thread = self._kernel.current
                assert thread is not None
                assert isinstance(stream, PipeEnd)
                self._streams.wait_for(stream, thread)
                await self._kernel.park("its standard input")
                continue
            if isinstance(stream, PipeEnd):
                self._streams.drain(stream, found or "")
            if not found:
                return "".join(pieces)
            pieces.append(found)

    def _call(self, child: Child, name: str, stdin: str) -> CommandCall:
        site = self._site
        process = child.process
        streams = {"stdout": child.redirects.stdout, "stderr": child.redirects.stderr}

        def write(stream: str, text: str) -> None:
            self._say(streams[stream], text)

        return CommandCall(
            site=site,
            process=process,
            mailbox=site.fabric.mailbox(process, f"{name}@{process.host.name}"),
            argv=child.argv,
            env=process.env,
            work_dir=self._work_dir,
            user=self._user,
            write=write,
            stdin=stdin,
        )

    def _say(self, stream: Stream, text: str) -> bool:
        """Write what a child says; tell whether it wrote into a pipe that nobody reads."""
        wrong = self._streams.write(stream, text, self._files)
        if wrong and wrong != BROKEN and isinstance(stream, OpenFile):
            # Since it was opened it may have gone, or the disk have filled.
            self._streams.output(_STDERR, f"{stream.path}: write error: {wrong}\n")
        return wrong == BROKEN

    def _start_program(
        self, child: Child, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects
    ) -> None:
        task = self.process.task
        rank = task if isinstance(task, int) else 0
        run = self._site.programs.find(argv, rank, self._files, None)
        if isinstance(run, ScriptRun) and (self._is_too_many or self._depth >= SUBSHELL_NESTING):
            told = f"{argv[0]}: too many processes of this script have been started\n"
            run = ProgramRun(runs_us=0, status=wait_status(_NOT_EXECUTED), error=told)
        if isinstance(run, ScriptRun):
            child.host = self._host_of(child)
            child.host.start_script(run, env)
            return
        ignored = tuple(self.ignored_signals())
        child.program = attrs.evolve(run, ignores=(*run.ignores, *ignored)) if ignored else run
        child.planned = run.status
        child.due_us = min(NEVER_US, self._kernel.now_us + run.runs_us)
        if run.error:
            self._say(redirects.stderr, run.error)

    def _host_of(self, child: Child) -> "ScriptHost":
        """Return what a script, a tool or a subshell that this one has started runs in."""
        return ScriptHost(
            self._site,
            child.process,
            user=self._user,
            work_dir=self._work_dir,
            output=self._streams.output,
            ended=lambda status: self._end(child, status),
            parent=self,
            redirects=child.redirects,
        )

    def _watch(self, child: Child) -> None:
        """Have a program in the background end in time; of others, whoever waits sees to it."""
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
        held = child.redirects if child.host is None else child.host._held
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
        signal = signal_of(child.status)
        return 128 + signal if signal else exit_code_of(child.status)

    async def _wait_for(
        self, children: list[Child], *, interruptible: bool, due_us: int = NEVER_US
    ) -> int:
        """Wait until one of these has ended, and return its pid; 0 if none has by *due_us*."""
        kernel = self._kernel
        while True:
            held = self._stopped or self._paused
            ended = next((child for child in children if child.ended), None)
            if ended is not None and not held:
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
            await kernel.park(f"{child.process.name} (pid {child.process.pid}) to end")
            self._waiter = None
            if timed and kernel.now_us >= child.due_us:
                self._expire(child)

    # Images.

    def pause(self) -> None:
        """Stop the script and all it has started, while their image is written."""
        self._paused = True
        now_us = self._kernel.now_us
        for child in self.live_children():
            pause(child, now_us)
            if child.timer is not None:
                child.timer.cancel()
                child.timer = None
            if child.host is not None:
                child.host.pause()
            elif child.call is not None and not child.stopped:
                self._site.procs.stop(child.process)

    def unpause(self) -> None:
        """Let them go on, and take the signals that came meanwhile."""
        self._paused = False
        for child in self.live_children():
            if child.paused_us >= 0:
                self._unpause_child(child)
        if self._waiter is not None and not self.process.exited:
            self._kernel.wake(self._waiter)

    def _unpause_child(self, child: Child) -> None:
        held = unpause(child, self._kernel.now_us)
        if child.host is not None:
            child.host.unpause()
        elif child.call is not None:
            if not child.stopped:
                self._site.procs.go_on(child.process)
        elif child is not self._foreground:
            self._watch(child)
        for signal in held:
            if not child.ended:
                self._deliver_to(child, signal)

    def commands(self) -> list[CommandCall]:
        """Return the commands of Slurm's that run below this script, oldest first."""
        found: list[CommandCall] = []
        for child in self.live_children():
            if child.host is not None:
                found += child.host.commands()
            elif child.call is not None:
                found.append(child.call)
        return found

    def state(self, memories: Mapping[int, Any]) -> ScriptState:
        """Return the state of the script, paused or not, and of all it has started.

        Args:
            memories: What commands want to be remembered, by their pids.

        Raises:
            ImageError: It keeps no journal.
        """
        if self._journal is None:
            raise ImageError("a script whose journal nobody keeps has no image")
        waited = self._foreground
        run = self._run
        return ScriptState(
            text=run.text if run is not None else "",
            argv=run.argv if run is not None else (),
            tool=run.tool if run is not None else "",
            forked=run is None,
            streams=self._streams.state() if self._parent is None else None,
            kept_ends=tuple((end.number, end.reads) for end in self._kept_ends),
            env=self._first_env,
            pid=self._pid,
            begun=self._begun,
            start_dir=self._start_dir,
            work_dir=self._work_dir,
            stdin=self._streams.stdin.text if self._parent is None else "",
            journal=tuple(self._journal.entries),
            foreground=waited.pid if waited is not None else 0,
            children=tuple(
                self._child_state(child, memories)
                for child in self._children.values()
                if not (child.ended and child.awaited)
            ),
            dispositions=dict(self._dispositions),
            pending=tuple(self._pending),
            stopped=self._stopped,
            kept=self._kept,
            out_of_memory=self._out_of_memory,
            size=SHELL_IMAGE,
        )

    def _child_state(self, child: Child, memories: Mapping[int, Any]) -> ChildState:
        return ChildState(
            pid=child.pid,
            state=None if child.ended else self._state_of(child, memories),
            status=child.status,
            streams=redirects_state(child.redirects),
        )

    def _state_of(self, child: Child, memories: Mapping[int, Any]) -> State:
        if child.host is not None:
            return child.host.state(memories)
        if child.call is not None:
            return CommandState(
                argv=child.argv,
                env=child.call.env,
                work_dir=child.call.work_dir,
                stdin=child.call.stdin,
                memory=memories.get(child.process.pid),
                size=SHELL_IMAGE,
            )
        assert child.program is not None
        return program_state(child, child.program, child.argv, self._kernel.now_us)

    def restore(self, state: ScriptState, path: str) -> None:
        """Become the script of an image that lies at *path*, with all that it had started."""
        run = script_of(state)
        self._run = run
        self._pid = state.pid
        self._first_env = dict(state.env)
        self._start_dir, self._work_dir = state.start_dir, state.work_dir
        self._dispositions = dict(state.dispositions)
        self._pending.extend(state.pending)
        self._stopped, self._kept = state.stopped, state.kept
        self._out_of_memory = state.out_of_memory
        if state.streams is not None:
            self._streams.restore(state.streams)
        self._kept_ends = [PipeEnd(number=number, reads=reads) for number, reads in state.kept_ends]
        for child in state.children:
            self._restore_child(child, path, state.foreground)
        self._resumed = self._children.get(state.foreground)
        self._journal = JournalingHost(self, state.journal, begun=state.begun)
        if run is not None:
            self._start(self._main(run, dict(state.env)))

    def _restore_child(self, image: ChildState, path: str, foreground: int) -> None:
        redirects = redirects_of(image.streams)
        if image.state is None:
            self._children[image.pid] = Child(
                process=self.process, pid=image.pid, status=image.status, ended=True
            )
            return
        state = image.state
        argv = state.argv
        env = state.env if not isinstance(state, ProgramState) else self.process.env
        forked = isinstance(state, ScriptState) and state.forked
        own = self.process
        child = Child(
            process=own.fork(role=own.role, task=own.task)
            if forked
            else self._fork(argv, dict(env)),
            pid=image.pid,
            argv=argv,
            redirects=redirects,
        )
        self._children[image.pid] = child
        if isinstance(state, ScriptState):
            child.host = self._host_of(child)
            child.host.restore(state, path)
        elif isinstance(state, CommandState):
            self._restore_command(child, state, path)
        else:
            child.program = become(child, state, self._kernel.now_us)
            if image.pid != foreground:
                self._watch(child)

    def _restore_command(self, child: Child, state: CommandState, path: str) -> None:
        """Let a command go on from what it remembers; one that remembers nothing is lost."""
        name = command_name(child.argv)
        if state.memory is not None and name in self._site.commands:
            call = self._call(child, name, state.stdin)
            call.work_dir, call.memory, call.image = state.work_dir, state.memory, path
            self._start_command(child, name, call)
            return

        async def body() -> None:
            lost = f"{name}: error: restarted from a checkpoint image, with its connections lost\n"
            self._say(child.redirects.stderr, lost)
            self._end(child, wait_status(1))

        child.process.start(body, name)


def program_state(
    run: Pausable, program: ProgramRun, argv: tuple[str, ...], now_us: int
) -> ProgramState:
    """Return the state of a program."""
    return ProgramState(
        argv=argv,
        left_us=left_us(run, now_us),
        status=program.status,
        output=program.output,
        ignores=program.ignores,
        exits_on=dict(program.exits_on),
        stopped=run.left_us >= 0,
        kept=run.kept,
        size=program.image,
    )


class _Runs(Pausable, Protocol):
    planned: int


def become(run: _Runs, state: ProgramState, now_us: int) -> ProgramRun:
    """Have *run* go on as the program of an image, and return what that does."""
    run.planned = state.status
    run.kept = state.kept
    if state.stopped:
        run.left_us = state.left_us
    else:
        run.due_us = min(NEVER_US, now_us + state.left_us)
    return ProgramRun(
        runs_us=state.left_us,
        status=state.status,
        output=state.output,
        ignores=state.ignores,
        exits_on=state.exits_on,
        image=state.size,
    )
