"""The process that a script runs in: its programs and commands, its files, its signals."""

import posixpath
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

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
from simctl.plugins.guard import DiedError
from simctl.site import CommandCall, Site, User
from simctl.stepd.image_file import (
    ChildState,
    CommandState,
    ImageError,
    ProgramState,
    ScriptState,
    State,
    stream_of,
    stream_state,
)
from simctl.stepd.journal import DivergedError, JournalingHost
from simctl.stepd.outcome import (
    NEVER_US,
    SHELL_IMAGE,
    ProgramRun,
    by_default_stops,
    default_status,
)
from simctl.stepd.programs import Input, ScriptRun, read_script
from simctl.stepd.scripts.host import (
    Disposition,
    Inherited,
    Interrupted,
    OpenFile,
    Redirects,
    ShellHost,
    Stream,
)
from simctl.stepd.scripts.shell import Shell
from simctl.stepd.stopping import Pausable, left_us, pause, take_signal, unpause

Output = Callable[[int, str], None]
"""Takes a file descriptor (1 or 2) and a text that a process wrote to it."""

_STDERR: Final = 2
_TRAP_KEEPS = "trap"


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

    stdout: Stream = attrs.field(factory=lambda: Inherited(descriptor=1))
    stderr: Stream = attrs.field(factory=lambda: Inherited(descriptor=2))
    forked: int = 0
    """The cause of its fork."""

    awaited: bool = False
    """The script knows how it ended."""

    status: int = 0
    ended: bool = False
    timer: Timer | None = None
    host: "ScriptHost | None" = None
    call: CommandCall | None = None


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
    ) -> None:
        self._site = site
        self._kernel = site.kernel
        self.process = process
        self._user = user
        self._work_dir = work_dir
        self._output = output
        self._ended = ended
        self._stdin = stdin or Input()
        self._children: dict[int, Child] = {}
        self._dispositions: dict[int, Disposition] = {}
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

    def start_script(self, run: ScriptRun, env: dict[str, str]) -> None:
        """Run a script in a thread of the process; its end is told with a wait status.

        A shell that starts elsewhere than PWD says sets it right.
        """
        env["PWD"] = self._work_dir
        host: ShellHost = self
        if self._site.images.enabled:
            self._run = run
            self._first_env = dict(env)
            host = self._journal = JournalingHost(self)
        self._start_shell(run, host, env)

    def _start_shell(self, run: ScriptRun, host: ShellHost, env: dict[str, str]) -> None:
        shell = Shell(run.script, host, args=run.argv, env=env)

        async def body() -> None:
            await self._hold_still()
            self._begun = True
            try:
                status = wait_status(await shell.run())
            except DivergedError as error:
                self._output(2, f"{run.argv[0]}: {error}\n")
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
        self._ended(OUT_OF_MEMORY_STATUS if self._out_of_memory else status)

    # Signals from outside.

    def signal(self, number: int, *, children: bool) -> None:
        """Take a signal from the step daemon."""
        for child in self.live_children() if children else ():
            self.signal_child(child, number)
        self.deliver(number)

    @property
    def has_children(self) -> bool:
        """Tell whether a child has not ended."""
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
        self._site.trace.process(child.process, "signal", signal)
        if child.paused_us >= 0 and signal != SIGKILL:
            child.held += (signal,)
        else:
            self._deliver_to(child, signal)

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
        await self._wait_for(child, interruptible=False)
        self._foreground = None
        return self._status(child)

    def start(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Start a program in the background; return its pid."""
        child = self._launch(argv, env, redirects)
        if child.program is not None:
            self._watch(child)
        return child.pid

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
            killed = child.call.killed if child.call is not None else None
            self.signal_child(child, signal)
            if signal == SIGKILL and killed is not None:
                killed()
        return True

    @property
    def _files(self) -> DiskView:
        """The files of this host, as the script's user sees them from where it stands."""
        process = self.process
        return self._site.disk.view(process.host.name, process.uid, self._work_dir)

    def absolute(self, path: str) -> str:
        """Return a path as it is called from the root on."""
        return self._site.disk.resolve(path, self._work_dir)

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
            try:
                self._files.append(stream.path, text)
            except OSError as error:
                # Since it was opened it may have gone, or the disk have filled.
                self._output(_STDERR, f"{stream.path}: write error: {error.strerror}\n")

    def _input(self, stream: Stream) -> Input:
        """Return what a child finds on its standard input: a file, or what the script does."""
        if isinstance(stream, Inherited):
            return self._stdin
        return Input(self._files.read(stream.path).decode(errors="replace"))

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

    def _adopt(self, process: Process, argv: tuple[str, ...], streams: Redirects) -> Child:
        """Take in a child that was just forked."""
        pid = process.pid
        while pid in self._children:
            # A child of an image has the number.
            pid += 1
        child = self._children[pid] = Child(
            process=process, pid=pid, argv=argv, stdout=streams.stdout, stderr=streams.stderr
        )
        child.forked = self.process.cause
        return child

    def _launch(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> Child:
        child = self._adopt(self._fork(argv, env), argv, redirects)
        name = command_name(argv)
        stdin = self._input(redirects.stdin)
        if name in self._site.commands:
            self._start_command(child, name, self._call(child, name, stdin.text))
        else:
            self._start_program(child, argv, env, redirects, stdin)
        return child

    def _start_command(self, child: Child, name: str, call: CommandCall) -> None:
        main = self._site.commands[name]
        child.call = call

        async def body() -> None:
            try:
                status = wait_status(await main(call))
            except DiedError as died:
                status = died.status
                self._site.procs.kill(child.process, status)
            call.mailbox.close(breaks=True)
            self._end(child, status)

        child.process.start(body, name)

    def _call(self, child: Child, name: str, stdin: str) -> CommandCall:
        site = self._site
        process = child.process
        streams = {"stdout": child.stdout, "stderr": child.stderr}
        return CommandCall(
            site=site,
            process=process,
            mailbox=site.fabric.mailbox(process, f"{name}@{process.host.name}"),
            argv=child.argv,
            env=process.env,
            work_dir=self._work_dir,
            user=self._user,
            write=lambda stream, text: self.write(streams[stream], text),
            stdin=stdin,
        )

    def _start_program(
        self,
        child: Child,
        argv: tuple[str, ...],
        env: dict[str, str],
        redirects: Redirects,
        stdin: Input,
    ) -> None:
        task = self.process.task
        rank = task if isinstance(task, int) else 0
        run = self._site.programs.find(argv, rank, self._files, stdin)
        if isinstance(run, ScriptRun):
            child.host = self._host_of(child, stdin)
            child.host.start_script(run, env)
            return
        ignored = tuple(signal for signal, how in self._dispositions.items() if how == "ignore")
        child.program = attrs.evolve(run, ignores=(*run.ignores, *ignored)) if ignored else run
        child.planned = run.status
        child.due_us = min(NEVER_US, self._kernel.now_us + run.runs_us)
        self.write(redirects.stderr, run.error) if run.error else None

    def _host_of(self, child: Child, stdin: Input) -> "ScriptHost":
        """Return what a script that this one has started runs in."""
        return ScriptHost(
            self._site,
            child.process,
            user=self._user,
            work_dir=self._work_dir,
            output=lambda fd, text: self.write(child.stdout if fd == 1 else child.stderr, text),
            ended=lambda status: self._end(child, status),
            stdin=stdin,
        )

    def _watch(self, child: Child) -> None:
        """Have a program in the background end in time; of others, whoever waits sees to it."""
        if child.due_us < NEVER_US:
            child.timer = self._kernel.call_at(child.due_us, self._expire, child)

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
        child.awaited = True
        forked, self.process.cause = self.process.cause, child.process.cause
        if forked != child.forked:
            # It has waited for others as well, or has done something meanwhile.
            self._site.trace.join(self.process, forked)
        signal = signal_of(child.status)
        return 128 + signal if signal else exit_code_of(child.status)

    async def _wait_for(self, child: Child, *, interruptible: bool) -> None:
        kernel = self._kernel
        while self._stopped or self._paused or not child.ended:
            if interruptible and self._pending and not (self._stopped or self._paused):
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
        if self._run is None or self._journal is None:
            raise ImageError("a script whose journal nobody keeps has no image")
        waited = self._foreground
        return ScriptState(
            text=self._run.text,
            argv=self._run.argv,
            env=self._first_env,
            pid=self._pid,
            begun=self._begun,
            start_dir=self._start_dir,
            work_dir=self._work_dir,
            stdin=self._stdin.text,
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
            stdout=stream_state(child.stdout),
            stderr=stream_state(child.stderr),
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
        run = read_script(state.text, state.argv)
        assert isinstance(run, ScriptRun), "whoever reads an image looks at its scripts"
        self._run = run
        self._pid = state.pid
        self._first_env = dict(state.env)
        self._start_dir, self._work_dir = state.start_dir, state.work_dir
        self._dispositions = dict(state.dispositions)
        self._pending.extend(state.pending)
        self._stopped, self._kept = state.stopped, state.kept
        self._out_of_memory = state.out_of_memory
        for child in state.children:
            self._restore_child(child, path, state.foreground)
        self._resumed = self._children.get(state.foreground)
        self._journal = JournalingHost(self, state.journal, begun=state.begun)
        self._start_shell(run, self._journal, dict(state.env))

    def _restore_child(self, image: ChildState, path: str, foreground: int) -> None:
        streams = Redirects(stdout=stream_of(image.stdout), stderr=stream_of(image.stderr))
        if image.state is None:
            self._children[image.pid] = Child(
                process=self.process, pid=image.pid, status=image.status, ended=True
            )
            return
        argv = image.state.argv
        env = image.state.env if not isinstance(image.state, ProgramState) else self.process.env
        child = Child(
            process=self._fork(argv, dict(env)),
            pid=image.pid,
            argv=argv,
            stdout=streams.stdout,
            stderr=streams.stderr,
        )
        self._children[image.pid] = child
        if isinstance(image.state, ScriptState):
            child.host = self._host_of(child, Input(image.state.stdin))
            child.host.restore(image.state, path)
        elif isinstance(image.state, CommandState):
            self._restore_command(child, image.state, path)
        else:
            child.program = become(child, image.state, self._kernel.now_us)
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
            self.write(child.stderr, lost)
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
