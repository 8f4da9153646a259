"""The server of a cluster: a World in real time, and the clients that talk to it."""

import errno
import os
import pwd
import resource
import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import trio

from simctl.scenario.model import CommandCame, OutsideDeed
from simctl.serve.clock import PacedKernel
from simctl.serve.control import Control
from simctl.serve.files import MARK
from simctl.serve.frames import Asked
from simctl.serve.machine import Machine
from simctl.serve.recording import Recorder
from simctl.serve.session import Session
from simctl.site import User
from simctl.world import World

_MOST_CLIENTS: Final = 2000
"""How many clients are served at once, where there may be as many open files; more wait."""

_BACKLOG: Final = 4096
_PAUSE_US: Final = 50_000


class Server:
    """Takes clients in; what comes from outside enters the simulation here, each in its turn."""

    def __init__(self, world: World, kernel: PacedKernel, machine: Machine, folder: Path) -> None:
        self.world = world
        self.kernel = kernel
        self.folder = folder
        self.sessions: dict[int, Session] = {}
        """Those whose commands run, by number."""

        self.scenario = world.scenario
        self.outside = world.outside
        self.machine = machine
        self.control = Control(world, finish=kernel.finish, log=self.log)
        self.most_script = world.site.conf.scheduler_parameters.max_script_size
        self.recorder: Recorder | None = None
        """Writes down all that enters."""

        self._commands = 0
        self._clients = 0
        # Half of the files that may be open are for jobs.
        self._most_clients = min(_MOST_CLIENTS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._left = trio.Event()

    def log(self, text: str) -> None:
        """Tell the person who runs the server."""
        print(f"simctl serve: {text}", file=sys.stderr, flush=True)

    # What enters.

    def inject(self, deed: OutsideDeed, client: Session | None = None) -> None:
        """Let something from outside happen, in a turn of its own."""
        due_us = self.kernel.inject(lambda _: self.outside.happen(deed, client))
        if self.recorder is not None:
            self.recorder.note(due_us, deed)

    def begin(self, asked: Asked, stdin: str, session: Session) -> None:
        """Let a command begin that a client has run."""
        self._commands += 1
        session.number = self._commands
        self.sessions[session.number] = session
        user = self._user(session.uid)
        env = {name: value for name, value in asked.env.items() if name != MARK}
        came = CommandCame(
            command=session.number,
            user=user.name,
            uid=user.uid,
            gid=user.gid,
            cwd=asked.cwd,
            argv=asked.argv,
            env=env,
            stdin=stdin,
            task=self.machine.number_of(asked.env.get(MARK, "")),
        )
        self.inject(came, session)

    def _user(self, uid: int) -> User:
        for user in self.world.site.users.values():
            if user.uid == uid:
                return user
        return machine_user(uid)

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return an environment in which Slurm's commands are those of this cluster."""
        return self.machine.with_commands(env)

    def find_srun(self, step: object) -> Session | None:
        """Return the client of the srun of a step."""
        for number, command in self.outside.commands.items():
            process = command.call.process
            if process.daemon == "srun" and process.step == step:
                return self.sessions.get(number)
        return None

    # Clients.

    async def listen(self, listener: socket.socket) -> None:
        """Take clients in until the cluster ends."""
        listener.setblocking(False)
        sock = trio.socket.from_stdlib_socket(listener)
        while True:
            while self._clients >= self._most_clients:
                self._left = trio.Event()
                await self._left.wait()
            try:
                connection, _ = await sock.accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ECONNABORTED):
                    raise
                self._left = trio.Event()
                self.kernel.call_in_background(self.kernel.now_us + _PAUSE_US, self._try_again)
                await self._left.wait()
                continue
            self._clients += 1
            self.kernel.start_outside(self._serve, connection)

    def _try_again(self) -> None:
        self.kernel.poke(self._left)

    async def _serve(self, connection: Any) -> None:
        packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        uid = _CREDENTIALS.unpack(packed)[1]
        try:
            async with trio.SocketStream(connection) as stream:
                if os.geteuid() != 0:
                    # A client that may open the socket acts as its owner.
                    uid = os.geteuid()
                await Session(self, stream, uid).run()
        finally:
            self._clients -= 1
            self._left.set()

    def do(self, line: str, session: Session) -> None:
        """Do what `serve ctl` asks for, in a turn of its own."""
        self.kernel.inject(lambda _: self.control.do(line, session))

    def forget(self, session: Session) -> None:
        """Let go of a client that is gone, or whose command has ended."""
        self.sessions.pop(session.number, None)
        self.control.forget(session)


_CREDENTIALS: Final = struct.Struct("3i")


def machine_user(uid: int) -> User:
    """Return a user as this machine knows it."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return User(name=f"u{uid}", uid=uid, gid=uid)
    return User(name=entry.pw_name, uid=uid, gid=entry.pw_gid)
