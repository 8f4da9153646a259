"""What comes from outside of a cluster: clients' commands, and what real processes do.

A served cluster has all of it happen as it comes, and a recording of one has it happen again at its
microseconds. Both go this way, so that the cluster cannot tell one from the other.
"""

import shlex
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from msgspec import UNSET

from simctl.kernel.disk import Disk
from simctl.kernel.procs import SIGKILL, Host, Process, RunsAs, exit_code_of, signal_of, wait_status
from simctl.plugins.guard import DiedError
from simctl.scenario.model import (
    CommandCame,
    CommandLeft,
    CommandSignalled,
    FileSeen,
    OutsideDeed,
    Stopped,
    TaskEnded,
    TaskWrote,
)
from simctl.site import CommandCall, Foreground, Site, User
from simctl.stepd.hosts.child import Signalled
from simctl.stepd.image_file import ImageError, State
from simctl.stepd.programs import OutsideTask, TaskHost

_KNOWN_TO_SLURM = ("sattach", "sbcast", "sprio", "sreport", "sstat", "strigger", "scrontab")
_CATCH = ("srun", "salloc", "srun_cr")
"""Commands that are told of signals; all others end by them."""


class Client:
    """The client that sent a command, and what it is told. This one is no client."""

    def write(self, stream: str, text: str) -> None:
        """Hear what the command prints."""

    def ended(self, status: int) -> None:
        """Hear that it has ended."""

    def run_here(self, argv: tuple[str, ...], env: Mapping[str, str], work_dir: str) -> None:
        """Run a command in the foreground, whose end is told with `CommandLeft`."""

    def signal_here(self, number: int) -> None:
        """Signal that command."""

    def broke(self, text: str) -> None:
        """Hear of a mistake of simctl's."""


class ToldTask:
    """A task of which a recording tells what it does."""

    has_children = False

    def signal(self, number: int, *, children: bool) -> None:
        """Do nothing: what came of it is told."""

    def kill_children(self) -> None:
        """Do nothing."""

    def gone(self) -> None:
        """Do nothing."""

    def commands(self) -> list[CommandCall]:
        """Return none."""
        return []

    def pause(self) -> None:
        """Do nothing."""

    def unpause(self) -> None:
        """Do nothing."""

    def state(self, memories: Mapping[int, Any]) -> State:
        """Refuse to be saved."""
        raise ImageError("a real process cannot be saved")


@attrs.define(eq=False)
class _Command:
    """A command that has not ended."""

    call: CommandCall
    client: Client
    left: Callable[[int], None] | None = None
    """Told how the command in its foreground has ended."""


