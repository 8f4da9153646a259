"""slurmd as a trio task: one handler an RPC."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

from simctl.kernel.fabric import Envelope, Mailbox, Reachable, Unanswered
from simctl.kernel.procs import SIGKILL, Host, Process, RunsAs, wait_status
from simctl.nodes.authority import Authority, Launch
from simctl.nodes.checkpoints import Checkpoints
from simctl.nodes.controller_link import ControllerLink, RegistrationDue, ReportsDue
from simctl.nodes.credential_file import CredentialFile
from simctl.nodes.launch import batch_work, step_work
from simctl.nodes.prologs import (
    JobRun,
    PrologEnded,
    Prologs,
    of_allocation,
    of_batch_launch,
    of_launch,
)
from simctl.nodes.spool import Spool, nobody
from simctl.nodes.step_daemons import StepDaemons
from simctl.nodes.suspend import Suspensions, unpack_info
from simctl.nodes.switch_info import node_switch_info
from simctl.nodes.terminations import KillWaitOver, Terminations
from simctl.plugins.hooks import About, Handle, failed
from simctl.plugins.points.switch import (
    switch_p_alloc_jobinfo,
    switch_p_clear_node_state,
    switch_p_free_jobinfo,
    switch_p_node_fini,
    switch_p_node_init,
    switch_p_pack_jobinfo,
    switch_p_unpack_jobinfo,
)
from simctl.plugins.points.switch_besides import switch_p_reconfig, switch_p_slurmd_init
from simctl.site import Site
from simctl.wire.buf import Buf
from simctl.wire.credentials import JobCredential
from simctl.wire.errno import (
    ESLURM_BATCH_ONLY,
    ESLURM_DISABLED,
    ESLURM_DUPLICATE_JOB_ID,
    ESLURM_INVALID_JOB_ID,
    ESLURM_USER_ID_MISSING,
    ESLURMD_CREATE_BATCH_SCRIPT_ERROR,
    ESLURMD_CREDENTIAL_REVOKED,
    ESLURMD_FORK_FAILED,
    ESLURMD_INVALID_JOB_CREDENTIAL,
    ESLURMD_PROLOG_FAILED,
    ESLURMD_STEP_EXISTS,
    SLURM_SUCCESS,
)
from simctl.wire.ids import SECOND, SLURM_BATCH_SCRIPT, step_name
from simctl.wire.messages import (
    Message,
    MessageNodeRegistrationStatus,
    RequestAbortJob,
    RequestBatchJobLaunch,
    RequestCheckpointTasks,
    RequestCompleteBatchScript,
    RequestCompleteProlog,
    RequestJobNotify,
    RequestJobRequeue,
    RequestKillPreempted,
    RequestKillStepTimelimit,
    RequestKillTimelimit,
    RequestLaunchProlog,
    RequestLaunchTasks,
    RequestNodeRegistrationStatus,
    RequestPing,
    RequestReconfigure,
    RequestShutdown,
    RequestSignalTasks,
    RequestStepComplete,
    RequestSuspendInt,
    RequestSwitchInfo,
    RequestTerminateJob,
    ResponseSlurmRc,
)
from simctl.wire.signals import SIG_TIME_LIMIT

_CONFIRMED = (RequestJobRequeue, RequestCompleteProlog, RequestCompleteBatchScript)
"""What slurmctld answers, and is told again until it has."""

_NOT_STARTED = 127
"""The wait status that is reported of a batch script that never ran and cannot be requeued."""

_NEVER_RUN: Final = -1
"""The wait status that is reported of a batch script whose job ended during its prolog."""

_NO_INTERCONNECT: Final = "Unable to initialize interconnect."
_TRIES_OF_A_REPORT: Final = 5
"""How often a report is brought to its step daemon, a second apart, before it goes straight up."""

_STOPS_WITHIN_US: Final = 120 * SECOND
"""How long a slurmd that is told to stop waits for what it has begun."""

_ANSWERED: Final = frozenset(
    {
        *(RequestLaunchTasks, RequestBatchJobLaunch, RequestLaunchProlog),
        *(RequestTerminateJob, RequestKillTimelimit, RequestKillPreempted, RequestAbortJob),
        *(RequestSignalTasks, RequestKillStepTimelimit, RequestSuspendInt, RequestJobNotify),
        *(RequestCheckpointTasks, RequestSwitchInfo, RequestPing),
    }
)
"""The requests that slurmd answers, some of them a while later."""


@attrs.frozen
class StepGone:
    """Tell slurmd that a step daemon of a job has ended."""

    job_id: int


@attrs.frozen
class Launched:
    """A step whose daemon was forked: who asked for it, and slurmd's copy of its credential."""

    envelope: Envelope
    credential: Handle
    about: About


