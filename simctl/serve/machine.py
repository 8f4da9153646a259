"""The real processes of a served cluster: each stands for a task, and ends with it."""

import errno
import os
import resource
import shlex
import signal
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import trio

from simctl.kernel.procs import SIGKILL, wait_status
from simctl.scenario.model import OutsideDeed, TaskEnded, TaskWrote
from simctl.serve import linux
from simctl.serve.clock import PacedKernel
from simctl.serve.disk import MachineDisk
from simctl.serve.files import MARK
from simctl.serve.standard_input import Reader
from simctl.site import CommandCall
from simctl.stepd.image_file import ImageError, State
from simctl.stepd.programs import OutsideTask

STDIN_OF_SRUN: Final = "\0the standard input of srun\0"
"""Stands for what a task reads from its srun as it comes."""

_APPENDS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_CHUNK: Final = 1 << 16
_ROUNDS: Final = 200
"""How often processes are looked for that were started while others were killed."""

_SWEEP_US: Final = 5_000_000
_NOT_EXECUTED: Final = (
    *(errno.ENOENT, errno.E2BIG, errno.ENOEXEC, errno.EACCES),
    *(errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP),
)
"""Errors of execve() that are a task's exit status, as with Slurm."""

_NOT_FORKED: Final = (errno.EAGAIN, errno.ENOMEM)

USUAL_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


class Srun(Protocol):
    """The client of an srun, whose step has real tasks."""

    async def has_room(self) -> None:
        """Wait until the client has read most of what it was sent."""

    def read_input(self, readers: int) -> Reader:
        """Return what one of so many tasks reads its standard input from."""

    def run_in_foreground(
        self,
        argv: Sequence[str],
        work_dir: str,
        env: dict[str, str],
        ended: Callable[[int], None],
    ) -> bool:
        """Have the client run a task at its terminal, if that is what it was asked for."""

    def signal_here(self, number: int) -> None:
        """Signal what it runs there."""


