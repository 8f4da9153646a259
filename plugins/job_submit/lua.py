"""job_submit/lua: a site's job_submit.lua looks at submissions, and changes or refuses them.

One Lua state lives as long as slurmctld, or until the script is another: globals last from call to
call. A Lua error takes the job in, up to Slurm 25.11: what the script set before it stays.
"""

from typing import Any, ClassVar, Final

from simctl.plugin import (
    SLURM_ERROR,
    SLURM_SUCCESS,
    DraftJob,
    JobRecord,
    JobSubmitPlugin,
    SlurmError,
    complain,
    log,
    lua_settings,
    run_shell,
    slurmctld,
)
from simctl.plugins.job_submit.desc_fields import DescFields
from simctl.plugins.lua.constants import slurm_table
from simctl.plugins.lua.loading import LoadError, as_number, load
from simctl.plugins.lua.machine import Machine, daemon_env
from simctl.plugins.lua.state import LuaExit, LuaFailure, LuaState, Value, require_lua

SCRIPT: Final = "/etc/slurm/job_submit.lua"
REQUIRED: Final = ("slurm_job_submit", "slurm_job_modify")
_REFUSES_ON_ERROR: Final = "26.05"
_MOST_TOLD: Final = 1 << 20
"""How many characters one call may tell a user."""

_TELLS_ON_MODIFY: Final = "23.02"


class JobSubmitLua(JobSubmitPlugin):
    """Rule over submissions with the functions of a site's job_submit.lua."""

    plugin_type: ClassVar[str] = "job_submit/lua"
    plugin_name: ClassVar[str] = "job submit lua plugin"
    plugin_version: ClassVar[int] = 100

    def __init__(self) -> None:
        require_lua()
        self._state: LuaState | None = None
        self._text = ""
        self._told: list[str] = []
        self._told_size = 0
        self._snapshot = _Snapshot()

    async def init(self) -> int:
        """Load the script.

        Raises:
            SlurmError: It does not load.
        """
        try:
            await self._load()
        except (LuaFailure, LuaExit) as error:
            log.error(f"job_submit.lua does not load: {error}")
            raise SlurmError(SLURM_ERROR, str(error)) from error
        return SLURM_SUCCESS

    async def _load(self) -> LuaState:
        """Return a state with the script as it is now; one that does not load changes nothing."""
        settings = lua_settings()
        machine = Machine(
            epoch_s=settings.epoch_s,
            run_shell=_shell,
            env=daemon_env(settings.people, settings.slurm_ids[0]),
            ids=settings.slurm_ids,
            people=settings.people,
            told=self._tell,
        )
        text = machine.script(SCRIPT)
        if self._state is not None and text in (None, self._text):
            return self._state
        state = LuaState(
            machine,
            version=settings.version,
            slurm=slurm_table(settings.slurm, settings.cluster, settings.defects),
            order=settings.order,
            functions={"log_user": machine.user, "user_msg": machine.user},
        )
        try:
            await load(state, machine, SCRIPT, REQUIRED)
        except (LuaFailure, LuaExit) as error:
            if self._state is None:
                raise
            log.error("job_submit.lua does not load; the one before it stays", why=str(error))
            return self._state
        self._state, self._text = state, text or ""
        return state

    def _tell(self, text: str) -> None:
        """Keep a line for the user, up to a bound."""
        self._told_size += len(text) + 1
        if self._told_size <= _MOST_TOLD:
            self._told.append(text)

    async def job_submit(self, job_desc: DraftJob, submit_uid: int) -> int:
        """Have slurm_job_submit look at a submission."""
        return await self._rule("slurm_job_submit", job_desc, None, submit_uid)

    async def job_modify(self, job_desc: DraftJob, job: JobRecord, submit_uid: int) -> int:
        """Have slurm_job_modify look at a change of a job."""
        return await self._rule("slurm_job_modify", job_desc, job, submit_uid)

    async def _rule(
        self, function: str, job_desc: DraftJob, job: JobRecord | None, submit_uid: int
    ) -> int:
        state = await self._load()
        settings = lua_settings()
        self._told.clear()
        self._told_size = 0
        account = slurmctld.default_account(submit_uid)
        fields = DescFields(job_desc, settings.slurm, account, modifies=job is not None)
        arguments: list[Any] = [_record(state, fields)]
        if job is not None:
            arguments.append(state.record(slurmctld.job_fields(job.job_id).get))
        parts = slurmctld.partitions(submit_uid)
        arguments.append(
            state.value({name: state.record(part.get) for name, part in parts.items()})
        )
        self._fill_tables(state)
        why = ""
        try:
            rc = _code(await state.call(function, *arguments, float(submit_uid)))
        except LuaExit as gone:
            complain(function, f"os.exit({gone.code}) would end slurmctld")
            rc = SLURM_SUCCESS
        except LuaFailure as error:
            rc, why = SLURM_SUCCESS, error.text
            log.error(f"{SCRIPT}: {error.text}")
            if error.endless:
                complain(function, f"{error.text}; slurmctld would have hung")
            if settings.slurm >= _REFUSES_ON_ERROR:
                raise SlurmError(SLURM_ERROR, why) from error
        for name, value in fields.others.items():
            log.info(f"job_desc.{name} is set, which simctl does not simulate", value=value)
        if job is None or settings.slurm >= _TELLS_ON_MODIFY:
            for text in self._told:
                job_desc.tell(text)
        elif self._told:
            log.error("slurm.log_user in slurm_job_modify reaches nobody", told=self._told[0])
        return rc

    def _fill_tables(self, state: LuaState) -> None:
        """Let slurm.jobs and slurm.reservations be up to date, if the script looks at them."""
        if "jobs" in self._text and self._snapshot.is_old(state):
            jobs = {
                str(job.job_id): state.record(slurmctld.job_fields(job.job_id).get)
                for job in slurmctld.jobs()
            }
            state.set_global("slurm", "jobs", jobs)
        if "reservations" in self._text:
            resvs = slurmctld.reservations()
            state.set_global(
                "slurm",
                "reservations",
                {name: state.record(resv.get) for name, resv in resvs.items()},
            )


