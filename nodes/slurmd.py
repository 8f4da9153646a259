"""slurmd as a trio task: one handler an RPC."""

from collections.abc import Callable
from typing import Any

import attrs

from simctl.kernel.fabric import NEVER_US, Envelope, Mailbox, Unanswered
from simctl.kernel.outbox import Outbox
from simctl.kernel.procs import SIGCONT, SIGKILL, SIGTERM, Host, Process, RunsAs
from simctl.kernel.turns import Timer
from simctl.nodes.launch import batch_work, step_work
from simctl.nodes.prologs import (
    JobRun,
    NodeJob,
    PrologEnded,
    Prologs,
    node_script,
    of_allocation,
    of_batch_launch,
    of_launch,
    of_termination,
)
from simctl.nodes.suspend import Suspensions
from simctl.plugins.hooks import About, Handle, failed
from simctl.plugins.points.switch import (
    switch_p_alloc_jobinfo,
    switch_p_alloc_node_info,
    switch_p_build_node_info,
    switch_p_free_jobinfo,
    switch_p_free_node_info,
    switch_p_node_fini,
    switch_p_node_init,
    switch_p_pack_jobinfo,
    switch_p_pack_node_info,
    switch_p_unpack_jobinfo,
)
from simctl.plugins.site import Site
from simctl.stepd.manager import StepDaemon
from simctl.stepd.work import StepWork
from simctl.wire.buf import Buf
from simctl.wire.errno import (
    ESLURM_BATCH_ONLY,
    ESLURM_DISABLED,
    ESLURMD_CREDENTIAL_REVOKED,
    ESLURMD_EPILOG_FAILED,
    ESLURMD_INVALID_JOB_CREDENTIAL,
    ESLURMD_JOB_NOTRUNNING,
    ESLURMD_PROLOG_FAILED,
    ESLURMD_STEP_EXISTS,
    SLURM_SUCCESS,
)
from simctl.wire.ids import SECOND, step_name
from simctl.wire.messages import (
    Message,
    MessageEpilogComplete,
    MessageNodeRegistrationStatus,
    RequestAbortJob,
    RequestBatchJobLaunch,
    RequestCompleteBatchScript,
    RequestCompleteProlog,
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
    RequestTerminateJob,
    ResponseSlurmRc,
)
from simctl.wire.signals import SIG_TIME_LIMIT

_REVOKED_KEPT_US = 120 * SECOND
"""How long a revoked credential is remembered: as long as one is valid."""

_MIN_KILL_WAIT_S = 5

_NOT_STARTED = 127
"""The wait status that is reported of a batch script that never ran and cannot be requeued."""
_REPORT_AGAIN_US = 60 * SECOND
"""How far apart the tries to send a report are, while slurmctld cannot be reached."""

_REGISTER_AGAIN_US = SECOND
"""The same of the first registration."""


@attrs.frozen
class StepGone:
    """Tell slurmd that a step daemon of a job has ended."""

    job_id: int


@attrs.frozen
class KillWaitOver:
    """Tell slurmd that the steps of a job have had their time to end."""

    job_id: int


@attrs.frozen
class RegistrationDue:
    """Time to try again to register."""


@attrs.frozen
class ReportsDue:
    """Time to send the reports that a cut link held back."""


@attrs.define(eq=False)
class Termination:
    """A job that slurmd is ending: who asked, and the timer of its SIGKILL."""

    request: RequestTerminateJob
    asked_by: Mailbox | None
    epilog: str = ""
    ending: bool = False
    """Its epilog is under way."""

    timer: Timer | None = None


