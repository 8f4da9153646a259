"""The login host: people run commands there."""

from collections.abc import Callable
from typing import Protocol

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
    """Somebody who hears a command as it runs."""

    def wrote(self, entry: RunEntry, stream: str, text: str) -> None:
        """Hear what the command printed."""

    def ended(self, entry: RunEntry, status: int) -> None:
        """Hear that it has ended."""


class LoginShell:
    """The login host's shell: runs the command lines of a scenario's people."""

    def __init__(self, site: Site, host: Host, submitted: Submitted | None = None) -> None:
        self._site = site
        self._host = host
        self.listener: CommandListener | None = None
        self.results: list[CommandResult] = []
        """What came of the commands that have ended."""
        self._submitted = submitted
        self.waiting: dict[int, Callable[[], CommandResult]] = {}
        """What the others have done so far, by pid."""

    def run(self, entry: RunEntry) -> None:
        """Run a command line on the login host, as its user."""
        listener = self.listener
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
        stdout: list[str] = []
        stderr: list[str] = []
        room = {"stdout": OUTPUT_CHARACTERS, "stderr": OUTPUT_CHARACTERS}
        where = user.home

        def write(stream: str, text: str) -> None:
            kept = stdout if stream == "stdout" else stderr
            room[stream] -= len(text)
            if room[stream] >= 0:
                kept.append(text)
            elif room[stream] + len(text) >= 0:
                kept.append(f"... {argv[0]} prints more; so much is kept\n")
                room[stream] = -1
            if listener is not None:
                listener.wrote(entry, stream, text)

        call = CommandCall(
            site=self._site,
            process=process,
            mailbox=self._site.fabric.mailbox(process, f"{argv[0]}@login"),
            argv=argv,
            env={
                **user.login,
                "PWD": where,
                "HOSTNAME": "login",
            },
            work_dir=where,
            user=user,
            write=write,
        )
        process.env = call.env
        at_us = self._site.kernel.now_us
        began = -1

        def result(status: int) -> CommandResult:
            return CommandResult(
                label=entry.label,
                line=entry.line,
                at_us=at_us,
                user=entry.user,
                command=entry.command,
                exit=status,
                errno=call.errno,
                stdout="".join(stdout),
                stderr="".join(stderr),
                checks=entry.checks,
                changed=self._submitted.of(began) if self._submitted is not None else None,
            )

        async def body() -> None:
            nonlocal began
            args = {"line": entry.command}
            process.cause = began = self._site.trace.note(
                "command", argv[0], process, phase="enter", args=args
            )
            try:
                status = await self._site.commands[argv[0]](call)
                ended = wait_status(status)
            except DiedError as died:
                ended = died.status
                # As a shell tells it.
                status = 128 + signal_of(ended) if signal_of(ended) else exit_code_of(ended)
                self._site.procs.kill(process, ended)
            self._site.trace.note(
                "command",
                argv[0],
                process,
                phase="exit",
                args=args,
                rc=status,
                errno=call.errno or UNSET,
            )
            call.mailbox.close(breaks=True)
            process.exit(ended)
            del self.waiting[process.pid]
            self.results.append(result(status))
            if listener is not None:
                listener.ended(entry, status)

        self.waiting[process.pid] = lambda: result(-1)
        process.start(body)

    def unended(self) -> list[CommandResult]:
        """Return what the commands that have not ended have done so far."""
        return [result_so_far() for result_so_far in self.waiting.values()]
