"""How a script starts programs, commands of Slurm's, tools, other scripts and subshells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import attrs
from msgspec import UNSET

from simctl.kernel.procs import (
    Process,
    wait_status,
)
from simctl.limits import SCRIPT_FORKS, SCRIPT_PROCESSES, SUBSHELL_NESTING
from simctl.plugins.guard import DiedError
from simctl.site import CommandCall
from simctl.stepd.hosts.base import shell_status
from simctl.stepd.hosts.child import Child, Running, command_name
from simctl.stepd.hosts.files import Files
from simctl.stepd.journal import DivergedError, JournalingHost
from simctl.stepd.outcome import (
    NEVER_US,
    ProgramRun,
)
from simctl.stepd.programs import ScriptRun
from simctl.stepd.scripts.host import (
    Body,
    Disposition,
    Inherited,
    PipeEnd,
    Redirects,
    ShellHost,
    Stream,
)
from simctl.stepd.scripts.shell import Shell
from simctl.stepd.scripts.tools import TOOLS, Tool
from simctl.stepd.signals import SIGINT, SIGQUIT
from simctl.stepd.streams import BlockedError
from simctl.wire.command_lines import reads_input
from simctl.wire.ids import SECOND

_KEYBOARD: Final = (SIGINT, SIGQUIT)
_NO_CHILD: Final = 127
_NOT_EXECUTED: Final = 126


class Starting(Files, ABC):
    """Starts processes for a shell, and runs what this one itself executes."""

    def start_script(self, run: ScriptRun, env: dict[str, str]) -> None:
        """Run a script, or a tool, in a thread of the process; its end is told with a wait status.

        A shell that starts elsewhere than PWD says sets it right.
        """
        if not run.tool:
            env["PWD"] = self._work_dir
        self._run = run
        self._first_env = dict(env)
        self._start(self._main(run, env))

    def _main(self, run: ScriptRun, env: dict[str, str]) -> Body:
        """Return what a process does that executes a script or a tool."""
        redirects = self._redirects

        async def main(host: ShellHost) -> int:
            if run.tool:
                return await TOOLS[run.tool](Tool(host, run.argv, env, redirects))
            return await Shell(run.script, host, args=run.argv, env=env, streams=redirects).run()

        return main

    def _start(self, main: Body) -> None:
        host: ShellHost = self
        if self._site.images.enabled:
            self._journal = self._journal or JournalingHost(self)
            host = self._journal

        async def body() -> None:
            await self._hold_still()
            self._begun = True
            try:
                status = wait_status(await main(host))
            except DivergedError as error:
                name = self._run.argv[0] if self._run is not None else "a subshell"
                self._streams.output(2, f"{name}: {error}\n")
                status = wait_status(1)
            except RecursionError:
                name = self._run.argv[0] if self._run is not None else "a subshell"
                self._streams.output(2, f"{name}: what it does is nested too deep; it ends here\n")
                status = wait_status(1)
            self.process.exit(status)
            self._tell_end(status)

        self.process.start(body, "script")

    async def run(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> int:
        """Run a program and wait for its end."""
        # It may have stopped itself.
        await self._hold_still()
        child, self._resumed = self._resumed, None
        if child is None:
            child = self._launch(argv, env, redirects)
        self._foreground = child
        await self._wait_for([child], interruptible=False)
        self._foreground = None
        return self._status(child)

    def start(
        self,
        argv: tuple[str, ...],
        env: dict[str, str],
        redirects: Redirects,
        *,
        background: bool = False,
    ) -> int:
        """Start a program beside the shell; return its pid, 0 if there are too many."""
        if self._is_too_many:
            return 0
        child = self._launch(argv, env, redirects)
        if background:
            self._set_apart(child)
        if child.program is not None:
            self._watch(child)
        return child.pid

    def _set_apart(self, child: Child) -> None:
        """Let a child in the background ignore the signals that a keyboard sends."""
        if child.program is not None:
            deaf = [each for each in _KEYBOARD if each not in child.program.exits_on]
            child.program = attrs.evolve(child.program, ignores=(*child.program.ignores, *deaf))
        elif child.host is not None:
            how: Disposition = "ignore" if child.argv else "ignore alone"
            child.host.shut_out(_KEYBOARD, how)

    def fork(self, body: Body, redirects: Redirects, *, background: bool = False) -> int:
        """Start a child that goes on with *body*; return its pid, 0 if there are too many."""
        if self._is_too_many:
            return 0
        own = self.process
        process = own.fork(role=own.role, task=own.task)
        process.env = own.env
        child = self._adopt(process, (), redirects)
        child.host = self._host_of(child)
        if background:
            self._set_apart(child)
        child.host.start_body(body)
        return child.pid

    @property
    def _is_too_many(self) -> bool:
        """Whether the script and what it has started may start nothing more."""
        streams = self._streams
        return streams.processes >= SCRIPT_PROCESSES or streams.started >= SCRIPT_FORKS

    def adopt(self, pid: int, body: Body) -> None:
        """Let the child *pid*, if it is one of an image, go on with *body*."""
        child = self._children.get(pid)
        if child is not None and child.host is not None:
            child.host.start_body(body)

    def start_body(self, body: Body) -> None:
        """Go on as a subshell."""
        self._body = body
        self._start(body)

    async def wait(
        self, pids: tuple[int, ...], *, interruptible: bool = True, until_us: int = 0
    ) -> int:
        """Wait for one of these children, for a trapped signal, or until a moment."""
        children = [self._children[pid] for pid in pids if pid in self._children]
        if not children:
            return pids[0]
        due_us = until_us - self._site.start_time_s * SECOND if until_us else NEVER_US
        return await self._wait_for(children, interruptible=interruptible, due_us=due_us)

    def status(self, pid: int) -> int:
        """Return the exit status of a child that has ended, 127 if it is none; else -1.

        Of a child of the script that has forked this one it tells as well.
        """
        child = self._children.get(pid)
        if child is None:
            return self._parent.glance(pid) if self._parent is not None else _NO_CHILD
        return self._status(child) if child.ended else -1

    def glance(self, pid: int) -> int:
        """Return what `status` does, for a child that has been forked: nothing is noted."""
        child = self._children.get(pid)
        if child is None:
            return self._parent.glance(pid) if self._parent is not None else _NO_CHILD
        return shell_status(child.status) if child.ended else -1

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

    def _adopt(self, process: Process, argv: tuple[str, ...], redirects: Redirects) -> Child:
        """Add a child that was just forked."""
        pid = process.pid
        while pid in self._children:
            # A child of an image has the number.
            pid += 1
        child = self._children[pid] = Child(
            process=process, pid=pid, argv=argv, redirects=redirects
        )
        self._streams.hold(redirects)
        self._streams.processes += 1
        self._streams.started += 1
        child.forked = self.process.cause
        return child

    def _launch(self, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects) -> Child:
        child = self._adopt(self._fork(argv, env), argv, redirects)
        name = command_name(argv)
        if name in self._site.commands:
            self._start_command(child, name, self._call(child, name, ""))
        else:
            self._start_program(child, argv, env, redirects)
        return child

    def _start_command(self, child: Child, name: str, call: CommandCall) -> None:
        main = self._site.commands[name]
        child.call = call
        stdin = child.redirects.stdin
        if isinstance(stdin, Inherited) and not call.stdin:
            call.stdin = self._streams.stdin.text
        reads = not isinstance(stdin, Inherited) and call.memory is None and reads_input(call.argv)

        async def body() -> None:
            if reads:
                call.stdin = await self._all_of(stdin)
            try:
                status = wait_status(await main(call))
            except DiedError as died:
                status = died.status
                self._site.procs.kill(child.process, status)
            call.mailbox.close(breaks=True)
            self._end(child, status)

        child.process.start(body, name)

    async def _all_of(self, stream: Stream) -> str:
        """Return all that a command of Slurm's reads from its standard input."""
        pieces: list[str] = []
        while True:
            try:
                found = self._streams.read(stream, "", 0, self._files)
            except BlockedError:
                thread = self._kernel.current
                assert thread is not None
                assert isinstance(stream, PipeEnd)
                self._streams.wait_for(stream, thread)
                await self._kernel.park("its standard input")
                continue
            if isinstance(stream, PipeEnd):
                self._streams.drain(stream, found or "")
            if not found:
                return "".join(pieces)
            pieces.append(found)

    def _call(self, child: Child, name: str, stdin: str) -> CommandCall:
        site = self._site
        process = child.process
        streams = {"stdout": child.redirects.stdout, "stderr": child.redirects.stderr}

        def write(stream: str, text: str) -> None:
            self._say(streams[stream], text)

        return CommandCall(
            site=site,
            process=process,
            mailbox=site.fabric.mailbox(process, f"{name}@{process.host.name}"),
            argv=child.argv,
            env=process.env,
            work_dir=self._work_dir,
            user=self._user,
            write=write,
            stdin=stdin,
        )

    def _start_program(
        self, child: Child, argv: tuple[str, ...], env: dict[str, str], redirects: Redirects
    ) -> None:
        task = self.process.task
        rank = task if isinstance(task, int) else 0
        run = self._site.programs.find(argv, rank, self._files, None)
        if isinstance(run, ScriptRun) and (self._is_too_many or self.depth >= SUBSHELL_NESTING):
            told = f"{argv[0]}: too many processes of this script have been started\n"
            run = ProgramRun(runs_us=0, status=wait_status(_NOT_EXECUTED), error=told)
        if isinstance(run, ScriptRun):
            child.host = self._host_of(child)
            child.host.start_script(run, env)
            return
        ignored = tuple(self.ignored_signals())
        child.program = attrs.evolve(run, ignores=(*run.ignores, *ignored)) if ignored else run
        child.planned = run.status
        child.due_us = min(NEVER_US, self._kernel.now_us + run.runs_us)
        if run.error:
            self._say(redirects.stderr, run.error)

    @abstractmethod
    def _host_of(self, child: Child) -> Running:
        """Return what a script, a tool or a subshell that this one has started runs in."""
