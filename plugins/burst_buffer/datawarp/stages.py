"""What burst_buffer/datawarp does beside slurmctld: stages in threads, its books under the lock.

A thread runs a script without the lock, and takes it to enter what came of it. Whatever happened
meanwhile is seen then: a job may be cancelled, or gone.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from simctl.plugin import JobRecord, PluginThread, log, sleep, slurmctld, start
from simctl.plugins.burst_buffer.datawarp.cli import Answer, DwCli
from simctl.plugins.burst_buffer.datawarp.files import remove_files
from simctl.plugins.burst_buffer.datawarp.named import Named
from simctl.plugins.burst_buffer.datawarp.tell import OPERATION, Failure, base, comment, hold, tell
from simctl.plugins.burst_buffer.records import Alloc, BbJob, BbState, Books

MAX_RETRY_CNT: Final = 2
"""After so many failed pre_runs, one more holds the job."""

_RETRY_S: Final = 5
_NO_SESSION: Final = "No matching session"


class Stages:
    """The threads of burst_buffer/datawarp, each about one job."""

    def __init__(
        self, books: Books, cli: DwCli, plugin_type: str, save: Callable[[], None]
    ) -> None:
        self._books = books
        self._cli = cli
        self._type = plugin_type
        self._save = save
        self._named = Named(books, cli, save)
        self._threads: list[PluginThread] = []

    def stop(self) -> None:
        """End every thread where it is; a script that it waits for ends with it."""
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.cancel()

    def _start(self, name: str, body: Callable[[BbJob], Awaitable[None]], bb: BbJob) -> None:
        async def run() -> None:
            await body(bb)

        self._threads = [thread for thread in self._threads if thread.alive]
        self._threads.append(start(run, f"{name} of job {bb.job_id}"))

    def set_state(self, bb: BbJob, state: BbState) -> None:
        """Enter how far a job's buffer is, where slurmctld tells of it too."""
        self._books.enter(bb, state)
        job = slurmctld.find_job(bb.job_id)
        if job is not None:
            job.burst_buffer_state = state.name
        self._save()

    # Stage-in.

    def stage_in(self, bb: BbJob) -> None:
        """Set a job's space aside, and start to fill it."""
        bb.wanted, bb.failed = True, False
        self.set_state(bb, BbState.STAGING_IN)
        self._start("stage-in", self._stage_in, bb)

    async def _stage_in(self, bb: BbJob) -> None:
        wrong = await self._named.work(bb)
        if wrong is None and bb.request.session and bb.state is BbState.STAGING_IN:
            wrong = await self._fill(bb)
        async with slurmctld.locked():
            self._stage_in_over(bb, wrong)

    async def _fill(self, bb: BbJob) -> Failure | None:
        """Have a job's buffer made and filled."""
        job = slurmctld.find_job(bb.job_id)
        if job is None:
            return None
        answer = await self._cli.setup(job, bb.pool, bb.size)
        function = "setup"
        if answer.ok:
            async with slurmctld.locked():
                self._made(bb)
            answer = await self._cli.stage("data_in", bb.job_id)
            function = "data_in"
        if bb.request.size and (bb.state is BbState.STAGING_IN or slurmctld.model == "modern"):
            real = await self._cli.real_size(bb.job_id)
            alloc = self._books.allocs.get(bb.token)
            if alloc is not None:
                alloc.size = max(alloc.size, real)
        return None if answer.ok else Failure(function=function, message=answer.message)

    def _made(self, bb: BbJob) -> None:
        """Enter that the appliance has made a job's buffer."""
        job = slurmctld.find_job(bb.job_id)
        self._books.allocs[bb.token] = Alloc(
            name=bb.token,
            job_id=bb.job_id,
            user_id=bb.user_id,
            size=bb.size,
            pool=bb.pool,
            create_time=slurmctld.time(),
            account=job.account if job is not None else "",
            partition=job.partition if job is not None else "",
        )
        bb.wanted = False
        self._save()
        if bb.state is not BbState.STAGING_IN:
            # It was cancelled, and a teardown that found nothing is over already.
            self.tear_down(bb, hurry=True)

    def _stage_in_over(self, bb: BbJob, wrong: Failure | None) -> None:
        """Enter how a stage-in ended."""
        if bb.state is not BbState.STAGING_IN:
            if slurmctld.model == "modern" and bb.request.session:
                # Real Slurm's thread does not look whether the job was cancelled meanwhile.
                bb.overtaken = True
                self.set_state(bb, BbState.STAGED_IN)
            return
        if wrong is not None:
            self._stage_in_failed(bb, wrong)
            return
        bb.wanted = False
        self._show(bb, BbState.STAGED_IN)
        self.set_state(bb, BbState.STAGED_IN)
        slurmctld.schedule()

    def _stage_in_failed(self, bb: BbJob, wrong: Failure) -> None:
        job = slurmctld.find_job(bb.job_id)
        if job is not None and base(job) == "PENDING":
            hold(job, self._type, wrong)
        if wrong.function == "setup" or self._cli.settings.teardown_failure:
            self.tear_down(bb, hurry=True)
        elif wrong.function == "data_in":
            bb.failed = True
        else:
            bb.wanted = False
            self.set_state(bb, BbState.PENDING)

    def _show(self, bb: BbJob, state: BbState) -> None:
        """Enter the state of a job's buffer itself, which `scontrol show burst` prints."""
        alloc = self._books.allocs.get(bb.token)
        if alloc is not None:
            alloc.state = state

    # Before the job runs.

    def pre_run(self, bb: BbJob, job: JobRecord) -> None:
        """Have the buffer mounted; the job is launched once it is."""
        slurmctld.hold_launch(job)
        self._start("pre_run", self._pre_run, bb)

    async def _pre_run(self, bb: BbJob) -> None:
        job = slurmctld.find_job(bb.job_id)
        if bb.state is BbState.ALLOC_REVOKE and slurmctld.model == "modern":
            # As recorded: nothing is run, and the job stays CONFIGURING.
            return
        answer: Answer | None = None
        if job is not None and bb.state is BbState.PRE_RUN:
            answer = await self._cli.pre_run(job)
        async with slurmctld.locked():
            await self._pre_run_over(bb, answer)

    async def _pre_run_over(self, bb: BbJob, answer: Answer | None) -> None:
        job = slurmctld.find_job(bb.job_id)
        modern = slurmctld.model == "modern"
        if answer is not None and not answer.ok:
            if bb.state in (BbState.PRE_RUN, BbState.ALLOC_REVOKE):
                await self._pre_run_failed(bb, job, answer)
        elif bb.state is BbState.ALLOC_REVOKE:
            self.set_state(bb, BbState.STAGED_IN)
            slurmctld.schedule()
        elif answer is not None and (bb.state is BbState.PRE_RUN or modern):
            # Real Slurm enters this even while the buffer of a cancelled job is taken down.
            self.set_state(bb, BbState.RUNNING)
        if job is not None:
            slurmctld.release_launch(job)

    async def _pre_run_failed(self, bb: BbJob, job: JobRecord | None, answer: Answer) -> None:
        bb.retry_cnt += 1
        log.error("pre_run failed", job=bb.job_id, message=answer.message)
        self.tear_down(bb, hurry=True)
        if job is None or base(job) != "RUNNING":
            return
        text = "Burst buffer pre_run error"
        comment(job, self._type, Failure(function="pre_run", message=answer.message))
        await slurmctld.requeue(job, text, exit_status=1)
        if base(job) == "PENDING":
            job.state_reason = OPERATION
            job.state_desc = text
            if bb.retry_cnt > MAX_RETRY_CNT:
                job.priority = 0

    # Stage-out.

    def stage_out(self, bb: BbJob) -> None:
        """Start to empty the buffer of a job that is over, and say so in its record."""
        self.set_state(bb, BbState.POST_RUN)
        job = slurmctld.find_job(bb.job_id)
        if job is not None:
            job.stage_out = True
            if base(job) != "PENDING":
                job.state_desc = self.in_progress
        self._start("stage-out", self._stage_out, bb)

    async def _stage_out(self, bb: BbJob) -> None:
        function = "post_run"
        answer = await self._cli.stage(function, bb.job_id)
        async with slurmctld.locked():
            if bb.state is BbState.POST_RUN:
                self.set_state(bb, BbState.STAGING_OUT)
        if answer.ok and bb.state is BbState.STAGING_OUT:
            function = "data_out"
            answer = await self._cli.stage(function, bb.job_id)
        async with slurmctld.locked():
            if bb.state is not BbState.STAGING_OUT:
                return
            if answer.ok or (function == "data_out" and _NO_SESSION in answer.message):
                self._stage_out_over(bb)
            else:
                self._stage_out_failed(bb, Failure(function=function, message=answer.message))

    def _stage_out_over(self, bb: BbJob) -> None:
        job = slurmctld.find_job(bb.job_id)
        if job is not None:
            if job.state_desc == self.in_progress:
                job.state_desc = ""
            job.stage_out = False
        self.tear_down(bb, hurry=False)

    def _stage_out_failed(self, bb: BbJob, wrong: Failure) -> None:
        job = slurmctld.find_job(bb.job_id)
        if job is not None:
            tell(job, self._type, wrong)
        if self._cli.settings.teardown_failure:
            self.tear_down(bb, hurry=False)
        else:
            bb.failed = True
            self._save()

    @property
    def in_progress(self) -> str:
        """Return what a job's reason says while it is staged out."""
        return f"{self._type}: Stage-out in progress"

    # The end of a buffer.

    def tear_down(self, bb: BbJob, *, hurry: bool) -> None:
        """Have a job's buffer taken down, with *hurry* without moving data, until it is gone."""
        bb.hurry |= hurry
        self._show(bb, BbState.TEARDOWN)
        self.set_state(bb, BbState.TEARDOWN)
        if not bb.request.session and bb.token not in self._books.allocs:
            self._gone(bb)
        elif not bb.tearing_down:
            bb.tearing_down = True
            self._start("teardown", self._tear_down, bb)

    async def _tear_down(self, bb: BbJob) -> None:
        while bb.tearing_down:
            answer = await self._cli.teardown(bb.token, bb.job_id, hurry=bb.hurry)
            async with slurmctld.locked():
                if answer.ok or answer.gone:
                    self._gone(bb)
                else:
                    self._teardown_failed(bb, answer)
            if bb.tearing_down:
                await sleep(_RETRY_S)

    def _gone(self, bb: BbJob) -> None:
        """Enter that a job's buffer is no more."""
        bb.tearing_down = bb.hurry = bb.failed = bb.wanted = False
        self._books.allocs.pop(bb.token, None)
        job = slurmctld.find_job(bb.job_id)
        if job is not None:
            job.stage_out = False
            self._teardown_told(job, bb)
        if job is None or base(job) not in ("PENDING", "RUNNING", "SUSPENDED"):
            remove_files(bb.job_id)
        self.set_state(bb, BbState.STAGED_IN if bb.overtaken else BbState.COMPLETE)
        if job is None:
            self._books.forget(bb.job_id)
        slurmctld.schedule()

    def _teardown_told(self, job: JobRecord, bb: BbJob) -> None:
        """Let a job's reason be what it was before its teardown failed."""
        if job.state_desc.startswith(f"{self._type}: teardown:"):
            waits = base(job) == "PENDING" and not (bb.told[1] and not job.priority)
            job.state_reason, job.state_desc = ("None", "") if waits else bb.told

    def _teardown_failed(self, bb: BbJob, answer: Answer) -> None:
        self._show(bb, BbState.TEARDOWN_FAIL)
        job = slurmctld.find_job(bb.job_id)
        if job is not None:
            if not job.state_desc.startswith(f"{self._type}: teardown:"):
                bb.told = (job.state_reason, job.state_desc)
            job.state_reason = OPERATION
            job.state_desc = f"{self._type}: teardown: {answer.message}"
        self.set_state(bb, BbState.TEARDOWN_FAIL)
