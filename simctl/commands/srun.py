"""srun: an allocation of its own if need be, one step, and the exit status of its tasks."""

from typing import Any, Final, TypeVar

from simctl.commands.ask import controller, no_answer
from simctl.commands.describe import describe, refuse
from simctl.commands.options import (
    BAD_OPTION,
    JOB_OPTIONS,
    JOB_UNBUILT,
    Grammar,
    Option,
    UsageError,
    not_negative,
    variable,
)
from simctl.commands.tasks import TaskBook
from simctl.kernel.fabric import NEVER_US, Envelope, Mailbox, Unanswered
from simctl.kernel.outbox import Outbox
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
from simctl.stepd.environment import job_environment, step_environment
from simctl.wire.buf import Buf
from simctl.wire.errno import (
    ESLURM_INVALID_PARTITION_NAME,
    ESLURM_NODES_BUSY,
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    SLURM_SUCCESS,
    SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR,
    SlurmError,
    slurm_strerror,
)
from simctl.wire.hostlist import compress
from simctl.wire.ids import NO_VAL, SECOND, step_name
from simctl.wire.layout import Distribution, StepLayout, default_distribution
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
    SrunTimeout,
    StepLaunch,
    TaskOutput,
)

GRAMMAR: Final = Grammar(
    command="srun",
    options=(
        *JOB_OPTIONS,
        Option(long="label", short="l"),
        Option(long="relative", short="r", read=not_negative),
        Option(long="jobid", read=not_negative),
        Option(long="immediate", short="I"),
        Option(long="overlap"),
        Option(long="unbuffered", short="u"),
    ),
    unbuilt=(JOB_UNBUILT - {"u"})
    | set(
        """
        accel-bind bcast compress cpu-bind debugger-test disable-status epilog X exact K
        kill-on-bad-exit launch-cmd mpi msg-timeout multi-prog pack-group het-group
        prolog preserve-env pty restart-dir R no-allocate Z resv-ports slurmd-debug T
        threads task-epilog task-prolog W wait whole interactive
        """.split()
    ),
)

