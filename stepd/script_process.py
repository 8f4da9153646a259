"""Scripts that daemons start: each in a process of its own, as an event of the trace.

slurmd, slurmctld, step daemons, tasks and srun all start their prologs and epilogs here, and
slurmctld what its burst buffer plugins run. What a script writes goes nowhere unless the caller
listens.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import attrs
from msgspec import UNSET, UnsetType

from simctl.kernel.procs import Process, wait_status
from simctl.kernel.threads import Killed, Thread
from simctl.site import ScriptCall, ScriptMain, Site, User
from simctl.stepd.environment import SCRIPT_CONTEXTS
from simctl.stepd.hosts.script_host import ScriptHost
from simctl.stepd.outcome import NEVER_US, ProgramRun, default_status, status_after_signal
from simctl.stepd.programs import ScriptRun
from simctl.stepd.streams import Output
from simctl.wire.ids import SECOND

_KILLED: Final = 9
_DAEMONS: Final = ("slurmd", "slurmstepd")
"""What runs scripts in process groups of their own, and leaves them alone when it ends."""


def _nowhere(_descriptor: int, _text: str) -> None:
    """Drop what a script writes, as daemons do that have no terminal."""


@attrs.define(eq=False, kw_only=True)
class ScriptProcess:
    """One script, from its fork to its wait status.

    `parent` forks it. A relative path starts from `work_dir`, which is the user's home by default;
    `argv` are its arguments; `limit_s` is after how many seconds it is killed, 0 for never.
    Where there is an `answer`, that runs in place of what the path names.
    """

    site: Site
    parent: Process
    name: str
    path: str
    user: User
    env: Mapping[str, str]
    job_id: int | UnsetType = UNSET
    step: str | UnsetType = UNSET
    task: int | UnsetType = UNSET
    work_dir: str = ""
    argv: tuple[str, ...] = ()
    limit_s: float = 0
    output: Output = _nowhere
    answer: ScriptMain | None = None
    at_begin: Callable[[], None] | None = None
    """Called when it begins to do something."""

    at_end: Callable[[int], None] | None = None
    """Called with the wait status before any other process learns of it."""

    status: int = -1
    """The wait status; -1 while it runs."""

    timed_out: bool = False
    """Whether it was killed because its time was up."""

    _started_us: int = 0
    _under_way: bool = False
    _limit_us: int = NEVER_US
    _hangs_us: int = -1
    _due_us: int = NEVER_US
    _executes: bool = False
    _enter: int = 0
    _process: Process | None = None
    _program: ProgramRun | None = None
    _host: ScriptHost | None = None
    _waiter: Thread | None = None

    async def run(self) -> int:
        """Run the script to its end; return its wait status."""
        try:
            process = self._begin()
            await self._run_to_end(process)
        except Killed:
            if self._process is not None:
                self._lose_parent(self._process)
            raise
        self.parent.cause = process.cause
        return self.status

    def start(self) -> None:
        """Start the script and wait for nothing: it outlives the thread that starts it."""
        try:
            process = self._begin()
        except Killed:
            child = self._process
            if child is not None and not child.exited:
                child.start(partial(self._begin_alone, child), self.name)
            raise
        process.start(partial(self._run_to_end, process), self.name)

    async def _begin_alone(self, process: Process) -> None:
        """Do what is left where the thread that started it was killed upon its first events."""
        if not self._enter:
            if not self._executes:
                process.exec(self.path)
            self._note_enter(process)
        await self._run_to_end(process)

    def _begin(self) -> Process:
        self._started_us = self.site.kernel.now_us
        process = self._fork()
        self._note_enter(process)
        return process

    def _note_enter(self, process: Process) -> None:
        trace = self.site.trace
        # Known beforehand, should a process be killed upon that event.
        process.cause = self._enter = trace.seq + len(trace.open_calls) + 1
        cause = process.begun
        trace.note("script", self.name, process, phase="enter", args=self._shown(), cause=cause)

    def _shown(self) -> dict[str, Any]:
        """Return the arguments of its events."""
        return {"path": self.path, "argv": list(self.argv)} if self.argv else {"path": self.path}

    def _lose_parent(self, process: Process) -> None:
        """Go on without a daemon that was killed, whose process group is not this one's.

        With any other parent the script ends: what kills that kills the whole group.
        """
        self._waiter = None
        if not process.host.up or process.exited:
            return
        if not self._enter:
            process.exit(_KILLED)
        elif self.parent.exited and self.parent.daemon in _DAEMONS:
            process.start(partial(self._go_on, process), self.name)
        else:
            self.signal(_KILLED)

    async def _go_on(self, process: Process) -> None:
        """Do what is left to do, from wherever its parent has stopped waiting for it."""
        if not self._under_way:
            await self._run_to_end(process)
            return
        if self._hangs_us > self.site.kernel.now_us:
            await self._wait(min(self._hangs_us, self._limit_us))
            if self.status < 0:
                await self._answer(process, self._limit_us)
        elif self._program is not None:
            await self._see_program_out(self._program, self._limit_us)
        else:
            await self._wait(self._limit_us)
        self._time_out()

    def signal(self, number: int) -> None:
        """Deliver a signal to the script and to what it has started."""
        process = self._process
        if process is None or self.status >= 0:
            return
        process.cause = self.site.trace.process(process, "signal", number)
        if self._host is not None:
            for child in self._host.live_children():
                self._host.signal_child(child, number)
            self._host.deliver(number)
        elif self._program is not None:
            status = status_after_signal(self._program, number)
            if status is not None:
                self._ended(status)
        elif (status := default_status(number)) is not None:
            self.site.procs.kill(process, status)
            self._ended(status)

    def _fork(self) -> Process:
        process = self._process = self.parent.fork(
            role="script", task=self.task, fresh=True, name=f"{self.name} {self.path}"
        )
        process.job = self.job_id
        process.step = self.step
        process.env = dict(self.env)
        if self.name in SCRIPT_CONTEXTS:
            process.env["SLURM_SCRIPT_CONTEXT"] = SCRIPT_CONTEXTS[self.name]
        if process.uid != self.user.uid:
            process.become_user(self.user.uid)
        self._executes = True
        process.exec(self.path)
        return process

    async def _run_to_end(self, process: Process) -> None:
        kernel = self.site.kernel
        self._under_way = True
        if self.at_begin is not None:
            self.at_begin()
        limit_us = NEVER_US
        if self.limit_s:
            limit_us = self._limit_us = kernel.now_us + round(self.limit_s * SECOND)
        fault = self.site.hooks.script_fault(process, self.name)
        if fault is not None and not fault.hangs:
            self._ended(wait_status(1))
            return
        if fault is not None:
            hangs_us = NEVER_US if fault.hangs_us is None else kernel.now_us + fault.hangs_us
            self._hangs_us = hangs_us
            await self._wait(min(hangs_us, limit_us))
        if self.status < 0 and kernel.now_us < limit_us:
            await self._answer(process, limit_us)
        self._time_out()

    def _time_out(self) -> None:
        """Kill it if it has not ended."""
        if self.status < 0:
            self.timed_out = True
            self.signal(_KILLED)

    async def _answer(self, process: Process, limit_us: int) -> None:
        """Have done what the script does, until it has ended or its time is up."""
        if self.answer is not None:
            current = self.site.kernel.current
            lingers = current is not None and current.lingers
            process.start(partial(self._run_answer, self.answer, process, lingers), "script")
            await self._wait(limit_us)
        else:
            await self._run_program(process, limit_us)

    async def _run_answer(self, answer: ScriptMain, process: Process, lingers: bool) -> None:
        thread = self.site.kernel.current
        assert thread is not None
        # It keeps a run alive only if the process that waits for it does.
        thread.lingers = lingers
        call = ScriptCall(
            site=self.site,
            process=process,
            argv=(self.path, *self.argv),
            env=process.env,
            work_dir=self.work_dir or self.user.home,
            limit_s=self.limit_s,
            write=self.output,
        )
        status = await answer(call)
        self.timed_out = call.timed_out
        self._ended(status)

    async def _run_program(self, process: Process, limit_us: int) -> None:
        site = self.site
        rank = self.task if isinstance(self.task, int) else 0
        where = self.work_dir or self.user.home
        files = site.disk.view(process.host.name, process.uid, where)
        run = site.programs.find((self.path, *self.argv), rank, files)
        if isinstance(run, ScriptRun):
            host = self._host = ScriptHost(
                site,
                process,
                user=self.user,
                work_dir=where,
                output=self.output,
                ended=self._ended,
            )
            host.start_script(run, process.env)
            await self._wait(limit_us)
            return
        self._program = run
        self._due_us = min(NEVER_US, site.kernel.now_us + run.runs_us)
        await self._see_program_out(run, limit_us)

    async def _see_program_out(self, run: ProgramRun, limit_us: int) -> None:
        """Wait until the program has ended, or its time is up."""
        due_us = self._due_us
        await self._wait(min(due_us, limit_us))
        if self.status < 0 and due_us <= limit_us:
            self.output(1, run.output)
            self.output(2, run.error)
            self._ended(run.status)

    async def _wait(self, due_us: int) -> None:
        """Wait until the script has ended, or until *due_us*."""
        kernel = self.site.kernel
        while self.status < 0 and kernel.now_us < due_us:
            if due_us < NEVER_US:
                kernel.arm(due_us)
            self._waiter = kernel.current
            await kernel.park(f"{self.name} script {self.path} to end")
            self._waiter = None

    def _ended(self, status: int) -> None:
        if self.status >= 0:
            return
        if self.at_end is not None:
            self.at_end(status)
        self.status = status
        process = self._process
        assert process is not None
        process.exit(status)
        passed = self.site.kernel.now_us > self._started_us
        process.cause = self.site.trace.note(
            "script",
            self.name,
            process,
            phase="exit",
            args=self._shown(),
            rc=status,
            enter=self._enter,
            t0_us=self._started_us if passed else UNSET,
        )
        if self._waiter is not None:
            self.site.kernel.wake(self._waiter)