class _Snapshot:
    """How old slurm.jobs is: Slurm makes it anew where a job has changed in a later second.

    So the third submission within a second does not see the second one.
    """

    def __init__(self) -> None:
        self._state: LuaState | None = None
        self._seen_s = self._made_of_s = -1

    def is_old(self, state: LuaState) -> bool:
        """Return whether the table is to be made anew, at a call; the call then changes jobs."""
        before_s, self._seen_s = self._seen_s, slurmctld.time()
        if state is self._state and before_s == self._seen_s == self._made_of_s:
            return False
        self._state, self._made_of_s = state, before_s
        return True


def _record(state: LuaState, fields: DescFields) -> Any:
    def variable(name: Any) -> Any:
        if not fields.draft.script:
            log.info("job_desc->environment only accessible for batch jobs.")
            return None
        return fields.environment(name)

    def set_variable(name: Any, value: Value) -> str | None:
        if not fields.draft.script:
            log.info("job_desc->environment only accessible for batch jobs.")
            return None
        return fields.set_environment(name, value)

    environment = state.record(variable, set_variable)

    def get(name: Any) -> Any:
        if name == "environment":
            return environment
        if not fields.knows(name):
            log.debug(f"job_desc has no field {name}")
        return fields.get(name)

    def put(name: Any, value: Value) -> str | None:
        if not fields.writes(name):
            log.error(f"_set_job_field: unrecognized field: {name}")
            return None
        return fields.put(name, value)

    return state.record(get, put)


def _code(values: tuple[Value, ...]) -> int:
    number = as_number(values[0]) if values else None
    if number is None:
        log.error("slurm_job_submit/lua: non-numeric return code")
        return SLURM_SUCCESS
    return number


async def _shell(command: str, given: str) -> tuple[int, str]:
    done = await run_shell(command, given=given)
    return done.status, done.output


__all__ = ["JobSubmitLua", "LoadError"]
