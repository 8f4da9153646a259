"""The server of a cluster: a World in real time, and the clients that talk to it."""

import errno
import os
import pwd
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import trio

from simctl.kernel.procs import Process
from simctl.serve.clock import PacedKernel
from simctl.serve.control import Control
from simctl.serve.frames import Asked
from simctl.serve.machine import MARK, Machine, RealTask
from simctl.serve.session import Session
from simctl.site import User
from simctl.world import World

_MOST_CLIENTS: Final = 2000
"""How many clients are served at once; more wait to be let in."""

_BACKLOG: Final = 4096
_PAUSE_US: Final = 50_000
_KNOWN_TO_SLURM: Final = ("sattach", "sbcast", "sprio", "sreport", "sstat", "strigger", "scrontab")


class Server:
    """Takes clients in; what comes from outside enters the simulation here, each in its turn."""

    def __init__(self, world: World, kernel: PacedKernel, folder: Path) -> None:
        self.world = world
        self.kernel = kernel
        self.folder = folder
        self.sessions: dict[int, Session] = {}
        """Those whose commands run, by number."""

        self.scenario = world.scenario
        self.machine: Machine | None = None
        self.control = Control(self)
        self.record: Callable[[int, str, Mapping[str, Any]], None] = lambda *_: None
        """Told of all that enters: when, of which kind, and what."""

        self._commands = 0
        self._clients = 0
        self._left = trio.Event()

    def log(self, text: str) -> None:
        """Tell whoever runs the server."""
        print(f"simctl serve: {text}", file=sys.stderr, flush=True)

    # What enters.

    def inject(self, kind: str, what: dict[str, Any], session: Session | None = None) -> None:
        """Let something from outside happen, in a turn of its own."""
        if kind == "command":
            self._commands += 1
            assert session is not None
            session.number = self._commands
            self.sessions[session.number] = session
            asked: Asked = what["asked"]
            due_us = self.kernel.inject(
                lambda _: self._begin(session, asked, what["stdin"], what["uid"])
            )
        else:
            due_us = self.kernel.inject(self._signal, what)
        self.record(due_us, kind, what)

    def _begin(self, session: Session, asked: Asked, stdin: str, uid: int) -> None:
        name = asked.argv[0]
        if name not in self.world.site.commands:
            more = "known to Slurm, but not simulated" if name in _KNOWN_TO_SLURM else "no command"
            session.write("stderr", f"{name}: error: {more}\n")
            session.end(1)
            return
        task = self._task_of(asked)
        session.begin(asked, self._user(uid), stdin, None if task is None else task.task.process)

    def _task_of(self, asked: Asked) -> RealTask | None:
        """Return the task that a client runs in; None for one that runs in none."""
        return None if self.machine is None else self.machine.of(asked.env.get(MARK, ""))

    def _signal(self, what: Mapping[str, int]) -> None:
        session = self.sessions.get(what["command"])
        if session is not None:
            session.signal(what["number"])

    def _user(self, uid: int) -> User:
        """Return the user of a uid; one that the scenario does not know is taken in."""
        users = self.world.site.users
        for user in users.values():
            if user.uid == uid:
                return user
        user = machine_user(uid)
        assert isinstance(users, dict)
        users[user.name] = user
        return user

    def find_srun(self, step: object) -> Session | None:
        """Return the client of the srun of a step."""
        for session in self.sessions.values():
            call = session.call
            if call is not None and call.process.daemon == "srun" and call.process.step == step:
                return session
        return None

    def process_of(self, number: int) -> Process | None:
        """Return the process of a command that runs."""
        session = self.sessions.get(number)
        return session.call.process if session is not None and session.call is not None else None

    # Clients.

    async def listen(self, listener: socket.socket) -> None:
        """Take clients in until the cluster ends."""
        listener.setblocking(False)
        sock = trio.socket.from_stdlib_socket(listener)
        while True:
            while self._clients >= _MOST_CLIENTS:
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
                    # Whoever may open the socket acts as its owner.
                    uid = os.geteuid()
                await Session(self, stream, uid).run()
        finally:
            self._clients -= 1
            self._left.set()

    def do(self, line: str, session: Session) -> None:
        """Do what `serve ctl` asks for, in a turn of its own."""
        self.kernel.inject(lambda _: self.control.do(line, session))

    def forget(self, session: Session) -> None:
        """Let go of a client that is gone."""
        self.control.forget(session)


_CREDENTIALS: Final = struct.Struct("3i")


def machine_user(uid: int) -> User:
    """Return a user as this machine knows it."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return User(name=f"u{uid}", uid=uid, gid=uid)
    return User(name=entry.pw_name, uid=uid, gid=entry.pw_gid)
