"""burst_buffer/generic: space that a site's own scripts fill and empty, as in Slurm 15.08.

No caller waits for scripts that stage: how far they are is what GetSysState says, which is asked
before scheduler passes, when a job's buffer matters, and every 30 seconds while one is on its way.
"""

from typing import ClassVar, Final

from simctl.plugin import (
    SLURM_ERROR,
    SLURM_SUCCESS,
    Buf,
    BurstBufferAlloc,
    BurstBufferInfo,
    BurstBufferPlugin,
    BurstBufferUse,
    JobDesc,
    JobRecord,
    SlurmError,
    errno,
    log,
    slurmctld,
)
from simctl.plugins.burst_buffer.generic.request import request_text, requested
from simctl.plugins.burst_buffer.generic.settings import read_settings
from simctl.plugins.burst_buffer.generic.store import Store
from simctl.plugins.burst_buffer.space import MEGABYTE, Alloc, BbState, Fit
from simctl.plugins.burst_buffer.tasks import as_task

TRES: Final = "bb/generic"
_YEAR_S: Final = 365 * 24 * 3600


class BurstBufferGeneric(BurstBufferPlugin):
    """Give jobs space of a burst buffer that scripts manage."""

    plugin_type: ClassVar[str] = "burst_buffer/generic"
    plugin_name: ClassVar[str] = "burst buffer generic plugin"

    def __init__(self) -> None:
        self._store = Store()

    def init(self) -> None:
        """Read burst_buffer.conf.

        Raises:
            SlurmError: EINVAL: it lacks one of the scripts.
        """
        self._store.settings = read_settings(slurmctld.burst_buffer_conf("generic"))

    def bb_p_reconfig(self) -> None:
        """Read burst_buffer.conf again; one that cannot be taken changes nothing.

        Raises:
            SlurmError: As `init`.
        """
        self._store.settings = read_settings(slurmctld.burst_buffer_conf("generic"))

    async def bb_p_load_state(self, init_config: bool) -> int:
        """Ask the store what there is; as slurmctld starts, also how large it is."""
        if not await self._store.load("get_sys"):
            return SLURM_ERROR
        if init_config:
            books = self._store.books
            log.info("burst buffer loaded", total=books.total, used=books.used)
        return SLURM_SUCCESS

    # Submission.

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> None:
        """Enter what the script's ``#BB`` lines ask for, and check the request.

        Raises:
            SlurmError: The size is none or negative, or the user may not use burst buffers.
        """
        text = request_text(job_desc.burst_buffer, job_desc.script)
        try:
            size = requested(text, self._store.settings.granularity)
        except OverflowError as error:
            raise SlurmError(errno.ESLURM_BURST_BUFFER_LIMIT, str(error)) from None
        except ValueError as error:
            raise SlurmError(errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, str(error)) from None
        if text != job_desc.burst_buffer:
            # What is frozen elsewhere may be set here: slurmctld hands a copy of its own.
            setattr(job_desc, "burst_buffer", text)  # noqa: B010
        if not size:
            return
        barred = self._store.settings.barred(submit_uid)
        if barred:
            text = f"user {slurmctld.user_name(submit_uid)} may not use burst buffers: {barred}"
            raise SlurmError(errno.ESLURM_BURST_BUFFER_PERMISSION, text)
        if size > self._store.books.total:
            log.info("more is asked for than there is", size=size, total=self._store.books.total)

    def bb_p_get_system_size(self, name: str | None) -> int:
        """Return the size of the store in MB."""
        return self._store.books.total // MEGABYTE if name in (None, "generic") else 0

    def bb_p_job_set_tres_cnt(
        self, job_ptr: JobRecord, tres_cnt: dict[str, int], locked: bool
    ) -> None:
        """Add the job's MB to ``bb/generic``; what is begun counts whole."""
        size = self._store.size_of(job_ptr)
        if size and slurmctld.tres_id(TRES):
            tres_cnt[TRES] = tres_cnt.get(TRES, 0) + -(-size // MEGABYTE)

    # While a job waits.

    def bb_p_job_get_est_start(self, job_ptr: JobRecord) -> int:
        """Return now; in a year for what never fits; when the next job ends if all is taken."""
        now_s = slurmctld.time()
        size = self._store.size_of(job_ptr)
        alloc = self._store.books.of_job(job_ptr.job_id)
        if not size:
            return now_s
        if alloc is not None:
            return now_s + (alloc.state < BbState.STAGED_IN)
        fit = self._store.books.fit(size)
        if fit == Fit.NEVER:
            return now_s + _YEAR_S
        return max(now_s, self._store.next_end_s()) if fit == Fit.LATER else now_s

    def bb_p_job_try_stage_in(self) -> None:
        """Give space to those that start soonest, until one does not fit.

        One that is larger than all there is keeps no other job back.
        """
        for job in slurmctld.candidates():
            size = self._store.size_of(job)
            if size and self._store.books.of_job(job.job_id) is None:
                fit = self._store.make_room(job, size)
                if fit == Fit.LATER:
                    break
                if fit == Fit.NOW:
                    self._store.stage_in(job, size)

    async def bb_p_job_test_stage_in(self, job_ptr: JobRecord, test_only: bool) -> int:
        """Return whether a job's buffer is filled; one that has none may be given one."""
        size = self._store.size_of(job_ptr)
        if not size:
            return 1
        alloc = self._store.books.of_job(job_ptr.job_id)
        if alloc is not None and alloc.state == BbState.STAGED_OUT:
            # The job is back in the queue, and what it had before is gone.
            self._store.forget(alloc)
            alloc = None
        if alloc is None:
            if not test_only and self._store.make_room(job_ptr, size) == Fit.NOW:
                self._store.stage_in(job_ptr, size)
            return -1
        if alloc.state < BbState.STAGED_IN:
            await self._store.load("get_job", str(job_ptr.job_id), job_id=job_ptr.job_id)
        if self._store.books.of_job(job_ptr.job_id) is not alloc:
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
        alloc = self._store.books.of_job(job_ptr.job_id)
        if not self._store.size_of(job_ptr) or (
            alloc is not None and alloc.state == BbState.RUNNING
        ):
            return
        if alloc is None or alloc.state != BbState.STAGED_IN:
            state = "none" if alloc is None else alloc.state.shown
            raise SlurmError(
                errno.ESLURM_INVALID_BURST_BUFFER_REQUEST,
                f"job {job_ptr.job_id} has no buffer that is staged-in: {state}",
            )
        self._store.enter(alloc, BbState.RUNNING)

    def bb_p_job_revoke_alloc(self, job_ptr: JobRecord) -> None:
        """Let a job keep its filled buffer that did not get its nodes."""
        alloc = self._store.books.of_job(job_ptr.job_id)
        if alloc is not None and alloc.state == BbState.RUNNING:
            self._store.enter(alloc, BbState.STAGED_IN)

    def bb_p_job_start_stage_out(self, job_ptr: JobRecord) -> None:
        """Have a job's data moved to where they belong; without a batch script there are none."""
        size = self._store.size_of(job_ptr)
        alloc = self._store.books.of_job(job_ptr.job_id)
        if not size:
            return
        if alloc is None:
            log.error("no buffer to stage out", job=job_ptr.job_id)
            return
        if alloc.state == BbState.STAGING_OUT:
            # It has begun: after a restart the store told of the buffer of a job that was over.
            return
        if not job_ptr.batch:
            self._store.staged_out(alloc)
            slurmctld.schedule()
            return
        self._store.stage_out(alloc, job_ptr)

    def bb_p_job_test_post_run(self, job_ptr: JobRecord) -> int:
        """Return 1 once stage-out has begun: nothing is to be done between it and the run.

        Where it could not begin nothing is under way either: it has failed, or the run could not be
        taken up again after a restart.
        """
        alloc = self._store.books.of_job(job_ptr.job_id)
        if alloc is None or not self._store.size_of(job_ptr):
            return 1
        return 1 if alloc.state >= BbState.STAGING_OUT else -1

    async def bb_p_job_test_stage_out(self, job_ptr: JobRecord) -> int:
        """Return whether a job's data are where they belong."""
        store = self._store
        if not store.size_of(job_ptr):
            return 1
        if store.unsettled(job_ptr) and not await store.load("get_sys"):
            return -1
        alloc = store.books.of_job(job_ptr.job_id)
        if alloc is None:
            return 1
        if alloc.state < BbState.STAGED_OUT:
            await store.load("get_job", str(job_ptr.job_id), job_id=job_ptr.job_id)
        if alloc.state == BbState.STAGED_OUT:
            alloc.size = 0
            return 1
        return 0 if alloc.state == BbState.STAGING_OUT else -1

    def bb_p_job_cancel(self, job_ptr: JobRecord) -> None:
        """Stop whatever is staged; the space is free once the store has let go of it."""
        alloc = self._store.books.of_job(job_ptr.job_id)
        if not self._store.size_of(job_ptr) or alloc is None:
            return
        if not job_ptr.batch:
            self._store.staged_out(alloc)
            slurmctld.schedule()
            return
        self._store.stop(alloc, job_ptr)

    # What is shown.

    def bb_p_state_pack(self, uid: int, buffer: Buf, protocol_version: int) -> None:
        """Append settings, buffers and who has how much; with PrivateData the asker's alone."""
        settings, books = self._store.settings, self._store.books
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
