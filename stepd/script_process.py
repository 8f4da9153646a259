"""Prologs and epilogs: each runs to its end in a process of its own, as an event of the trace.

slurmd, slurmctld, step daemons, tasks and srun all start theirs here. What a script writes goes
nowhere unless whoever starts it listens.
"""

from collections.abc import Mapping
from typing import Final

import attrs
from msgspec import UNSET, UnsetType

from simctl.kernel.procs import Process, wait_status
from simctl.kernel.turns import Killed, Thread
from simctl.plugins.site import Site, User
from simctl.stepd.children import Output, ScriptHost
from simctl.stepd.environment import SCRIPT_CONTEXTS
from simctl.stepd.outcome import NEVER_US, ProgramRun, status_after_signal
from simctl.stepd.programs import ScriptRun
from simctl.wire.ids import SECOND

_KILLED: Final = 9


def _nowhere(_descriptor: int, _text: str) -> None:
    """Drop what a script writes, as daemons do that have no terminal."""


@attrs.define(eq=False, kw_only=True)
class ScriptProcess:
    """One script, from its fork to its wait status.

    `parent` forks it. A relative path starts from `work_dir`, which is the user's home by default;
    `limit_s` is after how many seconds it is killed, 0 for never.
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
    limit_s: int = 0
    output: Output = _nowhere
    status: int = -1
    """The wait status; -1 while it runs."""

    _started_us: int = 0
    _enter: int = 0
    _process: Process | None = None
    _program: ProgramRun | None = None
    _host: ScriptHost | None = None
    _waiter: Thread | None = None

    async def run(self) -> int:
        """Run the script to its end; return its wait status."""
        self._started_us = self.site.kernel.now_us
        process = self._process = self._fork()
        args = {"path": self.path}
        self._enter = self.site.trace.note("script", self.name, process, phase="enter", args=args)
        process.cause = self._enter
        try:
            await self._run_to_end(process)
        except Killed:
            self._die_with_parent(process)
            raise
        self.parent.cause = process.cause
        return self.status

    def _die_with_parent(self, process: Process) -> None:
        """End with a parent that was killed: what kills that has killed the whole process group."""
        self._waiter = None
        if process.host.up and not process.exited:
            self.signal(_KILLED)

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

    def _fork(self) -> Process:
        process = self.parent.fork(
            role="script", task=self.task, fresh=True, name=f"{self.name} {self.path}"
        )
        process.job = self.job_id
        process.step = self.step
        process.env = {**self.env, "SLURM_SCRIPT_CONTEXT": SCRIPT_CONTEXTS[self.name]}
        if process.uid != self.user.uid:
            process.become_user(self.user.uid)
        process.exec(self.path)
        return process

    async def _run_to_end(self, process: Process) -> None:
        site = self.site
        if site.hooks.strikes(process, self.name):
            self._ended(wait_status(1))
            return
        rank = self.task if isinstance(self.task, int) else 0
        where = self.work_dir or self.user.home
        run = site.programs.find((self.path,), rank, where, process.host.name)
        limit_us = site.kernel.now_us + self.limit_s * SECOND if self.limit_s else NEVER_US
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
        else:
            self._program = run
            due_us = min(NEVER_US, site.kernel.now_us + run.runs_us)
            await self._wait(min(due_us, limit_us))
            if self.status < 0 and due_us <= limit_us:
                self.output(1, run.output)
                self.output(2, run.error)
                self._ended(run.status)
        if self.status < 0:
            self.signal(_KILLED)

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
            args={"path": self.path},
            rc=status,
            enter=self._enter,
            t0_us=self._started_us if passed else UNSET,
        )
        if self._waiter is not None:
            self.site.kernel.wake(self._waiter)
