"""srun launches its step on each node, and follows it until its tasks have ended."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from simctl.commands.asking.talk import Talk
from simctl.commands.srun.allocation import ENDS, FORWARDED, SrunJob
from simctl.commands.srun.cr import tell_srun_cr
from simctl.commands.srun.exec import run_beside
from simctl.commands.srun.step_output import StepOutput
from simctl.commands.srun.tasks import Guard, TaskBook
from simctl.kernel.fabric import NEVER_US, Envelope, Mailbox, Unanswered
from simctl.kernel.procs import SIGCONT, SIGINT, SIGKILL, RunsAs
from simctl.plugins.hooks import Handle
from simctl.plugins.points.switch import switch_p_pack_jobinfo
from simctl.site import CommandCall
from simctl.stepd.hosts.child import Signalled
from simctl.stepd.srun_link import LineLost
from simctl.wire.buf import Buf
from simctl.wire.errno import (
    SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT,
    SLURM_SUCCESS,
    slurm_strerror,
)
from simctl.wire.hostlist import compress
from simctl.wire.ids import NO_VAL, SECOND
from simctl.wire.messages import (
    MessageTaskExit,
    RequestCancelJobStep,
    RequestLaunchTasks,
    RequestSignalTasks,
    RequestStepComplete,
    ResponseLaunchTasks,
    ResponseSlurmRc,
    SrunExec,
    SrunJobComplete,
    SrunNodeFail,
    SrunStepMissing,
    StepLaunch,
    TaskOutput,
)
from simctl.wire.signals import SIG_TERM_KILL

_DEAD_NODE: Final = 1001
_ABORT_GRACE_S: Final = 2
"""What srun waits longer than KillWait for a step it has cancelled."""

_LAUNCH_TIMED_OUT: Final = SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT
_CONNECT_S: Final = 10
"""How long srun tries to connect to a slurmd that is not there, at most MessageTimeout."""

_MIN_KILL_WAIT_S: Final = 5
_PATIENCE_S: Final = 2
"""How long after the last task must have been killed a step is given up."""


@attrs.frozen
class _Untold:
    """A notice to srun itself: a node that refused it is to be tried again."""

    node: str
    message: RequestLaunchTasks
    until_us: int


class StepWatch:
    """A step as its srun sees it: launched, ended by itself, by its user, or from outside."""

    def __init__(
        self,
        call: CommandCall,
        options: Mapping[str, Any],
        job: SrunJob,
        talk: Talk,
        launch: StepLaunch,
        *,
        no_kill: bool,
    ) -> None:
        self._call = call
        self._job = job
        self._talk = talk
        self._launch = launch
        self._no_kill = no_kill
        self._options = options
        self._guard = Guard.of(options, call.env, call.site.conf)
        self._output = StepOutput(call, options, launch)
        self._name = f"StepId={launch.job_id}.{launch.step_id}"
        self.book = TaskBook(launch.layout)
        self._heard: list[int] = []
        """What has told of launches and of ends of tasks, which srun waits for."""

        self._launching = launch.layout.num_tasks
        """Tasks of which it is not known yet whether they run."""

        self._launched_on: set[str] = set()
        """The nodes that were sent their tasks."""

        self._cancelled = False
        self._gentle = False
        self._aborted = False
        self._forced = False
        """The step was ended from outside, which has been told."""

        self._kill_us = NEVER_US
        self._interrupted_us = -SECOND
        """When it was last interrupted."""

        self._refused = False
        """A node did not take its tasks."""

        self._stay_us = NEVER_US
        """How long srun waits for the tasks of other nodes then."""

        self._give_up_us = NEVER_US
        """When srun gives up a step that was told to end."""

    def open_output(self) -> str:
        """Make the files of the step's output; return what stands in the way, if anything does."""
        return self._output.open()

    async def launch(self, credential: Handle) -> None:
        """Send each node its tasks, with the credential packed for it."""
        call = self._call
        site = call.site
        launch = self._launch
        if self._job.tells_more:
            self._tell_launch(launch)
        if site.model == "modern":
            call.killed = self._leave_to_shepherd
        for nodeid, node in enumerate(launch.layout.nodes):
            buffer = Buf()
            await site.hooks.call(switch_p_pack_jobinfo, call.process, credential, buffer)
            message = RequestLaunchTasks(
                job_id=launch.job_id,
                step_id=launch.step_id,
                nodeid=nodeid,
                launch=launch,
                switch_job=site.hooks.packed(call.process, buffer),
            )
            slurmd = site.fabric.find(f"slurmd@{node}")
            if site.fabric.send(call.process, slurmd, message, call.mailbox):
                self._launched_on.add(node)
            else:
                tries_s = min(_CONNECT_S, site.conf.message_timeout_s)
                self._try_later(_Untold(node, message, site.kernel.now_us + tries_s * SECOND))

    def _try_later(self, untold: "_Untold") -> None:
        due_us = min(self._call.site.kernel.now_us + SECOND, untold.until_us)
        self._call.mailbox.post_at(due_us, untold)

    def _try_again(self, untold: "_Untold") -> None:
        """Send a node its tasks if its slurmd is there by now; give it up when its time is over."""
        call, node = self._call, untold.node
        fabric = call.site.fabric
        slurmd = fabric.find(f"slurmd@{node}")
        if self.book.is_over_on(node):
            return
        there = not self._cancelled and fabric.can_connect(call.process, slurmd)
        if there and fabric.send(call.process, slurmd, untold.message, call.mailbox):
            self._launched_on.add(node)
        elif self._cancelled or call.site.kernel.now_us >= untold.until_us:
            self._launch_failed(node, "Communication connection failure", _DEAD_NODE)
        else:
            self._try_later(untold)

    def _leave_to_shepherd(self) -> None:
        """Have the process that watches over srun cancel the step of a srun that was killed.

        Source: _shepherd_spawn() of srun 18.08; where all of a job is killed it dies as well.
        """
        call, launch = self._call, self._launch
        site = call.site
        shepherd = site.procs.add(
            call.process.host,
            ppid=call.process.pid,
            daemon="srun",
            role="srun",
            uid=call.process.uid,
            runs_as=RunsAs.USER,
        )
        shepherd.job, shepherd.step, shepherd.cause = (
            launch.job_id,
            call.process.step,
            call.process.cause,
        )
        mailbox = site.fabric.mailbox(shepherd, f"{call.mailbox.name} shepherd")

        async def cancel() -> None:
            request = RequestCancelJobStep(
                job_id=launch.job_id, step_id=launch.step_id, signal=SIGKILL
            )
            if site.fabric.send(shepherd, site.fabric.find("slurmctld"), request, mailbox):
                limit_us = site.kernel.now_us + site.conf.message_timeout_s * SECOND
                await mailbox.receive_until(limit_us)
            mailbox.close()
            shepherd.exit(0)

        shepherd.start(cancel)

    def _tell_launch(self, launch: StepLaunch) -> None:
        self._job.tell_more("launch/slurm: launch_p_step_launch: CpuBindType=(null type)")
        for node, tids in zip(launch.layout.nodes, launch.layout.tids, strict=True):
            ranks = compress([str(rank) for rank in tids])
            self._job.tell_more(
                f"launching {self._name} on host {node}, {len(tids)} tasks: {ranks}"
            )
        self._job.tell_more("route/default: init: route default plugin loaded")

    async def follow(self) -> None:
        """Follow the step until every task has ended, or there is no more use in waiting."""
        book = self.book
        process = self._call.process
        launched = process.cause
        while (
            self._stay_us < NEVER_US or not book.complete or (self._refused and self._launched_on)
        ):
            if self._refused and self._stay_us == NEVER_US:
                self._stay_us = self._call.site.kernel.now_us + self._tell_patience() * SECOND
            envelope = await self._talk.next(min(self._stay_us, self._give_up_us, self._kill_us))
            now_us = self._call.site.kernel.now_us
            if envelope is not None:
                self.handle(envelope)
            elif now_us >= self._stay_us:
                # Tasks that a node refused never end: only time ends the wait for the step.
                self._call.err("srun: error: Timed out waiting for job step to complete")
                self._cancelled = False
                self._send_cancel()
                break
            elif now_us >= self._give_up_us:
                self._call.err("srun: error: Timed out waiting for job step to complete")
                book.give_up()
                break
            else:
                self._waited_long_enough()
        if self._refused and self._stay_us == NEVER_US:
            # No node has taken its tasks: there is nothing to wait for.
            self._job.tell("Job step aborted")
        self._call.site.trace.choose(process, launched, *self._heard)
        if book.killed and not self._forced:
            self._job.tell(f"Force Terminated {self._name}")

    # What comes.

    def handle(self, envelope: Envelope) -> None:
        """Handle what comes."""
        message = envelope.message
        book = self.book
        kind = type(message)
        if kind is SrunJobComplete:
            self._ended_from_outside(message)
        elif kind is Signalled:
            self._signalled(message)
        elif kind is ResponseLaunchTasks:
            self._acknowledge(envelope)
            self._launched(message, envelope)
        elif kind is ResponseSlurmRc or kind is Unanswered:
            self._launch_answered(envelope)
        elif kind is MessageTaskExit:
            self._acknowledge(envelope)
            self._exited(message)
        elif kind is TaskOutput:
            self._output.show(message)
        elif kind is SrunNodeFail:
            self._call.err(f"srun: error: Node failure on {message.node_list}")
            book.lost(message.node_list, counts=not self._no_kill)
        elif kind is _Untold:
            self._try_again(message)
        elif kind is LineLost:
            self._line_lost(message.node)
        elif kind is SrunStepMissing:
            self._step_missing(message.node_list)
        elif kind is SrunExec:
            run_beside(self._call, self._talk, message)
        else:
            self._job.handle(envelope)

    def _acknowledge(self, envelope: Envelope) -> None:
        """Answer a step daemon that waits for it before it reports the step complete."""
        call = self._call
        if call.site.model == "modern" and envelope.sender is not None:
            answer = ResponseSlurmRc.to(envelope.message, SLURM_SUCCESS)
            call.site.fabric.send(call.process, envelope.sender, answer, call.mailbox)

    def _launched(self, message: ResponseLaunchTasks, envelope: Envelope) -> None:
        self._settled(len(message.task_ids))
        if message.return_code:
            self._heard.append(self._call.process.cause)
            self._say(self.book.not_launched(message.task_ids, message.return_code))
            return
        if not self._job.tells_more:
            return
        node = _node_of(envelope.sender) or message.node_name
        count = len(message.task_ids)
        self._job.tell_more(f"launch/slurm: _task_start: Node {node}, {count} tasks started")

    def _settled(self, tasks: int) -> None:
        """Note that *tasks* more run, or never will; srun_cr is told of the whole step at once."""
        self._launching -= tasks
        if not self._launching:
            launch = self._launch
            tell_srun_cr(self._call, launch.job_id, launch.step_id, launch.node_list)

    def _exited(self, message: MessageTaskExit) -> None:
        told = self._job.tells_more
        if told:
            count = len(message.task_ids)
            self._job.tell_more(
                "launch/slurm: _task_finish: Received task exit notification for "
                f"{count} task{'s' * (count > 1)} of {self._name} "
                f"(status=0x{message.return_code:04x})."
            )
        self._heard.append(self._call.process.cause)
        self._say(self.book.exited(message.task_ids, message.return_code))
        if told and not message.return_code:
            text = self.book.completed(message.task_ids)
            self._job.tell_more(f"launch/slurm: _task_finish: {text}")
        self._watch_exits(message.return_code)

    def _watch_exits(self, status: int) -> None:
        """End the step if a bad exit is to end it; from the first exit on, wait only so long."""
        if self.book.complete:
            return
        if status and self._guard.kill_on_bad_exit:
            self._terminate(SIG_TERM_KILL)
        elif self._guard.wait_s and self._kill_us == NEVER_US:
            self._kill_us = self._call.site.kernel.now_us + self._guard.wait_s * SECOND

    def _waited_long_enough(self) -> None:
        """End a step whose first task has ended long enough ago."""
        waited_s = self._guard.wait_s
        self._kill_us = NEVER_US
        self._guard = Guard()
        self._job.tell(f"First task exited {waited_s}s ago")
        for line in self.book.states():
            self._job.tell(f"{self._name} {line}")
        if not self._cancelled:
            self._terminate(SIGKILL)
            self._forced = True
            self._tell_patience()

    def _terminate(self, signal: int) -> None:
        """Have the step's tasks ended: killed, or with SIG_TERM_KILL sent SIGTERM first."""
        if self._cancelled:
            return
        self._kill_us = NEVER_US
        self._job.tell(f"launch/slurm: _step_signal: Terminating {self._name}")
        self._send_cancel(signal)

    def _ended_from_outside(self, message: SrunJobComplete) -> None:
        """Follow the end of the job, or of the step, that slurmctld tells of."""
        if self.book.complete:
            # srun ends what has ended all the same, and says nothing of it.
            self._send_cancel()
            return
        if self._cancelled:
            # It has heard of srun's own wish.
            self._forced = not self._gentle
            return
        self._forced = True
        if self._job.own and message.step_id == NO_VAL:
            self._job.tell_forced()
        self._abort()

    def _signalled(self, message: Signalled) -> None:
        """Heed a signal, or hand it on to the tasks. Source: _handle_signal() of srun."""
        if message.signal == SIGCONT:
            self._call.err("srun: got SIGCONT")
        elif message.signal in FORWARDED:
            self._forward(message.signal)
        if message.signal not in ENDS or (message.signal == SIGINT and not self._is_to_end()):
            return
        self._forced = True
        # No option makes srun keep this to itself.
        self._call.err("srun: forcing job termination")
        self._abort()

    def _is_to_end(self) -> bool:
        """Return whether an interrupt ends the step, as one within a second of another does.

        Else srun says how its tasks stand, or hands the interrupt on to them.
        """
        now_us, last_us = self._call.site.kernel.now_us, self._interrupted_us
        self._interrupted_us = now_us
        if "quit-on-interrupt" in self._options or now_us - last_us < SECOND:
            self._tell_interrupt()
            return True
        if "disable-status" in self._options:
            self._tell_interrupt()
        elif not self._cancelled:
            self._job.tell("interrupt (one more within 1 sec to abort)")
            for line in self.book.states():
                self._job.tell(f"{self._name} {line}")
        return False

    def _tell_interrupt(self) -> None:
        self._job.tell(f"sending Ctrl-C to {self._name}")
        self._forward(SIGINT)

    def _forward(self, signal: int) -> None:
        """Send a signal to the tasks on every node that has some left."""
        call, launch = self._call, self._launch
        for node in launch.layout.nodes:
            if node in self._launched_on and not self.book.is_over_on(node):
                request = RequestSignalTasks(
                    job_id=launch.job_id, step_id=launch.step_id, signal=signal
                )
                slurmd = call.site.fabric.find(f"slurmd@{node}")
                call.site.fabric.send(call.process, slurmd, request, call.mailbox)

    def _abort(self) -> None:
        """End the step, and say how long srun will wait for that."""
        if not self._aborted:
            self._tell_patience()
        self._send_cancel()

    def _tell_patience(self) -> int:
        self._aborted = True
        wait_s = self._call.site.conf.kill_wait_s + _ABORT_GRACE_S
        self._job.tell(f"Job step aborted: Waiting up to {wait_s} seconds for job step to finish.")
        return wait_s

    def _send_cancel(self, signal: int = SIGKILL) -> None:
        if self._cancelled:
            return
        self._cancelled = True
        self._gentle = signal != SIGKILL
        wait_s = max(self._call.site.conf.kill_wait_s, _MIN_KILL_WAIT_S) + _PATIENCE_S
        self._give_up_us = self._call.site.kernel.now_us + wait_s * SECOND
        self._talk.send(
            RequestCancelJobStep(
                job_id=self._launch.job_id, step_id=self._launch.step_id, signal=signal
            )
        )

    # What goes wrong.

    def _line_lost(self, node: str) -> None:
        """Give up the tasks of a node that will say nothing more, and with them the step."""
        nodeid = self.book.layout.nodes.index(node)
        self._call.err(f"srun: error: Aborting, io error with slurmstepd on node {nodeid}")
        self._give_up_node(node)

    def _step_missing(self, node: str) -> None:
        """Give up the tasks of a node that does not know the step, if it had them."""
        if self._call.site.options.step_missing == "go_on":
            return
        if node not in self._launched_on or self.book.is_over_on(node):
            return
        nodeid = self.book.layout.nodes.index(node)
        self._call.err(f"srun: error: Aborting, step missing and io error on node {nodeid}")
        self._give_up_node(node)

    def _give_up_node(self, node: str) -> None:
        """Count the tasks of a node as lost, and with them the step."""
        self.book.lost(node, counts=not self._no_kill)
        if not self._no_kill:
            self._send_cancel()

    def _launch_answered(self, envelope: Envelope) -> None:
        """Handle a slurmd's answer to a launch, or that it was lost."""
        message = envelope.message
        if isinstance(message, Unanswered):
            if isinstance(message.request, RequestLaunchTasks):
                text = slurm_strerror(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
                if message.broken:
                    text = "Zero Bytes were transmitted or received"
                self._launch_failed(_node_of(message.by), text, _LAUNCH_TIMED_OUT)
        elif message.return_code and message.answers == RequestLaunchTasks.rpc:
            text = slurm_strerror(message.return_code)
            self._launch_failed(_node_of(envelope.sender), text, message.return_code)

    def _launch_failed(self, node: str, text: str, return_code: int) -> None:
        """Give a node of the step up: report for it, and end the step elsewhere."""
        book = self.book
        nodeid = book.layout.nodes.index(node)
        self._call.err(f"srun: error: Task launch for {self._name} failed on node {node}: {text}")
        self._call.err(f"srun: error: Application launch failed: {text}")
        book.launch_failed(nodeid, return_code)
        self._launched_on.discard(node)
        self._settled(len(book.layout.tids[nodeid]))
        launch = self._launch
        report_nodes(self._talk, launch.job_id, launch.step_id, (nodeid, nodeid), return_code)
        self._send_cancel()
        self._refused = True

    def _say(self, lines: list[str]) -> None:
        for line in lines:
            self._call.err(line)


def report_nodes(
    talk: Talk, job_id: int, step_id: int, nodes: tuple[int, int], step_rc: int
) -> None:
    """Report for nodes of a step on which no step daemon will, from one to another."""
    first, last = nodes
    talk.send(
        RequestStepComplete(
            job_id=job_id, step_id=step_id, range_first=first, range_last=last, step_rc=step_rc
        )
    )


def _node_of(sender: Mailbox | None) -> str:
    return sender.name.partition("@")[2] if sender is not None else ""
