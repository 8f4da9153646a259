"""For plugins that hand over to a site's script: its functions' calls, and lines of shell."""

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from msgspec import UNSET

from simctl.api.reach import LuaSettings, reach_of
from simctl.api.slurmctld import ScriptResult
from simctl.api.surroundings import caller
from simctl.kernel.threads import ENDED

_FOR_EVER_US: Final = 1 << 50
Body = Callable[[], Awaitable[int]]
"""What a child process does; it returns its wait status."""


def lua_settings() -> LuaSettings:
    """Return how Lua scripts are run in this cluster."""
    return reach_of(caller("lua_settings()")).lua


async def run_shell(
    command: str,
    *,
    given: str = "",
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - virtual time
    job_id: int = 0,
) -> ScriptResult:
    """Run a line of shell as a child of the calling process, as its user, and wait for its end.

    Args:
        command: What ``sh -c`` is given.
        given: What stands on its standard input.
        env: Its environment.
        timeout: After how many seconds it is killed.
        job_id: The job it is about, for the trace.
    """
    process = caller("run_shell()")
    done: ScriptResult = await reach_of(process).shell(
        process, command, given, env or {}, timeout, job_id
    )
    return done


async def run_child(
    name: str, body: Body, *, path: str, argv: tuple[str, ...] = (), job_id: int = 0
) -> int:
    """Run a function in a child of the calling process, and return its wait status.

    Inside, `process()` is the child. If the thread that waits is cancelled, the child is killed.

    Args:
        name: The name of the child's event in the trace, of kind `script`.
        body: What the child does.
        path: What it is said to execute.
        argv: What it is said to be given.
        job_id: The job it is about.
    """
    process = caller("run_child()")
    return await reach_of(process).child(process, name, body, path, argv, job_id)


class Traced:
    """A function of a script that the calling process runs itself: an event of kind `script`.

    ``with Traced("slurm_bb_pools", path=..., argv=...) as call:``, and inside `call.rc` is set to
    what came of it.
    """

    def __init__(
        self, name: str, *, path: str, argv: tuple[str, ...] = (), job_id: int = 0
    ) -> None:
        self.args: dict[str, Any] = {"path": path, "argv": list(argv)} if argv else {"path": path}
        self.rc: Any = UNSET
        self._job: Any = job_id or UNSET
        self._name = name
        self._process = caller("Traced")
        self._enter = self._started_us = 0

    def __enter__(self) -> Self:
        process = self._process
        table = process.table
        self._started_us = table.kernel.now_us
        self._enter = process.cause = table.trace.note(
            "script", self._name, process, phase="enter", args=self.args, job=self._job
        )
        return self

    async def struck(self) -> bool:
        """Return whether a fault lets the function fail; one that hangs has been waited for."""
        process = self._process
        fault = reach_of(process).fault(process, self._name)
        if fault is None:
            return False
        if not fault.hangs:
            return True
        hangs_us = _FOR_EVER_US if fault.hangs_us is None else fault.hangs_us
        await process.table.kernel.sleep_us(hangs_us)
        return False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, ENDED):
            return
        process = self._process
        table = process.table
        passed = table.kernel.now_us > self._started_us
        process.cause = table.trace.note(
            "script",
            self._name,
            process,
            phase="exit",
            args=self.args,
            job=self._job,
            rc=-1 if error is not None else self.rc,
            enter=self._enter,
            t0_us=self._started_us if passed else UNSET,
        )


def complain(function: str, problem: str) -> None:
    """Tell of what a script does wrong, in the trace and at the end of the run."""
    process = caller("complain()")
    process.table.trace.complain(process, function, problem)


def say(text: str) -> None:
    """Print a line on standard error of the command that runs a cli_filter plugin."""
    caller("say()").spoken.extend(text.splitlines())
