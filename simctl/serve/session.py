"""A client of a served cluster: one run of one of Slurm's commands."""

import shlex
import traceback
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

import trio
from msgspec import UNSET

from simctl.commands.options import UsageError, with_nice
from simctl.commands.sbatch import GRAMMAR as SBATCH
from simctl.kernel.procs import SIGKILL, Process, RunsAs, wait_status
from simctl.serve import frames
from simctl.serve.frames import Asked, FrameError, frame
from simctl.serve.machine import MARK, STDIN_OF_SRUN
from simctl.site import CommandCall, User
from simctl.stepd.children import Signalled
from simctl.stepd.programs import OutsideTask

if TYPE_CHECKING:
    from simctl.serve.server import Server

_MOST_WAITING: Final = 1 << 20
"""How many bytes wait for a client before what writes them is read no further."""

_MOST_SCRIPT: Final = 4 << 20
"""How long a script may be that comes on standard input."""

_RECEIVED: Final = 1 << 16
_CATCH: Final = ("srun", "salloc", "srun_cr")
"""Commands that are told of signals; all others end by them."""


class Session:
    """The server's end of a connection."""

    def __init__(self, server: "Server", stream: trio.SocketStream, uid: int) -> None:
        self.server = server
        self.number = 0
        """Which command of the cluster it is, from 1; 0 before it runs."""

        self.call: CommandCall | None = None
        self._stream = stream
        self._uid = uid
        self._kernel = server.kernel
        self._buffer = bytearray()
        self._out = bytearray()
        self._ready = trio.Event()
        self._sent = trio.Event()
        self._status: int | None = None
        self._gone = False
        self._input: deque[bytes] = deque()
        self._came = trio.Event()
        self._wants_pty = False
        self._foreground: Callable[[int], None] | None = None

    # The connection.

    async def run(self) -> None:
        """Serve the client until its command has ended, or it is gone."""
        try:
            first = await self._next()
            if first is None:
                return
            kind, what = first
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write_out)
                if kind == frames.CONTROL:
                    self.server.do(frames.text(what), self)
                elif kind == frames.RUN:
                    await self._begin(frames.read_run(what))
                else:
                    self._refuse("no command")
                nursery.start_soon(self._listen, nursery)
        except* FrameError as group:
            self.server.log(f"a client of uid {self._uid} has sent {group.exceptions[0]}")
            self.leave()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            self.leave()

    def _refuse(self, what: str) -> NoReturn:
        raise FrameError(what)

    async def _next(self) -> tuple[bytes, bytes] | None:
        """Return the next frame of the client; None where there are no more."""
        while (found := frames.take(self._buffer)) is None:
            data = await self._stream.receive_some(_RECEIVED)
            if not data:
                return None
            self._buffer += data
        return found

    async def _listen(self, nursery: trio.Nursery) -> None:
        """Take in what the client says while its command runs; a client that is gone ends it."""
        try:
            while (found := await self._next()) is not None:
                self._hear(*found)
        except (trio.BrokenResourceError, FrameError):
            pass
        self.leave()
        nursery.cancel_scope.cancel()

    def _hear(self, kind: bytes, what: bytes) -> None:
        if kind == frames.SIGNAL and what.isdigit():
            self.server.inject("signal", {"command": self.number, "number": int(what)})
        elif kind == frames.STDIN:
            self._input.append(what)
            self._came.set()
        elif kind == frames.STATUS and what.isdigit() and self._foreground is not None:
            ended, self._foreground = self._foreground, None
            ended(int(what))

    def leave(self) -> None:
        """Take in that the client is gone: its command dies, as by SIGKILL."""
        if self._gone:
            return
        self._gone = True
        self._sent.set()
        self._came.set()
        if self._foreground is not None:
            ended, self._foreground = self._foreground, None
            ended(SIGKILL)
        self.server.forget(self)
        if self._status is None and self.number:
            self.server.inject("signal", {"command": self.number, "number": SIGKILL})

    async def _write_out(self) -> None:
        """Send what there is to send, until the command has ended and all is said."""
        while True:
            if self._out:
                data, self._out = bytes(self._out), bytearray()
                await self._stream.send_all(data)
                sent, self._sent = self._sent, trio.Event()
                sent.set()
            elif self._status is not None:
                await self._stream.send_all(frame(frames.QUIT, b"%d" % self._status))
                await self._stream.send_eof()
                return
            else:
                self._ready = trio.Event()
                await self._ready.wait()

    def send(self, data: bytes) -> None:
        """Have something sent to the client."""
        if not self._gone:
            self._out += data
            self._kernel.poke(self._ready)

    def write(self, stream: str, text: str) -> None:
        """Send what the command prints."""
        self.send(frame(frames.OUT if stream == "stdout" else frames.ERR, frames.data(text)))

    def quit(self, status: int) -> None:
        """Send the exit status, after all that was printed."""
        self._status = status & 0xFF
        self._kernel.poke(self._ready)

    # The command.

    async def _begin(self, asked: Asked) -> None:
        """Have the command begin, with its standard input where it reads that at once."""
        stdin = ""
        name = asked.argv[0]
        if name == "sbatch" and _reads_script(asked.argv):
            script = bytearray()
            while len(script) <= _MOST_SCRIPT and (piece := await self._ask_for_input()):
                script += piece
            stdin = frames.text(bytes(script))
        elif name == "srun":
            stdin = STDIN_OF_SRUN
        self.server.inject("command", {"asked": asked, "stdin": stdin, "uid": self._uid}, self)

    async def _ask_for_input(self) -> bytes:
        """Return a piece of the client's standard input, before anything else is heard of it."""
        self.send(frame(frames.WANTED))
        while (found := await self._next()) is not None:
            if found[0] == frames.STDIN:
                return found[1]
        raise FrameError("half a script")

    def begin(self, asked: Asked, user: User, stdin: str, parent: Process | None) -> None:
        """Begin the command in the simulation, in a turn of its own."""
        server = self.server
        site = server.world.site
        name = asked.argv[0]
        env = {key: value for key, value in asked.env.items() if key != MARK}
        process = _process(server, name, user, parent)
        call = self.call = CommandCall(
            site=site,
            process=process,
            mailbox=site.fabric.mailbox(process, f"{name}@{process.host.name}"),
            argv=asked.argv,
            env=env,
            work_dir=asked.cwd,
            user=user,
            write=self.write,
            stdin=stdin,
        )
        process.env = env

        async def body() -> None:
            args = {"line": frames.printable(shlex.join(asked.argv))}
            process.cause = site.trace.note("command", name, process, phase="enter", args=args)
            try:
                status = await site.commands[name](call)
            except Exception:  # noqa: BLE001 - one client's command is not all the cluster
                server.log(traceback.format_exc())
                call.err(f"{name}: error: simctl itself broke; the server's output tells where")
                status = 1
            site.trace.note(
                "command",
                name,
                process,
                phase="exit",
                args=args,
                rc=status,
                errno=call.errno or UNSET,
            )
            call.mailbox.close(breaks=True)
            process.exit(wait_status(status))
            self.end(status)

        process.start(body, name)

    def end(self, status: int) -> None:
        """Take in that the command has ended."""
        self.call = None
        self.server.sessions.pop(self.number, None)
        self.quit(status)

    def signal(self, number: int) -> None:
        """Let a signal reach the command, in a turn of its own."""
        call = self.call
        if call is None:
            return
        process = call.process
        self.server.world.trace.process(process, "signal", number)
        if number != SIGKILL and process.daemon in _CATCH:
            call.mailbox.post(Signalled(signal=number))
            return
        killed = call.killed
        call.mailbox.close(breaks=True)
        self.server.world.procs.kill(process, number)
        self.end(128 + number)
        if killed is not None:
            killed()

    # What tasks of its step need (machine.Srun).

    async def has_room(self) -> None:
        """Wait until the client has read most of what it was sent."""
        while len(self._out) > _MOST_WAITING and not self._gone:
            await self._sent.wait()

    async def read(self) -> bytes:
        """Return a piece of the client's standard input, empty at its end."""
        if not self._input:
            self.send(frame(frames.WANTED))
            while not self._input and not self._gone:
                self._came = trio.Event()
                await self._came.wait()
        return self._input.popleft() if self._input else b""

    def run_in_foreground(self, task: OutsideTask, ended: Callable[[int], None]) -> bool:
        """Have the client run a task at its terminal, if that is what it was asked for."""
        if not self._wants_pty or self._foreground is not None:
            return False
        self._foreground = ended
        self.send(frame(frames.EXEC, frames.run_of(task.argv, task.work_dir, task.env)))
        return True

    def signal_foreground(self, number: int) -> None:
        """Signal what it runs there."""
        self.send(frame(frames.KILL, b"%d" % number))


def _process(server: "Server", name: str, user: User, parent: Process | None) -> Process:
    """Return the process of a command: a child of the task that it runs in, or one of its own."""
    if parent is None or parent.exited:
        return server.world.procs.add(
            server.world.login,
            ppid=1,
            daemon=name,
            role=name,
            uid=user.uid,
            runs_as=RunsAs.USER,
            apart=True,
        )
    process = parent.fork(daemon=name, role=name, task=parent.task)
    process.task = UNSET
    process.step = UNSET
    process.memory.holders -= 1
    process.memory = type(process.memory)()
    return process


def _reads_script(argv: tuple[str, ...]) -> bool:
    """Tell whether sbatch would read its script from its standard input."""
    try:
        given, words = SBATCH.split(with_nice(argv[1:]))
    except UsageError:
        return False
    longs = {option.long for option, _ in given}
    return not words and not longs & {"wrap", "help", "usage", "version"}
