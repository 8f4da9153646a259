"""A client of a served cluster: one run of one of Slurm's commands."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn, Protocol

import trio

from simctl.commands.arguments.options import UsageError, with_nice
from simctl.commands.submission.batch_script import STDIN
from simctl.commands.submission.sbatch import GRAMMAR as SBATCH
from simctl.kernel.procs import SIGKILL
from simctl.scenario.model import CommandLeft, CommandSignalled, OutsideDeed
from simctl.serve import frames
from simctl.serve.clock import PacedKernel
from simctl.serve.frames import Asked, FrameError, frame
from simctl.serve.machine import STDIN_OF_SRUN
from simctl.serve.standard_input import Reader, StandardInput
from simctl.world.outside import Client, Outside

_MOST_WAITING: Final = 1 << 20
"""How many bytes wait for a client before what writes them is read no further."""

_RECEIVED: Final = 1 << 16
_MOST_SIGNAL: Final = 64
_PATIENCE_S: Final = 10.0
"""How long a client may take to say what it wants, as with Slurm's MessageTimeout."""


def _refuse(what: str) -> NoReturn:
    raise FrameError(what)


class Cluster(Protocol):
    """What a client needs of the server that has let it in."""

    kernel: PacedKernel
    outside: Outside
    most_script: int
    """How long a script may be, in bytes: more than one more is not read of it."""

    def log(self, text: str) -> None:
        """Tell the person who runs the server."""

    def inject(self, deed: OutsideDeed) -> None:
        """Let something from outside happen, in a turn of its own."""

    def begin(self, asked: Asked, stdin: str, session: "Session") -> None:
        """Let a command begin that the client has run."""

    def do(self, line: str, session: "Session") -> None:
        """Do what `serve ctl` asks for, in a turn of its own."""

    def forget(self, session: "Session") -> None:
        """Let go of a client that is gone, or whose command has ended."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return an environment in which Slurm's commands are those of this cluster."""


