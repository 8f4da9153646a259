"""burst_buffer/lua: what slurmctld asks of it, from a job's submission to its end."""

import json
from typing import Any, ClassVar, Final, NoReturn

from simctl.plugin import (
    NO_VAL,
    SLURM_ERROR,
    SLURM_SUCCESS,
    Buf,
    BurstBufferAlloc,
    BurstBufferInfo,
    BurstBufferPlugin,
    BurstBufferPool,
    BurstBufferUse,
    JobDesc,
    JobRecord,
    Recurring,
    SlurmError,
    errno,
    every,
    log,
    lua_settings,
    slurmctld,
)
from simctl.plugins.burst_buffer.lua import directives, files, recover
from simctl.plugins.burst_buffer.lua.books import BbJob, Books
from simctl.plugins.burst_buffer.lua.calls import Calls
from simctl.plugins.burst_buffer.lua.settings import Settings, read_settings
from simctl.plugins.burst_buffer.lua.stages import OPERATION, Stages, base
from simctl.plugins.burst_buffer.records import BbState, Fit, Pool, shown
from simctl.plugins.burst_buffer.sizes import megabytes, parse_size
from simctl.plugins.burst_buffer.tasks import as_task
from simctl.plugins.lua.state import require_lua

_NAME: Final = "lua"
_AGENT_S: Final = 30
_ASIDE_S: Final = 0.5
"""How far the agent's turns are from those of slurmctld, which come on whole seconds."""

_YEAR_S: Final = 365 * 86_400
_SENT_BACK_S: Final = 120
"""How long a job waits at least that was sent back into the queue."""

_DONE, _UNDER_WAY, _NOT = 1, 0, -1
_BYTES: Final = (1 << 64) - 1


