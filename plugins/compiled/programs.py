"""Programs that a compiled plugin starts: simulated ones, each in a thread of the plugin's."""

import errno
from collections.abc import Awaitable
from functools import partial
from typing import Final

import attrs

from simctl.api.surroundings import PluginThread
from simctl.kernel.procs import CALLING, Process
from simctl.plugin import ScriptResult, SlurmError, run_shell, slurmctld, start, stepd
from simctl.plugins.compiled.process import U32, Reader, text

_AT_MOST: Final = 64
"""How many programs of a process may run at a time."""

_FIRST: Final = 1 << 20
"""Where the pids begin by which a plugin knows its programs."""

_NOT_STARTED: Final = 127 << 8
"""How a child ends whose exec fails."""

_SHELL: Final = ("/bin/sh", "sh")


@attrs.define(eq=False)
class Program:
    """One program: the thread that sees it through, and how it ended."""

    thread: PluginThread | None = None
    result: ScriptResult = attrs.field(factory=ScriptResult)

    @property
    def runs(self) -> bool:
        """Return whether it has yet to end."""
        return self.thread is not None and self.thread.alive


class Programs:
    """The programs of one process of a plugin, by the pid that the plugin knows."""

    def __init__(self) -> None:
        self._programs: dict[int, Program] = {}
        self._started = 0

    def answer(self, message: Reader) -> bytes:
        """Start a program, or say why not; return an error's number, and the pid.

        What is asked: whether any may be started, or that a child has left without becoming one, or
        what it becomes.
        """
        kind = chr(message.u8())
        process = CALLING.get(None)
        if kind == "?":
            return U32.pack(self._refusal(process, message.text() or ""))
        status, as_user, has_env = message.u32(), bool(message.u8()), bool(message.u8())
        words, variables = message.u32(), message.u32()
        program = Program()
        if kind == "x":
            program.result = ScriptResult(status=(status & 0xFF) << 8)
        else:
            folder, path = message.text() or "", message.text() or ""
            argv = tuple(message.text() or "" for _ in range(words))
            pairs = [message.text() or "" for _ in range(variables)]
            env = dict(each.partition("=")[::2] for each in pairs) if has_env else None
            body = partial(_run, program, path, argv[1:], env, folder, as_user)
            program.thread = start(body, path.rpartition("/")[2])
        self._started += 1
        self._programs[_FIRST + self._started] = program
        return U32.pack(0) + U32.pack(_FIRST + self._started)

    def _refusal(self, process: Process | None, what: str) -> int:
        """Return why a process may start no program now, or 0."""
        if process is None:
            return errno.EPERM
        if process.stepd is None and process.daemon != "slurmctld":
            told = (
                f"{what}() is refused: a plugin starts programs in slurmctld and slurmstepd alone, "
                "where simctl has simulated ones"
            )
            process.table.trace.complain(process, what, told)
            return errno.EPERM
        return errno.EAGAIN if sum(each.runs for each in self._programs.values()) >= _AT_MOST else 0

    def wait(self, message: Reader) -> bytes | Awaitable[bytes]:
        """Answer waitpid: an error's number, the pid, the wait status, and what it has written."""
        pid, at_once = message.u32(), message.u8()
        pid -= (1 << 32) if pid >> 31 else 0
        wanted = [pid] if pid > 0 else list(self._programs)
        known = [each for each in wanted if each in self._programs]
        if not known:
            return _ended(errno.ECHILD, 0, ScriptResult())
        over = next((each for each in known if not self._programs[each].runs), None)
        if over is not None:
            return _ended(0, over, self._programs.pop(over).result)
        if at_once:
            return _ended(0, 0, ScriptResult())
        return self._waited(known[0])

    async def _waited(self, pid: int) -> bytes:
        program = self._programs.pop(pid)
        assert program.thread is not None
        await program.thread.join()
        return _ended(0, pid, program.result)


def _ended(failure: int, pid: int, result: ScriptResult) -> bytes:
    return U32.pack(failure) + U32.pack(pid) + U32.pack(result.status) + text(result.output)


async def _run(
    program: Program,
    path: str,
    argv: tuple[str, ...],
    env: dict[str, str] | None,
    folder: str,
    as_user: bool,
) -> None:
    """Run a program where the plugin's process is, and note how it ended."""
    try:
        if path in _SHELL and len(argv) > 1 and argv[0] == "-c":
            program.result = await run_shell(argv[1], env=env)
        elif CALLING.get().stepd is not None:
            program.result = await stepd.run_script(
                path, *argv, as_user=as_user, cwd=folder, env=env
            )
        else:
            program.result = await slurmctld.run_script(path, *argv, env=env)
    except SlurmError:
        program.result = ScriptResult(status=_NOT_STARTED)