class Slurmd:
    """The daemon of one compute node."""

    def __init__(self, site: Site, host: Host) -> None:
        self.site = site
        self.host = host
        self.process: Process = site.procs.add(
            host, ppid=1, daemon="slurmd", role="slurmd", uid=0, runs_as=RunsAs.ROOT
        )
        name = f"slurmd@{host.name}"
        self.mailbox = site.fabric.mailbox(self.process, name, listed=True)
        self._stepds: dict[tuple[int, int], Mailbox] = {}
        self._runs: dict[tuple[int, int], int] = {}
        self._registered = False
        self._outbox = Outbox(site.fabric, self.process, self.mailbox, interval_us=_REPORT_AGAIN_US)
        self._terminations: dict[int, Termination] = {}
        self._revoked: dict[JobRun, int] = {}
        self._suspensions = Suspensions(site, self.process, self._steps_of)
        self._prologs = Prologs(site, self.process, self.mailbox)
        self._requeues: dict[int, JobRun] = {}
        """The runs of jobs that slurmctld was asked to requeue and has not answered about."""

        self._handlers: dict[type, Callable[[Envelope, Any], Any]] = {
            RequestLaunchTasks: self._launch_tasks,
            RequestBatchJobLaunch: self._batch_job_launch,
            RequestTerminateJob: self._terminate_job,
            RequestKillTimelimit: self._terminate_job,
            RequestKillPreempted: self._terminate_job,
            RequestSignalTasks: self._signal_tasks,
            RequestKillStepTimelimit: self._step_time_limit,
            RequestSuspendInt: self._suspend_int,
            RequestStepComplete: self._step_complete,
            RequestAbortJob: self._abort_job,
            RequestPing: self._ping,
            RequestNodeRegistrationStatus: self._registration_due,
            RegistrationDue: self._registration_due,
            RequestReconfigure: _ignore,
            ReportsDue: self._reports_due,
            Unanswered: self._unanswered,
            StepGone: self._step_gone,
            KillWaitOver: self._kill_wait_over,
            RequestLaunchProlog: self._launch_prolog,
            PrologEnded: self._prolog_ended,
            ResponseSlurmRc: self._response_rc,
        }

    def start(self) -> None:
        """Start the daemon in a turn of its own."""
        self.process.start(self._run, self.mailbox.name)

    def shut_down(self) -> None:
        """Have the daemon stop, where there is no controller to tell it."""
        if self.mailbox.open:
            self.mailbox.post(RequestShutdown())

    async def _run(self) -> None:
        if not await self._set_up():
            self.mailbox.close()
            self.process.exit(1 << 8)
            return
        await self._register()
        while True:
            envelope = await self.mailbox.receive()
            message = envelope.message
            if type(message) is RequestShutdown:
                break
            await self._handlers[type(message)](envelope, message)
        await self.site.hooks.call(switch_p_node_fini, self.process)
        await self.site.hooks.unload(self.process, "switch")
        self.mailbox.close()
        self.process.exit(0)

    async def _set_up(self) -> bool:
        """Load the switch plugin and set the node's interconnect up; either failing is fatal."""
        hooks = self.site.hooks
        if await hooks.load(self.process, "switch") and not failed(
            await hooks.call(switch_p_node_init, self.process)
        ):
            return True
        self.site.trace.note(
            "log", "fatal", self.process, args={"text": "Unable to initialize interconnect."}
        )
        return False

    async def _register(self) -> None:
        """Register with slurmctld, with the state of the node's switch."""
        hooks = self.site.hooks
        who = self.process
        packed = b""
        info = await hooks.call(switch_p_alloc_node_info, who)
        # A failure on the way is logged by the plugin's own error; the node registers all the same.
        if not failed(info):
            await hooks.call(switch_p_build_node_info, who, info)
            buffer = Buf()
            await hooks.call(switch_p_pack_node_info, who, info, buffer)
            packed = buffer.data()
        self._send_registration(packed)
        if not failed(info):
            await hooks.call(switch_p_free_node_info, who, info)

    def _send_registration(self, packed: bytes) -> None:
        """Send a registration; the first is tried again until slurmctld can be reached."""
        fabric = self.site.fabric
        controller = fabric.addresses.get("slurmctld")
        message = MessageNodeRegistrationStatus(
            node_name=self.host.name,
            status=SLURM_SUCCESS,
            steps=tuple((*key, self._runs[key]) for key in self._stepds),
            startup=not self._registered,
            switch_nodeinfo=packed,
        )
        if self._send(controller, message):
            self._registered = True
        elif not self._registered and controller is not None:
            due_us = fabric.next_try_us(self.host, controller.host, _REGISTER_AGAIN_US)
            if fabric.holds_back(self.process, controller) and due_us < NEVER_US:
                self.mailbox.post_at(due_us, RegistrationDue())

    async def _registration_due(self, _: Envelope, message: Any) -> None:
        """Register because slurmctld asks, or because the first try did not get through."""
        if type(message) is RequestNodeRegistrationStatus or not self._registered:
            await self._register()

    def _report(self, message: Message) -> bool:
        """Send slurmctld what it has to know, if it is there; what a cut link holds back, later."""
        kept = self._outbox.send(self.site.fabric.addresses.get("slurmctld"), message)
        self._watch_outbox()
        return kept

    def _watch_outbox(self) -> None:
        if self._outbox.due_us < NEVER_US:
            self.mailbox.post_at(self._outbox.due_us, ReportsDue())

    async def _reports_due(self, _: Envelope, __: ReportsDue) -> None:
        """Send the reports that were held back."""
        if self._outbox.due_us <= self.site.kernel.now_us:
            self._outbox.flush()
            self._watch_outbox()

    def _send(self, to: Mailbox | None, message: Message) -> bool:
        return self.site.fabric.send(self.process, to, message, self.mailbox)

    def _answer(self, envelope: Envelope, return_code: int) -> None:
        answer = ResponseSlurmRc.to(envelope.message, return_code)
        if not self._send(envelope.sender, answer):
            timeout_us = self.site.conf.message_timeout_s * SECOND
            self.site.fabric.answer_lost(envelope, self.mailbox, timeout_us)

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
        received = Buf(message.switch_job)
        if failed(
            await hooks.call(switch_p_unpack_jobinfo, who, credential, received, about=about)
        ):
            rc = ESLURMD_INVALID_JOB_CREDENTIAL
        else:
            rc = self._refusal(message.job_id, message.step_id, message.launch.restart_cnt)
        if rc:
            self._answer(envelope, rc)
            await hooks.call(switch_p_free_jobinfo, who, credential, about=about)
        elif self._prologs.path:

            async def launch() -> None:
                await self._launch_after_prolog(envelope, message, credential)

            await self._prologs.before(of_launch(message), launch)
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
            self._register_failure(rc)
        await self.site.hooks.call(switch_p_free_jobinfo, self.process, credential, about=about)

    async def _launch(
        self, envelope: Envelope, message: RequestLaunchTasks, credential: Handle, about: About
    ) -> None:
        """Fork the step daemon, hand it the credential, answer, and release the credential."""
        hooks = self.site.hooks
        who = self.process
        step = step_name(message.job_id, message.step_id)
        stepd = self._fork_stepd(message.job_id, message.step_id, step, message.launch.restart_cnt)
        handed = Buf()
        await hooks.call(switch_p_pack_jobinfo, who, credential, handed, about=about)
        self._run_stepd(stepd, step_work(message, handed.data()), envelope.sender)
        self._suspensions.launched(message.job_id)
        self._answer(envelope, SLURM_SUCCESS)
        await hooks.call(switch_p_free_jobinfo, who, credential, about=about)

    async def _batch_job_launch(self, envelope: Envelope, message: RequestBatchJobLaunch) -> None:
        """Answer that the launch is taken on; then the prolog, and the script's step daemon."""
        rc = self._refusal(message.job_id, message.step_id, message.restart_cnt)
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
            elif not self._refusal(message.job_id, message.step_id, message.restart_cnt):
                self._launch_batch(message)

        await self._prologs.before(of_batch_launch(message), launch)

    def _launch_batch(self, message: RequestBatchJobLaunch) -> None:
        step = step_name(message.job_id, message.step_id)
        stepd = self._fork_stepd(message.job_id, message.step_id, step, message.restart_cnt)
        self._run_stepd(stepd, batch_work(message, self.site), None)

    async def _launch_prolog(self, envelope: Envelope, message: RequestLaunchProlog) -> None:
        """Answer that the prolog is taken on; run it; then tell how it went."""
        key = (message.job_id, message.restart_cnt)
        rc = ESLURMD_CREDENTIAL_REVOKED if key in self._revoked else SLURM_SUCCESS
        self._answer(envelope, rc)
        if rc:
            return

        async def complete() -> None:
            failed = self._prologs.failed(key)
            if failed:
                self._fail_launch(key)
            self._report(
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
        request = RequestJobRequeue(job_id=key[0], hold=True, launch_failed=True)
        if self._prologs.report_once(key) and self._report(request):
            self._requeues[key[0]] = key

    async def _unanswered(self, _: Envelope, message: Unanswered) -> None:
        """Ask again for what a failed launch waits for, if a cut link has swallowed the answer."""
        if isinstance(message.request, RequestJobRequeue):
            self._report(message.request)

    async def _response_rc(self, envelope: Envelope, message: ResponseSlurmRc) -> None:
        """Go on after a failed launch: a job that may not be requeued ends; the node drains."""
        if message.answers != RequestJobRequeue.rpc:
            return
        key = self._requeues.pop(message.job_id, None)
        if key is not None and message.return_code in (ESLURM_DISABLED, ESLURM_BATCH_ONLY):
            self._report(
                RequestCompleteBatchScript(
                    job_id=message.job_id,
                    job_rc=_NOT_STARTED,
                    slurm_rc=ESLURMD_PROLOG_FAILED,
                    node_name=self.host.name,
                    restart_cnt=key[1],
                ),
            )
        self._register_failure(ESLURMD_PROLOG_FAILED)
        self._end_if_gone(message.job_id)

    def _register_failure(self, status: int) -> None:
        """Have the node drained, by a registration that bears no switch state."""
        self._report(
            MessageNodeRegistrationStatus(
                node_name=self.host.name,
                status=status,
                steps=tuple((*key, self._runs[key]) for key in self._stepds),
                startup=False,
                switch_nodeinfo=b"",
            ),
        )

    async def _prolog_ended(self, envelope: Envelope, message: PrologEnded) -> None:
        """Make the launches that waited for a prolog; a job that is to end may end now."""
        await self._prologs.go_on(message.key)
        self._end_if_gone(message.key[0])

    def _refusal(self, job_id: int, step_id: int, restart_cnt: int) -> int:
        """Return why a launch is refused, or 0."""
        if (job_id, restart_cnt) in self._revoked:
            return ESLURMD_CREDENTIAL_REVOKED
        if (job_id, step_id) in self._stepds:
            return ESLURMD_STEP_EXISTS
        return 0

    def _fork_stepd(self, job_id: int, step_id: int, step: str, restart_cnt: int) -> Process:
        stepd = self.process.fork(
            daemon="slurmstepd", role="manager", fresh=True, name=f"slurmstepd {step}"
        )
        stepd.job = job_id
        stepd.step = step
        self._stepds[job_id, step_id] = self.site.fabric.mailbox(
            stepd, f"stepd {step}@{self.host.name}"
        )
        self._runs[job_id, step_id] = restart_cnt
        return stepd

    def _run_stepd(self, stepd: Process, work: StepWork, srun: Mailbox | None) -> None:
        job = work.job
        key = (job.job_id, job.step_id)
        stepd.owner = job.uid
        daemon = StepDaemon(self.site, stepd, work, mailbox=self._stepds[key], srun=srun)

        async def body() -> None:
            await daemon.run()
            del self._stepds[key]
            del self._runs[key]
            if job.job_id in self._terminations:
                self.mailbox.post(StepGone(job.job_id))

        stepd.start(body)

    # Signals and ends.

    def _steps_of(self, job_id: int) -> list[tuple[tuple[int, int], Mailbox]]:
        return [item for item in self._stepds.items() if item[0][0] == job_id]

    def _signal_steps(self, job_id: int, signals: tuple[int, ...]) -> None:
        for (_, step_id), mailbox in self._steps_of(job_id):
            for signal in signals:
                self._send(
                    mailbox,
                    RequestSignalTasks(
                        job_id=job_id, step_id=step_id, signal=signal, container=True
                    ),
                )

    async def _signal_tasks(self, envelope: Envelope, message: RequestSignalTasks) -> None:
        """Hand a signal to the step daemon that is meant."""
        stepd = self._stepds.get((message.job_id, message.step_id))
        if stepd is not None:
            self._send(stepd, message)
        self._answer(envelope, SLURM_SUCCESS if stepd is not None else ESLURMD_JOB_NOTRUNNING)

    async def _step_time_limit(self, envelope: Envelope, message: RequestKillStepTimelimit) -> None:
        """Have the step daemon end a step that has reached its time limit."""
        stepd = self._stepds.get((message.job_id, message.step_id))
        if stepd is not None:
            request = RequestSignalTasks(
                job_id=message.job_id, step_id=message.step_id, signal=SIG_TIME_LIMIT
            )
            self._send(stepd, request)
        self._answer(envelope, SLURM_SUCCESS)

    async def _suspend_int(self, envelope: Envelope, message: RequestSuspendInt) -> None:
        """Answer, then have the job's step daemons stop their tasks, or let them go on."""
        self._answer(envelope, SLURM_SUCCESS)
        self._suspensions.take(message)

    async def _step_complete(self, envelope: Envelope, message: RequestStepComplete) -> None:
        """Hand the report of a daemon further down the tree to this node's step daemon."""
        stepd = self._stepds.get((message.job_id, message.step_id))
        if stepd is not None:
            self._send(stepd, message)
        else:
            # It has waited long enough and is gone: what comes after goes straight up.
            self._report(message)

    async def _abort_job(self, envelope: Envelope, message: RequestAbortJob) -> None:
        """Kill the steps of a job that slurmctld does not know; nobody waits for a report."""
        self._answer(envelope, SLURM_SUCCESS)
        self._revoke(message.job_id, message.restart_cnt)
        self._signal_steps(message.job_id, (SIGKILL,))

    async def _terminate_job(self, envelope: Envelope, message: RequestTerminateJob) -> None:
        """Revoke the job's credential and end its steps; once they are gone, run the epilog."""
        job_id = message.job_id
        self._answer(envelope, SLURM_SUCCESS)
        if job_id in self._terminations:
            return
        key = (job_id, message.restart_cnt)
        # A request that comes again is reported on again, and the epilog has run.
        epilog = "" if key in self._revoked else self.site.conf.epilog
        self._revoke(job_id, message.restart_cnt)
        termination = Termination(request=message, asked_by=envelope.sender, epilog=epilog)
        if not self._steps_of(job_id) and not self._is_starting(key):
            self._epilog(termination)
            return
        self._terminations[job_id] = termination
        # What is stopped gets no time to end by itself.
        suspended = self._suspensions.forget(job_id)
        self._signal_steps(job_id, (SIGKILL,) if suspended else (SIGCONT, SIGTERM))
        wait_us = max(self.site.conf.kill_wait_s, _MIN_KILL_WAIT_S) * SECOND
        termination.timer = self.mailbox.post_at(
            self.site.kernel.now_us + wait_us, KillWaitOver(job_id)
        )

    def _is_starting(self, key: JobRun) -> bool:
        """Tell whether a run of a job is in its prolog, or its failure is not settled."""
        return self._prologs.under_way(key) or self._requeues.get(key[0]) == key

    def _revoke(self, job_id: int, restart_cnt: int) -> None:
        now_us = self.site.kernel.now_us
        for key, since_us in list(self._revoked.items()):
            if since_us + _REVOKED_KEPT_US > now_us:
                break
            del self._revoked[key]
        self._revoked[job_id, restart_cnt] = now_us

    async def _kill_wait_over(self, envelope: Envelope, message: KillWaitOver) -> None:
        """Kill what has not ended by itself."""
        if message.job_id in self._terminations:
            self._signal_steps(message.job_id, (SIGKILL,))

    async def _step_gone(self, envelope: Envelope, message: StepGone) -> None:
        """Look whether that was the last step daemon of a job."""
        self._end_if_gone(message.job_id)

    def _end_if_gone(self, job_id: int) -> None:
        """Run the epilog of a terminated job once its step daemons and its prolog are gone."""
        termination = self._terminations.get(job_id)
        if termination is None or termination.ending or self._steps_of(job_id):
            return
        if self._is_starting((job_id, termination.request.restart_cnt)):
            return
        del self._terminations[job_id]
        if termination.timer is not None:
            termination.timer.cancel()
        self._epilog(termination)

    def _epilog(self, termination: Termination) -> None:
        """Run the job's epilog, if there is one, in a thread of its own; then report."""
        request = termination.request
        self._prologs.forget((request.job_id, request.restart_cnt))
        if not termination.epilog:
            self._report_epilog(request, SLURM_SUCCESS)
            return
        # The job is still being ended: a request that comes again gets its answer and no more.
        self._terminations[request.job_id] = termination
        termination.ending = True
        job: NodeJob = of_termination(request)
        script = node_script(self.site, self.process, "epilog", termination.epilog, job)

        async def body() -> None:
            status = await script.run()
            del self._terminations[request.job_id]
            self._report_epilog(request, ESLURMD_EPILOG_FAILED if status else SLURM_SUCCESS)

        self.process.start(body, f"epilog of job {request.job_id}")

    def _report_epilog(self, request: RequestTerminateJob, return_code: int) -> None:
        self._report(
            MessageEpilogComplete(
                job_id=request.job_id,
                restart_cnt=request.restart_cnt,
                return_code=return_code,
                node_name=self.host.name,
            ),
        )

    async def _ping(self, envelope: Envelope, message: RequestPing) -> None:
        """Answer that the node is there."""
        self._answer(envelope, SLURM_SUCCESS)


async def _ignore(_: Envelope, __: Any) -> None:
    """Take in a message that asks for nothing more."""