@attrs.frozen
class StepThere:
    """Tell slurmd that the daemon of a step that it has launched is there, or has died."""

    launched: Launched
    rc: int
    after: int
    """What slurmd did last of the launch."""

    cause: int
    """What the step daemon did last."""


@attrs.frozen
class ThreadEnded:
    """Tell a slurmd that stops that a thread of its has seen something through."""


@attrs.frozen
class ReportAgain:
    """Time to look for the step daemon again that a report is for."""

    report: RequestStepComplete
    tries: int


class Slurmd:
    """The daemon of one compute node; *spool* is what another has left there."""

    def __init__(
        self, site: Site, host: Host, *, clean: bool = False, spool: Spool | None = None
    ) -> None:
        self.site = site
        self._clean = clean
        self.host = host
        self.spool = Spool() if spool is None else spool
        self.process: Process = site.procs.add(
            host, ppid=1, daemon="slurmd", role="slurmd", uid=0, runs_as=RunsAs.ROOT
        )
        name = f"slurmd@{host.name}"
        self.mailbox = site.fabric.mailbox(self.process, name, listed=True)
        self.at_end: Callable[[], None] | None = None
        """Called once it has stopped."""

        self._file = CredentialFile(site, self.process, self.spool)
        self._file.open(follows=spool is not None)
        self._authority = Authority(site, self.process, self.spool)
        self._owed: dict[int, Envelope] = {}
        """Requests that it has yet to answer, by the number of their sending."""

        self._steps = StepDaemons(
            site, self.process, self.mailbox, self.spool, gone=self._step_is_gone
        )
        self._known: dict[int, None] = {}
        """Jobs that slurmctld had launched before, and is told so."""
        self._prologs = Prologs(site, self.process, self.mailbox, self.spool.prologs)
        self._link = ControllerLink(
            site,
            self.process,
            self.mailbox,
            listed=self._steps.listed,
            starting=self._prologs.running,
            left=self._steps.left,
        )
        self._suspensions = Suspensions(site, self.process, self._steps.of_job)
        self._checkpoints = Checkpoints(
            site, self.process, self._authority, self._steps.find, self._answer
        )
        self._terminations = Terminations(
            site,
            self.process,
            self.mailbox,
            self.spool,
            told=self._wake_if_stopping,
            steps=self._steps,
            prologs=self._prologs,
            suspensions=self._suspensions,
            link=self._link,
        )

    def start(self) -> None:
        """Start the daemon in a turn of its own."""
        self.process.start(self._run, self.mailbox.name)

    def shut_down(self) -> None:
        """Have the daemon stop, where there is no controller to tell it."""
        if self.mailbox.open:
            self.mailbox.post(RequestShutdown())

    def die(self) -> None:
        """End at once, as by SIGKILL: clients that wait for an answer find the connection broken.

        Step daemons go on; those that have not been told yet what to do end.
        """
        self._leave()
        self.site.procs.kill(self.process)
        self._tell_end()

    def lose(self) -> None:
        """Be gone with the node, which went down; files are still there."""
        self._file.close()
        self.spool.lose()

    def _leave(self) -> None:
        """Answer no client any more, also none that has asked for something."""
        self.mailbox.close(breaks=True)
        for envelope in self._owed.values():
            self.mailbox.break_off(envelope)
        self._owed.clear()
        self._file.close()
        spool = self.spool
        spool.gone = nobody
        for key, socket in list(spool.sockets.items()):
            if socket.daemon is None:
                # It reads from a pipe what it is to do, and finds that closed.
                del spool.sockets[key]
                socket.mailbox.close()
                socket.mailbox.process.exit(wait_status(1))

    async def _run(self) -> None:
        if not await self._set_up():
            self._leave()
            self.process.exit(wait_status(1))
            self._tell_end()
            return
        await self._link.register()
        while True:
            envelope = await self.mailbox.receive()
            message = envelope.message
            if type(message) is RequestShutdown and self._authority.trusts(envelope.sender):
                break
            await self._handle(envelope, message)
        await self._finish()
        await self.site.hooks.call(switch_p_node_fini, self.process)
        await self.site.hooks.unload(self.process, "switch")
        self._leave()
        self._end_threads()
        self.process.exit(0)
        self._tell_end()

    def _tell_end(self) -> None:
        at_end, self.at_end = self.at_end, None
        if at_end is not None:
            at_end()

    def _handle(self, envelope: Envelope, message: Any) -> Awaitable[None]:
        """Return what handles a message or a notice, once it is awaited."""
        if envelope.sent == 0:
            # A notice of its own: what it follows from its handler knows.
            self.site.trace.choose(self.process)
        elif not self._authority.trusts(envelope.sender) and self._refuses(envelope):
            return _nothing()
        elif type(message) in _ANSWERED:
            self._owed[envelope.sent] = envelope
        return HANDLERS[type(message)](self, envelope, message)

    async def _finish(self) -> None:
        """Accept nothing new, and see through what was begun, but not for ever."""
        self.mailbox.stop_listening()
        until_us = self.site.kernel.now_us + _STOPS_WITHIN_US
        while self._is_busy:
            envelope = await self.mailbox.receive_until(until_us)
            if envelope is None:
                self.site.trace.note(
                    "log", "stops_waiting", self.process, args={"after_us": _STOPS_WITHIN_US}
                )
                return
            if type(envelope.message) is not RequestShutdown:
                await self._handle(envelope, envelope.message)

    @property
    def _is_busy(self) -> bool:
        """Return whether it has yet to answer a client, or to bring a job's end or start about."""
        return bool(self._owed or self._terminations.under_way or self._prologs.running())

    def _end_threads(self) -> None:
        """End what is still under way, as the end of the process does."""
        for thread in self.process.threads:
            if thread is not self.site.kernel.current:
                self.site.kernel.kill(thread)

    async def _set_up(self) -> bool:
        """Load the switch plugin and set the node's interconnect up; any failure is fatal."""
        problem = await self._set_up_switch()
        if problem:
            self.site.trace.fatal(self.process, problem, self.process.why)
        return not problem

    async def _set_up_switch(self) -> str:
        """Return what is fatal, or nothing."""
        hooks = self.site.hooks
        who = self.process
        if not await hooks.load(who, "switch"):
            return f"Can't find plugin for {self.site.conf.switch_type}"
        if failed(await hooks.call(switch_p_node_init, who)):
            return _NO_INTERCONNECT
        if self._clean:
            self._clear_up()
            if failed(await hooks.call(switch_p_clear_node_state, who)):
                return _NO_INTERCONNECT
        await hooks.call_besides(switch_p_slurmd_init, who)
        return ""

    def _clear_up(self) -> None:
        """Kill what another slurmd has left here: a clean start wants nothing of it."""
        for job_id in self._steps.jobs():
            self._steps.signal_job(job_id, (SIGKILL,))
        for job_id, _ in list(self.spool.left):
            self.spool.kill_left(job_id)

    def _refuses(self, envelope: Envelope) -> bool:
        """Refuse a request that only root and SlurmUser may make; an answer is not answered."""
        rc = self._authority.refusal(envelope)
        if rc and not isinstance(envelope.message, ResponseSlurmRc):
            self._answer(envelope, rc)
        return bool(rc)

    def _send(self, to: Mailbox | None, message: Message) -> bool:
        return self.site.fabric.send(self.process, to, message, self.mailbox)

    def _answer(self, envelope: Envelope, return_code: int) -> None:
        answer = ResponseSlurmRc.to(envelope.message, return_code)
        if not self._send(envelope.sender, answer):
            timeout_us = self.site.conf.message_timeout_s * SECOND
            self.site.fabric.answer_lost(envelope, self.mailbox, timeout_us)
        self._owed.pop(envelope.sent, None)
        self._wake_if_stopping()

    def _wake_if_stopping(self) -> None:
        """Have a slurmd that stops look whether a thread of its has seen the last thing through."""
        if not self.mailbox.open:
            self.mailbox.post(ThreadEnded())

    async def _thread_ended(self, _: Envelope, __: "ThreadEnded") -> None:
        """Do nothing: a slurmd that stops looks around after each notice."""

    # Launches.

    async def _launch_tasks(self, envelope: Envelope, message: RequestLaunchTasks) -> None:
        """Unpack the credential, see the prolog through if there is one, and launch."""
        hooks = self.site.hooks
        who = self.process
        step = step_name(message.job_id, message.step_id)
        about = About(job=message.job_id, step=step)
        if self.site.model == "guide":
            credential = await hooks.call(switch_p_alloc_jobinfo, who, about=about)
            if failed(credential):
                self._answer(envelope, ESLURMD_INVALID_JOB_CREDENTIAL)
                return
        else:
            credential = await hooks.blank(who, switch_p_alloc_jobinfo)
        received = message.switch_job.opened()
        if failed(
            await hooks.call(switch_p_unpack_jobinfo, who, credential, received, about=about)
        ):
            rc = ESLURMD_INVALID_JOB_CREDENTIAL
        else:
            wanted = Launch(
                job_id=message.job_id,
                step_id=message.step_id,
                restart_cnt=message.launch.restart_cnt,
                uid=message.launch.uid,
                nodeid=message.nodeid,
            )
            rc = self._authority.launch_refusal(envelope, wanted, message.launch.credential)
            rc = rc or self._used_up(envelope, wanted, message.launch.credential)
        if rc:
            self._answer(envelope, rc)
            await hooks.call(switch_p_free_jobinfo, who, credential, about=about)
        elif self._prologs.path:

            async def launch() -> None:
                await self._launch_after_prolog(envelope, message, credential)

            await self._prologs.before(of_launch(message), launch, first=False)
        else:
            await self._launch(envelope, message, credential, about)

    async def _launch_after_prolog(
        self, envelope: Envelope, message: RequestLaunchTasks, credential: Handle
    ) -> None:
        """Launch if the prolog went well and the job is still to run; else say why not."""
        rc = self._refusal(message.job_id, message.step_id, message.launch.restart_cnt)
        key = (message.job_id, message.launch.restart_cnt)
        if self._prologs.failed(key):
            rc = ESLURMD_PROLOG_FAILED
        about = About(job=message.job_id, step=step_name(message.job_id, message.step_id))
        if not rc:
            await self._launch(envelope, message, credential, about)
            return
        self._answer(envelope, rc)
        if rc == ESLURMD_PROLOG_FAILED and self._prologs.report_once(key):
            self._link.register_failure(rc)
        await self.site.hooks.call(switch_p_free_jobinfo, self.process, credential, about=about)

    async def _launch(
        self, envelope: Envelope, message: RequestLaunchTasks, credential: Handle, about: About
    ) -> None:
        """Fork the step daemon, hand it the credential, answer, and release the credential."""
        hooks = self.site.hooks
        who = self.process
        stepd = self._steps.fork(message.job_id, message.step_id, message.launch.restart_cnt)
        handed = Buf()
        await hooks.call(switch_p_pack_jobinfo, who, credential, handed, about=about)
        work = step_work(message, hooks.packed(who, handed))
        launched = Launched(envelope, credential, about)
        after = who.cause

        def there(rc: int) -> None:
            self.mailbox.post(StepThere(launched, rc, after, stepd.cause))

        # Model guide's slurmd hands all over as it forks, and waits for nothing.
        waits = self.site.model == "modern"
        begun = self._steps.run(stepd, work, envelope.sender, there if waits else None)
        self._suspensions.launched(message.job_id)
        if not begun or not waits:
            await self._answer_launch(launched, SLURM_SUCCESS if begun else ESLURMD_FORK_FAILED)

    async def _step_is_there(self, _: Envelope, message: StepThere) -> None:
        """Answer a launch once its step daemon is there. Source: _forkexec_slurmstepd()."""
        self.process.cause = message.after
        self.site.trace.join(self.process, message.cause)
        await self._answer_launch(message.launched, message.rc)

    async def _answer_launch(self, launched: Launched, rc: int) -> None:
        """Answer a launch, and release the credential that was handed to the step daemon."""
        self._answer(launched.envelope, rc)
        await self.site.hooks.call(
            switch_p_free_jobinfo, self.process, launched.credential, about=launched.about
        )

    async def _batch_job_launch(self, envelope: Envelope, message: RequestBatchJobLaunch) -> None:
        """Answer that the launch is taken on; then the prolog, and the script's step daemon."""
        wanted = Launch(
            job_id=message.job_id,
            step_id=message.step_id,
            restart_cnt=message.restart_cnt,
            uid=message.job_desc.uid,
            nodeid=0,
        )
        rc = self._authority.launch_refusal(envelope, wanted, message.credential)
        key = (message.job_id, message.restart_cnt)
        known = self.spool.knows(key, self.site.kernel.now_us) and self.site.model == "modern"
        if known and not rc and (message.job_id, message.step_id) not in self._steps:
            # slurmctld has forgotten that the job has run: it started before the last save.
            self._answer(envelope, SLURM_SUCCESS)
            self._known[message.job_id] = None
            request = RequestJobRequeue(
                job_id=message.job_id,
                hold=True,
                launch_failed=True,
                restart_cnt=message.restart_cnt,
            )
            if self._link.report(request):
                self._terminations.requeues[message.job_id] = key
            return
        rc = rc or self._used_up(envelope, wanted)
        self._answer(envelope, rc)
        if rc:
            return
        if not self._prologs.path:
            self._launch_batch(message)
            return

        async def launch() -> None:
            key = (message.job_id, message.restart_cnt)
            if self._prologs.failed(key):
                self._fail_launch(key)
            elif rc := self._refusal(message.job_id, message.step_id, message.restart_cnt):
                self._tell_not_launched(message, rc)
            else:
                self._launch_batch(message)

        await self._prologs.before(of_batch_launch(message), launch)

    def _launch_batch(self, message: RequestBatchJobLaunch) -> None:
        try:
            work = batch_work(message, self.site)
        except OSError as error:
            self._tell_unspooled(message, error)
            return
        stepd = self._steps.fork(message.job_id, message.step_id, message.restart_cnt)
        self.spool.scripts[message.job_id, message.restart_cnt] = None
        self._steps.run(stepd, work, None)
        self._suspensions.launched(message.job_id)

    def _tell_not_launched(self, message: RequestBatchJobLaunch, rc: int) -> None:
        """Report a script that was not started, because its job ended during the prolog."""
        if self.site.model == "modern" and rc == ESLURMD_CREDENTIAL_REVOKED:
            self._link.report(
                RequestCompleteBatchScript(
                    job_id=message.job_id,
                    job_rc=_NEVER_RUN,
                    slurm_rc=rc,
                    node_name=self.host.name,
                    restart_cnt=message.restart_cnt,
                )
            )

    def _tell_unspooled(self, message: RequestBatchJobLaunch, error: OSError) -> None:
        """Report a script that could not be put into the spool directory: it was not run."""
        args = {"path": error.filename, "problem": error.strerror}
        self.site.trace.note("log", "script_not_spooled", self.process, args=args)
        self._link.report(
            RequestCompleteBatchScript(
                job_id=message.job_id,
                job_rc=wait_status(1),
                slurm_rc=ESLURMD_CREATE_BATCH_SCRIPT_ERROR,
                node_name=self.host.name,
                restart_cnt=message.restart_cnt,
            )
        )

    async def _launch_prolog(self, envelope: Envelope, message: RequestLaunchProlog) -> None:
        """Answer that the prolog is taken on; run it; then tell how it went."""
        key = (message.job_id, message.restart_cnt)
        rc = ESLURMD_CREDENTIAL_REVOKED if self._terminations.is_revoked(key) else SLURM_SUCCESS
        self._answer(envelope, rc)
        if rc:
            return

        async def complete() -> None:
            failed = self._prologs.failed(key)
            if failed:
                self._fail_launch(key)
            self._link.report(
                RequestCompleteProlog(
                    job_id=message.job_id,
                    restart_cnt=message.restart_cnt,
                    prolog_rc=ESLURMD_PROLOG_FAILED if failed else SLURM_SUCCESS,
                    node_name=self.host.name,
                ),
            )

        if self._prologs.path:
            await self._prologs.before(of_allocation(message), complete)
        else:
            await complete()

    # Prologs that fail.

    def _fail_launch(self, key: JobRun) -> None:
        """Ask for the job to be requeued and held; the answer says what else is to be done.

        Until then the job does not end here, so that the node drains before it is free again.
        """
        request = RequestJobRequeue(
            job_id=key[0], hold=True, launch_failed=True, restart_cnt=key[1]
        )
        if self._prologs.report_once(key) and self._link.report(request):
            self._terminations.requeues[key[0]] = key

    async def _reachable(self, _: Envelope, __: Reachable) -> None:
        """Tell slurmctld, which is back, what it has missed."""
        await self._link.try_again()

    async def _unanswered(self, _: Envelope, message: Unanswered) -> None:
        """Say again what slurmctld has to know and did not confirm.

        A report that was lost on its way is sent again with what has come after it.
        """
        request = message.request
        if message.for_ever:
            return
        if isinstance(request, MessageNodeRegistrationStatus) and not request.status:
            await self._link.register_again(request)
        elif isinstance(request, _CONFIRMED) and not message.lost:
            self._link.report(request)

    async def _response_rc(self, envelope: Envelope, message: ResponseSlurmRc) -> None:
        """Go on after a failed launch: a job that may not be requeued ends; the node drains."""
        if message.answers != RequestJobRequeue.rpc:
            return
        key = self._terminations.requeues.pop(message.job_id, None)
        if key is not None and message.return_code in (ESLURM_DISABLED, ESLURM_BATCH_ONLY):
            self._link.report(
                RequestCompleteBatchScript(
                    job_id=message.job_id,
                    job_rc=_NOT_STARTED,
                    slurm_rc=ESLURMD_PROLOG_FAILED,
                    node_name=self.host.name,
                    restart_cnt=key[1],
                ),
            )
        known = message.job_id in self._known
        self._known.pop(message.job_id, None)
        status = ESLURM_DUPLICATE_JOB_ID if known else ESLURMD_PROLOG_FAILED
        self._link.register_failure(status)
        self._terminations.go_on(message.job_id)

    async def _prolog_ended(self, envelope: Envelope, message: PrologEnded) -> None:
        """Make the launches that waited for a prolog; a job that is to end may end now."""
        await self._prologs.go_on(message.key)
        self._terminations.go_on(message.key[0])

    def _used_up(
        self, envelope: Envelope, launch: Launch, credential: JobCredential | None = None
    ) -> int:
        """Return why a credential launches nothing any more, or 0: then it is used."""
        rc = self._refusal(launch.job_id, launch.step_id, launch.restart_cnt)
        if rc == ESLURMD_CREDENTIAL_REVOKED:
            self._authority.tell(envelope, rc, "the job ends here, or has ended")
        made_us = credential.made_us if credential is not None else 0
        return rc or self._authority.replay(envelope, launch, made_us)

    def _refusal(self, job_id: int, step_id: int, restart_cnt: int) -> int:
        """Return why a launch is refused, or 0."""
        if self._terminations.is_revoked((job_id, restart_cnt)):
            return ESLURMD_CREDENTIAL_REVOKED
        if (job_id, step_id) in self._steps:
            return ESLURMD_STEP_EXISTS
        return 0

    # Signals and ends.

    async def _signal_tasks(self, envelope: Envelope, message: RequestSignalTasks) -> None:
        """Hand a signal to the step daemon that is meant."""
        stepd = self._steps.find(message.job_id, message.step_id)
        if stepd is not None and not self._authority.is_for(envelope.sender, stepd.process.owner):
            self._authority.tell(envelope, ESLURM_USER_ID_MISSING, "it is another user's step")
            self._answer(envelope, ESLURM_USER_ID_MISSING)
            return
        if stepd is not None:
            self._send(stepd, message)
        self._answer(envelope, SLURM_SUCCESS if stepd is not None else ESLURM_INVALID_JOB_ID)

    async def _step_time_limit(self, envelope: Envelope, message: RequestKillStepTimelimit) -> None:
        """Have the step daemon end a step that has reached its time limit."""
        stepd = self._steps.find(message.job_id, message.step_id)
        if stepd is not None:
            request = RequestSignalTasks(
                job_id=message.job_id, step_id=message.step_id, signal=SIG_TIME_LIMIT
            )
            self._send(stepd, request)
        self._answer(envelope, SLURM_SUCCESS)

    async def _job_notify(self, envelope: Envelope, message: RequestJobNotify) -> None:
        """Answer, then have the daemon of the batch script write a line for the user."""
        self._answer(envelope, SLURM_SUCCESS)
        stepd = self._steps.find(message.job_id, SLURM_BATCH_SCRIPT)
        if stepd is not None:
            self._send(stepd, message)

    async def _suspend_int(self, envelope: Envelope, message: RequestSuspendInt) -> None:
        """Answer, then have the job's step daemons stop their tasks, or let them go on.

        A message whose part for the switch cannot be unpacked is none. One that is heeded already,
        or has been overtaken by what was said since, is only answered.
        """
        gone = self._terminations.is_revoked((message.job_id, message.restart_cnt))
        if gone or not self._suspensions.is_news(message):
            self._answer(envelope, SLURM_SUCCESS)
            return
        info = await unpack_info(self.site.hooks, self.process, message)
        if info is None:
            self._owed.pop(envelope.sent, None)
            return
        self._answer(envelope, SLURM_SUCCESS)
        self._suspensions.take(message, info)

    async def _checkpoint_tasks(self, envelope: Envelope, message: RequestCheckpointTasks) -> None:
        """Have the step daemon save its tasks; the answer comes once that is done."""
        self._checkpoints.take(envelope, message)

    async def _step_complete(self, envelope: Envelope, message: RequestStepComplete) -> None:
        """Hand the report of a daemon further down the tree to this node's step daemon."""
        self._hand_up(message, tries=1)

    async def _report_again(self, _: Envelope, message: ReportAgain) -> None:
        self._hand_up(message.report, message.tries)

    def _hand_up(self, report: RequestStepComplete, tries: int) -> None:
        """Give a report to this node's step daemon, which may not be there yet, or no more.

        A prolog may last longer here than there. One that is gone has waited long enough: what
        comes after goes straight up.
        """
        step = (report.job_id, report.step_id)
        stepd = self._steps.find(*step)
        if stepd is not None:
            self._send(stepd, report)
        elif step not in self.spool.begun and tries < _TRIES_OF_A_REPORT:
            again = ReportAgain(report, tries + 1)
            self.mailbox.post_at(self.site.kernel.now_us + SECOND, again)
        else:
            self._link.report(report)

    async def _abort_job(self, envelope: Envelope, message: RequestAbortJob) -> None:
        """Answer, then kill what runs of the job."""
        self._answer(envelope, SLURM_SUCCESS)
        self._terminations.abort((message.job_id, message.restart_cnt))

    async def _terminate_job(self, envelope: Envelope, message: RequestTerminateJob) -> None:
        """Answer, then end the job here."""
        self._answer(envelope, SLURM_SUCCESS)
        self._terminations.terminate(message)

    async def _kill_wait_over(self, envelope: Envelope, message: KillWaitOver) -> None:
        """Kill what has not ended by itself."""
        self._terminations.kill(message.job_id)

    def _step_is_gone(self, job_id: int, cause: int) -> None:
        self._terminations.note_gone(job_id, cause)
        if job_id in self._terminations:
            self.mailbox.post(StepGone(job_id))

    async def _step_gone(self, envelope: Envelope, message: StepGone) -> None:
        """Look whether that was the last step daemon of a job."""
        self._terminations.go_on(message.job_id)

    # The link to slurmctld.

    async def _registration_due(self, _: Envelope, message: Any) -> None:
        """Register because slurmctld asks, or because the first try did not get through."""
        if type(message) is RequestNodeRegistrationStatus or not self._link.registered:
            await self._link.register()

    async def _reports_due(self, _: Envelope, __: ReportsDue) -> None:
        """Send the reports that were held back."""
        self._link.send_reports()

    async def _switch_info(self, envelope: Envelope, message: RequestSwitchInfo) -> None:
        """Tell what the switch plugin says of the node."""
        answer = await node_switch_info(self.site.hooks, self.process, message)
        self._send(envelope.sender, answer)
        self._owed.pop(envelope.sent, None)

    async def _reconfigure(self, _: Envelope, __: RequestReconfigure) -> None:
        """Have the switch plugin read its configuration again."""
        await self.site.hooks.call_besides(switch_p_reconfig, self.process)

    async def _ping(self, envelope: Envelope, message: RequestPing) -> None:
        """Answer that the node is there."""
        self._answer(envelope, SLURM_SUCCESS)


