"""The login host: people run commands there."""

from typing import Protocol

import attrs
from msgspec import UNSET

from simctl.kernel.procs import (
    Host,
    RunsAs,
    exit_code_of,
    signal_of,
    wait_status,
)
from simctl.limits import OUTPUT_CHARACTERS
from simctl.plugins.guard import DiedError
from simctl.scenario.model import (
    RunEntry,
)
from simctl.site import CommandCall, Site
from simctl.world.results import CommandResult
from simctl.world.submitted import Submitted


class CommandListener(Protocol):
    """A listener that hears a command as it runs."""

    def wrote(self, entry: RunEntry, stream: str, text: str) -> None:
        """Hear what the command printed."""

    def ended(self, entry: RunEntry, status: int) -> None:
        """Hear that it has ended."""


class _Output:
    """What a command prints: kept up to a bound, and told to a listener."""

    def __init__(self, entry: RunEntry, listener: CommandListener | None) -> None:
        self.listener = listener
        self.kept: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._entry = entry
        self._room = dict.fromkeys(self.kept, OUTPUT_CHARACTERS)

    def write(self, stream: str, text: str) -> None:
        """Note what the command prints to stdout or stderr."""
        room = self._room
        room[stream] -= len(text)
        if room[stream] >= 0:
            self.kept[stream].append(text)
        elif room[stream] + len(text) >= 0:
            self.kept[stream].append(f"... {self._entry.argv[0]} prints more; so much is kept\n")
            room[stream] = -1
        if self.listener is not None:
            self.listener.wrote(self._entry, stream, text)


@attrs.define(eq=False)
class _Running:
    """A command that runs."""

    entry: RunEntry
    call: CommandCall
    output: _Output
    at_us: int
    """When it was started."""

    began: int = -1
    """The number of its first event."""


class LoginShell:
    """The login host's shell: runs the command lines of a scenario's people."""

    def __init__(self, site: Site, host: Host, submitted: Submitted | None = None) -> None:
        self._site = site
        self._host = host
        self.listener: CommandListener | None = None
        self.results: list[CommandResult] = []
        """What came of the commands that have ended."""
        self._submitted = submitted
        self.waiting: dict[int, _Running] = {}
        """The others, by pid."""

    def run(self, entry: RunEntry) -> None:
        """Run a command line on the login host, as its user."""
        user = self._site.users[entry.user]
        argv = entry.argv
        process = self._site.procs.add(
            self._host,
            ppid=1,
            daemon=argv[0],
            role=argv[0],
            uid=user.uid,
            runs_as=RunsAs.USER,
            apart=True,
        )
        self._site.kernel.touch(process.unit)
        output = _Output(entry, self.listener)
        call = CommandCall(
            site=self._site,
            process=process,
            mailbox=self._site.fabric.mailbox(process, f"{argv[0]}@login"),
            argv=argv,
            env={
                **user.login,
                "PWD": user.home,
                "HOSTNAME": "login",
            },
            work_dir=user.home,
            user=user,
            write=output.write,
        )
        process.env = call.env
        running = _Running(entry, call, output, self._site.kernel.now_us)
        self.waiting[process.pid] = running
        process.start(lambda: self._run(running))

    async def _run(self, running: _Running) -> None:
        """Run a command from its beginning to its end."""
        entry, call = running.entry, running.call
        process, name = call.process, call.argv[0]
        args = {"line": entry.command}
        trace = self._site.trace
        process.cause = running.began = trace.note(
            "command", name, process, phase="enter", args=args
        )
        try:
            status = await self._site.commands[name](call)
            ended = wait_status(status)
        except DiedError as died:
            ended = died.status
            # As a shell tells it.
            status = 128 + signal_of(ended) if signal_of(ended) else exit_code_of(ended)
            self._site.procs.kill(process, ended)
        errno = call.errno or UNSET
        trace.note("command", name, process, phase="exit", args=args, rc=status, errno=errno)
        call.mailbox.close(breaks=True)
        process.exit(ended)
        del self.waiting[process.pid]
        self.results.append(self._result(running, status))
        if running.output.listener is not None:
            running.output.listener.ended(entry, status)

    def _result(self, running: _Running, status: int) -> CommandResult:
        """Return what came of a command, or has so far, with a status of -1."""
        entry, output = running.entry, running.output
        return CommandResult(
            label=entry.label,
            line=entry.line,
            at_us=running.at_us,
            user=entry.user,
            command=entry.command,
            exit=status,
            errno=running.call.errno,
            stdout="".join(output.kept["stdout"]),
            stderr="".join(output.kept["stderr"]),
            checks=entry.checks,
            changed=self._submitted.of(running.began) if self._submitted is not None else None,
        )

    def unended(self) -> list[CommandResult]:
        """Return what the commands that have not ended have done so far."""
        return [self._result(running, -1) for running in self.waiting.values()]