class BurstBufferLua(BurstBufferPlugin):
    """Stage data for jobs with the functions of a site's burst_buffer.lua."""

    plugin_type: ClassVar[str] = f"burst_buffer/{_NAME}"
    plugin_name: ClassVar[str] = "burst buffer lua plugin"
    plugin_version: ClassVar[int] = 100

    def __init__(self) -> None:
        require_lua()
        self._settings = Settings()
        self._books = Books()
        self._calls = Calls()
        self._stages = Stages(self._books, self._calls, self.plugin_type)
        self._agent: Recurring | None = None
        self._hangs = False
        """Whether slurm_bb_pools never came back: the agent's thread stays in it."""

    async def init(self) -> int:
        """Read burst_buffer.conf; from Slurm 24.05 on the script has to load.

        Raises:
            SlurmError: It does not.
        """
        self._configure()
        if lua_settings().slurm >= "24.05":
            why = await self._calls.check()
            if why:
                log.error(f"burst_buffer.lua does not load: {why}")
                raise SlurmError(SLURM_ERROR, why)
        return SLURM_SUCCESS

    def fini(self) -> None:
        """End all threads, with the calls they wait for, and save the state."""
        if self._agent is not None:
            self._agent.cancel()
        self._stages.stop()
        files.save(self._books)

    def _configure(self) -> None:
        self._settings, strange = read_settings(slurmctld.burst_buffer_conf(_NAME))
        self._stages.settings = self._settings
        for key in strange:
            log.error(f"{key} is not supported by {self.plugin_type}, and is left out")

    # The state as a whole.

    async def bb_p_load_state(self, init_config: bool) -> int:
        """Learn the pools as slurmctld starts, and go on with buffers from before."""
        if not init_config or self._agent is not None:
            return SLURM_SUCCESS
        return await self._begin_anew()

    async def _begin_anew(self) -> int:
        """Ask for pools as slurmctld starts, and go on with what was under way when it ended."""
        good = await self._ask_pools()
        recover.recover(self._books, self._stages, self._known)
        self._agent = every(
            _AGENT_S, self._poll, "agent of burst_buffer/lua", first=_AGENT_S + _ASIDE_S
        )
        return SLURM_SUCCESS if good else SLURM_ERROR

    async def _poll(self) -> None:
        """Ask for the pools, and save the state."""
        before, was_loaded = dict(self._books.pools), self._books.loaded
        pools = await self._told_pools()
        if pools is not None and (not was_loaded or pools != list(before.values())):
            async with slurmctld.locked():
                self._books.learn(pools)
                self._books.loaded = True
                slurmctld.schedule()
        files.save(self._books)

    async def _ask_pools(self) -> bool:
        pools = await self._told_pools()
        if pools is None:
            return False
        self._books.learn(pools)
        self._books.loaded = True
        return True

    async def _told_pools(self) -> list[Pool] | None:
        """Return the pools that the script tells of; None if it fails, or tells what is none."""
        if self._hangs:
            return None
        reply = await self._calls.in_slurmctld("pools")
        self._hangs = reply.hangs
        if not reply.ok:
            log.error("slurm_bb_pools failed", message=reply.text)
            return None
        if not reply.message:
            return []
        try:
            return _read_pools(json.loads(reply.message))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.error("slurm_bb_pools returned no pools", told=reply.message, error=str(error))
            return None

    def bb_p_reconfig(self) -> int:
        """Read burst_buffer.conf again; pools are empty until the script is asked next."""
        self._configure()
        if "empty_pools" in lua_settings().defects:
            self._books.forget_sizes()
        return SLURM_SUCCESS

    def bb_p_get_system_size(self, name: str | None) -> int:
        """Return the MB of all pools."""
        return megabytes(sum(pool.total for pool in self._books.pools.values()))

    def bb_p_state_pack(self, uid: int, buffer: Buf, protocol_version: int) -> int:
        """Tell of pools and buffers; with PrivateData, people see their own alone."""
        everything = not self._settings.private or slurmctld.is_operator(uid)
        self._info(None if everything else uid).pack(buffer)
        return SLURM_SUCCESS

    def _info(self, uid: int | None) -> BurstBufferInfo:
        settings, books = self._settings, self._books
        charged = [each for each in books.jobs.values() if each.charged]
        mine = [each for each in reversed(charged) if uid in (None, each.user_id)]
        uses: dict[int, int] = {}
        for each in mine:
            if each.size:
                uses[each.user_id] = uses.get(each.user_id, 0) + each.size
        return BurstBufferInfo(
            name=_NAME,
            flags=("DisablePersistent", *settings.flags),
            get_sys_state="(null)",
            get_sys_status="(null)",
            allow_users=settings.allow_users,
            deny_users=settings.deny_users,
            stage_in_timeout=settings.stage_in_timeout,
            stage_out_timeout=settings.stage_out_timeout,
            validate_timeout=settings.validate_timeout,
            other_timeout=settings.other_timeout,
            pools=tuple(_shown_pool(pool, books.used(pool.name)) for pool in books.pools.values()),
            allocs=tuple(_shown_alloc(each) for each in mine),
            uses=tuple(BurstBufferUse(user_id=user, used=used) for user, used in uses.items()),
        )

    # A job comes in.

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> int:
        """Read the directives of a submission; the job keeps the lines.

        Raises:
            SlurmError: They cannot be met, or the user may not have burst buffers.
        """
        option = job_desc.burst_buffer
        if job_desc.script:
            script = directives.with_option(job_desc.script, option)
            lines = directives.lines_of(script, self._settings.directive)
        else:
            lines = directives.lines_of(option, self._settings.directive)
            if option and not lines:
                self._invalid(option)
        if not lines:
            if option:
                _enter(job_desc, "")
            return SLURM_SUCCESS
        try:
            pools = self._books.pools if self._books.loaded else None
            request = directives.read_request(lines, pools)
        except directives.InvalidError as error:
            log.info("invalid burst buffer", why=str(error))
            self._invalid("\n".join(lines))
        if submit_uid == 0:
            text = "User root can not allocate burst buffers"
            raise SlurmError(errno.ESLURM_BURST_BUFFER_PERMISSION, text)
        if not self._settings.welcome(slurmctld.user_name(submit_uid)):
            raise SlurmError(errno.ESLURM_BURST_BUFFER_PERMISSION)
        if job_desc.min_nodes == 0:
            self._invalid()
        _enter(job_desc, request.text)
        return SLURM_SUCCESS

    @staticmethod
    def _invalid(request: str = "") -> NoReturn:
        """Refuse a request; from Slurm 25.05 on with its text, or what a defect prints for it."""
        text, settings = "", lua_settings()
        if request and settings.slurm >= "25.05":
            shown = "(null)" if "missing_argument" in settings.defects else request
            text = f"Invalid burst buffer spec ({shown})"
        raise SlurmError(errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, text)

    async def bb_p_job_validate2(self, job_ptr: JobRecord) -> int:
        """Have the script look at the job's.

        Raises:
            SlurmError: It does not like it; its words are the message.
        """
        bb = self._known(job_ptr)
        if bb is None or not self._books.loaded:
            return SLURM_SUCCESS
        try:
            path = files.write(job_ptr.job_id, "script", files.script_of(job_ptr))
        except OSError as error:
            raise SlurmError(errno.ESLURM_WRITING_TO_FILE, str(error)) from error
        if job_ptr.array_job_id:
            # A task that is split off: its array's script is looked at once more.
            path = files.path_of(job_ptr.array_job_id, "script")
        reply = await self._calls.in_slurmctld("job_process", path, job=job_ptr)
        if not reply.ok:
            self._books.jobs.pop(job_ptr.job_id, None)
            files.remove(job_ptr.job_id)
            text = f"{self.plugin_type}: {reply.message}" if reply.message is not None else ""
            raise SlurmError(errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, text)
        self._stages.set_state(bb, BbState.PENDING)
        return SLURM_SUCCESS

    def _known(self, job: JobRecord) -> BbJob | None:
        """Return what a job wants, entering it if it is new; None for nothing."""
        bb = self._books.jobs.get(job.job_id)
        if bb is not None:
            return bb
        lines = directives.lines_of(job.burst_buffer, self._settings.directive)
        if not lines:
            return None
        try:
            request = directives.read_request(lines, self._books.pools or None)
        except directives.InvalidError:
            request = directives.Request(lines=lines)
        bb = BbJob(
            job_id=job.job_id,
            user_id=job.user_id,
            group_id=job.group_id,
            request=request,
            size=request.size,
        )
        self._books.jobs[job.job_id] = bb
        return bb

    def bb_p_job_set_tres_cnt(
        self, job_ptr: JobRecord, tres_cnt: dict[str, int], locked: bool
    ) -> None:
        """Enter the MB that a job takes."""
        bb = self._known(job_ptr)
        if bb is not None and bb.size:
            tres_cnt[f"bb/{_NAME}"] = tres_cnt.get(f"bb/{_NAME}", 0) + megabytes(bb.size)

    def bb_p_xlate_bb_2_tres_str(self, burst_buffer: str) -> str | None:
        """Return the TRES text of ``lua:2G``."""
        total, tres = 0, slurmctld.tres_id(f"bb/{_NAME}")
        for word in burst_buffer.split(","):
            name, colon, size = word.strip().partition(":")
            if colon and name == _NAME:
                try:
                    total += parse_size(size)
                except (ValueError, OverflowError) as error:
                    log.error("no size of a burst buffer", asked=word, error=str(error))
        return f"{tres}={megabytes(total)}" if total and tres else None

    # A job waits.

    def bb_p_job_get_est_start(self, job_ptr: JobRecord) -> int:
        """Return when the job could start, as far as its buffer tells."""
        bb, now_s = self._known(job_ptr), slurmctld.time()
        if bb is None:
            return now_s
        if not self._books.loaded:
            return now_s + 3600
        if bb.state >= BbState.STAGING_IN:
            return now_s + 1
        fit = self._books.fit(bb)
        if fit is Fit.NEVER:
            return now_s + _YEAR_S
        return now_s if fit is Fit.NOW else self._next_end(now_s)

    def _next_end(self, now_s: int) -> int:
        """Return when space may come back: the first end of a job that runs with a buffer."""
        charged = [each for each in self._books.jobs.values() if each.charged]
        jobs = [slurmctld.find_job(each.job_id) for each in charged]
        ends = [job.end_time for job in jobs if job is not None and job.job_state == "RUNNING"]
        return min((end for end in ends if end > now_s), default=now_s + 3600)

    def bb_p_job_try_stage_in(self) -> int:
        """Start the stage-in of who is to start soonest, as far as there is space."""
        if self._books.loaded:
            for job in slurmctld.candidates():
                bb = self._known(job)
                if bb is not None:
                    self._try(bb)
        return SLURM_SUCCESS

    def _try(self, bb: BbJob) -> bool:
        """Start a job's stage-in if it waits for that and there is space; return whether it did."""
        if bb.state is BbState.COMPLETE and not bb.teardowns:
            # It went back into the queue, and its old buffer is gone.
            self._afresh(bb)
        if bb.stuck:
            return False
        waits = bb.state is BbState.PENDING and not bb.teardowns
        if not waits or self._stages.full("stage_in") or self._books.fit(bb) is not Fit.NOW:
            return False
        self._stages.stage_in(bb)
        return True

    def _afresh(self, bb: BbJob) -> None:
        bb.size = bb.request.size
        self._stages.set_state(bb, BbState.PENDING)

    def bb_p_job_test_stage_in(self, job_ptr: JobRecord, test_only: bool) -> int:
        """Tell how far a job's stage-in is; without *test_only*, start it where there is space."""
        bb = self._known(job_ptr)
        if bb is None:
            return _DONE
        if not self._books.loaded or job_ptr.array_master:
            return _NOT
        if bb.state is BbState.STAGING_IN:
            return _UNDER_WAY
        if bb.state is BbState.STAGED_IN:
            return _DONE
        if bb.stuck and job_ptr.begin_time < bb.stuck + _SENT_BACK_S:
            # Not the begin time that it was sent back with: a user has given it another.
            bb.stuck = 0
        if not test_only and job_ptr.priority:
            self._try(bb)
        return _NOT

    # A job starts.

    async def bb_p_job_begin(self, job_ptr: JobRecord) -> int:
        """Learn the job's variables of `paths`, and have pre_run called.

        Raises:
            SlurmError: That fails, or there is no buffer.
        """
        if self._agent is None:
            # A job that was about to start when slurmctld ended is begun before all is loaded.
            await self._begin_anew()
        bb = self._known(job_ptr)
        if bb is None:
            return SLURM_SUCCESS
        if not self._books.loaded or bb.state not in (BbState.STAGED_IN, BbState.PRE_RUN):
            job_ptr.state_reason = OPERATION
            job_ptr.state_desc = f"{self.plugin_type}: job_begin: no buffer is staged in"
            return SLURM_ERROR
        self._stages.set_state(bb, BbState.PRE_RUN)
        invalid = errno.ESLURM_INVALID_BURST_BUFFER_REQUEST
        try:
            path = files.write(job_ptr.job_id, "path", "")
            script = files.path_of(job_ptr.job_id, "script")
            reply = await self._calls.in_slurmctld(
                "paths", job_ptr.job_id, script, path, job=job_ptr
            )
            if not reply.ok:
                bb.failed = True
                raise SlurmError(invalid, f"{self.plugin_type}: paths: {reply.text}")
            job_ptr.env_sup.update(files.variables(job_ptr.job_id))
        except OSError as error:
            bb.failed = True
            raise SlurmError(invalid, f"{self.plugin_type}: paths: {error}") from error
        self._stages.pre_run(bb, job_ptr)
        return SLURM_SUCCESS

    def bb_p_job_revoke_alloc(self, job_ptr: JobRecord) -> int:
        """Let the job's buffer be as it was before begin, for it cannot start after all."""
        bb = self._known(job_ptr)
        if bb is not None and bb.state in (BbState.RUNNING, BbState.PRE_RUN):
            self._stages.kill(bb)
            self._stages.set_state(bb, BbState.STAGED_IN)
        return SLURM_SUCCESS

    # A job ends.

    def bb_p_job_start_stage_out(self, job_ptr: JobRecord) -> int:
        """Start the stage-out of a job that has run; one that never ran has nothing to keep."""
        bb = self._known(job_ptr)
        if bb is None or bb.state >= BbState.POST_RUN:
            return SLURM_SUCCESS
        if not self._books.loaded:
            return SLURM_ERROR
        if bb.state < BbState.RUNNING:
            self._end(bb)
        else:
            self._stages.stage_out(bb)
        return SLURM_SUCCESS

    def bb_p_job_test_post_run(self, job_ptr: JobRecord) -> int:
        """Tell how far post_run is."""
        bb = self._known(job_ptr)
        if bb is None or not self._books.loaded:
            return _NOT if bb is not None else _DONE
        return (bb.state > BbState.POST_RUN) - (bb.state < BbState.POST_RUN)

    def bb_p_job_test_stage_out(self, job_ptr: JobRecord) -> int:
        """Tell how far stage-out is; `afterburstbuffer` waits for the teardown too."""
        bb = self._books.jobs.get(job_ptr.job_id)
        if bb is None or bb.state is BbState.PENDING:
            return _DONE
        if bb.state is BbState.COMPLETE and not bb.teardowns:
            if base(job_ptr) not in ("PENDING", "RUNNING", "SUSPENDED"):
                self._books.jobs.pop(job_ptr.job_id, None)
            return _DONE
        # One that has failed stays for ever: nothing is under way.
        return _NOT if bb.state < BbState.POST_RUN or bb.failed else _UNDER_WAY

    def bb_p_job_cancel(self, job_ptr: JobRecord) -> int:
        """Take a job's buffer down without staging anything out."""
        bb = self._known(job_ptr)
        if bb is not None:
            self._end(bb)
        return SLURM_SUCCESS

    def _end(self, bb: BbJob) -> None:
        if bb.state is BbState.PENDING:
            self._stages.set_state(bb, BbState.COMPLETE)
        elif bb.failed and bb.state is BbState.STAGING_IN and _leaks():
            # slurmctld kills what runs for the job, and its teardown has just been started.
            log.error("teardown terminated by slurmctld", job=bb.job_id)
            self._stages.set_state(bb, BbState.TEARDOWN)
        elif bb.state is not BbState.COMPLETE:
            self._stages.kill(bb)
            self._stages.tear_down(bb, hurry=True)

    # Besides.

    async def bb_p_get_status(self, argv: tuple[str, ...], uid: int, gid: int) -> str:
        """Return what the script says to ``scontrol show bbstat``."""
        arguments: list[object] = list(argv)
        if lua_settings().slurm >= "23.02":
            arguments = [uid, gid, *argv]
        reply = await self._calls.in_child(
            "get_status", *arguments, job=None, limit_s=self._settings.other_timeout
        )
        return f"{reply.message or ''}\n" if reply.ok else "Error running slurm_bb_get_status\n"


def _leaks() -> bool:
    return "leak_race" in lua_settings().defects


def _enter(job_desc: JobDesc, text: str) -> None:
    """Enter what was read of a request; slurmctld hands a copy of its own."""
    job_desc.burst_buffer = text  # type: ignore[misc] # it takes this one attribute


def _read_pools(found: Any) -> list[Pool]:
    return [
        Pool(
            name=str(each["id"]),
            total=int(each.get("quantity", 0)) * max(1, int(each.get("granularity", 1))),
            granularity=max(1, int(each.get("granularity", 1))),
        )
        for each in found["pools"]
    ]


def _shown_pool(pool: Pool, used: int) -> BurstBufferPool:
    return BurstBufferPool(
        name=pool.name,
        total_space=pool.total & _BYTES,
        unfree_space=used,
        used_space=used,
        granularity=pool.granularity,
    )


def _shown_alloc(bb: BbJob) -> BurstBufferAlloc:
    return as_task(
        BurstBufferAlloc(
            job_id=bb.job_id,
            array_task_id=NO_VAL,
            create_time=bb.create_time,
            pool=bb.request.pool,
            size=bb.size,
            state=shown(BbState.ALLOCATED),
            user_id=bb.user_id,
        )
    )