FORCED: Final = 9
Reply = TypeVar("Reply", bound=Message)


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
        self.book: TaskBook | None = None
        self._ended_early = False
        self._cancelled = False
        self._give_up_us = NEVER_US
        self._outbox = Outbox(self.site.fabric, call.process, call.mailbox, interval_us=_AGAIN_US)
        self._opened: dict[str, None] = {}

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
        return status

    # An allocation.

    async def _allocate(self) -> int:
        call = self.call
        job = describe(
            call,
            self.options,
            name=self.words[0].rsplit("/", 1)[-1],
            immediate="immediate" in self.options,
        )
        try:
            reply = await self._ask(
                RequestResourceAllocation(job_desc=job), ResponseResourceAllocation
            )
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
            return refuse(call, "Unable to allocate resources", reply.error_code)
        self.job_id = reply.job_id
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
            reply = await self._ask(self._step_request(), ResponseJobStepCreate)
        except SlurmError as error:
            no_answer(call, error, f"srun: error: Unable to create step for job {self.job_id}")
            return await self._finish(1, wait_status(1))
        if reply is None:
            return await self._finish(1, wait_status(1))
        if reply.error_code or reply.layout is None:
            refuse(call, f"Unable to create step for job {self.job_id}", reply.error_code)
            return await self._finish(1, wait_status(1))
        self.step_id = reply.step_id
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
        self.book = TaskBook(reply.layout, own=self.own)
        await self._launch(reply.layout, credential)
        await self._follow(self.book)
        await hooks.call(switch_p_free_jobinfo, who, credential)
        return await self._finish(self.book.exit_status(), self.book.worst_status())

    def _step_request(self) -> RequestJobStepCreate:
        """Return what the step asks for: options first, then what the job's environment says."""
        env = {} if self.own else self.call.env
        options = self.options
        tasks = options.get("ntasks", variable(env, "SLURM_NTASKS"))
        least, most = options.get("nodes", (NO_VAL, NO_VAL))
        if "ntasks" in options and least != NO_VAL and tasks < least and not self.own:
            self.call.err(
                f"srun: Warning: can't run {tasks} processes on {least} nodes, "
                f"setting nnodes to {tasks}"
            )
            least = most = tasks
        per_node = options.get("ntasks-per-node", variable(env, "SLURM_NTASKS_PER_NODE"))
        nodes = variable(env, "SLURM_NNODES")
        if least == NO_VAL and nodes != NO_VAL:
            least = min(nodes, tasks) if tasks != NO_VAL else nodes
            if "nodelist" in options:
                least = min(least, len(options["nodelist"]))
            least = max(1, least - len(options.get("exclude", ())))
            most = least
        if "nodes" in options and "ntasks" not in options and not self.own:
            tasks = NO_VAL
        if tasks == NO_VAL and per_node != NO_VAL and least != NO_VAL:
            tasks = per_node * least
        how, plane = options.get("distribution", (None, 0))
        if how is None:
            how = default_distribution(
                num_tasks=1 if tasks == NO_VAL else tasks,
                num_nodes=1 if least == NO_VAL else least,
                own_allocation=self.own,
            )
            if tasks == NO_VAL and not self.own:
                how = Distribution.CYCLIC
        return RequestJobStepCreate(
            job_id=self.job_id,
            name=self.words[0].rsplit("/", 1)[-1],
            num_tasks=0 if tasks == NO_VAL else tasks,
            min_nodes=0 if least == NO_VAL else least,
            max_nodes=0 if most == NO_VAL else most,
            cpus_per_task=max(
                1, options.get("cpus-per-task", _or_one(variable(env, "SLURM_CPUS_PER_TASK")))
            ),
            ntasks_per_node=0 if per_node == NO_VAL else per_node,
            distribution=how,
            plane_size=plane,
            nodes=options.get("nodelist", ()),
            excluded=options.get("exclude", ()),
            relative=options.get("relative", NO_VAL),
            restart_cnt=self._run_of_job(),
        )

    def _run_of_job(self) -> int:
        """Return which run of its job srun belongs to, NO_VAL where it is no process of the job."""
        env = self.call.env
        if self.own or variable(env, "SLURM_JOB_ID") != self.job_id:
            return NO_VAL
        return _or_zero(variable(env, "SLURM_RESTART_COUNT"))

    async def _launch(self, layout: StepLayout, credential: Handle) -> None:
        """Send each node its tasks, with the credential packed for it."""
        call = self.call
        fabric = self.site.fabric
        launch = self._step_launch(layout)
        book = self.book
        assert book is not None
        for nodeid, node in enumerate(layout.nodes):
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

    def _step_launch(self, layout: StepLayout) -> StepLaunch:
        call = self.call
        node_list = compress(layout.nodes)
        env = dict(call.env)
        if self.own:
            env |= job_environment(
                job_id=self.job_id,
                job_name=self.options.get("job-name", self.words[0].rsplit("/", 1)[-1]),
                user=call.user.name,
                uid=call.user.uid,
                gid=call.user.gid,
                account=call.user.account,
                partition=self.options.get("partition", ""),
                node_list=node_list,
                num_nodes=len(layout.nodes),
                num_tasks=layout.num_tasks,
                cpus_per_node=layout.tasks,
                work_dir=call.work_dir,
                cluster=self.site.conf.cluster_name,
                restart_cnt=0,
            )
        env |= step_environment(
            layout, job_id=self.job_id, step_id=self.step_id, node_list=node_list
        )
        return StepLaunch(
            job_id=self.job_id,
            step_id=self.step_id,
            uid=call.process.uid,
            gid=call.user.gid,
            user=call.user.name,
            restart_cnt=_or_zero(variable(call.env, "SLURM_RESTART_COUNT")),
            job_name=call.env.get("SLURM_JOB_NAME", self.words[0]),
            layout=layout,
            node_list=node_list,
            argv=tuple(self.words),
            env=env,
            work_dir=self.site.disk.resolve(
                self.options.get("chdir", call.work_dir), call.work_dir
            ),
            tree_width=self.site.conf.tree_width,
        )

    # What happens to it.

    async def _follow(self, book: TaskBook) -> None:
        """Follow the step until every task has ended, was never started or is given up."""
        while not book.complete:
            envelope = await self._next()
            if envelope is None:
                self.call.err("srun: error: Timed out waiting for job step to complete")
                book.give_up()
                return
            self._handle(envelope)

    async def _next(self) -> Envelope | None:
        """Return the next message, and None once the end of the step was waited for in vain.

        In the meantime what a cut link holds back is sent.
        """
        mailbox = self.call.mailbox
        while True:
            due_us = min(self._outbox.due_us, self._give_up_us)
            if due_us == NEVER_US:
                return await mailbox.receive()
            envelope = await mailbox.receive_until(due_us)
            if envelope is not None:
                return envelope
            if self._give_up_us <= self.site.kernel.now_us:
                return None
            self._outbox.flush()

    def _handle(self, envelope: Envelope) -> None:
        message = envelope.message
        book = self.book
        if isinstance(message, SrunJobComplete | Signalled):
            self._cancel_step(message)
        elif isinstance(message, SrunTimeout) or book is None:
            return
        elif isinstance(message, MessageTaskExit):
            self._say(book.exited(message.task_ids, message.return_code))
        elif isinstance(message, ResponseLaunchTasks):
            if message.return_code:
                self._say(book.not_launched(message.task_ids, message.return_code))
        elif isinstance(message, Unanswered):
            if isinstance(message.request, RequestLaunchTasks):
                text = slurm_strerror(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
                self._launch_failed(_node_of(message.by), text, _LAUNCH_TIMED_OUT)
        elif isinstance(message, ResponseSlurmRc):
            if message.return_code and message.answers == RequestLaunchTasks.rpc:
                node = _node_of(envelope.sender)
                text = slurm_strerror(message.return_code)
                self._launch_failed(node, text, message.return_code)
        elif isinstance(message, SrunNodeFail):
            self.call.err(f"srun: error: Node failure on {message.node_list}")
            self._say(book.lost(message.node_list))
        elif isinstance(message, TaskOutput):
            self._print(message)

    def _say(self, lines: list[str]) -> None:
        for line in lines:
            self.call.err(line)

    def _print(self, message: TaskOutput) -> None:
        """Write what a task wrote; with --label each line bears its rank."""
        text = message.text
        if "label" in self.options:
            text = "".join(f"{message.task_id}: {line}" for line in text.splitlines(keepends=True))
        target = self.options.get("output" if message.stream == "stdout" else "error", "")
        if not target and message.stream == "stderr":
            target = self.options.get("output", "")
        if target:
            from simctl.wire.filenames import fill_in  # noqa: PLC0415 - few steps write files

            path = fill_in(
                target,
                job_id=self.job_id,
                user=self.call.user.name,
                job_name=self.words[0],
                node="",
                step=str(self.step_id),
                rank=message.task_id,
            )
            # A file is emptied when the step first writes to it.
            self.site.disk.write(
                path,
                text,
                self.call.work_dir,
                append=path in self._opened,
                host=self.call.process.host.name,
                uid=self.call.process.uid,
            )
            self._opened[path] = None
        else:
            self.call.write(message.stream, text)

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
        self._send(
            RequestStepComplete(
                job_id=self.job_id,
                step_id=self.step_id,
                range_first=nodeid,
                range_last=nodeid,
                step_rc=return_code,
            )
        )
        self._send_cancel()

    def _cancel_step(self, message: Message | Signalled) -> None:
        """End the step, because the job is over or srun itself was told to end."""
        if isinstance(message, Signalled) and message.signal not in (2, 15):
            return
        self._ended_early = True
        if self.step_id == NO_VAL:
            if isinstance(message, Signalled) and self.job_id != NO_VAL and self.own:
                self._send(RequestKillJob(job_id=self.job_id, signal=FORCED))
            return
        if isinstance(message, Signalled):
            self.call.err("srun: forcing job termination")
        self._send_cancel()

    def _send_cancel(self) -> None:
        if self._cancelled:
            return
        self._cancelled = True
        wait_us = (max(self.site.conf.kill_wait_s, _MIN_KILL_WAIT_S) + _PATIENCE_S) * SECOND
        self._give_up_us = self.site.kernel.now_us + wait_us
        self._send(RequestCancelJobStep(job_id=self.job_id, step_id=self.step_id, signal=FORCED))

    async def _finish(self, status: int, job_rc: int) -> int:
        """Give the allocation back, if it is srun's own; return the exit status."""
        if self.own:
            await self._give_back(RequestCompleteJobAllocation(job_id=self.job_id, job_rc=job_rc))
        return status

    async def _give_back(self, request: RequestCompleteJobAllocation) -> None:
        """Give the allocation back; one that nobody gives back would last for ever."""
        fabric = self.site.fabric
        who = self.call.process
        while True:
            try:
                await self._ask(request, ResponseSlurmRc, heeds_end=False)
            except SlurmError as error:
                to = controller(self.call)
                if to is None or not fabric.holds_back(who, to):
                    return
                due_us = fabric.next_try_us(who.host, to.host, _AGAIN_US)
                if due_us == NEVER_US:
                    no_answer(self.call, error, f"srun: error: Unable to end job {self.job_id}")
                    return
                await self.site.kernel.sleep_us(due_us - self.site.kernel.now_us)
                self._outbox.flush()
            else:
                return

    # Messages.

    def _send(self, message: Message) -> bool:
        """Send slurmctld what it has to know; what a cut link holds back is sent later."""
        return self._outbox.send(controller(self.call), message)

    async def _ask(
        self, request: Message, kind: type[Reply], *, heeds_end: bool = True
    ) -> Reply | None:
        """Send a request and return its answer; None when the job ends before it comes.

        Raises:
            SlurmError: slurmctld cannot be reached, or does not answer within MessageTimeout.
        """
        call = self.call
        if not self.site.fabric.send(call.process, controller(call), request, call.mailbox):
            raise SlurmError(SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR)
        limit_us = self.site.kernel.now_us + self.site.conf.message_timeout_s * SECOND
        while True:
            envelope = await call.mailbox.receive_until(limit_us)
            if envelope is None:
                raise SlurmError(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
            message = envelope.message
            if (
                isinstance(message, kind)
                and getattr(message, "answers", request.rpc) == request.rpc
            ):
                return message
            self._handle(envelope)
            if heeds_end and isinstance(message, SrunJobComplete):
                self._force_terminated()
                return None

    async def _allocated(self) -> ResponseResourceAllocation | None:
        """Wait for an allocation, however long it takes; None when the job ends before it comes."""
        while True:
            envelope = await self._next()
            message = envelope.message if envelope is not None else None
            if isinstance(message, ResponseResourceAllocation):
                return message
            if envelope is not None:
                self._handle(envelope)
            if isinstance(message, SrunJobComplete):
                self._force_terminated()
                return None

    def _force_terminated(self) -> None:
        self.call.err(f"srun: Force Terminated job {self.job_id}")


_DEAD_NODE: Final = 1001
_LAUNCH_TIMED_OUT: Final = SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT
_MIN_KILL_WAIT_S: Final = 5
_PATIENCE_S: Final = 2
"""How long after the last task must have been killed a step is given up."""

_AGAIN_US: Final = 60 * SECOND
"""How far apart the tries to tell slurmctld something are, while it cannot be reached."""


def _or_one(value: int) -> int:
    return 1 if value == NO_VAL else value


def _or_zero(value: int) -> int:
    return 0 if value == NO_VAL else value


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
    for name in ("time", "exclusive", "immediate") if inside else ():
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
