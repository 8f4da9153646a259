"""slurmd as a trio task: one handler an RPC."""

from collections.abc import Callable
from typing import Any

import attrs

from simctl.kernel.fabric import NEVER_US, Envelope, Mailbox, Unanswered
from simctl.kernel.outbox import Outbox
from simctl.kernel.procs import SIGCONT, SIGKILL, SIGTERM, Host, Process, RunsAs
from simctl.kernel.turns import Timer
from simctl.nodes.launch import batch_work, step_work
from simctl.plugins.hooks import About, failed
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
from simctl.stepd.manager import StepDaemon, StepWork
from simctl.wire.buf import Buf
from simctl.wire.errno import (
    ESLURMD_CREDENTIAL_REVOKED,
    ESLURMD_INVALID_JOB_CREDENTIAL,
    ESLURMD_JOB_NOTRUNNING,
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
    RequestKillTimelimit,
    RequestLaunchTasks,
    RequestNodeRegistrationStatus,
    RequestPing,
    RequestReconfigure,
    RequestShutdown,
    RequestSignalTasks,
    RequestStepComplete,
    RequestTerminateJob,
    ResponseSlurmRc,
)

_REVOKED_KEPT_US = 120 * SECOND
"""How long a revoked credential is remembered: as long as one is valid."""

_MIN_KILL_WAIT_S = 5

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
        self._revoked: dict[tuple[int, int], int] = {}
        self._handlers: dict[type, Callable[[Envelope, Any], Any]] = {
            RequestLaunchTasks: self._launch_tasks,
            RequestBatchJobLaunch: self._batch_job_launch,
            RequestTerminateJob: self._terminate_job,
            RequestKillTimelimit: self._terminate_job,
            RequestSignalTasks: self._signal_tasks,
            RequestStepComplete: self._step_complete,
            RequestAbortJob: self._abort_job,
            RequestPing: self._ping,
            RequestNodeRegistrationStatus: self._registration_due,
            RegistrationDue: self._registration_due,
            RequestReconfigure: _ignore,
            ReportsDue: self._reports_due,
            ResponseSlurmRc: _ignore,
            Unanswered: _ignore,
            StepGone: self._step_gone,
            KillWaitOver: self._kill_wait_over,
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

    def _report(self, message: Message) -> None:
        """Send slurmctld what it has to know; what a cut link holds back is sent later."""
        self._outbox.send(self.site.fabric.addresses.get("slurmctld"), message)
        self._watch_outbox()

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
        """Unpack the credential, fork the step daemon, hand it the credential, answer, free."""
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
        else:
            stepd = self._fork_stepd(
                message.job_id, message.step_id, step, message.launch.restart_cnt
            )
            handed = Buf()
            await hooks.call(switch_p_pack_jobinfo, who, credential, handed, about=about)
            self._run_stepd(stepd, step_work(message, handed.data()), envelope.sender)
            self._answer(envelope, SLURM_SUCCESS)
        await hooks.call(switch_p_free_jobinfo, who, credential, about=about)

    async def _batch_job_launch(self, envelope: Envelope, message: RequestBatchJobLaunch) -> None:
        """Answer that the launch is taken on, then fork the step daemon of the script."""
        rc = self._refusal(message.job_id, message.step_id, message.restart_cnt)
        self._answer(envelope, rc)
        if rc:
            return
        step = step_name(message.job_id, message.step_id)
        stepd = self._fork_stepd(message.job_id, message.step_id, step, message.restart_cnt)
        self._run_stepd(stepd, batch_work(message, self.site), None)

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
        self._revoke(job_id, message.restart_cnt)
        termination = Termination(request=message, asked_by=envelope.sender)
        if not self._steps_of(job_id):
            self._epilog(termination)
            return
        self._terminations[job_id] = termination
        self._signal_steps(job_id, (SIGCONT, SIGTERM))
        wait_us = max(self.site.conf.kill_wait_s, _MIN_KILL_WAIT_S) * SECOND
        termination.timer = self.mailbox.post_at(
            self.site.kernel.now_us + wait_us, KillWaitOver(job_id)
        )

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
        """Run the epilog once the last step daemon of a terminated job is gone."""
        termination = self._terminations.get(message.job_id)
        if termination is None or self._steps_of(message.job_id):
            return
        del self._terminations[message.job_id]
        if termination.timer is not None:
            termination.timer.cancel()
        self._epilog(termination)

    def _epilog(self, termination: Termination) -> None:
        """Run the job's epilog, which is nothing without a script, and report."""
        request = termination.request
        self._report(
            MessageEpilogComplete(
                job_id=request.job_id,
                restart_cnt=request.restart_cnt,
                return_code=SLURM_SUCCESS,
                node_name=self.host.name,
            ),
        )

    async def _ping(self, envelope: Envelope, message: RequestPing) -> None:
        """Answer that the node is there."""
        self._answer(envelope, SLURM_SUCCESS)


async def _ignore(_: Envelope, __: Any) -> None:
    """Take in a message that asks for nothing more."""
