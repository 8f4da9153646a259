"""srun: an allocation of its own if need be, one step, and the exit status of its tasks."""

from typing import Any, Final, TypeVar

from simctl.commands.describe import UNREACHABLE, describe, refuse
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
from simctl.kernel.fabric import Envelope, Mailbox
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
    ESLURM_DISABLED,
    ESLURM_INVALID_PARTITION_NAME,
    ESLURM_NODES_BUSY,
    SLURM_SUCCESS,
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
_WORTH_A_RETRY: Final = frozenset({ESLURM_DISABLED})
"""Why a step cannot be had now, though perhaps later."""

_FIRST_RETRY_US: Final = SECOND // 10
_LONGEST_RETRY_US: Final = 29 * SECOND
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
        if not self._send(RequestResourceAllocation(job_desc=job)):
            call.err(f"srun: error: Unable to allocate resources: {UNREACHABLE}")
            return 1
        reply = await self._expect(ResponseResourceAllocation)
        if reply is None:
            return 1
        queued = reply.error_code == ESLURM_NODES_BUSY and reply.job_id and not job.immediate
        if queued:
            self._tell(f"srun: job {reply.job_id} queued and waiting for resources")
            self.job_id = reply.job_id
            reply = await self._expect(ResponseResourceAllocation)
            if reply is None:
                return 1
            self._tell(f"srun: job {reply.job_id} has been allocated resources")
        if reply.error_code != SLURM_SUCCESS:
            if reply.error_code == ESLURM_INVALID_PARTITION_NAME and job.partition:
                call.err(f"srun: error: invalid partition specified: {job.partition}")
            return refuse(call, "Unable to allocate resources", reply.error_code)
        self.job_id = reply.job_id
        call.process.job = reply.job_id
        self._send(RequestJobReady(job_id=self.job_id))
        return 0 if await self._expect(ResponseSlurmRc) is not None else 1

    def _tell(self, line: str) -> None:
        if "quiet" not in self.options:
            self.call.err(line)

    # The step.

    async def _run_step(self) -> int:
        call = self.call
        call.process.job = self.job_id
        reply = await self._ask_for_step(self._step_request())
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

    async def _ask_for_step(self, request: RequestJobStepCreate) -> ResponseJobStepCreate | None:
        """Ask for a step, again and again while the job is suspended; None when it ends first."""
        wait_us = _FIRST_RETRY_US
        told = False
        while True:
            self._send(request)
            reply = await self._expect(ResponseJobStepCreate)
            if reply is None or reply.error_code not in _WORTH_A_RETRY:
                return reply
            if not told:
                told = True
                self._tell(f"srun: Job {self.job_id} step creation temporarily disabled, retrying")
            if await self._is_over_within(wait_us):
                return None
            wait_us = min(2 * wait_us, _LONGEST_RETRY_US)

    async def _is_over_within(self, length_us: int) -> bool:
        """Serve what comes for a while; tell whether the job or srun itself is to end."""
        until_us = self.site.kernel.now_us + length_us
        while not self._ended_early:
            envelope = await self.call.mailbox.receive_until(until_us)
            if envelope is None:
                return False
            self._handle(envelope)
        self.call.err(f"srun: Force Terminated job {self.job_id}")
        return True

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
        )

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
        """Follow the step until every task has ended or was never started."""
        while not book.complete:
            self._handle(await self.call.mailbox.receive())

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
        self._send(RequestCancelJobStep(job_id=self.job_id, step_id=self.step_id, signal=FORCED))

    async def _finish(self, status: int, job_rc: int) -> int:
        """Give the allocation back, if it is srun's own; return the exit status."""
        if self.own and self._send(RequestCompleteJobAllocation(job_id=self.job_id, job_rc=job_rc)):
            await self._expect_answer(RequestCompleteJobAllocation.rpc)
        return status

    # Messages.

    def _send(self, message: Message) -> bool:
        fabric = self.site.fabric
        controller = fabric.addresses.get("slurmctld")
        return fabric.send(self.call.process, controller, message, self.call.mailbox)

    async def _expect(self, kind: type[Reply]) -> Reply | None:
        """Return the next message of a kind; None when the job ends before it comes."""
        while True:
            envelope = await self.call.mailbox.receive()
            message = envelope.message
            if isinstance(message, kind):
                return message
            self._handle(envelope)
            if isinstance(message, SrunJobComplete):
                self.call.err(f"srun: Force Terminated job {self.job_id}")
                return None

    async def _expect_answer(self, rpc: str) -> None:
        while True:
            envelope = await self.call.mailbox.receive()
            message = envelope.message
            if isinstance(message, ResponseSlurmRc) and message.answers == rpc:
                return
            self._handle(envelope)


_DEAD_NODE: Final = 1001


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
    for name in ("time", "exclusive", "immediate", "signal", "deadline") if inside else ():
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
