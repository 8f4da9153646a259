"""Calls of the script's functions: what each is handed, where it runs, and what came of it.

Every call has a Lua state of its own: the script is read anew, and nothing outlives the call. Those
of `in_child` run as a child of slurmscriptd does, which has a limit and may be killed; those of
`in_slurmctld` keep slurmctld from all else.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from simctl.plugin import (
    JobRecord,
    Traced,
    complain,
    log,
    lua_settings,
    now,
    run_child,
    run_shell,
    sleep,
)
from simctl.plugins.burst_buffer.lua.job_info import job_info, job_text
from simctl.plugins.lua.constants import slurm_table
from simctl.plugins.lua.loading import LoadError, as_number, load
from simctl.plugins.lua.machine import Machine, TimeUpError, daemon_env
from simctl.plugins.lua.state import LuaExit, LuaFailure, LuaOther, LuaState, Value, number_text

FUNCTIONS: Final = (
    "job_process",
    "pools",
    "job_teardown",
    "setup",
    "data_in",
    "real_size",
    "paths",
    "pre_run",
    "post_run",
    "data_out",
    "get_status",
)
POLLS: Final = ("test_data_in", "test_data_out")
BUSY: Final = "BUSY"
SCRIPT: Final = "/etc/slurm/burst_buffer.lua"
_GRACE_S: Final = 0.01
_TERMINATED: Final = 15
_KILLED: Final = 9
_FAILED: Final = 255 << 8


@attrs.frozen(kw_only=True)
class Reply:
    """How a call ended; `message` is None where the script gave no text."""

    ok: bool
    message: str | None = None
    killed: bool = False
    hangs: bool = False
    """It would never have ended, and nothing would have ended it."""

    @property
    def text(self) -> str:
        """Return the text as Slurm prints it."""
        return "(null)" if self.message is None else self.message


def required(slurm: str) -> tuple[str, ...]:
    """Return the functions that a script of a version has to have."""
    names = (*FUNCTIONS, *POLLS) if slurm >= "24.05" else FUNCTIONS
    return tuple(f"slurm_bb_{name}" for name in names)


class Calls:
    """Calls functions of the script on slurmctld's host."""

    async def in_slurmctld(
        self, function: str, *arguments: object, job: JobRecord | None = None
    ) -> Reply:
        """Call a function in slurmctld itself: nothing limits it."""
        given, info = _handed(function, arguments, job)
        job_id = job.job_id if job is not None else 0
        with Traced(f"slurm_bb_{function}", path=SCRIPT, argv=given, job_id=job_id) as traced:
            if await traced.struck():
                reply = Reply(ok=False)
            else:
                reply = await _Call(function, job_id).run(given, info)
            traced.rc = 0 if reply.ok else -1
        return reply

    async def in_child(
        self,
        function: str,
        *arguments: object,
        job: JobRecord | None,
        limit_s: float,
        job_id: int = 0,
    ) -> Reply:
        """Call a function in a child of slurmscriptd, which is killed after *limit_s* seconds."""
        newer = lua_settings().slurm >= "23.02"
        if job is None and newer and function not in ("job_teardown", "get_status"):
            return Reply(ok=False, message=f"Unable to find job record for JobId={job_id}")
        given, info = _handed(function, arguments, job)
        told: list[Reply] = []

        async def child() -> int:
            reply = await _Call(function, job_id, limit_s=limit_s, child=True).run(given, info)
            told.append(reply)
            return _KILLED if reply.killed else 0 if reply.ok else _FAILED

        status = await run_child(
            f"slurm_bb_{function}", child, path=SCRIPT, argv=given, job_id=job_id
        )
        return told[0] if told else Reply(ok=not status)

    async def check(self) -> str:
        """Return why the script cannot be loaded, or nothing."""
        try:
            await _Call("check", 0).state()
        except (LuaFailure, LuaExit) as error:
            return str(error)
        return ""