class Outside:
    """The door of a cluster: each deed happens in a turn of its own."""

    def __init__(self, site: Site, login: Host, hosts: Mapping[str, Host]) -> None:
        self._site = site
        self._login = login
        self._hosts = hosts
        self._started = 0
        self.tasks: dict[int, OutsideTask] = {}
        """Those that have not ended, in the order of their start, from 1."""
        self.commands: dict[int, _Command] = {}
        """Those that have not ended, by the numbers that they came with."""
        self._environments: dict[int, dict[str, str]] = {}
        self.run_task: Callable[[int, OutsideTask], Any] = lambda _, __: ToldTask()
        """Sets a task's program going."""

    # Tasks.

    def start(self, task: OutsideTask) -> TaskHost:
        """Start the program of a task."""
        self._started = number = self._started + 1
        self.tasks[number] = task
        host = self.run_task(number, task)

        def gone() -> None:
            self.tasks.pop(number, None)
            host.gone()

        task.process.outside = gone
        if task.process.exited:
            gone()
        started: TaskHost = host
        return started

    # What happens.

    def happen(self, deed: OutsideDeed, client: Client | None = None) -> None:
        """Have something happen that comes from outside."""
        if isinstance(deed, CommandCame):
            self._come(deed, client or Client())
        elif isinstance(deed, CommandSignalled):
            self._signal(deed)
        elif isinstance(deed, CommandLeft):
            command = self.commands.get(deed.command)
            if command is not None and command.left is not None:
                left, command.left = command.left, None
                left(deed.status)
        elif isinstance(deed, TaskWrote):
            task = self.tasks.get(deed.task)
            if task is not None:
                task.write(deed.stream, deed.text)
        elif isinstance(deed, TaskEnded):
            task = self.tasks.pop(deed.task, None)
            if task is not None:
                task.ended(deed.status)
        elif isinstance(deed, FileSeen):
            place(self._site.disk, deed, self._hosts)
        else:
            assert isinstance(deed, Stopped)

    def _come(self, came: CommandCame, client: Client) -> None:
        name = came.argv[0]
        env = {**self._environments.get(came.env_of, {}), **came.env}
        for variable in came.unset:
            env.pop(variable, None)
        if came.is_base:
            self._environments[came.command] = env
        if name not in self._site.commands:
            what = "known to Slurm, but not simulated" if name in _KNOWN_TO_SLURM else "no command"
            client.write("stderr", f"{name}: error: {what}\n")
            client.ended(1)
            return
        user = self._user(came)
        parent = self.tasks.get(came.task)
        process = self._process(name, user, None if parent is None else parent.process)
        site = self._site
        call = CommandCall(
            site=site,
            process=process,
            mailbox=site.fabric.mailbox(process, f"{name}@{process.host.name}"),
            argv=came.argv,
            env=dict(env),
            work_dir=came.cwd,
            user=user,
            write=client.write,
            stdin=came.stdin,
        )
        command = self.commands[came.command] = _Command(call, client)
        call.run_here = lambda argv, env, work_dir, ended: _run_here(
            command, argv, env, work_dir, ended
        )
        process.env = call.env
        process.start(lambda: self._run(came, command), name)

    def _user(self, came: CommandCame) -> User:
        """Return the user of a command; one that the scenario does not know is taken in."""
        users = self._site.users
        for user in users.values():
            if user.uid == came.uid:
                return user
        name = came.user if came.user not in users else f"u{came.uid}"
        user = User(name=name, uid=came.uid, gid=came.gid)
        assert isinstance(users, dict)
        users[name] = user
        return user

    def _process(self, name: str, user: User, parent: Process | None) -> Process:
        """Return the process of a command: a child of the task that it runs in, or by itself."""
        if parent is None or parent.exited:
            return self._site.procs.add(
                self._login,
                ppid=1,
                daemon=name,
                role=name,
                uid=user.uid,
                runs_as=RunsAs.USER,
                apart=True,
            )
        process = parent.fork(daemon=name, role=name, task=parent.task, fresh=True)
        process.task = process.step = UNSET
        return process

    async def _run(self, came: CommandCame, command: _Command) -> None:
        call, process, trace = command.call, command.call.process, self._site.trace
        name = came.argv[0]
        args = {"line": shlex.join(came.argv).encode(errors="replace").decode()}
        process.cause = trace.note("command", name, process, phase="enter", args=args)
        try:
            status = await self._site.commands[name](call)
            ended = wait_status(status)
        except DiedError as died:
            ended = died.status
            status = 128 + signal_of(ended) if signal_of(ended) else exit_code_of(ended)
        except Exception:  # noqa: BLE001 - one client's command is not all the cluster
            command.client.broke(traceback.format_exc())
            call.err(f"{name}: error: simctl itself broke; the server's output tells where")
            status, ended = 1, wait_status(1)
        errno = call.errno or UNSET
        trace.note("command", name, process, phase="exit", args=args, rc=status, errno=errno)
        call.mailbox.close(breaks=True)
        process.exit(ended)
        self._end(came.command, command, status)

    def _end(self, number: int, command: _Command, status: int) -> None:
        self.commands.pop(number, None)
        command.client.ended(status)

    def _signal(self, deed: CommandSignalled) -> None:
        command = self.commands.get(deed.command)
        if command is None:
            return
        call, number = command.call, deed.number
        process = call.process
        self._site.trace.process(process, "signal", number)
        if number != SIGKILL and process.daemon in _CATCH:
            call.mailbox.post(Signalled(signal=number))
            return
        killed = call.killed
        call.mailbox.close(breaks=True)
        self._site.procs.kill(process, number)
        self._end(deed.command, command, 128 + number)
        if killed is not None:
            killed()


def _run_here(
    command: _Command,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    work_dir: str,
    ended: Callable[[int], None],
) -> Foreground:
    command.left = ended
    command.client.run_here(argv, env, work_dir)
    return Foreground(signal=command.client.signal_here)


def place(disk: Disk, seen: FileSeen, hosts: Mapping[str, Host]) -> None:
    """Let a simulated disk show what a machine's did."""
    data = None if seen.text is None else seen.text.encode(errors="surrogateescape")
    for host in ("login", "slurmctld", *hosts):
        disk.set_up(host, seen.path, uid=seen.uid, mode=seen.mode, data=data, is_dir=seen.is_dir)