class Machine:
    """Starts the programs of tasks as processes of this machine, and finds what they have started.

    `find_srun` and `inject` are set by the server of clients.
    """

    def __init__(
        self,
        kernel: PacedKernel,
        disk: MachineDisk,
        folder: Path,
        *,
        token: str,
    ) -> None:
        self.kernel = kernel
        self.disk = disk
        self.folder = folder
        self.find_srun: Callable[[object], Srun | None] = lambda _: None
        self.inject: Callable[[OutsideDeed], None] = lambda _: None
        """Lets in what comes from a process."""

        self._token = token
        self.tasks: dict[str, RealTask] = {}
        """Those whose process has not ended, or that have left something behind, by their mark."""

        self.followed: set[int] = set()
        """Processes whose end a daemon waits for."""

        self.open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        """How many files jobs may open, whatever the server may."""

        self._seen_at = (-1, -1)
        self._parents: dict[int, int] = {}

    def start(self, number: int, task: OutsideTask) -> "RealTask":
        """Start the program of a task."""
        real = RealTask(self, task, number, f"{self._token}:{number}")
        self.tasks[real.mark] = real
        real.begin()
        return real

    def census(self) -> dict[int, int]:
        """Return the parents of all processes, as they were at the beginning of this turn."""
        now = (self.kernel.turns, self.kernel.now_us)
        if now != self._seen_at:
            self._seen_at, self._parents = now, linux.processes()
        return self._parents

    def forget_census(self) -> None:
        """Look anew at the next question."""
        self._seen_at = (-1, -1)

    def number_of(self, mark: str) -> int:
        """Return the number of the task that a client's environment names; 0 for none."""
        task = self.tasks.get(mark)
        return 0 if task is None else task.number

    def with_commands(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return what a process starts with: these variables, and a PATH with our commands."""
        found = {key: value for key, value in env.items() if "\0" not in key + value}
        commands = str(self.folder / "bin")
        path = found.get("PATH", USUAL_PATH)
        return found | {"PATH": path if commands in path.split(":") else f"{commands}:{path}"}

    def sweep(self) -> None:
        """Let go of orphans that have ended, again and again."""
        with suppress(ChildProcessError):
            while True:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None or found.si_pid in self.followed:
                    break
                os.waitpid(found.si_pid, os.WNOHANG)
        self.kernel.call_in_background(self.kernel.now_us + _SWEEP_US, self.sweep)

    def spool(self, task: OutsideTask, number: int) -> str:
        """Put a script that only the daemons have where it can be executed; return its path."""
        path = task.argv[0]
        if not path.startswith("/") or self.disk.is_real(path):
            return ""
        text = self.disk.read(path, host=task.process.host.name)
        if text is None:
            return ""
        folder = self.folder / "spool" / str(number)
        folder.mkdir(parents=True)
        script = folder / Path(task.argv[0]).name
        script.write_bytes(text.encode(errors="surrogateescape"))
        script.chmod(0o700)
        if os.geteuid() == 0:
            for each in (folder, script):
                os.chown(each, task.user.uid, -1)
        return str(script)

    def unspool(self, number: int) -> None:
        """Remove a script that was put there."""
        folder = self.folder / "spool" / str(number)
        with suppress(OSError):
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()


class RealTask:
    """A task, or a batch script, that is a process of the machine with all it has started."""

    def __init__(self, machine: Machine, task: OutsideTask, number: int, mark: str) -> None:
        self.task = task
        self.mark = mark
        self.pid = 0
        self.number = number
        self._machine = machine
        self._kernel = machine.kernel
        self._over = False
        self._foreground: Srun | None = None
        self._pipes: list[int] = []
        self._awaited: list[tuple[int, str]] = []
        """Numbers of streams, each with the fifo that the process itself is to open."""

    # Its start.

    def begin(self) -> None:
        """Start the process; that it cannot be started is told as slurmstepd does."""
        task = self.task
        srun = self._machine.find_srun(task.process.step) if not task.batch else None
        env = {**self._machine.with_commands(task.env), MARK: self.mark}
        if srun is not None and srun.run_in_foreground(
            task.argv, task.work_dir, env, self._tell_end
        ):
            self._foreground = srun
            return
        try:
            self._spawn(srun, env)
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None) or 1
            line = f"slurmstepd-{task.process.host.name}: error: {self._why_not(error, number)}\n"
            self.tell_output(2, line.encode(errors="surrogateescape"))
            self._tell_end(wait_status(number if number in _NOT_EXECUTED else 1))

    def _why_not(self, error: OSError | ValueError, number: int) -> str:
        """Return why its program could not be started, as slurmstepd tells it."""
        why = getattr(error, "strerror", None) or str(error)
        if number in _NOT_FORKED:
            return f"fork: {why}"
        path = self.task.argv[0]
        if number == errno.ENOENT:
            try:
                text = self._machine.disk.read(path, host=self.task.process.host.name) or ""
            except OSError:
                text = ""
            if text.startswith("#!"):
                return f"execve(): bad interpreter({text[2:].partition(chr(10))[0].strip()}): {why}"
        return f"execve(): {path}: {why}"

    def _spawn(self, srun: Srun | None, env: dict[str, str]) -> None:
        task, machine = self.task, self._machine
        spooled = machine.spool(task, self.number)
        streams = self._streams()
        uid = task.user.uid
        becomes = os.geteuid() == 0 and uid != 0
        gid, groups = machine.disk.groups_of(uid) if becomes else (None, None)
        try:
            process = subprocess.Popen(
                self._through_fifos([spooled or task.argv[0], *task.argv[1:]]),
                env=env,
                cwd=task.work_dir,
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                start_new_session=True,
                restore_signals=True,
                user=uid if becomes else None,
                group=gid,
                extra_groups=groups,
            )
        except BaseException:
            self._close_pipes()
            raise
        finally:
            for stream in sorted(set(streams)):
                os.close(stream)
        self.pid = process.pid
        # It is waited for through its pidfd, not by this object.
        process.returncode = 0
        try:
            pidfd = os.pidfd_open(self.pid)
        except OSError:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
            self._close_pipes()
            raise
        self._machine.followed.add(self.pid)
        with suppress(OSError, ValueError):
            resource.prlimit(self.pid, resource.RLIMIT_CORE, (0, 0))
            resource.prlimit(self.pid, resource.RLIMIT_NOFILE, machine.open_files)
        self._kernel.start_outside(self._follow, pidfd, srun)

    def _streams(self) -> tuple[int, int, int]:
        """Return what is to be its standard input, output and error output."""
        task = self.task
        opened: list[int] = []
        try:
            if task.stdin:
                theirs, ours = os.pipe()
                opened.append(theirs)
                self._pipes.append(ours)
            else:
                opened.append(os.open(os.devnull, os.O_RDONLY))
                self._pipes.append(-1)
            if task.batch:
                paths = (task.std_out, task.std_err)
                with self._machine.disk.as_user(task.user.uid):
                    opened += [self._output(*each) for each in enumerate(paths, start=1)]
            else:
                for _ in (1, 2):
                    ours, theirs = os.pipe()
                    opened.append(theirs)
                    self._pipes.append(ours)
        except BaseException:
            for each in opened:
                os.close(each)
            self._close_pipes()
            raise
        return opened[0], opened[1], opened[2]

    def _output(self, number: int, path: str) -> int:
        """Open a file for the script's output; of a fifo without a reader nothing for now."""
        try:
            opened = os.open(path, _APPENDS | os.O_NONBLOCK, 0o666)
        except OSError as error:
            if error.errno != errno.ENXIO or not stat.S_ISFIFO(os.stat(path).st_mode):
                raise
            self._awaited.append((number, path))
            return os.open(os.devnull, os.O_WRONLY)
        os.set_blocking(opened, True)
        return opened

    def _through_fifos(self, argv: list[str]) -> list[str]:
        """Return a command line that waits for the readers of fifos, and becomes *argv* then."""
        if not self._awaited:
            return argv
        into = " ".join(f"{number}>>{shlex.quote(path)}" for number, path in self._awaited)
        return ["/bin/sh", "-c", f'exec "$@" {into}', "sh", *argv]

    def _close_pipes(self) -> None:
        for pipe in self._pipes:
            if pipe >= 0:
                os.close(pipe)
        self._pipes = []

    # Its life.

    async def _follow(self, pidfd: int, srun: Srun | None) -> None:
        """Carry its input and output, and wait for its end."""
        stdin, *outputs = self._pipes
        async with trio.open_nursery() as nursery:
            feeding = trio.CancelScope()
            if stdin >= 0:
                nursery.start_soon(self._feed, feeding, stdin, srun)
            readers = [
                _Reader(self, number, pipe, srun) for number, pipe in enumerate(outputs, start=1)
            ]
            for reader in readers:
                nursery.start_soon(reader.run)
            try:
                await trio.lowlevel.wait_readable(pidfd)
            finally:
                os.close(pidfd)
            feeding.cancel()
            code = os.waitpid(self.pid, 0)[1]
            self._machine.followed.discard(self.pid)
            for reader in readers:
                reader.drain()
            self._tell_end(code & 0xFFFF)

    async def _feed(self, scope: trio.CancelScope, pipe: int, srun: Srun | None) -> None:
        """Write its standard input until it ends or does not read: srun's, or a text."""
        reader = None
        with scope, suppress(trio.BrokenResourceError):
            async with trio.lowlevel.FdStream(pipe) as stream:
                if self.task.stdin != STDIN_OF_SRUN:
                    await stream.send_all(self.task.stdin.encode(errors="surrogateescape"))
                elif srun is not None:
                    reader = srun.read_input(self.task.readers)
                    while data := await reader.read():
                        await stream.send_all(data)
        if reader is not None:
            reader.close()

    def tell_output(self, stream: int, data: bytes) -> None:
        """Let in what it has written."""
        text = data.decode(errors="surrogateescape")
        self._machine.inject(TaskWrote(task=self.number, stream=stream, text=text))

    def _tell_end(self, status: int) -> None:
        self._over = True
        self._machine.unspool(self.number)
        # Slurm's wait statuses know of no core dumps.
        status = status & ~0x80 if status & 0x7F else status
        self._machine.inject(TaskEnded(task=self.number, status=status))

    def gone(self) -> None:
        """Note that the task has ended, or was killed with its node: then the process dies."""
        if not self._over:
            self.kill_children()
            self._over = True
            self._machine.unspool(self.number)
            self._machine.tasks.pop(self.mark, None)

    # What the step daemon asks.

    def signal(self, number: int, *, children: bool) -> None:
        """Take a signal: its process group, itself alone, or with SIGKILL all it has started."""
        if self._foreground is not None:
            self._foreground.signal_here(number)
        elif not self.pid or self._over:
            return
        elif number == SIGKILL:
            self.kill_children()
        else:
            with suppress(ProcessLookupError, PermissionError):
                (os.killpg if children else os.kill)(self.pid, number)

    @property
    def has_children(self) -> bool:
        """Return whether something may be left of it."""
        return self._foreground is not None or bool(self.pid)

    def kill_children(self) -> None:
        """Kill its process and all that it has started, whatever session that is in by now."""
        if self._foreground is not None and not self._over:
            self._foreground.signal_here(SIGKILL)
        if not self.has_children:
            return
        mark = f"{MARK}={self.mark}\0".encode()
        killed: set[int] = set()
        for _ in range(_ROUNDS):
            left = [pid for pid in self._container(mark) if pid not in killed]
            if not left:
                break
            linux.kill(left, signal.SIGSTOP)
            linux.kill(left)
            killed.update(left)
            self._machine.forget_census()
        if self._over:
            self._machine.tasks.pop(self.mark, None)

    def _container(self, mark: bytes) -> list[int]:
        parents = self._machine.census()
        if self._foreground is not None:
            # The client's children, wherever that was started.
            return [pid for pid in parents if linux.is_marked(pid, mark)]
        own = (
            []
            if self._over or self.pid not in parents
            else [self.pid, *linux.below(self.pid, parents)]
        )
        known = set(own)
        ours = linux.below(os.getpid(), parents)
        return own + [pid for pid in ours if pid not in known and linux.is_marked(pid, mark)]

    def commands(self) -> list[CommandCall]:
        """Return none: its commands are clients like any others."""
        return []

    def pause(self) -> None:
        """Go on: no image is written of a real process."""

    def unpause(self) -> None:
        """Go on."""

    def state(self, memories: Mapping[int, Any]) -> State:
        """Refuse to be saved."""
        raise ImageError("a real process cannot be saved")


class _Reader:
    """Reads one output of a process, for as long as anything holds it open."""

    def __init__(self, task: RealTask, number: int, pipe: int, srun: Srun | None) -> None:
        self._task = task
        self._number = number
        self._pipe = pipe
        self._srun = srun
        self._open = True
        os.set_blocking(pipe, False)

    async def run(self) -> None:
        """Hand on what comes, as fast as the client reads it."""
        try:
            while self._open:
                await trio.lowlevel.wait_readable(self._pipe)
                self._take()
                if self._srun is not None:
                    await self._srun.has_room()
        finally:
            trio.lowlevel.notify_closing(self._pipe)
            os.close(self._pipe)

    def drain(self) -> None:
        """Hand on what is there already: its writer has ended."""
        while self._open and self._take():
            pass

    def _take(self) -> bool:
        try:
            data = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._open = False
            return False
        self._task.tell_output(self._number, data)
        return True
