"""burst_buffer/generic: space that a site's own scripts fill and empty, as in Slurm 15.08.

Nobody waits for the scripts that stage: how far they are is what GetSysState says, which is asked
before scheduler passes, when a job's buffer matters, and every 30 seconds while one is on its way.
"""

from typing import ClassVar, Final

from simctl.plugin import (
    NO_VAL,
    SLURM_ERROR,
    SLURM_SUCCESS,
    Buf,
    BurstBufferAlloc,
    BurstBufferInfo,
    BurstBufferPlugin,
    BurstBufferUse,
    JobDesc,
    JobRecord,
    PluginThread,
    SlurmError,
    errno,
    log,
    sleep,
    slurmctld,
    start,
)
from simctl.plugins.burst_buffer.generic_request import comments, request_text, requested
from simctl.plugins.burst_buffer.generic_settings import Settings, read_settings
from simctl.plugins.burst_buffer.generic_state import Listed, Listing, read_listing
from simctl.plugins.burst_buffer.space import (
    MEGABYTE,
    Alloc,
    BbState,
    Books,
    Fit,
    to_give_way,
)
from simctl.plugins.burst_buffer.tasks import as_task

TRES: Final = "bb/generic"
STAGE_IN_TIMEOUT: Final = "Burst buffer stage-in timeout"

_AGENT_S: Final = 30
_ANSWER_S: Final = 2.0
"""How long GetSysState may take."""

_AFTER_STOP_S: Final = 300
"""For how long the agent looks after a buffer whose staging was stopped."""

_YEAR_S: Final = 365 * 24 * 3600


