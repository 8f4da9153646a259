"""srun: an allocation of its own if need be, one step, and the exit status of its tasks."""

from contextlib import suppress
from typing import Any, Final

import msgspec

from simctl.commands.ask import no_answer
from simctl.commands.describe import describe, refuse
from simctl.commands.job_options import JOB_OPTIONS, unbuilt
from simctl.commands.multi_prog import MultiProgError
from simctl.commands.options import (
    BAD_OPTION,
    Grammar,
    Option,
    UsageError,
    not_negative,
    patience,
    text,
    variable,
    zero_or_one,
)
from simctl.commands.step_launch import run_of_job, step_launch
from simctl.commands.step_output import StepOutput
from simctl.commands.step_request import step_request
from simctl.commands.talk import Reply, Talk
from simctl.commands.tasks import Guard, TaskBook
from simctl.kernel.fabric import NEVER_US, Envelope, Mailbox, Unanswered
from simctl.kernel.procs import wait_status
from simctl.plugins.hooks import Handle, failed
from simctl.plugins.points.switch import (
    switch_p_alloc_jobinfo,
    switch_p_free_jobinfo,
    switch_p_pack_jobinfo,
    switch_p_unpack_jobinfo,
)
from simctl.plugins.site import CommandCall
from simctl.stepd.children import Signalled
from simctl.stepd.script_process import ScriptProcess
from simctl.stepd.srun_link import LineLost
from simctl.wire.buf import Buf
from simctl.wire.errno import (
    ESLURM_DISABLED,
    ESLURM_INVALID_JOB_ID,
    ESLURM_INVALID_PARTITION_NAME,
    ESLURM_NODES_BUSY,
    ESLURM_PROLOG_RUNNING,
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    SLURM_SUCCESS,
    SlurmError,
    slurm_strerror,
)
from simctl.wire.ids import NO_VAL, SECOND, step_name
from simctl.wire.layout import StepLayout
from simctl.wire.messages import (
    Message,
    MessageTaskExit,
    RequestCancelJobStep,
    RequestCompleteJobAllocation,
    RequestJobReady,
    RequestJobStepCreate,
    RequestKillJob,
    RequestLaunchTasks,
    RequestResourceAllocation,
    RequestStepComplete,
    ResponseJobStepCreate,
    ResponseLaunchTasks,
    ResponseResourceAllocation,
    ResponseSlurmRc,
    SrunJobComplete,
    SrunNodeFail,
    SrunStepSignal,
    SrunUserMsg,
    StepLaunch,
    TaskOutput,
)
from simctl.wire.signals import SIG_TERM_KILL

GRAMMAR: Final = Grammar(
    command="srun",
    options=(
        *JOB_OPTIONS,
        Option(long="label", short="l"),
        Option(long="relative", short="r", read=not_negative),
        Option(long="jobid", read=not_negative),
        Option(long="immediate", short="I", read=patience, optional="1"),
        Option(long="kill-on-bad-exit", short="K", read=zero_or_one, optional="1"),
        Option(long="wait", short="W", read=not_negative),
        Option(long="overlap"),
        Option(long="multi-prog"),
        Option(long="unbuffered", short="u"),
        Option(long="prolog", read=text),
        Option(long="epilog", read=text),
        Option(long="task-prolog", read=text),
        Option(long="task-epilog", read=text),
    ),
    unbuilt=unbuilt(
        "",
        """
        accel-bind bcast compress cpu-bind debugger-test disable-status X exact
        launch-cmd mpi msg-timeout pack-group het-group
        preserve-env pty restart-dir R no-allocate Z resv-ports slurmd-debug T
        threads whole interactive
        """,
    ),
)

FORCED: Final = 9
_WORTH_A_RETRY: Final = frozenset({ESLURM_DISABLED})
"""Why a step cannot be had now, though perhaps later."""

_FIRST_RETRY_US: Final = SECOND // 10
_LONGEST_RETRY_US: Final = 29 * SECOND


