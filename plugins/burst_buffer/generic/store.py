"""The store behind burst_buffer/generic: slurmctld asks what is, and tells it what to do."""

from typing import Final

from simctl.plugin import (
    NO_VAL,
    JobRecord,
    PluginThread,
    log,
    sleep,
    slurmctld,
    start,
)
from simctl.plugins.burst_buffer.generic.request import comments, requested
from simctl.plugins.burst_buffer.generic.settings import Settings
from simctl.plugins.burst_buffer.generic.state import Listed, Listing, read_listing
from simctl.plugins.burst_buffer.space import Alloc, BbState, Books, Fit, key_of, to_give_way

STAGE_IN_TIMEOUT: Final = "Burst buffer stage-in timeout"

_AGENT_S: Final = 30
_ANSWER_S: Final = 2.0
"""How long GetSysState may take."""

_AFTER_STOP_S: Final = 300
"""For how long the agent looks after a buffer whose staging was stopped."""


class Store:
    """What the store has said, and the scripts that move data.

    The books are those of slurmctld's process alone; after a restart they are written anew from
    what GetSysState tells.
    """

    def __init__(self) -> None:
        self.settings = Settings()
        self.books = Books()
        self._agent: PluginThread | None = None
        self.known = False
        """Whether the store has told of all it holds since this process began."""
        self._dropped: dict[str, int] = {}
        """Buffers that the store was told to drop and may still have, and since when."""

    # What the store says.

    async def load(self, *question: str, job_id: int = 0) -> bool:
        """Run GetSysState and take in what it says; return whether it said anything."""
        path = self.settings.get_sys_state
        result = await slurmctld.run_script(
            path, *question, name="get_sys", job_id=job_id, timeout=_ANSWER_S
        )
        if not result.ok:
            said = (result.error or result.output).strip()
            why = f"signal {result.signal}" if result.signal else f"exit {result.exit_code}"
            why = "no answer in time" if result.timed_out else why
            log.error(f"{path} {question[0]}: {why}", said=said)
            self.watch()
            return False
        listing = read_listing(result.output, self.settings.granularity)
        for line in listing.unread:
            log.error("GetSysState wrote what means nothing", line=line)
        self._take(listing, whole=not job_id, job_id=job_id)
        if not job_id and not self.known:
            self.known = True
            self._recover()
        self._time_out()
        self.watch()
        return True

    def _take(self, listing: Listing, *, whole: bool, job_id: int) -> None:
        """Enter an answer of the store into the books; a *whole* one lists all there is."""
        books = self.books
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
        if whole:
            self._dropped = {key: when for key, when in self._dropped.items() if key in there}
        if books.used < used:
            slurmctld.schedule()

    def _is_dropped(self, key: str) -> bool:
        """Return whether the store is about to drop a buffer; one that it keeps is there again."""
        since_s = self._dropped.get(key)
        return since_s is not None and slurmctld.time() - since_s < _AFTER_STOP_S

    def unsettled(self, job: JobRecord) -> bool:
        """Return whether the store may hold a buffer of a job that it has yet to tell of."""
        state = job.burst_buffer_state
        return not self.known and state not in ("", BbState.PENDING.name, BbState.STAGED_OUT.name)

    def _recover(self) -> None:
        """Settle the jobs of an earlier slurmctld of whose buffers the store does not tell.

        It never heard of those that have no batch script, and has forgotten what was staged out.
        """
        for job in slurmctld.jobs():
            size = self.size_of(job)
            state = BbState.__members__.get(job.burst_buffer_state, BbState.PENDING)
            over = state in (BbState.PENDING, BbState.STAGED_OUT)
            if not size or over or self.books.of_job(job.job_id) is not None:
                continue
            alloc = self._new(job, size)
            if state == BbState.STAGING_OUT or (not job.batch and _is_over(job)):
                self.staged_out(alloc)
            elif not job.batch:
                self.enter(alloc, state)
            else:
                log.error("a buffer is gone", job=job.job_id, state=state.shown)
                self.forget(alloc)

    def _note(self, listed: Listed) -> None:
        """Enter what the store says of one buffer."""
        alloc = self.books.allocs.get(listed.key)
        if alloc is None:
            if not self._is_dropped(listed.key):
                self._found(listed)
        elif not alloc.job_id:
            alloc.size = listed.size
            if alloc.state != listed.state:
                slurmctld.note_buffer(alloc.name, alloc.state.shown, listed.state.shown)
                self.enter(alloc, listed.state)
        elif alloc.state == BbState.STAGED_OUT:
            if listed.state == BbState.STAGED_OUT:
                alloc.size = 0
        elif alloc.state == BbState.STAGING_OUT:
            alloc.seen = True
            if listed.state == BbState.STAGED_OUT:
                self.staged_out(alloc)
        elif listed.state != BbState.STAGED_OUT:
            alloc.seen = True
            if alloc.state == BbState.STAGING_IN and listed.state >= BbState.STAGED_IN:
                alloc.stopped_s = 0
                self.enter(alloc, BbState.STAGED_IN)
                slurmctld.schedule()

    def _found(self, listed: Listed) -> None:
        """Add a buffer that the books lack: after a restart, or made by another program."""
        job = slurmctld.find_job(listed.job_id) if listed.job_id else None
        if listed.job_id and listed.state == BbState.STAGED_OUT:
            return
        state = listed.state if job is None else _state_of(job, listed.state)
        now_s = slurmctld.time()
        uid = slurmctld.uid_of(listed.user)
        alloc = self.books.add(
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
        self.enter(alloc, state)
        if alloc.state == BbState.STAGED_IN:
            slurmctld.schedule()
        if job is not None and listed.state < BbState.STAGING_OUT and _is_over(job):
            self._end_late(alloc, job)

    def _end_late(self, alloc: Alloc, job: JobRecord) -> None:
        """Do for a job what its end called for, when the books did not have its buffer."""
        if alloc.state == BbState.STAGING_OUT and job.nodes:
            self.stage_out(alloc, job)
        else:
            self.stop(alloc, job)

    def stage_out(self, alloc: Alloc, job: JobRecord) -> None:
        """Have a job's data moved to where they belong."""
        alloc.seen = False
        self.enter(alloc, BbState.STAGING_OUT)
        job.stage_out = True
        self.run_for("start_stage_out", job, alloc.size)
        self.watch()

    def stop(self, alloc: Alloc, job: JobRecord) -> None:
        """Stop whatever is staged for a job, and have its space back from the store."""
        self.run_for("stop_stage_out", job, 0)
        self.enter(alloc, BbState.STAGED_OUT)
        job.stage_out = False
        self.watch()

    def _vanished(self, alloc: Alloc) -> None:
        """Note that the store does not have a buffer, or not any more."""
        if not alloc.job_id:
            slurmctld.note_buffer(alloc.name, alloc.state.shown, "deleted")
            self.books.remove(alloc)
        elif alloc.state == BbState.STAGED_OUT:
            alloc.size = 0
        elif not alloc.seen:
            # A script that has only just been started may not have come so far.
            return
        elif alloc.state == BbState.STAGING_OUT:
            self.staged_out(alloc)
        else:
            if not alloc.stopped_s:
                log.error("a buffer is gone", job=alloc.job_id, state=alloc.state.shown)
            self.forget(alloc)

    def staged_out(self, alloc: Alloc) -> None:
        """Have the space of a job back whose data are where they belong."""
        alloc.size = 0
        self.enter(alloc, BbState.STAGED_OUT)
        job = slurmctld.find_job(alloc.job_id)
        if job is not None:
            job.stage_out = False

    def forget(self, alloc: Alloc) -> None:
        """Strike a buffer off the books; its job, if it waits, can be given another."""
        if alloc.stopped_s:
            self._dropped[alloc.key] = alloc.stopped_s
        self.books.remove(alloc)
        job = slurmctld.find_job(alloc.job_id)
        if job is not None and job.job_state.startswith("PENDING"):
            job.burst_buffer_state = BbState.PENDING.name

    def enter(self, alloc: Alloc, state: BbState) -> None:
        """Let a buffer be in a state from now on."""
        alloc.state = state
        alloc.state_s = slurmctld.time()
        job = slurmctld.find_job(alloc.job_id) if alloc.job_id else None
        if job is not None:
            job.burst_buffer_state = state.name

    # What takes its time.

    def watch(self) -> None:
        """Have the store asked every 30 seconds, as long as a buffer is on its way."""
        if self._on_the_way() and (self._agent is None or not self._agent.alive):
            self._agent = start(self._ask_now_and_then, "burst buffer agent")

    async def _ask_now_and_then(self) -> None:
        while self._on_the_way():
            await sleep(_AGENT_S)
            async with slurmctld.locked():
                if not await self.load("get_sys"):
                    self._time_out()

    def _on_the_way(self) -> bool:
        """Return whether asking the store may change anything."""
        now_s = slurmctld.time()
        return any(map(self.unsettled, slurmctld.jobs())) or any(
            (alloc.state == BbState.STAGED_OUT and alloc.size)
            or (
                alloc.state in (BbState.STAGING_IN, BbState.STAGING_OUT)
                and (not alloc.stopped_s or now_s - alloc.stopped_s < _AFTER_STOP_S)
            )
            for alloc in self.books.allocs.values()
            if alloc.job_id and slurmctld.find_job(alloc.job_id) is not None
        )

    def _time_out(self) -> None:
        """Stop what has been staged for too long."""
        now_s = slurmctld.time()
        settings = self.settings
        for alloc in list(self.books.allocs.values()):
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
            self.forget(alloc)

    def _run(self, what: str, job_id: int, *argv: str) -> None:
        """Start a script that no caller waits for."""
        path = self.settings.scripts[what]
        slurmctld.start_script(path, what, str(job_id), *argv, name=what, job_id=job_id)

    def run_for(self, what: str, job: JobRecord, size: int) -> None:
        """Start a script of a batch job: the comments of its script are arguments too."""
        self._run(what, job.job_id, str(job.user_id), str(size), *comments(job.script))

    # Space for a job.

    def make_room(self, job: JobRecord, size: int) -> Fit:
        """Return whether a job can have space; who is staged in for later may have to give way."""
        if self._is_dropped(key_of(job.job_id)):
            # What it had has yet to go; that is no reason for others to wait.
            return Fit.NEVER
        fit = self.books.fit(size)
        if fit != Fit.LATER:
            return fit
        staging = []
        for alloc in self.books.allocs.values():
            other = slurmctld.find_job(alloc.job_id)
            if alloc.state == BbState.STAGING_IN and not alloc.stopped_s and other is not None:
                staging.append((other.start_time, alloc))
        chosen = to_give_way(staging, job.start_time, self.books.lacking(size))
        for alloc in chosen:
            log.info("stage-in gives way", job=alloc.job_id, to=job.job_id)
            self._stop_stage_in(alloc)
            self.forget(alloc)
        return Fit.NOW if chosen else Fit.LATER

    def stage_in(self, job: JobRecord, size: int) -> None:
        """Give a job its space; without a batch script there is nothing to fill it with."""
        alloc = self._new(job, size)
        if not job.batch:
            self.enter(alloc, BbState.STAGED_IN)
            slurmctld.schedule()
            return
        self.enter(alloc, BbState.STAGING_IN)
        self.run_for("start_stage_in", job, size)
        self.watch()

    def _new(self, job: JobRecord, size: int) -> Alloc:
        return self.books.add(
            Alloc(
                job_id=job.job_id,
                user_id=job.user_id,
                size=size,
                create_s=slurmctld.time(),
                account=job.account,
                partition=job.partition,
            )
        )

    def size_of(self, job: JobRecord) -> int:
        """Return what a job asks for; a text that was spoilt after its submission is nothing."""
        try:
            return requested(job.burst_buffer, self.settings.granularity)
        except (ValueError, OverflowError):
            return 0

    def next_end_s(self) -> int:
        """Return when the first of the running jobs with buffers is to end, 0 if there is none."""
        running = [
            job.end_time
            for alloc in self.books.allocs.values()
            if alloc.state == BbState.RUNNING
            and (job := slurmctld.find_job(alloc.job_id)) is not None
        ]
        return min(filter(None, running), default=0)


def _is_over(job: JobRecord) -> bool:
    return not job.job_state.startswith(("PENDING", "RUNNING", "SUSPENDED"))


def _state_of(job: JobRecord, listed: BbState) -> BbState:
    """Return what a job's buffer is in, of which the store knows less than slurmctld."""
    if listed >= BbState.STAGING_OUT:
        return listed
    filled = listed >= BbState.STAGED_IN
    if job.job_state.startswith("PENDING"):
        return BbState.STAGED_IN if filled else BbState.STAGING_IN
    if not _is_over(job):
        return BbState.RUNNING
    return BbState.STAGING_OUT if filled else BbState.STAGED_OUT