HANDLERS: Final[dict[type, Callable[[Slurmd, Envelope, Any], Awaitable[None]]]] = {
    RequestLaunchTasks: Slurmd._launch_tasks,
    RequestBatchJobLaunch: Slurmd._batch_job_launch,
    RequestTerminateJob: Slurmd._terminate_job,
    RequestKillTimelimit: Slurmd._terminate_job,
    RequestKillPreempted: Slurmd._terminate_job,
    RequestSignalTasks: Slurmd._signal_tasks,
    RequestKillStepTimelimit: Slurmd._step_time_limit,
    RequestSuspendInt: Slurmd._suspend_int,
    RequestCheckpointTasks: Slurmd._checkpoint_tasks,
    RequestJobNotify: Slurmd._job_notify,
    RequestStepComplete: Slurmd._step_complete,
    ReportAgain: Slurmd._report_again,
    RequestAbortJob: Slurmd._abort_job,
    RequestPing: Slurmd._ping,
    RequestSwitchInfo: Slurmd._switch_info,
    RequestNodeRegistrationStatus: Slurmd._registration_due,
    RegistrationDue: Slurmd._registration_due,
    RequestReconfigure: Slurmd._reconfigure,
    ReportsDue: Slurmd._reports_due,
    Unanswered: Slurmd._unanswered,
    Reachable: Slurmd._reachable,
    StepGone: Slurmd._step_gone,
    ThreadEnded: Slurmd._thread_ended,
    KillWaitOver: Slurmd._kill_wait_over,
    RequestLaunchProlog: Slurmd._launch_prolog,
    PrologEnded: Slurmd._prolog_ended,
    StepThere: Slurmd._step_is_there,
    ResponseSlurmRc: Slurmd._response_rc,
}
"""Who takes in which message or notice."""


async def _nothing() -> None:
    """Stand in for the handler of a request that is refused."""