class Srun:
    """One run of srun, from its arguments to its exit status."""

    def __init__(self, call: CommandCall, options: dict[str, Any], words: list[str]) -> None:
        self.call = call
        self.site = call.site
        self.options = options
        self.words = words
        self.job_id = options.get("jobid", variable(call.env, "SLURM_JOB_ID"))
        self.own = self.job_id == NO_VAL
        self.step_id = NO_VAL
        self._granted: ResponseResourceAllocation | None = None
        self.book: TaskBook | None = None
        self._guard = Guard()
        self._kill_us = NEVER_US
        seconds = options.get("immediate", 0)
        self._patient_to_us = call.site.kernel.now_us + seconds * SECOND if seconds else NEVER_US
        self._ended_early = False
        self._cancelled = False
        self._terminated = False
        self._no_kill = False
        self._woken = False
        self._talk = Talk(call, self._handle)
        self._output = StepOutput(call, options, words[0])
        self._stay_us = NEVER_US
        """How long srun waits for a step of which a node refused its tasks."""

        self._give_up_us = NEVER_US
        """When srun gives up a step that was told to end."""

    async def run(self) -> int:
        """Return the exit status."""
        hooks = self.site.hooks
        who = self.call.process
        if not await hooks.load(who, "switch"):
            self.call.err("srun: fatal: failed to initialize switch plugin")
            return 1
        status = await self._allocate() if self.own else 0
        if not status:
            status = await self._run_step()
        if self.site.model == "guide":
            await hooks.unload(who, "switch")
        self._talk.close()
        return status

    # An allocation.

    async def _allocate(self) -> int:
        call = self.call
        try:
            job = describe(
                call,
                self.options,
                name=self.words[0].rsplit("/", 1)[-1],
                immediate=self.options.get("immediate") == 1,
            )
            reply = await self._ask(
                RequestResourceAllocation(job_desc=job), ResponseResourceAllocation
            )
        except UsageError as error:
            self._say(list(error.lines))
            return error.status
        except SlurmError as error:
            no_answer(call, error, "srun: error: Unable to allocate resources")
            return 1
        if reply is None:
            return 1
        queued = reply.error_code == ESLURM_NODES_BUSY and reply.job_id and not job.immediate
        if queued:
            self._tell(f"srun: job {reply.job_id} queued and waiting for resources")
            self.job_id = reply.job_id
            reply = await self._allocated()
            if reply is None:
                return 1
            self._tell(f"srun: job {reply.job_id} has been allocated resources")
        if reply.error_code != SLURM_SUCCESS:
            if reply.error_code == ESLURM_INVALID_PARTITION_NAME and job.partition:
                call.err(f"srun: error: invalid partition specified: {job.partition}")
            return refuse(call, "Unable to allocate resources", reply.error_code, reply.text)
        self.job_id = reply.job_id
        self._granted = reply
        call.process.job = reply.job_id
        try:
            ready = await self._ask(RequestJobReady(job_id=self.job_id), ResponseSlurmRc)
        except SlurmError:
            # The creation of the step will tell.
            return 0
        return 0 if ready is not None else 1

    def _tell(self, line: str) -> None:
        if "quiet" not in self.options:
            self.call.err(line)

    # The step.

    async def _run_step(self) -> int:
        call = self.call
        call.process.job = self.job_id
        try:
            reply = await self._create_step(self._step_request())
        except UsageError as error:
            self._say(list(error.lines))
            return await self._finish(error.status, wait_status(error.status))
        except SlurmError as error:
            no_answer(call, error, f"srun: error: Unable to create step for job {self.job_id}")
            return await self._finish(1, wait_status(1))
        if reply is None:
            return await self._finish(1, wait_status(1))
        if reply.error_code or reply.layout is None:
            self._no_step(reply.error_code)
            return await self._finish(1, wait_status(1))
        self.step_id = reply.step_id
        try:
            launch = step_launch(
                call,
                self.options,
                self.words,
                job_id=self.job_id,
                step_id=reply.step_id,
                restart_cnt=reply.restart_cnt,
                layout=reply.layout,
                granted=self._granted,
            )
        except MultiProgError as error:
            call.err(f"srun: error: {error}")
            self._report_nodes(0, len(reply.layout.nodes) - 1, 1)
            return await self._finish(1, wait_status(1))
        call.process.step = step_name(self.job_id, reply.step_id)
        hooks = self.site.hooks
        who = call.process
        if self.site.model == "guide":
            credential = await hooks.call(switch_p_alloc_jobinfo, who)
            if failed(credential):
                call.err("srun: fatal: switch_g_alloc_jobinfo failed")
                return await self._finish(1, wait_status(1))
        else:
            credential = await hooks.blank(who, switch_p_alloc_jobinfo)
        received = Buf(reply.switch_job)
        if failed(await hooks.call(switch_p_unpack_jobinfo, who, credential, received)):
            call.err(f"srun: error: Unable to create step for job {self.job_id}: invalid reply")
            await hooks.call(switch_p_free_jobinfo, who, credential)
            return await self._finish(1, wait_status(1))
        self.book = TaskBook(reply.layout)
        self._guard = Guard.of(self.options, call.env, self.site.conf)
        if await self._run_script("srun_prolog", "prolog", launch):
            self._abandon(reply.layout)
            exit_status, job_rc = 1, wait_status(1)
        else:
            await self._launch(launch, credential)
            await self._follow(self.book)
            exit_status, job_rc = self.book.exit_status(), self.book.worst_status()
        await hooks.call(switch_p_free_jobinfo, who, credential)
        exit_status = await self._finish(exit_status, job_rc)
        await self._run_script("srun_epilog", "epilog", launch)
        return exit_status

    async def _run_script(self, name: str, option: str, launch: StepLaunch) -> int:
        """Run srun's own prolog or epilog, the one asked for or slurm.conf's."""
        call = self.call
        conf = self.site.conf
        usual = conf.srun_prolog if option == "prolog" else conf.srun_epilog
        path = self.options.get(option, usual)
        if not path or path.lower() == "none":
            return 0
        script = ScriptProcess(
            site=self.site,
            parent=call.process,
            name=name,
            path=path,
            user=call.user,
            env=launch.env,
            job_id=self.job_id,
            step=call.process.step,
            work_dir=call.work_dir,
            output=lambda stream, text: call.write(
                "stderr" if stream == _STDERR else "stdout", text
            ),
        )
        return await script.run()

    def _abandon(self, layout: StepLayout) -> None:
        """Report a step over that was never launched, because srun's prolog failed."""
        self.call.err("srun: error: srun prolog failed. Aborting step.")
        self._report_nodes(0, len(layout.nodes) - 1, wait_status(1))

    def _step_request(self) -> RequestJobStepCreate:
        name = self.words[0].rsplit("/", 1)[-1]
        request = step_request(self.call, self.options, job_id=self.job_id, own=self.own, name=name)
        self._no_kill = request.no_kill
        return msgspec.structs.replace(request, restart_cnt=self._run_of_job())

    async def _create_step(self, request: RequestJobStepCreate) -> ResponseJobStepCreate | None:
        """Ask for the step until it is made or refused; None when the wait for it is over."""
        waited = False
        pause_us = _FIRST_PAUSE_US
        while True:
            reply = await self._ask(request, ResponseJobStepCreate)
            in_time = self.site.kernel.now_us < self._patient_to_us and not request.immediate
            if reply is None or reply.error_code not in _WORTH_WAITING or not in_time:
                if waited and reply is not None and not reply.error_code:
                    self._tell(f"srun: Step created for job {self.job_id}")
                return reply
            if reply.error_code == ESLURM_NODES_BUSY:
                # Who waits for cpus is woken when a step ends.
                spread = self.call.process.pid % _RETRY_SPREAD
                pause_us = (_RETRY_S + spread) * SECOND
            if not waited and reply.error_code != ESLURM_PROLOG_RUNNING:
                waited = True
                self._tell(f"srun: Job {self.job_id} step creation temporarily disabled, retrying")
            if not await self._wait_to_retry(pause_us):
                return None
            pause_us = min(2 * pause_us, _LONGEST_PAUSE_US)

    async def _wait_to_retry(self, pause_us: int) -> bool:
        """Wait until another step of the job ends, or long enough; false when told to end."""
        call = self.call
        due_us = min(self.site.kernel.now_us + pause_us, self._patient_to_us)
        while not self._woken:
            envelope = await call.mailbox.receive_until(due_us)
            if envelope is None:
                return True
            self._handle(envelope)
            if isinstance(envelope.message, SrunJobComplete):
                call.err(f"srun: Force Terminated job {self.job_id}")
                return False
            if self._ended_early:
                call.err(f"srun: Cancelled pending step for job {self.job_id}")
                return False
        self._woken = False
        return True

    def _no_step(self, error_code: int) -> None:
        """Say why there is no step."""
        call = self.call
        if error_code == ESLURM_INVALID_JOB_ID:
            refuse(call, f"Unable to confirm allocation for job {self.job_id}", error_code)
            call.err(
                "srun: Check SLURM_JOB_ID environment variable. "
                f"Expired or invalid job {self.job_id}"
            )
            return
        refuse(call, f"Unable to create step for job {self.job_id}", error_code)

    def _run_of_job(self) -> int:
        """Return which run of its job srun belongs to, NO_VAL where it is no process of the job."""
        env = self.call.env
        if self.own or variable(env, "SLURM_JOB_ID") != self.job_id:
            return NO_VAL
        return run_of_job(self.call)

    async def _launch(self, launch: StepLaunch, credential: Handle) -> None:
        """Send each node its tasks, with the credential packed for it."""
        call = self.call
        fabric = self.site.fabric
        for nodeid, node in enumerate(launch.layout.nodes):
            buffer = Buf()
            await self.site.hooks.call(switch_p_pack_jobinfo, call.process, credential, buffer)
            slurmd = fabric.addresses.get(f"slurmd@{node}")
            message = RequestLaunchTasks(
                job_id=self.job_id,
                step_id=self.step_id,
                nodeid=nodeid,
                launch=launch,
                switch_job=buffer.data(),
            )
            if not fabric.send(call.process, slurmd, message, call.mailbox):
                self._launch_failed(node, "Communication connection failure", _DEAD_NODE)

    # What happens to it.

    async def _follow(self, book: TaskBook) -> None:
        """Follow the step until every task has ended, or there is no more use in waiting."""
        while self._stay_us < NEVER_US or not book.complete:
            envelope = await self._talk.next(min(self._stay_us, self._give_up_us, self._kill_us))
            now_us = self.site.kernel.now_us
            if envelope is not None:
                self._handle(envelope)
            elif now_us >= self._stay_us:
                # Tasks that a node refused never end: only time ends the wait for the step.
                self.call.err("srun: error: Timed out waiting for job step to complete")
                self._cancelled = False
                self._send_cancel()
                break
            elif now_us >= self._give_up_us:
                self.call.err("srun: error: Timed out waiting for job step to complete")
                book.give_up()
                break
            else:
                self._waited_long_enough(book)
        if self._terminated:
            self._tell(f"srun: Force Terminated job step {self.job_id}.{self.step_id}")

    def _watch_exits(self, book: TaskBook, status: int) -> None:
        """End the step if a bad exit is to end it; from the first exit on, wait only so long."""
        if book.complete:
            return
        if status and self._guard.kill_on_bad_exit:
            self._terminate()
        elif self._guard.wait_s and self._kill_us == NEVER_US:
            self._kill_us = self.site.kernel.now_us + self._guard.wait_s * SECOND

    def _waited_long_enough(self, book: TaskBook) -> None:
        """End a step whose first task has ended long enough ago."""
        waited_s = self._guard.wait_s
        self._kill_us = NEVER_US
        self._guard = Guard()
        self._tell(f"srun: First task exited {waited_s}s ago")
        for line in book.states():
            self._tell(f"srun: step:{self.job_id}.{self.step_id} {line}")
        self._terminate()

    def _terminate(self) -> None:
        """Have the step's tasks sent SIGTERM, and SIGKILL after KillWait."""
        if self._cancelled:
            return
        self._terminated = True
        self._kill_us = NEVER_US
        self._tell(f"srun: Terminating job step {self.job_id}.{self.step_id}")
        self._send_cancel(SIG_TERM_KILL)

    def _handle(self, envelope: Envelope) -> None:
        """Take in what comes."""
        message = envelope.message
        kind = type(message)
        book = self.book
        if kind is SrunJobComplete or kind is Signalled:
            self._cancel_step(message)
        elif kind is SrunStepSignal:
            self._woken = True
        elif book is None:
            self._tell_user(message)
        elif kind is ResponseLaunchTasks:
            if message.return_code:
                self._say(book.not_launched(message.task_ids, message.return_code))
        elif kind is ResponseSlurmRc or kind is Unanswered:
            self._launch_answered(envelope)
        elif kind is MessageTaskExit:
            self._say(book.exited(message.task_ids, message.return_code))
            self._watch_exits(book, message.return_code)
        elif kind is TaskOutput:
            self._output.show(message)
        elif kind is SrunNodeFail:
            self.call.err(f"srun: error: Node failure on {message.node_list}")
            book.lost(message.node_list, counts=not self._no_kill)
        elif kind is LineLost:
            self._line_lost(book, message.node)
        else:
            self._tell_user(message)

    def _line_lost(self, book: TaskBook, node: str) -> None:
        """Give up the tasks of a node that will say nothing more, and with them the step."""
        nodeid = book.layout.nodes.index(node)
        self.call.err(f"srun: error: Aborting, io error with slurmstepd on node {nodeid}")
        book.lost(node, counts=not self._no_kill)
        if not self._no_kill:
            self._send_cancel()

    def _launch_answered(self, envelope: Envelope) -> None:
        """Take in a slurmd's answer to a launch, or that it was lost."""
        message = envelope.message
        if isinstance(message, Unanswered):
            if isinstance(message.request, RequestLaunchTasks):
                text = slurm_strerror(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
                self._launch_failed(_node_of(message.by), text, _LAUNCH_TIMED_OUT)
        elif message.return_code and message.answers == RequestLaunchTasks.rpc:
            text = slurm_strerror(message.return_code)
            self._launch_failed(_node_of(envelope.sender), text, message.return_code)

    def _tell_user(self, message: Message) -> None:
        """Print a line that slurmctld has for the user; other messages ask nothing of srun."""
        if isinstance(message, SrunUserMsg):
            self.call.err(f"srun: {message.text}")

    def _say(self, lines: list[str]) -> None:
        for line in lines:
            self.call.err(line)

    def _launch_failed(self, node: str, text: str, return_code: int) -> None:
        """Give a node of the step up: report for it, and end the step elsewhere."""
        book = self.book
        assert book is not None
        nodeid = book.layout.nodes.index(node)
        self.call.err(
            f"srun: error: Task launch for {self.job_id}.{self.step_id} failed on node {node}: "
            f"{text}"
        )
        self.call.err(f"srun: error: Application launch failed: {text}")
        book.launch_failed(nodeid, return_code)
        self._report_nodes(nodeid, nodeid, return_code)
        self._send_cancel()
        if self._stay_us == NEVER_US:
            wait_s = self.site.conf.kill_wait_s + _ABORT_GRACE_S
            self._stay_us = self.site.kernel.now_us + wait_s * SECOND
            self.call.err(
                f"srun: Job step aborted: Waiting up to {wait_s} seconds for job step to finish."
            )

    def _report_nodes(self, first: int, last: int, step_rc: int) -> None:
        """Report for nodes of the step on which no step daemon will."""
        self._talk.send(
            RequestStepComplete(
                job_id=self.job_id,
                step_id=self.step_id,
                range_first=first,
                range_last=last,
                step_rc=step_rc,
            )
        )

    def _cancel_step(self, message: Message | Signalled) -> None:
        """End the step, because the job is over or srun itself was told to end."""
        if isinstance(message, Signalled) and message.signal not in (2, 15):
            return
        self._ended_early = True
        if self.step_id == NO_VAL:
            if isinstance(message, Signalled) and self.job_id != NO_VAL and self.own:
                self._talk.send(RequestKillJob(job_id=self.job_id, signal=FORCED))
            return
        if isinstance(message, Signalled):
            self.call.err("srun: forcing job termination")
        self._send_cancel()

    def _send_cancel(self, signal: int = FORCED) -> None:
        if self._cancelled:
            return
        self._cancelled = True
        wait_us = (max(self.site.conf.kill_wait_s, _MIN_KILL_WAIT_S) + _PATIENCE_S) * SECOND
        self._give_up_us = self.site.kernel.now_us + wait_us
        self._talk.send(
            RequestCancelJobStep(job_id=self.job_id, step_id=self.step_id, signal=signal)
        )

    async def _finish(self, status: int, job_rc: int) -> int:
        """Give the allocation back, if it is srun's own; return the exit status."""
        if self.own:
            await self._talk.give_back(
                RequestCompleteJobAllocation(job_id=self.job_id, job_rc=job_rc),
                f"srun: error: Unable to end job {self.job_id}",
            )
        return status

    async def _ask(self, request: Message, kind: type[Reply]) -> Reply | None:
        """Send a request and return its answer; None when the job ends before it comes."""
        reply = await self._talk.ask(request, kind)
        if isinstance(reply, SrunJobComplete):
            self._force_terminated(reply)
            return None
        return reply

    async def _give_up(self) -> None:
        """Wait no longer for nodes: the job leaves the queue."""
        with suppress(SlurmError):
            request = RequestKillJob(job_id=self.job_id, signal=FORCED)
            await self._talk.ask(request, ResponseSlurmRc, heeds_end=False)
        refuse(self.call, "Unable to allocate resources", ESLURM_NODES_BUSY)

    async def _allocated(self) -> ResponseResourceAllocation | None:
        """Wait for an allocation; None when the job ends before it comes, or patience does."""
        while True:
            envelope = await self._talk.next(self._patient_to_us)
            if envelope is None:
                await self._give_up()
                return None
            message = envelope.message
            if isinstance(message, ResponseResourceAllocation):
                return message
            self._handle(envelope)
            if isinstance(message, SrunJobComplete):
                self._force_terminated(message)
                return None

    def _force_terminated(self, message: SrunJobComplete) -> None:
        self.call.err(f"srun: Force Terminated job {message.job_id}")


_DEAD_NODE: Final = 1001
_OF_ALLOCATIONS: Final = (
    *("mem", "mem-per-cpu", "gres", "mincpus", "reservation", "signal", "deadline"),
)
"""Options that shape an allocation; of a step inside one they are not simulated."""
_STDERR: Final = 2
_ABORT_GRACE_S: Final = 2
"""What srun waits longer than KillWait for a step it has cancelled."""

_LAUNCH_TIMED_OUT: Final = SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT
_MIN_KILL_WAIT_S: Final = 5
_PATIENCE_S: Final = 2
"""How long after the last task must have been killed a step is given up."""

_FIRST_PAUSE_US: Final = 100_000
_LONGEST_PAUSE_US: Final = 29 * SECOND

_WORTH_WAITING: Final = (ESLURM_NODES_BUSY, ESLURM_DISABLED, ESLURM_PROLOG_RUNNING)
"""Why there may be no step now, and one later."""

_RETRY_S: Final = 120
_RETRY_SPREAD: Final = 10
"""A srun that nobody wakes asks again after SlurmctldTimeout and up to ten seconds by its pid."""


def _node_of(sender: Mailbox | None) -> str:
    return sender.name.partition("@")[2] if sender is not None else ""


async def srun(call: CommandCall) -> int:
    """Run a step; return its exit status."""
    try:
        options, words = GRAMMAR.parse(call.argv[1:])
    except UsageError as error:
        for line in error.lines:
            call.err(line)
        return error.status
    inside = "SLURM_JOB_ID" in call.env or "jobid" in options
    for name in _OF_ALLOCATIONS if inside else ():
        if name in options:
            call.err(
                f"srun: error: --{name} of a step inside an allocation is an option of Slurm's "
                "that simctl does not simulate yet"
            )
            return BAD_OPTION
    if not words:
        call.err("srun: fatal: No command given to execute.")
        return 1
    return await Srun(call, options, words).run()
