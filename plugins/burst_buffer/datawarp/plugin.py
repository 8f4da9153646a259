"""burst_buffer/datawarp: Cray's DataWarp appliance, as Slurm 19.05 drives it.

slurmctld asks; what takes time runs in threads (`dw_stages`) through the appliance's program
dw_wlm_cli (`dw_cli`). A job's request is read from its script (`directives`); what exists, and
what fits, is in `records`.
"""

from typing import ClassVar, Final, NoReturn

from simctl.plugin import (
    NO_VAL,
    SLURM_ERROR,
    SLURM_SUCCESS,
    Buf,
    BurstBufferPlugin,
    JobDesc,
    JobRecord,
    PluginThread,
    SlurmError,
    conf,
    errno,
    log,
    sleep,
    slurmctld,
    start,
)
from simctl.plugins.burst_buffer import directives
from simctl.plugins.burst_buffer.datawarp import answers as dw_json
from simctl.plugins.burst_buffer.datawarp import files as dw_files
from simctl.plugins.burst_buffer.datawarp import recover as dw_recover
from simctl.plugins.burst_buffer.datawarp import state as dw_state
from simctl.plugins.burst_buffer.datawarp.cli import DwCli
from simctl.plugins.burst_buffer.datawarp.settings import Settings, read_settings
from simctl.plugins.burst_buffer.datawarp.show import info
from simctl.plugins.burst_buffer.datawarp.stages import Stages
from simctl.plugins.burst_buffer.datawarp.tell import OPERATION
from simctl.plugins.burst_buffer.datawarp.waiting import Waiting
from simctl.plugins.burst_buffer.directives import Directive, Request
from simctl.plugins.burst_buffer.records import BbJob, BbState, Books, Fit
from simctl.plugins.burst_buffer.sizes import megabytes, parse_size

_NAME: Final = "datawarp"
_POLL_S: Final = 30
_DONE, _UNDER_WAY, _NOT = 1, 0, -1
"""What the three-valued functions return."""


