"""The process that a script runs in: its programs and commands, its files, its signals."""

import posixpath
from collections import deque
from collections.abc import Callable

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
from simctl.kernel.turns import Killed, Thread, Timer
from simctl.plugins.site import CommandCall, Site, User
from simctl.stepd.outcome import NEVER_US, ProgramRun, by_default_stops, default_status
from simctl.stepd.programs import ScriptRun
from simctl.stepd.script_host import (
    Disposition,
    Inherited,
    Interrupted,
    OpenFile,
    Redirects,
    Stream,
)
from simctl.stepd.shell import Shell
from simctl.stepd.stopping import take_signal

Output = Callable[[int, str], None]
"""Takes a file descriptor (1 or 2) and a text that a process wrote to it."""

_TRAP_KEEPS = "trap"


@attrs.frozen(kw_only=True)
class Signalled:
    """Tell a command's own thread that a signal reached its process."""

    signal: int


@attrs.define(eq=False, kw_only=True)
class Child:
    """A program that a script has started."""

    process: Process
    program: ProgramRun | None = None
    due_us: int = NEVER_US
    planned: int = 0
    left_us: int = -1
    kept: tuple[int, ...] = ()
    stopped: bool = False
    """A command is stopped; of programs `left_us` tells."""

    stdout: Stream = attrs.field(factory=lambda: Inherited(descriptor=1))
    status: int = 0
    ended: bool = False
    timer: Timer | None = None
    host: "ScriptHost | None" = None
    call: CommandCall | None = None


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
    ) -> None:
        self._site = site
        self._kernel = site.kernel
        self.process = process
        self._user = user
        self._work_dir = work_dir
        self._output = output
        self._ended = ended
        self._children: dict[int, Child] = {}
        self._dispositions: dict[int, Disposition] = {}
        self._pending: deque[int] = deque()
        self._waiter: Thread | None = None
        self._interruptible = False
        self._out_of_memory = False
        self._stopped = False
        self._kept: tuple[int, ...] = ()

    def start_script(self, run: ScriptRun, env: dict[str, str]) -> None:
        """Run a script in a thread of the process; its end is told with a wait status.

        A shell that starts elsewhere than PWD says sets it right.
        """
        env["PWD"] = self._work_dir
        shell = Shell(run.script, self, args=run.argv, env=env)

        async def body() -> None:
            status = wait_status(await shell.run())
            self.process.exit(status)
            self._tell_end(status)

        self.process.start(body, "script")

    def _tell_end(self, status: int) -> None:
        """Tell how the script ended; that a child took too much memory counts for all of it."""
        self._ended(OUT_OF_MEMORY_STATUS if self._out_of_memory else status)

    # Signals from outside.

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
        if signal != SIGKILL and disposition == "ignore":
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
        """Return the children that have not ended, oldest first."""
        return [child for child in self._children.values() if not child.ended]

    def signal_child(self, child: Child, signal: int) -> None:
        """Deliver a signal to a child of the script, and to a script's own children."""
        process = child.process
        self._site.trace.process(process, "signal", signal)
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
            call.mailbox.close()
            self._site.procs.kill(child.process, status)
            self._end(child, status)

    # The shell's side (ShellHost).

    @property
    def pid(self) -> int:
        """The process's own pid."""
        return self.process.pid

    async def run(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Run a program and wait for its end."""
        while self._stopped:
            # It has stopped itself.
            self._waiter = self._kernel.current
            self._interruptible = False
            await self._kernel.park("SIGCONT")
            self._waiter = None
        child = self._launch(argv, env, redirects)
        await self._wait_for(child, interruptible=False)
        return self._status(child)

    def start(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Start a program in the background; return its pid."""
        child = self._launch(argv, env, redirects)
        if child.program is not None and child.due_us < NEVER_US:
            child.timer = self._kernel.call_at(child.due_us, self._expire, child)
        return child.process.pid

    async def wait(self, pid: int) -> int:
        """Wait for a background child, or for a trapped signal."""
        child = self._children.get(pid)
        if child is None:
            return 127
        await self._wait_for(child, interruptible=True)
        return self._status(child)

    def kill(self, pid: int, signal: int) -> bool:
        """Send a signal to the script itself or to a child."""
        if pid == self.pid:
            if signal:
                self._site.trace.process(self.process, "signal", signal)
                self.deliver(signal)
            if self.process.exited:
                raise Killed
            return True
        child = self._children.get(pid)
        if child is None or child.ended:
            return False
        if signal:
            self.signal_child(child, signal)
        return True

    @property
    def _files(self) -> DiskView:
        """The files of this host, as the script's user sees them from where it stands."""
        process = self.process
        return self._site.disk.view(process.host.name, process.uid, self._work_dir)

    def open(self, file: OpenFile) -> str:
        """Make or empty a file, or check that it can be read."""
        try:
            if file.mode == "read":
                self._files.read(file.path)
            elif file.mode == "append":
                self._files.append(file.path, "")
            else:
                self._files.write(file.path, "")
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def write(self, stream: Stream, text: str) -> None:
        """Write to a descriptor of the script's or to an open file."""
        if isinstance(stream, Inherited):
            self._output(stream.descriptor, text)
        else:
            self._files.append(stream.path, text)

    def _input(self, stream: Stream) -> str:
        """Return what a command finds on its standard input: a file, or nothing."""
        if isinstance(stream, Inherited):
            return ""
        return self._files.read(stream.path).decode(errors="replace")

    def exists(self, path: str) -> bool:
        """Say whether a file or a directory is there."""
        return self._files.exists(path)

    def is_directory(self, path: str) -> bool:
        """Say whether a directory is there: one that holds a file, or that Linux always has."""
        return self._files.is_dir(path)

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
        return taken

    # Children.

    def _launch(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> Child:
        site = self._site
        main = site.commands.get(argv[0].rsplit("/", 1)[-1]) if argv else None
        name = argv[0].rsplit("/", 1)[-1]
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
        child = Child(process=process)
        self._children[process.pid] = child
        if main is not None:
            self._start_command(child, name, argv, redirects)
        else:
            self._start_program(child, argv, env, redirects)
        return child

    def _start_command(
        self, child: Child, name: str, argv: tuple[str, ...], redirects: Redirects
    ) -> None:
        site = self._site
        process = child.process
        main = site.commands[name]
        streams = {"stdout": redirects.stdout, "stderr": redirects.stderr}
        call = CommandCall(
            site=site,
            process=process,
            mailbox=site.fabric.mailbox(process, f"{name}@{process.host.name}"),
            argv=argv,
            env=process.env,
            work_dir=self._work_dir,
            user=self._user,
            write=lambda stream, text: self.write(streams[stream], text),
            stdin=self._input(redirects.stdin),
        )
        child.call = call

        async def body() -> None:
            status = wait_status(await main(call))
            call.mailbox.close()
            self._end(child, status)

        process.start(body, name)

    def _start_program(
        self, child: Child, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects
    ) -> None:
        task = self.process.task
        rank = task if isinstance(task, int) else 0
        run = self._site.programs.find(argv, rank, self._work_dir, self.process.host.name)
        if isinstance(run, ScriptRun):
            child.host = ScriptHost(
                self._site,
                child.process,
                user=self._user,
                work_dir=self._work_dir,
                output=lambda fd, text: self.write(
                    redirects.stdout if fd == 1 else redirects.stderr, text
                ),
                ended=lambda status: self._end(child, status),
            )
            child.host.start_script(run, env)
            return
        ignored = tuple(signal for signal, how in self._dispositions.items() if how == "ignore")
        child.program = attrs.evolve(run, ignores=(*run.ignores, *ignored)) if ignored else run
        child.planned = run.status
        child.stdout = redirects.stdout
        child.due_us = min(NEVER_US, self._kernel.now_us + run.runs_us)
        self.write(redirects.stderr, run.error) if run.error else None

    def _expire(self, child: Child) -> None:
        if not child.ended:
            if child.program is not None and child.program.output:
                self.write(child.stdout, child.program.output)
            self._end(child, child.planned)

    def _end(self, child: Child, status: int) -> None:
        if child.ended:
            return
        if status == OUT_OF_MEMORY_STATUS:
            self._out_of_memory = True
            status = SIGKILL
        child.ended = True
        child.status = status
        child.call = child.host = None
        if child.timer is not None:
            child.timer.cancel()
        child.process.exit(status)
        if self._waiter is not None:
            self._kernel.wake(self._waiter)

    def _status(self, child: Child) -> int:
        self.process.cause = child.process.cause
        signal = signal_of(child.status)
        return 128 + signal if signal else exit_code_of(child.status)

    async def _wait_for(self, child: Child, *, interruptible: bool) -> None:
        kernel = self._kernel
        while self._stopped or not child.ended:
            if interruptible and self._pending and not self._stopped:
                raise Interrupted(self._pending[0])
            timed = (
                child.timer is None
                and not child.ended
                and child.program is not None
                and child.due_us < NEVER_US
            )
            if timed:
                kernel.arm(child.due_us)
            self._waiter = kernel.current
            self._interruptible = interruptible
            await kernel.park(f"{child.process.name} (pid {child.process.pid}) to end")
            self._waiter = None
            if timed and kernel.now_us >= child.due_us:
                self._expire(child)
