"""Shell lines that our code runs for a plugin or a person: what ``system`` and ``popen`` of C do.

A Lua script's ``os.execute`` and ``io.popen`` come here. The line is read and run as a batch script
is (docs/scripts.md), in a process of its own, in virtual time.
"""

from collections.abc import Mapping

import attrs

from simctl.kernel.procs import SIGKILL, Process
from simctl.kernel.threads import Killed, Thread
from simctl.limits import OUTPUT_CHARACTERS
from simctl.site import Site, User
from simctl.stepd.hosts.script_host import ScriptHost
from simctl.stepd.outcome import NEVER_US, ProgramRun
from simctl.stepd.programs import Input, read_script
from simctl.wire.ids import SECOND

_SHELL = "/bin/sh"


@attrs.frozen(kw_only=True)
class Finished:
    """How a shell line has ended: its wait status, and what it wrote; both texts are whole."""

    status: int
    stdout: str
    stderr: str
    timed_out: bool = False
    """Whether it was killed because its time was up; `status` is then 9."""


async def run_line(
    site: Site,
    parent: Process,
    text: str,
    *,
    user: User,
    env: Mapping[str, str],
    work_dir: str = "/",
    args: tuple[str, ...] = ("sh",),
    stdin: str = "",
    limit_s: float = 0,
) -> Finished:
    """Run the shell line or script *text* as a child of *parent*, and wait for its end.

    Args:
        site: The cluster it runs in.
        parent: Whose thread calls; the child is on its host. If it is killed, so is the child.
        text: The commands. One that the parser refuses ends with 2 and says why on stderr.
        user: Who the child runs as.
        env: Its environment.
        work_dir: Where it starts, an absolute path.
        args: ``$0``, which begins its error lines, ``$1`` and so on.
        stdin: What it finds on its standard input.
        limit_s: After how many seconds it is killed; 0 for never.
    """
    line = _Line(site=site, parent=parent, user=user)
    return await line.run(text, dict(env), work_dir, args, stdin, limit_s)


@attrs.define(eq=False, kw_only=True)
class _Line:
    """One shell line while it runs."""

    site: Site
    parent: Process
    user: User
    status: int = -1
    written: dict[int, list[str]] = attrs.field(factory=lambda: {1: [], 2: []})
    room: dict[int, int] = attrs.field(factory=lambda: dict.fromkeys((1, 2), OUTPUT_CHARACTERS))
    waiter: Thread | None = None

    async def run(
        self,
        text: str,
        env: dict[str, str],
        work_dir: str,
        args: tuple[str, ...],
        stdin: str,
        limit_s: float,
    ) -> Finished:
        script = read_script(text, args)
        if isinstance(script, ProgramRun):
            return Finished(status=script.status, stdout="", stderr=script.error)
        process = self._fork(env)
        host = ScriptHost(
            self.site,
            process,
            user=self.user,
            work_dir=work_dir,
            output=self._write,
            ended=self._ended,
            stdin=Input(stdin),
        )
        limit_us = self.site.kernel.now_us + round(limit_s * SECOND) if limit_s else NEVER_US
        try:
            host.start_script(script, env)
            await self._wait(limit_us)
        except Killed:
            self._kill(host)
            raise
        timed_out = self.status < 0
        if timed_out:
            self._kill(host)
        self.parent.cause = process.cause
        return Finished(
            status=self.status if self.status >= 0 else SIGKILL,
            stdout="".join(self.written[1]),
            stderr=self._error(),
            timed_out=timed_out,
        )

    def _fork(self, env: dict[str, str]) -> Process:
        process = self.parent.fork(role="script", fresh=True, name="sh")
        process.env = env
        if process.uid != self.user.uid:
            process.become_user(self.user.uid)
        process.exec(_SHELL)
        return process

    def _kill(self, host: ScriptHost) -> None:
        """End the shell and all it has started."""
        for child in host.live_children():
            host.signal_child(child, SIGKILL)
        if not host.process.exited:
            host.deliver(SIGKILL)

    async def _wait(self, due_us: int) -> None:
        kernel = self.site.kernel
        while self.status < 0 and kernel.now_us < due_us:
            if due_us < NEVER_US:
                kernel.arm(due_us)
            self.waiter = kernel.current
            await kernel.park("a shell line to end")
            self.waiter = None

    def _write(self, descriptor: int, said: str) -> None:
        """Keep what the line writes, up to a bound."""
        kept = said[: max(self.room[descriptor], 0)]
        if kept:
            self.written[descriptor].append(kept)
        self.room[descriptor] -= len(said)

    def _error(self) -> str:
        """Return what was written to the standard error, and what was lost."""
        lost = f"sh: what it wrote beyond {OUTPUT_CHARACTERS} characters is lost\n"
        return "".join(self.written[2]) + lost * (min(self.room.values()) < 0)

    def _ended(self, status: int) -> None:
        self.status = status
        if self.waiter is not None:
            self.site.kernel.wake(self.waiter)