def _handed(
    function: str, arguments: tuple[object, ...], job: JobRecord | None
) -> tuple[tuple[str, ...], Mapping[str, Any] | None]:
    """Return what a function is handed: texts all, and from 23.02 on what is known of the job."""
    given = tuple(map(_text, arguments))
    newer = lua_settings().slurm >= "23.02"
    if not newer or job is None or function in ("job_teardown", "get_status"):
        return given, None
    if function != "setup":
        given += (str(job.user_id), str(job.group_id))
    return given, job_info(job)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class _Call:
    """One call, from the state that is made for it to what it returned."""

    def __init__(
        self, function: str, job_id: int, *, limit_s: float = 0, child: bool = False
    ) -> None:
        self._function = function
        self._job_id = job_id
        self._child = child
        self._limit_s = limit_s
        self._cut = False
        self._info: Mapping[str, Any] | None = None
        self._settings = settings = lua_settings()
        self._machine = Machine(
            epoch_s=settings.epoch_s,
            run_shell=self._shell,
            comm="slurmscriptd" if child else "slurmctld",
            env=daemon_env(settings.people, settings.slurm_ids[0]),
            ids=settings.slurm_ids,
            people=settings.people,
            deadline=now() + limit_s if limit_s else None,
        )

    async def state(self) -> LuaState:
        """Return a state with the script loaded.

        Raises:
            LuaFailure: The script is not there, or does not load.
            LuaExit: It ends its process.
        """
        settings = self._settings
        functions = {}
        table: dict[str, Any] = slurm_table(settings.slurm, settings.cluster, settings.defects)
        if settings.slurm >= "24.05":
            table["SLURM_BB_BUSY"] = BUSY
        if "23.02" <= settings.slurm < "25.05":
            functions["job_info_to_string"] = self._shown
        state = LuaState(
            self._machine,
            version=settings.version,
            slurm=table,
            order=settings.order,
            functions=functions,
        )
        await load(state, self._machine, SCRIPT, required(settings.slurm))
        return state

    def _shown(self, _info: object) -> tuple[int, str]:
        return (0, job_text(self._info)) if self._info is not None else (-1, "")

    async def run(self, given: tuple[str, ...], info: Mapping[str, Any] | None) -> Reply:
        """Call the function, and judge what came of it."""
        self._info = info
        try:
            state = await self.state()
            more = (state.record(info.get),) if info is not None else ()
            values = await state.call(f"slurm_bb_{self._function}", *given, *more)
        except TimeUpError:
            return self._late()
        except LuaExit as gone:
            if not self._child:
                function = f"slurm_bb_{self._function}"
                complain(function, f"os.exit({gone.code}) would end slurmctld")
            return self._ended(gone.code & 0xFF, None)
        except LuaFailure as error:
            return await self._failed(error)
        return self._judged(state.version, values)

    async def _failed(self, error: LuaFailure) -> Reply:
        function = f"slurm_bb_{self._function}"
        if error.endless:
            log.error(f"{function}: it would never have ended", at=error.text)
            complain(function, f"{error.text}; the call was ended")
            if self._limit_s:
                assert self._machine.deadline is not None
                await sleep(max(0.0, self._machine.deadline - now()))
                return self._late()
            return Reply(ok=False, hangs=True)
        log.error(f"{SCRIPT}: {error.text}")
        loads = self._settings.slurm >= "25.05" and isinstance(error, LoadError)
        return Reply(ok=False, message=error.text if loads else None)

    def _late(self) -> Reply:
        text = f"Timeout @ {round(self._limit_s * 1000)} msec"
        return Reply(ok=False, message=text, killed=True)

    def _judged(self, version: str, values: tuple[Value, ...]) -> Reply:
        """Return what a function's values mean."""
        if not values:
            return self._ended(0, None)
        message = None
        status = as_number(values[0])
        if status is None:
            log.error(f"slurm_bb_{self._function}: non-numeric return code")
            status = -1
        if len(values) > 1:
            second = values[1]
            if isinstance(second, str):
                message = second
            elif isinstance(second, int | float) and not isinstance(second, bool):
                message = number_text(second, version)
            else:
                kind = second.kind if isinstance(second, LuaOther) else type(second).__name__
                log.error(f"slurm_bb_{self._function}: second return value is no text", is_a=kind)
                status = -1
        if self._child and status and not status & 0xFF:
            function = f"slurm_bb_{self._function}"
            if "status_256" not in self._settings.defects:
                return self._ended(status, message)
            log.info(f"{function} returns {status}, of which a child's status keeps 0")
        return self._ended(status & 0xFF if self._child else status, message)

    def _ended(self, status: int, message: str | None) -> Reply:
        if self._cut:
            # Its time was up, and it came to an end before it was killed.
            log.error(f"slurm_bb_{self._function}: time-out", limit_s=self._limit_s, status=status)
            if not status and "timeout_success" in self._settings.defects:
                return Reply(ok=True, message=message)
            return self._late()
        return Reply(ok=not status, message=message)

    async def _shell(self, command: str, given: str) -> tuple[int, str]:
        """Run a line of shell; one that is cut short by the limit leaves a moment to go on."""
        machine = self._machine
        left = None if machine.deadline is None else machine.deadline - now()
        if left is not None and left <= 0:
            raise TimeUpError
        done = await run_shell(
            command, given=given, env=machine.env, timeout=left, job_id=self._job_id
        )
        if done.timed_out:
            if self._cut:
                raise TimeUpError
            self._cut = True
            machine.deadline = now() + _GRACE_S
            return _TERMINATED, done.output
        return done.status, done.output