class BurstBufferGeneric(BurstBufferPlugin):
    """Give jobs space of a burst buffer that scripts manage.

    What a buffer is and how large it is stands in the books of slurmctld's process alone; after a
    restart they are written anew from what GetSysState tells.
    """

    plugin_type: ClassVar[str] = "burst_buffer/generic"
    plugin_name: ClassVar[str] = "burst buffer generic plugin"

    def __init__(self) -> None:
        self._settings = Settings()
        self._books = Books()
        self._agent: PluginThread | None = None

    def init(self) -> None:
        """Read burst_buffer.conf.

        Raises:
            SlurmError: EINVAL: it lacks one of the scripts.
        """
        self._settings = read_settings(slurmctld.burst_buffer_conf("generic"))

    def bb_p_reconfig(self) -> None:
        """Read burst_buffer.conf again; one that cannot be taken changes nothing.

        Raises:
            SlurmError: As `init`.
        """
        self._settings = read_settings(slurmctld.burst_buffer_conf("generic"))

    # The state of the store.

    async def bb_p_load_state(self, init_config: bool) -> int:
        """Ask the store what there is; as slurmctld starts, also how large it is."""
        if not await self._load("get_sys"):
            return SLURM_ERROR
        if init_config:
            log.info("burst buffer loaded", total=self._books.total, used=self._books.used)
        return SLURM_SUCCESS

    async def _load(self, *question: str, job_id: int = 0) -> bool:
        """Run GetSysState and take in what it says; tell whether it said anything."""
        path = self._settings.get_sys_state
        result = await slurmctld.run_script(
            path, *question, name="get_sys", job_id=job_id, timeout=_ANSWER_S
        )
        if not result.ok:
            said = (result.error or result.output).strip()
            why = "no answer in time" if result.timed_out else f"status {result.status}"
            log.error(f"{path} {question[0]}: {why}", said=said)
            return False
        listing = read_listing(result.output, self._settings.granularity)
        for line in listing.unread:
            log.error("GetSysState wrote what means nothing", line=line)
        self._take(listing, whole=not job_id, job_id=job_id)
        self._time_out()
        self._watch()
        return True

    def _take(self, listing: Listing, *, whole: bool, job_id: int) -> None:
        """Enter an answer of the store into the books; one about all buffers lists all there are."""
        books = self._books
        used = books.used
        if listing.total is not None:
            books.total = listing.total
        for listed in listing.buffers:
            self._note(listed)
        there = {listed.key for listed in listing.buffers}
        for alloc in list(books.allocs.values()):
            if alloc.key not in there and (whole or (listing.gone and alloc.job_id == job_id)):
                self._vanished(alloc)
            if alloc.state == BbState.STAGED_OUT and slurmctld.find_job(alloc.job_id) is None:
                books.remove(alloc)
        if books.used < used:
            slurmctld.schedule()

    def _note(self, listed: Listed) -> None:
        """Enter what the store says of one buffer."""
        alloc = self._books.allocs.get(listed.key)
        if alloc is None:
            self._found(listed)
        elif not alloc.job_id:
            alloc.size = listed.size
            if alloc.state != listed.state:
                slurmctld.note_buffer(alloc.name, alloc.state.shown, listed.state.shown)
                self._enter(alloc, listed.state)
        elif alloc.state == BbState.STAGED_OUT:
            if listed.state == BbState.STAGED_OUT:
                alloc.size = 0
        elif alloc.state == BbState.STAGING_OUT:
            alloc.seen = True
            if listed.state == BbState.STAGED_OUT:
                self._staged_out(alloc)
        elif listed.state != BbState.STAGED_OUT:
            alloc.seen = True
            if alloc.state == BbState.STAGING_IN and listed.state >= BbState.STAGED_IN:
                alloc.stopped_s = 0
                self._enter(alloc, BbState.STAGED_IN)
                slurmctld.schedule()

    def _found(self, listed: Listed) -> None:
        """Take in a buffer that the books lack: after a restart, or made by somebody else."""
        job = slurmctld.find_job(listed.job_id) if listed.job_id else None
        state = listed.state
        if listed.job_id and state == BbState.STAGED_OUT:
            return
        if job is not None and BbState.STAGED_IN <= state < BbState.STAGING_OUT:
            running = not job.job_state.startswith("PENDING")
            state = BbState.RUNNING if running else BbState.STAGED_IN
        now_s = slurmctld.time()
        uid = slurmctld.uid_of(listed.user)
        alloc = self._books.add(
            Alloc(
                job_id=listed.job_id,
                name=listed.name,
                user_id=NO_VAL if uid is None else uid,
                size=listed.size,
                create_s=now_s,
                account="" if job is None else job.account,
                partition="" if job is None else job.partition,
                seen=True,
            )
        )
        if not listed.job_id:
            slurmctld.note_buffer(listed.name, None, state.shown)
        self._enter(alloc, BbState.STAGING_IN if state == BbState.ALLOCATED and job else state)
        if alloc.state == BbState.STAGED_IN:
            slurmctld.schedule()

    def _vanished(self, alloc: Alloc) -> None:
        """Note that the store does not have a buffer, or not any more."""
        if not alloc.job_id:
            slurmctld.note_buffer(alloc.name, alloc.state.shown, "deleted")
            self._books.remove(alloc)
        elif alloc.state == BbState.STAGED_OUT:
            alloc.size = 0
        elif not alloc.seen:
            # A script that has only just been started may not have come so far.
            return
        elif alloc.state == BbState.STAGING_OUT:
            self._staged_out(alloc)
        else:
            if not alloc.stopped_s:
                log.error("a buffer is gone", job=alloc.job_id, state=alloc.state.shown)
            self._forget(alloc)

    def _staged_out(self, alloc: Alloc) -> None:
        """Have the space of a job back whose data are where they belong."""
        alloc.size = 0
        self._enter(alloc, BbState.STAGED_OUT)
        job = slurmctld.find_job(alloc.job_id)
        if job is not None:
            job.stage_out = False

    def _forget(self, alloc: Alloc) -> None:
        """Strike a buffer off the books; its job, if it waits, can be given another."""
        self._books.remove(alloc)
        job = slurmctld.find_job(alloc.job_id)
        if job is not None and job.job_state.startswith("PENDING"):
            job.burst_buffer_state = BbState.PENDING.name

    def _enter(self, alloc: Alloc, state: BbState) -> None:
        """Let a buffer be in a state from now on."""
        alloc.state = state
        alloc.state_s = slurmctld.time()
        job = slurmctld.find_job(alloc.job_id) if alloc.job_id else None
        if job is not None:
            job.burst_buffer_state = state.name

    # What takes its time.

    def _watch(self) -> None:
        """Have the store asked every 30 seconds, as long as a buffer is on its way."""
        if self._on_the_way() and (self._agent is None or not self._agent.alive):
            self._agent = start(self._ask_now_and_then, "burst buffer agent")

    async def _ask_now_and_then(self) -> None:
        while self._on_the_way():
            await sleep(_AGENT_S)
            async with slurmctld.locked():
                if not await self._load("get_sys"):
                    self._time_out()

    def _on_the_way(self) -> bool:
        """Tell whether asking the store may change anything."""
        now_s = slurmctld.time()
        return any(
            (alloc.state == BbState.STAGED_OUT and alloc.size)
            or (
                alloc.state in (BbState.STAGING_IN, BbState.STAGING_OUT)
                and (not alloc.stopped_s or now_s - alloc.stopped_s < _AFTER_STOP_S)
            )
            for alloc in self._books.allocs.values()
            if alloc.job_id
        )

    def _time_out(self) -> None:
        """Stop what has been staged for too long."""
        now_s = slurmctld.time()
        settings = self._settings
        for alloc in list(self._books.allocs.values()):
            age_s = now_s - alloc.state_s
            if not alloc.job_id or alloc.stopped_s:
                continue
            if alloc.state == BbState.STAGING_IN and 0 < settings.stage_in_timeout_s <= age_s:
                self._stop_stage_in(alloc)
                self._hold(alloc)
            elif alloc.state == BbState.STAGING_OUT and 0 < settings.stage_out_timeout_s <= age_s:
                alloc.stopped_s = now_s
                log.error("stage-out takes too long", job=alloc.job_id)
                self._run("stop_stage_out", alloc.job_id)

    def _hold(self, alloc: Alloc) -> None:
        job = slurmctld.find_job(alloc.job_id)
        log.error("stage-in takes too long", job=alloc.job_id)
        if job is not None and job.job_state.startswith("PENDING"):
            job.state_desc = STAGE_IN_TIMEOUT
            job.priority = 0

    def _stop_stage_in(self, alloc: Alloc) -> None:
        """Stop filling a buffer; the books keep it until the store has dropped it."""
        alloc.stopped_s = slurmctld.time()
        self._run("stop_stage_in", alloc.job_id)
        if not alloc.seen:
            self._forget(alloc)

    def _run(self, what: str, job_id: int, *argv: str) -> None:
        """Start a script that nobody waits for."""
        path = self._settings.scripts[what]
        slurmctld.start_script(path, what, str(job_id), *argv, name=what, job_id=job_id)

    def _run_for(self, what: str, job: JobRecord, size: int) -> None:
        """Start a script of a batch job: the comments of its script are arguments too."""
        self._run(what, job.job_id, str(job.user_id), str(size), *comments(job.script))

    # Submission.

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> None:
        """Enter what the script's ``#BB`` lines ask for, and check the request.

        Raises:
            SlurmError: The size is none or negative, or the user may not use burst buffers.
        """
        text = request_text(job_desc.burst_buffer, job_desc.script)
        try:
            size = requested(text, self._settings.granularity)
        except OverflowError as error:
            raise SlurmError(errno.ESLURM_BURST_BUFFER_LIMIT, str(error)) from None
        except ValueError as error:
            raise SlurmError(errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, str(error)) from None
        if text != job_desc.burst_buffer:
            # What is frozen elsewhere may be set here: slurmctld hands a copy of its own.
            setattr(job_desc, "burst_buffer", text)  # noqa: B010
        if not size:
            return
        barred = self._settings.barred(submit_uid)
        if barred:
            text = f"user {slurmctld.user_name(submit_uid)} may not use burst buffers: {barred}"
            raise SlurmError(errno.ESLURM_BURST_BUFFER_PERMISSION, text)
        if size > self._books.total:
            log.info("more is asked for than there is", size=size, total=self._books.total)

    def _size_of(self, job: JobRecord) -> int:
        """Return what a job asks for; a text that was spoilt after its submission is nothing."""
        try:
            return requested(job.burst_buffer, self._settings.granularity)
        except (ValueError, OverflowError):
            return 0

    def bb_p_get_system_size(self, name: str | None) -> int:
        """Return the size of the store in MB."""
        return self._books.total // MEGABYTE if name in (None, "generic") else 0

    def bb_p_job_set_tres_cnt(
        self, job_ptr: JobRecord, tres_cnt: dict[str, int], locked: bool
    ) -> None:
        """Add the job's MB to ``bb/generic``; what is begun counts whole."""
        size = self._size_of(job_ptr)
        if size and slurmctld.tres_id(TRES):
            tres_cnt[TRES] = tres_cnt.get(TRES, 0) + -(-size // MEGABYTE)

    # While a job waits.

    def bb_p_job_get_est_start(self, job_ptr: JobRecord) -> int:
        """Return now; in a year for what never fits; when the next job ends if all is taken."""
        now_s = slurmctld.time()
        size = self._size_of(job_ptr)
        alloc = self._books.of_job(job_ptr.job_id)
        if not size:
            return now_s
        if alloc is not None:
            return now_s + (alloc.state < BbState.STAGED_IN)
        fit = self._books.fit(size)
        if fit == Fit.NEVER:
            return now_s + _YEAR_S
        return max(now_s, self._next_end_s()) if fit == Fit.LATER else now_s

    def _next_end_s(self) -> int:
        """Return when the first of the running jobs with buffers is to end, 0 if there is none."""
        running = [
            job.end_time
            for alloc in self._books.allocs.values()
            if alloc.state == BbState.RUNNING
            and (job := slurmctld.find_job(alloc.job_id)) is not None
        ]
        return min(filter(None, running), default=0)

    def bb_p_job_try_stage_in(self) -> None:
        """Give space to those that start soonest, until one does not fit.

        One that is larger than all there is keeps nobody else back.
        """
        for job in slurmctld.candidates():
            size = self._size_of(job)
            if size and self._books.of_job(job.job_id) is None:
                fit = self._make_room(job, size)
                if fit == Fit.LATER:
                    break
                if fit == Fit.NOW:
                    self._stage_in(job, size)

    def _make_room(self, job: JobRecord, size: int) -> Fit:
        """Tell whether a job can have space; who is staged in for later may have to give way."""
        fit = self._books.fit(size)
        if fit != Fit.LATER:
            return fit
        staging = []
        for alloc in self._books.allocs.values():
            other = slurmctld.find_job(alloc.job_id)
            if alloc.state == BbState.STAGING_IN and not alloc.stopped_s and other is not None:
                staging.append((other.start_time, alloc))
        chosen = to_give_way(staging, job.start_time, self._books.lacking(size))
        for alloc in chosen:
            log.info("stage-in gives way", job=alloc.job_id, to=job.job_id)
            self._stop_stage_in(alloc)
            self._forget(alloc)
        return Fit.NOW if chosen else Fit.LATER

    def _stage_in(self, job: JobRecord, size: int) -> None:
        """Give a job its space; without a batch script there is nothing to fill it with."""
        alloc = self._books.add(
            Alloc(
                job_id=job.job_id,
                user_id=job.user_id,
                size=size,
                create_s=slurmctld.time(),
                account=job.account,
                partition=job.partition,
            )
        )
        if not job.batch:
            self._enter(alloc, BbState.STAGED_IN)
            slurmctld.schedule()
            return
        self._enter(alloc, BbState.STAGING_IN)
        self._run_for("start_stage_in", job, size)
        self._watch()

    async def bb_p_job_test_stage_in(self, job_ptr: JobRecord, test_only: bool) -> int:
        """Tell whether a job's buffer is filled; one that has none may be given one."""
        size = self._size_of(job_ptr)
        if not size:
            return 1
        alloc = self._books.of_job(job_ptr.job_id)
        if alloc is not None and alloc.state == BbState.STAGED_OUT and not alloc.size:
            # The job is back in the queue, and what it had before is gone.
            self._forget(alloc)
            alloc = None
        if alloc is None:
            if not test_only and self._make_room(job_ptr, size) == Fit.NOW:
                self._stage_in(job_ptr, size)
            return -1
        if alloc.state < BbState.STAGED_IN:
            await self._load("get_job", str(job_ptr.job_id), job_id=job_ptr.job_id)
        if self._books.of_job(job_ptr.job_id) is not alloc:
            return -1
        if alloc.state < BbState.STAGED_IN:
            return 0
        return 1 if alloc.state == BbState.STAGED_IN else -1

    # A run.

    def bb_p_job_begin(self, job_ptr: JobRecord) -> None:
        """Let a job use its buffer.

        Raises:
            SlurmError: ESLURM_INVALID_BURST_BUFFER_REQUEST: it has none that is filled.
        """
        alloc = self._books.of_job(job_ptr.job_id)
        if not self._size_of(job_ptr) or (alloc is not None and alloc.state == BbState.RUNNING):
            return
        if alloc is None or alloc.state != BbState.STAGED_IN:
            state = "none" if alloc is None else alloc.state.shown
            raise SlurmError(
                errno.ESLURM_INVALID_BURST_BUFFER_REQUEST,
                f"job {job_ptr.job_id} has no buffer that is staged-in: {state}",
            )
        self._enter(alloc, BbState.RUNNING)

    def bb_p_job_revoke_alloc(self, job_ptr: JobRecord) -> None:
        """Let a job keep its filled buffer that did not get its nodes."""
        alloc = self._books.of_job(job_ptr.job_id)
        if alloc is not None and alloc.state == BbState.RUNNING:
            self._enter(alloc, BbState.STAGED_IN)

    def bb_p_job_start_stage_out(self, job_ptr: JobRecord) -> None:
        """Have a job's data moved to where they belong; without a batch script there are none."""
        size = self._size_of(job_ptr)
        alloc = self._books.of_job(job_ptr.job_id)
        if not size:
            return
        if alloc is None:
            log.error("no buffer to stage out", job=job_ptr.job_id)
            return
        if not job_ptr.batch:
            self._staged_out(alloc)
            slurmctld.schedule()
            return
        alloc.seen = False
        self._enter(alloc, BbState.STAGING_OUT)
        job_ptr.stage_out = True
        self._run_for("start_stage_out", job_ptr, alloc.size)
        self._watch()

    def bb_p_job_test_post_run(self, job_ptr: JobRecord) -> int:
        """Return 1 once stage-out has begun: nothing is to be done between it and the run."""
        alloc = self._books.of_job(job_ptr.job_id)
        return int(
            alloc is None or alloc.state >= BbState.STAGING_OUT or not self._size_of(job_ptr)
        )

    async def bb_p_job_test_stage_out(self, job_ptr: JobRecord) -> int:
        """Tell whether a job's data are where they belong."""
        alloc = self._books.of_job(job_ptr.job_id)
        if not self._size_of(job_ptr) or alloc is None:
            return 1
        if alloc.state < BbState.STAGED_OUT:
            await self._load("get_job", str(job_ptr.job_id), job_id=job_ptr.job_id)
        if alloc.state == BbState.STAGED_OUT:
            alloc.size = 0
            return 1
        return 0 if alloc.state == BbState.STAGING_OUT else -1

    def bb_p_job_cancel(self, job_ptr: JobRecord) -> None:
        """Stop whatever is staged; the space is free once the store does not tell of it any more."""
        alloc = self._books.of_job(job_ptr.job_id)
        if not self._size_of(job_ptr) or alloc is None:
            return
        if not job_ptr.batch:
            self._staged_out(alloc)
            slurmctld.schedule()
            return
        self._run_for("stop_stage_out", job_ptr, 0)
        self._enter(alloc, BbState.STAGED_OUT)
        job_ptr.stage_out = False
        self._watch()

    # What is shown.

    def bb_p_state_pack(self, uid: int, buffer: Buf, protocol_version: int) -> None:
        """Append settings, buffers and who has how much; with PrivateData the asker's alone."""
        settings, books = self._settings, self._books
        shown = [
            alloc
            for alloc in books.allocs.values()
            if not settings.private or alloc.user_id == uid or slurmctld.is_operator(uid)
        ]
        users = {alloc.user_id for alloc in shown}
        settings.info(
            total_space=books.total,
            unfree_space=books.used,
            used_space=books.used,
            allocs=tuple(map(_shown, shown)),
            uses=tuple(
                BurstBufferUse(user_id=user, used=used)
                for user, used in books.uses()
                if user in users
            ),
        ).pack(buffer)


def _shown(alloc: Alloc) -> BurstBufferAlloc:
    shown = BurstBufferAlloc(
        name=alloc.name,
        job_id=alloc.job_id,
        create_time=alloc.create_s,
        size=alloc.size,
        state=alloc.state.shown,
        user_id=alloc.user_id,
        account=alloc.account,
        partition=alloc.partition,
    )
    return as_task(shown)


__all__ = ["BurstBufferGeneric", "BurstBufferInfo"]