class BurstBufferDatawarp(BurstBufferPlugin):
    """Give jobs buffers of a DataWarp appliance, stage data in and out, and take them down."""

    plugin_type: ClassVar[str] = f"burst_buffer/{_NAME}"
    plugin_name: ClassVar[str] = "burst buffer DataWarp plugin"
    plugin_version: ClassVar[int] = 100

    def __init__(self) -> None:
        self._settings = Settings()
        self._books = Books()
        self._cli = DwCli(self._settings)
        self._stages = Stages(self._books, self._cli, self.plugin_type, self._save)
        self._waiting = Waiting(self._books, self._stages)
        self._agent: PluginThread | None = None

    def init(self) -> None:
        """Read burst_buffer.conf."""
        self._configure()

    def fini(self) -> None:
        """End all threads, with the scripts they wait for, and save the state."""
        if self._agent is not None:
            self._agent.cancel()
        self._stages.stop()
        self._save()

    def _configure(self) -> None:
        self._settings = self._cli.settings = read_settings(slurmctld.burst_buffer_conf(_NAME))
        if self._settings.allow_users and self._settings.deny_users:
            log.warning("burst_buffer.conf has AllowUsers and DenyUsers: AllowUsers counts")

    def _save(self) -> None:
        if self._books.loaded:
            dw_state.save(self._books)

    # The state as a whole.

    async def bb_p_load_state(self, init_config: bool) -> int:
        """Read what the appliance has, as slurmctld starts; nothing before passes.

        While the appliance does not answer it is asked again every 30 s, and no job's buffer is
        of any use. Once it has answered, nothing that a poll could find changes by itself.
        """
        if not init_config:
            return SLURM_SUCCESS
        found = await self._ask(first=True)
        if found is None:
            log.error("the burst buffer appliance does not answer", program=self._cli.program)
            self._agent = start(self._poll, "agent of burst_buffer/datawarp")
            return SLURM_ERROR
        self._take_in(found, late=False)
        return SLURM_SUCCESS

    async def _poll(self) -> None:
        """Ask an appliance that did not answer, until it does."""
        while not self._books.loaded:
            await sleep(_POLL_S)
            found = await self._ask(first=False)
            if found is not None:
                async with slurmctld.locked():
                    self._take_in(found, late=True)
                    slurmctld.schedule()

    async def _ask(self, *, first: bool) -> list[dw_json.Session] | None:
        """Learn pools, and return the sessions; None if the appliance does not answer."""
        pools = dw_json.read_pools(await self._cli.ask("pools"))
        if not pools:
            return None
        self._books.pools = {pool.name: pool for pool in pools}
        self._books.default_pool = self._settings.default_pool or pools[0].name
        instances = await self._cli.ask("show_instances")
        sessions = await self._cli.ask("show_sessions")
        if first:
            await self._cli.ask("show_configurations")
        return dw_json.read_sessions(sessions, instances)

    def _take_in(self, sessions: list[dw_json.Session], *, late: bool) -> None:
        saved = dw_state.load()
        self._books.loaded = True
        dw_recover.recover(self._books, self._stages, sessions, saved, self._known, late=late)
        self._save()

    def bb_p_reconfig(self) -> int:
        """Read burst_buffer.conf again, and look at the appliance's pools."""
        self._configure()
        if self._settings.default_pool:
            self._books.default_pool = self._settings.default_pool
        if self._books.loaded:
            start(self._look_at_pools, "agent of burst_buffer/datawarp")
        return SLURM_SUCCESS

    async def _look_at_pools(self) -> None:
        pools = dw_json.read_pools(await self._cli.ask("pools"))
        if pools:
            async with slurmctld.locked():
                self._books.pools = {pool.name: pool for pool in pools}
                slurmctld.schedule()

    def bb_p_get_system_size(self, name: str | None) -> int:
        """Return the MB of all pools."""
        return megabytes(sum(pool.total for pool in self._books.pools.values()))

    def bb_p_state_pack(self, uid: int, buffer: Buf, protocol_version: int) -> int:
        """Tell of pools and buffers; with PrivateData, people see their own alone."""
        everything = not self._settings.private or slurmctld.is_operator(uid)
        info(_NAME, self._books, self._settings, None if everything else uid).pack(buffer)
        return SLURM_SUCCESS

    # A job comes in.

    def bb_p_job_validate(self, job_desc: JobDesc, submit_uid: int) -> int:
        """Read the directives of a submission and check them; the job keeps the lines.

        Raises:
            SlurmError: A line is wrong, or the site does not allow it; the text names the line.
        """
        others, lines = _lines_of(job_desc.burst_buffer)
        lines += directives.script_lines(job_desc.script)
        request = directives.read_request(lines)
        if not request.lines:
            if others and conf["BurstBufferType"] == self.plugin_type:
                _refuse_text(others)
            return SLURM_SUCCESS
        nodes = job_desc.max_nodes
        directives.allowed(
            request,
            directives.Site(
                root=submit_uid == 0,
                welcome=self._settings.welcome(slurmctld.user_name(submit_uid)),
                persistent=self._settings.persistent or slurmctld.is_operator(submit_uid),
                max_nodes=None if nodes == NO_VAL else nodes,
                zero_nodes=job_desc.min_nodes == 0,
                pools=tuple(self._books.pools) if self._books.loaded else None,
            ),
        )
        text = "\n".join(filter(None, (others, request.text)))
        job_desc.burst_buffer = text  # type: ignore[misc] # slurmctld's takes this one attribute
        return SLURM_SUCCESS

    async def bb_p_job_validate2(self, job_ptr: JobRecord) -> int:
        """Have the appliance check the job's script.

        Raises:
            SlurmError: It does not like it; its words are the message.
        """
        bb = self._known(job_ptr)
        if bb is None:
            return SLURM_SUCCESS
        try:
            dw_files.write_script(job_ptr)
        except OSError as error:
            raise SlurmError(errno.ESLURM_WRITING_TO_FILE, str(error)) from error
        answer = await self._cli.job_process(job_ptr)
        if not answer.ok:
            self._books.forget(job_ptr.job_id)
            dw_files.remove_files(job_ptr.job_id)
            raise SlurmError(
                errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, f"{self.plugin_type}: {answer.message}"
            )
        self._stages.set_state(bb, BbState.PENDING)
        return SLURM_SUCCESS

    def _known(self, job: JobRecord) -> BbJob | None:
        """Return what a job wants of DataWarp, entering it if it is new; None for nothing."""
        bb = self._books.jobs.get(job.job_id)
        if bb is not None and bb.request.lines:
            return bb
        request = _request_of(job)
        if not request.lines:
            return None
        bb = BbJob(job_id=job.job_id, user_id=job.user_id, request=request)
        self._waiting.measure(job, bb)
        self._books.jobs[job.job_id] = bb
        return bb

    def bb_p_job_set_tres_cnt(
        self, job_ptr: JobRecord, tres_cnt: dict[str, int], locked: bool
    ) -> None:
        """Enter the MB that a job takes, of its own and of persistent buffers that it makes."""
        bb = self._known(job_ptr)
        if bb is None:
            return
        books = self._books
        named = sum(
            books.rounded(books.pool_of(each.pool), each.size) for each in bb.request.creates
        )
        alloc = books.allocs.get(bb.token)
        own = max(bb.size, alloc.size) if alloc is not None else bb.size
        tres = f"bb/{_NAME}"
        tres_cnt[tres] = tres_cnt.get(tres, 0) + megabytes(own + named)

    def bb_p_xlate_bb_2_tres_str(self, burst_buffer: str) -> str | None:
        """Return the TRES text of ``datawarp:2G``; None where DataWarp is not asked for."""
        pool = self._books.default_pool
        tres = slurmctld.tres_id(f"bb/{_NAME}")
        total = 0
        for word in burst_buffer.split(","):
            name, colon, size = word.strip().partition(":")
            if colon and name == _NAME:
                try:
                    total += self._books.rounded(pool, parse_size(size))
                except (ValueError, OverflowError) as error:
                    log.error("no size of a burst buffer", asked=word, error=str(error))
        return f"{tres}={megabytes(total)}" if total and tres else None

    # A job waits.

    def bb_p_job_get_est_start(self, job_ptr: JobRecord) -> int:
        """Return when the job could start, as far as its buffer tells."""
        bb = self._known(job_ptr)
        return slurmctld.time() if bb is None else self._waiting.est_start(job_ptr, bb)

    def bb_p_job_try_stage_in(self) -> int:
        """Start the stage-in of who is to start soonest, until a job has to wait for space."""
        if not self._books.loaded:
            return SLURM_SUCCESS
        for job in slurmctld.candidates():
            bb = self._known(job)
            if bb is None:
                continue
            self._afresh(bb)
            if bb.state < BbState.STAGING_IN and self._waiting.start_stage_in(job, bb) is Fit.LATER:
                break
        return SLURM_SUCCESS

    def bb_p_job_test_stage_in(self, job_ptr: JobRecord, test_only: bool) -> int:
        """Tell how far a job's stage-in is; without *test_only*, start it where there is space."""
        bb = self._known(job_ptr)
        if bb is None:
            return _DONE
        if not self._books.loaded or job_ptr.array_master:
            return _NOT
        self._afresh(bb)
        if bb.state < BbState.STAGING_IN:
            fits = not test_only and self._waiting.start_stage_in(job_ptr, bb) is Fit.NOW
            return _UNDER_WAY if fits else _NOT
        if bb.failed and not test_only and self._released(job_ptr, bb):
            return _NOT
        if bb.state is BbState.STAGING_IN:
            return _UNDER_WAY
        return _DONE if bb.state is BbState.STAGED_IN else _NOT

    def _afresh(self, bb: BbJob) -> None:
        """Let a job begin anew that went back into the queue, once its old buffer is gone."""
        if bb.state is BbState.COMPLETE and not bb.tearing_down:
            self._stages.set_state(bb, BbState.PENDING)

    def _released(self, job: JobRecord, bb: BbJob) -> bool:
        """Take down the buffer of a released job whose stage failed, so that it begins anew.

        Real Slurm does nothing of the kind: such a job waits until it is cancelled.
        """
        waits = bb.state in (BbState.STAGING_IN, BbState.PRE_RUN)
        if slurmctld.model == "modern" or not waits or not job.priority:
            return False
        self._stages.tear_down(bb, hurry=True)
        return True

    # A job starts.

    async def bb_p_job_begin(self, job_ptr: JobRecord) -> int:
        """Learn where the job finds its buffer, and have it mounted on its nodes.

        Raises:
            SlurmError: That fails, or there is no buffer.
        """
        bb = self._known(job_ptr)
        if bb is None:
            return SLURM_SUCCESS
        if not self._books.loaded or (not job_ptr.nodes and job_ptr.min_nodes):
            return SLURM_ERROR
        if bb.state < BbState.STAGED_IN or bb.state >= BbState.POST_RUN:
            job_ptr.state_reason = OPERATION
            job_ptr.state_desc = f"{self.plugin_type}: there is no buffer for the job"
            if bb.state < BbState.TEARDOWN:
                self._stages.tear_down(bb, hurry=True)
            return SLURM_ERROR
        if not bb.request.session:
            self._stages.set_state(bb, BbState.RUNNING)
            return SLURM_SUCCESS
        self._stages.set_state(bb, BbState.PRE_RUN)
        try:
            job_ptr.env_sup.update(await self._paths(job_ptr))
        except (OSError, ValueError) as error:
            bb.failed = True
            text = f"{self.plugin_type}: paths: {error}"
            raise SlurmError(errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, text) from error
        self._stages.pre_run(bb, job_ptr)
        return SLURM_SUCCESS

    async def _paths(self, job: JobRecord) -> dict[str, str]:
        """Return the variables that tell a job where its buffer is.

        Raises:
            OSError, ValueError: The appliance fails, or a file cannot be written or read.
        """
        dw_files.write_hosts(job)
        answer = await self._cli.paths(job.job_id)
        if not answer.ok:
            raise ValueError(answer.message)
        return dw_files.read_paths(job.job_id)

    def bb_p_job_revoke_alloc(self, job_ptr: JobRecord) -> int:
        """Let the job's buffer be as it was before begin, for it cannot start after all."""
        bb = self._known(job_ptr)
        if bb is None:
            return SLURM_SUCCESS
        if bb.state is BbState.RUNNING:
            self._stages.set_state(bb, BbState.STAGED_IN)
        elif bb.state is BbState.PRE_RUN:
            self._stages.set_state(bb, BbState.ALLOC_REVOKE)
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
        elif not bb.request.session:
            self._stages.tear_down(bb, hurry=False)
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
        """Tell how far stage-out is; a buffer that is in no table is none to wait for."""
        if not self._books.loaded:
            return _NOT
        bb = self._books.jobs.get(job_ptr.job_id)
        if bb is None or bb.state is BbState.PENDING or bb.state > BbState.STAGING_OUT:
            if bb is not None and bb.state is BbState.COMPLETE and not bb.tearing_down:
                # slurmctld is about to forget the job.
                self._books.forget(job_ptr.job_id)
            return _DONE
        return _NOT if bb.state < BbState.POST_RUN else _UNDER_WAY

    def bb_p_job_cancel(self, job_ptr: JobRecord) -> int:
        """Take a job's buffer down without staging anything out, also one that is down already."""
        bb = self._known(job_ptr)
        if bb is not None:
            self._end(bb)
        return SLURM_SUCCESS

    def _end(self, bb: BbJob) -> None:
        if bb.state is BbState.PENDING:
            self._stages.set_state(bb, BbState.COMPLETE)
        else:
            self._stages.tear_down(bb, hurry=True)

    # Besides.

    async def bb_p_get_status(self, argv: tuple[str, ...], uid: int, gid: int) -> str:
        """Return what dwstat says to ``scontrol show bbstat``."""
        return await self._cli.status(argv)


def _request_of(job: JobRecord) -> Request:
    """Return what a job that was taken in asks for; of text that is no directive, nothing."""
    try:
        return directives.read_request(directives.text_lines(job.burst_buffer))
    except SlurmError:
        return Request()


def _lines_of(text: str) -> tuple[str, list[Directive]]:
    """Return what of a ``--bb`` is none of DataWarp's, and the directives it stands for."""
    if not text:
        return "", []
    if text.startswith("#"):
        return "", directives.text_lines(text)
    if all(word.casefold().startswith("size=") for word in text.split()):
        return text, []
    return "", directives.text_lines(directives.translate(text))


def _refuse_text(text: str) -> NoReturn:
    raise SlurmError(
        errno.ESLURM_INVALID_BURST_BUFFER_REQUEST,
        f"--bb={text}: it asks for nothing of burst_buffer/{_NAME}; capacity=SIZE does",
    )