class Session(Client):
    """The server's end of a connection.

    Attributes:
        uid: The user at the other end, as the kernel says.
        gone: Whether the client is there no more.
    """

    def __init__(self, server: Cluster, stream: trio.SocketStream, uid: int) -> None:
        self.server = server
        self.number = 0
        """Which command of the cluster it is, from 1; 0 before it runs."""

        self.uid = uid
        self.gone = False
        self._stream = stream
        self._kernel = server.kernel
        self._buffer = bytearray()
        self._out = bytearray()
        self._ready = trio.Event()
        self._sent = trio.Event()
        self._status: int | None = None
        self._input = StandardInput(lambda: self.send(frame(frames.WANTED)))
        self._in_foreground: Callable[[int], None] | None = None

    # The connection.

    async def run(self) -> None:
        """Serve the client until its command has ended, or it is gone."""
        try:
            first = await self._first()
            if first is not None:
                await self._serve(*first)
        except* FrameError as group:
            self.server.log(f"a client of uid {self.uid} has sent {group.exceptions[0]}")
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except* Exception:  # noqa: BLE001 - one client is not all the cluster
            self.server.log(traceback.format_exc())
        self.leave()

    async def _first(self) -> tuple[bytes, bytes] | None:
        """Return what the client wants; one that does not say it in time is let go."""
        with trio.CancelScope() as scope:
            self._kernel.cancel_after(scope, _PATIENCE_S)
            return await self._next()
        raise FrameError("half a message, or none")

    async def _serve(self, kind: bytes, what: bytes) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write_out)
            if kind == frames.CONTROL:
                self.server.do(frames.text(what), self)
            elif kind == frames.RUN:
                await self._begin(frames.read_run(what))
            else:
                _refuse("no command")
            nursery.start_soon(self._listen, nursery)

    async def _next(self) -> tuple[bytes, bytes] | None:
        """Return the next frame of the client; None where there are no more."""
        while (found := frames.take(self._buffer)) is None:
            data = await self._stream.receive_some(_RECEIVED)
            if not data:
                return None
            self._buffer += data
        return found

    async def _listen(self, nursery: trio.Nursery) -> None:
        """Handle what the client says while its command runs; a client that is gone ends it."""
        try:
            while (found := await self._next()) is not None:
                self._hear(*found)
        except trio.BrokenResourceError:
            pass
        self.leave()
        nursery.cancel_scope.cancel()

    def _hear(self, kind: bytes, what: bytes) -> None:
        if kind == frames.SIGNAL:
            self._signal(frames.number(what))
        elif kind == frames.STATUS:
            self._leave_foreground(frames.number(what) & 0xFFFF)
        elif kind != frames.STDIN or not self._input.take(what):
            _refuse("what nobody has asked for")

    def leave(self) -> None:
        """Note that the client is gone: its command dies, as by SIGKILL."""
        if self.gone:
            return
        self.gone = True
        self._sent.set()
        self._input.end()
        self._leave_foreground(SIGKILL)
        self.server.forget(self)
        if self._status is None and self.number:
            self._signal(SIGKILL)

    def _signal(self, number: int) -> None:
        if 0 < number <= _MOST_SIGNAL:
            self.server.inject(CommandSignalled(command=self.number, number=number))

    def _leave_foreground(self, status: int) -> None:
        ended, self._in_foreground = self._in_foreground, None
        if ended is not None:
            ended(status)

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
        if not self.gone:
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
            while len(script) <= self.server.most_script and (piece := await self._ask_for_input()):
                script += piece
            stdin = frames.text(bytes(script))
        elif name == "srun":
            stdin = STDIN_OF_SRUN
        self.server.begin(asked, stdin, self)

    async def _ask_for_input(self) -> bytes:
        """Return a piece of the client's standard input, before anything else is heard of it."""
        self.send(frame(frames.WANTED))
        while (found := await self._next()) is not None:
            if found[0] == frames.STDIN:
                return found[1]
        raise FrameError("half a script")

    # What comes of it (world.outside.Client).

    def ended(self, status: int) -> None:
        """Note that the command has ended."""
        self.server.forget(self)
        self.quit(status)

    def run_here(self, argv: tuple[str, ...], env: Mapping[str, str], work_dir: str) -> None:
        """Have the client run a command in its foreground."""
        self._in_foreground = self._left
        words = self.server.environment(env)
        self.send(frame(frames.EXEC, frames.run_of(argv, work_dir, words)))

    def _left(self, status: int) -> None:
        self.server.inject(CommandLeft(command=self.number, status=status))

    def signal_here(self, number: int) -> None:
        """Signal that command."""
        self.send(frame(frames.KILL, b"%d" % number))

    def broke(self, text: str) -> None:
        """Tell of a mistake of simctl's."""
        self.server.log(text)

    # What tasks of its step need (machine.Srun).

    async def has_room(self) -> None:
        """Wait until the client has read most of what it was sent."""
        while len(self._out) > _MOST_WAITING and not self.gone:
            await self._sent.wait()

    def read_input(self, readers: int) -> Reader:
        """Return what one of so many tasks reads the client's standard input from.

        Where the first of them has the client's terminal, the others read nothing.
        """
        if self.at_terminal:
            self._input.end()
        return self._input.open(readers)

    def run_in_foreground(
        self,
        argv: Sequence[str],
        work_dir: str,
        env: dict[str, str],
        ended: Callable[[int], None],
    ) -> bool:
        """Have the client run a task at its terminal, if that is what it was asked for."""
        if self._in_foreground is not None or not self.at_terminal:
            return False
        self._in_foreground = ended
        self.send(frame(frames.EXEC, frames.run_of(argv, work_dir, env)))
        return True

    @property
    def at_terminal(self) -> bool:
        """Return whether its first task is to run at the client's terminal."""
        command = self.server.outside.commands.get(self.number)
        return command is not None and command.call.at_terminal


def _reads_script(argv: tuple[str, ...]) -> bool:
    """Return whether sbatch would read its script from its standard input."""
    try:
        given, words = SBATCH.split(with_nice(argv[1:]))
    except UsageError:
        return False
    longs = {option.long for option, _ in given}
    return words[:1] in ([], [STDIN]) and not longs & {"wrap", "help", "usage", "version"}
