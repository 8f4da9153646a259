"""The job that srun runs its step in: one of its own, asked for and given back, or one there is."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from simctl.commands.arguments.options import variable
from simctl.commands.arguments.queue_options import queue_wishes
from simctl.commands.asking.ask import no_answer
from simctl.commands.asking.talk import Reply, Talk
from simctl.commands.submission import burst_buffer
from simctl.commands.submission.describe import describe, refuse, tell_lines, test_only
from simctl.kernel.fabric import NEVER_US, Envelope
from simctl.kernel.procs import SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGUSR1, SIGUSR2
from simctl.site import CommandCall
from simctl.stepd.hosts.child import Signalled
from simctl.wire.errno import (
    ESLURM_BURST_BUFFER_WAIT,
    ESLURM_NODE_NOT_AVAIL,
    ESLURM_NODES_BUSY,
    ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE,
    SLURM_SUCCESS,
    SlurmError,
    slurm_strerror,
)
from simctl.wire.hostlist import expand
from simctl.wire.ids import NO_VAL, SECOND
from simctl.wire.messages import (
    Message,
    RequestCompleteJobAllocation,
    RequestJobReady,
    RequestKillJob,
    RequestResourceAllocation,
    ResponseResourceAllocation,
    ResponseSlurmRc,
    SrunJobComplete,
    SrunStepSignal,
    SrunUserMsg,
)
from simctl.wire.records import JobDesc

ENDS: Final = (SIGHUP, SIGINT, SIGTERM)
"""Signals with which srun is told to end."""

FORWARDED: Final = (SIGUSR1, SIGUSR2)
"""Signals that srun hands on to its tasks."""

SILENT_WAITS: Final = (ESLURM_NODES_BUSY, ESLURM_BURST_BUFFER_WAIT)
WAITS: Final = (
    *SILENT_WAITS,
    ESLURM_NODE_NOT_AVAIL,
    ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE,
)
"""Answers to a request for nodes that mean that the job waits for them, some without a word."""

_FAILED: Final = "Unable to allocate resources"


class SrunJob:
    """The job of one srun, `own` if srun has to ask for it, and what it hears before its step."""

    def __init__(
        self, call: CommandCall, options: Mapping[str, Any], program: str, talk: Talk
    ) -> None:
        self._call = call
        self._options = options
        self._program = program
        self._talk = talk
        self.job_id: int = options.get("jobid", variable(call.env, "SLURM_JOB_ID"))
        self.own = self.job_id == NO_VAL
        self.granted: ResponseResourceAllocation | None = None
        seconds = options.get("immediate", 0)
        now_us = call.site.kernel.now_us
        self.patient_to_us = now_us + seconds * SECOND if seconds else NEVER_US
        self.told_to_end = False
        self.woken = False
        """A step of the job has ended, so that there may be room for another."""

    async def obtain(self) -> int:
        """Ask for a job of srun's own, and wait for it; return srun's exit status, 0 to go on."""
        try:
            job = self._description()
            if "test-only" in self._options:
                return await test_only(self._call, job, "allocation failure", self._options)
            reply = await self.ask(
                RequestResourceAllocation(job_desc=job), ResponseResourceAllocation
            )
        except SlurmError as error:
            no_answer(self._call, error, f"srun: error: {_FAILED}")
            return 1
        if reply is not None and (_is_queued(reply) or not reply.error_code):
            tell_lines(self._call, reply.text, self._options)
        if reply is not None and _is_queued(reply) and not job.immediate:
            reply = await self._wait_in_queue(reply)
        if reply is None:
            return 1
        if reply.error_code != SLURM_SUCCESS:
            return refuse(self._call, _FAILED, reply.error_code, reply.text)
        self.job_id = self._call.process.job = reply.job_id
        self.granted = reply
        self._tell_of_nodes(reply)
        return await self._wait_until_ready()

    def _description(self) -> JobDesc:
        return describe(
            self._call,
            self._options,
            name=self._program.rsplit("/", 1)[-1],
            argv=(self._program,),
            immediate=self._options.get("immediate") == 1,
            burst_buffer=burst_buffer.text_of(self._call, self._options),
            **queue_wishes(self._call, self._options),
        )

    async def _wait_in_queue(
        self, reply: ResponseResourceAllocation
    ) -> ResponseResourceAllocation | None:
        self.job_id = reply.job_id
        if reply.error_code not in SILENT_WAITS:
            self.tell(slurm_strerror(reply.error_code))
        self.tell(f"job {self.job_id} queued and waiting for resources")
        later = await self._allocated()
        if later is not None:
            self.tell(f"job {self.job_id} has been allocated resources")
        return later

    async def _allocated(self) -> ResponseResourceAllocation | None:
        """Wait for an allocation; None when the job ends before it comes, or patience does."""
        while True:
            envelope = await self._talk.next(self.patient_to_us)
            if envelope is None:
                await self._leave_queue()
                return None
            message = envelope.message
            if isinstance(message, ResponseResourceAllocation):
                if _is_queued(message):
                    # The answer that it waits has come a second time.
                    continue
                return message
            self.handle(envelope)
            if isinstance(message, SrunJobComplete):
                self.tell_forced()
                return None

    async def _leave_queue(self) -> None:
        """Wait no longer for nodes."""
        with suppress(SlurmError):
            request = RequestKillJob(job_id=self.job_id, signal=SIGKILL)
            await self._talk.ask(request, ResponseSlurmRc, heeds_end=False)
        refuse(self._call, _FAILED, ESLURM_NODES_BUSY)

    def _tell_of_nodes(self, reply: ResponseResourceAllocation) -> None:
        cpus = _counted(reply.cpus_per_node)
        self.tell_more(
            f"jobid {reply.job_id}: nodes({len(expand(reply.node_list))}):`{reply.node_list}', "
            f"cpu counts: {cpus}"
        )

    async def _wait_until_ready(self) -> int:
        try:
            ready = await self.ask(RequestJobReady(job_id=self.job_id), ResponseSlurmRc)
        except SlurmError:
            # The creation of the step will tell.
            return 0
        return 0 if ready is not None else 1

    async def ask(self, request: Message, kind: type[Reply]) -> Reply | None:
        """Send a request and return its answer; None when the job ends before it comes."""
        reply = await self._talk.ask(request, kind)
        if isinstance(reply, SrunJobComplete):
            self.tell_forced()
            return None
        return reply

    async def give_back(self, job_rc: int) -> None:
        """Give the allocation back, if it is srun's own; the job ends with a wait status."""
        if self.own:
            await self._talk.give_back(
                RequestCompleteJobAllocation(job_id=self.job_id, job_rc=job_rc),
                f"srun: error: Unable to end job {self.job_id}",
            )

    def handle(self, envelope: Envelope) -> None:
        """Handle what comes before there is a step."""
        message = envelope.message
        if isinstance(message, SrunStepSignal):
            self.woken = True
        elif isinstance(message, SrunUserMsg):
            self._call.err(f"srun: {message.text}")
        elif isinstance(message, SrunJobComplete):
            self.told_to_end = True
        elif isinstance(message, Signalled) and message.signal in ENDS:
            self.told_to_end = True
            if self.own and self.job_id != NO_VAL:
                self._talk.send(RequestKillJob(job_id=self.job_id, signal=SIGKILL))

    # What srun says.

    def tell(self, text: str) -> None:
        """Print a line for people, unless they want none."""
        if "quiet" not in self._options:
            self._call.err(f"srun: {text}")

    def tell_more(self, text: str) -> None:
        """Print a line for those who want more of them."""
        if self.tells_more:
            self._call.err(f"srun: {text}")

    @property
    def tells_more(self) -> bool:
        """Return whether any task wants more lines."""
        return bool(self._options.get("verbose")) and "quiet" not in self._options

    def tell_forced(self) -> None:
        """Tell that the job was ended from outside."""
        self.tell(f"Force Terminated job {self.job_id}")


def _is_queued(reply: ResponseResourceAllocation) -> bool:
    return bool(reply.job_id) and reply.error_code in WAITS


def _counted(counts: tuple[int, ...]) -> str:
    """Return ``1(x2),4(x1)``: cpus of nodes, each with how many neighbours have as many."""
    runs: list[list[int]] = []
    for count in counts:
        if runs and runs[-1][0] == count:
            runs[-1][1] += 1
        else:
            runs.append([count, 1])
    return ",".join(f"{count}(x{times})" for count, times in runs)
